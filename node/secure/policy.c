/* The owner's rules. The texts are sent to coordinators: they contain policy numbers only. */
#include "node/secure/policy.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/diag.h"

/* Returns whether a round of an epoch, also the last one, has too few places. */
static bool few_rows(const sherd__policy *p, const sherd__secure_plan *plan)
{
    uint64_t last = plan->places % plan->rows;
    return plan->rows < p->rows_min || (last > 0 && last < p->rows_min);
}

int sherd__policy_join(const sherd__policy *p, const sherd__secure_plan *plan, bool peers,
                       sherd_diag *d)
{
    if (!peers && !p->any_peers)
        return sherd__fail(d, SHERD_EREFUSED, NULL,
                           "policy: this node has no list of its peers "
                           "(--peers), and takes part in no sum without one");
    if (plan->nodes < p->nodes_min)
        return sherd__fail(d, SHERD_EREFUSED, NULL,
                           "policy: this node takes part in sums of at "
                           "least %u nodes (--min-nodes)",
                           p->nodes_min);
    if (plan->colluding < p->colluding_min)
        return sherd__fail(d, SHERD_EREFUSED, NULL,
                           "policy: this node takes part in sums that "
                           "withstand at least %u colluding nodes (--min-colluding)",
                           p->colluding_min);
    if (few_rows(p, plan))
        return sherd__fail(d, SHERD_EREFUSED, NULL,
                           "policy: this node takes part in rounds of at "
                           "least %" PRIu64 " places of each node, the last of an epoch too "
                           "(--min-rows)",
                           p->rows_min);
    if (p->rows_max && plan->rows > p->rows_max)
        return sherd__fail(d, SHERD_EREFUSED, NULL,
                           "policy: this node takes part in rounds of at "
                           "most %" PRIu64 " places of each node (--max-rows)",
                           p->rows_max);
    if (isfinite(p->epsilon) && !(plan->noise > 0))
        return sherd__fail(d, SHERD_EREFUSED, NULL,
                           "policy: this node takes part in sums with "
                           "noise only (--epsilon)");
    return SHERD_OK;
}

static int refused(sherd_diag *d, const char *why)
{
    return sherd__fail(d, SHERD_EEXPOSURE, NULL, "policy: %s", why);
}

static int unwritten(sherd_diag *d)
{
    return sherd__fail(d, SHERD_EIO, NULL, "policy: this node cannot write its ledger");
}

static const char other_members[] =
    "this node has given the same sum to other members (--any-roster)";

/* Returns whether all of a are in b; both ascend. */
static bool is_part(const uint8_t (*a)[SHERD__LEDGER_DIGEST], uint32_t a_len,
                    const uint8_t (*b)[SHERD__LEDGER_DIGEST], uint32_t b_len)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < b_len && at < a_len; i++) at += !memcmp(a[at], b[i], sizeof *a);
    return at == a_len;
}

int sherd__policy_charge(const sherd__policy *p, double budget, sherd__ledger_ref ledger,
                         const sherd__charge *c, sherd_diag *d)
{
    const sherd__ledger_ops *ops = ledger.ops;
    sherd_diag own = { 0 };
    if (c->rows < p->rows_min)
        return refused(d, "this node gives no round of so few places (--min-rows)");
    if (ops->rounds(ledger.ctx, c->coordinator, c->job) >= p->rounds_max ||
        ops->today(ledger.ctx, c->coordinator) >= p->rounds_max) /* under any job number */
        return refused(d, "this node has given all its rounds to this training, or to this "
                          "coordinator today (--max-rounds)");
    if (ops->today(ledger.ctx, NULL) >= p->rounds_day)
        return refused(d, "this node has given all its rounds of this day (--max-rounds-day)");
    if (ops->spent(ledger.ctx, c->first, c->rows) + c->rho > budget)
        return refused(d, "this node's privacy budget is spent (--epsilon)");
    const sherd__charged was = ops->charged(ledger.ctx, c->about);
    if (was.keys && !p->any_roster &&
        (c->threshold < was.threshold || !is_part(c->keys, c->nodes, was.keys, was.nodes)))
        return refused(d, other_members);
    int err = ops->charge(ledger.ctx, c, &own);
    if (err == SHERD_EEXPOSURE)
        return refused(d, "this node records no more new sets of members today");
    return err ? unwritten(d) : SHERD_OK;
}

int sherd__policy_confirm(const sherd__policy *p, sherd__ledger_ref ledger,
                          const uint8_t about[SHERD__LEDGER_DIGEST],
                          const uint8_t members[SHERD__LEDGER_DIGEST], sherd_diag *d)
{
    const sherd__charged was = ledger.ops->charged(ledger.ctx, about);
    if (was.opened && !p->any_roster && memcmp(was.opened, members, SHERD__LEDGER_DIGEST))
        return refused(d, other_members);
    return SHERD_OK;
}

int sherd__policy_open(const sherd__policy *p, sherd__ledger_ref ledger,
                       const uint8_t about[SHERD__LEDGER_DIGEST],
                       const uint8_t members[SHERD__LEDGER_DIGEST], sherd_diag *d)
{
    sherd_diag own = { 0 };
    int err = ledger.ops->bind(ledger.ctx, about, members, &own);
    if (err == SHERD_EEXPOSURE) return p->any_roster ? SHERD_OK : refused(d, other_members);
    return err ? unwritten(d) : SHERD_OK;
}
