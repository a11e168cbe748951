/*
 * Views of element-wise operations. Columns cannot be matched, since each row has its own order.
 * But the values of a row reveal much of it without their positions: how many are zero, their mean,
 * their quantiles. These features are computed for the seen values of a row and for as many values
 * of a public row, drawn in the same way. A row is then matched to the public rows with the most
 * similar features.
 */
#include "audit/elements.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/tail.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/rand.h"
#include "matrix/view.h"

#define QUANTILES 9u
#define FEATURES (QUANTILES + 3u)

void sherd__elements_fini(sherd__elements *e)
{
    sherd__free(e->values);
    memset(e, 0, sizeof *e);
}

/* ---- records --------------------------------------------------------------------------------- */

static bool element_wise(const sherd__node_view *v, const sherd__view_task *t)
{
    if (t->op <= 2 || t->left == SHERD__VIEW_NONE) return false;
    const sherd__view_block *b = &v->blocks[t->left];
    return b->whole && (b->info.dtype == SHERD_F64 || b->info.dtype == SHERD_F32) &&
           b->info.groups == 1 && b->info.encoding == SHERD__DENSE && b->info.cols > 0;
}

bool sherd__elements_job(const sherd__views *v, uint64_t *job)
{
    struct {
        uint64_t job, bytes;
    } seen[64] = { { 0, 0 } };
    size_t len = 0, best = 0;
    for (size_t i = 0; i < v->len; i++)
        for (size_t t = 0; t < v->nodes[i].tasks_len; t++) {
            const sherd__view_task *task = &v->nodes[i].tasks[t];
            if (!element_wise(&v->nodes[i], task)) continue;
            size_t at = 0;
            while (at < len && seen[at].job != task->job) at++;
            if (at == len && len == sizeof seen / sizeof *seen) continue;
            if (at == len) seen[len++].job = task->job;
            seen[at].bytes += v->nodes[i].blocks[task->left].info.len;
            if (seen[at].bytes > seen[best].bytes) best = at;
        }
    if (len) *job = seen[best].job;
    return len > 0;
}

/* Appends a panel's rows; a panel of another width does not belong to this slot. */
static int append(sherd__elements *e, const sherd__node_view *v, const sherd__view_block *b,
                  size_t rows_max)
{
    size_t rows = (size_t)b->info.rows, cols = (size_t)b->info.cols, bytes;
    size_t take = e->rows >= rows_max ? 0 : rows < rows_max - e->rows ? rows : rows_max - e->rows;
    if (e->cols != 0 && e->cols != cols) return SHERD_OK;
    e->cols = cols;
    e->sent += rows;
    if (take == 0) return SHERD_OK;
    if (!sherd__mul(e->rows + take, cols, &bytes) || !sherd__mul(bytes, sizeof(double), &bytes))
        return SHERD_ENOMEM;
    double *more = sherd__realloc(e->values, bytes);
    if (!more) return SHERD_ENOMEM;
    e->values = more;
    uint8_t *body = sherd__alloc((size_t)b->info.len);
    if (!body) return SHERD_ENOMEM;
    double *to = more + e->rows * cols;
    bool whole = !sherd__view_body(v, b, body), wide = b->info.dtype == SHERD_F64;
    for (size_t i = 0; whole && i < take * cols; i++) {
        float x = 0;
        if (wide) memcpy(&to[i], body + 8 + 8 * i, 8);
        else memcpy(&x, body + 8 + 4 * i, 4);
        if (!wide) to[i] = (double)x;
        if (!isfinite(to[i])) to[i] = 0; /* attacks need finite numbers */
        if (fabs(to[i]) > e->largest) e->largest = fabs(to[i]);
    }
    if (whole) e->rows += take;
    sherd__free(body);
    return SHERD_OK;
}

static int compare_tasks(const void *a, const void *b)
{
    const sherd__view_task *x = *(const sherd__view_task *const *)a,
                           *y = *(const sherd__view_task *const *)b;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return (x > y) - (x < y);
}

/* The tasks of a node, in the order of their numbers, and what is read of them. */
typedef struct reading {
    const sherd__node_view *v;
    const sherd__view_task **list;
    size_t len, slots, rows_max;
    bool right;
} reading;

/* Reads the panels of one slot; a panel sent twice counts once. */
static int read_slot(sherd__elements *out, const reading *from, size_t slot)
{
    const sherd__node_view *v = from->v;
    const sherd__view_task *last = NULL;
    int err = SHERD_OK;
    for (size_t i = 0; i < from->len && !err; i++) {
        const sherd__view_task *t = from->list[i];
        size_t block = from->right ? t->right : t->left;
        if (t->number == 0 || (t->number - 1) % from->slots != slot) continue;
        if (block == SHERD__VIEW_NONE || !v->blocks[block].whole) continue;
        if (v->blocks[block].info.groups != 1 || (last && last->number == t->number)) continue;
        last = t;
        err = append(out, v, &v->blocks[block], from->rows_max);
    }
    return err;
}

int sherd__elements_of(sherd__elements *out, const sherd__node_view *v, uint64_t job, bool right,
                       size_t slots, size_t rows_max)
{
    const sherd__view_task **list = sherd__calloc(v->tasks_len, sizeof *list);
    sherd__elements *of = sherd__calloc(slots, sizeof *of);
    const sherd__elements **part = sherd__calloc(slots, sizeof *part);
    size_t len = 0, parts = 0;
    int err = list && of && part ? SHERD_OK : SHERD_ENOMEM;
    memset(out, 0, sizeof *out);
    for (size_t t = 0; t < v->tasks_len && !err; t++)
        if (v->tasks[t].job == job && element_wise(v, &v->tasks[t])) list[len++] = &v->tasks[t];
    if (!err && len) qsort(list, len, sizeof *list, compare_tasks);
    const reading from = { v, list, len, slots, rows_max, right };
    for (size_t s = 0; s < slots && !err; s++) {
        err = read_slot(&of[s], &from, s);
        if (of[s].rows) part[parts++] = &of[s];
    }
    if (!err && parts) err = sherd__elements_join(out, part, parts);
    for (size_t s = 0; of && s < slots; s++) sherd__elements_fini(&of[s]);
    sherd__free(of);
    sherd__free(part);
    sherd__free(list);
    return err;
}

int sherd__elements_join(sherd__elements *out, const sherd__elements *const *part, size_t len)
{
    sherd__elements e = { .rows = SIZE_MAX, .sent = UINT64_MAX };
    size_t bytes, at = 0;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < len; i++) {
        if (part[i]->rows == 0) continue; /* a node without data adds nothing */
        if (part[i]->rows < e.rows) e.rows = part[i]->rows;
        if (part[i]->sent < e.sent) e.sent = part[i]->sent;
        if (part[i]->largest > e.largest) e.largest = part[i]->largest;
        e.cols += part[i]->cols;
    }
    if (e.cols == 0) return SHERD_OK;
    if (!sherd__mul(e.rows, e.cols, &bytes) || !sherd__mul(bytes, sizeof(double), &bytes) ||
        !(e.values = sherd__alloc(bytes)))
        return SHERD_ENOMEM;
    for (size_t i = 0; i < len; i++) {
        for (size_t r = 0; part[i]->rows && r < e.rows; r++)
            memcpy(e.values + r * e.cols + at, part[i]->values + r * part[i]->cols,
                   part[i]->cols * sizeof(double));
        if (part[i]->rows) at += part[i]->cols;
    }
    *out = e;
    return SHERD_OK;
}

/* --- attacks ---------------------------------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Computes the features of n >= 1 values, which are sorted in place. */
static void describe(double *x, size_t n, double scale, double *out)
{
    double zero = 0, sum = 0, squares = 0;
    qsort(x, n, sizeof *x, compare_doubles);
    for (size_t i = 0; i < n; i++) {
        zero += x[i] == 0;
        sum += x[i] * scale;
        squares += x[i] * scale * (x[i] * scale);
    }
    double mean = sum / (double)n, variance = squares / (double)n - mean * mean;
    out[0] = zero / (double)n;
    out[1] = mean;
    out[2] = variance > 0 ? sqrt(variance) : 0;
    for (unsigned q = 0; q < QUANTILES; q++)
        out[3 + q] = x[(size_t)(q + 1) * (n - 1) / (QUANTILES + 1)] * scale;
}

/* Returns how many of x are also in a; both are sorted, and each entry is matched once. */
static size_t common(const double *x, size_t n, const double *a, size_t m)
{
    size_t i = 0, j = 0, both = 0;
    while (i < n && j < m) {
        if (x[i] == a[j]) {
            both++;
            i++;
            j++;
        } else if (x[i] < a[j]) {
            i++;
        } else {
            j++;
        }
    }
    return both;
}

static sherd_audit_finding about(const char *test, const char *statistic, const char *name,
                                 const char *who)
{
    sherd_audit_finding f = {
        .test = test, .statistic = statistic, .chance = NAN, .low = NAN, .high = NAN, .ln_p = NAN
    };
    snprintf(f.subject, sizeof f.subject, "%s", name);
    snprintf(f.who, sizeof f.who, "%s", who);
    return f;
}

/* The finding is that entries were sent at all, which a scheme that hides would not do by
   chance. */
static int verbatim(const sherd__attack *by, const sherd__elements *e, const char *name,
                    double *line, double *room)
{
    const sherd__truth *t = by->truth;
    sherd_audit_finding f = about("verbatim", "fraction of the entries, element-wise", name,
                                  by->who);
    size_t rows = e->rows < t->a.rows ? e->rows : t->a.rows, same = 0;
    for (size_t r = 0; r < rows; r++) {
        sherd__truth_row(t, r, line);
        memcpy(room, e->values + r * e->cols, e->cols * sizeof *room);
        qsort(line, t->a.cols, sizeof *line, compare_doubles);
        qsort(room, e->cols, sizeof *room, compare_doubles);
        same += common(room, e->cols, line, t->a.cols);
    }
    f.value = rows ? (double)same / ((double)rows * (double)t->a.cols) : 0;
    f.chance = 0;
    f.flagged = same > 0;
    snprintf(f.sentence, sizeof f.sentence,
             "%.3g %% of %s's entries were sent unchanged, each row in its own order: %zu of the "
             "%zu values of each of %zu rows that were examined",
             100 * f.value, name, e->cols, t->a.cols, rows);
    return sherd__findings_add(by->findings, &f);
}

/* Extends public rows: the features of `cols` of their values, followed by the rows themselves. */
static int extend(sherd__public *out, const sherd__public *pub, size_t cols, double *room)
{
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, 1);
    size_t len, take = cols < pub->cols ? cols : pub->cols;
    *out = *pub;
    out->cols = FEATURES + pub->cols;
    out->corr = out->features = NULL;
    out->x = sherd__mul(out->cols, pub->rows, &len) ? sherd__calloc(len, sizeof *out->x) : NULL;
    if (!out->x) return SHERD_ENOMEM;
    for (size_t r = 0; r < pub->rows; r++) {
        double *to = out->x + r * out->cols;
        memcpy(to + FEATURES, pub->x + r * pub->cols, pub->cols * sizeof *to);
        memcpy(room, to + FEATURES, pub->cols * sizeof *room);
        for (size_t i = 0; i < take; i++) {
            size_t k = i + (size_t)sherd__entropy_below(&e, pub->cols - i);
            double t = room[i];
            room[i] = room[k];
            room[k] = t;
        }
        describe(room, take, 1, to);
    }
    return SHERD_OK;
}

static int labels(const sherd__attack *by, const sherd__inferred *in, unsigned which,
                  const char *name, const size_t *test)
{
    const sherd__truth *t = by->truth;
    const char *how = which ? "5 nearest public rows, by values" : "linear, by values";
    sherd_audit_finding f = about("labels", how, name, by->who);
    size_t right = 0, of[256] = { 0 }, most = 0;
    if (!t->labels || !in->label[which]) return SHERD_OK;
    for (size_t i = 0; i < in->rows; i++) {
        uint8_t is = t->labels[test[i]];
        right += in->label[which][i] == is;
        if (++of[is] > most) most = of[is];
    }
    f.value = (double)right / (double)in->rows;
    f.chance = (double)most / (double)in->rows;
    sherd__tail_interval(right, in->rows, 0.99, &f.low, &f.high);
    f.ln_p = right ? sherd__tail_binomial(right, in->rows, f.chance) : 0;
    snprintf(f.sentence, sizeof f.sentence,
             "labels of %.1f %% of %zu rows inferred from the values of the rows, %s (naming the "
             "most frequent label each time: %.1f %%)",
             100 * f.value, in->rows, f.statistic, 100 * f.chance);
    return sherd__findings_add(by->findings, &f);
}

/* The rows of the operand on which inference is counted, and the factor from its values to those of
 * the public data. */
typedef struct tested {
    const size_t *row;
    double scale;
} tested;

static int rebuilt(const sherd__attack *by, const sherd__inferred *in, unsigned which,
                   const char *name, tested of, double *line)
{
    const double scale = of.scale;
    const sherd__truth *t = by->truth;
    const sherd__public *pub = by->pub;
    const char *how = which ? "R2, 5 nearest, by values" : "R2, linear, by values";
    sherd_audit_finding f = about("rebuilding", how, name, by->who);
    size_t cols = t->a.cols;
    double off = 0, off_mean = 0, spread = 0;
    double *mean = sherd__calloc(2 * cols, sizeof *mean), *guess = mean ? mean + cols : NULL;
    if (!mean) return SHERD_ENOMEM;
    for (size_t i = 0; i < in->rows; i++) {
        sherd__truth_row(t, of.row[i], line);
        for (size_t c = 0; c < cols; c++) mean[c] += line[c] * scale / (double)in->rows;
    }
    for (size_t r = 0; r < pub->rows; r++)
        for (size_t c = 0; c < cols; c++) guess[c] += pub->x[r * cols + c] / (double)pub->rows;
    for (size_t i = 0; i < in->rows; i++) {
        const double *made = in->rebuilt[which] + i * in->cols + FEATURES;
        sherd__truth_row(t, of.row[i], line);
        for (size_t c = 0; c < cols; c++) {
            double x = line[c] * scale;
            off += (x - made[c]) * (x - made[c]);
            off_mean += (x - guess[c]) * (x - guess[c]);
            spread += (x - mean[c]) * (x - mean[c]);
        }
    }
    sherd__free(mean);
    if (!(spread > 0)) return SHERD_OK;
    f.value = 1 - off / spread;
    f.chance = 1 - off_mean / spread;
    f.flagged = f.value > f.chance + 0.05;
    snprintf(f.sentence, sizeof f.sentence,
             "rows rebuilt from their values without positions: R2 %.3f (the public mean: %.3f) "
             "over %zu rows",
             f.value, f.chance, in->rows);
    return sherd__findings_add(by->findings, &f);
}

static int infer(const sherd__attack *by, const sherd__elements *e, const char *name, size_t tests,
                 double *line, double *room)
{
    const sherd__truth *t = by->truth;
    sherd__public wide = { 0 };
    sherd__inferred in = { 0 };
    size_t rows = e->rows < t->a.rows ? e->rows : t->a.rows, len = rows < tests ? rows : tests;
    double *x = sherd__calloc(len, FEATURES * sizeof *x);
    double scale = e->largest > 0 ? 1 / e->largest : 0;
    size_t *test = sherd__calloc(len, sizeof *test), to[FEATURES];
    int err = x && test ? extend(&wide, by->pub, e->cols, room) : SHERD_ENOMEM;
    for (size_t j = 0; j < FEATURES; j++) to[j] = j;
    for (size_t i = 0; i < len && !err; i++) {
        test[i] = i * rows / len;
        memcpy(room, e->values + test[i] * e->cols, e->cols * sizeof *room);
        describe(room, e->cols, scale, x + i * FEATURES);
    }
    if (!err) err = sherd__infer(&in, x, len, FEATURES, to, &wide);
    for (unsigned which = 0; which < 2 && !err; which++) {
        err = labels(by, &in, which, name, test);
        if (!err) err = rebuilt(by, &in, which, name, (tested){ test, scale }, line);
    }
    sherd__inferred_fini(&in);
    sherd__free(wide.x);
    sherd__free(x);
    sherd__free(test);
    return err;
}

int sherd__audit_elements(const sherd__attack *by, const sherd__elements *e, const char *name,
                          size_t tests, sherd_diag *d)
{
    const sherd__public *pub = by->pub;
    size_t cols = by->truth->a.cols, widest = e->cols > cols ? e->cols : cols;
    if (e->rows == 0) return SHERD_OK;
    if (pub && pub->cols != cols)
        return sherd__fail(d, SHERD_ESHAPE, "give public data with the columns of A",
                           "the public data have %zu columns, %s has %zu", pub->cols, name, cols);
    double *line = sherd__calloc(cols, sizeof *line), *room = sherd__calloc(widest, sizeof *room);
    int err = line && room ? verbatim(by, e, name, line, room) : SHERD_ENOMEM;
    if (!err && pub && by->truth->a.rows > 0) err = infer(by, e, name, tests, line, room);
    sherd__free(line);
    sherd__free(room);
    return err ? sherd__fail(d, err, NULL, "%s while attacking what %s saw", sherd_strerror(err),
                             by->who)
               : SHERD_OK;
}
