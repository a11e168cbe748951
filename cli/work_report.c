/*
 * Reports a finished operation: a few lines for people, or one object for programs. Both are made
 * from the same report, and both state what was not checked or not hidden.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/fields.h"
#include "cli/nodes.h"
#include "cli/plan.h"
#include "cli/rows.h"
#include "cli/work.h"
#include "sherd/machine.h"

#define BITS_WIDEST 26u /* the widest fixed point that messages recommend */

uint64_t sherd__work_total(const uint64_t *each, const sherd_report *r)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < r->nodes; i++) sum += each[i];
    return sum;
}

static const sherd_scheme_info *scheme_of(const sherd__product_run *w)
{
    return sherd_scheme_get(w->info.options->scheme);
}

static bool exact(const sherd__product_run *w)
{
    return w->o.op == 0 && w->info.options->exact;
}

static bool shuffled(const sherd__product_run *w)
{
    return scheme_of(w)->takes & SHERD_TAKES_SHUFFLES;
}

/* Returns the width that operand i was rounded to. */
static uint32_t bits(const sherd__product_run *w, unsigned i)
{
    return i == 1 && w->info.options->bits_b ? w->info.options->bits_b : w->info.options->bits;
}

/* Measures how operand i is rounded to so many bits. */
static int rounding_to(const sherd__product_run *w, unsigned i, uint32_t width, sherd_rounding *out)
{
    const sherd_product_options *o = w->info.options;
    *out = (sherd_rounding){ .size = sizeof *out };
    return sherd_profile_rounding_get(i ? o->profile_b : o->profile_a, width, out, NULL);
}

/* Measures the rounding of operand i in fixed point; false if it was not rounded. */
static bool rounding(const sherd__product_run *w, unsigned i, sherd_rounding *out)
{
    *out = (sherd_rounding){ .size = sizeof *out };
    return exact(w) && rounding_to(w, i, bits(w, i), out) == 0 && out->max_error > 0;
}

/* ---- for people ------------------------------------------------------------------------------ */

static void say_scheme(const sherd__product_run *w, char *out, size_t size)
{
    const sherd_report *r = w->info.report;
    const sherd_scheme_info *s = scheme_of(w);
    const char *about = s->about ? s->about : "";
    bool hidden = sherd_scheme_private(w->info.options->scheme);
    if (hidden && s->withstands == SHERD_WITHSTANDS_SOME) {
        snprintf(out, size,
                 "%s (any %" PRIu32 " of %" PRIu32
                 " domains together learn nothing of A%s; %s%" PRIu32 " answers give the product)",
                 s->name, w->info.options->colluding, r->domains_used,
                 s->hides_b ? " or B" : "; B is public",
                 r->code == SHERD_CODE_INNER ? "code inner: all " : "", r->threshold);
        return;
    }
    if (hidden || !shuffled(w)) {
        snprintf(out, size, "%s (%s%s%s)", s->name, hidden ? "" : "not private",
                 hidden || *about == '\0' ? "" : ": ", about);
        return;
    }
    size_t at = (size_t)snprintf(out, size, "%s", s->name);
    if (w->o.op == 0 && w->info.options->group == 0)
        at += (size_t)snprintf(out + at, size - at, ", group all");
    if (w->o.op == 0 && w->info.options->group > 0)
        at += (size_t)snprintf(out + at, size - at, ", group %" PRIu32, w->info.options->group);
    snprintf(out + at, size - at, "%s%s", w->info.options->balanced ? ", balanced" : "",
             w->info.options->shuffle_rows ? ", rows shuffled" : "");
}

static const char *pid_text(const void *x, char out[48])
{
    const sherd_report_node *n = x;
    if (n->pid > 0) snprintf(out, 48, "%" PRId64, n->pid);
    else snprintf(out, 48, "-");
    return out;
}

static const char *tasks_text(const void *x, char out[48])
{
    static const char *const states[] = { " (connecting)", "", " (lost)", " (banned)" };
    const sherd_report_node *n = x;
    snprintf(out, 48, "%5" PRIu64 "%s", n->tasks, states[n->state]);
    return out;
}

/* In 78 characters, with names and counts of usual length. */
static void say_nodes(const sherd__product_run *w)
{
    const sherd__column columns[] = {
        { "node", -8, "name", NULL },
        { "pid", 7, NULL, pid_text },
        { shuffled(w) ? "columns" : "rows", 7, "planned", NULL },
        { "done", 7, "done", NULL },
        { "of A", 7, "exposed_a", NULL },
        { "of B", 7, "exposed_b", NULL },
        { "out", 7, "bytes_out", NULL },
        { "in", 7, "bytes_in", NULL },
        { "tasks", 0, NULL, tasks_text },
        { NULL, 0, NULL, NULL },
    };
    char line[256];
    sherd__cli_say(w->cli, "%s",
                   sherd__row_text(line, sizeof line, columns, NULL, sherd_report_node_fields));
    for (uint32_t i = 0; i < w->info.report->nodes; i++) {
        sherd_report_node n = { .size = sizeof n };
        if (sherd_report_node_at(w->info.report, w->info.cluster, i, &n, NULL) == 0)
            sherd__cli_say(w->cli, "%s",
                           sherd__row_text(line, sizeof line, columns, &n,
                                           sherd_report_node_fields));
    }
}

/* Returns what would keep the node from delaying the next product. */
static const char *pace_hint(const sherd__product_run *w, const sherd_report_node *slowest)
{
    unsigned takes = scheme_of(w)->takes;
    if ((takes & SHERD_TAKES_COLLUDING) && w->info.options->spare == 0)
        return "; with --spare 1, and nodes for it, it is not waited for";
    if (!(takes & SHERD_TAKES_WEIGHTS) || slowest->pid > 0) return "";
    return shuffled(w) && w->o.op == 0 && w->info.options->group == 0
               ? "; a smaller weight= in its line gives it fewer columns, but its answers stay as "
                 "large as C"
               : "; a smaller weight= in its line gives it less";
}

/* Prints which node the others waited for. */
static void say_pace(const sherd__product_run *w)
{
    const sherd_report *r = w->info.report;
    sherd_report_node n = { .size = sizeof n };
    char its[24], others[24];
    if (!r->pace_node || sherd_report_node_at(r, w->info.cluster, r->pace_node - 1, &n, NULL))
        return;
    if (n.state != SHERD_NODE_UP) {
        sherd__cli_say(w->cli,
                       "the others waited %s for %s, which was %s; their answers took %s (median)",
                       sherd__cli_seconds(r->pace_seconds, its), n.name,
                       n.state == SHERD_NODE_BANNED ? "banned" : "lost",
                       sherd__cli_seconds(r->pace_others, others));
        return;
    }
    sherd__cli_say(w->cli,
                   "%s set the pace: its answers took %s, those of the others %s (median)%s",
                   n.name, sherd__cli_seconds(r->pace_seconds, its),
                   sherd__cli_seconds(r->pace_others, others), pace_hint(w, &n));
}

/* Prints the encoding if A was sent in CSR; dense is expected. */
static void say_encoding(const sherd__product_run *w)
{
    const sherd_report *r = w->info.report;
    if (r->encoding != SHERD_ENCODING_CSR) return;
    sherd__cli_say(w->cli,
                   "A was sent in CSR, without zeros, in %" PRIu64 " of %" PRIu64 " tasks%s",
                   r->tasks_csr, r->tasks,
                   r->tasks_csr < r->tasks ? " (dense was smaller in the others)" : "");
}

/* Writes the predicted time and what it depends on; nothing if it is not known. */
static const char *forecast_time(const sherd_forecast *f, char out[160])
{
    char t[24], rate[24], late[24];
    *out = '\0';
    if (f->seconds > 0 && f->local)
        snprintf(out, 160, ", %s (bound by %s)", sherd__cli_seconds(f->seconds, t), f->bound);
    else if (f->seconds > 0)
        snprintf(out, 160, ", %s (bound by %s; links of %s/s and %s were measured)",
                 sherd__cli_seconds(f->seconds, t), f->bound,
                 sherd__cli_bytes((uint64_t)f->rates.link, rate),
                 sherd__cli_seconds(f->latency, late));
    return out;
}

/* Prints the forecast with the measured values. */
static void say_forecast(const sherd__product_run *w)
{
    const sherd_forecast *f = w->info.forecast;
    const sherd_report *r = w->info.report;
    char fore[2][24], found[3][24], time[160];
    if (!f) return;
    sherd__cli_note(w->cli, "predicted%s %s out, %s in%s; measured %s out, %s in%s, %s",
                    f->at_most ? " at most" : "", sherd__cli_bytes(f->bytes_out, fore[0]),
                    sherd__cli_bytes(f->bytes_in, fore[1]), forecast_time(f, time),
                    sherd__cli_bytes(r->work_out, found[0]), sherd__cli_bytes(r->work_in, found[1]),
                    f->bytes_out == r->work_out && f->bytes_in == r->work_in ? " (to the byte)"
                                                                             : "",
                    sherd__cli_seconds(r->seconds, found[2]));
}

const char *sherd__work_distance_text(const sherd_distance *x, char out[200])
{
    snprintf(out, 200,
             "float64 differs from it by %.3g at most (row %" PRIu64 ", column %" PRIu64
             "; rounding to fixed point allows %.3g), and by %.3g of its norm in total",
             x->largest, x->row, x->col, x->bound, x->relative);
    return out;
}

const char *sherd__work_unjudged_text(const sherd_check *x, char out[96])
{
    *out = '\0';
    if (x->unjudged)
        snprintf(out, 96, ", except %" PRIu64 " of %" PRIu64 ", for which |A||B| overflows",
                 x->unjudged, x->entries);
    return out;
}

const char *sherd__work_nan_text(const sherd_check *x, char out[96])
{
    *out = '\0';
    if (x->nan)
        snprintf(out, 96,
                 "; %" PRIu64 " of %" PRIu64 " entries are NaN in both, which counts as equal",
                 x->nan, x->entries);
    return out;
}

double sherd__work_percent(uint64_t part, uint64_t all)
{
    return all ? 100.0 * (double)part / (double)all : 100.0;
}

static void say_check(const sherd__product_run *w)
{
    const sherd_check *x = w->info.check;
    char t[24], far[200], out[96], nan[96];
    if (!x) return;
    sherd__work_nan_text(x, nan);
    if (x->equal && w->info.distance)
        sherd__cli_note(w->cli, "%s", sherd__work_distance_text(w->info.distance, far));
    if (x->judged == SHERD_JUDGED_BITS && x->equal)
        sherd__cli_say(w->cli,
                       "equal: yes, bit for bit (%" PRIu64 " entries, computed locally in %s)%s",
                       x->entries, sherd__cli_seconds(x->seconds, t), nan);
    else if (x->judged == SHERD_JUDGED_BITS)
        sherd__cli_say(w->cli, "equal: NO: %" PRIu64 " of %" PRIu64 " entries differ",
                       x->entries - x->bit_equal, x->entries);
    else
        sherd__cli_say(w->cli,
                       "equal: %s gamma_k |A||B| in every entry%s%s; largest difference %.3g, "
                       "%.2g of what the bound allows; %.2f %% bit-equal, numpy.isclose %.2f %%; "
                       "computed here in %s",
                       x->equal ? "yes, within" : "NO, not within",
                       sherd__work_unjudged_text(x, out), nan, x->max_abs, x->worst,
                       sherd__work_percent(x->bit_equal, x->entries),
                       sherd__work_percent(x->isclose, x->entries),
                       sherd__cli_seconds(x->seconds, t));
}

static void say_arithmetic(const sherd__product_run *w)
{
    const sherd_report *r = w->info.report;
    if (!exact(w)) return;
    char how[48] = "one f64 product is exact";
    if (r->primes > 0)
        snprintf(how, sizeof how, "%" PRIu32 " primes%s", r->primes,
                 r->prime_bits == 8 ? " below 256" : "");
    sherd__cli_note(w->cli, "exact: %" PRIu32 " and %" PRIu32 " bits, exponents %d and %d; %s",
                    r->bits_a, r->bits_b, r->scale_a, r->scale_b, how);
}

/* Returns whether operand i was already described: X times X is one file, rounded once. */
static bool said_before(const sherd__product_run *w, unsigned i)
{
    return i == 1 && strcmp(w->paths[0], w->paths[1]) == 0 && bits(w, 0) == bits(w, 1);
}

/* Returns which option would keep some of the entries of operand i that became 0. */
static const char *keeps_more(const sherd__product_run *w, unsigned i, const sherd_rounding *r)
{
    sherd_rounding widest;
    bool wider = bits(w, i) < BITS_WIDEST && rounding_to(w, i, BITS_WIDEST, &widest) == 0 &&
                 widest.vanished < r->vanished;
    const sherd_scheme_info *s = scheme_of(w);
    if (!s->exact_only)
        return wider ? "--bits 26 keeps more, --mode float keeps all" : "--mode float keeps them";
    if (!wider) return "private schemes use at most 26 bits, which keep no more of them";
    if (s->takes & SHERD_TAKES_MASKS)
        return i == 1 ? "masks prepared with --bits-b 26 keep more"
                      : "masks prepared with --bits 26 keep more";
    return i == 1 && w->info.options->bits_b ? "--bits-b 26 keeps more" : "--bits 26 keeps more";
}

/* The scale is at most bits - 1, so all entries of a matrix may be too small. The message does not
 * reveal the largest entry. */
static void say_vanished(const sherd__product_run *w, unsigned i, const sherd_rounding *r)
{
    if (r->scale == (int)bits(w, i) - 1 && r->max_abs < 0.5)
        sherd__cli_warn(w->cli,
                        "%s: %" PRIu64 " of %" PRIu64 " entries that are not 0 became 0: fixed "
                        "point of %u bits ends at 2^-%d: scale them "
                        "by a power of two first",
                        w->paths[i], r->vanished, r->nonzeros, bits(w, i), r->scale);
    else
        sherd__cli_warn(w->cli,
                        "%s: %" PRIu64 " of %" PRIu64 " entries that are not 0 are too "
                        "small beside the largest and became 0: %s",
                        w->paths[i], r->vanished, r->nonzeros, keeps_more(w, i, r));
}

/* Prints how far the rounded operands are from the originals. The result is exact for the rounded
 * ones. */
static void say_rounding(const sherd__product_run *w)
{
    sherd_rounding r;
    for (unsigned i = 0; i < w->in_len; i++) {
        if (said_before(w, i) || !rounding(w, i, &r)) continue;
        sherd__cli_say(w->cli,
                       "%s was rounded to %" PRIu32 " bits: by %.2g of its largest entry at most",
                       w->paths[i], bits(w, i), r.relative_error);
        if (r.vanished > 0) say_vanished(w, i, &r);
    }
}

/* Prints which checks every answer passed. */
static void say_checked(const sherd__product_run *w)
{
    const sherd_report *r = w->info.report;
    if (r->check_tolerant)
        sherd__cli_say(w->cli, "every answer was checked for gross errors (a stricter check needs "
                               "--mode exact)");
    else if (w->o.op != 0)
        sherd__cli_say(w->cli,
                       "a sample of every answer was recomputed locally: one wrong entry is missed "
                       "with probability %.2g",
                       r->check_error);
    else if (r->check_error > 0)
        sherd__cli_say(w->cli,
                       "every answer was checked: a wrong one passes with probability 2^%.0f",
                       log2(r->check_error));
}

static void say_product(const sherd__product_run *w)
{
    const sherd_report *r = w->info.report;
    char scheme[160], some[24] = "";
    say_scheme(w, scheme, sizeof scheme);
    if (r->nodes_used < r->nodes) snprintf(some, sizeof some, "%" PRIu32 " of ", r->nodes_used);
    sherd__cli_say(w->cli, "%s: %zu x %zu by %s%" PRIu32 " node%s%s, %s, %s", w->operation,
                   w->info.result.rows, w->info.result.cols, some, r->nodes,
                   r->nodes == 1 ? "" : "s",
                   sherd_cluster_simulated(w->info.cluster) ? " (domains: simulated on one host)"
                                                            : "",
                   scheme,
                   w->o.op != 0             ? "float64"
                   : w->info.options->exact ? "exact"
                                            : "float");
}

static void say_cost(const sherd__product_run *w)
{
    const sherd_report *r = w->info.report;
    char out[24], in[24], t[24], all[24];
    sherd_report_node first = { .size = sizeof first };
    int err = sherd_report_node_at(r, w->info.cluster, 0, &first, NULL);
    sherd__cli_say(w->cli,
                   "%s for the answers (%s with %s the nodes): %s out, %s in, "
                   "%" PRIu64 " task%s, %" PRIu64 " sent again",
                   sherd__cli_seconds(r->seconds, t), sherd__cli_seconds(w->info.seconds, all),
                   !err && first.pid > 0 ? "the start of" : "connecting to",
                   sherd__cli_bytes(sherd__work_total(r->bytes_out, r), out),
                   sherd__cli_bytes(sherd__work_total(r->bytes_in, r), in), r->tasks,
                   r->tasks == 1 ? "" : "s", r->tasks_repeated);
}

static void say_faults(const sherd__product_run *w)
{
    const sherd_report *r = w->info.report;
    if (r->nodes_lost > 0)
        sherd__cli_say(w->cli, "%" PRIu32 " node%s lost during the run; the others did the work%s",
                       r->nodes_lost, r->nodes_lost == 1 ? " was" : "s were",
                       w->cli->verbose > 0 ? "" : " (-v lists tasks by node)");
    if (r->nodes_banned > 0)
        sherd__cli_warn(w->cli,
                        "banned for a wrong answer or a violation of the protocol: %s; none of "
                        "their later answers were used",
                        r->banned);
}

/* A vector as an operand leaves its dimension out of the result, as in numpy. */
static void say_written(const sherd__product_run *w)
{
    char shape[64];
    size_t rows = w->info.result.rows, cols = w->info.result.cols;
    if (w->info.result_ndim == 2) snprintf(shape, sizeof shape, "%zu x %zu", rows, cols);
    else if (w->info.result_ndim == 1)
        snprintf(shape, sizeof shape, "a vector of %zu", rows * cols);
    else snprintf(shape, sizeof shape, "a number");
    sherd__cli_say(w->cli, "wrote %s (%s, float64)", sherd__opt_text(w->cli, "output"), shape);
}

static void say_line(const sherd__cli *cli, const char *line)
{
    sherd__cli_say(cli, "%s", line);
}

static void say_all(const sherd__product_run *w)
{
    say_product(w);
    sherd__nodes_print_devices(w->cli, w->info.cluster, say_line);
    if (w->cli->verbose > 0) say_nodes(w);
    say_arithmetic(w);
    say_rounding(w);
    say_cost(w);
    say_pace(w);
    say_encoding(w);
    say_forecast(w);
    say_checked(w);
    say_faults(w);
    say_check(w);
    if (scheme_of(w)->takes & SHERD_TAKES_MASKS)
        sherd__cli_say(w->cli, "%s: %" PRIu64 " rows of masks are left", w->info.options->masks,
                       w->info.report->masks_left);
    say_written(w);
    if (w->info.certified)
        sherd__cli_say(w->cli, "wrote %s", sherd__opt_text(w->cli, "certificate"));
}

/* ---- for programs ---------------------------------------------------------------------------- */

static json_t *node_object(const sherd__product_run *w, uint32_t i)
{
    static const char *const unknown[] = { "planned",  "exposed_a", "exposed_b", "bytes_out",
                                           "bytes_in", "done",      NULL };
    sherd_report_node n = { .size = sizeof n };
    if (sherd_report_node_at(w->info.report, w->info.cluster, i, &n, NULL)) return json_object();
    json_t *o = sherd__fields_object(&n, sherd_report_node_fields,
                                     i < w->info.report->nodes ? NULL : unknown);
    json_t *device = sherd__nodes_device_object(w->info.cluster, i);
    json_object_update_missing(o, device);
    json_decref(device);
    if (n.pid == 0) json_object_set_new(o, "pid", json_null());
    return o;
}

static void add_nodes(const sherd__product_run *w, json_t *obj)
{
    json_t *nodes = json_array();
    for (uint32_t i = 0; i < sherd_cluster_size(w->info.cluster); i++)
        json_array_append_new(nodes, node_object(w, i));
    json_object_set_new(obj, "nodes", nodes);
    json_object_set_new(obj, "domains",
                        json_string(sherd_cluster_simulated(w->info.cluster)
                                        ? "simulated on one host"
                                        : "separate"));
}

static void add_report(const sherd__product_run *w, json_t *obj)
{
    static const char *const names[] = { "tasks",    "tasks_repeated", "fragments",  "panels",
                                         "tiles",    "rows_skipped",   "nodes_lost", "nodes_banned",
                                         "work_out", "work_in",        "primes",     "check_error",
                                         "seconds",  "check_tolerant", "prime_bits", NULL };
    static const char *const fixed[] = { "scale_a", "scale_b", "bits_a", "bits_b", NULL };
    static const char *const sparse[] = { "encoding", "tasks_csr", NULL };
    const sherd_report *r = w->info.report;
    sherd__fields_json_of(obj, r, sherd_report_fields, names);
    if (exact(w)) sherd__fields_json_of(obj, r, sherd_report_fields, fixed);
    if (r->encoding != SHERD_ENCODING_AUTO)
        sherd__fields_json_of(obj, r, sherd_report_fields, sparse);
    json_object_set_new(obj, "bytes_out", sherd__json_whole(sherd__work_total(r->bytes_out, r)));
    json_object_set_new(obj, "bytes_in", sherd__json_whole(sherd__work_total(r->bytes_in, r)));
    json_object_set_new(obj, "local_products",
                        sherd__json_whole(sherd_blas_calls() - w->info.check_calls));
    if (w->info.forecast)
        json_object_set_new(obj, "predicted", sherd__plan_object(w->info.forecast));
    json_object_set_new(obj, "seconds_total", json_real(w->info.seconds));
}

/* The node that the others waited for; null: none was significantly slower. */
static void add_pace(const sherd__product_run *w, json_t *obj)
{
    static const char *const names[] = { "pace_seconds", "pace_others", NULL };
    const sherd_report *r = w->info.report;
    sherd_report_node n = { .size = sizeof n };
    bool any = r->pace_node &&
               !sherd_report_node_at(r, w->info.cluster, r->pace_node - 1, &n, NULL);
    json_object_set_new(obj, "pace_node", any ? json_string(n.name) : json_null());
    if (any) sherd__fields_json_of(obj, r, sherd_report_fields, names);
}

static void add_settings(const sherd__product_run *w, json_t *obj)
{
    static const char *const coded[] = { "code",      "blocks",          "threshold",
                                         "encodings", "tasks_cancelled", NULL };
    static const char *const masked[] = { "masks_left", NULL };
    const sherd_scheme_info *s = scheme_of(w);
    json_object_set_new(obj, "scheme", json_string(s->name));
    json_object_set_new(obj, "private",
                        json_boolean(sherd_scheme_private(w->info.options->scheme)));
    if (shuffled(w))
        json_object_set_new(obj, "exposure",
                            json_string(w->info.options->balanced ? "balanced" : "uniform"));
    if (w->o.op != 0) return;
    if (w->info.report->threshold > 0) {
        json_object_set_new(obj, "colluding", sherd__json_whole(w->info.options->colluding));
        json_object_set_new(obj, "spare", sherd__json_whole(w->info.options->spare));
        json_object_set_new(obj, "shares", sherd__json_whole(w->info.report->domains));
        sherd__fields_json_of(obj, w->info.report, sherd_report_fields, coded);
    }
    if (s->takes & SHERD_TAKES_MASKS)
        sherd__fields_json_of(obj, w->info.report, sherd_report_fields, masked);
    if (shuffled(w)) {
        json_object_set_new(obj, "group",
                            w->info.options->group == 0
                                ? json_string("all")
                                : sherd__json_whole(w->info.options->group));
        json_object_set_new(obj, "shuffle_rows", json_boolean(w->info.options->shuffle_rows));
    }
    json_object_set_new(obj, "mode", json_string(w->info.options->exact ? "exact" : "float"));
    if (w->info.options->exact)
        json_object_set_new(obj, "bits", sherd__json_whole(w->info.options->bits));
}

static void add_rounding(const sherd__product_run *w, json_t *obj)
{
    static const char *const names[] = { "vanished", "nonzeros", "relative_error", NULL };
    json_t *list = json_array();
    for (unsigned i = 0; i < w->in_len && exact(w); i++) {
        sherd_rounding r;
        json_t *o = json_object();
        (void)rounding(w, i, &r);
        sherd__fields_json_of(o, &r, sherd_rounding_fields, names);
        json_array_append_new(list, o);
    }
    if (exact(w)) json_object_set_new(obj, "rounding", list);
    else json_decref(list);
}

static json_t *matrix_object(const char *path, const char *dtype, size_t rows, size_t cols)
{
    return json_pack("{s:o, s:s, s:o, s:o}", "file", sherd__cli_json_text(path), "dtype", dtype,
                     "rows", sherd__json_whole(rows), "cols", sherd__json_whole(cols));
}

static void add_files(const sherd__product_run *w, json_t *obj)
{
    json_t *inputs = json_array();
    for (unsigned i = 0; i < w->in_len; i++) {
        sherd_view v = i ? w->info.b : w->info.a;
        json_array_append_new(inputs, matrix_object(w->paths[i], sherd_dtype_name(v.dtype), v.rows,
                                                    v.cols));
    }
    json_object_set_new(obj, "operation", json_string(w->operation));
    json_object_set_new(obj, "inputs", inputs);
    json_object_set_new(obj, "result",
                        matrix_object(sherd__opt_text(w->cli, "output"), "<f8", w->info.result.rows,
                                      w->info.result.cols));
    json_object_set_new(obj, "certificate",
                        sherd__cli_json_text(sherd__opt_text(w->cli, "certificate")));
}

static void add_check(const sherd__product_run *w, json_t *obj)
{
    static const char *const without[] = { "mismatched", "row", "col", "blas_calls", NULL };
    static const char *const bitwise[] = { "mismatched", "row",   "col",      "blas_calls",
                                           "beyond",     "worst", "unjudged", NULL };
    bool by_bits = w->info.check->judged == SHERD_JUDGED_BITS;
    json_t *o = sherd__fields_object(w->info.check, sherd_check_fields,
                                     by_bits ? bitwise : without);
    if (w->info.distance)
        json_object_set_new(o, "from_float64",
                            sherd__fields_object(w->info.distance, sherd_distance_fields, NULL));
    json_object_set_new(obj, "check", o);
}

int sherd__product_run_report(sherd__product_run *w, int err, sherd_diag *d)
{
    if (!w->cli->json) {
        if (err == 0 || w->info.written) say_all(w);
        if (err == SHERD_EDIFFERS) say_check(w);
        return err;
    }
    if (err != 0 && !w->info.cluster) return err; /* nothing was sent: there is only the error */
    json_t *obj = sherd__cli_json_new(w->cli);
    add_files(w, obj);
    add_settings(w, obj);
    add_nodes(w, obj);
    add_report(w, obj);
    add_pace(w, obj);
    if (w->info.check) add_check(w, obj);
    if (!err) add_rounding(w, obj);
    return err ? sherd__cli_json_fail(w->cli, obj, err, d) : sherd__cli_json_end(w->cli, obj, d);
}
