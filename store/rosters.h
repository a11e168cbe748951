/*
 * Sets of members in a ledger (store/ledger.h): each key is written once and numbered, and a set
 * names spans of numbers, so that a set of which most is known takes a few bytes.
 *
 *     member KEY                  the next number, from 0 on
 *     set NUMBER FIRST-LAST ...   ascending, with a gap between two; NUMBER from 0 on
 *     roster NUMBER KEY KEY ...   as older ledgers have it: a set, and what of it is new as members
 */
#ifndef STORE_ROSTERS_H
#define STORE_ROSTERS_H

#include <stdint.h>

#include "core/hash.h"
#include "core/index.h"

enum { SHERD__ROSTER_KEY = 32, SHERD__ROSTER_MOST = 1024 };

typedef struct sherd__rosters {
    sherd__index members;               /* of keys */
    sherd__index sets;                  /* by digest of their spans */
    sherd_buf spans;                    /* of all sets, one behind the other */
    uint8_t (*keys)[SHERD__ROSTER_KEY]; /* of the set that was asked for */
} sherd__rosters;

/** From member `first` to `last`. */
typedef struct sherd__roster_span {
    uint32_t first, last;
} sherd__roster_span;

/** A set, known or not. */
typedef struct sherd__roster {
    uint8_t digest[SHERD__HASH];
    uint32_t number; /* sherd__rosters_len: it is a new one */
    uint32_t nodes, spans_len;
    uint32_t unknown_len;
    uint16_t unknown[SHERD__ROSTER_MOST];     /* which of its keys are new members */
    const uint8_t (*keys)[SHERD__ROSTER_KEY]; /* borrowed */
    sherd__roster_span spans[SHERD__ROSTER_MOST];
} sherd__roster;

/** SHERD_ENOMEM. */
int sherd__rosters_init(sherd__rosters *r, const sherd__table_key *key) SHERD_MUST;
void sherd__rosters_fini(sherd__rosters *r);
uint32_t sherd__rosters_len(const sherd__rosters *r);

/** The keys of set `number`, ascending; valid until the next call. */
const uint8_t (*sherd__rosters_keys(const sherd__rosters *r, uint32_t number,
                                    uint32_t *nodes))[SHERD__ROSTER_KEY];

/** SHERD_EINVAL: none or too many of them, or not ascending. */
int sherd__rosters_find(const sherd__rosters *r, const uint8_t (*keys)[SHERD__ROSTER_KEY],
                        uint32_t nodes, sherd__roster *out) SHERD_MUST;
/** Its lines; none where it is known. SHERD_ENOMEM, SHERD_EINVAL: no room. */
int sherd__rosters_print(const sherd__rosters *r, const sherd__roster *set,
                         sherd_buf *out) SHERD_MUST;
/** Room for a set: to add it cannot fail then. SHERD_ENOMEM, SHERD_EINVAL: too many. */
int sherd__rosters_reserve(sherd__rosters *r, const sherd__roster *set) SHERD_MUST;
/** Adds it where it is not known. */
int sherd__rosters_add(sherd__rosters *r, const sherd__roster *set) SHERD_MUST;

/** Takes a line of the three kinds, without its newline (a byte that can be read, no digit and no
 *  space). SHERD_EUNSUPPORTED: of no such kind; SHERD_EFORMAT, SHERD_ENOMEM. */
int sherd__rosters_take(sherd__rosters *r, const char *at, const char *end) SHERD_MUST;

#endif
