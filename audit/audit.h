/*
 * A complete audit: every node alone and coalitions of T and of T+1 domains, all attacks on each,
 * judged together. The result is the report of sherd/audit.h.
 */
#ifndef AUDIT_AUDIT_H
#define AUDIT_AUDIT_H

#include "audit/coded.h"
#include "audit/controls.h"
#include "audit/elements.h"
#include "audit/shares.h"
#include "audit/subsets.h"

#define SHERD__AUDIT_SIZES 4u

struct sherd_audit {
    char subject[160];   /* what was audited, for people */
    char form[64];       /* how the values were sent */
    uint64_t rows, cols; /* of A, if known; else 0 */
    uint32_t nodes, domains, colluding;
    bool domains_known;   /* from the record; else each node counts as a domain */
    bool cut;             /* the record is incomplete, see sherd__audit_reach */
    uint32_t covered;     /* domains with complete records; all, if `cut` is false */
    char reach[160];      /* if `cut`: what the findings, or their absence, cover */
    uint64_t public_rows; /* 0: no side information */
    bool truth, labels;   /* whether they were known for counting */
    sherd_audit_scope scopes[SHERD__AUDIT_SIZES];
    uint32_t scopes_len;
    sherd__findings findings;
    sherd__gallery gallery; /* of one node */
    char warnings[16][420];
    uint32_t warnings_len, warnings_more; /* more: warnings that did not fit */
    char unseen[8][240];                  /* what this audit left out, in addition to what no audit
                                             can see */
    uint32_t unseen_len;
    sherd_audit_figure *figures; /* these and controls: set by sherd__audit_judge */
    size_t figures_len;
    sherd_audit_control controls[SHERD__CONTROLS + 1]; /* the last: of the record itself */
    size_t controls_len;
    char *json, *html; /* the last texts */
};

void sherd__audit_fini(sherd_audit *r);
/** Appends a scope: `size` nodes or domains (unit), and the findings from `first` on. */
void sherd__audit_scope_add(sherd_audit *r, const char *unit, uint32_t size, uint32_t attacked,
                            uint64_t of, size_t first);
/** Adds a sentence to the report. The last one that fits says how many do not. */
void sherd__audit_warn(sherd_audit *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** Adds something that this audit left out, as "WHAT: how much". If the list is full, it becomes a
 *  warning. */
void sherd__audit_leave_out(sherd_audit *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** Sets cut, covered and reach of the report: whether the record is complete. */
void sherd__audit_reach(sherd_audit *r, const sherd__views *v);

/** The adversaries: nodes, and their domains. Borrowed. */
typedef struct sherd__audit_cast {
    uint32_t nodes, domains;
    const char *const *name;        /* [node] */
    const uint32_t *domain;         /* [node]; NULL: node i is domain i */
    const char *const *domain_name; /* [domain]; NULL: the name of node i */
} sherd__audit_cast;

/** What an audit knows beside the views: A and B, to count with, and public rows like A's. Each may
 *  be NULL. */
typedef struct sherd__audit_known {
    const sherd__truth *a, *b;
    const sherd__public *pub;
} sherd__audit_known;

typedef struct sherd__audit_plan {
    uint32_t colluding;             /* T; 0: 1 */
    uint32_t coalitions;            /* most coalitions of one size */
    uint64_t seed;                  /* for random coalitions */
    uint64_t n;                     /* rows of A */
    size_t k;                       /* columns of A */
    uint32_t show;                  /* the node for the report's pictures */
    const char *const *domain_name; /* of shares */
    /** Called after each attack; non-zero ends the audit with SHERD_EINTERRUPTED. May be NULL. */
    int (*step)(void *ctx, uint32_t done, uint32_t total);
    void *ctx;
} sherd__audit_plan;

/**
 * Attacks views of clear schemes: each node alone, each domain with several nodes, and coalitions
 * of domains. Appends findings to the report. SHERD_ENOMEM, SHERD_ESHAPE, SHERD_EINTERRUPTED.
 */
int sherd__audit_adversary_views(sherd_audit *r, const sherd__audit_cast *cast,
                                 const sherd__adversary_view *views,
                                 const sherd__audit_known *known, const sherd__audit_plan *plan,
                                 sherd_diag *d) SHERD_MUST;

/** As sherd__audit_adversary_views, for the nodes' views of the operands of an element-wise
 *  operation, each indexed by node. If operand[1] or known->b is NULL, B is not attacked. */
int sherd__audit_element_wise(sherd_audit *r, const sherd__audit_cast *cast,
                              sherd__elements *const operand[2], const sherd__audit_known *known,
                              const sherd__audit_plan *plan, sherd_diag *d) SHERD_MUST;

/**
 * Attacks shares: each alone as if it contained values (coded.h), then with all tests of stats.h:
 * uniformity and reuse, coalitions of T and, as a control, of T+1, games, and the negative
 * controls, which sherd__audit_judge judges. known->b: B of a record that has shares of it
 * (sherd__shares_right); masks of known data are solved for from fewer shares. SHERD_ENOMEM,
 * SHERD_ESHAPE, SHERD_EINTERRUPTED, SHERD_EINVAL.
 */
int sherd__audit_shares(sherd_audit *r, sherd__shares *s, const sherd__audit_known *known,
                        const sherd__audit_plan *plan, sherd_diag *d) SHERD_MUST;

/**
 * Tests the masks of the record's other products in addition to those of the attacked one: every
 * encoding alone, and differences of any two and streams of masks, which reveal a mask used in
 * both. Blocks with the same bytes in two products are one encoding that was sent again. To be
 * called after sherd__audit_shares. SHERD_ENOMEM, SHERD_EINVAL.
 */
int sherd__audit_reuse(sherd_audit *r, const sherd__shares *s, const sherd__shares *more,
                       size_t more_len, const sherd__audit_plan *plan, sherd_diag *d) SHERD_MUST;

/** Judges all findings together and completes the report: sizes of findings, figures, controls.
 *  SHERD_ENOMEM; SHERD_EINTERNAL: a negative control was not flagged, so the audit proves
 *  nothing. */
int sherd__audit_judge(sherd_audit *r, sherd_diag *d) SHERD_MUST;
/** Makes the report's figures and controls from its findings. SHERD_ENOMEM. */
int sherd__audit_figures(sherd_audit *r) SHERD_MUST;

#endif
