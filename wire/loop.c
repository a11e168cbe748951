/* A loop uses six descriptors: epoll, two pipes, and the wake-up descriptor (libuv 1.44.2). */
#include "wire/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

#include "core/diag.h"

#define PIPES 3

/* Returns 0 if enough descriptors can be opened, or errno. */
static int try_descriptors(void)
{
    int fds[PIPES][2], made = 0, e = 0;
    while (made < PIPES && !e) {
        if (pipe2(fds[made], O_CLOEXEC) == 0) made++;
        else e = errno;
    }
    while (made-- > 0) {
        close(fds[made][0]);
        close(fds[made][1]);
    }
    return e;
}

int sherd__loop_init(uv_loop_t *loop, sherd_diag *d)
{
    int err = uv_translate_sys_error(try_descriptors());
    if (!err) err = uv_loop_init(loop);
    if (!err) return SHERD_OK;
    const char *hint = err == UV_EMFILE   ? "raise the limit on open files (ulimit -n)"
                       : err == UV_ENFILE ? "end other programs: the system has too many open files"
                                          : NULL;
    return sherd__fail(d, SHERD_ENOMEM, hint, "cannot make an event loop: %s", uv_strerror(err));
}
