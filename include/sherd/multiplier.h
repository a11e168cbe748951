/*
 * A multiplier computes products, on this machine or on nodes that are not trusted. Code that needs
 * products and element-wise operations (mainly training) is written against this interface and runs
 * unchanged locally, in simulation and over a cluster.
 *
 * Who learns the operands depends on the implementation: the local one reveals nothing; one over
 * nodes reveals to them what its scheme leaks (docs/THREATS.md). All results are in the caller's
 * memory when a call returns. A multiplier is called by one thread at a time.
 */
#ifndef SHERD_MULTIPLIER_H
#define SHERD_MULTIPLIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/mat.h"
#include "sherd/op.h"
#include "sherd/windows.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SHERD_MULTIPLIER_ABI 4u

/** An operand that a multiplier keeps: resident on the nodes, or copied on this machine. Opaque; it
 *  can be used only with the multiplier that made it. */
typedef struct sherd_kept sherd_kept;

/** Rows [first, first + count) of a kept operand. Passed by value: it never grows. */
typedef struct sherd_rows {
    size_t first, count;
} sherd_rows;

/** How an operand is kept. Zero-initialise, set size, then set what differs. */
typedef struct sherd_keep_options {
    size_t size;                  /* sizeof(sherd_keep_options) */
    size_t part;                  /* number of rows of A that products take as a whole; 0: all */
    const sherd_windows *windows; /* keep the windows of A's rows, which are images; NULL: keep A */
    size_t cols;  /* number of columns of the right operands, as a planning hint; 0: not known */
    bool one_way; /* only K*B will be computed, and not transpose(K)*B */
} sherd_keep_options;

/**
 * An implementation. Constant and shared; ctx belongs to the implementation. Every slot is
 * mandatory. Callers use the sherd_multiplier_* functions below, which check shapes and arguments
 * once, so slots may rely on them: `how` is of this library's version, and its part at least 1. On
 * failure C is undefined and nothing else has changed. Since the library calls the slots, `abi`
 * takes the place of a size: it changes with every change of this struct, and an implementation of
 * another version is refused.
 */
typedef struct sherd_multiplier_ops {
    uint32_t abi;     /* SHERD_MULTIPLIER_ABI */
    const char *name; /* "local", ... */
    int (*multiply)(void *ctx, sherd_view a, sherd_view b, double *c, size_t ldc, sherd_diag *d);
    int (*keep)(void *ctx, sherd_view a, const sherd_keep_options *how, sherd_kept **kept,
                sherd_diag *d);
    int (*multiply_kept)(void *ctx, sherd_kept *a, sherd_rows rows, bool transposed, sherd_view b,
                         double *c, size_t ldc, sherd_diag *d);
    /** Writes the shape of the kept matrix; its rows are windows if windows are kept. */
    void (*kept_shape)(const sherd_kept *kept, size_t *rows, size_t *cols, size_t *part);
    void (*release)(void *ctx, sherd_kept *kept);
    int (*map)(void *ctx, sherd_op op, sherd_view a, sherd_view b, double *out, size_t ld,
               sherd_diag *d);
    void (*free)(void *ctx);
} sherd_multiplier_ops;

/** A multiplier: functions and their context. A copy refers to the same multiplier. Passed by
 *  value: it never grows. */
typedef struct sherd_multiplier {
    const sherd_multiplier_ops *ops;
    void *ctx;
} sherd_multiplier;

/**
 * Computes C = A*B, row-major f64 with ldc >= b.cols; A is n x k, B is k x m, C overlaps neither.
 * SHERD_ESHAPE, SHERD_EINVAL (views, ldc, ABI), SHERD_ENOMEM, SHERD_ERANGE (exact arithmetic), and
 * the errors of the implementation (a cluster: SHERD_EFEWNODES, SHERD_EWRONG, SHERD_EEXPOSURE,
 * ...).
 */
SHERD_API int sherd_multiplier_multiply(sherd_multiplier m, sherd_view a, sherd_view b, double *c,
                                        size_t ldc, sherd_diag *d) SHERD_MUST;
/**
 * Keeps A for many products. The values are copied now: A's memory may change or be freed
 * afterwards. The caller releases *kept with sherd_multiplier_release before it frees the
 * multiplier. *kept is NULL on failure. Over nodes, A's fragments are sent once, by this call, or
 * at their first use.
 *
 * part: A is cut into parts of so many rows, the last of which may be shorter, and a product takes
 * consecutive whole parts. Mini-batches can thus be parts of data that is sent once. In fixed point
 * all parts have the exponent of the whole. Who learns it: over nodes, these also learn which parts
 * a product takes.
 *
 * one_way: under SHERD_SHARE shares may then be coded by the code with the least predicted time,
 * and need not hold sums over the rows of A. transpose(K)*B is SHERD_EUNSUPPORTED then under the
 * schemes that keep shares; other implementations ignore one_way. sherd_product_options.code
 * SHERD_CODE_INNER implies it, and excludes windows (SHERD_EUNSUPPORTED).
 *
 * windows: K is the matrix of windows of A's rows. An image has as many rows in K and its parts as
 * it has windows. Under SHERD_SHARE images are sent and nodes take windows of their shares; other
 * schemes send the windows with each product. In fixed point windows have the exponent of all
 * images. SHERD_EINVAL: an invalid description; SHERD_ESHAPE: A's rows are not such images, or the
 * matrix has too many rows to count; SHERD_EFEWNODES, under SHERD_SHARE, also: windows have more
 * than 2^20 numbers, and too few nodes accept them. Nothing was sent then, and the caller may keep
 * or multiply the matrix of windows instead.
 */
SHERD_API int sherd_multiplier_keep(sherd_kept **kept, sherd_multiplier m, sherd_view a,
                                    const sherd_keep_options *how, sherd_diag *d) SHERD_MUST;
/** Computes C = K*B or transpose(K)*B: layer forward and weight gradient with one operand. */
SHERD_API int sherd_multiplier_multiply_kept(sherd_multiplier m, sherd_kept *kept, bool transposed,
                                             sherd_view b, double *c, size_t ldc,
                                             sherd_diag *d) SHERD_MUST;
/**
 * Computes C = K*B or transpose(K)*B like sherd_multiplier_multiply_kept, where K is these rows of
 * the kept matrix. SHERD_EINVAL: the rows are not whole parts.
 */
SHERD_API int sherd_multiplier_multiply_rows(sherd_multiplier m, sherd_kept *kept, sherd_rows rows,
                                             bool transposed, sherd_view b, double *c, size_t ldc,
                                             sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
SHERD_API void sherd_multiplier_release(sherd_multiplier m, sherd_kept *kept);
/**
 * Computes out = op(A) or op(A, B), element by element, row-major f64 with ld >= a.cols. b is
 * ignored for operations with one operand. out may be A's own memory if A is a row-major f64 view
 * with the same ld. All implementations give the same bits (matrix/funcs.h).
 */
SHERD_API int sherd_multiplier_map(sherd_multiplier m, sherd_op op, sherd_view a, sherd_view b,
                                   double *out, size_t ld, sherd_diag *d) SHERD_MUST;
/** Frees the implementation's context; a zeroed multiplier is allowed. */
SHERD_API void sherd_multiplier_free(sherd_multiplier m);

/**
 * Makes a multiplier that computes on this machine. bits = 0: float64 by BLAS; otherwise exact
 * fixed point with that many bits (2..53), with the same bits everywhere. No operand leaves this
 * machine. SHERD_EINVAL, SHERD_ENOMEM; *out is zeroed then.
 */
SHERD_API int sherd_multiplier_local(sherd_multiplier *out, unsigned bits,
                                     sherd_diag *d) SHERD_MUST;

#ifdef __cplusplus
}
#endif

#endif
