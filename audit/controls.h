/*
 * Negative controls: schemes that are broken on purpose, which the audit must flag. An audit that
 * cannot fail proves nothing. They share no code with the schemes but the arithmetic, and nothing
 * outside audit/ may use them.
 */
#ifndef AUDIT_CONTROLS_H
#define AUDIT_CONTROLS_H

#include "audit/stats.h"

typedef enum sherd__control {
    SHERD__CONTROL_PERMUTE,   /* columns in clear, shuffled: what `permute` shows */
    SHERD__CONTROL_REUSE,     /* two operands under the same masks */
    SHERD__CONTROL_COALITION, /* an honest encoding, seen by T+1 domains */
    SHERD__CONTROL_POINT,     /* alpha of one share = beta of a block */
    SHERD__CONTROL_PRIMES,    /* one mask reduced modulo all primes */
    SHERD__CONTROL_OFFSET,    /* two operands under one keystream, shifted by five rows */
    SHERD__CONTROL_NEGATED,   /* two operands under masks of which one is the other's negative */
    SHERD__CONTROLS
} sherd__control;

/** "permute", "mask reuse", "T+1 domains", "alpha = beta", "one mask for all primes",
 *  "mask at an offset", "negated mask". */
const char *sherd__control_name(sherd__control c);

/** Whether the control is one of this code: one-time masks have no points and no T, and one mask
 *  for all primes needs two of them. */
bool sherd__control_of(sherd__control c, const sherd__seen_code *code);

/** One or two encodings as a control makes them, with all that `seen` points to. */
typedef struct sherd__control_view {
    sherd__seen_code code;
    sherd__seen seen[2];
    uint32_t seen_len;
    uint32_t coalition; /* domains that see them together */
    void *memory;
} sherd__control_view;

/**
 * Makes the view of control `c` of K blocks (NULL: made-up ones). code: an honest one, of at least
 * T+1 shares, or a one-time one. The seed decides masks and permutations. v->code points into
 * *v: do not move it.
 * SHERD_ENOMEM, SHERD_EINVAL.
 */
int sherd__control_make(sherd__control_view *v, sherd__control c, const sherd__seen_code *code,
                        size_t rows, size_t cols, const double *const *blocks,
                        uint64_t seed) SHERD_MUST;
void sherd__control_fini(sherd__control_view *v);

/**
 * Runs the audit's own attacks and games on every control, and appends findings with `control` set:
 * for each its smallest p-value (times the number of tests) and by which attack, and for all but
 * the last three also two games on made-up operands. Call it in every audit; after judging, each
 * must be flagged. Codes of more than 8 blocks or T+3 shares are replaced by ones of that size.
 * blocks NULL, or fewer than 1024 entries each: made-up ones. Runs those that sherd__control_of
 * names.
 */
int sherd__audit_controls(sherd__findings *l, const sherd__seen_code *code, size_t rows,
                          size_t cols, const double *const *blocks, const sherd__audit_options *opt,
                          sherd_diag *d) SHERD_MUST;
/** After judging: true if every control that ran was flagged; else *missed (may be NULL) is one
 *  that was not. */
bool sherd__controls_flagged(const sherd__findings *l, sherd__control *missed);

#endif
