/*
 * The certificate of a result: the inputs, the result, the scheme, the number of nodes, and how
 * strongly the answers were checked. With the file, the matrices and the coordinator's public key
 * anyone can recompute the product centrally and compare (`sherd verify`). Certificates are JSON
 * files with mode 0600.
 *
 * Signed bytes: "sherd-certificate-v1\n", then the object without its member "signature", keys
 * sorted, no white space (jansson's JSON_COMPACT | JSON_SORT_KEYS | JSON_ENSURE_ASCII). All numbers
 * are integers. A reader verifies all members, including those that it does not know. A member that
 * is added later (nodes.list) therefore does not need a new schema, and may be missing when a
 * certificate is read.
 *
 * Who learns it: input digests let a reader of the file test guesses of the inputs. The member
 * "notice" of the file says so; with has_inputs = false the digests are omitted. The file contains
 * no seed, permutation, mask or check vector.
 */
#ifndef STORE_CERTIFICATE_H
#define STORE_CERTIFICATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "store/digest.h"
#include "store/file.h"

#define SHERD__CERTIFICATE_BYTES_MAX ((size_t)1 << 20)
#define SHERD__CERTIFICATE_CORES 64u
#define SHERD__CERTIFICATE_WARNINGS 16u
#define SHERD__CERTIFICATE_NODES                                                                   \
    3000u /* listed nodes: the file stays readable, and below its size limit */

typedef enum sherd__certified {
    SHERD__UNCHECKED = 0, /* not compared with a centralized computation */
    SHERD__EQUAL = 1,     /* exact: bit for bit; float: every entry within gamma_k of it */
    SHERD__DIFFERS = 2
} sherd__certified;

typedef struct sherd__certificate_matrix {
    sherd_dtype dtype;
    uint64_t rows, cols;
    sherd__digest digest; /* of an input: valid only if has_inputs */
} sherd__certificate_matrix;

typedef struct sherd__certificate_node {
    char name[64], domain[64];
    char key[56]; /* "sha256:...", as in node files */
} sherd__certificate_node;

typedef struct sherd__certificate {
    int64_t created_unix;
    char operation[24]; /* "product", or an element-wise one: "sigmoid", "multiply" */
    sherd__certificate_matrix inputs[2], result;
    uint32_t inputs_len; /* 1 or 2 */
    bool has_inputs;     /* the file contains input digests */

    bool exact;                     /* fixed point; otherwise floats */
    uint32_t bits[2];               /* exact: widths of A and of B; 0: unscaled integers */
    uint32_t primes[8], primes_len; /* 0: a single product in doubles sufficed */
    bool norms_leaked;              /* the number of primes depends on the data */

    char scheme[16];   /* "permute", "plain" */
    bool grouped;      /* columns share permutations: `group` is part of the certificate */
    uint64_t group;    /* columns per group; 0: all */
    char exposure[16]; /* "uniform", "balanced" */
    bool shuffle_rows;
    uint32_t colluding; /* T; 0 if the scheme claims no privacy */
    bool has_seed;
    sherd__digest seed_commitment;
    bool reused_metadata; /* --reuse-metadata: the metadata served other operands before */

    /* How answers were checked before use. "freivalds": exact, two-sided, modulo 2^modulus_bits -
     * 1; "freivalds-float": real weights and a tolerance, which detects only gross errors;
     * "sample": entries at secret positions were recomputed. */
    char check[16];
    uint32_t freivalds_trials;       /* per answer; 0: this check was not used */
    uint32_t freivalds_modulus_bits; /* 0: no modulus */
    /* each single wrong answer passes with probability 2^this; 0: no bound */
    int32_t freivalds_error_log2;
    /* "sample": probability, in millionths, of missing one wrong entry */
    uint32_t sample_missed_ppm;
    sherd__certified equal;

    uint32_t nodes, domains;
    bool domains_simulated;        /* one host ran all nodes */
    sherd__certificate_node *list; /* owned; describes all `nodes` nodes, or is empty: list_len 0 */
    uint32_t list_len;
    char sherd_version[32], protocol_version[16], blas_version[96];
    char cores[SHERD__CERTIFICATE_CORES][32]; /* distinct BLAS cores of the nodes */
    uint32_t cores_len;
    char warnings[SHERD__CERTIFICATE_WARNINGS][200];
    uint32_t warnings_len;

    bool has_signature; /* the members below are set, by reading or signing */
    uint8_t key[32];    /* the coordinator's raw Ed25519 public key */
    uint8_t signature[64];
} sherd__certificate;

/** Signs len bytes. Returns 0 or SHERD_E*. The caller supplies it, so that store/ handles no
 *  private key. */
typedef int (*sherd__certificate_sign)(void *ctx, const uint8_t *msg, size_t len, uint8_t sig[64]);

/** Computes the commitment to a 32-byte seed, SHA-256("sherd seed-v1", 0x00, seed). The manifest of
 *  a metadata file has the same bytes as "seed_commitment" (docs/METADATA.md), so the two can be
 *  matched. */
int sherd__certificate_commit_seed(sherd__digest *out, const uint8_t seed[32]) SHERD_MUST;
/** Adds a line to c->warnings, printf style. The line is dropped if there is no room. */
void sherd__certificate_warn(sherd__certificate *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/** Adds a BLAS core if it is not listed yet. */
void sherd__certificate_core(sherd__certificate *c, const char *core);
/** Allocates c->list for `len` nodes, zeroed. Errors: SHERD_ENOMEM; SHERD_EINVAL if len exceeds
 *  SHERD__CERTIFICATE_NODES. */
int sherd__certificate_list(sherd__certificate *c, uint32_t len) SHERD_MUST;
/** Frees the memory that a filled or read certificate owns, and zeroes it. */
void sherd__certificate_fini(sherd__certificate *c);

/**
 * Renders c, signs it with `key` (raw Ed25519) and returns the text of the file in *text
 * (NUL-terminated; the caller frees it with sherd__free). Sets c->key and c->signature. Errors:
 * SHERD_EINVAL if a member is out of range (no dtype, too many inputs), SHERD_ENOMEM, or the result
 * of `sign`.
 */
int sherd__certificate_text(sherd__certificate *c, const uint8_t key[32],
                            sherd__certificate_sign sign, void *sign_ctx, char **text,
                            sherd_diag *d) SHERD_MUST;
/** Writes such a text into a file with mode 0600, which the caller commits or aborts. Until then
 *  nothing has changed under that name. A certificate must be committed after its result, never
 *  before. */
int sherd__certificate_begin(sherd__file **out, const char *path, const char *text,
                             sherd_diag *d) SHERD_MUST;

/**
 * Reads a certificate and verifies its signature with the key that it contains. The caller must
 * check that this is the coordinator's key, and frees *out with sherd__certificate_fini. Errors:
 * SHERD_EOPEN, SHERD_EIO; SHERD_EFORMAT: malformed, or a member is missing or out of range (the
 * message names it); SHERD_EVERSION: another schema; SHERD_EAUTH: the signature does not match the
 * text (edited or damaged).
 */
int sherd__certificate_load(sherd__certificate *out, const char *path, sherd_diag *d) SHERD_MUST;
/** Does the same for a text in memory; `where` names it in messages. */
int sherd__certificate_parse(sherd__certificate *out, const char *text, size_t len,
                             const char *where, sherd_diag *d) SHERD_MUST;

#endif
