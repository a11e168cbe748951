/*
 * The steps of one operation. Their order protects the user's files: space for the output is
 * checked before anything is sent. The output gets its name last, when the result has been checked
 * and compared and its certificate is ready; until then earlier files of those names are kept. The
 * certificate is committed after its result, so that no certificate ever exists without its result.
 */
#include "cli/work.h"

#include <string.h>

#include "cli/applies.h"
#include "cli/nodes.h"
#include "cli/paths.h"
#include "cli/seed.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "core/clock.h"
#include "core/rand.h"
#include "core/wipe.h"
#include "sherd/machine.h"
#include "sherd/masks.h"
#include "store/file.h"

/* ---- operands and options -------------------------------------------------------------------- */

static bool has(const sherd__cli *cli, const char *name)
{
    for (const sherd__option *o = cli->verb->options; o->name; o++)
        if (strcmp(o->name, name) == 0) return true;
    return false;
}

static int read_options(sherd__product_run *w, sherd_diag *d)
{
    sherd__cli *cli = w->cli;
    w->opt = (sherd_product_options){ .size = sizeof w->opt,
                                      .scheme = SHERD_PERMUTE,
                                      .hooks = { .interrupted = sherd__cli_stops } };
    w->opt.balanced = sherd__opt_choice(cli, "exposure") == 1;
    w->opt.exposure_max = sherd__opt_real(cli, "exposure-max");
    w->opt.memory = sherd__opt_size(cli, "memory");
    w->opt.strict = sherd__opt_flag(cli, "strict");
    if (has(cli, "scheme")) {
        const sherd_scheme_info *scheme = sherd__opt_scheme(cli);
        bool public_b = sherd__opt_given(cli, "public") && scheme->public_b != 0;
        w->opt.scheme = public_b ? scheme->public_b : scheme->scheme;
        w->opt.colluding = (uint32_t)sherd__opt_int(cli, "colluding");
        w->opt.spare = (uint32_t)sherd__opt_int(cli, "spare");
        w->opt.bits_b = (uint32_t)sherd__opt_int(cli, "bits-b");
        w->opt.masks = sherd__opt_text(cli, "masks");
        w->opt.group = (uint32_t)sherd__opt_int(cli, "group");
        w->opt.shuffle_rows = sherd__opt_flag(cli, "shuffle-rows");
        w->opt.encoding = (sherd_encoding)sherd__opt_choice(cli, "encoding");
        w->opt.name_a = w->in[0].path;
        w->opt.name_b = w->in[1].path;
    }
    if (sherd__opt_given(cli, "threads"))
        sherd_blas_threads_set((unsigned)sherd__opt_int(cli, "threads"));
    w->opt.bits_bind = has(cli, "mode") && sherd__opt_given(cli, "bits");
    int err = has(cli, "mode") ? sherd__opts_arithmetic(cli, &w->opt.exact, &w->opt.bits, d) : 0;
    if (!err && sherd__work_scheme(w)->exact_only) w->opt.exact = true;
    return err;
}

/* Masks are made for certain widths, which are the default. Other widths are refused later. */
static int look_at_masks(sherd__product_run *w, sherd_diag *d)
{
    sherd_masks_info info = { .size = sizeof info };
    if (!(sherd__work_scheme(w)->takes & SHERD_TAKES_MASKS)) return 0;
    int err = sherd_masks_get(w->opt.masks, NULL, &info, d);
    if (err) return err;
    if (!sherd__opt_given(w->cli, "bits")) w->opt.bits = info.bits_a;
    if (!sherd__opt_given(w->cli, "bits-b")) w->opt.bits_b = info.bits_b;
    return 0;
}

const sherd_scheme_info *sherd__work_scheme(const sherd__product_run *w)
{
    return sherd_scheme_get(w->opt.scheme);
}

/* Returns whether the option is on the command line. In the environment or a file it may be meant
 * for other runs. */
static bool asked(const sherd__cli *cli, const char *name)
{
    return has(cli, name) && sherd__opt_given(cli, name) && sherd__opt_where(cli, name)[0] == '-';
}

/* Refuses options that have no effect without another option. */
static int judge_options(const sherd__product_run *w, sherd_diag *d)
{
    static const struct {
        const char *name, *needs;
    } pairs[] = { { "certificate-public", "certificate" },
                  { "operation", "meta" },
                  { "reuse-metadata", "meta" } };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (asked(w->cli, pairs[i].name) && !sherd__opt_given(w->cli, pairs[i].needs))
            return sherd__fail(d, SHERD_EINVAL, "give both or neither",
                               "--%s has no effect without --%s", pairs[i].name, pairs[i].needs);
    if (w->op != 0) return 0;
    const sherd_scheme_info *s = sherd__work_scheme(w);
    const sherd__option *unread = sherd__opts_unread(w->cli, s, 0);
    if (unread) return sherd__opt_refuse(unread, s, d);
    if (!w->opt.masks && s->takes & SHERD_TAKES_MASKS)
        return sherd__fail(d, SHERD_EINVAL, "make them with sherd prepare",
                           "--scheme %s needs --masks", s->name);
    if (s->exact_only && asked(w->cli, "mode") && sherd__opt_choice(w->cli, "mode") == 0)
        return sherd__fail(d, SHERD_EINVAL, "leave it out: private schemes compute in fixed point",
                           "--mode float cannot be hidden: --scheme %s is exact", s->name);
    return 0;
}

int sherd__product_run_begin(sherd__product_run *w, sherd__cli *cli, sherd_op op, unsigned operands,
                             sherd_diag *d)
{
    char **paths = cli->args + cli->args_len - (int)operands;
    memset(w, 0, sizeof *w);
    w->cli = cli;
    w->began = sherd__clock_s();
    w->op = op;
    w->operation = op == 0 ? "multiply" : sherd_op_name(op);
    w->in_len = operands;
    for (unsigned i = 0; i < operands; i++) w->in[i].path = paths[i];
    int err = sherd__paths_differ(cli, (int)operands, d);
    if (!err) err = sherd__paths_output(cli, d);
    if (!err) err = read_options(w, d);
    if (!err) err = judge_options(w, d);
    if (!err) err = look_at_masks(w, d);
    for (unsigned i = 0; i < operands && !err; i++)
        err = sherd__operand_open(&w->in[i], paths[i], i == 1 && op == 0, d);
    if (!err && operands == 2) err = sherd__operands_agree(w->in, op, d);
    if (err) return err;
    w->opt.profile_a = w->in[0].profile;
    w->opt.profile_b = w->in[1].profile;
    w->rows = w->in[0].view.rows;
    w->cols = op == 0 ? w->in[1].view.cols : w->in[0].view.cols;
    return 0;
}

/* ---- seed and metadata ----------------------------------------------------------------------- */

static int take_metadata(sherd__product_run *w, const char *path, sherd_diag *d)
{
    static const struct {
        const char *name;
        unsigned setting;
    } settings[] = { { "exposure", SHERD_META_EXPOSURE },
                     { "group", SHERD_META_GROUP },
                     { "shuffle-rows", SHERD_META_SHUFFLE_ROWS } };
    sherd_meta_request what = { .size = sizeof what,
                                .op = w->op,
                                .a = w->in[0].view,
                                .b = w->in[1].view,
                                .operation = sherd__opt_text(w->cli, "operation"),
                                .reuse = sherd__opt_flag(w->cli, "reuse-metadata"),
                                .look_only = w->dry,
                                .hooks = { .interrupted = sherd__cli_stops } };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (has(w->cli, settings[i].name) && sherd__opt_given(w->cli, settings[i].name))
            what.settings |= settings[i].setting;
    int err = sherd__nodes_count(&what.nodes, NULL, w->cli, d);
    return err ? err : sherd_meta_take(&w->meta, path, &what, &w->opt, &w->usage, d);
}

int sherd__product_run_seed(sherd__product_run *w, sherd_diag *d)
{
    const char *seed = sherd__opt_text(w->cli, "seed"), *meta = sherd__opt_text(w->cli, "meta");
    if (meta) return take_metadata(w, meta, d);
    if (!seed) return 0;
    w->opt.seed = w->seed;
    return sherd__seed_read(w->seed, seed, d);
}

/* Draws the seed now if none was given, so that every call derives the same values from it. */
static void settle_seed(sherd__product_run *w)
{
    if (w->opt.seed || w->opt.shuffles) return;
    sherd__entropy os = sherd__entropy_os();
    os.fill(os.ctx, w->seed, sizeof w->seed);
    w->opt.seed = w->seed;
}

/* ---- before there are nodes ------------------------------------------------------------------ */

static int make_room(sherd__product_run *w, sherd_diag *d)
{
    const char *path = sherd__opt_text(w->cli, "output");
    sherd_machine here = { .size = sizeof here };
    size_t bytes;
    if (!sherd__mul(w->rows, w->cols, &bytes) || !sherd__mul(bytes, sizeof *w->c, &bytes))
        return sherd__fail(d, SHERD_ESHAPE, NULL, "a result of %zu x %zu is too large", w->rows,
                           w->cols);
    int err = sherd_machine_get(&here, d);
    if (err) return err;
    if (bytes <= here.memory_available) w->c = sherd__alloc(bytes);
    if (!w->c) {
        char takes[24], left[24];
        return sherd__fail(d, SHERD_ENOMEM, "free memory, or compute the product in parts",
                           "out of memory for the result: %zu x %zu are %s, and %s are available",
                           w->rows, w->cols, sherd__cli_bytes(bytes, takes),
                           sherd__cli_bytes(here.memory_available, left));
    }
    if (strcmp(path, "-") == 0) path = "/dev/stdout"; /* messages go to stderr */
    return sherd_npy_writer_new(&w->writer, path, SHERD_F64, w->rows, w->cols, d);
}

/* Detects that --certificate cannot be written or --key cannot be used. */
static int begin_certificate(sherd__product_run *w, sherd_diag *d)
{
    const char *key = sherd__opt_text(w->cli, "key");
    const char *path = sherd__opt_text(w->cli, "certificate");
    sherd_certificate *c = NULL;
    sherd__file *file = NULL;
    int err = key || path ? sherd_certificate_new(&c, key, d) : 0;
    if (err || !path) {
        sherd_certificate_free(c);
        return err;
    }
    w->certificate = c;
    if (!key)
        sherd__cli_warn(w->cli,
                        "%s will be signed with a new key, which does not identify the signer; "
                        "--key FILE signs it with yours",
                        path);
    err = sherd__file_begin(&file, path, SHERD__FILE_PRIVATE, d);
    sherd__file_abort(file);
    return err;
}

static int check_exposures(sherd__product_run *w, sherd_diag *d)
{
    uint32_t nodes;
    if (w->opt.exposure_max <= 0) return 0;
    int err = sherd__nodes_count(&nodes, NULL, w->cli, d);
    if (err) return err;
    settle_seed(w);
    return sherd_product_exposures(w->in[0].view.cols, nodes, &w->opt, d);
}

/* ---- the call -------------------------------------------------------------------------------- */

/* Returns the rest of --timeout for the call; 0 without --timeout. */
static int time_left(const sherd__product_run *w, uint32_t *ms, sherd_diag *d)
{
    uint32_t all = sherd__opt_time_ms(w->cli, "timeout");
    *ms = 0;
    if (all == 0) return 0;
    double left = (double)all - (sherd__clock_s() - w->began) * 1e3;
    if (left < 1) {
        char text[24];
        return sherd__fail(d, SHERD_ETIMEOUT, "allow more time with --timeout",
                           "the %s of %s expired before the nodes were ready",
                           sherd__cli_seconds(all * 1e-3, text),
                           sherd__opt_where(w->cli, "timeout"));
    }
    *ms = (uint32_t)left;
    return 0;
}

static void on_log(void *ctx, sherd_log_level level, const char *text)
{
    sherd__nodes_log(((sherd__product_run *)ctx)->cli, level, text);
}

static void on_progress(void *ctx, const sherd_progress *p)
{
    sherd__product_run *w = ctx;
    char text[80], out[24], in[24];
    snprintf(text, sizeof text, "%s out, %s in", sherd__cli_bytes(p->bytes_out, out),
             sherd__cli_bytes(p->bytes_in, in));
    sherd__progress_update(&w->progress, p->done, p->total, text, sherd__clock_s());
}

/* A short run may end before the library has reported any progress. */
static void show_done(sherd__product_run *w)
{
    sherd_progress p = { .done = w->report.tasks, .total = w->report.tasks };
    for (uint32_t i = 0; i < w->report.nodes; i++) {
        p.bytes_out += w->report.bytes_out[i];
        p.bytes_in += w->report.bytes_in[i];
    }
    if (p.done > 0) on_progress(w, &p);
}

int sherd__product_run_compute(sherd__product_run *w, const char *label, sherd_diag *d)
{
    sherd__cli *cli = w->cli;
    int err = time_left(w, &w->opt.timeout_ms, d);
    if (err) return err;
    sherd__progress_mode mode = (sherd__progress_mode)sherd__opt_choice(cli, "progress");
    sherd__progress_init(&w->progress, stderr, cli->quiet ? SHERD__PROGRESS_NONE : mode, label,
                         "tasks", sherd__clock_s());
    w->opt.hooks = (sherd_hooks){ sherd__cli_stops, on_log, on_progress, w };
    w->report.size = sizeof w->report;
    if (w->op == 0)
        err = sherd_multiply(w->cluster, w->in[0].view, w->in[1].view, w->c, w->cols, &w->opt,
                             &w->report, d);
    else
        err = sherd_apply(w->cluster, w->op, w->in[0].view, w->in[1].view, w->c, w->cols, &w->opt,
                          &w->report, d);
    if (!err) show_done(w);
    sherd__progress_fini(&w->progress);
    w->ended = sherd__clock_s();
    for (unsigned i = 0; i < w->in_len && !err; i++)
        if (w->in[i].file) err = sherd_npy_check(w->in[i].file, d);
    return err;
}

/* Forecasts the run that follows if the forecast will be shown: -v, which measures this machine for
 * it, or --json. */
static void predict(sherd__product_run *w)
{
    sherd_diag ignored = { 0 }; /* the run itself will report what prevents the forecast */
    sherd_forecast_options f = { .size = sizeof f,
                                 .cluster = w->cluster,
                                 .no_measurements = w->cli->verbose == 0,
                                 .result = w->c,
                                 .hooks = { .interrupted = sherd__cli_stops } };
    if (w->op != 0 || (!w->cli->json && (w->cli->quiet || w->cli->verbose == 0))) return;
    double began = sherd__clock_s();
    if (sherd__work_scheme(w)->takes & SHERD_TAKES_SHUFFLES)
        settle_seed(w); /* so that forecast and run partition alike */
    w->forecast.size = sizeof w->forecast;
    w->predicted = !sherd_forecast_multiply(w->in[0].view, w->in[1].view, &w->opt, &f, &w->forecast,
                                            &ignored);
    w->forecasting = sherd__clock_s() - began;
}

/* ---- the result ------------------------------------------------------------------------------ */

int sherd__work_interrupted(sherd_diag *d)
{
    return sherd__cli_interrupted() == 0
               ? 0
               : sherd__fail(d, SHERD_EINTERRUPTED, NULL, "interrupted; nothing was written");
}

/* Returns the likely cause of a difference: a node's wrong answer if the checks can miss one, else
 * a defect of sherd. */
static const char *suspect(const sherd__product_run *w)
{
    if (w->op != 0)
        return "nothing was written; a node may have answered wrongly outside the sample that is "
               "recomputed: try other nodes";
    if (!w->opt.exact || w->report.check_tolerant)
        return "nothing was written; a node may have answered wrongly, within the tolerance for "
               "floats: --mode exact detects it and names the node";
    return "nothing was written; please report this";
}

static sherd_view result_of(const sherd__product_run *w)
{
    return sherd_view_c(w->c, SHERD_F64, w->rows, w->cols);
}

static sherd_check_options check_options(const sherd__product_run *w)
{
    return (sherd_check_options){ .size = sizeof(sherd_check_options),
                                  .op = w->op,
                                  .exact = w->op == 0 && w->opt.exact,
                                  .bits = w->opt.bits,
                                  .bits_b = w->opt.bits_b,
                                  .name_a = w->in[0].path,
                                  .name_b = w->in[1].path,
                                  .profile_a = w->in[0].profile,
                                  .profile_b = w->in[1].profile,
                                  .hooks = { .interrupted = sherd__cli_stops } };
}

int sherd__product_run_check(sherd__product_run *w, sherd_diag *d)
{
    const sherd_check_options opt = check_options(w);
    w->check.size = sizeof w->check;
    int err = sherd_check_result(w->in[0].view, w->in[1].view, result_of(w), &opt, &w->check, d);
    w->checked = err == 0 || err == SHERD_EDIFFERS;
    if (err == SHERD_EDIFFERS) snprintf(d->hint, sizeof d->hint, "%s", suspect(w));
    return err;
}

/* Compares the result with the centralized one, and an exact product with float64, too. */
static int compare(sherd__product_run *w, sherd_diag *d)
{
    uint64_t calls = sherd_blas_calls();
    int err = sherd__product_run_check(w, d);
    w->distance.size = sizeof w->distance;
    if (w->checked && w->op == 0 && w->opt.exact) {
        const sherd_check_options opt = check_options(w);
        int more = sherd_check_distance(w->in[0].view, w->in[1].view, result_of(w), &opt,
                                        &w->distance, d);
        w->measured = more == 0;
        if (!err) err = more;
    }
    w->check_calls = sherd_blas_calls() - calls;
    return err;
}

/* Writes --certificate, without its name. */
static int certify(sherd__product_run *w, sherd_diag *d)
{
    const sherd_certified what = { .size = sizeof what,
                                   .cluster = w->cluster,
                                   .op = w->op,
                                   .a = w->in[0].view,
                                   .b = w->in[1].view,
                                   .result = result_of(w),
                                   .options = &w->opt,
                                   .report = &w->report,
                                   .verdict = w->checked ? SHERD_EQUAL : SHERD_UNCHECKED,
                                   .without_inputs = sherd__opt_flag(w->cli, "certificate-public"),
                                   .reused_metadata = w->usage == SHERD_META_REUSED,
                                   .hooks = { .interrupted = sherd__cli_stops } };
    int err = sherd_certificate_make(w->certificate, &what, d);
    return err ? err
               : sherd_certificate_begin(w->certificate, sherd__opt_text(w->cli, "certificate"), d);
}

static int commit_result(sherd__product_run *w, sherd_diag *d)
{
    int err = sherd_npy_writer_rows(w->writer, result_of(w), d);
    if (err) return err;
    sherd_npy_writer *writer = w->writer;
    w->writer = NULL;
    return sherd_npy_writer_commit(writer, d);
}

/* From here signals are ignored: both files get their names, or an error names the one that does
 * not. */
static int commit(sherd__product_run *w, sherd_diag *d)
{
    sherd_diag mine = { 0 };
    int err = commit_result(w, d);
    w->committed = err == 0;
    if (err || !w->certificate) return err;
    err = sherd_certificate_commit(w->certificate, &mine);
    w->certified = err == 0;
    return err ? sherd__fail(d, err, mine.hint, "%s was written, but its certificate was not: %s",
                             sherd__path_tail(sherd__opt_text(w->cli, "output")), mine.message)
               : 0;
}

/* ---- the run --------------------------------------------------------------------------------- */

int sherd__product_run_run(sherd__product_run *w, sherd_diag *d)
{
    sherd__cli *cli = w->cli;
    int err = make_room(w, d);
    if (!err) err = begin_certificate(w, d);
    if (!err && w->op == 0) err = sherd_product_range(w->in[0].view, w->in[1].view, &w->opt, d);
    if (!err) err = sherd__product_run_seed(w, d);
    if (!err) err = check_exposures(w, d);
    if (!err && w->op == 0) err = sherd__nodes_suit(cli, &w->opt, d);
    if (!err) err = sherd__nodes_open(&w->cluster, cli, w->op == 0 ? &w->opt : NULL, d);
    if (err) return err;
    for (unsigned i = 0; i < w->in_len && w->certificate; i++)
        sherd_profile_digest_start(w->in[i].profile);
    predict(w);
    err = sherd__product_run_compute(w, w->operation, d);
    if (!err && sherd__opt_flag(cli, "check")) err = compare(w, d);
    if (!err && w->certificate) err = certify(w, d);
    if (!err) err = sherd__work_interrupted(d);
    if (!err) err = commit(w, d);
    return err ? err : sherd_cluster_end(w->cluster, d); /* returns the error of --record */
}

void sherd__product_run_fini(sherd__product_run *w)
{
    sherd_cluster_close(w->cluster);
    sherd_npy_writer_abort(w->writer);
    sherd_certificate_free(w->certificate);
    sherd_report_fini(&w->report);
    sherd_meta_free(w->meta);
    for (unsigned i = 0; i < w->in_len; i++) sherd__operand_close(&w->in[i]);
    sherd__free(w->c);
    sherd__wipe(w, sizeof *w);
}
