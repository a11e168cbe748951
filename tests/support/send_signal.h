/* How tests send signals. kill() takes 0 for the own group, and -1 for every process there is: a
 * number that was never set, or that a fork failed to give, must reach neither. */
#ifndef SUPPORT_SEND_SIGNAL_H
#define SUPPORT_SEND_SIGNAL_H

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/types.h>

/** As kill(), to one process that is not the first: else ESRCH, and it is said. */
static inline int send_signal(pid_t pid, int number)
{
    if (pid > 1) return kill(pid, number);
    fprintf(stderr, "signal %d for process %ld: it is no process of ours\n", number, (long)pid);
    errno = ESRCH;
    return -1;
}

#endif
