/* Construction of fragments: for schemes, for a node's results, and for the parser of the wire
 * format. */
#ifndef CRYPTO_FRAGMENT_MAKE_H
#define CRYPTO_FRAGMENT_MAKE_H

#include "crypto/fragment.h"

/** A producer of the bytes of a fragment's body. */
typedef struct sherd__fragment_source {
    /** Writes body bytes [offset, offset+len). Returns 0 or a SHERD_E* code. */
    int (*fill)(void *ctx, uint64_t offset, uint8_t *out, size_t len);
    /** Called once when the fragment is freed; may be NULL. */
    void (*free)(void *ctx);
    void *ctx;
} sherd__fragment_source;

/** Creates a dense fragment that is produced chunk by chunk. On failure the caller still owns the
 *  source. Returns SHERD_EINVAL for CSR: a body that is abandoned halfway is completed with zeros,
 *  which are not valid CSR. */
int sherd__fragment_new_source(sherd__fragment **out, const sherd__fragment_info *info,
                               sherd__fragment_source source) SHERD_MUST;

/**
 * Creates a fragment of the body `bytes` (info->len of them) and takes ownership of it.
 * `release(ctx, bytes, len)` frees the memory together with the fragment (NULL: sherd__free). On
 * failure the caller still owns bytes.
 */
int sherd__fragment_take(sherd__fragment **out, const sherd__fragment_info *info, uint8_t *bytes,
                         void (*release)(void *ctx, uint8_t *bytes, uint64_t len),
                         void *ctx) SHERD_MUST;

/**
 * Creates a dense fragment of a body that is computed later: sherd__fragment_settle calls
 * source.fill once, for all of it, with `bytes` as the destination. It takes bytes as
 * sherd__fragment_take does, and the source. On failure the caller still owns both.
 */
int sherd__fragment_defer(sherd__fragment **out, const sherd__fragment_info *info, uint8_t *bytes,
                          void (*release)(void *ctx, uint8_t *bytes, uint64_t len), void *ctx,
                          sherd__fragment_source source) SHERD_MUST;

/** Memory for bodies that is used again for others: get returns len bytes, uninitialised, or NULL;
 *  give takes them back, and is a `release` of sherd__fragment_take. Called on any thread. Where
 *  get is NULL, bodies come from core/alloc.h. */
typedef struct sherd__body_memory {
    uint8_t *(*get)(void *ctx, uint64_t len);
    void (*give)(void *ctx, uint8_t *bytes, uint64_t len);
    void *ctx;
} sherd__body_memory;

/**
 * Checks that an info can describe a body: known origin, dtype and encoding; groups and primes
 * within limits; len = 8*groups + the size that follows from rows, cols and dtype where it is
 * determined (groups <= 1, dense), and otherwise at least the size of the table; for CSR a length
 * that some number of entries, at most rows * cols, gives. Returns SHERD_EFRAME, with the reason in
 * *d.
 */
int sherd__fragment_info_check(const sherd__fragment_info *info, sherd_diag *d) SHERD_MUST;

/**
 * Checks the group table at the start of a body against its info: the sums of rows and of values,
 * and the widest group; for a CSR body also every count and every column. Returns SHERD_EFRAME,
 * with the reason in *d. It is called for a body from a peer, before any arithmetic: code that
 * reads the body later does not check it again.
 */
int sherd__fragment_table_check(const sherd__fragment_info *info, const uint8_t *body,
                                sherd_diag *d) SHERD_MUST;

/** State of the check of a body that is still arriving; zero it before the first bytes. */
typedef struct sherd__fragment_check {
    uint32_t groups;               /* groups of the table that were read */
    uint64_t rows, widest, values; /* sums over these groups */
    uint32_t group;                /* CSR: the group of the next row, */
    uint64_t row, index;           /* its number in the group and in the body, */
    uint64_t entries;              /* the number of entries before it, */
    uint64_t within, last;         /* its columns checked so far, and the last of them */
} sherd__fragment_check;

/**
 * Like sherd__fragment_table_check, for the first `got` bytes of the body; with all bytes the check
 * is complete. Each byte is read once: calls for successive parts together take as long as one
 * call.
 */
int sherd__fragment_check_part(sherd__fragment_check *c, const sherd__fragment_info *info,
                               const uint8_t *body, uint64_t got, sherd_diag *d) SHERD_MUST;

#endif
