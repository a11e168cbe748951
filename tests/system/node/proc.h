/* The command as a child process of a test: its first line, its messages, its end. */
#ifndef TESTS_SYSTEM_NODE_PROC_H
#define TESTS_SYSTEM_NODE_PROC_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/send_signal.h"
#include "tests/system/node/hub.h"

extern char **environ;

typedef struct proc {
    pid_t pid;
    int out, err;     /* its stdout, a pipe; its stderr, a file in memory */
    char line[1200];  /* first line of its output */
    sherd__peer peer; /* parsed from that line */
    char words[4096]; /* complete stderr, after it has ended */
    int status;       /* exit status, or -signal */
} proc;

static inline const char *command_under_test(void)
{
    const char *path = getenv("SHERD");
    if (!path) fail_msg("SHERD does not name the command");
    return path;
}

static inline int64_t clock_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Starts `program` with argv (NULL-terminated) and one more environment entry (or NULL). */
static inline void proc_spawn(proc *p, const char *program, const char *const *argv,
                              const char *env)
{
    int ends[2];
    char *envp[512];
    size_t n = 0;
    memset(p, 0, sizeof *p);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    p->err = memfd_create("words", MFD_CLOEXEC);
    p->out = ends[0];
    posix_spawn_file_actions_t a;
    posix_spawn_file_actions_init(&a);
    posix_spawn_file_actions_adddup2(&a, ends[1], 1);
    posix_spawn_file_actions_adddup2(&a, p->err, 2);
    for (; environ[n] && n < 500; n++) envp[n] = environ[n];
    if (env) envp[n++] = (char *)(uintptr_t)env;
    envp[n] = NULL;
    int err = posix_spawn(&p->pid, program, &a, NULL, (char *const *)(uintptr_t)argv, envp);
    assert_int_equal(err, 0);
    posix_spawn_file_actions_destroy(&a);
    close(ends[1]);
}

/* Waits for its first line; returns false if it ends without one. */
static inline bool proc_line(proc *p, int ms)
{
    int64_t deadline = clock_ms() + ms;
    for (size_t len = 0; len < sizeof p->line - 1; len++) {
        struct pollfd f = { .fd = p->out, .events = POLLIN };
        int64_t left = deadline - clock_ms();
        if (left <= 0 || poll(&f, 1, (int)left) <= 0) fail_msg("no line within %d ms", ms);
        if (read(p->out, p->line + len, 1) != 1) return false;
        if (p->line[len] != '\n') continue;
        p->line[len] = '\0';
        return true;
    }
    return false;
}

/* Waits for its end, at most `ms`. */
static inline void proc_wait(proc *p, int ms)
{
    int64_t deadline = clock_ms() + ms;
    int status;
    while (waitpid(p->pid, &status, WNOHANG) == 0) {
        struct timespec pause = { .tv_nsec = 5000000 };
        if (clock_ms() > deadline) {
            send_signal(p->pid, SIGKILL);
            waitpid(p->pid, &status, 0);
            fail_msg("process did not end within %d ms", ms);
        }
        nanosleep(&pause, NULL);
    }
    p->status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    ssize_t got = pread(p->err, p->words, sizeof p->words - 1, 0);
    p->words[got > 0 ? got : 0] = '\0';
    close(p->out);
    close(p->err);
}

static inline void proc_stop(proc *p)
{
    send_signal(p->pid, SIGTERM);
    proc_wait(p, 10000);
}

/* Returns whether the process runs; false for a zombie. */
static inline bool process_lives(pid_t pid)
{
    char path[64], text[512], *state;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *f = fopen(path, "re");
    if (!f) return false;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    state = strrchr(text, ')');
    return state && state[2] != 'Z' && state[2] != 'X';
}

/* Reads "VmHWM" or "VmRSS" in bytes. */
static inline uint64_t process_memory(pid_t pid, const char *field)
{
    char path[64], line[256];
    unsigned long long kb = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, field, strlen(field)) == 0) sscanf(line + strlen(field) + 1, "%llu", &kb);
    fclose(f);
    return kb * 1024;
}

static inline void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

#endif
