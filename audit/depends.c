/*
 * Tests whether a domain's shares depend on the data. An attacker who knows the operand, all of it
 * or every other entry, looks for a trace of it in a share: whether residues are uniform where a
 * block is zero and where it is not, whether they correlate with its entries, and whether a linear
 * fit distinguishes one half of the entries from the other. Given the data, residues of a scheme
 * that hides are uniform and independent, so all p-values are valid.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "audit/modular.h"
#include "audit/stats_internal.h"
#include "audit/tail.h"
#include "audit/uniform.h"
#include "core/alloc.h"

typedef struct looking {
    sherd__findings *l;
    const sherd__seen *s;
    const double *const *blocks;
    size_t n;
    sherd_audit_finding about;
    uint64_t *x;
    double *feature[SHERD__AUDIT_PRIMES];
} looking;

/* Tests residues of the entries where the block is zero, or where it is not. */
static int where(looking *g, const uint32_t *x, uint32_t p, uint32_t block, bool zero)
{
    sherd_audit_finding f = g->about;
    size_t len = 0;
    for (size_t i = 0; i < g->n; i++)
        if ((g->blocks[block][i] == 0) == zero) g->x[len++] = x[i];
    snprintf(f.subject, sizeof f.subject, "%.12s where block %u is %s, prime %u", g->s->name,
             block + 1, zero ? "0" : "not 0", p);
    return sherd__uniform_look(g->l, &f, g->x, len, p, SHERD__LOOK_HIGH | SHERD__LOOK_LOW);
}

/* Tests the correlation of residues around 0 with the block's entries around their mean. */
static int correlation(looking *g, const double *x, uint32_t p, uint32_t block)
{
    const double *a = g->blocks[block], variance = ((double)p * p - 1) / 12;
    double mean = 0, with = 0, squares = 0;
    sherd_audit_finding f = g->about;
    for (size_t i = 0; i < g->n; i++) mean += a[i] / (double)g->n;
    for (size_t i = 0; i < g->n; i++) {
        with += x[i] * (a[i] - mean);
        squares += (a[i] - mean) * (a[i] - mean);
    }
    if (!(squares > 0)) return SHERD_OK;
    double z = with / sqrt(squares * variance);
    f.statistic = "correlation with the data";
    f.value = fabs(z) / sqrt((double)g->n);
    f.chance = 0;
    f.ln_p = sherd__tail_subgaussian(z);
    snprintf(f.subject, sizeof f.subject, "%.12s and block %u, prime %u", g->s->name, block + 1, p);
    snprintf(f.sentence, sizeof f.sentence,
             "%s: residues and data correlate by %.3g over %zu entries (by chance %.2g)", f.subject,
             f.value, g->n, 1 / sqrt((double)g->n));
    return sherd__findings_add(g->l, &f);
}

static int look_share(looking *g, uint32_t share, const sherd__audit_options *opt)
{
    const sherd__seen_code *c = g->s->code;
    uint32_t domain = sherd__seen_domain(g->s, share);
    int err = SHERD_OK;
    g->about = sherd__finding_of("independence", "", false);
    sherd__audit_who(g->about.who, opt, &domain, 1);
    for (uint32_t q = 0; q < c->primes_len && err == 0; q++) {
        const uint32_t *x = sherd__seen_residues(g->s, share, q);
        for (size_t i = 0; i < g->n; i++)
            g->feature[q][i] = (double)sherd__modular_centre(x[i], c->primes[q]);
        for (uint32_t b = 0; b < c->blocks && err == 0; b++) {
            err = where(g, x, c->primes[q], b, true);
            if (err == 0) err = where(g, x, c->primes[q], b, false);
            if (err == 0) err = correlation(g, g->feature[q], c->primes[q], b);
        }
    }
    if (err != 0) return err;
    snprintf(g->about.subject, sizeof g->about.subject, "%.12s, half of it known", g->s->name);
    return sherd__audit_linear(g->l, &g->about,
                               &(sherd__linear){ (const double *const *)g->feature, c->primes_len,
                                                 g->blocks, c->blocks, g->n });
}

int sherd__audit_independence(sherd__findings *l, const sherd__seen *s, const double *const *blocks,
                              size_t n, const sherd__audit_options *opt, sherd_diag *d)
{
    looking g = { .l = l, .s = s, .blocks = blocks };
    int err = sherd__seen_check(s, d);
    if (err != 0) return err;
    g.n = sherd__audit_sample(opt, s);
    if (n < g.n) g.n = n;
    g.x = sherd__alloc((g.n + 1) * sizeof *g.x);
    if (!g.x) err = SHERD_ENOMEM;
    for (uint32_t q = 0; q < s->code->primes_len && err == 0; q++) {
        g.feature[q] = sherd__alloc((g.n + 1) * sizeof *g.feature[q]);
        if (!g.feature[q]) err = SHERD_ENOMEM;
    }
    for (uint32_t i = 0; i < s->code->shares && err == 0; i++)
        if (sherd__seen_has(s, i)) err = look_share(&g, i, opt);
    for (uint32_t q = 0; q < SHERD__AUDIT_PRIMES; q++) sherd__free(g.feature[q]);
    sherd__free(g.x);
    return err;
}
