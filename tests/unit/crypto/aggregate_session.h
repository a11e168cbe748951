/*
 * Secure aggregation among members in this process: keys, pieces for all members, and uploads. A
 * step that fails fails the test.
 */
#ifndef TESTS_UNIT_CRYPTO_AGGREGATE_SESSION_H
#define TESTS_UNIT_CRYPTO_AGGREGATE_SESSION_H

#include <stddef.h>
#include <stdint.h>

#include "core/rand.h"
#include "crypto/aggregate.h"

#define JOB 77
#define MOST 9 /* nodes */

/** The description of every round. */
extern const uint8_t session_about[SHERD__ABOUT];

typedef struct session {
    sherd__aggregate a;
    sherd__aggregate_member *node[MOST];
    sherd__seal_key key[MOST];
    uint8_t open[MOST][32];
    int64_t *x;        /* nodes x len */
    uint64_t *uploads; /* nodes x len */
    uint8_t *sealed;
    sherd__entropy e;
} session;

/** Opens a session of n members, of which u answer and t may collude, with sums of `len`
 *  numbers. */
void session_begin(session *s, uint32_t n, uint32_t u, uint32_t t, size_t len, uint64_t seed);
void session_end(session *s);
/** Runs a round up to its uploads: masks, pieces for all members, values up to the bound. */
void session_round(session *s, uint64_t number);
/** Gives a node these survivors and the confirmations of the first U nodes, and asks it to
 *  answer. */
int session_answer(session *s, uint32_t node, const uint32_t *list, uint32_t len, uint64_t *out);

#endif
