/* A privacy ledger in memory (node/secure/policy.h) for the nodes of tests, and a policy that
 * allows everything. */
#ifndef TESTS_SUPPORT_MEMORY_LEDGER_H
#define TESTS_SUPPORT_MEMORY_LEDGER_H

#include "node/secure/policy.h"

enum { MEMORY_LEDGER_MAX = 1024 };

typedef struct memory_ledger {
    sherd__charge charges[MEMORY_LEDGER_MAX];
    uint8_t keys[MEMORY_LEDGER_MAX][16][SHERD__LEDGER_DIGEST]; /* of each charge */
    size_t len, binds;
    uint8_t bound[MEMORY_LEDGER_MAX][2][SHERD__LEDGER_DIGEST]; /* digests: what is bound, and to
                                                                * which set */
    uint64_t today;
    bool full;  /* charges and binds fail */
    bool named; /* a charge is refused because its set of members would be new */
} memory_ledger;

sherd__ledger_ref memory_ledger_ref(memory_ledger *l);
extern const sherd__policy policy_of_tests;

#endif
