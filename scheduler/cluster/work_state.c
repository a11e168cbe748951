/*
 * Functions shared by training works. If other nodes have answered the same kind of request since a
 * node was asked, its deadline follows from them (scheduler/cluster/deadline.h). Otherwise it is a
 * multiple of the time that answers have taken; before the first answer that time is unknown, and
 * the deadline follows from the operations of the request. Bytes of work offset time in both
 * cases: a node on a slow link is not silent.
 */
#include "scheduler/cluster/work_state.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/diag.h"
#include "crypto/aggregate.h"

#define SILENCE_MS 60000.0 /* minimum */
#define FLOOR_MS 20000.0   /* minimum if other nodes have answered */
#define SLOWEST 1e5        /* floating-point operations per ms that the slowest node makes */
#define SILENCE_TIMES 30.0
#define MOVED_BYTES 4096u /* more than the bytes of progress questions and their answers */

/* ---- reporting ------------------------------------------------------------------------------- */

void sherd__work_say(const sherd__work_state *w, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    w->owner.log(w->owner.ctx, SHERD_LOG_WARN, text);
}

const char *sherd__work_name(const sherd__work_state *w, uint32_t node)
{
    return w->owner.name(w->owner.ctx, node);
}

sherd__work_node *sherd__work_node_at(const sherd__work_state *w, uint32_t node)
{
    return (sherd__work_node *)((char *)w->nodes + node * w->stride);
}

void sherd__work_waiting(const void *ctx, uint64_t now_ms, char *out, size_t size)
{
    const sherd__work_state *w = ctx;
    const sherd__work_node *worst = NULL;
    uint32_t who = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < w->len; i++) {
        const sherd__work_node *n = sherd__work_node_at(w, i);
        if (!w->busy(n) || (worst && n->since_ms >= worst->since_ms)) continue;
        worst = n;
        who = i;
    }
    if (!worst || now_ms < worst->since_ms + 2000) return;
    snprintf(out, size, "waiting %" PRIu64 " s for %s%s", (now_ms - worst->since_ms) / 1000,
             w->wanted, sherd__work_name(w, who));
}

/* ---- deadlines ------------------------------------------------------------------------------- */

static sherd__delivery_peers peers_of(sherd__work_state *w)
{
    sherd__delivery_peers p = { 0 };
    double room[SHERD__AGGREGATE_NODES_MAX];
    for (uint32_t i = 0; i < w->len; i++) {
        sherd__work_node *n = sherd__work_node_at(w, i);
        n->delivery.up = n->session != NULL;
    }
    if (w->len > 0)
        sherd__delivery_peers_of(&p, &sherd__work_node_at(w, 0)->delivery, w->stride,
                                 w->len < SHERD__AGGREGATE_NODES_MAX ? w->len
                                                                     : SHERD__AGGREGATE_NODES_MAX,
                                 room);
    return p;
}

void sherd__work_asked(sherd__work_state *w, uint32_t node, uint64_t now_ms)
{
    sherd__work_node *n = sherd__work_node_at(w, node);
    n->since_ms = n->progress_ms = now_ms;
    n->moved = sherd__session_moved(n->session);
    sherd__delivery_owes(&n->delivery, false, n->moved, now_ms);
    sherd__delivery_owes(&n->delivery, true, n->moved, now_ms);
}

void sherd__work_heard(sherd__work_state *w, uint32_t node, uint64_t now_ms)
{
    sherd__work_node *n = sherd__work_node_at(w, node);
    sherd__delivery_peers p = peers_of(w);
    n->answered_ms = now_ms;
    sherd__delivery_made(&n->delivery, &p, sherd__session_moved(n->session), now_ms);
}

void sherd__work_took(sherd__work_state *w, uint32_t node, uint64_t now_ms)
{
    double took = (double)(now_ms - sherd__work_node_at(w, node)->since_ms);
    w->usual_ms = w->usual_ms > 0 ? 0.9 * w->usual_ms + 0.1 * took : took + 1;
    sherd__work_heard(w, node, now_ms);
}

/* Returns whether at least half of the other nodes have answered since the node was asked. */
static bool others_have(const sherd__work_state *w, const sherd__work_node *n)
{
    uint32_t others = 0, have = 0;
    for (uint32_t i = 0; i < w->len; i++) {
        const sherd__work_node *o = sherd__work_node_at(w, i);
        if (o == n || !o->session) continue;
        others++;
        have += o->answered_ms > n->since_ms;
    }
    return have > 0 && 2 * have >= others;
}

void sherd__work_expect(sherd__work_state *w, double flops)
{
    w->first_ms = flops / SLOWEST;
}

double sherd__work_first_ms(const sherd__work_state *w)
{
    return SILENCE_MS + w->first_ms;
}

static double silence_max_ms(const sherd__work_state *w)
{
    if (w->usual_ms <= 0) return sherd__work_first_ms(w);
    double ms = SILENCE_TIMES * w->usual_ms;
    return ms > SILENCE_MS ? ms : SILENCE_MS;
}

static bool late(const sherd__work_state *w, const sherd__work_node *n,
                 const sherd__delivery_peers *p, uint64_t now_ms)
{
    if (!w->apart) return (double)(now_ms - n->progress_ms) > silence_max_ms(w);
    double allowed = silence_max_ms(w);
    if (others_have(w, n))
        allowed = fmin(allowed, FLOOR_MS - SHERD__DELIVERY_FLOOR_MS +
                                    sherd__delivery_allowed(&n->delivery, p));
    return sherd__delivery_late(&n->delivery, p, allowed);
}

void sherd__work_tick(void *ctx, uint64_t now_ms)
{
    sherd__work_state *w = ctx;
    sherd__delivery_peers p = peers_of(w);
    for (uint32_t i = 0; i < w->len && !w->done; i++) {
        sherd__work_node *n = sherd__work_node_at(w, i);
        if (!n->session) continue;
        uint64_t moved = sherd__session_moved(n->session);
        if (moved < n->moved) n->moved = moved;
        if (moved - n->moved >= MOVED_BYTES) {
            n->progress_ms = now_ms;
            n->moved = moved;
        }
        sherd__delivery_owes(&n->delivery, w->busy(n), moved, now_ms);
        sherd__delivery_charge(&n->delivery, &p, moved, now_ms);
        if (!w->busy(n) || !late(w, n, &p, now_ms)) continue;
        n->silent = true;
        sherd__delivery_expelled(&n->delivery);
        w->owner.expel(w->owner.ctx, i, SHERD_ESILENT, w->silent);
    }
}

/* ---- end ------------------------------------------------------------------------------------- */

void sherd__work_stop(sherd__work_state *w, int err, const char *hint, const char *message)
{
    if (w->done) return;
    w->done = true;
    w->err = err ? sherd__fail(&w->diag, err, hint, "%s", message) : SHERD_OK;
    w->changed(w->changed_ctx);
}

bool sherd__work_done(const void *ctx, int *err, sherd_diag *d)
{
    const sherd__work_state *w = ctx;
    if (!w->done) return false;
    *err = w->err;
    if (w->err && d && !d->code) *d = w->diag;
    return true;
}

void sherd__work_fail(void *ctx, int err, const char *hint, const char *message)
{
    sherd__work_stop(ctx, err, hint, message);
}

void sherd__work_forget(sherd__work_state *w, uint32_t node)
{
    sherd__work_node *n = sherd__work_node_at(w, node);
    if (!n->session) return;
    (void)!sherd__session_forget(n->session, w->id);
    w->owner.touch(w->owner.ctx, node);
}

void sherd__work_end(void *ctx)
{
    sherd__work_state *w = ctx;
    for (uint32_t i = 0; i < w->len; i++) sherd__work_forget(w, i);
}

void sherd__work_rest(void *ctx)
{
    sherd__work_state *w = ctx;
    for (uint32_t i = 0; i < w->len; i++) sherd__work_node_at(w, i)->session = NULL;
}

bool sherd__work_idle(const void *ctx)
{
    (void)ctx;
    return true;
}

uint64_t sherd__work_node_tasks(const void *ctx, uint32_t node)
{
    return sherd__work_node_at(ctx, node)->accepted;
}
