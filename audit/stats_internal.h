/* Shared by the statistical attacks: options with their defaults, names, validation of inputs. */
#ifndef AUDIT_STATS_INTERNAL_H
#define AUDIT_STATS_INTERNAL_H

#include "audit/stats.h"
#include "core/rand.h"

enum { SHERD__WHO = 96 };

/** Returns how many residues of one share a test uses. */
size_t sherd__audit_sample(const sherd__audit_options *opt, const sherd__seen *s);
uint32_t sherd__audit_rounds(const sherd__audit_options *opt);
uint32_t sherd__audit_coalitions_max(const sherd__audit_options *opt);
/** Writes "domain 2" or "domains 1, 4 (node7.example)". */
void sherd__audit_who(char out[SHERD__WHO], const sherd__audit_options *opt,
                      const uint32_t *domains, uint32_t len);
uint32_t sherd__seen_domain(const sherd__seen *s, uint32_t share);
const uint32_t *sherd__seen_residues(const sherd__seen *s, uint32_t share, uint32_t prime_index);
/** Returns whether the share was recorded, for all primes. */
bool sherd__seen_has(const sherd__seen *s, uint32_t share);
/** Validates a view. SHERD_EINVAL, SHERD_ESHAPE: no code, no residues, a residue not below its
 *  prime. */
int sherd__seen_check(const sherd__seen *s, sherd_diag *d) SHERD_MUST;
/** Returns whether both codes give the same masks the same weights, so that differences may be
 *  taken. */
bool sherd__code_same(const sherd__seen_code *a, const sherd__seen_code *b);
/** Returns an empty finding: no value, no p. */
sherd_audit_finding sherd__finding_of(const char *test, const char *statistic, bool control);

/** Returns whether weights modulo two primes are the same centred numbers, so that combinations may
 *  be joined. */
bool sherd__weights_agree(const uint32_t *g, uint32_t p, const uint32_t *h, uint32_t q,
                          uint32_t len);
/** Computes out[i] = sum weight[j] * blocks[j][i] modulo p: a combination of the data without
 *  masks. */
void sherd__predicted(const double *const *blocks, const uint32_t *weight, uint32_t len, uint32_t p,
                      size_t n, uint64_t *out);
/** Computes out[i] = scale * x[i] modulo p. */
void sherd__scaled(const uint32_t *x, size_t n, uint32_t scale, uint32_t p, uint64_t *out);
/** Computes out[i] < p*q from scale*x[i] modulo p and scale2*y[i] modulo q. */
void sherd__joined(const uint32_t *x, uint32_t scale, uint32_t p, const uint32_t *y,
                   uint32_t scale2, uint32_t q, size_t n, uint64_t *out);

/** Features and blocks of n doubles each. */
typedef struct sherd__linear {
    const double *const *feature;
    uint32_t features;
    const double *const *block;
    uint32_t blocks;
    size_t n;
} sherd__linear;

/**
 * Runs a linear attacker: it fits each block to the features on even entries and is judged on odd
 * ones. Appends the best block's R^2. SHERD_ENOMEM.
 */
int sherd__audit_linear(sherd__findings *l, const sherd_audit_finding *about,
                        const sherd__linear *x) SHERD_MUST;

/** Allocates `blocks` blocks of n zeros in one allocation, which the caller frees with
 *  sherd__free(*out). SHERD_ENOMEM. */
int sherd__audit_blocks(double ***out, uint32_t blocks, size_t n) SHERD_MUST;
/** Fills blocks with image-like data: four in five entries are 0, the others 1..255, and some rows
 *  are brighter. */
void sherd__audit_make_up(const sherd__entropy *e, double *const *blocks, uint32_t len, size_t rows,
                          size_t cols);
/** Copies `in` to `out` with all entries, over all blocks, in random order. */
void sherd__audit_permuted(const sherd__entropy *e, const double *const *in, double *const *out,
                           uint32_t len, size_t n);
/** Returns the residue below p of an integer. */
uint32_t sherd__audit_residue(double x, uint32_t p);
/** Draws n residues below p, uniform by rejection. */
void sherd__audit_draw(const sherd__entropy *e, uint32_t p, size_t n, uint32_t *out);

#endif
