/*
 * Limits the lines that a peer may cause in a node's log: a number each minute for each key, so
 * that no peer fills the log or hides what another one did.
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
    uint32_t count; /* since then; 0: the entry is free */
} sherd__lines_of;

/** Zero-initialise. Where more keys occur than fit, the one with the oldest minute is forgotten. */
typedef struct sherd__lines {
    sherd__lines_of of[SHERD__LINES_KEYS];
} sherd__lines;

/** Returns whether one more line about this key is logged. *left_out is the number of lines that
 *  the previous minute suppressed; where it is not 0, the caller logs it first. */
bool sherd__lines_may(sherd__lines *l, const sherd__fingerprint *key, uint64_t now_ms,
                      uint32_t *left_out);

#endif
