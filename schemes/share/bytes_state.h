/* State of the files bytes*.c. */
#ifndef SCHEMES_SHARE_BYTES_STATE_H
#define SCHEMES_SHARE_BYTES_STATE_H

#include "schemes/share/internal.h"

#define BYTES_CHUNKS 64u

/** Buffers of one thread: quantised blocks; terms, for each prime; sums of projections. */
typedef struct bytes_scratch {
    double *data;
    uint8_t *term;
    int32_t *sums;
} bytes_scratch;

/** The terms of some columns of a tile of B; every slot's share is a sum of them. */
typedef struct bytes_chunk {
    uint8_t *terms;
    uint32_t tile;
    size_t index;
    uint64_t used; /* time of the last use; 0: empty */
} bytes_chunk;

typedef struct share_bytes {
    bytes_scratch scratch, loop_scratch; /* of the compute thread, of the loop's */
    bytes_chunk chunk[BYTES_CHUNKS];     /* of the loop's thread */
    uint32_t chunks;
    size_t loop_cols, chunk_len; /* columns and bytes of a chunk */
    uint64_t clock;
    void *rt; /* share.rt, laid out to be multiplied by rows of A */
} share_bytes;

#endif
