/*
 * Age of a measurement of this machine. A measurement is repeated when it is old, since the
 * machine's speed changes with its temperature and with load from other virtual machines. One
 * thread measures at a time; other threads wait for its result.
 */
#ifndef CORE_FRESH_H
#define CORE_FRESH_H

#include <pthread.h>
#include <stdbool.h>

#include "core/clock.h"

typedef struct sherd__fresh {
    pthread_mutex_t lock;
    double at; /* time of the measurement; 0: never */
} sherd__fresh;

#define SHERD__FRESH                                                                               \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                          \
    }
#define SHERD__FRESH_S 1.0

/** Takes the lock; sherd__fresh_unlock releases it. Returns true when a new measurement is
 *  needed. */
static inline bool sherd__fresh_lock(sherd__fresh *f)
{
    pthread_mutex_lock(&f->lock);
    return f->at == 0 || sherd__clock_s() - f->at > SHERD__FRESH_S;
}

/** Releases the lock. `measured` says that a new measurement was made under it. */
static inline void sherd__fresh_unlock(sherd__fresh *f, bool measured)
{
    if (measured) f->at = sherd__clock_s();
    pthread_mutex_unlock(&f->lock);
}

#endif
