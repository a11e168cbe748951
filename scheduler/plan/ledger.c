/*
 * Clear schemes: a bit set of (slot, panel) per domain for operand A, and an account for operand B,
 * which may outlive the job. Sending data again that a domain has already seen costs nothing.
 * Everything else counts permanently, including data sent to a node that failed before it answered.
 * Coded schemes: the share that each domain holds.
 */
#include "scheduler/plan/ledger.h"

#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"

/* Entries of operand A given to one domain. */
typedef struct given {
    uint8_t *left; /* bit set */
    uint64_t a;
} given;

struct sherd__exposure_ledger {
    sherd__hiding hiding;
    sherd__scheme_shape shape;
    uint32_t domains;
    uint64_t total_a, total_b;
    double max_fraction; /* as given; 0: derived from the plan */
    uint32_t *domain_of_slot;
    double bound_a, bound_b;
    double share_a; /* largest share of A that the plan gives to a domain, and that domain */
    uint32_t domain_a;
    size_t left_bytes;
    given *given; /* by domain */
    uint8_t *bits;
    uint64_t *sums;           /* scratch: two per domain */
    uint64_t *right_from;     /* by slot and tile: number of entries in the slot's earlier
                                      tiles */
    uint64_t *right_all;      /* by slot: number of entries in all its tiles */
    uint64_t *before, *whole; /* by slot, if B is a part of an operand; otherwise NULL */
    sherd__exposure_account *own, *account; /* of B: created here; the one in use */
    unsigned side;
    uint32_t *share_of; /* threshold: by domain, the slot whose share it was given, or NOTHING */
    uint32_t *holder;   /* by slot, the domain that holds it */
};

#define NOTHING UINT32_MAX

static bool bit(const uint8_t *set, size_t i)
{
    return set[i / 8] >> (i % 8) & 1;
}

static size_t left_index(const sherd__exposure_ledger *l, sherd__cell c)
{
    return (size_t)c.slot * l->shape.panels + c.panel;
}

static uint32_t right_slot(const sherd__exposure_ledger *l, uint32_t slot)
{
    return l->shape.shared ? 0 : slot;
}

static double fraction(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

/* Counts the entries of the operands: every entry of A is in one (slot, panel), every entry of B in
 * one (slot, tile). */
static void totals(sherd__exposure_ledger *l)
{
    uint64_t a, b;
    l->total_a = l->total_b = 0;
    for (uint32_t s = 0; s < l->shape.slots; s++) {
        uint64_t before = 0;
        for (uint32_t p = 0; p < l->shape.panels; p++) {
            l->hiding.ops->entries(l->hiding.ctx, (sherd__cell){ s, 0, p }, &a, &b);
            l->total_a += a;
        }
        for (uint32_t t = 0; t < l->shape.tiles && (s == 0 || !l->shape.shared); t++) {
            l->hiding.ops->entries(l->hiding.ctx, (sherd__cell){ s, t, 0 }, &a, &b);
            l->right_from[(size_t)s * l->shape.tiles + t] = before;
            before += b;
        }
        l->right_all[s] = before;
        if (l->whole && (s == 0 || !l->shape.shared)) before = l->whole[s];
        l->total_b += before;
    }
}

/* Records the shares that the plan gives to the domains. */
static void set_planned(sherd__exposure_ledger *l)
{
    uint64_t *sum = l->sums, one, both;
    memset(sum, 0, 2 * (size_t)l->domains * sizeof *sum);
    l->share_a = 0;
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
        if (l->whole) of[1] = l->total_b ? of[1] - l->right_all[s] + l->whole[s] : 0;
        if (l->shape.shared) of[1] = l->total_b; /* all slots use the same block */
    }
    for (uint32_t d = 0; d < l->domains; d++) {
        double share = fraction(sum[2 * d], l->total_a);
        if (share > l->share_a) l->share_a = share, l->domain_a = d;
        sherd__exposure_account_plan(l->account, l->side, d, fraction(sum[2 * d + 1], l->total_b));
    }
}

/* Sets the bounds, which are fractions of whole operands: they may change if A has fewer rows than
 * planned. */
static void set_bounds(sherd__exposure_ledger *l)
{
    uint32_t domain;
    totals(l);
    set_planned(l);
    l->bound_a = l->bound_b = l->max_fraction;
    if (l->max_fraction > 0) return;
    l->bound_a = 2 * sherd__ledger_planned(l, 0, &domain);
    l->bound_b = 2 * sherd__ledger_planned(l, 1, &domain);
}

static int set_up_shares(sherd__exposure_ledger *l)
{
    l->share_of = sherd__alloc(l->domains * sizeof *l->share_of);
    l->holder = sherd__alloc(l->shape.slots * sizeof *l->holder);
    if (!l->share_of || !l->holder) return SHERD_ENOMEM;
    for (uint32_t d = 0; d < l->domains; d++) l->share_of[d] = NOTHING;
    for (uint32_t s = 0; s < l->shape.slots; s++) l->holder[s] = NOTHING;
    return SHERD_OK;
}

int sherd__ledger_new(sherd__exposure_ledger **out, const sherd__ledger_options *opt)
{
    *out = NULL;
    sherd__exposure_ledger *l = sherd__calloc(1, sizeof *l);
    if (!l) return SHERD_ENOMEM;
    l->hiding = *opt->hiding;
    l->hiding.ops->shape(l->hiding.ctx, &l->shape);
    l->domains = opt->domains;
    l->max_fraction = opt->max_fraction;
    l->left_bytes = ((size_t)l->shape.slots * l->shape.panels + 7) / 8;
    l->given = sherd__calloc(l->domains, sizeof *l->given);
    l->bits = sherd__calloc(l->domains, l->left_bytes);
    l->sums = sherd__calloc(2 * (size_t)l->domains, sizeof *l->sums);
    l->domain_of_slot = sherd__calloc(l->shape.slots, sizeof *l->domain_of_slot);
    l->right_from = sherd__calloc((size_t)l->shape.slots * l->shape.tiles, sizeof *l->right_from);
    l->right_all = sherd__calloc(l->shape.slots, sizeof *l->right_all);
    if (!l->given || !l->bits || !l->sums || !l->domain_of_slot || !l->right_from ||
        !l->right_all || sherd__exposure_account_new(&l->own, l->domains, l->shape.slots)) {
        sherd__ledger_free(l);
        return SHERD_ENOMEM;
    }
    if (l->shape.threshold && set_up_shares(l)) {
        sherd__ledger_free(l);
        return SHERD_ENOMEM;
    }
    memcpy(l->domain_of_slot, opt->domain_of_slot, l->shape.slots * sizeof *l->domain_of_slot);
    for (uint32_t d = 0; d < l->domains; d++) l->given[d].left = l->bits + d * l->left_bytes;
    l->account = l->own;
    set_bounds(l);
    *out = l;
    return SHERD_OK;
}

int sherd__ledger_follow(sherd__exposure_ledger *l, sherd__exposure_account *account, unsigned side,
                         const sherd__ledger_whole *whole)
{
    size_t slots = l->shape.slots;
    if (whole) {
        l->before = sherd__alloc(2 * slots * sizeof *l->before);
        if (!l->before) return SHERD_ENOMEM;
        l->whole = l->before + slots;
        memcpy(l->before, whole->before, slots * sizeof *l->before);
        memcpy(l->whole, whole->all, slots * sizeof *l->whole);
        l->max_fraction = whole->max_fraction;
    }
    l->account = account;
    l->side = side;
    set_bounds(l);
    return SHERD_OK;
}

void sherd__ledger_free(sherd__exposure_ledger *l)
{
    if (!l) return;
    sherd__exposure_account_free(l->own);
    sherd__free(l->given);
    sherd__free(l->bits);
    sherd__free(l->sums);
    sherd__free(l->domain_of_slot);
    sherd__free(l->right_from);
    sherd__free(l->right_all);
    sherd__free(l->before);
    sherd__free(l->share_of);
    sherd__free(l->holder);
    sherd__free(l);
}

/* Returns the start of the range of the slot's entries of B that the cell shows, and sets *len to
 * the size of its block. If B is a part of an operand, all entries of the part are counted at once,
 * because overlapping parts may be shuffled differently. */
static uint64_t right_from(const sherd__exposure_ledger *l, sherd__cell c, uint64_t *len)
{
    uint32_t slot = right_slot(l, c.slot);
    if (!l->before) return l->right_from[(size_t)slot * l->shape.tiles + c.tile];
    *len = l->right_all[slot];
    return l->before[slot];
}

/* Computes what the cell would add to the domain's account. */
static void added(const sherd__exposure_ledger *l, uint32_t domain, sherd__cell cell, uint64_t *a,
                  uint64_t *b)
{
    l->hiding.ops->entries(l->hiding.ctx, cell, a, b);
    uint64_t from = right_from(l, cell, b);
    if (bit(l->given[domain].left, left_index(l, cell))) *a = 0;
    *b = sherd__exposure_account_unseen(l->account, l->side, domain, right_slot(l, cell.slot), from,
                                        from + *b);
}

/* Limits a sum: a domain that was given rows and columns may have been shown some entries twice,
 * but never more than there are. */
static uint64_t at_most(uint64_t n, uint64_t all)
{
    return n < all ? n : all;
}

/* Returns whether the domain may hold the share. A domain holds one share of an encoding, and a
 * share is held by one domain: two shares in one domain would add a colluder that the plan does not
 * account for. Both are permanent, because data that was sent has been seen. */
static bool may_hold(const sherd__exposure_ledger *l, uint32_t domain, uint32_t slot)
{
    return (l->share_of[domain] == NOTHING || l->share_of[domain] == slot) &&
           (l->holder[slot] == NOTHING || l->holder[slot] == domain);
}

/* Returns whether the domain and the cell of the scheme exist. */
static bool known(const sherd__exposure_ledger *l, uint32_t domain, sherd__cell cell)
{
    return domain < l->domains && cell.slot < l->shape.slots &&
           (l->shape.threshold || (cell.tile < l->shape.tiles && cell.panel < l->shape.panels));
}

bool sherd__ledger_may(const sherd__exposure_ledger *l, uint32_t domain, sherd__cell cell)
{
    uint64_t a, b;
    if (!known(l, domain, cell)) return false;
    if (l->shape.threshold) return may_hold(l, domain, cell.slot);
    added(l, domain, cell, &a, &b);
    uint64_t then_a = l->given[domain].a + a;
    uint64_t then_b = at_most(sherd__exposure_account_seen(l->account, domain) + b, l->total_b);
    /* Entries already shown are always allowed. The bound is rounded to whole entries. */
    return (a == 0 || (double)then_a <= l->bound_a * (double)l->total_a + 0.5) &&
           (b == 0 || (double)then_b <= l->bound_b * (double)l->total_b + 0.5);
}

int sherd__ledger_give(sherd__exposure_ledger *l, uint32_t domain, sherd__cell cell)
{
    uint64_t a, b, from;
    if (!sherd__ledger_may(l, domain, cell)) return SHERD_EEXPOSURE;
    if (l->shape.threshold) {
        l->share_of[domain] = cell.slot;
        l->holder[cell.slot] = domain;
        return SHERD_OK;
    }
    l->hiding.ops->entries(l->hiding.ctx, cell, &a, &b);
    from = right_from(l, cell, &b);
    int err = sherd__exposure_account_show(l->account, l->side, domain, right_slot(l, cell.slot),
                                           from, from + b);
    if (err) return err;
    added(l, domain, cell, &a, &b);
    given *g = &l->given[domain];
    size_t left = left_index(l, cell);
    g->a += a;
    g->left[left / 8] |= (uint8_t)(1 << left % 8);
    return SHERD_OK;
}

void sherd__ledger_next_left(sherd__exposure_ledger *l)
{
    if (l->shape.threshold) return;                 /* the domains keep their shares */
    l->hiding.ops->shape(l->hiding.ctx, &l->shape); /* the next operand may have fewer panels */
    set_bounds(l);
    for (uint32_t d = 0; d < l->domains; d++) {
        memset(l->given[d].left, 0, l->left_bytes);
        l->given[d].a = 0;
    }
}

double sherd__ledger_fraction(const sherd__exposure_ledger *l, uint32_t domain, int which)
{
    if (!which || l->shape.paired) return fraction(l->given[domain].a, l->total_a);
    return fraction(at_most(sherd__exposure_account_seen(l->account, domain), l->total_b),
                    l->total_b);
}

double sherd__ledger_bound(const sherd__exposure_ledger *l, int which)
{
    return which && !l->shape.paired ? l->bound_b : l->bound_a;
}

double sherd__ledger_fits(const sherd__exposure_ledger *l, int which)
{
    uint64_t all = which && !l->shape.paired ? l->total_b : l->total_a;
    return sherd__ledger_bound(l, which) + (all ? 0.5 / (double)all : 0);
}

double sherd__ledger_planned(const sherd__exposure_ledger *l, int which, uint32_t *domain)
{
    if (l->shape.paired) which = 0;
    double most = which ? 0 : l->share_a;
    *domain = which ? 0 : l->domain_a;
    for (uint32_t d = 0; which && d < l->domains; d++) {
        double share = sherd__exposure_account_planned(l->account, d);
        if (share > most) most = share, *domain = d;
    }
    return most;
}
