/* Sizes change by factors of two: a part's cost is not known more precisely and changes with the
 * machine. A review follows a number of parts, so that one late part does not decide it. */
#include "scheduler/train/shard_size.h"

uint32_t sherd__shard_size_shards(sherd__shard_size *g, double now, double busy, uint64_t parts,
                                  uint32_t most)
{
    double passed = now - g->now, spent = busy - g->busy;
    if (most < 1) most = 1;
    if (g->shards && parts - g->parts < SHERD__SHARD_SIZE_PARTS)
        return g->shards < most ? g->shards : most;
    uint32_t shards = g->shards ? g->shards : 1;
    if (g->shards && spent > SHERD__SHARD_SIZE_BUSY * passed && shards <= most / 2) shards *= 2;
    else if (g->shards && spent < SHERD__SHARD_SIZE_IDLE * passed && shards > 1) shards /= 2;
    *g = (sherd__shard_size){ shards, parts, now, busy };
    return shards < most ? shards : most;
}
