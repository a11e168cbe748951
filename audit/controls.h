/*
 * Negative controls: schemes that are broken on purpose and that the audit must flag. An audit that
 * cannot fail proves nothing. They share only the arithmetic with the schemes, and nothing outside
 * audit/ may use them.
 */
#ifndef AUDIT_CONTROLS_H
#define AUDIT_CONTROLS_H

#include "audit/stats.h"

typedef enum sherd__control {
    SHERD__CONTROL_PERMUTE,     /* columns in clear, shuffled: what `permute` reveals */
    SHERD__CONTROL_REUSE,       /* two operands under the same masks */
    SHERD__CONTROL_COALITION,   /* a correct encoding, seen by T+1 domains */
    SHERD__CONTROL_POINT,       /* alpha of one share = beta of a block */
    SHERD__CONTROL_PRIMES,      /* one mask reduced modulo all primes */
    SHERD__CONTROL_OFFSET,      /* two operands under one keystream, shifted by five rows */
    SHERD__CONTROL_NEGATED,     /* two operands with masks that are each other's negatives */
    SHERD__CONTROL_STREAM,      /* primes below 256: one stream of bytes, and rejection, for all */
    SHERD__CONTROL_SEED,        /* two operands, or encodings, with the same seeds */
    SHERD__CONTROL_SEED_STREAM, /* primes below 256: one stream of a seed for all */
    SHERD__CONTROLS
} sherd__control;

/** Returns "permute", "mask reuse", "T+1 domains", "alpha = beta", "one mask for all primes", "mask
 *  at an offset", "negated mask" or "one stream for all primes". */
const char *sherd__control_name(sherd__control c);

/** Returns whether the control applies to this code. One-time masks have no points and no T, and
 *  one mask or stream for all primes needs two primes. */
bool sherd__control_of(sherd__control c, const sherd__seen_code *code);

/** One or two encodings made by a control, with all memory that `seen` points to. */
typedef struct sherd__control_view {
    sherd__seen_code code;
    sherd__seen seen[2];
    uint32_t seen_len;
    uint32_t coalition; /* domains that see them together */
    void *memory;
} sherd__control_view;

/**
 * Makes the view of control `c` of K blocks. code: a correct one, of at least
 * T+1 shares, or a one-time one. The seed decides masks and permutations. v->code points into *v,
 * so *v must not be moved. SHERD_ENOMEM, SHERD_EINVAL.
 */
int sherd__control_make(sherd__control_view *v, sherd__control c, const sherd__seen_code *code,
                        sherd__code_blocks of, uint64_t seed) SHERD_MUST;
void sherd__control_fini(sherd__control_view *v);

/**
 * Runs the audit's own attacks and games on every control that sherd__control_of allows, and
 * appends findings with `control` set. For each control these are its smallest p-value (times the
 * number of tests) and the attack that gave it, and for all except the last four also two games on
 * made-up operands. Every audit must call it; after judging, each control must be flagged. Codes of
 * more than 8 blocks or T+3 shares are replaced by ones of that size. Blocks of fewer than
 * 1024 entries are replaced by made-up ones. SHERD_ENOMEM, SHERD_EINVAL.
 */
int sherd__audit_controls(sherd__findings *l, const sherd__seen_code *code, sherd__code_blocks of,
                          const sherd__audit_options *opt, sherd_diag *d) SHERD_MUST;
/** Call after judging. Returns true if every control that ran was flagged; else *missed (may be
 *  NULL) is one that was not. */
bool sherd__controls_flagged(const sherd__findings *l, sherd__control *missed);

#endif
