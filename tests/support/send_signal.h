/* The function with which tests send signals. kill() takes 0 for the caller's process group and -1
 * for every process. A process id that was never set, or that a failed fork returned, must not
 * reach kill(). */
#ifndef SUPPORT_SEND_SIGNAL_H
#define SUPPORT_SEND_SIGNAL_H

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/types.h>

/** As kill(), for a single process other than process 1. Otherwise prints an error and sets
 *  ESRCH. */
static inline int send_signal(pid_t pid, int number)
{
    if (pid > 1) return kill(pid, number);
    fprintf(stderr, "signal %d for process %ld: not a process that this test started\n", number,
            (long)pid);
    errno = ESRCH;
    return -1;
}

#endif
