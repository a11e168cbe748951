/* Threads of the library take no signals: the program's handlers run on its own ones. */
#ifndef CORE_SIGNALS_H
#define CORE_SIGNALS_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/** Threads that this one starts until sherd__signals_restore inherit it: no signal but what their
 *  own access raises, which is left to the program. */
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
