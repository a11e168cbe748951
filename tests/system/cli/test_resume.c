/*
 * A training that is killed at any time, or in which any write, sync or rename fails once, and that
 * is then resumed, ends with the bits of an undisturbed one, and its checkpoints are a valid chain.
 * This program runs the command in a child process, with the calls that write wrapped.
 *
 * link: -Wl,--wrap=fsync,--wrap=linkat,--wrap=renameat,--wrap=write,--wrap=pwrite
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/command.h"
#include "tests/support/send_signal.h"
#include "store/chain.h"

#define KILLS 80

/* ---- in the child: call number FAIL_AT of those that write files fails -------------------- */

static long fail_at, calls;

static bool fails(int fd, int code)
{
    struct stat st;
    if (fd >= 0 && (fstat(fd, &st) != 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))))
        return false; /* messages, and wake-ups of threads */
    if (++calls != fail_at) return false;
    errno = code;
    return true;
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_linkat(int a, const char *from, int b, const char *to, int flags);
int __wrap_linkat(int a, const char *from, int b, const char *to, int flags);
int __real_renameat(int a, const char *from, int b, const char *to);
int __wrap_renameat(int a, const char *from, int b, const char *to);
ssize_t __real_write(int fd, const void *bytes, size_t len);
ssize_t __wrap_write(int fd, const void *bytes, size_t len);
ssize_t __real_pwrite(int fd, const void *bytes, size_t len, off_t at);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t at);

int __wrap_fsync(int fd)
{
    return fails(fd, EIO) ? -1 : __real_fsync(fd);
}

int __wrap_linkat(int a, const char *from, int b, const char *to, int flags)
{
    return fails(-1, ENOSPC) ? -1 : __real_linkat(a, from, b, to, flags);
}

int __wrap_renameat(int a, const char *from, int b, const char *to)
{
    return fails(-1, EIO) ? -1 : __real_renameat(a, from, b, to);
}

ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
    return fails(fd, ENOSPC) ? -1 : __real_write(fd, bytes, len);
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t at)
{
    return fails(fd, ENOSPC) ? -1 : __real_pwrite(fd, bytes, len, at);
}

/* Runs the command; writes the number of calls to the file "calls". */
static int child(int argc, char **argv)
{
    const char *at = getenv("FAIL_AT");
    fail_at = at ? atol(at) : 0;
    int status = sherd__cli_main(argc - 1, argv + 1);
    FILE *f = fopen("calls", "w");
    if (f) fprintf(f, "%ld", calls);
    if (f) fclose(f);
    return status;
}

/* ---- in the test ----------------------------------------------------------------------------- */

static char folder[] = "/tmp/sherd-resume-XXXXXX";
static char *reference; /* bytes of the model of an undisturbed run */
static size_t reference_len;

static void put(const char *path, const void *bytes, size_t len)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    fclose(f);
}

static char *get(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    char *bytes = malloc(1u << 20);
    assert_non_null(bytes);
    *len = fread(bytes, 1, 1u << 20, f);
    fclose(f);
    return bytes;
}

static pid_t start(const char *every, bool resume, long fail)
{
    char text[32];
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) return pid;
    snprintf(text, sizeof text, "%ld", fail);
    setenv("FAIL_AT", text, 1);
    const char *argv[] = { "test_resume", "sherd",
                           "train",       "my.conf",
                           "-q",          "--seed",
                           "seed",        "--checkpoint",
                           "run",         "--checkpoint-every",
                           every,         "-o",
                           "model.npz",   resume ? "--resume" : NULL,
                           NULL };
    int out = open("out", O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (out >= 0) dup2(out, 1);
    if (out >= 0) dup2(out, 2);
    execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
    _exit(127);
}

static int finish(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void clear(void)
{
    assert_int_equal(system("rm -rf run model.npz out"), 0);
}

static void write_recipe(unsigned steps)
{
    char text[1024];
    int n = snprintf(text, sizeof text,
                     "input = 2\nlayer = dense 17\nlayer = tanh\nlayer = dense 3\n"
                     "loss = cross-entropy\nl2 = 0.001\ndata = spiral\nexamples = 91\nclasses = 3\n"
                     "holdout = 0.1\nbatch = 20\norder = shuffled\nsteps = %u\nrate = 0.01\n"
                     "method = adam\n",
                     steps);
    put("my.conf", text, (size_t)n);
}

/* The undisturbed run. */
static void make_reference(unsigned steps, const char *every)
{
    write_recipe(steps);
    clear();
    assert_int_equal(finish(start(every, false, 0)), 0);
    free(reference);
    reference = get("model.npz", &reference_len);
    assert_non_null(reference);
}

static void assert_same_model(void)
{
    size_t len = 0;
    char *model = get("model.npz", &len);
    assert_non_null(model);
    assert_int_equal(len, reference_len);
    assert_memory_equal(model, reference, len);
    free(model);
}

/* Verifies the chain; returns the number of the newest checkpoint, -1 if there is no chain yet. */
static long newest(void)
{
    sherd__chain_report r;
    struct stat st;
    sherd_diag d = { 0 };
    if (stat("run", &st) != 0) return -1;
    if (sherd__chain_walk("run", &r, &d) != 0) fail_msg("%s", d.message);
    return r.len > 0 ? (long)r.last.number : -1;
}

static int setup(void **state)
{
    uint8_t seed[32];
    (void)state;
    for (unsigned i = 0; i < 32; i++) seed[i] = (uint8_t)(7 * i + 1);
    if (!mkdtemp(folder) || chdir(folder) != 0) return -1;
    setenv("HOME", folder, 1);
    setenv("XDG_CONFIG_HOME", folder, 1);
    put("seed", seed, sizeof seed);
    return 0;
}

static int teardown(void **state)
{
    char command[128];
    (void)state;
    free(reference);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static void a_run_that_is_killed_at_any_time_resumes_with_the_same_bits(void **state)
{
    unsigned kills = 0, ends = 0, turn = 1;
    (void)state;
    make_reference(400, "5");
    clear();
    while (kills < KILLS || ends == 0) {
        long before = newest();
        pid_t pid = start("5", true, 0);
        turn = turn * 1103515245u + 12345u;
        struct timespec rest = { 0, (long)(turn >> 8) % 60000000 };
        nanosleep(&rest, NULL);
        bool still = kills < KILLS && send_signal(pid, SIGKILL) == 0;
        int status = finish(pid);
        if (!still || status == 0) {
            assert_int_equal(status, 0);
            assert_same_model();
            ends++;
            clear();
            continue;
        }
        kills++;
        assert_true(newest() >= before);
    }
}

/* Returns the number of wrapped calls of the previous run. */
static long calls_made(void)
{
    size_t len = 0;
    char *text = get("calls", &len);
    assert_non_null(text);
    text[len] = '\0';
    long n = atol(text);
    free(text);
    return n;
}

static void a_run_resumes_after_any_write_sync_or_rename_fails(void **state)
{
    (void)state;
    make_reference(4, "2");
    long all = calls_made();
    assert_true(all > 30);
    for (long at = 1; at <= all; at++) {
        clear();
        int status = finish(start("2", false, at));
        /* 4: a file could not be written; 0: an alternative succeeded */
        assert_true(status == 4 || status == 0);
        (void)newest();
        if (status == 0) assert_same_model();
        assert_int_equal(finish(start("2", true, 0)), 0);
        assert_same_model();
    }
}

static void a_run_continues_only_its_own_folder(void **state)
{
    (void)state;
    make_reference(12, "4");
    assert_int_equal(finish(start("4", false, 0)), 2); /* holds checkpoints */
    assert_int_equal(finish(start("4", true, 0)), 0);  /* all steps are done */
    assert_same_model();
    write_recipe(24); /* longer: allowed */
    assert_int_equal(finish(start("4", true, 0)), 0);
    assert_int_equal(newest(), 24);
    write_recipe(12);
    assert_int_equal(finish(start("4", true, 0)), 3); /* fewer steps than were made */
    put("seed", "another seed, but of 32 bytes too", 32);
    write_recipe(24);
    assert_int_equal(finish(start("4", true, 0)), 3);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_that_is_killed_at_any_time_resumes_with_the_same_bits),
        cmocka_unit_test(a_run_resumes_after_any_write_sync_or_rename_fails),
        cmocka_unit_test(a_run_continues_only_its_own_folder),
    };
    if (argc > 1 && strcmp(argv[1], "sherd") == 0) return child(argc, argv);
    return cmocka_run_group_tests(tests, setup, teardown);
}
