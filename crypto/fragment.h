/*
 * Fragment: the hidden form of a part of an operand, or a node's result. Only fragments are sent
 * over the network. The type is opaque and has readers only, so that code that sends bytes (wire/)
 * or stores them (node/) cannot create one; tools/layers.txt names the code that may.
 *
 * Body. `groups` pairs of u32 LE (rows_q, cols_q), then the values, group after group, each group
 * row-major, little-endian `dtype`. A dense matrix is one group. groups = 0: no table, one rows x
 * cols matrix (the form of all results).
 *
 *   multiply(A, B): group q of A is rows_q x g_q, group q of B is g_q x m; the result stacks the
 *   rows_q x m products in group order. This form serves `plain` (one group), `permute` with any
 *   --group (one group per shared permutation; rows that are wholly zero are left out) and a whole
 *   share.
 *   multiply_t(A, B): A^T * B of one group each, k x n and k x m.
 *   map(op, A[, B]): A and B have one group each, of the same shape.
 *
 * dtype SHERD__RESIDUES: 3-byte unsigned values in [0, p), in `primes` consecutive blocks; groups =
 * 0 or 1.
 *
 * dtypes SHERD__BYTES_LEFT and SHERD__BYTES_RIGHT, hidden operands: residues modulo `primes` primes
 * below 256, one byte each, laid out for products (matrix/residue_bytes.h). The body has strips of
 * 16 rows of a left operand, or 16 columns of a right one. A strip has for each prime as many tiles
 * of 1024 bytes as 64 terms each need. Terms are the columns of a left operand and the rows of a
 * right one.
 * dtype SHERD__BYTES, results only: the residues of their product, one byte each, in `primes`
 * consecutive blocks. These three have groups = 0 and are dense.
 *
 * encoding SHERD__CSR, for hidden blocks without residues only: zeros are left out. The table of
 * one or more groups is followed by three sections, each over all rows of all groups in order: the
 * number of entries of every row, the columns of these entries (counted within the row's group,
 * ascending), and their values. Counts and columns are unsigned, LE, of the smallest width that
 * holds info.cols: 1, 2 or 4 bytes. The number of entries follows from len. A CSR fragment can only
 * be a left operand.
 *
 * encoding SHERD__SEED, for SHERD__BYTES_LEFT and SHERD__BYTES_RIGHT only: the body is a seed, from
 * which the receiver computes the body of the dense fragment of the same rows, cols and primes
 * (crypto/seed.h).
 */
#ifndef CRYPTO_FRAGMENT_H
#define CRYPTO_FRAGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

typedef struct sherd__fragment sherd__fragment;

typedef enum sherd__origin {
    SHERD__HIDDEN = 1, /* made by a scheme, sent from the coordinator to a node */
    SHERD__RESULT = 2  /* made by a node's backend, sent to the coordinator */
} sherd__origin;

/* Element kinds on the wire: the sherd_dtype numbers (mat.h), packed residues, and residues of one
 * byte. */
#define SHERD__RESIDUES 32u
#define SHERD__BYTES_LEFT 33u
#define SHERD__BYTES_RIGHT 34u
#define SHERD__BYTES 35u

/* Primes of a fragment. */
#define SHERD__RESIDUES_PRIMES_MAX 4u
#define SHERD__BYTES_PRIMES_MAX 8u

/* Encodings of the values after the group table. */
enum { SHERD__DENSE = 0, SHERD__CSR = 1, SHERD__SEED = 2 };

#define SHERD__GROUPS_MAX (1u << 24)

/** Maximum size of a CSR body in bytes. It is limited because a node checks the body on the thread
 *  that serves all connections. */
#define SHERD__CSR_MAX (1u << 28)

typedef struct sherd__fragment_info {
    uint8_t origin;   /* sherd__origin */
    uint8_t dtype;    /* sherd_dtype, SHERD__RESIDUES or SHERD__BYTES... */
    uint8_t encoding; /* SHERD__DENSE, SHERD__CSR, SHERD__SEED */
    uint8_t primes;   /* 0, or the number of residue blocks */
    uint32_t groups;
    uint64_t rows; /* sum of rows_q */
    uint64_t cols; /* of the widest group; of the matrix where groups <= 1 */
    uint64_t len;  /* bytes of the body, including the table */
} sherd__fragment_info;

/** Returns whether values of this kind are residues of one byte. */
bool sherd__fragment_is_bytes(uint8_t dtype);

const sherd__fragment_info *sherd__fragment_info_of(const sherd__fragment *f);

/** Returns the description of what a seed encodes; other descriptions are returned
 *  unchanged. */
sherd__fragment_info sherd__fragment_whole(const sherd__fragment_info *info);

/**
 * Writes bytes [offset, offset+len) of the body to out; offset+len <= info.len. A fragment with a
 * source produces the bytes during the call; any range may be read again.
 */
int sherd__fragment_read(sherd__fragment *f, uint64_t offset, void *out, size_t len) SHERD_MUST;

/** Returns the body in memory, or NULL if it is produced by a source as it is read. A deferred body
 *  has no defined bytes before it is settled. */
const uint8_t *sherd__fragment_bytes(const sherd__fragment *f);
/**
 * Computes a deferred body, the first time; does nothing to another one. Calls for one fragment are
 * made one at a time, and before it is read, on any thread: nothing is freed. After a failure the
 * call may be repeated. Errors are those of the source.
 */
int sherd__fragment_settle(const sherd__fragment *f) SHERD_MUST;

/** Positions of the sections of a CSR body. */
typedef struct sherd__csr {
    unsigned width;                   /* bytes of a count and of a column: 1, 2 or 4 */
    uint64_t entries;                 /* at most rows * cols */
    uint64_t counts, columns, values; /* offsets; each section ends where the next begins */
} sherd__csr;

/** Computes the sections of a CSR body. Returns false and leaves *out unchanged if info is not CSR
 *  or no number of entries gives its length. */
bool sherd__csr_layout(const sherd__fragment_info *info, sherd__csr *out);
/** Returns the bytes of a CSR body; entries <= rows * cols, each below 2^32. */
uint64_t sherd__csr_len(uint32_t groups, uint64_t rows, uint64_t cols, uint64_t entries,
                        size_t value_bytes);
/** Returns the bytes of a count or column in a block whose widest group has `cols` columns. */
unsigned sherd__csr_width(uint64_t cols);

/** Frees a fragment and wipes its data; NULL is allowed. */
void sherd__fragment_free(sherd__fragment *f);

#endif
