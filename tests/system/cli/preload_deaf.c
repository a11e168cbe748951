/* Nodes that never listen: listen() does not return. Coordinators do not call it. */
#include <sys/socket.h>
#include <unistd.h>

__attribute__((visibility("default"))) int listen(int fd, int backlog);

int listen(int fd, int backlog)
{
    (void)fd;
    (void)backlog;
    for (;;) pause();
}
