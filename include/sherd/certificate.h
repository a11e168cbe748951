/*
 * Certificates: a signed account of one operation. It names inputs and result by their digests, the
 * scheme, the nodes, and how strongly their answers were checked. With the file, the matrices and
 * the coordinator's public key, anyone can compute the operation again and compare
 * (sherd_certificate_verify). docs/CERTIFICATES.md describes the file, a JSON text.
 *
 * A file is written in two steps, so that it appears after the result that it is about, and neither
 * of them after a failure: sherd_certificate_begin writes it without a name, and
 * sherd_certificate_commit gives it its name when the result is in place.
 *
 * Who learns it: digests of inputs let a reader of the file test guesses of the inputs; they can be
 * left out. The file contains no seed, permutation, mask or check vector. Its mode is 0600.
 */
#ifndef SHERD_CERTIFICATE_H
#define SHERD_CERTIFICATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/check.h"
#include "sherd/cluster.h"
#include "sherd/err.h"
#include "sherd/field.h"
#include "sherd/hooks.h"
#include "sherd/mat.h"
#include "sherd/op.h"
#include "sherd/product.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sherd_certificate sherd_certificate;

/** The coordinator's own comparison with the centralized result. */
typedef enum sherd_verdict {
    SHERD_UNCHECKED = 0,
    SHERD_EQUAL = 1, /* sherd_check.equal */
    SHERD_DIFFERS = 2
} sherd_verdict;

/* ---- making ---------------------------------------------------------------------------------- */

/** Makes an empty certificate that will be signed with the key in a file (sherd keygen); NULL: with
 *  a fresh key, which says nothing about who made it. The caller frees *out with
 *  sherd_certificate_free. SHERD_EOPEN, SHERD_EKEY, SHERD_ENOMEM: an unusable key is found before
 *  the operation runs. */
SHERD_API int sherd_certificate_new(sherd_certificate **out, const char *key_file,
                                    sherd_diag *d) SHERD_MUST;

/** The operation that a certificate is about: arguments and report of a sherd_multiply or
 *  sherd_apply that succeeded. Zero-initialise, set size, then set what differs. */
typedef struct sherd_certified {
    size_t size;                          /* sizeof(sherd_certified) */
    sherd_cluster *cluster;               /* the nodes; it may have been ended, but not closed */
    sherd_op op;                          /* 0: SHERD_OP_PRODUCT */
    sherd_view a, b;                      /* b: of operations with two operands */
    sherd_view result;                    /* float64 */
    const sherd_product_options *options; /* of the call; profile_a and profile_b give their
                                             digests, if set */
    const sherd_report *report;
    sherd_verdict verdict;
    bool without_inputs;  /* leave the digests of the inputs out */
    bool reused_metadata; /* the metadata had served other operands (SHERD_META_REUSED) */
    sherd_hooks hooks;    /* interruption, while matrices are digested */
} sherd_certified;

/** Describes the operation, and signs the description. SHERD_EINVAL, SHERD_ENOMEM,
 *  SHERD_EINTERRUPTED; the certificate stays empty then. */
SHERD_API int sherd_certificate_make(sherd_certificate *c, const sherd_certified *what,
                                     sherd_diag *d) SHERD_MUST;
/** Returns the file's text, *len bytes (len may be NULL) and a NUL, which belongs to c; NULL if c
 *  is empty or was loaded. */
SHERD_API const char *sherd_certificate_text(const sherd_certificate *c, size_t *len);
/** Writes the text to disk, to appear at `path` (mode 0600) with sherd_certificate_commit. Until
 *  then a file of that name is unchanged; sherd_certificate_free discards what was written.
 *  SHERD_EINVAL: there is no text, or a file was started; SHERD_EOPEN, SHERD_EIO. */
SHERD_API int sherd_certificate_begin(sherd_certificate *c, const char *path,
                                      sherd_diag *d) SHERD_MUST;
/** Publishes the file. SHERD_EINVAL: none was started; SHERD_EIO, SHERD_EOPEN: a file of that name
 *  is unchanged. */
SHERD_API int sherd_certificate_commit(sherd_certificate *c, sherd_diag *d) SHERD_MUST;
/** Does both. */
SHERD_API int sherd_certificate_write(sherd_certificate *c, const char *path,
                                      sherd_diag *d) SHERD_MUST;

/* ---- reading --------------------------------------------------------------------------------- */

/**
 * Reads a certificate and verifies its signature with the key that it contains. It does not verify
 * who owns this key: sherd_certificate_accept compares it with a known one. SHERD_EOPEN, SHERD_EIO;
 * SHERD_EFORMAT; SHERD_EVERSION: another schema; SHERD_EAUTH: the signature does not match the
 * text.
 */
SHERD_API int sherd_certificate_load(sherd_certificate **out, const char *path,
                                     sherd_diag *d) SHERD_MUST;
/** The same for a text in memory; messages call it `name`. */
SHERD_API int sherd_certificate_parse(sherd_certificate **out, const char *text, size_t len,
                                      const char *name, sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
SHERD_API void sherd_certificate_free(sherd_certificate *c);

/** How an operation was computed. */
typedef enum sherd_mode { SHERD_MODE_FLOAT = 0, SHERD_MODE_EXACT = 1 } sherd_mode;

/** What a certificate says. Names are those of docs/CERTIFICATES.md, "Members". */
typedef struct sherd_certificate_info {
    size_t size;          /* sizeof(sherd_certificate_info), set by the caller */
    char signer[56];      /* "sha256:...", as in node files; empty if there is no signature */
    int64_t created;      /* seconds since 1970 */
    char operation[24];   /* "product", or the name of an element-wise operation, such as
                             "sigmoid" */
    uint32_t inputs;      /* 1 or 2 */
    bool inputs_compared; /* the certificate has the digests of the inputs */
    sherd_mode mode;
    uint32_t bits_a, bits_b; /* exact: widths; 0: integers, unchanged */
    uint32_t primes;         /* number of primes; 0: one product in float64 sufficed */
    bool norms_leaked;
    char scheme[16];
    uint32_t colluding; /* domains that learn nothing together; 0: the scheme claims no privacy */
    uint64_t group; /* columns that share a permutation; 0: all, or the scheme does not shuffle */
    char exposure[16]; /* "uniform", "balanced", or empty */
    bool shuffle_rows;
    bool reused_metadata;
    char method[16]; /* check of the nodes' answers: "freivalds", "freivalds-float", "sample" */
    uint32_t freivalds_trials, freivalds_modulus_bits;
    int32_t freivalds_error_log2; /* a wrong answer passes with probability 2^this; 0: no bound */
    uint32_t sample_missed_ppm;   /* sample: chance in a million that one wrong entry is missed */
    sherd_verdict equal;
    uint32_t domains;
    bool domains_simulated;
    uint32_t nodes; /* number of nodes */
    uint32_t
        nodes_listed;  /* number of nodes that sherd_certificate_node_at describes; 0 if there are
                              too many to list */
    uint32_t warnings; /* number of warnings (sherd_certificate_warning_at) */
    char sherd_version[32], protocol_version[16], blas_version[96];
} sherd_certificate_info;

SHERD_API const sherd_field *sherd_certificate_info_fields(size_t *count);
/** Fills *out. SHERD_EINVAL: c is empty. */
SHERD_API int sherd_certificate_get(const sherd_certificate *c, sherd_certificate_info *out,
                                    sherd_diag *d) SHERD_MUST;

typedef struct sherd_certificate_matrix {
    size_t size;   /* sizeof(sherd_certificate_matrix), set by the caller */
    char dtype[8]; /* numpy's name: "<f8" */
    uint64_t rows, cols;
    bool has_digest;
    uint8_t sha256[32];
} sherd_certificate_matrix;

SHERD_API const sherd_field *sherd_certificate_matrix_fields(size_t *count);
/** Describes input i, or the result if i is the number of inputs. SHERD_EINVAL: there is none. */
SHERD_API int sherd_certificate_matrix_at(const sherd_certificate *c, uint32_t i,
                                          sherd_certificate_matrix *out, sherd_diag *d) SHERD_MUST;

typedef struct sherd_certificate_node {
    size_t size; /* sizeof(sherd_certificate_node), set by the caller */
    char name[64], domain[64];
    char key[56]; /* "sha256:..." */
} sherd_certificate_node;

SHERD_API const sherd_field *sherd_certificate_node_fields(size_t *count);
SHERD_API int sherd_certificate_node_at(const sherd_certificate *c, uint32_t i,
                                        sherd_certificate_node *out, sherd_diag *d) SHERD_MUST;
/** Returns warning i, which belongs to c, or NULL. */
SHERD_API const char *sherd_certificate_warning_at(const sherd_certificate *c, uint32_t i);

/* ---- verifying ------------------------------------------------------------------------------- */

/** Checks what can be checked without matrices: that the key `signer` ("sha256:...", also behind
 *  "key="; NULL: any) has signed, and that this version can compute the operation. SHERD_EAUTH:
 *  another key; SHERD_EINVAL: `signer` is no fingerprint; SHERD_EUNSUPPORTED, SHERD_EFORMAT. */
SHERD_API int sherd_certificate_accept(const sherd_certificate *c, const char *signer,
                                       sherd_diag *d) SHERD_MUST;

/** Zero-initialise, set size, then set what differs. */
typedef struct sherd_verify_options {
    size_t size;          /* sizeof(sherd_verify_options) */
    const char *signer;   /* as for sherd_certificate_accept */
    const char *names[3]; /* names of inputs and result in messages, in the order of the matrices;
                             NULL: "input 1", "input 2", "the result" */
    sherd_hooks hooks;    /* as in sherd_check_options */
} sherd_verify_options;

/**
 * Verifies that the matrices are those of the certificate and that the result is right: accepts the
 * certificate as above, compares dtypes, shapes and digests, and computes the operation again from
 * the certificate's own description (sherd_check_result), bit for bit if it is exact, otherwise by
 * gamma_k |A||B|. matrices: the inputs, then the result; len: their number. *out, which may be
 * NULL, is filled once the result was compared. A certificate's statements about nodes, scheme and
 * check cannot be recomputed: they are the signer's.
 *
 * Errors, in the order of the checks: those of sherd_certificate_accept; SHERD_EINVAL: len is not
 * the number of the certificate's matrices; SHERD_ESHAPE; SHERD_EFORMAT: an input is not the
 * certified one; SHERD_EDIFFERS: the result is not the certified one, or is wrong; those of
 * sherd_check_result.
 */
SHERD_API int sherd_certificate_verify(const sherd_certificate *c, const sherd_view *matrices,
                                       size_t len, const sherd_verify_options *opt,
                                       sherd_check *out, sherd_diag *d) SHERD_MUST;

/** Sets op, exact and widths of a comparison as the certificate states, for sherd_check_distance.
 *  The other members are unchanged. SHERD_EUNSUPPORTED, SHERD_EFORMAT as above. */
SHERD_API int sherd_certificate_options(const sherd_certificate *c, sherd_check_options *opt,
                                        sherd_diag *d) SHERD_MUST;

#ifdef __cplusplus
}
#endif

#endif
