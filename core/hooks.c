/* Interruption and progress of one long call. */
#include "core/hooks.h"

#include "core/clock.h"
#include "core/diag.h"

#define EVERY_S 0.1

sherd__hooked sherd__hooks_begin(const sherd_hooks *hooks)
{
    double now = sherd__clock_s();
    return (sherd__hooked){ .hooks = *hooks, .began = now, .reported = now };
}

bool sherd__hooks_any(const sherd_hooks *h)
{
    return h->interrupted || h->log || h->progress;
}

bool sherd__hooks_interrupted(const sherd_hooks *h)
{
    return h->interrupted && h->interrupted(h->ctx);
}

int sherd__hooks_check(const sherd_hooks *h, const char *what, sherd_diag *d)
{
    return sherd__hooks_interrupted(h) ? sherd__fail(d, SHERD_EINTERRUPTED, NULL, "%s", what)
                                       : SHERD_OK;
}

bool sherd__hooks_due(const sherd__hooked *h, bool last)
{
    return h->hooks.progress && (last || sherd__clock_s() - h->reported >= EVERY_S);
}

void sherd__hooks_progress(sherd__hooked *h, sherd_progress p)
{
    if (!sherd__hooks_due(h, p.done >= p.total)) return;
    h->reported = sherd__clock_s();
    p.seconds = h->reported - h->began;
    h->hooks.progress(h->hooks.ctx, &p);
}

int sherd__hooks_step(sherd__hooked *h, uint64_t done, uint64_t total, sherd_diag *d)
{
    sherd__hooks_progress(h, (sherd_progress){ .done = done, .total = total });
    return sherd__hooks_check(&h->hooks, "interrupted", d);
}

static bool part_interrupted(void *ctx)
{
    return sherd__hooks_interrupted(&((const sherd__hooked_part *)ctx)->all->hooks);
}

static void part_log(void *ctx, sherd_log_level level, const char *text)
{
    const sherd_hooks *h = &((const sherd__hooked_part *)ctx)->all->hooks;
    h->log(h->ctx, level, text);
}

static void part_progress(void *ctx, const sherd_progress *p)
{
    const sherd__hooked_part *part = ctx;
    double done = p->total ? (double)p->done / (double)p->total : 1;
    sherd__hooks_progress(part->all,
                          (sherd_progress){ .done = part->before +
                                                    (uint64_t)(done * (double)part->share),
                                            .total = part->total });
}

sherd_hooks sherd__hooks_part(sherd__hooked_part *part)
{
    const sherd_hooks *h = &part->all->hooks;
    return (sherd_hooks){ h->interrupted ? part_interrupted : NULL, h->log ? part_log : NULL,
                          h->progress ? part_progress : NULL, part };
}
