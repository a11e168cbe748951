/*
 * What works of training share. Patience is a multiple of what answers have taken, and runs anew
 * whenever bytes move: a slow link is no silent node. Before the first answer nobody knows how long
 * one takes, so it is long.
 */
#include "scheduler/work_state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/diag.h"

#define PATIENCE_MS 60000.0 /* at least */
#define PATIENCE_FIRST_MS 600000.0
#define PATIENCE_TIMES 30.0
#define MOVED_BYTES 65536u

/* ---- telling --------------------------------------------------------------------------------- */

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

/* ---- patience -------------------------------------------------------------------------------- */

void sherd__work_asked(sherd__work_state *w, uint32_t node, uint64_t now_ms)
{
    sherd__work_node *n = sherd__work_node_at(w, node);
    n->since_ms = n->progress_ms = now_ms;
    n->queued = sherd__session_queued(n->session);
    n->bytes_in = sherd__session_stats_of(n->session)->bytes_in;
}

void sherd__work_took(sherd__work_state *w, uint32_t node, uint64_t now_ms)
{
    double took = (double)(now_ms - sherd__work_node_at(w, node)->since_ms);
    w->usual_ms = w->usual_ms > 0 ? 0.9 * w->usual_ms + 0.1 * took : took + 1;
}

static double patience(const sherd__work_state *w)
{
    if (w->usual_ms <= 0) return PATIENCE_FIRST_MS;
    double ms = PATIENCE_TIMES * w->usual_ms;
    return ms > PATIENCE_MS ? ms : PATIENCE_MS;
}

void sherd__work_tick(void *ctx, uint64_t now_ms)
{
    sherd__work_state *w = ctx;
    for (uint32_t i = 0; i < w->len && !w->done; i++) {
        sherd__work_node *n = sherd__work_node_at(w, i);
        if (!n->session || !w->busy(n)) continue;
        uint64_t queued = sherd__session_queued(n->session);
        uint64_t in = sherd__session_stats_of(n->session)->bytes_in;
        if (queued < n->queued || in - n->bytes_in >= MOVED_BYTES) n->progress_ms = now_ms;
        n->queued = queued;
        n->bytes_in = in;
        if ((double)(now_ms - n->progress_ms) <= patience(w)) continue;
        n->silent = true;
        w->owner.expel(w->owner.ctx, i, SHERD_ESILENT, w->silent);
    }
}

/* ---- the end --------------------------------------------------------------------------------- */

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
