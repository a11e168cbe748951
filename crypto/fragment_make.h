/* Making fragments: for schemes, for a node's results, for the wire's parser. */
#ifndef CRYPTO_FRAGMENT_MAKE_H
#define CRYPTO_FRAGMENT_MAKE_H

#include "crypto/fragment.h"

/** Where the bytes of a fragment's body come from, or go back to. */
typedef struct sherd__fragment_source {
    /** Writes body bytes [offset, offset+len); 0 or a SHERD_E* code. */
    int (*fill)(void *ctx, uint64_t offset, uint8_t *out, size_t len);
    /** Called once when the fragment is freed; may be NULL. */
    void (*free)(void *ctx);
    void *ctx;
} sherd__fragment_source;

/** A fragment that is produced chunk by chunk. On failure the source stays the caller's. Dense ones
 *  only (SHERD_EINVAL): a body that is given up halfway is ended with zeros, and these are no
 *  CSR. */
int sherd__fragment_new_source(sherd_fragment **out, const sherd__fragment_info *info,
                               sherd__fragment_source source) SHERD_MUST;

/**
 * A fragment whose body lies in `bytes` (info->len of them). `release(ctx, bytes, len)` gives the
 * memory back when the fragment is freed (NULL: sherd__free). On failure bytes stay the caller's.
 */
int sherd__fragment_take(sherd_fragment **out, const sherd__fragment_info *info, uint8_t *bytes,
                         void (*release)(void *ctx, uint8_t *bytes, uint64_t len),
                         void *ctx) SHERD_MUST;

/**
 * Checks that an info can be the description of a body: known origin, dtype, encoding; groups and
 * primes within limits; len = 8*groups + what rows, cols and dtype need where that is determined
 * (groups <= 1, dense), and at least the table otherwise; CSR: a length that some number of
 * entries, at most rows * cols, gives. SHERD_EFRAME, with the reason in *d.
 */
int sherd__fragment_info_check(const sherd__fragment_info *info, sherd_diag *d) SHERD_MUST;

/**
 * Checks the group table at the head of a body against its info: sums of rows, of values, widest
 * group; of a CSR body also every count and every column. SHERD_EFRAME with the reason. For bodies
 * that came from a peer, before any arithmetic: whoever walks them later checks nothing again.
 */
int sherd__fragment_table_check(const sherd__fragment_info *info, const uint8_t *body,
                                sherd_diag *d) SHERD_MUST;

/** What was checked of a body that is arriving; all zero before its first bytes. */
typedef struct sherd__fragment_check {
    uint32_t groups;               /* read of the table */
    uint64_t rows, widest, values; /* theirs */
    uint32_t group;                /* CSR: where the next row is, */
    uint64_t row, index;           /* in its group and in the body; */
    uint64_t entries;              /* of the rows before it; */
    uint64_t within, last;         /* how many of its columns are checked, and the last of these */
} sherd__fragment_check;

/**
 * Likewise of the first `got` bytes of the body, as far as they tell; with all of them everything
 * is checked. Each byte is looked at once: calls for parts take together what one call takes.
 */
int sherd__fragment_check_part(sherd__fragment_check *c, const sherd__fragment_info *info,
                               const uint8_t *body, uint64_t got, sherd_diag *d) SHERD_MUST;

#endif
