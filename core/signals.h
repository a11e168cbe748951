/* Threads of the library block signals: the program's handlers run on its own threads. */
#ifndef CORE_SIGNALS_H
#define CORE_SIGNALS_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/** Blocks all signals in the calling thread, except those that its own memory accesses and
 *  arithmetic raise, which the program handles. Threads that it starts before
 *  sherd__signals_restore inherit the mask. */
static inline void sherd__signals_hold(sigset_t *before)
{
    static const int own[] = { SIGBUS, SIGSEGV, SIGFPE, SIGILL };
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) sigdelset(&all, own[i]);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

static inline void sherd__signals_restore(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

#endif
