/*
 * Sets of members in a ledger (store/ledger.h). Each key is written once and numbered. A set
 * consists of spans of these numbers, so a set of mostly known members takes only a few bytes.
 *
 *     member KEY                  defines the next number, from 0 on
 *     set NUMBER FIRST-LAST ...   ascending, with a gap between two; NUMBER from 0 on
 *     roster NUMBER KEY KEY ...   in older ledgers: a set, with its new keys as members
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
    sherd__buf spans;                   /* of all sets, consecutively */
    uint8_t (*keys)[SHERD__ROSTER_KEY]; /* of the set requested last */
} sherd__rosters;

/** Members `first` to `last`. */
typedef struct sherd__roster_span {
    uint32_t first, last;
} sherd__roster_span;

/** A set, known or new. */
typedef struct sherd__roster {
    uint8_t digest[SHERD__HASH];
    uint32_t number; /* sherd__rosters_len: the set is new */
    uint32_t nodes, spans_len;
    uint32_t unknown_len;
    uint16_t unknown[SHERD__ROSTER_MOST];     /* indices of its keys that are new members */
    const uint8_t (*keys)[SHERD__ROSTER_KEY]; /* borrowed */
    sherd__roster_span spans[SHERD__ROSTER_MOST];
} sherd__roster;

/** Initialises *r. The caller frees it with sherd__rosters_fini. Errors: SHERD_ENOMEM. */
int sherd__rosters_init(sherd__rosters *r, const sherd__table_key *key) SHERD_MUST;
void sherd__rosters_fini(sherd__rosters *r);
uint32_t sherd__rosters_len(const sherd__rosters *r);

/** Returns the keys of set `number`, ascending; valid until the next call. */
const uint8_t (*sherd__rosters_keys(const sherd__rosters *r, uint32_t number,
                                    uint32_t *nodes))[SHERD__ROSTER_KEY];

/** Finds a set by its keys. Errors: SHERD_EINVAL if there are no keys, too many, or they are not
 *  ascending. */
int sherd__rosters_find(const sherd__rosters *r, const uint8_t (*keys)[SHERD__ROSTER_KEY],
                        uint32_t nodes, sherd__roster *out) SHERD_MUST;
/** Appends the lines of a new set to `out`, none for a known one. Errors: SHERD_ENOMEM;
 *  SHERD_EINVAL if there is no room. */
int sherd__rosters_print(const sherd__rosters *r, const sherd__roster *set,
                         sherd__buf *out) SHERD_MUST;
/** Reserves room for a set, so that adding it cannot fail. Errors: SHERD_ENOMEM; SHERD_EINVAL if
 *  there are too many. */
int sherd__rosters_reserve(sherd__rosters *r, const sherd__roster *set) SHERD_MUST;
/** Adds a set if it is new. */
int sherd__rosters_add(sherd__rosters *r, const sherd__roster *set) SHERD_MUST;

/** Parses a line of one of the three kinds. The newline is not included, but the byte at `end` must
 *  be readable, and neither a digit nor a space. Errors: SHERD_EUNSUPPORTED: another kind of line;
 *  SHERD_EFORMAT, SHERD_ENOMEM. */
int sherd__rosters_take(sherd__rosters *r, const char *at, const char *end) SHERD_MUST;

#endif
