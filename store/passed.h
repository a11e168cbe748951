/*
 * Which self-tests have passed, so that they are not repeated by every process that starts: a file
 * of this user, "$XDG_CACHE_HOME/sherd/selftests" or "~/.cache/sherd/selftests", with a line of 64
 * hexadecimal digits for each. A line is a hash of everything that the result depends on. Only
 * passed tests have lines. Where the file cannot be trusted, read or written, tests are repeated,
 * and nothing is reported: a cache may be missing.
 */
#ifndef STORE_PASSED_H
#define STORE_PASSED_H

#include <stdbool.h>
#include <stdint.h>

#include "core/hash.h"

/** A test, from sherd__passed_begin to sherd__passed_end. */
typedef struct sherd__passed {
    uint8_t key[SHERD__HASH];
    int fd; /* locked while this process makes the test; -1: nothing is written */
} sherd__passed;

/**
 * Returns whether the test with this key has passed. Otherwise the caller makes the test. Of
 * several processes that begin at once, the first one makes it while the others wait, at most
 * wait_ms. folder: in place of the user's, or NULL. The caller calls sherd__passed_end in both
 * cases.
 */
bool sherd__passed_begin(sherd__passed *p, const char *folder, const uint8_t key[SHERD__HASH],
                         uint32_t wait_ms);
/** Ends it. now: the test was made, and has passed; a line is written. */
void sherd__passed_end(sherd__passed *p, bool now);
/** Removes all lines, after a test has failed: what passed before cannot be relied on. */
void sherd__passed_forget(const char *folder);

#endif
