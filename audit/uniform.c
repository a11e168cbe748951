/*
 * Uniformity of residues. chi2 is that of the likelihood ratio (2 sum count ln(count/expected))
 * with Williams' correction. Pearson's has too heavy a tail for its distribution if cells have few
 * numbers and p is small (12 times at p = 1e-12 with 8 cells of 32), while the likelihood ratio
 * decays correctly at any distance. Cells have slightly different numbers of residues, since no
 * power of two divides a prime. Expected counts are exact for m; otherwise a large sample would
 * flag a perfect generator.
 */
#include "audit/uniform.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "audit/tail.h"
#include "core/alloc.h"

enum { CELLS = 256, SIDE = 16, EACH = 32, REPEATS_MAX = 65536 };

/* Returns the largest power of two of cells, at most `most`, that leaves EACH of n to each cell; 0:
   fewer than 4. */
static unsigned cells_for(size_t n, uint64_t m, unsigned most)
{
    unsigned b = most;
    while (b > 2 && (n / b < EACH || b > m / 2)) b /= 2;
    return b > 2 ? b : 0;
}

/* Returns how many residues x < m have x*b/m = i. */
static uint64_t in_bin(uint64_t m, unsigned b, unsigned i)
{
    uint64_t from = (i * m + b - 1) / b, to = ((i + 1) * m + b - 1) / b;
    return to - from;
}

/* A chi2 that is accumulated cell by cell. */
typedef struct growing {
    double g;       /* 2 sum count ln(count/expected) */
    double inverse; /* sum 1/probability */
} growing;

static void add_cell(growing *s, size_t count, double n, double chance)
{
    if (count > 0) s->g += 2 * (double)count * log((double)count / (n * chance));
    s->inverse += 1 / chance;
}

/*
 * Counts are integers, so the true lower tail includes at least the probability that all cells are
 * even. Half a step of the lattice is added before the chi2 distribution is evaluated.
 */
static double tail_below(double chi2, double n, double cells)
{
    int sign;
    double each = n / cells;
    double even = lgamma_r(n + 1, &sign) - cells * lgamma_r(each + 1, &sign) - n * log(cells);
    return fmax(sherd__tail_chi2_below(cells - 1, chi2 + 1 / each), even);
}

static sherd__looked judge(const growing *s, double n, unsigned cells)
{
    double df = cells - 1.0, chi2 = s->g / (1 + (s->inverse - 1) / (6 * n * df));
    double above = sherd__tail_chi2_above(df, chi2), below = tail_below(chi2, n, cells);
    return (sherd__looked){
        .value = chi2, .expected = df, .ln_p = sherd__tail_both(above, below), .cells = cells
    };
}

sherd__looked sherd__uniform_high(const uint64_t *x, size_t n, uint64_t m)
{
    unsigned b = cells_for(n, m, CELLS);
    size_t count[CELLS] = { 0 };
    growing s = { 0 };
    if (b == 0) return (sherd__looked){ 0 };
    for (size_t i = 0; i < n; i++) count[x[i] * b / m]++;
    for (unsigned i = 0; i < b; i++)
        add_cell(&s, count[i], (double)n, (double)in_bin(m, b, i) / (double)m);
    return judge(&s, (double)n, b);
}

sherd__looked sherd__uniform_low(const uint64_t *x, size_t n, uint64_t m)
{
    unsigned b = cells_for(n, m, CELLS);
    size_t count[CELLS] = { 0 };
    growing s = { 0 };
    if (b == 0) return (sherd__looked){ 0 };
    for (size_t i = 0; i < n; i++) count[x[i] % b]++;
    for (unsigned i = 0; i < b; i++) {
        uint64_t values = m / b + (i < m % b ? 1 : 0);
        add_cell(&s, count[i], (double)n, (double)values / (double)m);
    }
    return judge(&s, (double)n, b);
}

sherd__looked sherd__uniform_pairs(const uint64_t *x, size_t n, uint64_t m)
{
    size_t pairs = n / 2, count[SIDE * SIDE] = { 0 };
    unsigned b = SIDE;
    growing s = { 0 };
    while (b > 1 && (pairs / (b * b) < EACH || b > m / 2)) b /= 2;
    if (b < 2) return (sherd__looked){ 0 };
    for (size_t i = 0; i < pairs; i++) count[x[2 * i] * b / m * b + x[2 * i + 1] * b / m]++;
    for (unsigned i = 0; i < b * b; i++) {
        double first = (double)in_bin(m, b, i / b) / (double)m;
        double second = (double)in_bin(m, b, i % b) / (double)m;
        add_cell(&s, count[i], (double)pairs, first * second);
    }
    return judge(&s, (double)pairs, b * b);
}

/* Inserts v (not 0) into a table of 2^bits slots with open addressing; returns whether it was
   there. */
static bool put(uint64_t *table, unsigned bits, uint64_t v)
{
    uint64_t mask = (UINT64_C(1) << bits) - 1;
    uint64_t at = v * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits);
    while (table[at] != 0 && table[at] != v) at = (at + 1) & mask;
    bool there = table[at] == v;
    table[at] = v;
    return there;
}

int sherd__uniform_repeats(const uint64_t *x, size_t n, uint64_t m, sherd__looked *out)
{
    unsigned bits = 4;
    size_t repeats = 0;
    if (n > REPEATS_MAX) n = REPEATS_MAX;
    while ((UINT64_C(1) << bits) < 2 * n) bits++;
    uint64_t *table = sherd__calloc((size_t)1 << bits, sizeof *table);
    if (!table) return SHERD_ENOMEM;
    for (size_t i = 0; i < n; i++) repeats += put(table, bits, x[i] + 1);
    sherd__free(table);
    double mean = n < 2 ? 0 : (double)n * (double)(n - 1) / 2 / (double)m;
    *out = (sherd__looked){ .value = (double)repeats, .expected = mean, .cells = 1 };
    /* Poisson's tail bounds that of the number of repeats only above the mean + 1. */
    if ((double)repeats > mean + 1) out->ln_p = sherd__tail_poisson(repeats, mean);
    return SHERD_OK;
}

sherd__looked sherd__uniform_small(const uint64_t *x, size_t n, uint64_t m)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t size = x[i] < m - x[i] ? x[i] : m - x[i];
        sum -= log((double)(2 * size + 1) / (double)m);
    }
    return (sherd__looked){ .value = n > 0 ? sum / (double)n : 0,
                            .expected = 1,
                            .ln_p = n > 0 ? sherd__tail_gamma_above((double)n, sum) : 0,
                            .cells = 1 };
}

/* ---- findings -------------------------------------------------------------------------------- */

static int note(sherd__findings *l, const sherd_audit_finding *about, const char *statistic,
                const sherd__looked *r, const char *what)
{
    sherd_audit_finding f = *about;
    if (r->cells == 0) return SHERD_OK;
    f.statistic = statistic;
    f.value = r->value;
    f.chance = r->expected;
    f.low = f.high = (double)NAN;
    f.ln_p = r->ln_p;
    snprintf(f.sentence, sizeof f.sentence, "%s: %s is %.6g where chance gives %.6g", f.subject,
             what, r->value, r->expected);
    return sherd__findings_add(l, &f);
}

int sherd__uniform_look(sherd__findings *l, const sherd_audit_finding *about, const uint64_t *x,
                        size_t n, uint64_t m, unsigned looks)
{
    sherd__looked r = { 0 };
    int err = SHERD_OK;
    if ((looks & SHERD__LOOK_HIGH) != 0) {
        r = sherd__uniform_high(x, n, m);
        err = note(l, about, "chi2 of high bits", &r, "chi2 of the high bits");
    }
    if (err == 0 && (looks & SHERD__LOOK_LOW) != 0) {
        r = sherd__uniform_low(x, n, m);
        err = note(l, about, "chi2 of low bits", &r, "chi2 of the low bits");
    }
    if (err == 0 && (looks & SHERD__LOOK_PAIRS) != 0) {
        r = sherd__uniform_pairs(x, n, m);
        err = note(l, about, "chi2 of pairs", &r, "chi2 of pairs of neighbours");
    }
    if (err == 0 && (looks & SHERD__LOOK_REPEATS) != 0) {
        err = sherd__uniform_repeats(x, n, m, &r);
        if (err == 0) err = note(l, about, "repeats", &r, "number of values seen before");
    }
    if (err == 0 && (looks & SHERD__LOOK_SMALL) != 0) {
        r = sherd__uniform_small(x, n, m);
        err = note(l, about, "smallness", &r, "mean of -ln of the distance from 0");
    }
    return err;
}

int sherd__uniform_guess(sherd__findings *l, const sherd_audit_finding *about, const uint64_t *x,
                         const uint64_t *guess, size_t n, uint64_t m)
{
    uint64_t right = 0;
    for (size_t i = 0; i < n; i++) right += x[i] == guess[i];
    sherd__looked r = { .value = (double)right,
                        .expected = (double)n / (double)m,
                        .ln_p = sherd__tail_binomial(right, n, 1 / (double)m),
                        .cells = 1 };
    return note(l, about, "entries as guessed", &r, "number of entries as guessed from the data");
}
