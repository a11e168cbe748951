/*
 * What is measured of a machine is measured again when it is old: its pace changes with heat and
 * with neighbours that nobody here sees. One measurement at a time; whoever comes meanwhile waits
 * for it.
 */
#ifndef CORE_FRESH_H
#define CORE_FRESH_H

#include <pthread.h>
#include <stdbool.h>

#include "core/clock.h"

typedef struct sherd__fresh {
    pthread_mutex_t lock;
    double at; /* when it was measured; 0: never */
} sherd__fresh;

#define SHERD__FRESH                                                                               \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                          \
    }
#define SHERD__FRESH_S 1.0

/** Takes the lock (sherd__fresh_unlock). True: it is time to measure again. */
static inline bool sherd__fresh_lock(sherd__fresh *f)
{
    pthread_mutex_lock(&f->lock);
    return f->at == 0 || sherd__clock_s() - f->at > SHERD__FRESH_S;
}

/** measured: just now. */
static inline void sherd__fresh_unlock(sherd__fresh *f, bool measured)
{
    if (measured) f->at = sherd__clock_s();
    pthread_mutex_unlock(&f->lock);
}

#endif
