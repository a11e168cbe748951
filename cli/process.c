/*
 * The command's own process. A library must not change these settings; a command has to.
 *
 * Handlers only set a flag and write to an eventfd. Product code polls the flag or waits for the
 * eventfd, and unwinds, so that local nodes and temporary files are removed. A second Ctrl-C has
 * the default action, which ends the process (local nodes end when the pipe that they watch
 * closes).
 */
#include "cli/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/cli.h"
#include "store/file.h"

static atomic_int first_signal;
static atomic_int signal_fd = -1;

static bool stop(int sig)
{
    int saved = errno, none = 0, fd = atomic_load(&signal_fd);
    uint64_t one = 1;
    if (!atomic_compare_exchange_strong(&first_signal, &none, sig)) return none == SIGALRM;
    if (fd >= 0 && write(fd, &one, sizeof one) < 0) errno = saved;
    return true;
}

void sherd__process_late(void)
{
    (void)stop(SIGALRM);
}

static void on_signal(int sig)
{
    int saved = errno;
    if (!stop(sig)) {
        signal(sig, SIG_DFL);
        raise(sig); /* delivered when this handler returns */
    }
    errno = saved;
}

int sherd__cli_interrupted(void)
{
    return atomic_load(&first_signal);
}

bool sherd__cli_stops(void *ctx)
{
    (void)ctx;
    return sherd__cli_interrupted() != 0;
}

int sherd__cli_interrupt_fd(void)
{
    return atomic_load(&signal_fd);
}

/* A closed stdin is replaced by an empty one. A closed stdout or stderr is replaced by a descriptor
 * that cannot be written to, so that output fails as the caller intended. */
static void fill_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        int got = open("/dev/null", O_RDONLY);
        if (got >= 0 && got != fd) {
            dup2(got, fd);
            close(got);
        }
    }
}

/* libuv and libsodium abort if a system call that they need fails (docs/ARCHITECTURE.md). abort()
 * ends the process after this handler returns. */
static void on_abort(int sig)
{
    static const char text[] =
        "sherd: a library aborted the command because a system call failed; each output file is "
        "complete or unchanged\n"
        "  try: check the limits on memory and descriptors, and filters of system calls\n";
    (void)sig;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) return;
}

static void catch_signals(void)
{
    static const int caught[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction was, act;
    memset(&act, 0, sizeof act);
    sigemptyset(&act.sa_mask);
    act.sa_flags = SA_RESTART;
    act.sa_handler = on_signal;
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) {
        /* nohup and background jobs ignore it on purpose: do not change that */
        if (sigaction(caught[i], NULL, &was) == 0 && was.sa_handler == SIG_IGN) continue;
        sigaction(caught[i], &act, NULL);
    }
    signal(SIGABRT, on_abort);
    signal(SIGPIPE, SIG_IGN); /* writes fail with EPIPE */
    signal(SIGXFSZ, SIG_IGN); /* and with EFBIG */
}

void sherd__process_start(void)
{
    static const struct rlimit none = { 0, 0 };
    prctl(PR_SET_NAME, "sherd"); /* a process that executed SHERD__SELF is called exe */
    fill_standard_descriptors();
    atomic_store(&signal_fd, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    sherd__file_stop_at(atomic_load(&signal_fd));
    catch_signals();
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0);
}
