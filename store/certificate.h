/*
 * The certificate of a result: which inputs gave which result, under which scheme, on how many
 * nodes, checked how strongly. Whoever has the file, the matrices and the coordinator's public key
 * can recompute the product centrally and compare (`sherd verify`). Written as JSON, mode 0600.
 *
 * Signed bytes: "sherd-certificate-v1\n", then the object without its member "signature", keys
 * sorted, no white space (jansson's JSON_COMPACT | JSON_SORT_KEYS | JSON_ENSURE_ASCII). All numbers
 * are integers. A reader that knows fewer members than the file has still verifies them all, so a
 * member that is added later (nodes.list) needs no other schema, and may be missing when read.
 *
 * Who learns it: input digests let a holder test guesses of the inputs, which the file says in its
 * member "notice"; has_inputs = false leaves them out. It holds no seed, permutation, mask or check
 * vector.
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
    3000u /* that are listed: the file stays readable, in both
                                          senses */

typedef enum sherd__certified {
    SHERD__UNCHECKED = 0, /* not compared with a centralized computation */
    SHERD__EQUAL = 1,     /* exact: bit for bit; float: within gamma_k of it, every entry */
    SHERD__DIFFERS = 2
} sherd__certified;

typedef struct sherd__certificate_matrix {
    sherd_dtype dtype;
    uint64_t rows, cols;
    sherd__digest digest; /* of an input only where has_inputs */
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
    bool has_inputs;     /* input digests are given */

    bool exact;                     /* fixed point; else floats */
    uint32_t bits[2];               /* exact: of A and of B; 0: integers taken as they are */
    uint32_t primes[4], primes_len; /* 0: one product in doubles sufficed */
    bool norms_leaked;              /* the number of primes was fitted to the data */

    char scheme[16];   /* "permute", "plain" */
    uint64_t group;    /* permute: 0: all */
    char exposure[16]; /* "uniform", "balanced" */
    bool shuffle_rows;
    uint32_t colluding; /* T; 0 where the scheme claims no privacy */
    bool has_seed;
    sherd__digest seed_commitment;
    bool reused_metadata; /* served other operands before: --reuse-metadata */

    /* How answers were checked before use. "freivalds": exact, two-sided, modulo 2^modulus_bits -
     * 1; "freivalds-float": real weights and a tolerance, which finds gross errors only; "sample":
     * entries recomputed at secret places. */
    char check[16];
    uint32_t freivalds_trials;       /* per answer; 0: none were checked so */
    uint32_t freivalds_modulus_bits; /* 0: no modulus */
    int32_t freivalds_error_log2; /* a wrong answer, each by itself, passes with probability 2^this;
                                     0: no bound */
    uint32_t sample_missed_ppm;   /* "sample": chance in a million that one wrong entry is missed */
    sherd__certified equal;

    uint32_t nodes, domains;
    bool domains_simulated;        /* one host played all nodes */
    sherd__certificate_node *list; /* owned; which nodes, `nodes` of them, or none: list_len 0 */
    uint32_t list_len;
    char sherd_version[32], protocol_version[16], blas_version[96];
    char cores[SHERD__CERTIFICATE_CORES][32]; /* BLAS cores of the nodes, each once */
    uint32_t cores_len;
    char warnings[SHERD__CERTIFICATE_WARNINGS][200];
    uint32_t warnings_len;

    bool has_signature; /* what follows: set by reading and by signing */
    uint8_t key[32];    /* the coordinator's raw Ed25519 public key */
    uint8_t signature[64];
} sherd__certificate;

/** Signs len bytes; 0 or SHERD_E*. Stays the caller's: store/ sees no private key. */
typedef int (*sherd__certificate_sign)(void *ctx, const uint8_t *msg, size_t len, uint8_t sig[64]);

/** Commitment to a 32-byte seed, SHA-256("sherd seed-v1", 0x00, seed): the bytes of
 *  "seed_commitment" in a metadata file's manifest (docs/METADATA.md), so that the two can be
 *  matched. */
int sherd__certificate_commit_seed(sherd__digest *out, const uint8_t seed[32]) SHERD_MUST;
/** The fingerprint that peers know a raw Ed25519 key by: SHA-256 of its SubjectPublicKeyInfo. */
int sherd__certificate_fingerprint(sherd__digest *out, const uint8_t key[32]) SHERD_MUST;
/** Adds a line to c->warnings, printf style; dropped where there is no room. */
void sherd__certificate_warn(sherd__certificate *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/** Adds a BLAS core, once. */
void sherd__certificate_core(sherd__certificate *c, const char *core);
/** Room in c->list for `len` nodes, zeroed. SHERD_ENOMEM; SHERD_EINVAL beyond
 *  SHERD__CERTIFICATE_NODES. */
int sherd__certificate_list(sherd__certificate *c, uint32_t len) SHERD_MUST;
/** Frees what a filled or read certificate owns, and zeroes it. */
void sherd__certificate_fini(sherd__certificate *c);

/**
 * Renders c, signs it as `key` (raw Ed25519) and gives the whole file's text in *text (NUL
 * terminated, sherd__free). c->key and c->signature are set. SHERD_EINVAL where a member is out of
 * range (no dtype, too many inputs), SHERD_ENOMEM, or what `sign` returns.
 */
int sherd__certificate_text(sherd__certificate *c, const uint8_t key[32],
                            sherd__certificate_sign sign, void *sign_ctx, char **text,
                            sherd_diag *d) SHERD_MUST;
/** The same into a file, mode 0600, which is the caller's to commit or abort: until then nothing
 *  has changed under that name. A certificate appears behind its result, never before it. */
int sherd__certificate_begin(sherd__certificate *c, sherd__file **out, const char *path,
                             const uint8_t key[32], sherd__certificate_sign sign, void *sign_ctx,
                             sherd_diag *d) SHERD_MUST;

/**
 * Reads a certificate, which is to be sherd__certificate_fini'd, and verifies its signature by the
 * key that it names; whether that key is the coordinator's the caller must ask. SHERD_EOPEN,
 * SHERD_EIO; SHERD_EFORMAT: malformed, or a member missing or out of range, by name;
 * SHERD_EVERSION: another schema; SHERD_EAUTH: the signature does not fit the text (edited, or
 * damaged).
 */
int sherd__certificate_load(sherd__certificate *out, const char *path, sherd_diag *d) SHERD_MUST;
/** The same from memory; `where` names it in messages. */
int sherd__certificate_parse(sherd__certificate *out, const char *text, size_t len,
                             const char *where, sherd_diag *d) SHERD_MUST;

#endif
