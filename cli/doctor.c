/*
 * `sherd doctor`: checks whether this machine can run nodes and a coordinator. Each check prints
 * one line with what it found and, if that is a problem, how to solve it. A failed check sets the
 * exit code; a warning does not.
 *
 * The kernels that OpenBLAS would choose by default are found by running a second process of this
 * command without OPENBLAS_CORETYPE: the library reads that variable before main begins.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/environment.h"
#include "cli/node_devices.h"
#include "cli/options.h"
#include "cli/process.h"
#include "core/alloc.h"
#include "sherd/machine.h"
#include "sherd/version.h"

typedef enum level { GOOD, WARNING, FAILED } level;
static const char *const level_names[] = { "ok", "warning", "failed" };

typedef struct checkup {
    sherd__cli *cli;
    sherd_machine machine;
    json_t *checks; /* array, with --json */
    int err;        /* of the first failed check */
    int failed;
} checkup;

/* hint may be NULL. err: the exit code's error if the check failed. */
static void report_check(checkup *c, level l, int err, const char *name, const char *hint,
                         const char *fmt, ...) __attribute__((format(printf, 6, 7)));
static void report_check(checkup *c, level l, int err, const char *name, const char *hint,
                         const char *fmt, ...)
{
    char text[320];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (l == FAILED && c->failed++ == 0) c->err = err;
    if (c->checks) {
        json_array_append_new(c->checks, json_pack("{s:s, s:s, s:s, s:s*}", "name", name, "level",
                                                   level_names[l], "found", text, "hint", hint));
        return;
    }
    if (l == GOOD && c->cli->quiet) return;
    sherd__cli_print_prose(22, "%-8s %-12s %s",
                           l == GOOD      ? "ok"
                           : l == WARNING ? "WARNING"
                                          : "FAILED",
                           name, text);
    if (hint) sherd__cli_print_prose(27, "%21s try: %s", "", hint);
}

/* ---- libraries and BLAS ---------------------------------------------------------------------- */

static void check_versions(checkup *c)
{
    char text[64], all[256] = "";
    size_t at = 0;
    for (size_t i = 0; sherd_library_name(i) && at < sizeof all; i++) {
        sherd_library_version(i, text, sizeof text);
        at += (size_t)snprintf(all + at, sizeof all - at, "%s%s %s", i > 0 ? ", " : "",
                               sherd_library_name(i), text);
    }
    report_check(c, GOOD, 0, "versions", NULL, "sherd %s; %s", sherd_version(), all);
}

/* Returns environ without `name`. The caller frees the array, but not the strings. */
static char **environment_without(const char *name)
{
    size_t n = 0, len = 0, name_len = strlen(name);
    while (environ[n]) n++;
    char **env = sherd__calloc(n + 1, sizeof *env);
    for (size_t i = 0; i < n && env; i++)
        if (strncmp(environ[i], name, name_len) != 0 || environ[i][name_len] != '=')
            env[len++] = environ[i];
    return env;
}

/* Returns the kernels that OpenBLAS chooses by default; false if they cannot be found. */
static bool natural_core(char out[64])
{
    static char self[] = SHERD__SELF, verb[] = "doctor", option[] = "--blas-core";
    char *argv[] = { self, verb, option, NULL };
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) return false;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
    char **env = environment_without("OPENBLAS_CORETYPE");
    pid_t pid = -1;
    bool started = env && posix_spawn(&pid, self, &actions, NULL, argv, env) == 0;
    posix_spawn_file_actions_destroy(&actions);
    sherd__free(env);
    close(fds[1]);
    ssize_t n = started ? read(fds[0], out, 63) : -1;
    close(fds[0]);
    if (started) waitpid(pid, NULL, 0);
    if (n <= 1) return false;
    out[n] = '\0';
    out[strcspn(out, "\n")] = '\0';
    return true;
}

static void check_blas(checkup *c)
{
    const char *forced = getenv("OPENBLAS_CORETYPE"), *core = c->machine.blas_core;
    char natural[64];
    if (!forced || *forced == '\0')
        report_check(c, GOOD, 0, "blas", NULL, "OpenBLAS uses its %s kernels", core);
    else if (!natural_core(natural))
        report_check(c, WARNING, 0, "blas", NULL, "OPENBLAS_CORETYPE=%s forces the %s kernels",
                     forced, core);
    else if (strcmp(natural, core) != 0)
        report_check(c, WARNING, 0, "blas", "unset OPENBLAS_CORETYPE, unless this is a measurement",
                     "OPENBLAS_CORETYPE=%s forces the %s kernels; this processor would get %s",
                     forced, core, natural);
    else
        report_check(c, GOOD, 0, "blas", NULL,
                     "OpenBLAS uses its %s kernels (OPENBLAS_CORETYPE=%s changes nothing)", core,
                     forced);
}

/* ---- the machine ----------------------------------------------------------------------------- */

static void check_cores(checkup *c)
{
    const sherd_machine *m = &c->machine;
    if (m->cores_limited)
        report_check(c, WARNING, 0, "cores", "give --threads, or raise the container's limit",
                     "%u of %u usable: limited by the control group", m->cores, m->cores_online);
    else report_check(c, GOOD, 0, "cores", NULL, "%u of %u usable", m->cores, m->cores_online);
}

static void check_memory(checkup *c)
{
    char a[24], b[24], limit[24];
    const sherd_machine *m = &c->machine;
    bool low = m->memory_available < 512u * 1000 * 1000;
    report_check(c, low ? WARNING : GOOD, 0, "memory",
                 low ? "sherd demo needs about 2 GB; limit other runs with --memory" : NULL,
                 "%s of %s available%s%s", sherd__cli_bytes(m->memory_available, a),
                 sherd__cli_bytes(m->memory, b), m->memory_limit ? ", control group limit " : "",
                 m->memory_limit ? sherd__cli_bytes(m->memory_limit, limit) : "");
}

static void check_files(checkup *c)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) != 0) return;
    bool low = l.rlim_max != RLIM_INFINITY && l.rlim_max < 1024;
    report_check(c, low ? WARNING : GOOD, 0, "files",
                 low ? "raise the hard limit (ulimit -Hn) for clusters of more than 100 nodes"
                     : NULL,
                 "%llu open files allowed, %llu at most", (unsigned long long)l.rlim_cur,
                 (unsigned long long)l.rlim_max);
}

/* Binds, listens and connects; returns 0 or errno, with the failed step in *what. */
static int loopback(const char **what, int *port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t len = sizeof at;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), err = 0;
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *what = "make a socket";
    if (server < 0 || client < 0) err = errno;
    if (!err && (*what = "bind a port", bind(server, (struct sockaddr *)&at, len)) != 0)
        err = errno;
    if (!err && listen(server, 1) != 0) err = errno;
    if (!err && getsockname(server, (struct sockaddr *)&at, &len) != 0) err = errno;
    if (!err && (*what = "connect", connect(client, (struct sockaddr *)&at, len)) != 0) err = errno;
    *port = ntohs(at.sin_port);
    if (server >= 0) close(server);
    if (client >= 0) close(client);
    return err;
}

static void check_loopback(checkup *c)
{
    const char *what;
    int port, err = loopback(&what, &port);
    if (err)
        report_check(c, FAILED, SHERD_ENET, "loopback",
                     "bring the loopback interface up: ip link set lo up",
                     "cannot %s on 127.0.0.1: %s", what, strerror(err));
    else report_check(c, GOOD, 0, "loopback", NULL, "bound and reached 127.0.0.1:%d", port);
}

static void check_space(checkup *c, const char *name, const char *dir, bool needed)
{
    struct statvfs s;
    char a[24];
    if (statvfs(dir, &s) != 0 || access(dir, W_OK | X_OK) != 0) {
        report_check(c, needed ? FAILED : WARNING, SHERD_EOPEN, name, "name another folder",
                     "%s cannot be written: %s", dir, strerror(errno));
        return;
    }
    uint64_t room = (uint64_t)s.f_bavail * s.f_frsize;
    bool low = room < 100u * 1000 * 1000;
    report_check(c, low ? WARNING : GOOD, 0, name, low ? "free disk space" : NULL, "%s: %s free",
                 dir, sherd__cli_bytes(room, a));
}

/* Opens, tests and measures every device with a driver, each at small sizes. */
static void check_gpus(checkup *c)
{
    char line[640];
    sherd_devices *v;
    const sherd_device *x;
    const sherd_diag *why;
    sherd_diag d = { .code = 0 };
    const sherd_node_options o = { .size = sizeof o, .program = SHERD__SELF, .quick_test = true };
    if (sherd_devices_find(&v, &o, true, &d)) {
        report_check(c, WARNING, 0, "gpu", NULL, "%s", d.message);
        return;
    }
    for (size_t i = 0; (x = sherd_devices_at(v, i)); i++)
        report_check(c, x->usable ? GOOD : WARNING, 0, "gpu", NULL, "%s",
                     sherd__device_line(x, line, sizeof line));
    for (size_t i = 0; (why = sherd_devices_fault_at(v, i)); i++)
        if (why->code == SHERD_EUNSUPPORTED)
            report_check(c, GOOD, 0, "gpu", NULL, "%s%s",
                         sherd_devices_count(v) ? "" : "none: ", why->message);
        else
            report_check(c, WARNING, 0, "gpu", why->hint[0] ? why->hint : NULL, "%s", why->message);
    sherd_devices_free(v);
}

/* ---- configuration --------------------------------------------------------------------------- */

static void check_environment(checkup *c)
{
    int strange = 0;
    char why[240];
    for (char **e = environ; *e; e++) {
        if (!sherd__env_unread(*e, why)) continue;
        strange++;
        report_check(c, WARNING, 0, "environment", "unset it", "%s", why);
    }
    if (strange == 0)
        report_check(c, GOOD, 0, "environment", NULL, "every SHERD_ variable sets an option");
}

static int run_doctor(sherd__cli *cli, sherd_diag *d)
{
    checkup c = { .cli = cli, .machine = { .size = sizeof c.machine } };
    int err = sherd_machine_get(&c.machine, d);
    if (err) return err;
    if (sherd__opt_flag(cli, "blas-core")) {
        puts(c.machine.blas_core);
        return 0;
    }
    if (cli->json && !(c.checks = json_array())) return sherd__fail_memory(d, "the checks");
    const char *tmp = getenv("TMPDIR"), *runtime = getenv("XDG_RUNTIME_DIR");
    check_versions(&c);
    check_blas(&c);
    check_cores(&c);
    check_memory(&c);
    check_files(&c);
    check_loopback(&c);
    check_space(&c, "temporary", tmp && *tmp != '\0' ? tmp : "/tmp", true);
    if (runtime && *runtime != '\0') check_space(&c, "runtime", runtime, false);
    check_space(&c, "here", ".", false);
    check_gpus(&c);
    check_environment(&c);
    if (c.failed > 0)
        err = sherd__fail(d, c.err, NULL, "%d check%s failed", c.failed, c.failed == 1 ? "" : "s");
    if (!c.checks) return err;
    json_t *obj = sherd__cli_json_new(cli);
    json_object_set_new(obj, "checks", c.checks);
    return err ? sherd__cli_json_fail(cli, obj, err, d) : sherd__cli_json_end(cli, obj, d);
}

static const sherd__example examples[] = {
    { "sherd doctor", "checks this machine" },
    { "sherd doctor --json", "the same as JSON" },
    { "sherd doctor -q && sherd demo", "prints only problems; runs the demo if no check failed" },
    { 0 },
};

/* clang-format off */
static const sherd__option options[] = {
    { .name = "blas-core", .type = SHERD__FLAG, .flags = SHERD__OPT_ONLY_ARGV | SHERD__OPT_HIDDEN,
      .help = "print only the name of the BLAS core" },
    { 0 },
};
/* clang-format on */

const sherd__verb sherd__verb_doctor = {
    .name = "doctor",
    .summary = "check this machine: BLAS, cores, GPUs, memory, ports, disk space, versions",
    .examples = examples,
    .options = options,
    .run = run_doctor,
};
