/*
 * What the schemes are: how each hides the operands of a product, from whom, what it shows all the
 * same, and which options it reads. Whatever decides something by the scheme, or says something of
 * it, asks here; docs/THREATS.md has the reasons.
 *
 * Every property of a description is one that a scheme has to claim: what is left unset is not
 * hidden, so that a scheme of which nothing is known is not private.
 */
#ifndef SHERD_SCHEME_H
#define SHERD_SCHEME_H

#include <stdbool.h>
#include <stddef.h>

#include "sherd/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How operands are hidden. permute and plain are not private. */
typedef enum sherd_scheme {
    SHERD_PERMUTE = 1, /* columns dealt by exposure, columns of B's rows shuffled */
    SHERD_PLAIN = 2,   /* row panels in clear, B in clear */
    SHERD_SHARE = 3,   /* both operands coded: any `colluding` domains learn nothing of either */
    SHERD_SHARE1 = 4,  /* A coded as by SHARE, B in clear */
    SHERD_BLIND = 5    /* A masked by masks prepared ahead (masks), B in clear: all may collude */
} sherd_scheme;

/** Which nodes may put together what they see without learning what is hidden. */
typedef enum sherd_collusion {
    SHERD_WITHSTANDS_NONE = 0, /* one node by itself may learn it: not private */
    SHERD_WITHSTANDS_SOME = 1, /* nodes of any sherd_product_options.colluding domains */
    SHERD_WITHSTANDS_ALL = 2   /* all nodes together */
} sherd_collusion;

/** Options of sherd_product_options that not all schemes read: bits of sherd_scheme_info.takes. */
enum {
    SHERD_TAKES_SHUFFLES = 1,  /* seed, operation, shuffles, group, balanced, shuffle_rows: columns
                                  of A are dealt to nodes, and B's columns shuffled */
    SHERD_TAKES_ENCODING = 2,  /* encoding, link_rate: zeros of A may be left out */
    SHERD_TAKES_COLLUDING = 4, /* colluding, spare: an operand is coded, a share for each domain */
    SHERD_TAKES_BITS_B = 8,    /* bits_b */
    SHERD_TAKES_MASKS = 16     /* masks, masks_state: every product uses up some of them */
};

/** Which operand can stay at the nodes over many products. */
typedef enum sherd_keeps {
    SHERD_KEEPS_NOTHING = 0,
    SHERD_KEEPS_RIGHT = 1, /* B: sherd_resident_new; a multiplier's in both directions */
    SHERD_KEEPS_LEFT = 2   /* A, as shares: a multiplier's */
} sherd_keeps;

typedef struct sherd_scheme_info {
    sherd_scheme scheme;
    const char *name;      /* as --scheme takes it; at most 15 letters */
    const char *about;     /* who learns what, in one sentence without a full stop; may be
                                   NULL */
    const char *training;  /* the same of a network's products; NULL: not known */
    bool hides_a, hides_b; /* an operand's entries are hidden from `withstands` */
    sherd_collusion withstands;
    bool hides_zeros; /* sizes and numbers of what travels do not depend on entries */
    bool exact_only;  /* fixed point only, whatever sherd_product_options.exact says */
    bool residues;    /* operands travel as residues, and answers are checked modulo each
                                   prime by two trials */
    sherd_keeps keeps;
    unsigned takes;        /* SHERD_TAKES_... */
    sherd_scheme public_b; /* the scheme for a B that need not be hidden (it may be this
                                   one); 0: none */
} sherd_scheme_info;

/** Scheme number i in the order in which they are listed; NULL after the last. */
SHERD_API const sherd_scheme_info *sherd_scheme_at(size_t i);
/** The description of a scheme, never NULL: one that does not exist is called "unknown" and claims
 *  nothing. */
SHERD_API const sherd_scheme_info *sherd_scheme_describe(sherd_scheme s);
/** Whether A, at least, is hidden from each node. */
SHERD_API bool sherd_scheme_private(sherd_scheme s);

#ifdef __cplusplus
}
#endif

#endif
