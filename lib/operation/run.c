/*
 * The run: nodes, product, comparison, certificate, files. The result gets its name when everything
 * else has succeeded, the certificate right after it.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/diag.h"
#include "core/hooks.h"
#include "lib/certificate.h"
#include "lib/operation/operation.h"
#include "scheduler/cluster/internal.h"
#include "scheduler/plan/profile.h"
#include "sherd/local.h"
#include "sherd/machine.h"
#include "store/file.h"
#include "store/csv_write.h"
#include "store/npy_writer.h"

/* ---- nodes and product ----------------------------------------------------------------------- */

/* Writes the rest of o.timeout_ms to *ms, or leaves it if there is no such bound. `before` says in
 * a message what it leaves no time for. */
static int time_left(const sherd_operation *w, uint32_t *ms, const char *before, sherd_diag *d)
{
    if (w->o.timeout_ms == 0) return SHERD_OK;
    double left = (double)w->o.timeout_ms - (sherd__clock_s() - w->began) * 1e3;
    *ms = left < 1 ? 1 : (uint32_t)left;
    return left >= 1 ? SHERD_OK
                     : sherd__fail(d, SHERD_ETIMEOUT, "allow more time",
                                   "the timeout of %g s expired before %s", w->o.timeout_ms * 1e-3,
                                   before);
}

static int open_nodes(sherd_operation *w, sherd_diag *d)
{
    w->cluster = w->o.cluster;
    if (w->cluster) return SHERD_OK;
    int err = time_left(w, &w->nodes.timeout_ms, "the nodes were ready", d);
    if (!sherd__hooks_any(&w->nodes.hooks)) w->nodes.hooks = w->quiet;
    return err ? err : sherd_cluster_open(&w->cluster, &w->nodes, d);
}

/* Returns whether times can be predicted. Over links to other machines they depend on the links,
 * which are measured only if the caller asks for measurements, and not into a record, which is that
 * of the operands alone. */
static bool times_known(const sherd_operation *w)
{
    if (sherd_cluster_simulated(w->cluster)) return true;
    return w->o.measured && !sherd__cluster_record_dir(w->cluster);
}

/* What prevents a forecast is reported by the run that follows. */
static void predict(sherd_operation *w)
{
    sherd_forecast_options f = { .size = sizeof f,
                                 .cluster = w->cluster,
                                 .no_measurements = !w->o.measured,
                                 .no_time = !times_known(w),
                                 .result = w->c,
                                 .hooks = w->quiet };
    if (!w->o.forecast || !sherd__operation_is_product(w)) return;
    double began = sherd__clock_s();
    w->forecasted.size = sizeof w->forecasted;
    /* The product follows the same speeds. If they cannot be measured, it fails likewise. */
    (void)!sherd__product_speeds(w->cluster, w->in[0].view, w->in[1].view, &w->opt, NULL);
    if (!f.no_time && sherd_forecast_probe(&f, NULL)) f.no_time = true;
    w->forecast = !sherd_forecast_multiply(w->in[0].view, w->in[1].view, &w->opt, &f,
                                           &w->forecasted, NULL);
    w->forecasting = sherd__clock_s() - began;
}

/* A short run may end before any progress was reported. */
static void report_done(const sherd_operation *w)
{
    const sherd_report *r = &w->report;
    sherd_progress p = { .done = r->tasks, .total = r->tasks, .seconds = r->seconds };
    for (uint32_t i = 0; i < r->nodes; i++) {
        p.bytes_out += r->bytes_out[i];
        p.bytes_in += r->bytes_in[i];
        p.nodes_up += r->states[i] == SHERD_NODE_UP;
    }
    if (p.done > 0 && w->o.hooks.progress) w->o.hooks.progress(w->o.hooks.ctx, &p);
}

/* Warns of integers that float64 rounds; exact mode refuses them. */
static void warn_of_rounding(const sherd_operation *w)
{
    char text[512];
    bool exact = sherd__operation_is_product(w) && w->opt.exact;
    for (unsigned i = 0; i < w->in_len && !exact && w->o.hooks.log; i++) {
        sherd_profile *p = i ? w->opt.profile_b : w->opt.profile_a;
        if (w->in[i].view.dtype != SHERD_I64 || !sherd__profile_scan(p)->inexact) continue;
        snprintf(text, sizeof text, "%s: integers beyond 2^53 are rounded to float64",
                 w->in[i].name);
        w->o.hooks.log(w->o.hooks.ctx, SHERD_LOG_WARN, text);
        return;
    }
}

static int compute(sherd_operation *w, sherd_diag *d)
{
    sherd_view a = w->in[0].view, b = w->in[1].view;
    int err = time_left(w, &w->opt.timeout_ms, "the product began", d);
    if (err) return err;
    warn_of_rounding(w);
    if (w->o.meta) sherd__cluster_weights_unused(w->cluster, SHERD__WEIGHTS_OF_METADATA);
    w->report.size = sizeof w->report;
    w->opt.hooks = w->o.hooks;
    err = sherd__operation_is_product(w)
              ? sherd_multiply(w->cluster, a, b, w->c, w->cols, &w->opt, &w->report, d)
              : sherd_apply(w->cluster, w->op, a, b, w->c, w->cols, &w->opt, &w->report, d);
    if (err) return err;
    w->seconds = sherd__clock_s() - w->began - w->forecasting;
    report_done(w);
    for (unsigned i = 0; i < w->in_len && !err; i++)
        if (w->in[i].file) err = sherd_array_check(w->in[i].file, d);
    return err;
}

/* ---- the result ------------------------------------------------------------------------------ */

/* Returns the likely cause of a difference: a node's wrong answer if the checks can miss one, else
 * a defect of sherd. */
static const char *suspect(const sherd_operation *w)
{
    if (!sherd__operation_is_product(w))
        return "nothing was written; a node may have answered wrongly outside the sample that is "
               "recomputed: try other nodes";
    if (!w->opt.exact || w->report.check_tolerant)
        return "nothing was written; a node may have answered wrongly, within the tolerance for "
               "floats: --mode exact detects it and names the node";
    return "nothing was written; please report this";
}

/* Compares with the centralized result, and an exact product with float64, too. */
static int compare(sherd_operation *w, sherd_diag *d)
{
    const sherd_check_options opt = { .size = sizeof opt,
                                      .op = w->op,
                                      .exact = sherd__operation_is_product(w) && w->opt.exact,
                                      .bits = w->opt.bits,
                                      .bits_b = w->opt.bits_b,
                                      .name_a = w->in[0].name,
                                      .name_b = w->in[1].name,
                                      .profile_a = w->opt.profile_a,
                                      .profile_b = w->opt.profile_b,
                                      .hooks = w->quiet };
    sherd_view a = w->in[0].view, b = w->in[1].view, c = sherd__operation_result(w);
    uint64_t calls = sherd_blas_calls();
    w->check.size = sizeof w->check;
    int err = sherd_check_result(a, b, c, &opt, &w->check, d);
    w->checked = err == 0 || err == SHERD_EDIFFERS;
    if (err == SHERD_EDIFFERS && d) snprintf(d->hint, sizeof d->hint, "%s", suspect(w));
    if (w->checked && w->o.distance && opt.exact) {
        w->distance.size = sizeof w->distance;
        int more = sherd_check_distance(a, b, c, &opt, &w->distance, d);
        w->measured = more == 0;
        if (!err) err = more;
    }
    w->check_calls = sherd_blas_calls() - calls;
    return err;
}

/* Writes the certificate, without its name. */
static int certify(sherd_operation *w, sherd_diag *d)
{
    const sherd_certified what = { .size = sizeof what,
                                   .cluster = w->cluster,
                                   .op = w->op,
                                   .a = w->in[0].view,
                                   .b = w->in[1].view,
                                   .result = sherd__operation_result(w),
                                   .options = &w->opt,
                                   .report = &w->report,
                                   .verdict = w->checked ? SHERD_EQUAL : SHERD_UNCHECKED,
                                   .without_inputs = w->o.certificate_public,
                                   .reused_metadata = w->usage == SHERD_META_REUSED,
                                   .hooks = w->quiet };
    int err = sherd_certificate_make(w->certificate, &what, d);
    return err ? err : sherd_certificate_begin(w->certificate, w->o.certificate, d);
}

static int commit_text(sherd_operation *w, sherd_diag *d)
{
    sherd__file *text = w->text;
    int err = sherd__csv_write(text, sherd__operation_result(w), d);
    if (err) return err;
    w->text = NULL;
    return sherd__file_publish(text, &w->written, d);
}

static int commit_result(sherd_operation *w, sherd_diag *d)
{
    sherd_npy_writer *writer = w->writer;
    if (w->text) return commit_text(w, d);
    if (!writer) return SHERD_OK;
    int err = sherd_npy_writer_rows(writer, sherd__operation_result(w), d);
    if (err) return err;
    w->writer = NULL;
    return sherd__npy_writer_publish(writer, &w->written, d);
}

/* From here the caller is not asked to interrupt: both files get their names, or an error names the
 * one that does not. */
static int commit(sherd_operation *w, sherd_diag *d)
{
    sherd_diag mine = { 0 };
    int err = commit_result(w, d);
    if (err || !w->certificate) return err;
    err = sherd__certificate_publish(w->certificate, &w->certified, &mine);
    if (err && w->written && !w->certified)
        return sherd__fail(d, err, mine.hint, "%s was written, but its certificate was not: %s",
                           sherd__path_tail(w->o.output), mine.message);
    return err ? sherd__fail(d, err, mine.hint, "%s", mine.message) : SHERD_OK;
}

int sherd_operation_run(sherd_operation *w, sherd_diag *d)
{
    if (w->ran || w->o.forecast_only)
        return sherd__fail(d, SHERD_EINVAL, "make another one: sherd_operation_new",
                           w->ran ? "this operation has run" : "this operation is for forecasts");
    w->ran = true;
    if (sherd_scheme_get(w->opt.scheme)->takes & SHERD_TAKES_SHUFFLES)
        sherd__operation_settle_seed(w); /* so that forecast and run partition alike */
    int err = open_nodes(w, d);
    if (err) return err;
    for (unsigned i = 0; i < w->in_len && w->certificate && !w->o.certificate_public; i++)
        sherd_profile_digest_start(i ? w->opt.profile_b : w->opt.profile_a);
    predict(w);
    err = compute(w, d);
    if (!err && w->o.check) err = compare(w, d);
    if (!err && w->certificate) err = certify(w, d);
    if (!err) err = sherd__hooks_check(&w->o.hooks, "interrupted; nothing was written", d);
    if (!err) err = commit(w, d);
    return err || w->o.cluster ? err : sherd_cluster_end(w->cluster, d);
}

/* ---- forecasts of all choices ---------------------------------------------------------------- */

/* Returns whether times can be predicted without nodes: links to other machines would have to be
 * measured, and only nodes know the rates of their devices. */
static bool times_without_nodes(const sherd_operation *w)
{
    const sherd_cluster_options *n = &w->nodes;
    if (w->o.cluster) return sherd_cluster_simulated(w->o.cluster);
    bool devices = n->devices || n->devices_each || (n->backend && strcmp(n->backend, "cpu") != 0);
    return w->loopback && !devices;
}

int sherd_operation_choices_new(sherd_choices **out, sherd_operation *w, sherd_diag *d)
{
    char running[PATH_MAX];
    sherd_forecast_options f = { .size = sizeof f,
                                 .cluster = w->o.cluster,
                                 .nodes_file = w->nodes.nodes_file,
                                 .nodes_text = w->nodes.nodes,
                                 .same_host_domains = w->nodes.same_host_domains ||
                                                      w->nodes.running,
                                 .nodes = w->nodes_count,
                                 .remote = !w->loopback,
                                 .node_memory = w->nodes.node_memory,
                                 .no_time = !times_without_nodes(w),
                                 .hooks = w->o.hooks };
    *out = NULL;
    if (!sherd__operation_is_product(w))
        return sherd__fail(d, SHERD_EINVAL, NULL, "there are forecasts of products only");
    int err = SHERD_OK;
    if (w->nodes.running) {
        err = sherd_local_nodes_file(w->nodes.running_folder, running, sizeof running, d);
        f.nodes_file = running;
    }
    if (!err) err = sherd_choices_new(out, w->in[0].view, w->in[1].view, &w->opt, d);
    if (!err) err = sherd_choices_forecast(*out, &f, d);
    if (!err) return SHERD_OK;
    sherd_choices_free(*out);
    *out = NULL;
    return err;
}
