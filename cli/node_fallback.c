/*
 * `sherd node --fallback cpu`. No function of a driver can be interrupted, and a driver may end its
 * process, so the node runs in a process of its own. This one never uses a driver. It passes on
 * signals and the lines of standard output, and takes over with the same key and address if a
 * device fails: coordinators that lost their connection find the node again, as a slower one.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/node_devices.h"
#include "cli/process.h"
#include "core/alloc.h"

#define ARGS_MAX 256
#define STOPS 2 /* the first ones of `passed` end a node */

extern char **environ;

static const int passed[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1 };
static atomic_int wanted[sizeof passed / sizeof *passed];
static struct sigaction before[STOPS];

static void on_signal(int number)
{
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
        if (passed[i] == number) atomic_store(&wanted[i], 1);
}

static void catch_signals(void)
{
    struct sigaction act = { .sa_handler = on_signal };
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
        sigaction(passed[i], &act, i < STOPS ? &before[i] : NULL);
}

/* Restores the handlers of signals that end the command, and has them handle a signal that was not
 * passed on, so that it ends a node that starts. The node reads its files when it starts, which
 * SIGHUP asks for, and has no counters to print. */
static void restore_signals(void)
{
    for (size_t i = 0; i < STOPS; i++) {
        sigaction(passed[i], &before[i], NULL);
        if (atomic_exchange(&wanted[i], 0)) raise(passed[i]);
    }
}

/* The other process. */
typedef struct child {
    pid_t pid;
    int out;
    char first[1024]; /* the line, text or JSON, that it printed first */
    size_t first_len;
    bool to_end; /* a signal that ends it was passed on */
} child;

/* Splits our own command line, and adds the option that says that this process supervises. Returns
 * the number of words; 0: it could not be read, or has too many bytes or words. */
static size_t own_args(char *text, size_t size, char **argv)
{
    static char supervised[] = "--supervised";
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t len = 0, got = -1;
    size_t n = 0;
    while (fd >= 0 && (got = read(fd, text + len, size - 1 - (size_t)len)) > 0) len += got;
    if (fd >= 0) close(fd);
    text[len] = '\0';
    if (got < 0 || len == (ssize_t)size - 1) return 0;
    for (char *at = text; at < text + len; at += strlen(at) + 1) {
        if (n == ARGS_MAX - 2) return 0;
        argv[n++] = at;
    }
    argv[n++] = supervised;
    argv[n] = NULL;
    return n;
}

static int start(child *c, sherd_diag *d)
{
    enum { TEXT = 65536 };
    char *argv[ARGS_MAX], *text = sherd__alloc(TEXT);
    static char self[] = SHERD__SELF;
    int fds[2];
    *c = (child){ .out = -1 };
    if (!text) return sherd__fail_memory(d, "a command line");
    size_t n = own_args(text, TEXT, argv);
    if (n == 0 || pipe2(fds, O_CLOEXEC)) {
        sherd__free(text);
        return n == 0 ? sherd__fail(d, SHERD_EINVAL, "shorten it, or leave out --fallback",
                                    "the command line has more than 64 KiB or %d words, or cannot "
                                    "be read from /proc",
                                    ARGS_MAX - 2)
                      : sherd__fail(d, SHERD_EIO, NULL, "no pipe: %s", strerror(errno));
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
    int err = posix_spawn(&c->pid, self, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    sherd__free(text);
    close(fds[1]);
    c->out = fds[0];
    if (!err) return 0;
    close(fds[0]);
    return sherd__fail(d, SHERD_EIO, NULL, "cannot start the process of the device: %s",
                       strerror(err));
}

static void pass_signals(child *c)
{
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
        if (!atomic_exchange(&wanted[i], 0)) continue;
        c->to_end |= i < STOPS;
        kill(c->pid, passed[i]);
    }
}

/* Copies what the process prints. Returns false once it has closed its output. */
static bool pass_output(child *c)
{
    char bytes[4096];
    struct pollfd p = { .fd = c->out, .events = POLLIN };
    if (poll(&p, 1, 100) <= 0) return true;
    ssize_t n = read(c->out, bytes, sizeof bytes);
    if (n < 0) return errno == EINTR;
    for (ssize_t i = 0; i < n && c->first_len < sizeof c->first - 1; i++)
        c->first[c->first_len++] = bytes[i];
    fwrite(bytes, 1, (size_t)n, stdout);
    fflush(stdout);
    return n > 0;
}

/* Takes the port from the node's line: HOST:PORT key=... */
static void keep_port(const sherd__cli *cli, const child *c, char *listen, size_t size)
{
    const char *given = sherd__opt_text(cli, "listen"), *colon = strrchr(given, ':');
    const char *key = strstr(c->first, " key=");
    snprintf(listen, size, "%s", given);
    if (!colon || strcmp(colon, ":0") != 0 || !key) return;
    const char *at = key;
    while (at > c->first && at[-1] >= '0' && at[-1] <= '9') at--;
    if (at == key || at == c->first || at[-1] != ':') return;
    snprintf(listen, size, "%.*s:%.*s", (int)(colon - given), given, (int)(key - at), at);
}

int sherd__node_supervise(sherd__cli *cli, char *listen, size_t size, sherd_diag *d)
{
    child c;
    int status = 0;
    catch_signals();
    int err = start(&c, d);
    if (err) return err;
    do pass_signals(&c);
    while (pass_output(&c));
    close(c.out);
    while (waitpid(c.pid, &status, 0) < 0 && errno == EINTR) pass_signals(&c);
    keep_port(cli, &c, listen, size);
    const bool lost = WIFEXITED(status) && WEXITSTATUS(status) == SHERD__NODE_LOST;
    if (!c.to_end && (lost || WIFSIGNALED(status))) {
        restore_signals();
        return sherd__fail(d, SHERD_EDEVICE, NULL, "%s%s",
                           lost ? "the device failed" : "the process of the device ended: ",
                           lost ? "" : strsignal(WTERMSIG(status)));
    }
    fflush(stdout);
    _exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status)
          : lost              ? sherd_err_exit(SHERD_EDEVICE)
                              : WEXITSTATUS(status));
}
