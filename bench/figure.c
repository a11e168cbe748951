/*
 * Figures: the median of several runs with the minimum and the maximum, compared with a target. The
 * target applies to the median, never to the best run.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

void sherd__figure_add(sherd__figure *f, double value)
{
    if (f->len < SHERD__BENCH_RUNS_MAX) f->values[f->len++] = value;
}

void sherd__figure_beside(sherd__figure *f, const char *name, const char *what, double value,
                          const char *unit)
{
    if (f->beside_len < SHERD__BESIDE_MAX)
        f->beside[f->beside_len++] = (sherd__beside){ name, what, value, unit };
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

/* Formats v with three significant digits, without exponent. */
static const char *number(double v, char out[24])
{
    double a = fabs(v);
    snprintf(out, 24, "%.*f", a >= 99.5 || a == 0 ? 0 : a >= 9.95 ? 1 : a >= 0.0995 ? 2 : 4, v);
    return out;
}

static const char *bound(const sherd__figure *f, char out[32])
{
    char n[24];
    snprintf(out, 32, "%s %s", f->better == SHERD__LOWER ? "<=" : ">=", number(f->target, n));
    return out;
}

static bool reached(const sherd__figure *f, double median)
{
    return f->better == SHERD__LOWER ? median <= f->target : median >= f->target;
}

static void tell_table(sherd__bench *b, const sherd__figure *f, const double *sorted, double median)
{
    char m[24] = "-", least[24] = "", most[24] = "", at[32];
    if (!b->headed)
        printf("\n%-50s %10s %10s %10s  %-11s %12s  %s\n", "figure", "median", "min", "max", "",
               "target", "reached");
    b->headed = true;
    if (f->len > 0) {
        number(median, m);
        number(sorted[0], least);
        number(sorted[f->len - 1], most);
    }
    printf("%-50s %10s %10s %10s  %-11s %12s  %s\n", f->what, m, least, most, f->unit, bound(f, at),
           f->len == 0 || b->quick ? "-"
           : reached(f, median)    ? "yes"
                                   : "NO");
    for (int i = 0; i < f->beside_len; i++)
        printf("%s%s %s %s%s", i == 0 ? "    " : "; ", f->beside[i].what,
               number(f->beside[i].value, m), f->beside[i].unit,
               i + 1 == f->beside_len ? "\n" : "");
    if (f->remark) printf("    %s\n", f->remark);
    fflush(stdout);
}

static void tell_json(sherd__bench *b, const sherd__figure *f, const double *sorted, double median)
{
    json_t *runs = json_array(), *beside = json_object(), *judged;
    for (int i = 0; i < f->len; i++) json_array_append_new(runs, json_real(f->values[i]));
    for (int i = 0; i < f->beside_len; i++)
        json_object_set_new(beside, f->beside[i].name, json_real(f->beside[i].value));
    judged = f->len == 0 || b->quick ? json_null() : json_boolean(reached(f, median));
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:f, s:o, s:o, s:o, s:s*}", "name", f->name, "what",
                          f->what, "unit", f->unit, "better",
                          f->better == SHERD__LOWER ? "lower" : "higher", "target", f->target,
                          "reached", judged, "runs", runs, "beside", beside, "remark", f->remark);
    if (f->len > 0) {
        json_object_set_new(o, "median", json_real(median));
        json_object_set_new(o, "min", json_real(sorted[0]));
        json_object_set_new(o, "max", json_real(sorted[f->len - 1]));
    }
    json_array_append_new(b->figures, o);
}

void sherd__bench_tell(sherd__bench *b, const sherd__figure *f)
{
    double sorted[SHERD__BENCH_RUNS_MAX];
    memcpy(sorted, f->values, sizeof sorted);
    double median = sherd__median(sorted, f->len);
    if (f->median > 0) median = f->median;
    if (b->figures) tell_json(b, f, sorted, median);
    else tell_table(b, f, sorted, median);
}
