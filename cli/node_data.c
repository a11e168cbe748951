/*
 * A node's own examples and what protects them. A node reads no files, so the ledger is an
 * interface to it (node/secure/policy.h); here it is the file next to the data.
 */
#include "cli/node_data.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/applies.h"
#include "core/diag.h"
#include "core/memory.h"
#include "crypto/privacy.h"

_Static_assert((int)SHERD__LEDGER_DIGEST == (int)SHERD__LEDGER_KEY, "digests of the same size");

/* ---- the ledger's interface ------------------------------------------------------------------ */

static int64_t today(void)
{
    return (int64_t)time(NULL) / 86400;
}

static double spent(void *ctx, uint64_t first, uint64_t rows)
{
    return sherd__ledger_spent(((sherd__node_data *)ctx)->ledger, first, rows);
}

static uint64_t rounds(void *ctx, const uint8_t *coordinator, uint64_t job)
{
    return sherd__ledger_job(((sherd__node_data *)ctx)->ledger, coordinator, job);
}

static uint64_t rounds_today(void *ctx, const uint8_t *coordinator)
{
    return sherd__ledger_since(((sherd__node_data *)ctx)->ledger, today(), coordinator);
}

static sherd__charged charged(void *ctx, const uint8_t about[SHERD__LEDGER_DIGEST])
{
    const sherd__ledger_known k = sherd__ledger_known_of(((sherd__node_data *)ctx)->ledger, about);
    return (sherd__charged){
        .keys = k.keys, .nodes = k.nodes, .threshold = k.threshold, .opened = k.opened
    };
}

static int charge(void *ctx, const sherd__charge *c, sherd_diag *d)
{
    sherd__node_data *x = ctx;
    sherd__ledger_upload u = { .day = today(),
                               .job = c->job,
                               .first = c->first,
                               .rows = c->rows,
                               .rho = c->rho,
                               .keys = c->keys,
                               .nodes = c->nodes,
                               .threshold = c->threshold };
    memcpy(u.about, c->about, sizeof u.about);
    memcpy(u.by, c->coordinator, sizeof u.by);
    pthread_mutex_lock(&x->lock);
    int err = sherd__ledger_charge(x->ledger, &u, d);
    pthread_mutex_unlock(&x->lock);
    return err;
}

static int bind_to(void *ctx, const uint8_t about[SHERD__LEDGER_DIGEST],
                   const uint8_t members[SHERD__LEDGER_DIGEST], sherd_diag *d)
{
    sherd__node_data *x = ctx;
    pthread_mutex_lock(&x->lock);
    int err = sherd__ledger_bind(x->ledger, about, members, d);
    pthread_mutex_unlock(&x->lock);
    return err;
}

static const sherd__ledger_ops ledger_ops = {
    spent, rounds, rounds_today, charged, charge, bind_to
};

/* ---- opening --------------------------------------------------------------------------------- */

static int judge(sherd__cli *cli, sherd_diag *d)
{
    static const char *const ours[] = { "label",          "any-peers", "any-roster",
                                        "epsilon",        "delta",     "ledger",
                                        "require-ledger", "min-nodes", "min-colluding",
                                        "min-rows",       "max-rows",  "max-rounds",
                                        "max-rounds-day", NULL };
    const char *name = sherd__opt_text(cli, "data") ? NULL : sherd__opts_idle(cli, ours);
    return !name ? SHERD_OK
                 : sherd__fail(d, SHERD_EINVAL, "add --data FILE, or leave it out",
                               "--%s has no effect without --data", name);
}

/* Opens the ledger and warns if it is new, because a lost ledger looks like a new one. */
static int open_at(sherd__node_data *x, sherd__cli *cli, const char *path, sherd_diag *d)
{
    int err = sherd__ledger_open(&x->ledger, path, sherd__opt_flag(cli, "require-ledger"), d);
    if (!err && sherd__ledger_made(x->ledger))
        sherd__cli_warn(cli,
                        "%s: made a new privacy ledger, nothing is charged yet; if these data "
                        "have been served before, end this node and put their ledger back",
                        path);
    return err;
}

/* Opens the ledger next to the data file, with links resolved, so that one file has one ledger. */
static int open_ledger(sherd__node_data *x, sherd__cli *cli, const char *data, sherd_diag *d)
{
    const char *path = sherd__opt_text(cli, "ledger");
    char real[PATH_MAX], beside[PATH_MAX + sizeof ".ledger"];
    if (path) return open_at(x, cli, path, d);
    if (!realpath(data, real))
        return sherd__fail(d, SHERD_EOPEN, "name the ledger (--ledger FILE)",
                           "%s: cannot tell where it lies: %s", data, strerror(errno));
    snprintf(beside, sizeof beside, "%s.ledger", real);
    return open_at(x, cli, beside, d);
}

static void read_policy(sherd__policy *p, sherd__cli *cli)
{
    *p = (sherd__policy){ .nodes_min = (uint32_t)sherd__opt_int(cli, "min-nodes"),
                          .colluding_min = (uint32_t)sherd__opt_int(cli, "min-colluding"),
                          .rows_min = (uint64_t)sherd__opt_int(cli, "min-rows"),
                          .rows_max = (uint64_t)sherd__opt_int(cli, "max-rows"),
                          .rounds_max = (uint64_t)sherd__opt_int(cli, "max-rounds"),
                          .rounds_day = (uint64_t)sherd__opt_int(cli, "max-rounds-day"),
                          .epsilon = sherd__opt_real(cli, "epsilon"),
                          .delta = sherd__opt_real(cli, "delta"),
                          .any_peers = sherd__opt_flag(cli, "any-peers"),
                          .any_roster = sherd__opt_flag(cli, "any-roster") };
}

/* The examples are already in memory. */
static void warn_of_memory(sherd__cli *cli, uint64_t budget)
{
    char most[24], has[24];
    uint64_t there = sherd__memory_available();
    if (budget > there)
        sherd__cli_warn(cli,
                        "--memory (%s) is more than the %s that are available beside the "
                        "data: what is refused for want of memory may tell how many examples "
                        "there are",
                        sherd__cli_bytes(budget, most), sherd__cli_bytes(there, has));
}

int sherd__node_data_open(sherd__node_data *x, sherd__cli *cli, sherd__node_options *o,
                          sherd_diag *d)
{
    const char *data = sherd__opt_text(cli, "data");
    *x = (sherd__node_data){ .lock = PTHREAD_MUTEX_INITIALIZER };
    int err = judge(cli, d);
    o->peers_file = sherd__opt_text(cli, "peers");
    if (err || !data) return err;
    err = sherd__own_load(&x->own, data, sherd__opt_text(cli, "label"), d);
    if (!err) err = open_ledger(x, cli, data, d);
    if (err) return err;
    read_policy(&x->policy, cli);
    o->data = &x->own.own;
    o->policy = &x->policy;
    o->ledger = (sherd__ledger_ref){ &ledger_ops, x };
    if (!o->peers_file && !x->policy.any_peers)
        sherd__cli_warn(cli, "--data without --peers: this node takes part in no sum (--any-peers "
                             "would let a coordinator name anybody)");
    if (!isfinite(x->policy.epsilon))
        sherd__cli_warn(cli,
                        "--epsilon none: this node takes part in rounds without noise; "
                        "--min-rows counts places, empty ones too, so that such a round may hold "
                        "few examples, or one, and its sum show them");
    warn_of_memory(cli, o->memory);
    return SHERD_OK;
}

void sherd__node_data_close(sherd__node_data *x)
{
    sherd__ledger_close(x->ledger);
    sherd__own_close(&x->own);
}

/* ---- reports --------------------------------------------------------------------------------- */

static sherd__ledger_sum sum_of(sherd__node_data *x)
{
    pthread_mutex_lock(&x->lock);
    sherd__ledger_sum sum = sherd__ledger_all(x->ledger);
    pthread_mutex_unlock(&x->lock);
    return sum;
}

static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

json_t *sherd__node_data_json(sherd__node_data *x)
{
    sherd__ledger_sum sum = sum_of(x);
    return json_pack("{s:I, s:o, s:o, s:f}", "uploads", (json_int_t)sum.uploads, "epsilon",
                     number(sherd__privacy_epsilon(sum.rho, x->policy.delta)), "epsilon_max",
                     number(x->policy.epsilon), "delta", x->policy.delta);
}

void sherd__node_data_say(sherd__cli *cli, sherd__node_data *x)
{
    sherd__ledger_sum sum = sum_of(x);
    double epsilon = sherd__privacy_epsilon(sum.rho, x->policy.delta);
    char most[32] = "no bound";
    if (isfinite(x->policy.epsilon)) snprintf(most, sizeof most, "%.4g", x->policy.epsilon);
    if (isfinite(epsilon))
        sherd__cli_say(cli, "privacy spent so far: epsilon %.4g of %s at delta %g, in %llu uploads",
                       epsilon, most, x->policy.delta, (unsigned long long)sum.uploads);
    else
        sherd__cli_say(cli,
                       "privacy spent so far: no bound, rounds without noise were among the "
                       "%llu uploads",
                       (unsigned long long)sum.uploads);
}
