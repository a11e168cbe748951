/* Deferred ends, and the reuse of their reserved memory. */
#include "node/later.h"

void sherd__later_end(const sherd__later *l, sherd__pool *p, void (*end)(void *what), void *what,
                      uint64_t reserved)
{
    if (l->end && reserved) {
        l->end(l->ctx, end, what, reserved);
        return;
    }
    end(what);
    sherd__pool_unreserve(p, reserved);
}

bool sherd__later_reserve(const sherd__later *l, sherd__pool *p, uint64_t memory)
{
    uint64_t ending = l->end ? l->ending(l->ctx) : 0;
    if (ending > memory) ending = memory;
    if (memory > UINT64_MAX / 2 || !sherd__pool_reserve(p, memory - ending)) return false;
    if (ending) l->inherit(l->ctx, ending);
    return true;
}

bool sherd__later_reserve_each(const sherd__later *l, sherd__pool *p, uint64_t once, uint64_t each,
                               uint32_t *count)
{
    const uint64_t most = sherd__pool_stats_of(p)->budget / 4;
    if (each > UINT64_MAX / 4 || once > UINT64_MAX / 4) return false;
    if (*count == 0 || each > most) *count = 1;
    else if (each > most / *count) *count = (uint32_t)(most / each);
    if (sherd__later_reserve(l, p, once + each * *count)) return true;
    const bool several = *count > 1;
    *count = 1;
    return several && sherd__later_reserve(l, p, once + each);
}
