/*
 * The runner, and figures: the median of several runs with the minimum and the maximum, compared
 * with a target. The target applies to the median, never to the best run.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "core/alloc.h"

enum { LINE_MAX_LEN = 116 }; /* of the table */

/* ---- series ---------------------------------------------------------------------------------- */

static sherd__series *find(sherd__bench *b, const char *name)
{
    sherd__series *s = b->series;
    while (s->name && strcmp(s->name, name) != 0) s++;
    assert(s < b->series + SHERD__BENCH_SERIES_MAX - 1); /* room for all that a kind has */
    s->name = name;
    return s;
}

void sherd__bench_put(sherd__bench *b, const char *name, double value)
{
    sherd__series *s = b->warming ? NULL : find(b, name);
    if (s && s->len < SHERD__BENCH_RUNS_MAX) s->values[s->len++] = value;
}

void sherd__bench_set(sherd__bench *b, const char *name, double value)
{
    sherd__series *s = find(b, name);
    s->values[0] = value;
    s->len = 1;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double sherd__median(double *values, int n)
{
    if (n <= 0) return 0;
    qsort(values, (size_t)n, sizeof *values, by_value);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static double median_of(const sherd__series *s)
{
    double copy[SHERD__BENCH_RUNS_MAX];
    memcpy(copy, s->values, sizeof copy);
    return sherd__median(copy, s->len);
}

/* Returns the series, or its alternative if that has the lower median. */
static const sherd__series *better_of(sherd__bench *b, const char *name)
{
    const sherd__series *s = find(b, name);
    size_t len = strlen(name);
    for (size_t i = 0; i < SHERD__BENCH_SERIES_MAX && b->series[i].name; i++) {
        const sherd__series *one = &b->series[i];
        if (strncmp(one->name, name, len) == 0 && strcmp(one->name + len, ".one") == 0 &&
            median_of(one) < median_of(s))
            s = one;
    }
    return s;
}

/* ---- figures --------------------------------------------------------------------------------- */

/* A figure with its numbers. */
typedef struct result {
    const sherd__figure *f;
    double runs[SHERD__BENCH_RUNS_MAX], sorted[SHERD__BENCH_RUNS_MAX], median;
    int len;
    const sherd__beside *beside[SHERD__BESIDE_MAX];
    double besides[SHERD__BESIDE_MAX];
    int beside_len;
    const char *what, *remark;
    bool judged, reached;
} result;

static double scale_of(const sherd__ratio *r)
{
    return r->scale != 0 ? r->scale : 1;
}

/* Computes a ratio of medians. Returns false if a series is missing. */
static bool ratio_of(sherd__bench *b, const sherd__ratio *r, double *out)
{
    const sherd__series *num = better_of(b, r->num), *den = r->den ? better_of(b, r->den) : NULL;
    double n = median_of(num);
    if (num->len == 0 || (den && den->len == 0)) return false;
    for (int i = 0; i < num->len && r->worst; i++)
        if (num->values[i] > n) n = num->values[i];
    *out = scale_of(r) * n / (den ? median_of(den) : 1);
    return true;
}

static void compute_runs(sherd__bench *b, result *t)
{
    const sherd__ratio *r = &t->f->of;
    const sherd__series *num = better_of(b, r->num), *den = r->den ? better_of(b, r->den) : NULL;
    bool each = den && !r->of_median;
    double base = den && r->of_median ? median_of(den) : 1;
    t->len = den && den->len < num->len && each ? den->len : den && den->len == 0 ? 0 : num->len;
    for (int i = 0; i < t->len; i++)
        t->runs[i] = scale_of(r) * num->values[i] / (each ? den->values[i] : base);
    memcpy(t->sorted, t->runs, sizeof t->sorted);
    t->median = sherd__median(t->sorted, t->len);
    if (t->f->medians && t->len > 0) (void)ratio_of(b, r, &t->median);
}

static void compute(sherd__bench *b, result *t, const sherd__figure *f)
{
    *t = (result){ .f = f, .what = b->quick && f->what_quick ? f->what_quick : f->what };
    compute_runs(b, t);
    for (int i = 0; i < SHERD__BESIDE_MAX && f->beside[i].name; i++) {
        t->beside[t->beside_len] = &f->beside[i];
        t->beside_len += ratio_of(b, &f->beside[i].of, &t->besides[t->beside_len]);
    }
    t->remark = t->len == 0 && b->without_numpy
                    ? "no numpy in /usr/bin/python3: nothing to compare with"
                : f->data                     ? b->data
                : b->quick && f->remark_quick ? f->remark_quick
                                              : f->remark;
    t->judged = t->len > 0 && !b->quick && f->target > 0;
    t->reached = f->better == SHERD__LOWER ? t->median <= f->target : t->median >= f->target;
}

/* Formats v with three significant digits, without exponent. */
static const char *number(double v, char out[24])
{
    double a = fabs(v);
    snprintf(out, 24, "%.*f", a >= 99.5 || a == 0 ? 0 : a >= 9.95 ? 1 : a >= 0.0995 ? 2 : 4, v);
    return out;
}

/* Prints the related numbers as lines that are no longer than those of the table. */
static void print_besides(const result *t)
{
    size_t at = 0;
    for (int i = 0; i < t->beside_len; i++) {
        const sherd__beside *beside = t->beside[i];
        char text[160], n[24];
        bool whole = *beside->unit == '\0' && t->besides[i] == rint(t->besides[i]);
        if (whole) snprintf(n, sizeof n, "%.0f", t->besides[i]);
        int len = snprintf(text, sizeof text, "%s %s%s%s", beside->what,
                           whole ? n : number(t->besides[i], n), *beside->unit ? " " : "",
                           beside->unit);
        bool fits = at > 0 && at + 2 + (size_t)len <= LINE_MAX_LEN;
        printf("%s%s", at == 0 ? "    " : fits ? "; " : ";\n    ", text);
        at = (fits ? at + 2 : 4) + (size_t)len;
    }
    if (at > 0) printf("\n");
}

static void print_table(sherd__bench *b, const result *t)
{
    char m[24] = "-", least[24] = "", most[24] = "", at[32], n[24];
    const sherd__figure *f = t->f;
    if (!b->headed)
        printf("\n%-50s %10s %10s %10s  %-11s %12s  %s\n", "figure", "median", "min", "max", "",
               "target", "reached");
    b->headed = true;
    if (t->len > 0) {
        number(t->median, m);
        number(t->sorted[0], least);
        number(t->sorted[t->len - 1], most);
    }
    snprintf(at, sizeof at, "%s %s", f->better == SHERD__LOWER ? "<=" : ">=", number(f->target, n));
    if (f->target <= 0) snprintf(at, sizeof at, "-");
    printf("%-50s %10s %10s %10s  %-11s %12s  %s\n", t->what, m, least, most, f->unit, at,
           !t->judged   ? "-"
           : t->reached ? "yes"
                        : "NO");
    print_besides(t);
    if (t->remark) printf("    %s\n", t->remark);
    if (*b->path) printf("    %s\n", b->path);
    b->path[0] = '\0'; /* once, with the first figure of a measurement */
    fflush(stdout);
}

static void add_json(sherd__bench *b, const result *t)
{
    json_t *runs = json_array(), *beside = json_object();
    const sherd__figure *f = t->f;
    for (int i = 0; i < t->len; i++) json_array_append_new(runs, json_real(t->runs[i]));
    for (int i = 0; i < t->beside_len; i++)
        json_object_set_new(beside, t->beside[i]->name, json_real(t->besides[i]));
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:s*, s:s*}", "name", f->name,
                          "what", t->what, "unit", f->unit, "better",
                          f->better == SHERD__LOWER ? "lower" : "higher", "target",
                          f->target > 0 ? json_real(f->target) : json_null(), "reached",
                          t->judged ? json_boolean(t->reached) : json_null(), "runs", runs,
                          "beside", beside, "remark", t->remark, "path", *b->path ? b->path : NULL);
    if (t->len > 0) {
        json_object_set_new(o, "median", json_real(t->median));
        json_object_set_new(o, "min", json_real(t->sorted[0]));
        json_object_set_new(o, "max", json_real(t->sorted[t->len - 1]));
    }
    json_array_append_new(b->figures, o);
}

void sherd__bench_report(sherd__bench *b, const sherd__figure *f)
{
    result t;
    compute(b, &t, f);
    if (b->figures) add_json(b, &t);
    else print_table(b, &t);
}

/* ---- turns ----------------------------------------------------------------------------------- */

bool sherd__bench_interrupted(void *ctx)
{
    (void)ctx;
    return sherd__cli_interrupted() != 0;
}

int sherd__bench_go_on(sherd_diag *d)
{
    if (!sherd__bench_interrupted(NULL)) return 0;
    return sherd__fail(d, SHERD_EINTERRUPTED, NULL, "interrupted");
}

int sherd__bench_no_memory(sherd_diag *d)
{
    return sherd__fail_memory_hint(d, "measure the others with --only", "a measurement");
}

int sherd__bench_measure(sherd__bench *b, const sherd__measurement *m, sherd_diag *d)
{
    const sherd__kind *k = m->kind;
    void *state = sherd__calloc(1, k->size);
    if (!state) return sherd__bench_no_memory(d);
    b->turns = b->runs > 0 ? b->runs : !b->quick ? m->runs : m->runs_quick ? m->runs_quick : 2;
    b->without_numpy = false;
    b->data[0] = b->path[0] = '\0';
    memset(b->series, 0, sizeof b->series);
    int err = k->open ? k->open(b, state, m->spec, d) : 0;
    for (int i = k->cold ? 0 : -1; i < (k->whole ? 1 : b->turns) && !err; i++) {
        b->warming = i < 0;
        err = k->turn(b, state, d);
        if (!err) err = sherd__bench_go_on(d);
    }
    b->warming = false;
    if (!err && k->end) err = k->end(b, state, d);
    if (k->close) k->close(state);
    sherd__free(state);
    for (size_t i = 0; i < SHERD__FIGURES_MAX && m->figures[i].name && !err; i++)
        sherd__bench_report(b, &m->figures[i]);
    return err;
}
