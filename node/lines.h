/*
 * How many lines a peer may put into a node's log: some a minute for each key, so that none fills
 * it, and none hides what another one did.
 */
#ifndef NODE_LINES_H
#define NODE_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/identity.h"

enum { SHERD__LINES_MAX = 20, SHERD__LINES_KEYS = 64 };
#define SHERD__LINES_MS 60000u

typedef struct sherd__lines_of {
    sherd__fingerprint key;
    uint64_t since_ms;
    uint32_t count; /* since then; 0: the place is free */
} sherd__lines_of;

/** Zeroed: no lines yet. Of more keys than fit the one whose minute began first is forgotten. */
typedef struct sherd__lines {
    sherd__lines_of of[SHERD__LINES_KEYS];
} sherd__lines;

/** Whether one more line about this key goes to the log. *left_out: how many of the minute before
 *  did not; to be said first, where it is not 0. */
bool sherd__lines_may(sherd__lines *l, const sherd__fingerprint *key, uint64_t now_ms,
                      uint32_t *left_out);

#endif
