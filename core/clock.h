/* Clocks for the code that waits and measures. Sessions and jobs never read a clock: they receive
 * the time as an argument. */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

static inline double sherd__clock_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline int64_t sherd__clock_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/** Returns the monotonic time `seconds` from now, for timed waits on this clock. */
static inline struct timespec sherd__clock_after(double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)seconds;
    t.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

/** Returns the CPU time of the calling thread in seconds, which other load on the machine does not
 *  affect. */
static inline double sherd__clock_busy_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/** Returns the CPU time of all threads of this process together, in seconds. */
static inline double sherd__clock_worked_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/** Returns the CPU time of another thread of this process in seconds, or 0 where it is not
 *  available. */
static inline double sherd__clock_busy_of(pthread_t thread)
{
    struct timespec t = { 0, 0 };
    clockid_t clock;
    if (pthread_getcpuclockid(thread, &clock) || clock_gettime(clock, &t)) return 0;
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif
