/* Declarations shared by all files of scheduler/metadata. The public interface is sherd/meta.h. */
#ifndef SCHEDULER_METADATA_METADATA_H
#define SCHEDULER_METADATA_METADATA_H

#include "core/hooks.h"
#include "sherd/product.h"
#include "store/metafile.h"

/** A table that products use. */
typedef struct sherd__meta_lent {
    uint8_t *table; /* with indices as wide as in the file; NULL: rows are derived from the key */
    size_t len;     /* bytes */
    unsigned width; /* bytes per index */
    uint32_t cols;  /* indices per row */
    uint8_t key[32];
} sherd__meta_lent;

struct sherd_meta {
    sherd__metafile f;
    bool seed_wrong;      /* the file's seed does not match the commitment of its manifest */
    sherd__hooked hooked; /* of the call that is under way */
    uint64_t done, total; /* bytes, of the current save or verification */
    /* Used by sherd_meta_shuffles: exposures, enshuffles, and `rows` if there is such a table. */
    uint32_t *exposures;
    sherd__meta_lent lent[2];
    sherd_shuffles taken; /* by sherd_meta_take */
};

/** Returns the file's name, for messages. */
const char *sherd__meta_where(const sherd_meta *meta);
/** Resets the count of bytes done, for the hooks of one call. sherd__meta_step adds len bytes, and
 *  returns SHERD_EINTERRUPTED if the callback asks to stop. */
void sherd__meta_begin(sherd_meta *meta, const sherd_hooks *hooks);
int sherd__meta_step(sherd_meta *meta, uint64_t len, sherd_diag *d) SHERD_MUST;
/** SHERD_EINVAL if there is no operation i. */
int sherd__meta_index(const sherd_meta *meta, size_t i, sherd_diag *d) SHERD_MUST;
/** Returns SHERD_ENOMEM and reports it in *d. */
int sherd__meta_no_memory(sherd_diag *d) SHERD_MUST;

/** As sherd_meta_verify, for operation i only. Does nothing for the seed form. */
int sherd__meta_verify_operation(sherd_meta *meta, size_t i, sherd_diag *d) SHERD_MUST;

/* numbers.c: */

/** Wipes and frees the tables that sherd_meta_shuffles provided. */
void sherd__meta_drop_shuffles(sherd_meta *meta);
/** Derives the key of a table of operation i. */
void sherd__meta_key(const sherd_meta *meta, const uint8_t seed[32], size_t i,
                     sherd_meta_table table, uint64_t step, uint8_t key[32]);
/** Derives the exposures of operation i. */
int sherd__meta_derive_exposures(const sherd_meta *meta, const uint8_t seed[32], size_t i,
                                 uint32_t *out, sherd_diag *d) SHERD_MUST;
/** Rows of a table of operation i. */
typedef struct sherd__meta_part {
    size_t i;
    sherd_meta_table table;
    uint64_t row, rows;
} sherd__meta_part;
/** Returns value j of a row with indices of `width` bytes. */
uint32_t sherd__meta_value(const void *row, unsigned width, size_t j);
/**
 * Returns the first position at which a row fails to be a permutation of 0..n-1, or -1 if it is
 * one. seen: n bytes of scratch memory.
 */
int64_t sherd__meta_row_fault(const void *row, unsigned width, size_t n, uint8_t *seen);
/** Returns how many rows of row_bytes to process at a time. */
size_t sherd__meta_rows_at_once(size_t row_bytes);

#endif
