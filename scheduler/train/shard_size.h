/*
 * Number of shards in a part of asynchronous training. All weights are sent and all gradients
 * returned with each part, however many examples it has, so parts of few examples keep the loop's
 * thread busy with transfers. While the thread spends more than an eighth of its time, parts become
 * larger (Dean et al. 2012 likewise fetch and push only every few mini-batches). If it spends very
 * little time, parts become smaller, since asynchronous steps work best with an update for each
 * shard. Processor time is measured: a thread that waits for a core is not busy with transfers.
 */
#ifndef SCHEDULER_TRAIN_SHARD_SIZE_H
#define SCHEDULER_TRAIN_SHARD_SIZE_H

#include <stdint.h>

#define SHERD__SHARD_SIZE_PARTS 16u    /* parts between two reviews */
#define SHERD__SHARD_SIZE_BUSY 0.125   /* fraction of the time above which parts become larger */
#define SHERD__SHARD_SIZE_IDLE 0.03125 /* below: smaller. Half the shards double the busy time */

typedef struct sherd__shard_size {
    uint32_t shards; /* shards of a part; 0: not known */
    uint64_t parts;  /* values at the last review, as are the next two */
    double now, busy;
} sherd__shard_size;

/** Returns the number of shards of the next parts, 1 to `most` (0 counts as 1). now: seconds of the
 *  clock; busy: seconds that the loop's thread spent on a processor; parts: number of parts that
 *  were returned. All three may count from any start. *g is zeroed at first. */
uint32_t sherd__shard_size_shards(sherd__shard_size *g, double now, double busy, uint64_t parts,
                                  uint32_t most);

#endif
