/*
 * An audit as a whole: every node by itself and coalitions of T and of T+1, all attacks on each,
 * judged together. What comes out is a report: findings beside what chance gives, and how many were
 * attacked.
 */
#ifndef AUDIT_AUDIT_H
#define AUDIT_AUDIT_H

#include <jansson.h>

#include "audit/coded.h"
#include "audit/elements.h"
#include "audit/members.h"
#include "audit/shares.h"

#define SHERD__AUDIT_SIZES 4u

/** Coalitions of one size: how many were attacked, of how many. */
typedef struct sherd__audit_scope {
    bool nodes; /* single nodes, whoever runs them; else `size` domains */
    uint32_t size, attacked;
    uint64_t of;
    size_t first, end; /* its findings */
} sherd__audit_scope;

typedef struct sherd__audit_report {
    char subject[160];   /* for people: what was audited */
    char form[64];       /* how the values travelled */
    uint64_t rows, cols; /* of A, where it is known; else 0 */
    uint32_t nodes, domains, colluding;
    bool domains_known;   /* from the record; else each node counts as one */
    bool cut;             /* of the record something is missing, see sherd__audit_reach */
    uint32_t covered;     /* domains of which nothing is missing; all, where it is not cut */
    char reach[160];      /* where it is cut: how far what was found, or not, reaches */
    uint64_t public_rows; /* 0: no side information */
    bool truth, labels;   /* were they known, to count with */
    sherd__audit_scope scopes[SHERD__AUDIT_SIZES];
    uint32_t scopes_len;
    sherd__findings findings;
    sherd__gallery gallery; /* of one node */
    char warnings[16][420];
    uint32_t warnings_len, warnings_more; /* more: that found no room */
    char unseen[8][240];                  /* what this audit left out, beside what none sees */
    uint32_t unseen_len;
} sherd__audit_report;

void sherd__audit_report_fini(sherd__audit_report *r);
/** A sentence for the report; the last one that finds room says how many do not. */
void sherd__audit_warn(sherd__audit_report *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** What this audit left out, as "WHAT: how much"; beyond the room for such it is a note. */
void sherd__audit_leave_out(sherd__audit_report *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** Whether all of a record was there, in the report: cut, covered, reach. */
void sherd__audit_reach(sherd__audit_report *r, const sherd__views *v);

/** Who saw: nodes, and the domains that they are of. Borrowed. */
typedef struct sherd__audit_cast {
    uint32_t nodes, domains;
    const char *const *name;        /* [node] */
    const uint32_t *domain;         /* [node]; NULL: node i is domain i */
    const char *const *domain_name; /* [domain]; NULL: that of node i */
} sherd__audit_cast;

typedef struct sherd__audit_plan {
    uint32_t colluding;  /* T; 0: 1 */
    uint32_t coalitions; /* of one size at most */
    uint64_t seed;       /* for coalitions that are drawn */
    uint64_t n;          /* rows of A */
    size_t k;            /* columns of A */
    uint32_t show;       /* the node whose pictures are kept */
    /** Told after each attack; non-zero ends the audit with SHERD_EINTERRUPTED. May be NULL. */
    int (*step)(void *ctx, uint32_t done, uint32_t total);
    void *ctx;
} sherd__audit_plan;

/**
 * Attacks sights (clear schemes): each node by itself, each domain that has several nodes, and
 * coalitions of domains, and appends to the report. truth, pub: as for sherd__audit_clear.
 * SHERD_ENOMEM, SHERD_ESHAPE, SHERD_EINTERRUPTED.
 */
int sherd__audit_adversary_views(sherd__audit_report *r, const sherd__audit_cast *cast,
                                 const sherd__adversary_view *sights, const sherd__truth *truth,
                                 const sherd__public *pub, const sherd__audit_plan *plan,
                                 sherd_diag *d) SHERD_MUST;

/** The same for what nodes saw of an element-wise operation. left, right: of each node; right NULL
 *  or b NULL: not attacked. pub: rows like A's. Errors as above. */
int sherd__audit_element_wise(sherd__audit_report *r, const sherd__audit_cast *cast,
                              const sherd__elements *left, const sherd__elements *right,
                              const sherd__truth *a, const sherd__truth *b,
                              const sherd__public *pub, const sherd__audit_plan *plan,
                              sherd_diag *d) SHERD_MUST;

/**
 * Attacks shares: each by itself as if it were values (coded.h), then all that stats.h has:
 * uniformity and reuse, coalitions of T and, as a control, of T+1, games, and the negative
 * controls, judged by sherd__audit_judge. names: of domains. truth: A, or NULL. right: B of a
 * record that has shares of it (sherd__shares_right), or NULL; masks of what is known are solved
 * for from fewer shares. SHERD_ENOMEM, SHERD_ESHAPE, SHERD_EINTERRUPTED, SHERD_EINVAL.
 */
int sherd__audit_shares(sherd__audit_report *r, sherd__shares *s, const char *const *names,
                        const sherd__truth *truth, const sherd__truth *right,
                        const sherd__public *pub, const sherd__audit_plan *plan,
                        sherd_diag *d) SHERD_MUST;

/**
 * Masks of other products of the record, beside those of the one that was attacked: every encoding
 * by itself, and differences of any two and streams of masks, which show one that was used for
 * both. Blocks that are
 * the same bytes in two products are one encoding that was sent again. Call it after
 * sherd__audit_shares. names: of domains. SHERD_ENOMEM, SHERD_EINVAL.
 */
int sherd__audit_reuse(sherd__audit_report *r, const sherd__shares *s, const sherd__shares *more,
                       size_t more_len, const char *const *names, const sherd__audit_plan *plan,
                       sherd_diag *d) SHERD_MUST;

/** Judges all findings together. SHERD_ENOMEM; SHERD_EINTERNAL: a negative control is there and was
 *  not flagged, so that the audit proves nothing. */
int sherd__audit_judge(sherd__audit_report *r, sherd_diag *d) SHERD_MUST;

/** What the report says: its fields, for a JSON object that has schema and ok already.
 *  SHERD_ENOMEM. */
int sherd__audit_json(const sherd__audit_report *r, json_t *into) SHERD_MUST;
/** What no audit sees and then what this one left out, for people: sentences from 0 on, NULL behind
 *  the last one. Every report says them. */
const char *sherd__audit_unseen(const sherd__audit_report *r, size_t i);
/** How many findings are flagged, controls apart. */
size_t sherd__audit_flagged(const sherd__audit_report *r);

/**
 * The report as one HTML page without anything that it would have to load; *out (sherd__free) is
 * terminated. Pictures are drawn `width` columns to a line where that divides A's columns.
 * SHERD_ENOMEM.
 */
int sherd__audit_html(const sherd__audit_report *r, size_t width, char **out,
                      size_t *len) SHERD_MUST;

#endif
