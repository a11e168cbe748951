/*
 * Descriptions of the schemes: how each one hides the operands of a product, from which nodes, what
 * it still reveals, and which options it reads. All code that depends on the scheme, or describes
 * it to the user, reads these descriptions; docs/THREATS.md gives the reasons.
 *
 * A scheme has to claim every property explicitly: a property that is not set means "not hidden". A
 * scheme without a description is therefore not private.
 */
#ifndef SHERD_SCHEME_H
#define SHERD_SCHEME_H

#include <stdbool.h>
#include <stddef.h>

#include "sherd/err.h"
#include "sherd/field.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How operands are hidden. permute and plain are not private. */
typedef enum sherd_scheme {
    SHERD_PERMUTE = 1, /* columns assigned by exposure, columns of B's rows shuffled */
    SHERD_PLAIN = 2,   /* row panels in clear, B in clear */
    SHERD_SHARE = 3,   /* both operands coded: any `colluding` domains learn nothing of them */
    SHERD_SHARE1 = 4,  /* A coded as by SHARE, B in clear */
    SHERD_BLIND = 5    /* A masked by prepared masks (masks), B in clear: all nodes may collude */
} sherd_scheme;

/** share: how both operands are coded (docs/SCHEMES.md). Under INNER a node computes less, and no
 *  node may be missing: after a loss everything is coded again. share1, and operands that are kept:
 *  always LAGRANGE. */
typedef enum sherd_code {
    SHERD_CODE_AUTO = 0, /* the one with the least predicted time of those that are possible */
    SHERD_CODE_LAGRANGE = 1,
    SHERD_CODE_INNER = 2 /* requires sherd_product_options.spare 0 */
} sherd_code;

/** Which nodes may combine what they see without learning what is hidden. */
typedef enum sherd_collusion {
    SHERD_WITHSTANDS_NONE = 0, /* a single node may learn it: not private */
    SHERD_WITHSTANDS_SOME = 1, /* nodes of any sherd_product_options.colluding domains */
    SHERD_WITHSTANDS_ALL = 2   /* all nodes together */
} sherd_collusion;

/** Options of sherd_product_options that only some schemes read: bits of
 *  sherd_scheme_info.takes. */
enum {
    SHERD_TAKES_SHUFFLES = 1,  /* seed, operation, shuffles, group, balanced, shuffle_rows: columns
                                  of A are assigned to nodes, and B's columns shuffled */
    SHERD_TAKES_ENCODING = 2,  /* encoding, link_rate: zeros of A may be left out */
    SHERD_TAKES_COLLUDING = 4, /* colluding, spare, code: an operand is coded, one share a domain */
    SHERD_TAKES_BITS_B = 8,    /* bits_b */
    SHERD_TAKES_MASKS = 16,    /* masks, masks_state: every product uses up some of them */
    SHERD_TAKES_WEIGHTS = 32   /* weight= of a node's line: the work is divided, not encoded */
};

/** Which operand can stay at the nodes over many products. */
typedef enum sherd_keeps {
    SHERD_KEEPS_NOTHING = 0,
    SHERD_KEEPS_RIGHT = 1, /* B: sherd_resident_new; a multiplier's operand in both directions */
    SHERD_KEEPS_LEFT = 2   /* A, as shares: a multiplier's operand */
} sherd_keeps;

/** Made by the library, which may add members at the end. */
typedef struct sherd_scheme_info {
    sherd_scheme scheme;
    const char *name;      /* value of --scheme; at most 15 letters */
    const char *about;     /* what each node learns, in one sentence without full stop, or NULL */
    const char *training;  /* the same for the products of a network; NULL: not known */
    bool hides_a, hides_b; /* entries of the operand are hidden from the nodes of `withstands` */
    sherd_collusion withstands;
    bool hides_zeros; /* the number and sizes of messages do not depend on entries */
    bool exact_only;  /* fixed point only, independent of sherd_product_options.exact */
    bool residues;    /* operands are sent as residues; answers are checked by two trials for each
                         prime */
    sherd_keeps keeps;
    unsigned takes;        /* options that the scheme reads, SHERD_TAKES_... */
    sherd_scheme public_b; /* the scheme for a B that need not be hidden, which may be this one; 0:
                              none */
} sherd_scheme_info;

SHERD_API const sherd_field *sherd_scheme_info_fields(size_t *count);

/** Returns the i-th scheme of the list; NULL after the last. */
SHERD_API const sherd_scheme_info *sherd_scheme_at(size_t i);
/** Returns the description of a scheme, never NULL. A scheme that does not exist is called
 *  "unknown" and claims nothing. */
SHERD_API const sherd_scheme_info *sherd_scheme_get(sherd_scheme s);
/** Returns true if at least A is hidden from each node. */
SHERD_API bool sherd_scheme_private(sherd_scheme s);
/** Returns whether the products of a network may use the scheme. A private scheme with a public B
 *  may not, since B would be the network's weights; nor may a scheme that does not exist. */
SHERD_API bool sherd_scheme_for_network(sherd_scheme s);

#ifdef __cplusplus
}
#endif

#endif
