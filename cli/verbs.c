/* The table of verbs, generated from cli/verbs.h. */
#include "cli/verbs.h"

#include "bench/verbs.h"
#include "cli/cli.h"

#define XX(name) extern const sherd__verb sherd__verb_##name;
SHERD__VERBS(XX)
#undef XX

#define XX(name) &sherd__verb_##name,
const sherd__verb *const sherd__verbs[] = { SHERD__VERBS(XX) NULL };
#undef XX
