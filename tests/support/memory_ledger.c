/* Linear lists, searched from their ends. */
#include "tests/support/memory_ledger.h"

#include <math.h>
#include <string.h>

const sherd__policy policy_of_tests = { .nodes_min = 3,
                                        .colluding_min = 1,
                                        .rows_min = 1,
                                        .rounds_max = UINT64_MAX,
                                        .rounds_day = UINT64_MAX,
                                        .epsilon = INFINITY,
                                        .delta = 1e-6,
                                        .any_peers = true };

static double spent(void *ctx, uint64_t first, uint64_t rows)
{
    const memory_ledger *l = ctx;
    double most = 0;
    for (uint64_t place = first; place < first + rows && l->len; place++) {
        double sum = 0;
        for (size_t i = 0; i < l->len; i++)
            if (place - l->charges[i].first < l->charges[i].rows) sum += l->charges[i].rho;
        most = sum > most ? sum : most;
    }
    return most;
}

static uint64_t rounds(void *ctx, const uint8_t *coordinator, uint64_t job)
{
    const memory_ledger *l = ctx;
    uint64_t n = 0;
    for (size_t i = 0; i < l->len; i++)
        n += l->charges[i].job == job &&
             !memcmp(l->charges[i].coordinator, coordinator, SHERD__LEDGER_DIGEST);
    return n;
}

static uint64_t today(void *ctx, const uint8_t *coordinator)
{
    const memory_ledger *l = ctx;
    uint64_t n = 0;
    if (!coordinator) return l->today;
    for (size_t i = l->len - (size_t)l->today; i < l->len; i++)
        n += memcmp(l->charges[i].coordinator, coordinator, SHERD__LEDGER_DIGEST) == 0;
    return n;
}

static sherd__charged charged(void *ctx, const uint8_t about[SHERD__LEDGER_DIGEST])
{
    const memory_ledger *l = ctx;
    sherd__charged out = { 0 };
    for (size_t i = l->len; i-- > 0 && !out.keys;)
        if (!memcmp(l->charges[i].about, about, SHERD__LEDGER_DIGEST))
            out = (sherd__charged){ .keys = l->keys[i],
                                    .nodes = l->charges[i].nodes,
                                    .threshold = l->charges[i].threshold };
    for (size_t i = 0; i < l->binds; i++)
        if (!memcmp(l->bound[i][0], about, SHERD__LEDGER_DIGEST)) out.opened = l->bound[i][1];
    return out;
}

static int charge(void *ctx, const sherd__charge *c, sherd_diag *d)
{
    memory_ledger *l = ctx;
    (void)d;
    if (l->named) return SHERD_EEXPOSURE;
    if (l->full || l->len == MEMORY_LEDGER_MAX || c->nodes > 16) return SHERD_EIO;
    l->charges[l->len] = *c;
    memcpy(l->keys[l->len++], c->keys, c->nodes * sizeof *c->keys);
    l->today++;
    return SHERD_OK;
}

static int bind_to(void *ctx, const uint8_t about[SHERD__LEDGER_DIGEST],
                   const uint8_t members[SHERD__LEDGER_DIGEST], sherd_diag *d)
{
    memory_ledger *l = ctx;
    (void)d;
    const sherd__charged was = charged(ctx, about);
    if (was.opened)
        return memcmp(was.opened, members, SHERD__LEDGER_DIGEST) ? SHERD_EEXPOSURE : SHERD_OK;
    if (l->full || l->binds == MEMORY_LEDGER_MAX) return SHERD_EIO;
    memcpy(l->bound[l->binds][0], about, SHERD__LEDGER_DIGEST);
    memcpy(l->bound[l->binds++][1], members, SHERD__LEDGER_DIGEST);
    return SHERD_OK;
}

static const sherd__ledger_ops ops = { spent, rounds, today, charged, charge, bind_to };

sherd__ledger_ref memory_ledger_ref(memory_ledger *l)
{
    return (sherd__ledger_ref){ &ops, l };
}
