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
