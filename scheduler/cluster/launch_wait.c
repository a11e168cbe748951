/*
 * Waits for local nodes to listen: for the line that each prints, or the end of its stderr. Nodes
 * that are stopped or killed are lost, and the work begins without them if enough others listen.
 * The work also begins without a node that is only late, but only if the user allowed nodes to be
 * missing, because on a loaded machine all nodes are late. If a node exits by itself, starting
 * fails, because continuing would hide an error.
 *
 * The program's output is not trusted: it may not be that of sherd.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/diag.h"
#include "core/hooks.h"
#include "scheduler/cluster/launch_state.h"
#include "scheduler/cluster/wait_policy.h"

#define TICK_MS 100
#define DRIVERS_MS 240000 /* to examine the devices in a process of its own, and to open them */

/* --- how a node ends ------------------------------------------------------------------------- */

/* Copies the end of what a node wrote to stderr, as one line. */
static void last_words(const local_node *n, char out[280])
{
    off_t len = n->err >= 0 ? lseek(n->err, 0, SEEK_END) : 0;
    off_t from = len > 270 ? len - 270 : 0;
    ssize_t got = len > 0 ? pread(n->err, out, (size_t)(len - from), from) : 0;
    if (got < 0) got = 0;
    while (got > 0 && (out[got - 1] == '\n' || out[got - 1] == ' ')) got--;
    out[got] = '\0';
    for (char *p = out; *p; p++)
        if (*p == '\n') *p = ';';
}

static void how_ended(int status, char *out, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(out, size, "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else snprintf(out, size, "exit status %d", WEXITSTATUS(status));
}

bool sherd__local_reap(local_node *n, bool wait, int *status)
{
    pid_t got;
    if (n->is.pid == 0) return true;
    *status = 0;
    do got = waitpid(n->is.pid, status, wait ? 0 : WNOHANG);
    while (got < 0 && errno == EINTR);
    if (got == 0) return false;
    n->is.pid = 0; /* also if another function has already waited for it */
    return true;
}

bool sherd__local_stopped(const local_node *n)
{
    siginfo_t is = { .si_pid = 0 };
    return n->is.pid && waitid(P_PID, (id_t)n->is.pid, &is, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
           is.si_pid;
}

bool sherd__launch_stopped(sherd__launch *l, uint32_t i)
{
    local_node *n = &l->nodes[i];
    int64_t now = sherd__clock_ms();
    if (!sherd__local_stopped(n)) n->stopped_ms = 0;
    else if (n->stopped_ms == 0) n->stopped_ms = now;
    return n->stopped_ms && now - n->stopped_ms >= SHERD__STOPPED_MS;
}

int sherd__local_ended(local_node *n, int code, int status, sherd_diag *d)
{
    char how[80], words[280];
    how_ended(status, how, sizeof how);
    last_words(n, words);
    return sherd__fail(d, code, "start one by hand to see more: sherd node --listen 127.0.0.1:0 -v",
                       "%s ended: %s%s%s", n->is.peer.name, how,
                       words[0] ? "; its last message: " : "", words);
}

/* --- its line -------------------------------------------------------------------------------- */

#define NOT_SHERD "check that the program that is started is this version of sherd"

static int take_line(local_node *n, sherd_diag *d)
{
    sherd__peer p;
    bool found = false;
    int err = sherd__peer_parse(&p, &found, n->line, n->is.peer.name, d);
    if (err) return err;
    if (!found || !p.has_key || p.port == 0)
        return sherd__fail(d, SHERD_EFRAME, NOT_SHERD,
                           "%s printed \"%.100s\", expected its line of a node file",
                           n->is.peer.name, n->line);
    if (!sherd__fingerprint_equal(&p.key, &n->key))
        return sherd__fail(d, SHERD_EAUTH, NOT_SHERD, "%s listens with a key other than its own",
                           n->is.peer.name);
    n->is.peer = p;
    n->up = true;
    return SHERD_OK;
}

/* --- waiting --------------------------------------------------------------------------------- */

typedef struct waiting {
    sherd__launch *l;
    const sherd__launch_options *o;
    int64_t began, deadline;
    int64_t end;  /* of the caller's time limit; INT64_MAX: none */
    bool hurried; /* all missing nodes may be missing */
    uint32_t up, lost;
    const local_node *first; /* the first one that is lost */
} waiting;

static bool awaited(const local_node *n)
{
    return !n->up && !n->is.absent[0];
}

/* Gives up a node: the work begins without it. */
__attribute__((format(printf, 3, 4))) static void give_up(waiting *w, local_node *n,
                                                          const char *fmt, ...)
{
    int status;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(n->is.absent, sizeof n->is.absent, fmt, ap);
    va_end(ap);
    n->is.peer.key = n->key; /* the only key that is accepted at any port */
    n->is.peer.has_key = true;
    n->is.peer.weight = 1;
    snprintf(n->is.peer.host, sizeof n->is.peer.host, "127.0.0.1");
    if (n->is.pid) kill(n->is.pid, SIGKILL);
    (void)sherd__local_reap(n, true, &status);
    if (w->lost++ == 0) w->first = n;
}

static bool uses_drivers(const sherd__launch_options *o)
{
    return o->on.backend ? strcmp(o->on.backend, "cpu") != 0 : o->on.devices || o->on.each;
}

#define ENDING_MS 5000 /* from the end of a process's stdout to its own end */

/* Waits until a process whose stdout has ended is gone. Returns false if it continues to run. */
static bool is_gone(local_node *n, int64_t end, int *status)
{
    int64_t until = sherd__clock_ms() + ENDING_MS;
    if (until > end) until = end;
    while (!sherd__local_reap(n, false, status)) {
        if (sherd__clock_ms() > until) return false;
        (void)poll(NULL, 0, 1);
    }
    return true;
}

/* Handles the end of a node's stdout. A sherd process ends at the same time. It may refuse devices
 * that the caller asked for. */
static int over(waiting *w, local_node *n, sherd_diag *d)
{
    char how[80], words[280];
    int status = 0;
    if (!is_gone(n, w->end, &status))
        return sherd__fail(d, SHERD_EFRAME, NOT_SHERD,
                           "%s closed its standard output without its line of a node file",
                           n->is.peer.name);
    if (!WIFSIGNALED(status)) {
        const bool refused = uses_drivers(w->o) &&
                             WEXITSTATUS(status) == sherd_err_exit(SHERD_EINVAL);
        return sherd__local_ended(n, refused ? SHERD_EINVAL : SHERD_EFEWNODES, status, d);
    }
    how_ended(status, how, sizeof how);
    last_words(n, words);
    give_up(w, n, "it was %s before it listened%s%s", how, words[0] ? "; its last message: " : "",
            words);
    return SHERD_OK;
}

/* Reads a node's stdout, or its end. */
static int hear(waiting *w, local_node *n, sherd_diag *d)
{
    ssize_t got = read(n->out, n->line + n->line_len, sizeof n->line - 1 - n->line_len);
    if (got < 0) return errno == EINTR || errno == EAGAIN ? SHERD_OK : SHERD_EIO;
    if (got == 0) return over(w, n, d);
    n->line_len += (size_t)got;
    n->line[n->line_len] = '\0';
    char *end = strchr(n->line, '\n');
    if (end) {
        *end = '\0';
        int err = take_line(n, d);
        w->up += n->up;
        return err;
    }
    if (n->line_len < sizeof n->line - 1) return SHERD_OK;
    return sherd__fail(d, SHERD_EFRAME, NOT_SHERD,
                       "%s printed %zu bytes without a newline, expected its line of a node file",
                       n->is.peer.name, n->line_len);
}

static void look_for_stopped(waiting *w)
{
    for (uint32_t i = 0; i < w->l->len; i++) {
        local_node *n = &w->l->nodes[i];
        if (awaited(n) && sherd__launch_stopped(w->l, i))
            give_up(w, n, "its process, %ld, was stopped before it listened", (long)n->is.pid);
    }
}

/* Shortens the deadline: as many nodes listen as the work needs. */
static void hurry(waiting *w, int64_t now)
{
    int64_t until = sherd__wait_policy_until(w->began, now, w->end);
    if (until < w->deadline) w->deadline = until;
}

/* Returns how long the process has waited for a processor so far, which is not its fault. */
static int64_t starved_ms(const local_node *n)
{
    sherd__cpu_times t;
    (void)sherd__cpu_times_of(n->is.pid, &t);
    return (int64_t)(t.waited / 1000000);
}

/* Returns true if the time for the missing nodes is over. Waiting for a processor extends the
 * deadline, but neither the caller's own limit nor the time granted to spare nodes. */
static bool is_over(const waiting *w, int64_t now)
{
    int64_t most = 0;
    if (now <= w->deadline) return false;
    for (uint32_t i = 0; i < w->l->len && !w->hurried; i++) {
        int64_t starved = awaited(&w->l->nodes[i]) ? starved_ms(&w->l->nodes[i]) : 0;
        if (starved > most) most = starved;
    }
    return now > sherd__wait_policy_starved(w->began, w->deadline, most, w->end);
}

static int late(waiting *w, int64_t now, sherd_diag *d)
{
    const sherd__launch *l = w->l;
    const local_node *first = NULL;
    char words[280];
    for (uint32_t i = 0; i < l->len && !first; i++)
        if (awaited(&l->nodes[i])) first = &l->nodes[i];
    last_words(first, words);
    return sherd__fail(d, SHERD_ETIMEOUT,
                       now > w->end ? "allow more time with --timeout"
                                    : "start fewer nodes, or give this machine more time",
                       "%u of %u local nodes do not listen after %.3g s, %s among them%s%s",
                       l->len - w->up, l->len, (double)(now - w->began) / 1e3, first->is.peer.name,
                       words[0] ? "; its last message: " : "", words);
}

/* Checks whether enough nodes are left; otherwise reports the lost ones. */
static int judge(const waiting *w, sherd_diag *d)
{
    uint32_t least = w->o->least ? w->o->least : w->l->len;
    if (w->lost == 0 || w->l->len - w->lost >= least) return SHERD_OK;
    return sherd__fail(d, SHERD_EFEWNODES, "find out what stops or kills it, and start again",
                       "%u of %u local nodes are up, and %u are needed; %s: %s", w->up, w->l->len,
                       least, w->first->is.peer.name, w->first->is.absent);
}

/* Checks all nodes once. */
static int look(waiting *w, struct pollfd *fds, sherd_diag *d)
{
    sherd__launch *l = w->l;
    for (uint32_t i = 0; i < l->len; i++)
        fds[i] = (struct pollfd){ .fd = awaited(&l->nodes[i]) ? l->nodes[i].out : -1,
                                  .events = POLLIN };
    if (poll(fds, l->len, TICK_MS) < 0 && errno != EINTR)
        return sherd__fail(d, SHERD_EIO, NULL, "cannot wait for local nodes: %s", strerror(errno));
    for (uint32_t i = 0; i < l->len; i++) {
        if (fds[i].fd < 0 || !fds[i].revents) continue;
        int err = hear(w, &l->nodes[i], d);
        if (err) return err;
    }
    look_for_stopped(w);
    return judge(w, d);
}

int sherd__local_wait(sherd__launch *l, const sherd__launch_options *o, sherd_diag *d)
{
    waiting w = { .l = l, .o = o, .began = sherd__clock_ms() };
    uint32_t allowed = o->deadline_ms ? o->deadline_ms
                                      : 10000 + 100 * o->nodes + (uses_drivers(o) ? DRIVERS_MS : 0);
    uint32_t enough = o->spare < l->len ? l->len - o->spare : 1;
    w.end = o->timeout_ms ? w.began + o->timeout_ms : INT64_MAX;
    w.deadline = w.began + allowed < w.end ? w.began + allowed : w.end;
    struct pollfd *fds = sherd__calloc(l->len, sizeof *fds);
    int err = fds ? SHERD_OK : sherd__fail_memory(d, "starting nodes");
    while (!err && w.up + w.lost < l->len) {
        int64_t now = sherd__clock_ms();
        err = sherd__hooks_check(&o->hooks, "interrupted while local nodes start", d);
        if (!err && is_over(&w, now)) {
            if (w.up < enough) err = late(&w, now, d);
            for (uint32_t i = 0; !err && i < l->len; i++)
                if (awaited(&l->nodes[i]))
                    give_up(&w, &l->nodes[i], "it did not listen within %.3g s",
                            (double)(now - w.began) / 1e3);
        }
        if (!err) err = look(&w, fds, d);
        if (!w.hurried && w.up >= enough) hurry(&w, sherd__clock_ms());
        w.hurried = w.up >= enough;
    }
    sherd__free(fds);
    return err;
}
