/* What scheduler/metadata*.c share; the rest is sherd/meta.h. */
#ifndef SCHEDULER_METADATA_METADATA_H
#define SCHEDULER_METADATA_METADATA_H

#include "store/metafile.h"

/** A table that products are lent. */
typedef struct sherd__meta_lent {
    uint8_t *table; /* in the file's width, or NULL: derived under the key */
    size_t len;     /* bytes */
    unsigned width; /* bytes of an index */
    uint32_t cols;  /* of each row */
    uint8_t key[32];
} sherd__meta_lent;

struct sherd_meta {
    sherd__metafile f;
    bool seed_wrong; /* the file's seed is not the one that its manifest commits to */
    int (*watch)(void *ctx, uint64_t done, uint64_t total);
    void *watch_ctx;
    uint64_t done, total; /* bytes, of the save or verify under way */
    /* What sherd_meta_shuffles lent: exposures, enshuffles, and `rows` where there are some. */
    uint32_t *exposures;
    sherd__meta_lent lent[2];
};

/** The file, for messages. */
const char *sherd__meta_where(const sherd_meta *meta);
/** Begins to count for the watcher; len bytes more are done: SHERD_EINTERRUPTED where it says
 *  so. */
void sherd__meta_begin(sherd_meta *meta);
int sherd__meta_step(sherd_meta *meta, uint64_t len, sherd_diag *d) SHERD_MUST;
/** SHERD_EINVAL unless there is an operation i. */
int sherd__meta_index(const sherd_meta *meta, size_t i, sherd_diag *d) SHERD_MUST;
/** SHERD_ENOMEM, said. */
int sherd__meta_no_memory(sherd_diag *d) SHERD_MUST;

/** sherd_meta_verify of operation i alone; of the seed form nothing. */
int sherd__meta_verify_operation(sherd_meta *meta, size_t i, sherd_diag *d) SHERD_MUST;

/* numbers.c: */

/** Wipes and gives back what sherd_meta_shuffles lent. */
void sherd__meta_drop_shuffles(sherd_meta *meta);
/** The key of a table of operation i. */
void sherd__meta_key(const sherd_meta *meta, const uint8_t seed[32], size_t i,
                     sherd_meta_table table, uint64_t step, uint8_t key[32]);
/** Derives exposures of operation i. */
int sherd__meta_derive_exposures(const sherd_meta *meta, const uint8_t seed[32], size_t i,
                                 uint32_t *out, sherd_diag *d) SHERD_MUST;
/** Value j of a row of `width` bytes an index. */
uint32_t sherd__meta_value(const void *row, unsigned width, size_t j);
/**
 * The first place of a row that keeps it from being a permutation of 0..n-1, or -1. seen: n bytes.
 */
int64_t sherd__meta_row_fault(const void *row, unsigned width, size_t n, uint8_t *seen);
/** How many rows of row_bytes to take at a time. */
size_t sherd__meta_rows_at_once(size_t row_bytes);

#endif
