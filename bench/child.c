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
#include "core/alloc.h"

#define PYTHON "/usr/bin/python3" /* from the package list; another Python may lack numpy */
#define NO_NUMPY 77
#define ARGS_MAX 32

#define SCRIPT(symbol, file)                                                                       \
    __asm__(".pushsection .rodata\n.globl " #symbol "\n.hidden " #symbol "\n" #symbol ":\n"        \
            ".incbin \"bench/" file "\"\n.byte 0\n.popsection")

SCRIPT(sherd__bench_deep_py, "deep.py");
SCRIPT(sherd__bench_fragments_py, "fragments.py");
SCRIPT(sherd__bench_mnist_epoch_py, "mnist_epoch.py");
SCRIPT(sherd__bench_permutations_py, "permutations.py");
SCRIPT(sherd__bench_spiral_py, "spiral.py");

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

/* Reads the child's output and keeps its first bytes. Returns false if a signal is received
 * before. */
static bool listen_to(int fd, char *out, size_t size)
{
    struct pollfd watched[] = { { .fd = fd, .events = POLLIN },
                                { .fd = sherd__cli_interrupt_fd(), .events = POLLIN } };
    char text[1024];
    size_t len = 0;
    for (ssize_t n = 1; n > 0;) {
        if (poll(watched, 2, -1) < 0 && errno != EINTR) break;
        if (sherd__cli_interrupted()) return false;
        if (watched[0].revents == 0) continue;
        n = read(fd, text, sizeof text);
        if (n < 0 && errno == EINTR) n = 1;
        else if (n > 0 && (size_t)n < size - len)
            memcpy(out + len, text, (size_t)n), len += (size_t)n;
    }
    out[len] = '\0';
    return true;
}

/* How a program ended, and what it printed. */
typedef struct ended {
    int status; /* its exit status, or -signal */
    double seconds;
    char *out; /* memory of `size` bytes, the caller's */
    size_t size;
} ended;

/* Runs a program until it ends. */
static int run(const sherd__bench *b, const char *program, const char *const *argv, ended *x,
               sherd_diag *d)
{
    int ends[2], wait = 0;
    pid_t pid = -1;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return sherd__fail(d, SHERD_EIO, NULL, "cannot make a pipe: %s", strerror(errno));
    double began = sherd__clock_s();
    int e = start(&pid, b, program, argv, ends[1]);
    close(ends[1]);
    if (e != 0) {
        close(ends[0]);
        return sherd__fail(d, SHERD_EOPEN, NULL, "cannot start %s: %s", program, strerror(e));
    }
    bool heard = listen_to(ends[0], x->out, x->size);
    close(ends[0]);
    if (!heard) kill(pid, SIGTERM);
    while (waitpid(pid, &wait, 0) < 0 && errno == EINTR) {}
    x->seconds = sherd__clock_s() - began;
    x->status = WIFEXITED(wait) ? WEXITSTATUS(wait) : -WTERMSIG(wait);
    return heard ? 0 : sherd__fail(d, SHERD_EINTERRUPTED, NULL, "interrupted");
}

/* Writes the words of two lists, ended by NULL, one behind the other. */
static void join(const char *all[ARGS_MAX], const char *const *first, const char *const *then)
{
    size_t n = 0;
    while (*first && n < ARGS_MAX - 1) all[n++] = *first++;
    while (*then && n < ARGS_MAX - 1) all[n++] = *then++;
    all[n] = NULL;
}

int sherd__bench_command(const sherd__bench *b, const char *const *argv, double *seconds, char *out,
                         size_t size, sherd_diag *d)
{
    const char *all[ARGS_MAX], *const name[] = { "sherd", NULL };
    char ignored[1];
    ended x = { .out = out ? out : ignored, .size = out ? size : sizeof ignored };
    join(all, name, argv);
    int err = run(b, SHERD__SELF, all, &x, d);
    if (err) return err;
    *seconds = x.seconds;
    return x.status == 0 ? SHERD_OK
                         : sherd__fail(d, SHERD_EINTERNAL, "run it again with -v",
                                       "`sherd %s` ended with %d", argv[0], x.status);
}

/* Adds the numbers of a text to the series. */
static int take_numbers(sherd__bench *b, const char *text, const char *const *names)
{
    char *end;
    for (; *names; names++, text = end) {
        double value = strtod(text, &end);
        if (end == text) return SHERD_EFORMAT;
        sherd__bench_put(b, *names, value);
    }
    return SHERD_OK;
}

int sherd__bench_numpy(sherd__bench *b, const char *script, const char *const *args,
                       unsigned threads, const char *const *names, sherd_diag *d)
{
    static const char look[] = "import os, sys\n" /* BLAS reads them when numpy is imported */
                               "if %u: os.environ.update(OPENBLAS_NUM_THREADS='%u', "
                               "OMP_NUM_THREADS='%u')\n"
                               "try: import numpy as np\n"
                               "except ImportError: sys.exit(77)\n%s";
    size_t room = sizeof look + 3 * 10 + strlen(script);
    char out[400];
    ended x = { .status = NO_NUMPY, .out = out, .size = sizeof out };
    if (b->warming || b->without_numpy) return SHERD_OK;
    char *text = sherd__alloc(room);
    if (!text) return sherd__bench_no_memory(d);
    snprintf(text, room, look, threads, threads, threads, script);
    const char *all[ARGS_MAX], *const python[] = { "python3", "-c", text, NULL };
    join(all, python, args);
    int err = access(PYTHON, X_OK) != 0 ? SHERD_OK : run(b, PYTHON, all, &x, d);
    sherd__free(text);
    b->without_numpy = x.status == NO_NUMPY;
    if (err || b->without_numpy) return err;
    if (x.status == 0 && !take_numbers(b, out, names)) return SHERD_OK;
    return sherd__fail(d, SHERD_EINTERNAL, "run it again with -v",
                       "the script for numpy ended with %d", x.status);
}
