/*
 * How many shards a part of asynchronous training has. All weights travel there and all gradients
 * back with each part, whatever examples it is of, so parts of few examples keep the loop's thread
 * busy with moving: as long as it spends more than an eighth of its time, parts become larger (as
 * Dean et al. 2012 fetch and push every so many mini-batches); where it spends next to nothing,
 * smaller, since an update each is what asynchronous steps are for. Processor time is what counts:
 * a thread that waits for its turn beside others is not busy moving.
 */
#ifndef SCHEDULER_TRAIN_SHARD_SIZE_H
#define SCHEDULER_TRAIN_SHARD_SIZE_H

#include <stdint.h>

#define SHERD__SHARD_SIZE_PARTS 16u    /* between two looks */
#define SHERD__SHARD_SIZE_BUSY 0.125   /* of the time: parts become larger */
#define SHERD__SHARD_SIZE_IDLE 0.03125 /* or smaller; half as many shards make it twice as busy */

typedef struct sherd__shard_size {
    uint32_t shards; /* of a part; 0: nothing is known */
    uint64_t parts;  /* as at the look before; so are the next two */
    double now, busy;
} sherd__shard_size;

/** Shards of the parts to come, 1 to `most` (0 is as 1): from seconds of the clock, seconds that
 *  the loop's thread was on a processor, and parts that came back, all counted from any time.
 *  Zeroed at first. */
uint32_t sherd__shard_size_shards(sherd__shard_size *g, double now, double busy, uint64_t parts,
                                  uint32_t most);

#endif
