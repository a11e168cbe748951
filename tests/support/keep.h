/* Options of sherd_multiplier_keep. */
#ifndef TESTS_SUPPORT_KEEP_H
#define TESTS_SUPPORT_KEEP_H

#include "sherd/multiplier.h"

/** Keeps an operand in parts of `rows` rows; valid in the block that it is used in. */
#define keep_parts(rows)                                                                           \
    (&(sherd_keep_options){ .size = sizeof(sherd_keep_options), .part = (rows) })

#endif
