/* A number that was never set is 0: the own group. */
#include <signal.h>

void end(int pid)
{
    kill(pid, SIGTERM);
}
