/*
 * The statistical part of the audit: attacks on what nodes saw of coded operands
 * (crypto/code.h), as arrays in memory. It does not depend on how they were recorded.
 *
 * A finding is one attack on one subject by one coalition. Tests have a p-value: the probability
 * that a scheme that hides perfectly gives a result at least as extreme. Measurements have a value
 * and its value by chance. Many tests raise false alarms, so sherd__findings_judge applies Holm's
 * step-down procedure to all of them at once, with family-wise probability 1e-6. p-values are
 * natural logarithms throughout, since those of a broken scheme are far below the range of a
 * double.
 */
#ifndef AUDIT_STATS_H
#define AUDIT_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rand.h"
#include "crypto/fragment.h"
#include "matrix/residue.h"
#include "sherd/audit.h"
#include "sherd/err.h"

#define SHERD__AUDIT_FAMILY 1e-6   /* probability of one false alarm in a whole audit */
#define SHERD__AUDIT_CONTROL 1e-12 /* bound for the p-value of each negative control */
#define SHERD__AUDIT_COALITIONS 200u
#define SHERD__AUDIT_ROUNDS 1000u
#define SHERD__AUDIT_PRIMES 8u /* of a code */

/* --- findings -------------------------------------------------------------------------------- */

typedef struct sherd__findings {
    sherd_audit_finding *list; /* in order of discovery */
    size_t len, room;
    size_t tests; /* number of findings with a p-value, without controls; set by
                     sherd__findings_judge */
} sherd__findings;

/** Appends a copy of *f. A zeroed struct is an empty list. SHERD_ENOMEM. */
int sherd__findings_add(sherd__findings *l, const sherd_audit_finding *f) SHERD_MUST;
void sherd__findings_fini(sherd__findings *l);
/**
 * Judges findings by Holm (1979) over all tests except controls: the family-wise probability of any
 * false flag is `family`, whatever their dependence. A control is flagged if p <
 * SHERD__AUDIT_CONTROL. Measurements are unchanged. SHERD_ENOMEM.
 */
int sherd__findings_judge(sherd__findings *l, double family) SHERD_MUST;

/* ---- views of operands ----------------------------------------------------------------------- */

/** How a share is computed: by Lagrange's code, or by the inner-product code from a left or a right
 *  operand. */
typedef enum sherd__seen_form {
    SHERD__SEEN_LAGRANGE,
    SHERD__SEEN_INNER_LEFT,
    SHERD__SEEN_INNER_RIGHT
} sherd__seen_form;

/** The code of an operand; all of it is public. Pointers are borrowed. */
typedef struct sherd__seen_code {
    uint32_t blocks, masks, shares; /* K, T, N */
    uint32_t primes_len;
    uint32_t primes[SHERD__AUDIT_PRIMES];
    const uint32_t
        *alpha; /* `shares` points; NULL: those of the form, crypto/lagrange.h or inner.h */
    const uint32_t *beta; /* K+T points; NULL: those of crypto/lagrange.h */
    bool one_time;        /* blind: K = T = 1, and every share is block + mask */
    sherd__seen_form form;
} sherd__seen_code;

#define SHERD__SEEN_UNKNOWN UINT32_MAX
#define SHERD__SEEN_PADDING (UINT32_MAX - 1)

/** All that nodes together were sent of one encoding of one operand. A share that was sent again,
 *  with the same bytes to the same domain, counts once. Borrowed. */
typedef struct sherd__seen {
    const char *name; /* for people: "A", "B of step 3" */
    const sherd__seen_code *code;
    size_t rows, cols;               /* of each share, and so of each block */
    const uint32_t *const *residues; /* [share * primes_len + prime]: rows*cols of them, each below
                                        its prime, row-major; NULL: the share was sent to no node */
    const uint32_t *seeded;          /* [share]: 1 if it was sent as a seed; NULL: none was */
    const uint32_t *domain; /* [share]: its domain; NULL: share i belongs to domain i. A domain with
                               two shares is treated as holding both */
    const uint32_t *row;    /* [block * rows + row]: the row of the operand at that position of that
                               block, SHERD__SEEN_PADDING (zeros) or SHERD__SEEN_UNKNOWN; NULL: row
                               r of block j is row j*height + r */
    const double *const *blocks; /* K blocks of rows*cols integers, the truth: used to confirm
                                    guesses and to measure attacks. NULL: unknown */
    const uint32_t *order; /* rows*cols positions row*cols + column, in the order in which masks
                              are drawn; NULL: row after row */
    size_t rows_sent;      /* of each share, of which `rows` are stored; 0: no more than these */
    bool right;            /* a tile of B: with `row` NULL, unchanged rows of it in all K places, */
    size_t col;            /* starting at this column */
    size_t
        block_cols;  /* columns of the operand from one block to the next: block j starts at column
                          col + j*block_cols, and those beyond the operand are zeros */
    bool unnumbered; /* one share with an unknown number: residues[] has it at every number that it
                         may have. For streams of masks only */
} sherd__seen;

typedef struct sherd__audit_options {
    uint64_t seed;       /* decides all random choices: the same seed gives the same report */
    uint32_t coalitions; /* most coalitions of one size, drawn if there are more; 0: the default */
    uint32_t rounds;     /* of each game; 0: the default */
    size_t sample;       /* most residues that one test uses; 0: 2^18 */
    const char *const *domain_names; /* [domain]; NULL: domains are named by numbers from 1 */
    /** Called regularly during long tests; non-zero ends them with SHERD_EINTERRUPTED. NULL: not
     *  called. */
    int (*step)(void *ctx, uint32_t done, uint32_t total);
    void *ctx;
} sherd__audit_options;

/* --- attacks --------------------------------------------------------------------------------- */

/**
 * Tests the residues of every share modulo every prime: chi2 of high bits, of low bits and of pairs
 * of neighbours, both tails; repeats; small values. Then tests differences, which would reveal a
 * mask that was used twice: between two encodings of one domain (at most 200 pairs, and 1600 of
 * pair and share; under different codes only if T is 1), between neighbouring rows, and across
 * primes (the difference, and the number that the residues represent). Appends. SHERD_ENOMEM;
 * SHERD_EINVAL: invalid shapes or an invalid code, a residue not below its prime.
 */
int sherd__audit_uniformity(sherd__findings *l, const sherd__seen *seen, size_t seen_len,
                            const sherd__audit_options *opt, sherd_diag *d) SHERD_MUST;
/** Coverage of a search for masks that were used twice. */
typedef struct sherd__streams_reach {
    size_t encodings; /* number given */
    size_t unsolved;  /* of these: could solve neither for a mask nor for a sum of masks */
    size_t sums;      /* of these: could solve only for sums of several masks */
    char names[96];   /* names of unsolved ones: "B, B (2)", truncated */
} sherd__streams_reach;

/**
 * Finds masks that were used twice at any offset: in another encoding, operand or prime, or later
 * in the same one. It solves for every mask of every encoding, modulo each prime, from the known
 * blocks (seen.blocks) and T shares or, if they are unknown, from K+T shares. With known blocks and
 * fewer shares it solves for the sum of the masks in each share. Then it looks for equal windows of
 * 8 numbers at any two positions. Numbers are compared in 4096 steps of their primes, and the
 * content selects one window in 64.
 *
 * Appends a finding for each pair of masks that have a run in common (16 at most), with its length
 * and position. If no pair has one, or no mask could be solved for, one finding says so. All
 * residues are used: 0.05 us and a quarter of a byte each. *reach (not NULL) receives how many
 * encodings were covered. Errors as above; SHERD_EINTERRUPTED.
 */
int sherd__audit_streams(sherd__findings *l, const sherd__seen *seen, size_t seen_len,
                         const sherd__audit_options *opt, sherd__streams_reach *reach,
                         sherd_diag *d) SHERD_MUST;
/**
 * Tests whether each share depends on the data, for an attacker who knows them: uniformity where a
 * block is zero and where it is not, correlation, and a linear attacker that knows every other
 * entry. blocks: K of n >= 1 integers, the operand's first entries, row-major with the share's
 * columns. Appends. Errors as above.
 */
int sherd__audit_independence(sherd__findings *l, const sherd__seen *s, const double *const *blocks,
                              size_t n, const sherd__audit_options *opt, sherd_diag *d) SHERD_MUST;
/**
 * Tests coalitions of `size` domains (all, or opt->coalitions drawn ones) on one encoding. The left
 * null space of their mask weights modulo each prime gives combinations without masks, which are
 * tested for small, repeated and unevenly spread values. With K independent combinations the blocks
 * are solved for. If the truth is known, it also tests whether a correct guess is confirmed, and
 * computes R^2 of a linear attacker on entries that it was not fitted to.
 *
 * With more than T domains findings are marked as controls, because T limits only smaller
 * coalitions. With T or fewer domains, a coalition that cancels the masks is flagged without a
 * p-value, since it is a proof. Appends; *drawn (may be NULL) receives how many coalitions were
 * attacked. Errors as above.
 */
int sherd__audit_coalitions(sherd__findings *l, const sherd__seen *seen, uint32_t size,
                            const sherd__audit_options *opt, uint32_t *drawn,
                            sherd_diag *d) SHERD_MUST;

/**
 * Hides one of a game's two operands. Fills out[member * primes_len + prime], rows*cols residues
 * each, with what the members of the coalition are sent. blocks: K of rows*cols integers.
 */
typedef struct sherd__game_encoder {
    int (*encode)(void *ctx, const double *const *blocks, uint32_t *const *out);
    void *ctx;
} sherd__game_encoder;

/** A distinguishing game. Borrowed. */
typedef struct sherd__game {
    const char *name; /* "zero or structured" */
    const sherd__seen_code *code;
    const uint32_t *members; /* shares that the attacker sees; they are named as domains */
    uint32_t members_len;
    size_t rows, cols;
    const double *const *operand[2]; /* K blocks each; the attacker knows both */
    sherd__game_encoder encoder;
} sherd__game;

/**
 * Plays opt->rounds rounds. In each, operand 0 is hidden, and the attacker knows that. Then a fair
 * coin selects the operand that is hidden, and the attacker guesses which. In the first half of the
 * rounds the attacker sees the coin and selects the statistic and the threshold that guess best.
 * The statistics are size, spread, repeats and similarity to either operand, of each share, each
 * combination without masks, and each share minus the known one. Only the second half is counted.
 *
 * Appends one finding: advantage 2*right/rounds - 1 in the second half with its 99 % interval, and
 * the exact binomial p-value. Errors as above, and the encoder's. Blocks of a few hundred entries
 * are enough.
 */
int sherd__audit_game(sherd__findings *l, const sherd__game *g, const sherd__audit_options *opt,
                      sherd_diag *d) SHERD_MUST;
/** The K blocks of a code, rows x cols each; block NULL: made-up ones. */
typedef struct sherd__code_blocks {
    size_t rows, cols;
    const double *const *block;
} sherd__code_blocks;
/** Plays two games (zero or real; real or its entries permuted) for the first T shares against the
 *  scheme's own functions: crypto/lagrange.h and crypto/mask.h; schemes/blind/blind.h for a
 *  one-time code, with all rounds under one key and new rows of masks in each, as a mask file
 *  provides them. */
int sherd__audit_share_games(sherd__findings *l, const sherd__seen_code *code,
                             sherd__code_blocks of, const sherd__audit_options *opt,
                             sherd_diag *d) SHERD_MUST;
/** Hides K blocks of integers by the scheme's own functions, under fresh masks. out: as
 *  of sherd__game_encoder, for shares 0 to members - 1. SHERD_ENOMEM, SHERD_EINVAL. */
int sherd__audit_share_hide(const sherd__seen_code *code, sherd__code_blocks of, uint32_t members,
                            const sherd__entropy *e, uint32_t *const *out) SHERD_MUST;

#endif
