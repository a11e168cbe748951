/* See thread_sum.h. */
#include "tests/support/thread_sum.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct {
    pthread_barrier_t all;
    pthread_mutex_t lock;
    int64_t *total;
    size_t n;
} meeting;

static int meet(void *ctx, int64_t *values, size_t n, sherd_diag *d)
{
    (void)ctx;
    (void)d;
    pthread_mutex_lock(&meeting.lock);
    if (!meeting.total) {
        meeting.total = calloc(n + 1, sizeof *meeting.total);
        meeting.n = n;
    }
    if (meeting.n != n) abort(); /* the threads are not in the same step */
    for (size_t i = 0; i < n; i++)
        meeting.total[i] = (int64_t)((uint64_t)meeting.total[i] + (uint64_t)values[i]);
    pthread_mutex_unlock(&meeting.lock);
    pthread_barrier_wait(&meeting.all);
    if (n) memcpy(values, meeting.total, n * sizeof *values);
    if (pthread_barrier_wait(&meeting.all) == PTHREAD_BARRIER_SERIAL_THREAD) {
        free(meeting.total);
        meeting.total = NULL;
    }
    pthread_barrier_wait(&meeting.all);
    return 0;
}

void thread_sum_begin(uint32_t n)
{
    pthread_barrier_init(&meeting.all, NULL, n);
    pthread_mutex_init(&meeting.lock, NULL);
}

void thread_sum_end(void)
{
    pthread_barrier_destroy(&meeting.all);
    pthread_mutex_destroy(&meeting.lock);
}

sherd_collective thread_sum_of(uint32_t rank, uint32_t n)
{
    return (sherd_collective){ .size = sizeof(sherd_collective),
                               .name = "threads",
                               .rank = rank,
                               .count = n,
                               .here = n,
                               .sum = meet };
}
