/*
 * The hidden form of a part of an operand, or a node's result: all that ever travels. Opaque, with
 * readers only, so that code which sends bytes (wire/) or stores them (node/) cannot make one up;
 * who may make them is named in tools/layers.txt.
 *
 * Body. `groups` pairs of u32 LE (rows_q, cols_q), then the values group after group, each group
 * row-major, little-endian `dtype`. A dense matrix is one group. groups = 0: no table, one
 * rows x cols matrix (results are always so).
 *
 *   multiply(A, B): group q of A is rows_q x g_q, group q of B is g_q x m; the result stacks the
 *   rows_q x m products in group order. That one form serves `plain` (one group), `permute` with
 *   any --group (one group per shared permutation; rows that are wholly zero left out) and a whole
 *   share.
 *   multiply_t(A, B): A^T * B of one group each, k x n and k x m.
 *   map(op, A[, B]): A and B one group each of one shape.
 *
 * dtype SHERD__RESIDUES: 3-byte unsigned values in [0, p), `primes` of such blocks one after the
 * other, groups = 0 or 1.
 *
 * encoding SHERD__CSR, hidden blocks only, no residues: zeros are left out. Behind a table of one
 * or more groups stand three sections, each over all rows of all groups in order: how many entries
 * every row has, the columns of these entries (counted within the row's group, ascending), their
 * values. Counts and columns are unsigned, LE, of the one width that holds info.cols: 1, 2 or 4
 * bytes. How many entries there are follows from len. It is a left operand and nothing else.
 */
#ifndef CRYPTO_FRAGMENT_H
#define CRYPTO_FRAGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

typedef struct sherd_fragment sherd_fragment;

typedef enum sherd__origin {
    SHERD__HIDDEN = 1, /* made by a scheme: coordinator -> node */
    SHERD__RESULT = 2  /* made by a node's backend: node -> coordinator */
} sherd__origin;

/* Element kinds on the wire: the sherd_dtype numbers (mat.h) and packed residues. */
#define SHERD__RESIDUES 32u

/* Encodings of the values behind the group table. */
enum { SHERD__DENSE = 0, SHERD__CSR = 1 };

#define SHERD__GROUPS_MAX (1u << 24)

/** Most bytes of a CSR body: a node reads it through on the thread that serves everybody. */
#define SHERD__CSR_MAX (1u << 28)

typedef struct sherd__fragment_info {
    uint8_t origin;   /* sherd__origin */
    uint8_t dtype;    /* sherd_dtype or SHERD__RESIDUES */
    uint8_t encoding; /* SHERD__DENSE, SHERD__CSR */
    uint8_t primes;   /* 0, or how many residue blocks */
    uint32_t groups;
    uint64_t rows; /* sum of rows_q */
    uint64_t cols; /* of the widest group; cols of the matrix where groups <= 1 */
    uint64_t len;  /* bytes of the body, table included */
} sherd__fragment_info;

const sherd__fragment_info *sherd__fragment_info_of(const sherd_fragment *f);

/**
 * Writes bytes [offset, offset+len) of the body to out; offset+len <= info.len. A fragment made of
 * a source produces them now; any range may be read again.
 */
int sherd__fragment_read(sherd_fragment *f, uint64_t offset, void *out, size_t len) SHERD_MUST;

/** The body where it lies in memory, or NULL for one that is produced while it is read. */
const uint8_t *sherd__fragment_bytes(const sherd_fragment *f);

/** Where the sections of a CSR body are. */
typedef struct sherd__csr {
    unsigned width;                   /* bytes of a count and of a column: 1, 2 or 4 */
    uint64_t entries;                 /* at most rows * cols */
    uint64_t counts, columns, values; /* offsets in the body; they end where the next begins */
} sherd__csr;

/** False, and *out untouched, where info is not CSR or no number of entries gives its length. */
bool sherd__csr_layout(const sherd__fragment_info *info, sherd__csr *out);
/** Bytes of a CSR body; of rows * cols >= entries, each below 2^32. */
uint64_t sherd__csr_len(uint32_t groups, uint64_t rows, uint64_t cols, uint64_t entries,
                        size_t value_bytes);
/** Bytes of a count or column in a block whose widest group has `cols` columns. */
unsigned sherd__csr_width(uint64_t cols);

/** Wipes what was hidden-side data and frees; NULL is allowed. */
void sherd__fragment_free(sherd_fragment *f);

#endif
