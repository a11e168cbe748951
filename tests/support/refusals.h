/* Every text that a node may give with a refusal or a goodbye, written down again: what is not in
 * this table may depend on somebody's data or use. Texts of the owner's policy begin with
 * "policy: " and are checked by unit/node/test_policy. */
#ifndef TESTS_SUPPORT_REFUSALS_H
#define TESTS_SUPPORT_REFUSALS_H

#include <stdbool.h>

/** Whether a peer may be given `text` with `code`. */
bool refusal_is_constant(int code, const char *text);

#endif
