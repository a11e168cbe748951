/* The sum of a collective (sherd/collective.h) whose processes are threads of a test. */
#ifndef TESTS_SUPPORT_THREAD_SUM_H
#define TESTS_SUPPORT_THREAD_SUM_H

#include "sherd/collective.h"

/** Prepares sums of n threads, which begin afterwards and end before thread_sum_end. */
void thread_sum_begin(uint32_t n);
void thread_sum_end(void);
/** The collective of thread `rank` of n, all on one host. */
sherd_collective thread_sum_of(uint32_t rank, uint32_t n);

#endif
