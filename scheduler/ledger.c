/*
 * Two bit sets per domain, (slot, panel) of A and (slot, tile) of B, and the sums of the entries they
 * stand for. Repeated sends of what a domain has already seen cost nothing; everything else counts
 * for good, also what was sent to a node that died before it could answer.
 */
#include "scheduler/ledger.h"

#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"

typedef struct account {
    uint8_t *left, *right; /* bit sets */
    uint64_t a, b;
} account;

struct sherd_ledger {
    sherd__hiding hiding;
    sherd__scheme_shape shape;
    uint32_t domains;
    uint64_t total_a, total_b;
    double max_fraction;      /* as given; 0: from the plan */
    uint32_t *domain_of_slot;
    double bound_a, bound_b;
    size_t left_bytes, right_bytes;
    account *accounts;
    uint8_t *bits;
    uint64_t *sums; /* scratch: two per domain */
};

static bool bit(const uint8_t *set, size_t i)
{
    return set[i / 8] >> (i % 8) & 1;
}

static size_t left_index(const sherd_ledger *l, sherd__cell c)
{
    return (size_t)c.slot * l->shape.panels + c.panel;
}

static size_t right_index(const sherd_ledger *l, sherd__cell c)
{
    return (l->shape.shared ? 0 : (size_t)c.slot * l->shape.tiles) + c.tile;
}

static double fraction(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

/* Entries of the operands: every entry of A is in one (slot, panel), of B in one (slot, tile). */
static void totals(sherd_ledger *l)
{
    uint64_t a, b;
    l->total_a = l->total_b = 0;
    for (uint32_t s = 0; s < l->shape.slots; s++) {
        for (uint32_t p = 0; p < l->shape.panels; p++) {
            l->hiding.ops->entries(l->hiding.ctx, (sherd__cell){ s, 0, p }, &a, &b);
            l->total_a += a;
        }
        for (uint32_t t = 0; t < l->shape.tiles && (s == 0 || !l->shape.shared); t++) {
            l->hiding.ops->entries(l->hiding.ctx, (sherd__cell){ s, t, 0 }, &a, &b);
            l->total_b += b;
        }
    }
}

/* The largest share of an operand that the plan itself gives one domain. */
static void planned(sherd_ledger *l, double *a, double *b)
{
    uint64_t *sum = l->sums, one, both;
    memset(sum, 0, 2 * (size_t)l->domains * sizeof *sum);
    *a = *b = 0;
    for (uint32_t s = 0; s < l->shape.slots; s++) {
        uint64_t *of = sum + 2 * (size_t)l->domain_of_slot[s];
        for (uint32_t p = 0; p < l->shape.panels; p++) {
            l->hiding.ops->entries(l->hiding.ctx, (sherd__cell){ s, 0, p }, &one, &both);
            of[0] += one;
        }
        for (uint32_t t = 0; t < l->shape.tiles; t++) {
            l->hiding.ops->entries(l->hiding.ctx, (sherd__cell){ s, t, 0 }, &one, &both);
            of[1] += both;
        }
        if (l->shape.shared) of[1] = l->total_b; /* every slot shows the same block */
    }
    for (uint32_t d = 0; d < l->domains; d++) {
        double fa = fraction(sum[2 * d], l->total_a), fb = fraction(sum[2 * d + 1], l->total_b);
        if (fa > *a) *a = fa;
        if (fb > *b) *b = fb;
    }
}

/* The bound is a fraction of whole operands: with fewer rows than planned it may be another one. */
static void set_bounds(sherd_ledger *l)
{
    double a, b;
    totals(l);
    planned(l, &a, &b);
    l->bound_a = l->max_fraction > 0 ? l->max_fraction : 2 * a;
    l->bound_b = l->max_fraction > 0 ? l->max_fraction : 2 * b;
}

int sherd__ledger_new(sherd_ledger **out, const sherd__ledger_options *opt)
{
    *out = NULL;
    sherd_ledger *l = sherd__calloc(1, sizeof *l);
    if (!l) return SHERD_ENOMEM;
    l->hiding = *opt->hiding;
    l->hiding.ops->shape(l->hiding.ctx, &l->shape);
    l->domains = opt->domains;
    l->max_fraction = opt->max_fraction;
    l->left_bytes = ((size_t)l->shape.slots * l->shape.panels + 7) / 8;
    l->right_bytes = ((size_t)l->shape.slots * l->shape.tiles + 7) / 8;
    l->accounts = sherd__calloc(l->domains, sizeof *l->accounts);
    l->bits = sherd__calloc(l->domains, l->left_bytes + l->right_bytes);
    l->sums = sherd__calloc(2 * (size_t)l->domains, sizeof *l->sums);
    l->domain_of_slot = sherd__calloc(l->shape.slots, sizeof *l->domain_of_slot);
    if (!l->accounts || !l->bits || !l->sums || !l->domain_of_slot) {
        sherd__ledger_free(l);
        return SHERD_ENOMEM;
    }
    memcpy(l->domain_of_slot, opt->domain_of_slot, l->shape.slots * sizeof *l->domain_of_slot);
    for (uint32_t d = 0; d < l->domains; d++) {
        l->accounts[d].left = l->bits + d * (l->left_bytes + l->right_bytes);
        l->accounts[d].right = l->accounts[d].left + l->left_bytes;
    }
    set_bounds(l);
    *out = l;
    return SHERD_OK;
}

void sherd__ledger_free(sherd_ledger *l)
{
    if (!l) return;
    sherd__free(l->accounts);
    sherd__free(l->bits);
    sherd__free(l->sums);
    sherd__free(l->domain_of_slot);
    sherd__free(l);
}

/* What the cell would add to the domain's account. */
static void added(const sherd_ledger *l, uint32_t domain, sherd__cell cell, uint64_t *a, uint64_t *b)
{
    const account *acc = &l->accounts[domain];
    l->hiding.ops->entries(l->hiding.ctx, cell, a, b);
    if (bit(acc->left, left_index(l, cell))) *a = 0;
    if (bit(acc->right, right_index(l, cell))) *b = 0;
}

bool sherd__ledger_may(const sherd_ledger *l, uint32_t domain, sherd__cell cell)
{
    uint64_t a, b;
    added(l, domain, cell, &a, &b);
    const account *acc = &l->accounts[domain];
    /* What is no new entry is always allowed; the bound is a fraction of whole entries. */
    return (a == 0 || (double)(acc->a + a) <= l->bound_a * (double)l->total_a + 0.5) &&
           (b == 0 || (double)(acc->b + b) <= l->bound_b * (double)l->total_b + 0.5);
}

int sherd__ledger_give(sherd_ledger *l, uint32_t domain, sherd__cell cell)
{
    uint64_t a, b;
    if (!sherd__ledger_may(l, domain, cell)) return SHERD_EEXPOSURE;
    added(l, domain, cell, &a, &b);
    account *acc = &l->accounts[domain];
    acc->a += a;
    acc->b += b;
    size_t left = left_index(l, cell), right = right_index(l, cell);
    acc->left[left / 8] |= (uint8_t)(1 << left % 8);
    acc->right[right / 8] |= (uint8_t)(1 << right % 8);
    return SHERD_OK;
}

void sherd__ledger_next_left(sherd_ledger *l)
{
    l->hiding.ops->shape(l->hiding.ctx, &l->shape); /* it may have fewer panels */
    set_bounds(l);
    for (uint32_t d = 0; d < l->domains; d++) {
        memset(l->accounts[d].left, 0, l->left_bytes);
        l->accounts[d].a = 0;
    }
}

double sherd__ledger_fraction(const sherd_ledger *l, uint32_t domain, int which)
{
    const account *acc = &l->accounts[domain];
    return which ? fraction(acc->b, l->total_b) : fraction(acc->a, l->total_a);
}

double sherd__ledger_bound(const sherd_ledger *l, int which)
{
    return which ? l->bound_b : l->bound_a;
}
