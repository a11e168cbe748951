/* A second list of all texts that a node may send with a refusal or a goodbye. A text that is not
 * in this table could depend on data or use of one of its clients. Texts of the owner's policy
 * begin with "policy: "; unit/node/test_policy checks them. */
#ifndef TESTS_SUPPORT_REFUSALS_H
#define TESTS_SUPPORT_REFUSALS_H

#include <stdbool.h>

/** Returns whether a node may send `text` with `code` to a peer. */
bool refusal_is_constant(int code, const char *text);

#endif
