/* A process id that was never set is 0: the caller's process group. */
#include <signal.h>

void end(int pid)
{
    kill(pid, SIGTERM);
}
