/* Whether a test runs under valgrind, which is some forty times slower and finds an error of memory
 * at the first repetition of a path. Only repetitions may depend on it; other runs make all. */
#ifndef TESTS_SUPPORT_UNDER_VALGRIND_H
#define TESTS_SUPPORT_UNDER_VALGRIND_H

#include <stdbool.h>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
static inline bool under_valgrind(void)
{
    return RUNNING_ON_VALGRIND;
}
#else
static inline bool under_valgrind(void)
{
    return false;
}
#endif

#endif
