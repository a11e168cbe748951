/*
 * One operation from its operands to a result that is compared, certified and written: the steps
 * around sherd_multiply and sherd_apply, in the order that protects the caller's files. What can be
 * found without nodes is found before any is started: sherd_operation_new does that, and
 * sherd_operation_run the rest. `sherd multiply` and `sherd apply` are these calls.
 *
 *     struct sherd_operation_options o = { .size = sizeof o, .nodes = &seven, .check = true,
 *                                          .file_a = "A.npy", .file_b = "B.npy",
 *                                          .output = "C.npy" };
 *     err = sherd_operation_new(&operation, &o, &diag);
 *     if (!err) err = sherd_operation_run(operation, &diag);
 *     sherd_operation_free(operation);
 *
 * The result file gets its name last, when the result has been compared and its certificate is
 * ready; until then earlier files of those names are kept. The certificate gets its name after the
 * result, so that none exists without its result.
 */
#ifndef SHERD_OPERATION_H
#define SHERD_OPERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/check.h"
#include "sherd/cluster.h"
#include "sherd/err.h"
#include "sherd/field.h"
#include "sherd/forecast.h"
#include "sherd/hooks.h"
#include "sherd/mat.h"
#include "sherd/meta.h"
#include "sherd/op.h"
#include "sherd/product.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sherd_operation sherd_operation;

/** Zero-initialise, set size, then set what differs. What the members point to must stay valid
 *  until sherd_operation_free. */
typedef struct sherd_operation_options {
    size_t size;                 /* sizeof(sherd_operation_options) */
    sherd_op op;                 /* 0: SHERD_OP_PRODUCT */
    const char *file_a, *file_b; /* operands in files (sherd_array_open). One dimension is a row, on
                                    the right of a product a column. NULL: a and b */
    sherd_view a, b;             /* operands in memory; b: of operations with two operands */
    const sherd_product_options *product; /* how it is computed; NULL: all defaults. Names and
                                             profiles that it lacks are those of the operands, and
                                             its hooks are not used */
    sherd_cluster *cluster;               /* the nodes: an open cluster, which stays open; or */
    const sherd_cluster_options *nodes;   /* nodes to open for this operation, and to end. `work` is
                                           set here, hooks if there are none, and for element-wise
                                           operations nodes_min 1 if it is 0 */
    const char *meta;           /* metadata file for exposures and permutations; NULL: none */
    const char *meta_operation; /* as sherd_meta_request.operation, .settings and .reuse */
    unsigned meta_settings;
    bool meta_reuse;
    double *result;     /* memory for the result, rows x columns; NULL: allocated */
    const char *output; /* file for the result, or a pipe; NULL: none. .csv if its name ends so,
                           otherwise .npy, where one dimension of an operand in a file leaves the
                           result one dimension less, as in numpy */
    bool check;         /* compare with the result computed here: SHERD_EDIFFERS, nothing written */
    bool distance;      /* with check, exact products: measure the distance from float64, too */
    const char *certificate; /* file for a certificate; NULL: none */
    const char *key_file;    /* signs it; NULL: that of `nodes`, otherwise a fresh key */
    bool certificate_public; /* leave the digests of the inputs out of it */
    bool forecast;           /* products: forecast the cost before the nodes get to work */
    bool measured;           /* forecast: measure this machine for it, and the links if nodes are on
                                 other machines (sherd_forecast_probe); if not, or if traffic is
                                 recorded, it has no times of such nodes */
    bool forecast_only;      /* nothing will be sent or written, and metadata is not used up:
                                 sherd_operation_choices_new */
    uint32_t timeout_ms;     /* from sherd_operation_new until the result is here; 0: those of
                                 `product` and `nodes` */
    sherd_hooks hooks;       /* of all steps; progress: of the product alone. In
                                 sherd_operation_choices_new as there */
} sherd_operation_options;

/**
 * Opens the operands, checks all that can be checked without nodes, reserves memory and disk space
 * for the result (for a .csv the least that it can take), and takes metadata last. The caller frees
 * *out, which is NULL on failure.
 *
 * Errors: SHERD_EINVAL, also if the output or the certificate is the file of something else; those
 * of sherd_array_open, sherd_masks_get, sherd_npy_writer_new, sherd_certificate_new,
 * sherd_product_range, sherd_meta_take, sherd_product_exposures and sherd_cluster_check;
 * SHERD_ESHAPE: the operands do not fit; SHERD_ENOMEM.
 */
SHERD_API int sherd_operation_new(sherd_operation **out, const sherd_operation_options *opt,
                                  sherd_diag *d) SHERD_MUST;
/**
 * Opens the nodes, computes the operation on them, compares, certifies and writes the result, and
 * ends the nodes that it opened. Once; a failed operation is freed. The error of a record
 * (sherd_cluster_end) comes when the result has been written.
 *
 * Errors: those of sherd_cluster_open, sherd_multiply, sherd_check_result and
 * sherd_certificate_make; SHERD_EIO: an operand's file has changed, or the result cannot be
 * written; SHERD_EINVAL: it has run, or is for forecasts only.
 */
SHERD_API int sherd_operation_run(sherd_operation *o, sherd_diag *d) SHERD_MUST;
/** Forecasts all ways to compute this product over its nodes (sherd_choices_new,
 *  sherd_choices_forecast), the one of its options first. Nothing is started or connected to,
 *  so there are no times if nodes are on other machines or compute on devices. The caller frees
 *  *out before the operation. SHERD_EINVAL: not a product. */
SHERD_API int sherd_operation_choices_new(sherd_choices **out, sherd_operation *o,
                                          sherd_diag *d) SHERD_MUST;

/** What is known of an operation, also of one that failed. Everything belongs to it. */
typedef struct sherd_operation_info {
    size_t size;          /* sizeof(sherd_operation_info), set by the caller */
    bool written;         /* the result file exists, whatever failed later */
    bool certified;       /* its certificate exists, too */
    double seconds;       /* from sherd_operation_new until the result was here, forecast left out;
                              0: it is not */
    uint64_t check_calls; /* calls of BLAS in this process that comparisons made */
    sherd_cluster *cluster;  /* NULL: not open yet */
    sherd_view a, b, result; /* result: float64; its values are there after `seconds` */
    const sherd_product_options *options; /* as used: with widths (bits_b 0: as bits), and
                                             after sherd_operation_run with metadata, or the seed
                                             of a scheme that shuffles */
    const sherd_report *report;           /* of the call */
    const sherd_check *check;             /* NULL, like the next two, if it was not made */
    const sherd_distance *distance;
    const sherd_forecast *forecast;
    uint32_t result_ndim; /* dimensions of the result in a file: 0 to 2 */
} sherd_operation_info;

/** Lists the single values before `cluster`; what follows has tables of its own. */
SHERD_API const sherd_field *sherd_operation_info_fields(size_t *count);

/** Fills *out. SHERD_EINVAL. */
SHERD_API int sherd_operation_get(const sherd_operation *o, sherd_operation_info *out,
                                  sherd_diag *d) SHERD_MUST;
/** Ends the nodes that it opened, discards what was not written, and erases secrets. NULL is
 *  allowed. */
SHERD_API void sherd_operation_free(sherd_operation *o);

#ifdef __cplusplus
}
#endif

#endif
