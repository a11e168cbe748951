/*
 * One download by curl, which runs as a child process without the user's configuration file (it
 * reads proxies from its environment as usual). curl writes to a pipe; its error output goes to a
 * file without a name. This file enforces all time limits on the pipe, so that they hold whatever
 * curl does: curl is killed if no data come, if time is over, or if more data come than the file
 * can have.
 */
#include "cli/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/alloc.h"
#include "core/clock.h"

#define END_SECONDS 5.0 /* between the last byte and the end of curl */
#define SLOWEST 1000.0  /* bytes per second */
#define READ_AT_ONCE ((size_t)256 << 10)

typedef struct child {
    pid_t pid;
    int out, complaints;
    int status;
} child;

/* ---- start and end --------------------------------------------------------------------------- */

static int spawn(child *c, const sherd__fetch *f, int out)
{
    char size[32];
    const char *protocols = f->plain_allowed ? "=http,https" : "=https";
    snprintf(size, sizeof size, "%zu", f->size_max);
    const char *argv[] = { "curl",
                           "-q",
                           "--silent",
                           "--show-error",
                           "--no-buffer",
                           "--fail",
                           "--location",
                           "--globoff",
                           "--max-redirs",
                           "5",
                           "--proto",
                           protocols,
                           "--proto-redir",
                           protocols,
                           "--max-filesize",
                           size,
                           "--url",
                           f->url,
                           NULL };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &usual);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, c->complaints, STDERR_FILENO);
    int e = posix_spawnp(&c->pid, "curl", &actions, &attr, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    return e;
}

static int begin(child *c, const sherd__fetch *f, sherd_diag *d)
{
    int ends[2] = { -1, -1 };
    *c = (child){ .pid = -1, .out = -1, .complaints = memfd_create("curl", MFD_CLOEXEC) };
    if (c->complaints < 0 || pipe2(ends, O_CLOEXEC) != 0)
        return sherd__fail(d, SHERD_EINTERNAL, NULL, "no pipe to curl: %s", strerror(errno));
    c->out = ends[0];
    int e = spawn(c, f, ends[1]);
    close(ends[1]);
    if (e == 0) return 0;
    c->pid = -1;
    return sherd__fail(d, SHERD_EOPEN, "install curl, or download the files by other means",
                       "cannot start curl, which downloads the files: %s",
                       e == ENOENT ? "it is not installed" : strerror(e));
}

/* Waits for curl to end; kills it after `seconds`. */
static void reap(child *c, double seconds)
{
    double until = sherd__clock_s() + seconds;
    pid_t got = 0;
    while (c->pid > 0 && (got = waitpid(c->pid, &c->status, WNOHANG)) != c->pid) {
        if (got < 0 && errno != EINTR) break;
        if (sherd__clock_s() >= until) {
            kill(c->pid, SIGKILL);
            while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR) {}
            break;
        }
        (void)poll(NULL, 0, 2);
    }
    c->pid = -1;
}

static void finish(child *c)
{
    reap(c, 0);
    if (c->out >= 0) close(c->out);
    if (c->complaints >= 0) close(c->complaints);
}

/* ---- transfer -------------------------------------------------------------------------------- */

/* Waits until bytes can be read, or the end of the stream. */
static int await(const child *c, const sherd__fetch *f, double stall, sherd_diag *d)
{
    for (;;) {
        double now = sherd__clock_s();
        if (sherd__cli_interrupted())
            return sherd__fail(d, SHERD_EINTERRUPTED, NULL, "interrupted");
        if (f->until > 0 && now >= f->until)
            return sherd__fail(d, SHERD_ETIMEOUT, "allow more time with --timeout",
                               "%s: --timeout expired", f->url);
        if (now >= stall)
            return sherd__fail(d, SHERD_ESILENT, NULL, "%s: received less than %g bytes in %g s",
                               f->url, SLOWEST * f->stall_s, f->stall_s);
        double left = f->until > 0 && f->until < stall ? f->until - now : stall - now;
        struct pollfd p[2] = { { .fd = c->out, .events = POLLIN },
                               { .fd = sherd__cli_interrupt_fd(), .events = POLLIN } };
        int n = poll(p, 2, (int)fmin(1e6, ceil(left * 1e3)));
        if (n > 0 && p[0].revents != 0) return 0;
        if (n < 0 && errno != EINTR)
            return sherd__fail(d, SHERD_EINTERNAL, NULL, "poll: %s", strerror(errno));
    }
}

static int receive(const child *c, const sherd__fetch *f, uint8_t *bytes, size_t *len,
                   sherd_diag *d)
{
    double stall = sherd__clock_s() + f->stall_s;
    size_t mark = 0; /* bytes received when the stall timer started */
    for (*len = 0;;) {
        int err = await(c, f, stall, d);
        if (err) return err;
        size_t room = f->size_max + 1 - *len;
        ssize_t n = read(c->out, bytes + *len, room < READ_AT_ONCE ? room : READ_AT_ONCE);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n < 0)
            return sherd__fail(d, SHERD_EINTERNAL, NULL, "reading from curl: %s", strerror(errno));
        if (n == 0) return 0;
        *len += (size_t)n;
        if (*len > f->size_max)
            return sherd__fail(d, SHERD_EFORMAT, NULL,
                               "%s: longer than the %zu bytes of the "
                               "published file",
                               f->url, f->size_max);
        if ((double)(*len - mark) >= SLOWEST * f->stall_s) {
            mark = *len;
            stall = sherd__clock_s() + f->stall_s;
        }
        if (f->progress) f->progress(f->ctx, *len);
    }
}

/* Reports curl's own message, "curl: (22) The requested URL returned error: 404", in printable
 * ASCII. */
static int failed(const child *c, const sherd__fetch *f, sherd_diag *d)
{
    char text[200] = "";
    ssize_t n = pread(c->complaints, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    for (char *p = text; *p != '\0'; p++)
        if (*p < ' ' || *p > '~') *p = '?';
    const char *words = strncmp(text, "curl: ", 6) == 0 ? text + 6 : text;
    if (*words == '(' && strchr(words, ' ')) words = strchr(words, ' ') + 1;
    if (WIFEXITED(c->status) && WEXITSTATUS(c->status) == 127)
        return sherd__fail(d, SHERD_EOPEN, "install curl, or download the files by other means",
                           "curl, which fetches files, cannot be started");
    if (WIFEXITED(c->status) && WEXITSTATUS(c->status) == 63) /* by the size in the headers */
        return sherd__fail(d, SHERD_EFORMAT, NULL,
                           "%s: longer than the %zu bytes of the published "
                           "file",
                           f->url, f->size_max);
    return sherd__fail(d, SHERD_ENET, NULL, "%s: %s", f->url,
                       *words != '\0' ? words : "curl failed");
}

int sherd__fetch_run(const sherd__fetch *f, uint8_t **bytes, size_t *len, sherd_diag *d)
{
    child c;
    uint8_t *mine = sherd__alloc(f->size_max + 1);
    size_t got = 0;
    if (!mine) return sherd__fail_memory(d, "a file of %zu bytes", f->size_max);
    int err = begin(&c, f, d);
    if (!err) err = receive(&c, f, mine, &got, d);
    if (!err) {
        reap(&c, END_SECONDS);
        if (c.status != 0) err = failed(&c, f, d);
    }
    finish(&c);
    if (err) {
        sherd__free(mine);
        return err;
    }
    *bytes = mine;
    *len = got;
    return 0;
}
