/*
 * A node's own examples and what protects them. A node reads no files, so the ledger is an
 * interface to it (node/secure/policy.h); here it is a file.
 */
#include "lib/node_data.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/memory.h"
#include "core/options.h"
#include "crypto/privacy.h"
#include "matrix/view.h"
#include "scheduler/plan/plan.h"

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

sherd__ledger_ref sherd__node_data_ledger(sherd__node_data *x)
{
    return (sherd__ledger_ref){ &ledger_ops, x };
}

/* ---- opening --------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void warn(const sherd_hooks *hooks, const char *fmt,
                                                       ...)
{
    char text[PATH_MAX + 320];
    va_list ap;
    if (!hooks->log) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    hooks->log(hooks->ctx, SHERD_LOG_WARN, text);
}

/* Copies one view: the caller's memory may change, and be slower to read in places. */
static int copy_view(sherd_view v, const char *name, sherd_view *out, void **bytes, sherd_diag *d)
{
    size_t len;
    int err = sherd__view_check(v, name, d);
    if (err) return err;
    double *x = sherd__mul(v.rows, v.cols, &len) && sherd__mul(len, sizeof *x, &len)
                    ? sherd__alloc_large(len)
                    : NULL;
    if (!x) return sherd__fail_memory(d, "a copy of %s", name);
    sherd__view_dense_f64(v, x, v.cols);
    *out = sherd_view_c(x, SHERD_F64, v.rows, v.cols);
    *bytes = x;
    return SHERD_OK;
}

static int copy_examples(sherd__own_data *own, const sherd_node_data *o, sherd_diag *d)
{
    if (o->examples.rows == 0) return sherd__fail(d, SHERD_ESHAPE, NULL, "there are no examples");
    if (o->targets.data && o->targets.rows != o->examples.rows)
        return sherd__fail(d, SHERD_ESHAPE, NULL, "there are %zu examples and %zu targets",
                           o->examples.rows, o->targets.rows);
    int err = copy_view(o->examples, "examples", &own->own.x, &own->members[0], d);
    if (!err && o->targets.data)
        err = copy_view(o->targets, "targets", &own->own.y, &own->members[1], d);
    return err;
}

static int load(sherd__own_data *own, const sherd_node_data *o, sherd_diag *d)
{
    if (!o->path == !o->examples.data)
        return sherd__fail(d, SHERD_EINVAL, "set either path or examples",
                           "it is not clear which examples the node has");
    const sherd__own_columns of = { o->label, o->columns, o->classes };
    if (o->path) return sherd__own_load(own, o->path, &of, d);
    if (!o->ledger)
        return sherd__fail(d, SHERD_EINVAL, "name the ledger",
                           "examples from memory have no default ledger");
    return copy_examples(own, o, d);
}

/* Opens the ledger and warns if it is new, because a lost ledger looks like a new one. */
static int open_at(sherd__node_data *x, const char *path, bool require, const sherd_hooks *hooks,
                   sherd_diag *d)
{
    int err = sherd__ledger_open(&x->ledger, path, require, d);
    if (!err && sherd__ledger_made(x->ledger))
        warn(hooks,
             "%s: created an empty privacy ledger; if these data have been served before, end this "
             "node and restore their ledger",
             path);
    return err;
}

/* Opens the ledger next to the data file, with links resolved, so that one file has one ledger. */
static int open_ledger(sherd__node_data *x, const sherd_node_data *o, const sherd_hooks *hooks,
                       sherd_diag *d)
{
    char real[PATH_MAX], beside[PATH_MAX + sizeof ".ledger"];
    if (o->ledger) return open_at(x, o->ledger, o->require_ledger, hooks, d);
    if (!realpath(o->path, real))
        return sherd__fail(d, SHERD_EOPEN, "name the ledger (--ledger FILE)",
                           "%s: cannot resolve the path: %s", o->path, strerror(errno));
    snprintf(beside, sizeof beside, "%s.ledger", real);
    return open_at(x, beside, o->require_ledger, hooks, d);
}

static int read_policy(sherd__policy *p, const sherd_node_data *o, sherd_diag *d)
{
    *p = (sherd__policy)SHERD__POLICY_DEFAULT;
    if (o->nodes_min) p->nodes_min = o->nodes_min;
    if (o->colluding_min) p->colluding_min = o->colluding_min;
    if (o->rows_min) p->rows_min = o->rows_min;
    if (o->rows_max) p->rows_max = o->rows_max;
    if (o->rounds_max) p->rounds_max = o->rounds_max;
    if (o->rounds_day) p->rounds_day = o->rounds_day;
    if (o->epsilon != 0) p->epsilon = o->epsilon;
    if (o->delta != 0) p->delta = o->delta;
    p->any_peers = o->any_peers;
    p->any_roster = o->any_roster;
    if (!(p->epsilon > 0) || !(p->delta > 0 && p->delta < 1))
        return sherd__fail(d, SHERD_EINVAL, "epsilon above 0, delta between 0 and 1",
                           "epsilon is %g and delta %g", p->epsilon, p->delta);
    if (p->nodes_min < 3)
        return sherd__fail(d, SHERD_EINVAL, "3 or more",
                           "nodes_min is %u: from a sum over two nodes, each node learns the data "
                           "of the other",
                           p->nodes_min);
    return SHERD_OK;
}

static void warn_of_policy(const sherd__policy *p, bool peers, const sherd_hooks *hooks)
{
    if (!peers && !p->any_peers)
        warn(hooks, "--data without --peers: this node joins no sum (--any-peers would accept any "
                    "nodes that the coordinator names)");
    if (!isfinite(p->epsilon))
        warn(hooks, "--epsilon none: this node joins rounds without noise; --min-rows includes "
                    "empty places, so the sum of such a round can reveal a few examples, or a "
                    "single one");
}

/* The examples are already in memory. */
static void warn_of_memory(uint64_t budget, const sherd_hooks *hooks)
{
    char most[16], has[16];
    uint64_t available = sherd__memory_available();
    if (budget > available)
        warn(hooks,
             "--memory (%s) exceeds the %s that are available beside the data: refusals for lack "
             "of memory can reveal the number of examples",
             sherd__bytes_text((double)budget, most), sherd__bytes_text((double)available, has));
}

int sherd__node_data_open(sherd__node_data *x, const sherd_node_data *opt, uint64_t memory,
                          bool peers, const sherd_hooks *hooks, sherd_diag *d)
{
    sherd_node_data o;
    *x = (sherd__node_data){ .lock = PTHREAD_MUTEX_INITIALIZER };
    int err = sherd__options_read(&o, sizeof o, opt, "sherd_node_data", d);
    if (!err) err = read_policy(&x->policy, &o, d);
    if (!err) err = load(&x->own, &o, d);
    if (!err) err = open_ledger(x, &o, hooks, d);
    if (err) return err;
    warn_of_policy(&x->policy, peers, hooks);
    warn_of_memory(memory, hooks);
    return SHERD_OK;
}

void sherd__node_data_close(sherd__node_data *x)
{
    sherd__ledger_close(x->ledger);
    sherd__own_close(&x->own);
}

/* ---- reports --------------------------------------------------------------------------------- */

void sherd__node_data_spent(sherd__node_data *x, sherd_node_privacy *out)
{
    pthread_mutex_lock(&x->lock);
    sherd__ledger_sum sum = sherd__ledger_all(x->ledger);
    pthread_mutex_unlock(&x->lock);
    *out = (sherd_node_privacy){ .uploads = sum.uploads,
                                 .epsilon = sherd__privacy_epsilon(sum.rho, x->policy.delta),
                                 .epsilon_max = x->policy.epsilon,
                                 .delta = x->policy.delta };
}
