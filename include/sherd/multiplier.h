/*
 * What computes products: this machine, or nodes that are not trusted. Code that needs products and
 * element-wise operations (training above all) is written against this, and runs unchanged locally,
 * in simulation and over a cluster.
 *
 * Who learns what is said by the implementation behind it: the local one tells nobody; one over
 * nodes tells them what its scheme leaks (docs/THREATS.md). All results are in the caller's memory
 * when a call returns. Calls on one multiplier come from one thread at a time.
 */
#ifndef SHERD_MULTIPLIER_H
#define SHERD_MULTIPLIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/mat.h"
#include "sherd/windows.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SHERD_MULTIPLIER_ABI 3u

/** Element-wise operations. The numbers travel to nodes and never change. */
typedef enum sherd_op {
    SHERD_SIGMOID = 16, /* 1/(1+exp(-a)) */
    SHERD_MINUS = 17,   /* a - b */
    SHERD_SQUARE = 18,  /* a * a */
    SHERD_TIMES = 19,   /* a * b, element by element */
    SHERD_RELU = 20,    /* max(a, 0), NaN stays NaN */
    SHERD_TANH = 21,
    SHERD_EXP = 22
} sherd_op;

/** An operand that a multiplier holds on to: resident on the nodes, or a copy here. Opaque; made by
 *  one multiplier and of use only to it. */
typedef struct sherd_kept sherd_kept;

/** Rows [first, first + count) of a kept operand. */
typedef struct sherd_rows {
    size_t first, count;
} sherd_rows;

/** How an operand is kept. */
typedef struct sherd_keeping {
    size_t part;                  /* rows of A that a product takes all of or none of; at least 1 */
    const sherd_windows *windows; /* what is kept is the matrix of windows of A's rows, which are
                                     images; NULL: A */
    size_t cols; /* of right operands to come, as far as is known, to plan by; 0: not known */
} sherd_keeping;

/**
 * An implementation. Constant and shared; ctx is the implementation's own. Every slot is mandatory.
 * Callers use the sherd_multiplier_* functions below, which check shapes and arguments once, so
 * that a slot may rely on them. On failure C is undefined, everything else as it was.
 */
typedef struct sherd_multiplier_ops {
    uint32_t abi;     /* SHERD_MULTIPLIER_ABI */
    const char *name; /* "local", ... */
    int (*multiply)(void *ctx, sherd_view a, sherd_view b, double *c, size_t ldc, sherd_diag *d);
    int (*keep)(void *ctx, sherd_view a, const sherd_keeping *how, sherd_kept **kept,
                sherd_diag *d);
    int (*multiply_kept)(void *ctx, sherd_kept *a, sherd_rows rows, bool transposed, sherd_view b,
                         double *c, size_t ldc, sherd_diag *d);
    /** Of the matrix that is kept: rows are windows where windows are. */
    void (*kept_shape)(const sherd_kept *kept, size_t *rows, size_t *cols, size_t *part);
    void (*release)(void *ctx, sherd_kept *kept);
    int (*map)(void *ctx, sherd_op op, sherd_view a, const sherd_view *b, double *out, size_t ld,
               sherd_diag *d);
    void (*free)(void *ctx);
} sherd_multiplier_ops;

/** A multiplier: functions and their context. Copying it copies a reference, not the multiplier. */
typedef struct sherd_multiplier {
    const sherd_multiplier_ops *ops;
    void *ctx;
} sherd_multiplier;

/**
 * C = A*B, row-major f64 with ldc >= b.cols; A is n x k, B is k x m, C overlaps neither.
 * SHERD_ESHAPE, SHERD_EINVAL (views, ldc, ABI), SHERD_ENOMEM, SHERD_ERANGE (exact arithmetic), and
 * what the implementation adds (a cluster: SHERD_EFEWNODES, SHERD_EWRONG, SHERD_EEXPOSURE, ...).
 */
SHERD_API int sherd_multiplier_multiply(sherd_multiplier m, sherd_view a, sherd_view b, double *c,
                                        size_t ldc, sherd_diag *d) SHERD_MUST;
/**
 * Keeps A for many products. The values are taken now: A's memory may change or go afterwards.
 * *kept is the caller's until sherd_multiplier_release, before the multiplier is freed; NULL on
 * failure. Over nodes A's fragments travel once, here.
 */
SHERD_API int sherd_multiplier_keep(sherd_multiplier m, sherd_view a, sherd_kept **kept,
                                    sherd_diag *d) SHERD_MUST;
/** C = K*B, or transpose(K)*B: layer forward and weight gradient with one resident operand. */
SHERD_API int sherd_multiplier_multiply_kept(sherd_multiplier m, sherd_kept *kept, bool transposed,
                                             sherd_view b, double *c, size_t ldc,
                                             sherd_diag *d) SHERD_MUST;
/**
 * Keeps A for products of some of its rows: it is cut into parts of `part` rows, the last of which
 * may be shorter, and a product takes whole parts that follow one another. So mini-batches are
 * parts of data that travelled once. sherd_multiplier_keep is this with one part. In fixed point
 * all parts have the exponent of the whole. SHERD_EINVAL: part is 0; else as sherd_multiplier_keep.
 * Who learns it: over nodes, also which parts a product takes.
 */
SHERD_API int sherd_multiplier_keep_parts(sherd_multiplier m, sherd_view a, size_t part,
                                          sherd_kept **kept, sherd_diag *d) SHERD_MUST;
/**
 * sherd_multiplier_keep_parts, and windows: K is then the matrix of windows of A's rows, with as
 * many rows for each image as it has windows, and so have its parts. Under SHERD_SHARE images
 * travel and nodes take windows of their shares; other schemes send the windows with each product.
 * In fixed point windows have the exponent of all images. SHERD_EINVAL: a description that is none;
 * SHERD_ESHAPE: A's rows are no such images, or the matrix has too many rows to count;
 * SHERD_EFEWNODES, under SHERD_SHARE, also: windows of more than 2^20 numbers, and too few nodes
 * that take any: then nothing was sent, and the matrix of windows may be kept or multiplied itself.
 */
SHERD_API int sherd_multiplier_keep_as(sherd_multiplier m, sherd_view a, const sherd_keeping *how,
                                       sherd_kept **kept, sherd_diag *d) SHERD_MUST;
/**
 * As sherd_multiplier_multiply_kept, K being these rows of what is kept: C = K*B, or
 * transpose(K)*B. SHERD_EINVAL: they are not whole parts.
 */
SHERD_API int sherd_multiplier_multiply_rows(sherd_multiplier m, sherd_kept *kept, sherd_rows rows,
                                             bool transposed, sherd_view b, double *c, size_t ldc,
                                             sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
SHERD_API void sherd_multiplier_release(sherd_multiplier m, sherd_kept *kept);
/**
 * out = op(A) or op(A, B), element by element, row-major f64 with ld >= a.cols. b is NULL exactly
 * for operations of one operand. out may be A's own memory if A is a row-major f64 view with the
 * same ld. The bits are the same from every implementation (matrix/funcs.h).
 */
SHERD_API int sherd_multiplier_map(sherd_multiplier m, sherd_op op, sherd_view a,
                                   const sherd_view *b, double *out, size_t ld,
                                   sherd_diag *d) SHERD_MUST;
/** Frees what is behind it; a zeroed multiplier is allowed. */
SHERD_API void sherd_multiplier_free(sherd_multiplier m);

/**
 * This machine. bits = 0: float64 by BLAS; else fixed point with that many bits (2..53), exact, the
 * same bits everywhere. Nobody learns anything. SHERD_EINVAL, SHERD_ENOMEM; *out is zeroed then.
 */
SHERD_API int sherd_multiplier_local(unsigned bits, sherd_multiplier *out,
                                     sherd_diag *d) SHERD_MUST;

#ifdef __cplusplus
}
#endif

#endif
