/*
 * The list is that of the program which runs the nodes: a driver is used by it alone, and node and
 * list agree on the numbers. A list of another program is not trusted.
 */
#include "scheduler/cluster/launch_devices.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "core/hooks.h"

#define LIST_MS 60000 /* for all drivers; the program gives up one that does not answer earlier */
#define LIST_BYTES ((size_t)1 << 18)

/* ---- the list -------------------------------------------------------------------------------- */

static int start(pid_t *pid, int *out, const sherd__command *c, const char *const *argv,
                 sherd_diag *d)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t all, none;
    int fds[2];
    if (pipe2(fds, O_CLOEXEC))
        return sherd__fail(d, SHERD_EIO, "raise the limit of open files (ulimit -n)",
                           "cannot make a pipe: %s", strerror(errno));
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                        POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    int e = posix_spawnp(pid, c->program, &actions, &attr, (char *const *)(uintptr_t)argv, c->env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    close(fds[1]);
    *out = fds[0];
    if (!e) return SHERD_OK;
    close(fds[0]);
    return sherd__fail(d, SHERD_EOPEN, "name the sherd command by its path", "cannot start %s: %s",
                       c->program, strerror(e));
}

/* Reads until the end of the output. */
static int read_all(int fd, char *text, size_t *len, const sherd_hooks *hooks, sherd_diag *d)
{
    const int64_t until = sherd__clock_ms() + LIST_MS;
    for (ssize_t n = 1; n != 0;) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        int err = sherd__hooks_check(hooks, "interrupted while devices are listed", d);
        if (err) return err;
        if (sherd__clock_ms() > until)
            return sherd__fail(d, SHERD_ETIMEOUT, "sherd node --list-devices",
                               "the devices of this machine are not listed within %d s",
                               LIST_MS / 1000);
        if (poll(&p, 1, 50) <= 0) continue;
        n = read(fd, text + *len, LIST_BYTES - *len);
        if (n > 0) *len += (size_t)n;
        if (*len == LIST_BYTES) break;
        if (n < 0 && errno != EINTR) break;
    }
    return SHERD_OK;
}

/* Asks the command for the devices of these nodes' backend. The caller releases *out. */
static int list(json_t **out, const sherd__command *c, const sherd__launch_options *o,
                sherd_diag *d)
{
    const char *argv[12] = { "sherd",          o->verb ? o->verb : "node",
                             "--list-devices", "--json",
                             "--backend",      c->backend };
    size_t n = 6, len = 0;
    pid_t pid;
    int fd = -1, status;
    if (o->on.opencl_library) argv[n++] = "--opencl-library", argv[n++] = o->on.opencl_library;
    if (o->on.cuda_library) argv[n++] = "--cuda-library", argv[n++] = o->on.cuda_library;
    char *text = sherd__alloc(LIST_BYTES);
    if (!text) return sherd__fail_memory(d, "a list of devices");
    int err = start(&pid, &fd, c, argv, d);
    if (!err) {
        err = read_all(fd, text, &len, &o->hooks, d);
        close(fd);
        if (err) kill(-pid, SIGKILL); /* with the processes that ask the drivers */
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    }
    *out = err ? NULL : json_loadb(text, len, 0, NULL);
    sherd__free(text);
    if (err || json_is_array(json_object_get(*out, "devices"))) return err;
    json_decref(*out);
    return sherd__fail(d, SHERD_EFRAME,
                       "check that the program that is started is this version of sherd",
                       "%s does not list the devices of this machine", c->program);
}

/* ---- choosing -------------------------------------------------------------------------------- */

typedef struct found {
    const char *backend;
    uint32_t number;
    bool processor;
} found;

static bool read_device(json_t *of, found *out)
{
    const char *backend;
    json_int_t number;
    int processor, usable;
    if (json_unpack(of, "{s:s, s:I, s:b, s:b}", "backend", &backend, "number", &number, "processor",
                    &processor, "usable", &usable) != 0 ||
        !usable || number < 0 || number > UINT32_MAX)
        return false;
    *out = (found){ backend, (uint32_t)number, processor != 0 };
    return true;
}

/* Chooses the first backend that has a device other than the processor. */
static int choose_backend(sherd__command *c, json_t *all, sherd_diag *d)
{
    found v, processor = { .backend = NULL };
    char hint[80];
    for (size_t i = 0; i < json_array_size(all); i++) {
        if (!read_device(json_array_get(all, i), &v)) continue;
        if (!v.processor) {
            snprintf(c->backend, sizeof c->backend, "%s", v.backend);
            return SHERD_OK;
        }
        if (!processor.backend) processor = v;
    }
    snprintf(hint, sizeof hint, "--backend %s computes on it",
             processor.backend ? processor.backend : "");
    if (processor.backend)
        return sherd__fail(d, SHERD_EUNSUPPORTED, hint, "no device but the processor was found");
    return sherd__fail(d, SHERD_EUNSUPPORTED,
                       "without --devices, nodes compute on the processor; sherd node "
                       "--list-devices says what each driver lacks",
                       "no device was found");
}

/* Returns whether a list of numbers has this one; NULL and "all" have every one. */
static bool names(const char *numbers, uint32_t number)
{
    if (!numbers || strcmp(numbers, "all") == 0) return true;
    for (const char *at = numbers; *at; at += strcspn(at, ","), at += *at == ',')
        if (*at >= '0' && *at <= '9' && strtoul(at, NULL, 10) == number) return true;
    return false;
}

static int take(sherd__command *c, json_t *all, const sherd__launch_options *o, sherd_diag *d)
{
    const uint64_t needed = (uint64_t)o->nodes * o->on.each;
    found v;
    for (size_t i = 0; i < json_array_size(all); i++)
        if (read_device(json_array_get(all, i), &v) && strcmp(v.backend, c->backend) == 0 &&
            names(o->on.devices, v.number) && c->pool_len < SHERD__DEVICES_MAX)
            c->pool[c->pool_len++] = v.number;
    if (c->pool_len >= needed) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL,
                       "start fewer nodes, or give each one fewer devices; sherd node "
                       "--list-devices lists them",
                       "%u node%s with %u device%s each need%s %llu, and backend %s has %u%s",
                       o->nodes, o->nodes == 1 ? "" : "s", o->on.each, o->on.each == 1 ? "" : "s",
                       o->nodes == 1 ? "s" : "", (unsigned long long)needed, c->backend,
                       c->pool_len, o->on.devices ? " of those that are named" : "");
}

int sherd__launch_devices_divide(sherd__command *c, const sherd__launch_options *o, sherd_diag *d)
{
    json_t *root = NULL;
    if (o->on.each == 0) return SHERD_OK;
    if (strcmp(c->backend, "cpu") == 0)
        return sherd__fail(d, SHERD_EINVAL, "choose another backend, or leave it out",
                           "backend cpu has no devices to choose from");
    int err = list(&root, c, o, d);
    json_t *all = json_object_get(root, "devices");
    if (!err && strcmp(c->backend, "auto") == 0) err = choose_backend(c, all, d);
    if (!err) err = take(c, all, o, d);
    json_decref(root);
    return err;
}
