/*
 * One audit: input, what is known, attacks, judgement. Labels, and the operands of values in clear,
 * only serve to count successes; no attack gets them. Attacks on coded operands get operands as
 * known plaintext.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "audit/input.h"
#include "audit/right_operand.h"
#include "core/alloc.h"
#include "core/diag.h"
#include "core/hooks.h"
#include "core/options.h"
#include "learn/digits.h"
#include "matrix/fixed.h"
#include "matrix/view.h"

#define DRAWN_ROWS 20000u
#define DRAWN_PUBLIC 10000u
#define NODES_MAX 4096u

typedef struct auditing {
    sherd_audit_options opt; /* with defaults */
    sherd_audit *report;
    sherd__audit_input in;
    sherd__hooked hooked;
    uint8_t *drawn, *label_bytes;
    sherd__truth truth, right; /* right: B of shares or of an element-wise operation */
    sherd__public pub;
} auditing;

/* ---- what is known --------------------------------------------------------------------------- */

static int read_options(auditing *a, const sherd_audit_options *opt, sherd_diag *d)
{
    sherd_audit_options *o = &a->opt;
    int err = sherd__options_read(o, sizeof *o, opt, "sherd_audit_options", d);
    if (err) return err;
    const struct {
        const char *name;
        const sherd_view *view;
    } views[] = { { "data", &o->data },
                  { "right", &o->right },
                  { "labels", &o->labels },
                  { "public_data", &o->public_data },
                  { "public_labels", &o->public_labels } };
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        if (views[i].view->data && !sherd_dtype_size(views[i].view->dtype))
            return sherd__fail(d, SHERD_EINVAL, NULL, "%s: %d is not a dtype", views[i].name,
                               (int)views[i].view->dtype);
    if (o->public_labels.data && !o->public_data.data)
        return sherd__fail(d, SHERD_EINVAL, "give the public data (--public-data) too",
                           "public labels without the data whose rows they belong to");
    if (o->labels.data && !o->data.data)
        return sherd__fail(d, SHERD_EINVAL, "give the operand A (--data A.npy) too",
                           "labels without the data whose rows they belong to");
    if (!o->colluding) o->colluding = 1;
    if (!o->coalitions) o->coalitions = SHERD__AUDIT_COALITIONS;
    if (!o->encodings) o->encodings = 8;
    if (!o->rows) o->rows = 10000;
    a->hooked = sherd__hooks_begin(&o->hooks);
    return SHERD_OK;
}

/* Generates digits of a simulation, and public ones unless there are others. */
static int draw_digits(auditing *a, sherd_diag *d)
{
    sherd_audit_options *o = &a->opt;
    size_t pixels = SHERD__DIGIT_PIXELS, all = DRAWN_ROWS + DRAWN_PUBLIC;
    a->drawn = sherd__alloc(all * (pixels + 1));
    if (!a->drawn) return sherd__fail_memory(d, "the digits");
    uint8_t *labels = a->drawn + all * pixels;
    sherd__digits_draw(SHERD__DIGITS_SEED, 0, all, a->drawn, labels);
    o->data = sherd_view_c(a->drawn, SHERD_U8, DRAWN_ROWS, pixels);
    o->labels = sherd_view_c(labels, SHERD_U8, DRAWN_ROWS, 1);
    if (o->public_data.data) return SHERD_OK;
    o->public_data = sherd_view_c(a->drawn + DRAWN_ROWS * pixels, SHERD_U8, DRAWN_PUBLIC, pixels);
    o->public_labels = sherd_view_c(labels + DRAWN_ROWS, SHERD_U8, DRAWN_PUBLIC, 1);
    return SHERD_OK;
}

static int open_labels(auditing *a, sherd_diag *d)
{
    sherd_view v = a->opt.labels;
    size_t n = a->opt.data.rows;
    bool column = v.cols == 1;
    if (!v.data) return SHERD_OK;
    if ((column ? v.rows : v.cols) != n || (!column && v.rows != 1))
        return sherd__fail(d, SHERD_ESHAPE, "give one label for each row of A",
                           "there are %zu x %zu labels, and A has %zu rows", v.rows, v.cols, n);
    a->label_bytes = sherd__alloc(n);
    if (!a->label_bytes) return sherd__fail_memory(d, "%zu labels", n);
    for (size_t i = 0; i < n; i++) {
        double x = sherd__view_at(v, column ? i : 0, column ? 0 : i);
        if (!(x >= 0 && x < 256) || x != floor(x))
            return sherd__fail(d, SHERD_EFORMAT, "give whole numbers from 0 to 255",
                               "label %zu is %g", i, x);
        a->label_bytes[i] = (uint8_t)x;
    }
    return SHERD_OK;
}

/* Reads A, or B, as it was coded. Without a largest value in the record, which residues do not
 * reveal either, the default coding is assumed. */
static int open_coded(auditing *a, sherd__truth *out, sherd_view v, bool b, sherd_diag *d)
{
    const sherd__shares *s = &a->in.shares;
    const char *name = b ? "B" : "A";
    const uint64_t largest = b ? s->largest_b : s->largest;
    sherd__fixed f = { .integers = true };
    int err = largest ? 0 : sherd__fixed_choose(v, SHERD__FIXED_BITS, name, &f, d);
    if (!err && !f.integers)
        sherd__audit_warn(a->report,
                          "no record states the scale in which %s was coded: the default of "
                          "%u bits is assumed, and nothing is found in a run with other "
                          "--bits",
                          name, SHERD__FIXED_BITS);
    return err ? err
               : sherd__truth_open_scaled(out, v, b ? NULL : s->order, s->order_len,
                                          largest ? largest : f.largest, d);
}

static int open_clear(auditing *a, sherd_diag *d)
{
    bool integers = false;
    double largest = 0;
    for (uint32_t i = 0; i < a->in.cast.nodes; i++) {
        const sherd__adversary_view *v = &a->in.views[i];
        integers |= v->integers;
        if (v->largest > largest) largest = v->largest;
    }
    return sherd__truth_open(&a->truth, a->opt.data, integers, largest, d);
}

/* Opens the operand B if some of it is hidden. Else a->right stays empty. */
static int open_right(auditing *a, sherd_diag *d)
{
    const sherd__audit_input *in = &a->in;
    if (!a->opt.right.data) return SHERD_OK;
    if (in->elements[0]) return sherd__truth_open(&a->right, a->opt.right, false, 0, d);
    if (in->coded && sherd__shares_right(&in->shares))
        return open_coded(a, &a->right, a->opt.right, true, d);
    if (in->coded)
        sherd__audit_warn(a->report, "B (--right) is not used: the record contains no shares of "
                                     "a B with known numbers");
    return SHERD_OK;
}

static int open_truth(auditing *a, sherd_diag *d)
{
    sherd_view v = a->opt.data;
    int err = open_right(a, d);
    if (err || !v.data) return err;
    err = a->in.coded ? open_coded(a, &a->truth, v, false, d) : open_clear(a, d);
    a->truth.labels = a->label_bytes;
    a->report->truth = true;
    a->report->rows = v.rows;
    a->report->cols = v.cols;
    return err;
}

static int open_public(auditing *a, sherd_diag *d)
{
    const sherd_audit_options *o = &a->opt;
    if (!o->public_data.data) return SHERD_OK;
    int err = sherd__public_make(&a->pub, o->public_data,
                                 o->public_labels.data ? &o->public_labels : NULL, o->rows, d);
    a->report->public_rows = a->pub.rows;
    a->report->labels = a->pub.labels && a->truth.labels;
    return err;
}

/* ---- attacks --------------------------------------------------------------------------------- */

/* Values sent in clear are a finding that needs no truth. */
static int in_clear(const auditing *a, sherd_diag *d)
{
    for (uint32_t i = 0; i < a->in.cast.nodes; i++) {
        const sherd__adversary_view *s = &a->in.views[i];
        const sherd__elements *e = a->in.elements[0] ? &a->in.elements[0][i] : NULL;
        sherd_audit_finding f = { .test = "in clear",
                                  .statistic = "fraction of columns",
                                  .subject = "A",
                                  .value = 1,
                                  .chance = 0,
                                  .low = NAN,
                                  .high = NAN,
                                  .ln_p = NAN,
                                  .flagged = true };
        if (s->cols == 0 && (!e || e->cols == 0)) continue;
        snprintf(f.who, sizeof f.who, "%s", a->in.cast.name[i]);
        if (e) {
            f.statistic = "values of each row";
            f.value = (double)e->cols;
            snprintf(f.sentence, sizeof f.sentence,
                     "was sent %zu values of each of %llu rows in clear%s", e->cols,
                     (unsigned long long)e->sent,
                     a->in.elements[1][i].cols ? ", of both operands" : "");
        } else {
            snprintf(f.sentence, sizeof f.sentence,
                     "was sent values of %zu columns of A in clear, %zu of them aligned by row",
                     s->cols, s->len == 1 ? s->cols : (size_t)0);
        }
        if (sherd__findings_add(&a->report->findings, &f))
            return sherd__fail_memory(d, "the findings");
    }
    return SHERD_OK;
}

static int step(void *ctx, uint32_t done, uint32_t total)
{
    return sherd__hooks_step(&((auditing *)ctx)->hooked, done, total, NULL);
}

/* Attacks what nodes saw, by the form that it has. */
static int attack_input(auditing *a, const sherd__audit_plan *plan, sherd_diag *d)
{
    sherd__audit_input *in = &a->in;
    sherd_audit *r = a->report;
    const sherd__audit_known known = { .a = r->truth ? &a->truth : NULL,
                                       .b = a->right.a.data ? &a->right : NULL,
                                       .pub = a->pub.rows ? &a->pub : NULL };
    if (in->coded) {
        int err = sherd__audit_shares(r, &in->shares, &known, plan, d);
        if (err || in->more_len == 0) return err;
        return sherd__audit_reuse(r, &in->shares, in->more, in->more_len, plan, d);
    }
    if (!known.a) return SHERD_OK;
    if (in->elements[0])
        return sherd__audit_element_wise(r, &in->cast, in->elements, &known, plan, d);
    return sherd__audit_adversary_views(r, &in->cast, in->views, &known, plan, d);
}

/* Adds a note if no attacked part of an operand was found among the values that were sent, which a
   wrong operand of a possible shape gives. */
static void question(sherd_audit *r, const char *subject, const char *part, const char *option)
{
    const sherd__findings *l = &r->findings;
    size_t asked = 0;
    for (size_t i = 0; i < l->len; i++) {
        const sherd_audit_finding *f = &l->list[i];
        if (strcmp(f->test, "verbatim") != 0 || strcmp(f->subject, subject) != 0) continue;
        if (f->ln_p < 0 || f->flagged) return; /* flagged: judged without a test */
        asked++;
    }
    if (asked > 0)
        sherd__audit_warn(r, "no %s of %s occurs in this record: is it the %s of this run?", part,
                          option, subject);
}

static int attack(auditing *a, sherd_diag *d)
{
    const sherd_audit_options *o = &a->opt;
    sherd_audit *r = a->report;
    const sherd__audit_plan plan = {
        .colluding = o->colluding,
        .coalitions = o->nodes_only && !a->in.coded ? 0 : o->coalitions,
        .seed = o->draw,
        .n = r->rows,
        .k = r->cols,
        .step = step,
        .ctx = a,
        .show = (o->show ? o->show : 3) - 1,
        .domain_name = a->in.cast.domain_name ? a->in.cast.domain_name : a->in.cast.name,
    };
    r->nodes = a->in.cast.nodes;
    r->domains = a->in.cast.domains;
    bool wise = !a->in.coded && a->in.elements[0], clear = !a->in.coded && !wise;
    bool clear_b = o->right.data && a->in.record.len > 0 && clear;
    int err = in_clear(a, d);
    if (!err && clear_b)
        err = sherd__audit_right_operand(&r->findings, &a->in.record, a->in.job, a->in.cast.name,
                                         o->right, d);
    if (!err) err = attack_input(a, &plan, d);
    if (!err && clear) question(r, "A", "column", "--data");
    if (!err && wise) question(r, "A", "entry", "--data");
    if (!err && wise) question(r, "B", "entry", "--right");
    if (!err && clear_b) question(r, "B", "row", "--right");
    if (!err && !r->truth)
        sherd__audit_warn(r, "without the operand A (--data) correct inferences cannot be counted: "
                             "give it to see how much of it the nodes could recover");
    if (!err && r->truth && a->pub.rows == 0)
        sherd__audit_warn(r,
                          "without public data (--public-data) no column can be recognised: give "
                          "data of the same kind to see what an attacker with such data achieves");
    return err ? err : sherd__audit_judge(r, d);
}

/* ---- public calls ---------------------------------------------------------------------------- */

static int check_show(const auditing *a, sherd_diag *d)
{
    uint32_t nodes = a->in.cast.nodes;
    if (a->opt.show <= nodes) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, "name one of them",
                       "node %u cannot be shown: there %s %u node%s", a->opt.show,
                       nodes == 1 ? "is" : "are", nodes, nodes == 1 ? "" : "s");
}

/* Attacks the input that was read, and frees all of *a but its report. */
static int finish(auditing *a, int err, sherd_audit **out, sherd_diag *d)
{
    if (!err) err = check_show(a, d);
    if (!err) err = open_truth(a, d);
    if (!err) err = open_public(a, d);
    if (!err) err = attack(a, d);
    sherd__audit_input_fini(&a->in);
    sherd__truth_fini(&a->truth);
    sherd__truth_fini(&a->right);
    sherd__public_fini(&a->pub);
    sherd__free(a->drawn);
    sherd__free(a->label_bytes);
    if (err) sherd_audit_free(a->report);
    else *out = a->report;
    return err;
}

static int begin(auditing *a, const sherd_audit_options *opt, sherd_diag *d)
{
    int err = read_options(a, opt, d);
    if (err) return err;
    a->report = sherd__calloc(1, sizeof *a->report);
    return a->report ? SHERD_OK : sherd__fail_memory(d, "the report");
}

int sherd_audit_records(sherd_audit **out, const char *const *folders, size_t folders_len,
                        const sherd_audit_options *opt, sherd_diag *d)
{
    auditing a = { .report = NULL };
    *out = NULL;
    if (folders_len == 0)
        return sherd__fail(d, SHERD_EINVAL, "give the folder of a record", "there is no record");
    int err = begin(&a, opt, d);
    if (!err) err = open_labels(&a, d);
    if (!err) err = sherd__audit_input_read(&a.in, a.report, folders, folders_len, &a.opt, d);
    return finish(&a, err, out, d);
}

int sherd_audit_simulate(sherd_audit **out, sherd_audit_form form, uint32_t nodes,
                         const sherd_audit_options *opt, sherd_diag *d)
{
    auditing a = { .report = NULL };
    *out = NULL;
    if (form == SHERD_AUDIT_SHARE)
        return sherd__fail(d, SHERD_EUNSUPPORTED, "record a product under share and audit that",
                           "share is not simulated");
    if ((unsigned)form > SHERD_AUDIT_SHARE)
        return sherd__fail(d, SHERD_EINVAL, NULL, "%d is not a form", (int)form);
    if (nodes < 1 || nodes > NODES_MAX)
        return sherd__fail(d, SHERD_EINVAL, "give 1 to 4096", "%u nodes", nodes);
    int err = begin(&a, opt, d);
    if (!err && !a.opt.data.data) err = draw_digits(&a, d);
    if (!err) err = open_labels(&a, d);
    if (!err) err = sherd__audit_input_simulate(&a.in, a.report, form, nodes, &a.opt, d);
    return finish(&a, err, out, d);
}
