/*
 * The statistical half of the audit: attacks on what nodes saw of coded operands
 * (crypto/lagrange.h), as arrays in memory. Who recorded them, and how, is not its business.
 *
 * A finding is one attack on one thing by one coalition. Those that are tests have a p-value, the
 * chance that a scheme that hides perfectly would look so bad; those that are measurements have a
 * value beside what chance gives. Many tests cry wolf, hence sherd__findings_judge: Holm's
 * step-down procedure over all of them at once, family-wise 1e-6. p-values are natural logarithms
 * throughout, since those of a broken scheme are far below what a double can hold.
 */
#ifndef AUDIT_STATS_H
#define AUDIT_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "matrix/residue.h"
#include "sherd/err.h"

#define SHERD__AUDIT_FAMILY 1e-6   /* chance of one false alarm in a whole audit */
#define SHERD__AUDIT_CONTROL 1e-12 /* what each negative control must fall below */
#define SHERD__AUDIT_COALITIONS 200u
#define SHERD__AUDIT_ROUNDS 1000u

/* --- findings -------------------------------------------------------------------------------- */

typedef struct sherd__finding {
    const char *test; /* stable word for reports, static: "uniformity", "differences", "primes",
                         "coalition", "reconstruction", "independence", "offset", "game", "control",
                         "control game" */
    const char *statistic; /* what `value` is, static: "chi2 of 256 bins", "advantage" */
    char subject[64];      /* attacked data: "A", "A - B", "A, prime 5931641" */
    char who[96];          /* "domain 2", "domains 1, 4" */
    double value;          /* of the statistic */
    double chance;         /* what `value` is by chance; NaN: says nothing */
    double low, high;      /* confidence interval of `value` (99 %); NaN: none */
    double log_p;          /* ln of the p-value; NaN: a measurement, not a test */
    double log_threshold;  /* ln of what log_p had to fall below; sherd__findings_judge writes
                               it */
    bool flagged;          /* for tests written by sherd__findings_judge */
    bool control;          /* meant to be flagged (controls, more than T domains): judged alone, at
                               SHERD__AUDIT_CONTROL */
    char sentence[288];    /* for people */
} sherd__finding;

typedef struct sherd__findings {
    sherd__finding *list; /* in the order in which they were found */
    size_t len, room;
    size_t tests; /* of those with a p-value, controls apart: written by sherd__findings_judge */
} sherd__findings;

/** Copies *f to the end. A zeroed struct is an empty list. SHERD_ENOMEM. */
int sherd__findings_add(sherd__findings *l, const sherd__finding *f) SHERD_MUST;
void sherd__findings_fini(sherd__findings *l);
/**
 * Holm (1979) over all tests that are no controls: family-wise chance `family` of any false flag,
 * whatever their dependence. Controls: flagged where p < SHERD__AUDIT_CONTROL. Measurements stay as
 * they are. SHERD_ENOMEM.
 */
int sherd__findings_judge(sherd__findings *l, double family) SHERD_MUST;
/**
 * The worst (smallest p; without p-values, largest value - chance) of each (test, statistic,
 * control): index[] in order of first appearance, and in count[] how many there are of it. Returns
 * how many groups there are, `room` at most. For reports, which print one line each.
 */
size_t sherd__findings_worst(const sherd__findings *l, size_t *index, size_t *count, size_t room);

/* --- what was seen --------------------------------------------------------------------------- */

/** How an operand was coded; all of it is public. Borrowed pointers. */
typedef struct sherd__seen_code {
    uint32_t blocks, masks, shares; /* K, T, N */
    uint32_t primes_len;
    uint32_t primes[SHERD__TABLE_PRIMES];
    const uint32_t *alpha; /* `shares` points; NULL: those of crypto/lagrange.h */
    const uint32_t *beta;  /* K+T points; NULL: those of crypto/lagrange.h */
    bool one_time;         /* blind: K = T = 1, and every share is block + mask */
} sherd__seen_code;

#define SHERD__SEEN_UNKNOWN UINT32_MAX
#define SHERD__SEEN_PADDING (UINT32_MAX - 1)

/** What all nodes together were sent of one encoding of one operand; a share that was sent again,
 *  the same bytes to the same domain, is still one. Borrowed. */
typedef struct sherd__seen {
    const char *name; /* for people: "A", "B of step 3" */
    const sherd__seen_code *code;
    size_t rows, cols;               /* of each share, and so of each block */
    const uint32_t *const *residues; /* [share * primes_len + prime]: rows*cols of them, each below
                                        its prime, row-major; NULL: nobody was sent this share */
    const uint32_t *domain; /* [share]: whose it is; NULL: share i is domain i's. One domain
                                   with two shares counts as what it is */
    const uint32_t *row;    /* [block * rows + row]: the row of the operand that stands there in
                                   that block, SHERD__SEEN_PADDING: zeros, SHERD__SEEN_UNKNOWN;
                                   NULL: row r of block j is row j*height + r */
    const double *const *blocks; /* K blocks of rows*cols integers, the truth: what a guess is
                                    confirmed against and how good an attack was. NULL: not known */
    size_t rows_sent; /* of each share, of which `rows` are here; 0: no more than these */
    bool right;       /* a tile of B: rows of it as they are, in all K places, */
    size_t col;       /* from this column on */
    bool unnumbered;  /* one share, whose number is not known: residues[] gives it for
                                   every number that it may have. Streams of masks alone */
} sherd__seen;

typedef struct sherd__audit_options {
    uint64_t seed;       /* decides all that is drawn: the same seed, the same report */
    uint32_t coalitions; /* of one size at most, drawn where there are more; 0: the default */
    uint32_t rounds;     /* of each game; 0: the default */
    size_t sample;       /* residues that one test looks at, at most; 0: 2^18 */
    const char *const *domain_names; /* [domain]; NULL: numbers, from 1 */
    /** Called now and then where it may take long; non-zero: SHERD_EINTERRUPTED. NULL: never. */
    int (*step)(void *ctx, uint32_t done, uint32_t total);
    void *ctx;
} sherd__audit_options;

/* --- attacks --------------------------------------------------------------------------------- */

/**
 * Residues of every share modulo every prime: chi2 of high bits, of low bits and of pairs of
 * neighbours, both tails; repeats; small values. Then what differences would show if a mask had
 * been used twice: of what a domain holds of two encodings (200 pairs at most, and 1600 of pair and
 * share; under different codes only where T is 1), of neighbouring rows, and across primes (the
 * difference, and the number that the residues stand for).
 * Appends. SHERD_ENOMEM; SHERD_EINVAL: invalid shapes or an invalid code, a residue not below its
 * prime.
 */
int sherd__audit_uniformity(sherd__findings *l, const sherd__seen *seen, size_t seen_len,
                            const sherd__audit_options *opt, sherd_diag *d) SHERD_MUST;
/** How far a search for masks that were used twice got. */
typedef struct sherd__streams_reach {
    size_t encodings; /* that were given */
    size_t unsolved;  /* of these: no mask, nor a sum of them, could be solved for */
    size_t sums;      /* of these: only sums of several masks */
    char names[96];   /* of unsolved ones: "B, B (2)", as many as there is room for */
} sherd__streams_reach;

/**
 * Masks that were used twice at any offset: in another encoding, operand or prime, or further on in
 * the same one. Solves for every mask of every encoding, modulo each prime: by the known blocks
 * (seen.blocks) and T shares, or, where they are not known, by K+T shares; of fewer shares of known
 * blocks what can be had, the sum of the masks in each. Then looks for equal windows of 8 numbers,
 * in 4096 steps of their primes, of which content chooses one in 64, at any two places.
 * Appends a finding for each pair of masks that have a run in common (16 at most), with its length
 * and place; where no pair has one, or no mask could be solved for, one finding that states it. All
 * residues are looked at: 0.05 us and a quarter of a byte each. *reach (not NULL): of how many
 * encodings.
 * Errors as above; SHERD_EINTERRUPTED.
 */
int sherd__audit_streams(sherd__findings *l, const sherd__seen *seen, size_t seen_len,
                         const sherd__audit_options *opt, sherd__streams_reach *reach,
                         sherd_diag *d) SHERD_MUST;
/**
 * What the data tell of each share to one who knows them: uniformity where a block is zero and
 * where it is not, correlation, and a linear attacker that knows every other entry. blocks: K of
 * n >= 1 integers, the operand's first entries, row-major with the share's columns.
 * Appends. Errors as above.
 */
int sherd__audit_independence(sherd__findings *l, const sherd__seen *s, const double *const *blocks,
                              size_t n, const sherd__audit_options *opt, sherd_diag *d) SHERD_MUST;
/**
 * Coalitions of `size` domains (all, or opt->coalitions drawn ones), one encoding: the left null
 * space of their mask weights modulo each prime; the combinations that it gives contain no mask and
 * are tested for small, repeated and unevenly spread values; with K independent ones the blocks are
 * solved for. Where the truth is known: whether a right guess of it is confirmed, and R^2 of a
 * linear attacker on entries that it was not fitted to. With more than T domains findings are
 * marked as controls: that they see is what T means. Of T or fewer, one coalition that cancels the
 * masks is flagged without a p-value, since it is a proof.
 * Appends; *drawn (may be NULL) = how many coalitions were attacked. Errors as above.
 */
int sherd__audit_coalitions(sherd__findings *l, const sherd__seen *seen, uint32_t size,
                            const sherd__audit_options *opt, uint32_t *drawn,
                            sherd_diag *d) SHERD_MUST;

/**
 * Hides one of a game's two operands: fills out[member * primes_len + prime], rows*cols residues
 * each, with what the coalition's members are sent of it. blocks: K of rows*cols integers.
 */
typedef struct sherd__game_encoder {
    int (*encode)(void *ctx, const double *const *blocks, uint32_t *const *out);
    void *ctx;
} sherd__game_encoder;

/** A distinguishing game. Borrowed. */
typedef struct sherd__game {
    const char *name; /* "zero or structured" */
    const sherd__seen_code *code;
    const uint32_t *members; /* shares that the attacker sees; named as domains */
    uint32_t members_len;
    size_t rows, cols;
    const double *const *operand[2]; /* K blocks each; the attacker knows both */
    sherd__game_encoder encoder;
} sherd__game;

/**
 * Plays opt->rounds rounds: operand 0 is hidden, the attacker knowing that; then a fair coin
 * chooses the operand that is hidden, and the attacker says which. On the first half it sees the
 * coin and chooses, among its statistics (size, spread, repeats, likeness to either operand, of
 * each share, each combination without masks, and each share less the known one), the one and the
 * threshold that guess best; the second half is counted.
 * Appends one finding: advantage 2*right/rounds - 1 in the second half with its 99 % interval, and
 * the exact binomial p-value. Errors as above, and the encoder's. Blocks of some hundred entries
 * are enough.
 */
int sherd__audit_game(sherd__findings *l, const sherd__game *g, const sherd__audit_options *opt,
                      sherd_diag *d) SHERD_MUST;
/** Plays two games (zero or real; real or its entries permuted) for the first T shares against the
 *  scheme's own functions (crypto/lagrange.h and crypto/mask.h; schemes/blind/blind.h for a
 *  one-time code: all rounds under one key, each with rows of masks of its own, as a mask file
 *  gives them out). real: K blocks; NULL: made-up ones. */
int sherd__audit_share_games(sherd__findings *l, const sherd__seen_code *code, size_t rows,
                             size_t cols, const double *const *real,
                             const sherd__audit_options *opt, sherd_diag *d) SHERD_MUST;

#endif
