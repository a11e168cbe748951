/*
 * Child processes of a benchmark: the command, to time whole commands and to measure memory in a
 * process of its own, and numpy. A child's stdout is read through a pipe that is polled together
 * with the signals, so that Ctrl-C ends the child too.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "cli/process.h"
#include "core/alloc.h"
#include "core/clock.h"

#define PYTHON "/usr/bin/python3" /* from the package list; another Python may lack numpy */
#define NO_NUMPY 77

/* Returns our environment without this command's SHERD_* variables, which would also affect the
 * child. */
static char **environment(void)
{
    size_t n = 0, len = 0;
    while (environ[n]) n++;
    char **env = sherd__calloc(n + 1, sizeof *env);
    for (size_t i = 0; i < n && env; i++)
        if (strncmp(environ[i], "SHERD_", 6) != 0 || strncmp(environ[i], "SHERD_TEST_", 11) == 0 ||
            strncmp(environ[i], "SHERD_MNIST=", 12) == 0)
            env[len++] = environ[i];
    return env;
}

static int start(pid_t *pid, const sherd__bench *b, const char *program, const char *const *argv,
                 int out)
{
    posix_spawn_file_actions_t actions;
    char **env = environment();
    if (!env) return ENOMEM;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    if (b->cli->verbose == 0)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int e = posix_spawn(pid, program, &actions, NULL, (char *const *)(uintptr_t)argv, env);
    posix_spawn_file_actions_destroy(&actions);
    sherd__free(env);
    return e;
}

/* Reads the child's output and keeps its first bytes. Returns false if a signal came first. */
static bool listen_to(sherd__child *c, int fd)
{
    struct pollfd watched[] = { { .fd = fd, .events = POLLIN },
                                { .fd = sherd__cli_interrupt_fd(), .events = POLLIN } };
    char text[1024];
    size_t len = 0;
    for (;;) {
        if (poll(watched, 2, -1) < 0 && errno != EINTR) return true;
        if (sherd__cli_interrupted()) return false;
        if (watched[0].revents == 0) continue;
        ssize_t n = read(fd, text, sizeof text);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        size_t room = sizeof c->out - 1 - len, take = (size_t)n < room ? (size_t)n : room;
        memcpy(c->out + len, text, take);
        len += take;
    }
    c->out[len] = '\0';
    return true;
}

int sherd__child_run(sherd__child *out, const sherd__bench *b, const char *program,
                     const char *const *argv, sherd_diag *d)
{
    int ends[2], status = 0;
    pid_t pid = -1;
    *out = (sherd__child){ .status = -1 };
    if (pipe2(ends, O_CLOEXEC) != 0)
        return sherd__fail(d, SHERD_EIO, NULL, "cannot make a pipe: %s", strerror(errno));
    double began = sherd__clock_s();
    int e = start(&pid, b, program, argv, ends[1]);
    close(ends[1]);
    if (e != 0) {
        close(ends[0]);
        return sherd__fail(d, SHERD_EOPEN, NULL, "cannot start %s: %s", program, strerror(e));
    }
    bool heard = listen_to(out, ends[0]);
    close(ends[0]);
    if (!heard) kill(pid, SIGTERM);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    out->seconds = sherd__clock_s() - began;
    out->status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return heard ? 0 : sherd__fail(d, SHERD_EINTERRUPTED, NULL, "interrupted");
}

int sherd__child_self(sherd__child *out, const sherd__bench *b, const char *const *argv,
                      sherd_diag *d)
{
    const char *with_name[40] = { "sherd" };
    size_t n = 0;
    for (; argv[n] && n < 38; n++) with_name[n + 1] = argv[n];
    with_name[n + 1] = NULL;
    int err = sherd__child_run(out, b, SHERD__SELF, with_name, d);
    if (!err && out->status != 0)
        err = sherd__fail(d, SHERD_EINTERNAL, "run it again with -v", "`sherd %s` ended with %d",
                          argv[0], out->status);
    return err;
}

static int no_numpy(sherd_diag *d)
{
    return sherd__fail(d, SHERD_EUNSUPPORTED, "apt-get install python3-numpy",
                       "no numpy in " PYTHON ": nothing to compare with");
}

int sherd__numpy_run(const sherd__bench *b, const char *script, const char *const *args,
                     unsigned threads, double *out, int n, sherd_diag *d)
{
    static const char look[] = "import os, sys\n" /* BLAS reads them when numpy is imported */
                               "if %u: os.environ.update(OPENBLAS_NUM_THREADS='%u', "
                               "OMP_NUM_THREADS='%u')\n"
                               "try: import numpy as np\n"
                               "except ImportError: sys.exit(77)\n%s";
    const char *argv[40] = { "python3", "-c" };
    size_t len = 0, room = sizeof look + 3 * 10 + strlen(script);
    char *text = sherd__alloc(room);
    sherd__child c;
    if (!text) return sherd__fail(d, SHERD_ENOMEM, NULL, "no memory for a script");
    snprintf(text, room, look, threads, threads, threads, script);
    argv[2] = text;
    for (; args[len] && len < 36; len++) argv[len + 3] = args[len];
    argv[len + 3] = NULL;
    int err = access(PYTHON, X_OK) != 0 ? no_numpy(d) : sherd__child_run(&c, b, PYTHON, argv, d);
    sherd__free(text);
    if (err) return err;
    if (c.status == NO_NUMPY) return no_numpy(d);
    char *at = c.out, *end = at;
    for (int i = 0; i < n; i++, at = end) {
        out[i] = strtod(at, &end);
        if (end == at || c.status != 0)
            return sherd__fail(d, SHERD_EINTERNAL, "run it again with -v",
                               "the script for numpy ended with %d", c.status);
    }
    return 0;
}
