/*
 * Metadata: the data that a coordinator needs to recover its results. For each operation of a job
 * it holds exposures (the node that is given each column of A and row of B), enshuffles (a
 * permutation for each of them) and unshuffles (their inverses). They are stored either as 32 bytes
 * from which all of it is derived (seed form) or as arrays (expanded form). Files are .npz files
 * that plain numpy.load opens; docs/METADATA.md describes the format. sherd_meta_take
 * (sherd/product.h) takes the operation of one product from a file and enforces the reuse rule.
 *
 * Who learns it: every reader of a metadata file can undo the shuffles of the jobs it served. Files
 * have mode 0600 and never leave the coordinator.
 */
#ifndef SHERD_META_H
#define SHERD_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/field.h"
#include "sherd/hooks.h"
#include "sherd/op.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sherd_shuffles; /* sherd/product.h */

/** Size of an operation's name: letters, digits and '_', terminated. */
#define SHERD_META_NAME_SIZE 32u

/** Largest rows, columns and row length of an operation. A file may come from a stranger: this
 *  bounds what its reader allocates (4 bytes each) before its contents are checked. */
#define SHERD_META_DIM_MAX (UINT64_C(1) << 26)

/**
 * One operation. dot: A is n x k, B is k x m. Element-wise: operands are n x m, and k is ignored.
 *
 *               exposures                enshuffles and unshuffles
 *   dot         k (a column of A each)   k x m (a permutation of 0..m-1 each)
 *   else        m (a position each)      n x m (a permutation for each row)
 */
typedef struct sherd_meta_operation {
    size_t size; /* sizeof(sherd_meta_operation), set by the caller of sherd_meta_add */
    char name[SHERD_META_NAME_SIZE];
    sherd_op kind;
    uint64_t n, k, m;     /* each at most SHERD_META_DIM_MAX */
    bool used;            /* the operation has been used with operands ... */
    uint8_t operands[32]; /* ... that have this digest */
} sherd_meta_operation;

SHERD_API const sherd_field *sherd_meta_operation_fields(size_t *count);
/** Returns the number of exposures. */
SHERD_API uint64_t sherd_meta_columns(const sherd_meta_operation *op);
/** Returns the number of rows of the tables; each row has m entries. */
SHERD_API uint64_t sherd_meta_table_rows(const sherd_meta_operation *op);

/** Settings that all operations of a file share. */
typedef struct sherd_meta_settings {
    size_t size;       /* sizeof(sherd_meta_settings), set by the caller of sherd_meta_new */
    uint32_t nodes;    /* 1 .. 65535 */
    uint32_t group;    /* --group that products must use; 0: all columns of a node */
    bool balanced;     /* exposures are assigned in equal counts; otherwise drawn uniformly */
    bool shuffle_rows; /* dot: A's rows are sent shuffled too (tables `rows` and `unrows`, k x n) */
} sherd_meta_settings;

SHERD_API const sherd_field *sherd_meta_settings_fields(size_t *count);

typedef struct sherd_meta sherd_meta;

/* ---- making ---------------------------------------------------------------------------------- */

/** Makes metadata without operations. seed: 32 bytes, or NULL for a fresh one. Errors: SHERD_EINVAL
 *  (nodes), SHERD_ENOMEM. The caller frees *out with sherd_meta_free. */
SHERD_API int sherd_meta_new(sherd_meta **out, const sherd_meta_settings *settings,
                             const uint8_t *seed, sherd_diag *d) SHERD_MUST;
/** Appends an operation; its index determines its permutations. SHERD_EINVAL: a name that is in use
 *  or malformed, an unknown kind, a dimension beyond 2^32 - 1, or metadata that was loaded. */
SHERD_API int sherd_meta_add(sherd_meta *meta, const sherd_meta_operation *op,
                             sherd_diag *d) SHERD_MUST;
/**
 * Appends the operations of one training step of a network of sigmoid layers with squared cost over
 * `samples` rows. widths: inputs, hidden layers, outputs. For 784, 128, 10 these are eleven
 * operations: z1 a1 z2 a2 cost_delta cost_delta_squared a2_dz z2_dw z2_da a1_dz z1_dw.
 * SHERD_EINVAL: fewer than two widths, or a width of 0.
 */
SHERD_API int sherd_meta_add_network(sherd_meta *meta, const uint64_t *widths, size_t widths_len,
                                     uint64_t samples, sherd_diag *d) SHERD_MUST;
/** Wipes and frees; NULL is allowed. */
SHERD_API void sherd_meta_free(sherd_meta *meta);

/* ---- files ----------------------------------------------------------------------------------- */

/**
 * Reads a file of either form; nothing in it is trusted. Tables stay in the file, which is mapped,
 * until they are requested. SHERD_EOPEN, SHERD_EIO, SHERD_EFORMAT, SHERD_ESHAPE, SHERD_ENOMEM.
 */
SHERD_API int sherd_meta_load(sherd_meta **out, const char *path, sherd_diag *d) SHERD_MUST;

/** Zero-initialise, set size, then set what differs. */
typedef struct sherd_meta_save_options {
    size_t size;       /* sizeof(sherd_meta_save_options) */
    bool expanded;     /* with arrays; otherwise the seed alone */
    bool deflate;      /* compress the arrays */
    bool without_seed; /* expanded: leave the seed out; seed form is then impossible */
    double *seconds;   /* NULL, or one entry for each operation: seconds spent making its arrays */
    bool as_loaded;    /* in the form in which the file was read, for example after sherd_meta_use:
                          its arrays are copied, not derived; the three members above this that
                          decide the form are not used */
    sherd_hooks hooks; /* progress counts the bytes of arrays. After an interruption nothing was
                          written */
} sherd_meta_save_options;

/**
 * Writes path (mode 0600), completely or not at all; *size (may be NULL) receives the file's size
 * in bytes. Arrays are derived from the seed if it is known, otherwise copied from the file that
 * was loaded. They are streamed and never held in memory as a whole. SHERD_EINVAL: seed form
 * without a seed, or arrays of more than 1.1 TB; SHERD_EOPEN; SHERD_EIO, also if the disk has no
 * room for the arrays, which is found before they are made; SHERD_EFORMAT: copied exposures with
 * another digest, or a row that is not a permutation; SHERD_EINTERRUPTED.
 */
SHERD_API int sherd_meta_save(sherd_meta *meta, const char *path,
                              const sherd_meta_save_options *opt, uint64_t *size,
                              sherd_diag *d) SHERD_MUST;

/** Of calls that read all arrays. Zero-initialise, set size, then set what differs. */
typedef struct sherd_meta_read_options {
    size_t size;       /* sizeof(sherd_meta_read_options) */
    sherd_hooks hooks; /* progress counts the bytes of arrays, of all operations */
} sherd_meta_read_options;

/**
 * Checks all of a loaded file: the seed matches the commitment in the manifest, exposures are
 * within range, every row is a permutation, unshuffles are the inverses and, if the seed is known,
 * it regenerates every number. SHERD_EFORMAT; the message names operation and row.
 * SHERD_EINTERRUPTED.
 */
SHERD_API int sherd_meta_verify(sherd_meta *meta, const sherd_meta_read_options *opt,
                                sherd_diag *d) SHERD_MUST;

/* ---- reading --------------------------------------------------------------------------------- */

SHERD_API const sherd_meta_settings *sherd_meta_get(const sherd_meta *meta);
SHERD_API size_t sherd_meta_count(const sherd_meta *meta);
SHERD_API const sherd_meta_operation *sherd_meta_at(const sherd_meta *meta, size_t i);
/** Returns the index of an operation, or -1. */
SHERD_API int64_t sherd_meta_find(const sherd_meta *meta, const char *name);
/** Returns true if the metadata was loaded from an expanded file. */
SHERD_API bool sherd_meta_expanded(const sherd_meta *meta);
/** Returns the 32-byte seed, a secret; NULL if only tables are known. */
SHERD_API const uint8_t *sherd_meta_seed(const sherd_meta *meta);
/** Returns the SHA-256 commitment to the seed (32 bytes), which is known without the seed. */
SHERD_API const uint8_t *sherd_meta_commitment(const sherd_meta *meta);
/** Supplies the seed of a file without one. SHERD_EFORMAT: it does not match the commitment. */
SHERD_API int sherd_meta_seed_set(sherd_meta *meta, const uint8_t seed[32],
                                  sherd_diag *d) SHERD_MUST;
/** Returns the bytes of operation i's arrays in the expanded form, before compression. */
SHERD_API uint64_t sherd_meta_bytes(const sherd_meta *meta, size_t i);

/** Writes the exposures of operation i, sherd_meta_columns of them, from the file or the seed. */
SHERD_API int sherd_meta_exposures(sherd_meta *meta, size_t i, uint32_t *out,
                                   sherd_diag *d) SHERD_MUST;
/** Counts the exposures of operation i for each node: `nodes` counts. The memory used does not
 *  depend on the number of columns. */
SHERD_API int sherd_meta_exposure_counts(sherd_meta *meta, size_t i, uint64_t *counts,
                                         sherd_diag *d) SHERD_MUST;

typedef enum sherd_meta_table {
    SHERD_META_ENSHUFFLES,
    SHERD_META_UNSHUFFLES,
    SHERD_META_ROWS, /* with shuffle_rows, dot only */
    SHERD_META_UNROWS
} sherd_meta_table;

/**
 * Writes rows [row, row+rows) of a table of operation i at training step `step` (0: the tables in
 * the file). Each row is checked to be a permutation. SHERD_EINVAL: no such table or rows;
 * SHERD_EUNSUPPORTED: a step beyond 0 without the seed; SHERD_EFORMAT.
 */
SHERD_API int sherd_meta_rows(sherd_meta *meta, size_t i, sherd_meta_table table, uint64_t step,
                              uint64_t row, uint64_t rows, uint32_t *out, sherd_diag *d) SHERD_MUST;

/**
 * Fills *out, whose size the caller has set, with operation i for sherd_product_options.shuffles.
 * *out borrows from meta until the next call or sherd_meta_free. The operation is verified as by
 * sherd_meta_verify; the enshuffles and rows of an expanded file are held in memory. SHERD_EFORMAT,
 * SHERD_ENOMEM, SHERD_EINTERRUPTED; *out is unchanged then.
 */
SHERD_API int sherd_meta_shuffles(sherd_meta *meta, size_t i, struct sherd_shuffles *out,
                                  const sherd_meta_read_options *opt, sherd_diag *d) SHERD_MUST;

typedef enum sherd_meta_usage {
    SHERD_META_SAME_USE,  /* the operands that the operation was used with before */
    SHERD_META_FIRST_USE, /* recorded now: save meta before anything is sent */
    SHERD_META_REUSED     /* other operands, allowed by `reuse`: record this in the certificate */
} sherd_meta_usage;

/**
 * Enforces the reuse rule: metadata that was used with some operands is refused for others
 * (SHERD_EEXPOSURE) unless `reuse` is set. digest is the SHA-256 of this use's operands; the digest
 * of the first use stays recorded.
 */
SHERD_API int sherd_meta_use(sherd_meta *meta, size_t i, const uint8_t digest[32], bool reuse,
                             sherd_meta_usage *usage, sherd_diag *d) SHERD_MUST;

#ifdef __cplusplus
}
#endif

#endif
