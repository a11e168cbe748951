/*
 * Local nodes from posix_spawn to waitpid. All functions are synchronous and use poll: nodes are
 * started before the cluster's event loop and stopped after it, and a library must not handle
 * SIGCHLD. A node's stderr is an anonymous file in memory. The node therefore never blocks on it,
 * and its last messages are available if it fails.
 *
 * All our descriptors are close-on-exec, and the child closes all from 4 up: a node that inherited
 * the pipe of another would keep it open after our process ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "core/hooks.h"
#include "core/wipe.h"
#include "scheduler/cluster/launch_devices.h"
#include "scheduler/cluster/launch_state.h"
#include "wire/handoff.h"

static void close_fd(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* Creates a pipe and writes key and allow-list to it. The child gets *read_end; we keep the other
 * end. */
static int make_pipe(local_node *n, const sherd__fingerprint *allow, int *read_end, sherd_diag *d)
{
    sherd_identity *id = NULL;
    char text[SHERD__FINGERPRINT_TEXT], line[128];
    int ends[2] = { -1, -1 };
    sherd__handoff h = { .allow = line };
    int err = sherd_identity_new(&id, NULL);
    if (!err) err = sherd__identity_pem(id, &h.key, &h.key_len);
    if (err) {
        (void)sherd__fail(d, err, NULL, "cannot make a key for %s", n->is.peer.name);
        goto out;
    }
    n->key = *sherd__identity_fingerprint(id);
    sherd__fingerprint_text(allow, text);
    h.allow_len = (size_t)snprintf(line, sizeof line, "* key=%s role=coordinator\n", text);
    if (pipe2(ends, O_CLOEXEC)) {
        err = sherd__fail(d, SHERD_EIO, "raise the limit of open files (ulimit -n)",
                          "cannot make a pipe for %s: %s", n->is.peer.name, strerror(errno));
        goto out;
    }
    err = sherd__handoff_write(ends[1], &h, d);
    n->pipe = ends[1];
    *read_end = ends[0];
out:
    if (h.key) sherd__wipe(h.key, h.key_len);
    sherd__free(h.key);
    sherd_identity_free(id);
    return err;
}

static int open_stderr(local_node *n, const char *log_dir, sherd_diag *d)
{
    char path[4096];
    if (!log_dir) {
        n->err = memfd_create("sherd-node", MFD_CLOEXEC);
        snprintf(path, sizeof path, "memory");
    } else {
        snprintf(path, sizeof path, "%s/%s.log", log_dir, n->is.peer.name);
        n->err = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    if (n->err >= 0) return SHERD_OK;
    return sherd__fail(d, SHERD_EOPEN, "check the folder, and the limit of open files (ulimit -n)",
                       "cannot write the messages of %s to %s: %s", n->is.peer.name, path,
                       strerror(errno));
}

/* Moves a descriptor to a number that the child does not use. */
static int raise_fd(int *fd)
{
    int up = fcntl(*fd, F_DUPFD_CLOEXEC, 10);
    if (up < 0) return -1;
    close(*fd);
    *fd = up;
    return 0;
}

static int spawn_with(local_node *n, const sherd__launch_options *o, const sherd__command *c,
                      posix_spawn_file_actions_t *actions, posix_spawnattr_t *attr, sherd_diag *d)
{
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(attr, &all);
    posix_spawnattr_setsigmask(attr, &none);
    /* Ctrl-C is handled by the coordinator: it ends its nodes in order, and if it is killed they
     * end as well. */
    int group = o->log_dir ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
    posix_spawnattr_setflags(attr, (short)(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | group));
    int e = posix_spawnp(&n->is.pid, c->program, actions, attr, (char *const *)(uintptr_t)c->argv,
                         c->env);
    if (e == 0) {
        n->is.started = sherd__process_started(n->is.pid);
        return SHERD_OK;
    }
    n->is.pid = 0;
    bool full = e == ENOMEM || e == EAGAIN;
    return sherd__fail(d, full ? SHERD_EFEWNODES : SHERD_EOPEN,
                       full ? "start fewer nodes" : "name the sherd command by its path",
                       "cannot start %s as %s: %s", c->program, n->is.peer.name, strerror(e));
}

static int spawn(local_node *n, const sherd__launch_options *o, const sherd__command *c,
                 int pipe_end, int out_end, sherd_diag *d)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    int e = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!e) e = posix_spawn_file_actions_adddup2(&actions, out_end, 1);
    if (!e) e = posix_spawn_file_actions_adddup2(&actions, n->err, 2);
    if (!e) e = posix_spawn_file_actions_adddup2(&actions, pipe_end, SHERD__CHILD_PIPE);
    if (!e) e = posix_spawn_file_actions_addclosefrom_np(&actions, SHERD__CHILD_PIPE + 1);
    int err = e ? sherd__fail(d, SHERD_ENOMEM, NULL, "cannot start %s: %s", n->is.peer.name,
                              strerror(e))
                : spawn_with(n, o, c, &actions, &attr, d);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    return err;
}

static int start_one(local_node *n, const sherd__launch_options *o, const sherd__command *c,
                     sherd_diag *d)
{
    int pipe_end = -1, out[2] = { -1, -1 };
    int err = make_pipe(n, &o->allow, &pipe_end, d);
    if (!err) err = open_stderr(n, o->log_dir, d);
    if (!err &&
        (pipe2(out, O_CLOEXEC) || raise_fd(&pipe_end) || raise_fd(&out[1]) || raise_fd(&n->err)))
        err = sherd__fail(d, SHERD_EIO, "raise the limit of open files (ulimit -n)",
                          "cannot start %s: %s", n->is.peer.name, strerror(errno));
    n->out = out[0];
    if (!err) err = spawn(n, o, c, pipe_end, out[1], d);
    close_fd(&pipe_end);
    close_fd(&out[1]);
    return err;
}

/* --- public functions ------------------------------------------------------------------------ */

int sherd__launch_start(sherd__launch **out, const sherd__launch_options *o, sherd_diag *d)
{
    sherd__command c = { .env = NULL };
    *out = NULL;
    if (o->nodes == 0)
        return sherd__fail(d, SHERD_EINVAL, "start at least one", "0 local nodes were requested");
    int err = sherd__command_allowed(d);
    if (err) return err;
    sherd__launch *l = sherd__calloc(1, sizeof *l + o->nodes * sizeof *l->nodes);
    err = l ? sherd__command_make(&c, o) : SHERD_ENOMEM;
    if (err) err = sherd__fail_memory(d, "starting %u nodes", o->nodes);
    if (!err) err = sherd__launch_devices_divide(&c, o, d);
    for (uint32_t i = 0; !err && i < o->nodes; i++) {
        local_node *n = &l->nodes[l->len++];
        n->pipe = n->out = n->err = -1;
        snprintf(n->is.peer.name, sizeof n->is.peer.name, "node-%u", i + 1);
        sherd__command_for(&c, i, n->is.peer.name);
        err = sherd__hooks_check(&o->hooks, "interrupted while local nodes start", d);
        if (!err) err = start_one(n, o, &c, d);
    }
    if (!err) err = sherd__local_wait(l, o, d);
    sherd__free(c.env);
    if (err) {
        sherd__launch_stop(l, 1);
        return err;
    }
    for (uint32_t i = 0; i < l->len; i++)
        if (o->log_dir) close_fd(&l->nodes[i].out);
    *out = l;
    return SHERD_OK;
}

uint32_t sherd__launch_len(const sherd__launch *l)
{
    return l->len;
}

const sherd__launched *sherd__launch_node(const sherd__launch *l, uint32_t i)
{
    return &l->nodes[i].is;
}

int sherd__launch_check(sherd__launch *l, uint32_t i, sherd_diag *d)
{
    local_node *n = &l->nodes[i];
    int status = 0;
    if (n->is.pid && !sherd__local_reap(n, false, &status)) return SHERD_OK;
    return sherd__local_ended(n, SHERD_ECLOSED, status, d);
}

static void free_launch(sherd__launch *l)
{
    for (uint32_t i = 0; i < l->len; i++) {
        close_fd(&l->nodes[i].pipe);
        close_fd(&l->nodes[i].out);
        close_fd(&l->nodes[i].err);
    }
    sherd__free(l);
}

static uint32_t reap_all(sherd__launch *l, bool wait)
{
    uint32_t left = 0;
    int status;
    for (uint32_t i = 0; i < l->len; i++) left += !sherd__local_reap(&l->nodes[i], wait, &status);
    return left;
}

/* A stopped process does not end without a signal, however long we wait. */
static void kill_stopped(const sherd__launch *l)
{
    for (uint32_t i = 0; i < l->len; i++)
        if (sherd__local_stopped(&l->nodes[i])) kill(l->nodes[i].is.pid, SIGKILL);
}

void sherd__launch_stop(sherd__launch *l, uint32_t grace_ms)
{
    if (!l) return;
    int64_t deadline = sherd__clock_ms() + (grace_ms ? grace_ms : 3000);
    for (uint32_t i = 0; i < l->len; i++) close_fd(&l->nodes[i].pipe);
    for (long wait_ns = 500000; reap_all(l, false) && sherd__clock_ms() < deadline;) {
        struct timespec pause = { .tv_nsec = wait_ns };
        kill_stopped(l);
        nanosleep(&pause, NULL);
        if (wait_ns < 20000000) wait_ns *= 2;
    }
    for (uint32_t i = 0; i < l->len; i++)
        if (l->nodes[i].is.pid) kill(l->nodes[i].is.pid, SIGKILL);
    (void)reap_all(l, true);
    free_launch(l);
}

void sherd__launch_release(sherd__launch *l)
{
    if (!l) return;
    for (uint32_t i = 0; i < l->len; i++) /* fails only if the node has ended */
        if (l->nodes[i].pipe >= 0 && write(l->nodes[i].pipe, "stay\n", 5) < 0) continue;
    free_launch(l);
}

uint64_t sherd__process_started(pid_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    size_t len = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[len] = '\0';
    char *p = strrchr(text, ')'); /* the name before it may contain any character */
    if (p && p[1] == ' ' && (p[2] == 'Z' || p[2] == 'X')) return 0; /* has ended, not reaped */
    for (int field = 2; p && field < 22; field++) p = strchr(p + 1, ' ');
    return p ? strtoull(p + 1, NULL, 10) : 0;
}
