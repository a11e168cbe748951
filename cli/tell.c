/*
 * Reports a finished operation: a few lines for people, or one object for programs. Both are made
 * from the same report, and both say what was not checked or not hidden.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/plan.h"
#include "cli/work.h"
#include "matrix/fixed.h"
#include "sherd/machine.h"

static uint64_t total(const uint64_t *each, uint32_t n)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += each[i];
    return sum;
}

/* Computes the rounding error of operand i in fixed point; false if it was not rounded. */
static bool rounding(const sherd__product_run *w, unsigned i, sherd__fixed_loss *out)
{
    if (w->op != 0 || !w->opt.exact) return false;
    sherd__fixed_measure(w->in[i].view, i == 0 ? w->report.scale_a : w->report.scale_b, out);
    return out->max_error > 0;
}

/* ---- for people ------------------------------------------------------------------------------ */

/* Returns whether node i took part: it was up at the start, or was sent something later. */
static bool took_part(const sherd__product_run *w, uint32_t i)
{
    return !w->up || w->up[i] || w->report.bytes_out[i] > 0;
}

static uint32_t nodes_there(const sherd__product_run *w)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->report.nodes; i++) n += took_part(w, i);
    return n;
}

/* Counts domains of which at least one node took part. Every node has a domain name at this
 * point. */
static uint32_t domains_there(const sherd__product_run *w)
{
    sherd_node_info a = { .size = sizeof a }, b = { .size = sizeof b };
    uint32_t missing = 0;
    for (uint32_t i = 0; i < w->report.nodes; i++) {
        bool counts = !took_part(w, i);
        sherd_cluster_node(w->cluster, i, &a);
        for (uint32_t j = 0; j < w->report.nodes && counts; j++) {
            sherd_cluster_node(w->cluster, j, &b);
            if (j != i && strcmp(a.domain, b.domain) == 0 && (j < i || took_part(w, j)))
                counts = false; /* already counted, or a node of the domain took part */
        }
        missing += counts;
    }
    return w->report.domains - missing;
}

static bool shuffled(const sherd__product_run *w)
{
    return sherd__work_scheme(w)->takes & SHERD_TAKES_SHUFFLES;
}

static void say_scheme(const sherd__product_run *w, char *out, size_t size)
{
    const sherd_report *r = &w->report;
    const sherd_scheme_info *s = sherd__work_scheme(w);
    const char *about = s->about ? s->about : "";
    bool hidden = sherd__product_run_private(w);
    if (hidden && s->withstands == SHERD_WITHSTANDS_SOME) {
        snprintf(out, size,
                 "%s (any %" PRIu32 " of %" PRIu32
                 " domains together learn nothing of A%s; %" PRIu32 " answers give the product)",
                 s->name, w->opt.colluding, domains_there(w),
                 s->hides_b ? " or B" : "; B is public", r->threshold);
        return;
    }
    if (hidden || !shuffled(w)) {
        snprintf(out, size, "%s (%s%s%s)", s->name, hidden ? "" : "not private",
                 hidden || *about == '\0' ? "" : ": ", about);
        return;
    }
    size_t at = (size_t)snprintf(out, size, "%s", s->name);
    if (w->op == 0 && w->opt.group == 0) at += (size_t)snprintf(out + at, size - at, ", group all");
    if (w->op == 0 && w->opt.group > 0)
        at += (size_t)snprintf(out + at, size - at, ", group %" PRIu32, w->opt.group);
    snprintf(out + at, size - at, "%s%s", w->opt.balanced ? ", balanced" : "",
             w->opt.shuffle_rows ? ", rows shuffled" : "");
}

static void say_nodes(const sherd__product_run *w)
{
    const sherd_report *r = &w->report;
    sherd__cli_say(w->cli, "%-20s %7s %8s %8s %8s %9s %9s %7s", "node", "pid",
                   shuffled(w) ? "columns" : "rows", "of A", "of B", "out", "in", "tasks");
    for (uint32_t i = 0; i < r->nodes; i++) {
        sherd_node_info info = { .size = sizeof info };
        char out[24], in[24], pid[16] = "-";
        sherd_cluster_node(w->cluster, i, &info);
        if (info.pid > 0) snprintf(pid, sizeof pid, "%ld", (long)info.pid);
        static const char *const states[] = { " (connecting)", "", " (lost)", " (banned)" };
        sherd__cli_say(w->cli, "%-20s %7s %8" PRIu32 " %6.1f %% %6.1f %% %9s %9s %7" PRIu64 "%s",
                       info.name, pid, r->planned[i], 100 * r->exposed_a[i], 100 * r->exposed_b[i],
                       sherd__cli_bytes(r->bytes_out[i], out), sherd__cli_bytes(r->bytes_in[i], in),
                       info.tasks, states[r->states[i]]);
    }
}

/* Prints the encoding if A was sent in CSR; dense is expected. */
static void say_encoding(const sherd__product_run *w)
{
    const sherd_report *r = &w->report;
    if (r->encoding != SHERD_ENCODING_CSR) return;
    sherd__cli_say(w->cli,
                   "A travelled in CSR, without zeros, in %" PRIu64 " of %" PRIu64 " tasks%s",
                   r->tasks_csr, r->tasks,
                   r->tasks_csr < r->tasks ? " (dense was smaller in the others)" : "");
}

/* Prints the forecast with the measured values. */
static void say_forecast(const sherd__product_run *w)
{
    const sherd_forecast *f = &w->forecast;
    const sherd_report *r = &w->report;
    char fore[3][24], came[3][24];
    if (!w->foretold) return;
    sherd__cli_note(w->cli, "predicted%s %s out, %s in, %s (bound by %s); came %s out, %s in%s, %s",
                    f->at_most ? " at most" : "", sherd__cli_bytes(f->bytes_out, fore[0]),
                    sherd__cli_bytes(f->bytes_in, fore[1]), sherd__cli_seconds(f->seconds, fore[2]),
                    f->bound, sherd__cli_bytes(r->work_out, came[0]),
                    sherd__cli_bytes(r->work_in, came[1]),
                    f->bytes_out == r->work_out && f->bytes_in == r->work_in ? " (to the byte)"
                                                                             : "",
                    sherd__cli_seconds(r->seconds, came[2]));
}

static void say_check(const sherd__product_run *w)
{
    const sherd__comparison *v = &w->verdict;
    const sherd__compare *x = &v->found;
    char t[24], far[200];
    if (!v->done) return;
    if (v->bitwise && v->equal && w->op == 0 && w->measures)
        sherd__cli_note(w->cli, "%s", sherd__work_distance_text(&v->from_float, far));
    if (v->bitwise && v->equal)
        sherd__cli_say(w->cli, "equal: yes, bit for bit (%" PRIu64 " entries, computed here in %s)",
                       x->count, sherd__cli_seconds(v->seconds, t));
    else if (v->bitwise)
        sherd__cli_say(w->cli, "equal: NO: %" PRIu64 " of %" PRIu64 " entries differ",
                       x->count - x->equal, x->count);
    else
        sherd__cli_say(w->cli,
                       "equal: %s gamma_k |A||B| in every entry; largest difference %.3g, "
                       "%.2g of what the bound allows; %.2f %% bit-equal, numpy.isclose %.2f %%; "
                       "computed here in %s",
                       v->equal ? "yes, within" : "NO, not within", x->max_abs, x->worst,
                       x->count ? 100.0 * (double)x->equal / (double)x->count : 100.0,
                       x->count ? 100.0 * (double)x->close / (double)x->count : 100.0,
                       sherd__cli_seconds(v->seconds, t));
}

static void say_arithmetic(const sherd__product_run *w)
{
    const sherd_report *r = &w->report;
    if (w->op != 0 || !w->opt.exact) return;
    char how[48] = "one f64 product holds it";
    if (r->primes > 0) snprintf(how, sizeof how, "%" PRIu32 " primes", r->primes);
    sherd__cli_note(w->cli, "exact: %" PRIu32 " and %" PRIu32 " bits, exponents %d and %d; %s",
                    r->bits_a, r->bits_b, r->scale_a, r->scale_b, how);
}

/* Returns whether operand i was already described: X times X is one file, rounded alike. */
static bool said_before(const sherd__product_run *w, unsigned i)
{
    return i == 1 && strcmp(w->in[0].path, w->in[1].path) == 0 &&
           sherd__product_run_bits(w, 0) == sherd__product_run_bits(w, 1);
}

/* Returns which option would keep entries that became 0. */
static const char *keeps_more(const sherd__product_run *w, unsigned i)
{
    bool wider = sherd__product_run_bits(w, i) < 26;
    const sherd_scheme_info *s = sherd__work_scheme(w);
    if (!s->exact_only)
        return wider ? "--bits 26 keeps more, --mode float all" : "--mode float keeps them";
    if (!wider) return "private schemes keep no more than 26 bits";
    if (s->takes & SHERD_TAKES_MASKS)
        return i == 1 ? "masks prepared with --bits-b 26 keep more"
                      : "masks prepared with --bits 26 keep more";
    return i == 1 && w->opt.bits_b ? "--bits-b 26 keeps more" : "--bits 26 keeps more";
}

/* The scale is at most bits - 1, so all entries of a matrix may be too small. The message does not
 * reveal the largest entry. */
static void say_vanished(const sherd__product_run *w, unsigned i, const sherd__fixed_loss *loss)
{
    int scale = i == 0 ? w->report.scale_a : w->report.scale_b;
    unsigned bits = sherd__product_run_bits(w, i);
    if (scale == (int)bits - 1 && loss->max_abs < 0.5)
        sherd__cli_warn(w->cli,
                        "%s: %" PRIu64 " of %" PRIu64 " entries that are not 0 became 0: fixed "
                        "point of %u bits ends at 2^-%d: multiply them by a power of two first",
                        w->in[i].path, loss->vanished, loss->nonzeros, bits, scale);
    else
        sherd__cli_warn(w->cli,
                        "%s: %" PRIu64 " of %" PRIu64 " entries that are not 0 are too "
                        "small beside the largest and became 0: %s",
                        w->in[i].path, loss->vanished, loss->nonzeros, keeps_more(w, i));
}

/* Prints how far the rounded operands are from the originals. The result is exact for the rounded
 * ones. */
static void say_rounding(const sherd__product_run *w)
{
    sherd__fixed_loss loss;
    for (unsigned i = 0; i < w->in_len; i++) {
        if (said_before(w, i) || !rounding(w, i, &loss)) continue;
        sherd__cli_say(w->cli,
                       "%s was rounded to %" PRIu32 " bits: by %.2g of its largest entry at most",
                       w->in[i].path, sherd__product_run_bits(w, i), loss.max_error / loss.max_abs);
        if (loss.vanished > 0) say_vanished(w, i, &loss);
    }
}

/* Prints which checks every answer passed. */
static void say_checked(const sherd__product_run *w)
{
    const sherd_report *r = &w->report;
    if (r->check_tolerant)
        sherd__cli_say(w->cli, "every answer was checked for gross errors (floats allow no more; "
                               "--mode exact does)");
    else if (w->op != 0)
        sherd__cli_say(w->cli,
                       "a sample of every answer was recomputed here: one wrong entry is "
                       "missed with probability %.2g",
                       r->check_error);
    else if (r->check_error > 0)
        sherd__cli_say(w->cli,
                       "every answer was checked: a wrong one passes with probability 2^%.0f",
                       log2(r->check_error));
}

static void say_all(const sherd__product_run *w)
{
    const sherd_report *r = &w->report;
    char scheme[160], out[24], in[24], t[24], all[24], there[24] = "";
    sherd_node_info first = { .size = sizeof first, .pid = 0 };
    if (nodes_there(w) < r->nodes) snprintf(there, sizeof there, "%" PRIu32 " of ", nodes_there(w));
    if (r->nodes > 0) sherd_cluster_node(w->cluster, 0, &first);
    say_scheme(w, scheme, sizeof scheme);
    sherd__cli_say(w->cli, "%s: %zu x %zu by %s%" PRIu32 " node%s%s, %s, %s", w->operation, w->rows,
                   w->cols, there, r->nodes, r->nodes == 1 ? "" : "s",
                   sherd_cluster_simulated(w->cluster) ? " (domains: simulated on one host)" : "",
                   scheme,
                   w->op != 0     ? "float64"
                   : w->opt.exact ? "exact"
                                  : "float");
    if (w->cli->verbose > 0) say_nodes(w);
    say_arithmetic(w);
    say_rounding(w);
    sherd__cli_say(w->cli,
                   "%s for the answers (%s with %s the nodes): %s out, %s in, "
                   "%" PRIu64 " tasks, %" PRIu64 " sent again",
                   sherd__cli_seconds(r->seconds, t),
                   sherd__cli_seconds(w->ended - w->began - w->foretelling, all),
                   first.pid > 0 ? "the start of" : "connecting to",
                   sherd__cli_bytes(total(r->bytes_out, r->nodes), out),
                   sherd__cli_bytes(total(r->bytes_in, r->nodes), in), r->tasks, r->tasks_repeated);
    say_encoding(w);
    say_forecast(w);
    say_checked(w);
    if (r->nodes_lost > 0)
        sherd__cli_say(w->cli, "%" PRIu32 " node%s lost during the run; the others did the work%s",
                       r->nodes_lost, r->nodes_lost == 1 ? " was" : "s were",
                       w->cli->verbose > 0 ? "" : " (-v lists tasks by node)");
    if (r->nodes_banned > 0)
        sherd__cli_warn(w->cli,
                        "banned for a wrong answer or a broken protocol: %s; nothing of "
                        "theirs was used since",
                        r->banned);
    say_check(w);
    if (sherd__work_scheme(w)->takes & SHERD_TAKES_MASKS)
        sherd__cli_say(w->cli, "%s: %" PRIu64 " rows of masks are left", w->opt.masks,
                       r->masks_left);
    sherd__cli_say(w->cli, "wrote %s (%zu x %zu, <f8)", sherd__opt_text(w->cli, "output"), w->rows,
                   w->cols);
    if (w->certified) sherd__cli_say(w->cli, "wrote %s", sherd__opt_text(w->cli, "certificate"));
}

/* ---- for programs ---------------------------------------------------------------------------- */

static json_t *whole(uint64_t n)
{
    return json_integer((json_int_t)(n > INT64_MAX ? INT64_MAX : n));
}

/* JSON has no infinity and no NaN. */
static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *node_object(const sherd__product_run *w, uint32_t i)
{
    static const char *const states[] = { "connecting", "up", "lost", "banned" };
    const sherd_report *r = &w->report;
    sherd_node_info info = { .size = sizeof info };
    sherd_cluster_node(w->cluster, i, &info);
    if (i < r->nodes) info.state = r->states[i];
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:o, s:s, s:s}", "name", info.name, "address",
                          info.address, "domain", info.domain, "key", info.key, "pid",
                          info.pid > 0 ? json_integer(info.pid) : json_null(), "state",
                          states[info.state], "blas_core", info.blas_core);
    json_object_set_new(o, "tasks", whole(info.tasks));
    if (i >= r->nodes) return o;
    json_object_set_new(o, "planned", whole(r->planned[i]));
    json_object_set_new(o, "exposed_a", number(r->exposed_a[i]));
    json_object_set_new(o, "exposed_b", number(r->exposed_b[i]));
    json_object_set_new(o, "bytes_out", whole(r->bytes_out[i]));
    json_object_set_new(o, "bytes_in", whole(r->bytes_in[i]));
    return o;
}

static void add_nodes(const sherd__product_run *w, json_t *obj)
{
    json_t *nodes = json_array();
    for (uint32_t i = 0; i < sherd_cluster_size(w->cluster); i++)
        json_array_append_new(nodes, node_object(w, i));
    json_object_set_new(obj, "nodes", nodes);
    json_object_set_new(obj, "domains",
                        json_string(sherd_cluster_simulated(w->cluster) ? "simulated on one host"
                                                                        : "separate"));
}

static void add_report(const sherd__product_run *w, json_t *obj)
{
    const sherd_report *r = &w->report;
    const struct {
        const char *name;
        uint64_t n;
    } counts[] = {
        { "tasks", r->tasks },
        { "tasks_repeated", r->tasks_repeated },
        { "fragments", r->fragments },
        { "panels", r->panels },
        { "tiles", r->tiles },
        { "rows_skipped", r->rows_skipped },
        { "nodes_lost", r->nodes_lost },
        { "nodes_banned", r->nodes_banned },
        { "bytes_out", total(r->bytes_out, r->nodes) },
        { "bytes_in", total(r->bytes_in, r->nodes) },
        { "work_out", r->work_out },
        { "work_in", r->work_in },
        { "primes", r->primes },
        { "local_products", sherd_blas_calls() - w->verdict.blas_calls },
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        json_object_set_new(obj, counts[i].name, whole(counts[i].n));
    if (w->op == 0 && w->opt.exact) {
        json_object_set_new(obj, "scale_a", json_integer(r->scale_a));
        json_object_set_new(obj, "scale_b", json_integer(r->scale_b));
        json_object_set_new(obj, "bits_a", whole(r->bits_a));
        json_object_set_new(obj, "bits_b", whole(r->bits_b));
    }
    if (r->encoding != SHERD_ENCODING_AUTO) {
        json_object_set_new(obj, "encoding", json_string(sherd__choices_encoding[r->encoding]));
        json_object_set_new(obj, "tasks_csr", whole(r->tasks_csr));
    }
    if (w->foretold) json_object_set_new(obj, "predicted", sherd__plan_object(&w->forecast));
    json_object_set_new(obj, "check_error", number(r->check_error));
    json_object_set_new(obj, "check_tolerant", json_boolean(r->check_tolerant));
    json_object_set_new(obj, "seconds", number(r->seconds));
    json_object_set_new(obj, "seconds_total", number(w->ended - w->began - w->foretelling));
}

static void add_settings(const sherd__product_run *w, json_t *obj)
{
    const sherd_scheme_info *s = sherd__work_scheme(w);
    json_object_set_new(obj, "scheme", json_string(s->name));
    json_object_set_new(obj, "private", json_boolean(sherd__product_run_private(w)));
    if (shuffled(w))
        json_object_set_new(obj, "exposure", json_string(w->opt.balanced ? "balanced" : "uniform"));
    if (w->op != 0) return;
    if (w->report.threshold > 0) {
        json_object_set_new(obj, "colluding", whole(w->opt.colluding));
        json_object_set_new(obj, "spare", whole(w->opt.spare));
        json_object_set_new(obj, "blocks", whole(w->report.blocks));
        json_object_set_new(obj, "threshold", whole(w->report.threshold));
        json_object_set_new(obj, "shares", whole(w->report.domains));
        json_object_set_new(obj, "encodings", whole(w->report.encodings));
        json_object_set_new(obj, "tasks_cancelled", whole(w->report.tasks_cancelled));
    }
    if (s->takes & SHERD_TAKES_MASKS)
        json_object_set_new(obj, "masks_left", whole(w->report.masks_left));
    if (shuffled(w)) {
        json_object_set_new(obj, "group",
                            w->opt.group == 0 ? json_string("all") : whole(w->opt.group));
        json_object_set_new(obj, "shuffle_rows", json_boolean(w->opt.shuffle_rows));
    }
    json_object_set_new(obj, "mode", json_string(w->opt.exact ? "exact" : "float"));
    if (w->opt.exact) json_object_set_new(obj, "bits", whole(w->opt.bits));
}

static void add_rounding(const sherd__product_run *w, json_t *obj)
{
    json_t *list = json_array();
    if (w->op != 0 || !w->opt.exact) {
        json_decref(list);
        return;
    }
    for (unsigned i = 0; i < w->in_len; i++) {
        sherd__fixed_loss loss = { .nonzeros = 0 };
        bool any = rounding(w, i, &loss);
        json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "vanished", whole(loss.vanished),
                                              "nonzeros", whole(loss.nonzeros), "relative_error",
                                              number(any ? loss.max_error / loss.max_abs : 0)));
    }
    json_object_set_new(obj, "rounding", list);
}

static void add_files(const sherd__product_run *w, json_t *obj)
{
    json_t *inputs = json_array();
    for (unsigned i = 0; i < w->in_len; i++) {
        sherd_view v = w->in[i].view;
        const char *dtype = sherd_dtype_name(v.dtype);
        json_array_append_new(inputs, json_pack("{s:o, s:s, s:o, s:o}", "file",
                                                sherd__cli_json_text(w->in[i].path), "dtype",
                                                dtype ? dtype : "", "rows", whole(v.rows), "cols",
                                                whole(v.cols)));
    }
    json_object_set_new(obj, "operation", json_string(w->operation));
    json_object_set_new(obj, "inputs", inputs);
    json_object_set_new(obj, "result",
                        json_pack("{s:o, s:s, s:o, s:o}", "file",
                                  sherd__cli_json_text(sherd__opt_text(w->cli, "output")), "dtype",
                                  "<f8", "rows", whole(w->rows), "cols", whole(w->cols)));
    json_object_set_new(obj, "certificate",
                        sherd__cli_json_text(sherd__opt_text(w->cli, "certificate")));
}

json_t *sherd__product_run_distance(const sherd__distance *x)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "largest", number(x->largest), "row",
                     whole(x->row), "col", whole(x->col), "bound", number(x->bound), "relative",
                     number(sherd__product_run_relative(x)));
}

const char *sherd__work_distance_text(const sherd__distance *x, char out[200])
{
    snprintf(out, 200,
             "float64 differs from it by %.3g at most (row %zu, column %zu; rounding to fixed "
             "point allows %.3g), by %.3g of the whole",
             x->largest, x->row, x->col, x->bound, sherd__product_run_relative(x));
    return out;
}

static void add_check(const sherd__product_run *w, json_t *obj)
{
    const sherd__comparison *v = &w->verdict;
    const sherd__compare *x = &v->found;
    if (!v->done) return;
    json_t *o = json_pack("{s:b, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "equal", v->equal, "judged",
                          v->bitwise ? "bits" : "gamma", "entries", whole(x->count), "bit_equal",
                          whole(x->equal), "isclose", whole(x->close), "max_abs",
                          number(x->max_abs), "max_ulp", whole(x->max_ulp), "seconds",
                          number(v->seconds));
    if (!v->bitwise) {
        json_object_set_new(o, "beyond", whole(x->beyond));
        json_object_set_new(o, "worst", number(x->worst));
    }
    if (v->bitwise && w->op == 0 && w->measures)
        json_object_set_new(o, "from_float64", sherd__product_run_distance(&v->from_float));
    json_object_set_new(obj, "check", o);
}

int sherd__product_run_tell(sherd__product_run *w, int err, sherd_diag *d)
{
    if (!w->cli->json) {
        if (err == 0 || w->committed) say_all(w);
        if (err == SHERD_EDIFFERS) say_check(w);
        return err;
    }
    if (err != 0 && !w->cluster) return err; /* nothing was sent: there is only the error */
    json_t *obj = sherd__cli_json_new(w->cli);
    add_files(w, obj);
    add_settings(w, obj);
    add_nodes(w, obj);
    add_report(w, obj);
    add_check(w, obj);
    if (!err) add_rounding(w, obj);
    return err ? sherd__cli_json_fail(w->cli, obj, err, d) : sherd__cli_json_end(w->cli, obj, d);
}
