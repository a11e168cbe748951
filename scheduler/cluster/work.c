/* The job of a product as a work of the cluster's loop. */
#include "scheduler/cluster/work.h"

static void node_up(void *ctx, uint32_t node, sherd__session *s, uint64_t session_number,
                    uint64_t now_ms)
{
    sherd__job_node_up(ctx, node, s, session_number, now_ms);
}

static void node_down(void *ctx, uint32_t node, bool back, const char *why, uint64_t now_ms)
{
    sherd__job_node_down(ctx, node, back, why, now_ms);
}

static void node_banned(void *ctx, uint32_t node, const char *why)
{
    sherd__job_node_banned(ctx, node, why);
}

static void node_barred(void *ctx, uint32_t node)
{
    sherd__job_node_barred(ctx, node);
}

static void event(void *ctx, uint32_t node, sherd__event *e, uint64_t now_ms)
{
    sherd__job_event(ctx, node, e, now_ms);
}

static void tick(void *ctx, uint64_t now_ms)
{
    sherd__job_tick(ctx, now_ms);
}

static void pump(void *ctx, uint64_t now_ms)
{
    sherd__job_pump(ctx, now_ms);
}

static bool done(const void *ctx, int *err, sherd_diag *d)
{
    return sherd__job_done(ctx, err, d);
}

static void fail(void *ctx, int err, const char *hint, const char *message)
{
    sherd__job_fail(ctx, err, hint, message);
}

static void end(void *ctx)
{
    sherd__job_end(ctx);
}

static void rest(void *ctx)
{
    sherd__job_rest(ctx);
}

static bool idle(const void *ctx)
{
    return sherd__job_idle(ctx);
}

static uint64_t node_tasks(const void *ctx, uint32_t node)
{
    return sherd__job_node_tasks(ctx, node);
}

static void progress(const void *ctx, uint64_t *folded, uint64_t *all)
{
    sherd__job_stats stats;
    sherd__job_count(ctx, &stats);
    *folded = stats.folded;
    *all = stats.cells;
}

static void waiting(const void *ctx, uint64_t now_ms, char *out, size_t size)
{
    sherd__job_waiting(ctx, now_ms, out, size);
}

static const sherd__work_ops job_ops = {
    .node_up = node_up,
    .node_down = node_down,
    .node_banned = node_banned,
    .node_barred = node_barred,
    .event = event,
    .tick = tick,
    .pump = pump,
    .done = done,
    .fail = fail,
    .end = end,
    .rest = rest,
    .idle = idle,
    .node_tasks = node_tasks,
    .progress = progress,
    .waiting = waiting,
};

sherd__work sherd__job_work(sherd__job *j)
{
    return (sherd__work){ j ? &job_ops : NULL, j };
}
