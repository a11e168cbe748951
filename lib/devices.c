/*
 * The devices of this machine. A driver may abort or hang, so it is first used by another process:
 * the sherd command, which lists devices, opens those that are asked for, and writes what it found
 * to a pipe as one `report`. Both processes are the same program, which the report's first members
 * confirm.
 *
 * "auto" looks for device files first. On a machine without a GPU, nothing is started or loaded.
 */
#include "lib/devices.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "core/field.h"
#include "core/hooks.h"
#include "core/options.h"
#include "scheduler/cluster/launch_command.h"
#include "sherd/version.h"
#include "store/file.h"

#define LIST_S 20.0    /* within which a driver must list its devices */
#define OPEN_S 120.0   /* ... and compile kernels, and pass the self-test */
#define SEVERAL_S 20.0 /* after which devices are measured at small sizes only */

extern char **environ;

/* A backend, and with a driver the option of its library: of the command, and its place in
 * sherd_node_options. */
typedef struct entry {
    const sherd__backend *of;
    const char *option;
    size_t library;
} entry;

/* In the order in which "auto" tries them. */
static const entry backends[] = {
    { &sherd__backend_cpu, NULL, 0 },
    { &sherd__backend_cuda, "--cuda-library", offsetof(sherd_node_options, cuda_library) },
    { &sherd__backend_opencl, "--opencl-library", offsetof(sherd_node_options, opencl_library) },
};
#define BACKENDS (sizeof backends / sizeof *backends)

const sherd__backend *sherd__backend_at(size_t i)
{
    return i < BACKENDS ? backends[i].of : NULL;
}

const char *sherd_backend_name(size_t i)
{
    return i < BACKENDS ? backends[i].of->name : NULL;
}

/* Returns the library that the options name for a backend, or NULL. */
static const char *library_of(const entry *b, const sherd_node_options *o)
{
    const char *file = NULL;
    if (b->option) memcpy(&file, (const char *)o + b->library, sizeof file);
    return file;
}

static bool names_libraries(const sherd_node_options *o)
{
    bool any = false;
    for (size_t i = 0; i < BACKENDS; i++) any |= library_of(&backends[i], o) != NULL;
    return any;
}

/* Returns whether "auto" tries a backend: one with a driver and, where the options name libraries,
 * one of those. */
static bool is_tried(const entry *b, const sherd_node_options *o)
{
    return b->of->list && (!names_libraries(o) || library_of(b, o));
}

/* What the other process found. */
typedef struct report {
    char version[32];
    uint32_t size; /* of this struct */
    uint32_t count;
    int32_t chosen; /* with "first": the number of the device that was opened; -1: none */
    int32_t err;
    sherd_diag fault; /* with err, or why no device before the chosen one can be used */
    sherd_device list[SHERD__DEVICES_MAX];
    sherd__device_rates rates[SHERD__DEVICES_MAX];
} report;

/* ---- options --------------------------------------------------------------------------------- */

static int read_number(const char **at, uint32_t *out)
{
    char *end;
    if (**at < '0' || **at > '9') return SHERD_EINVAL;
    const unsigned long n = strtoul(*at, &end, 10);
    if (n > UINT32_MAX || (*end && (*end != ',' || !end[1]))) return SHERD_EINVAL;
    *at = *end ? end + 1 : end;
    *out = (uint32_t)n;
    return SHERD_OK;
}

static bool names(const sherd__backend_options *how, uint32_t number)
{
    for (uint32_t i = 0; i < how->devices_len; i++)
        if (how->devices[i] == number) return true;
    return false;
}

/* Parses "all", "0" or "0,2". */
static int parse_devices(const char *text, sherd__backend_options *how, sherd_diag *d)
{
    uint32_t n = 0;
    int err = SHERD_OK;
    if (!text) return SHERD_OK;
    how->all_devices = strcmp(text, "all") == 0;
    if (how->all_devices) return SHERD_OK;
    for (const char *at = text; !err && (*at || at == text);) {
        err = read_number(&at, &n);
        if (!err && (how->devices_len == SHERD__DEVICES_MAX || names(how, n))) err = SHERD_EINVAL;
        if (!err) how->devices[how->devices_len++] = n;
    }
    return err ? sherd__fail(d, err, "as 0, 0,1 or all",
                             "devices: expected up to %u different numbers, found '%.60s'",
                             SHERD__DEVICES_MAX, text)
               : SHERD_OK;
}

static int read_options(sherd__backend_options *how, const sherd_node_options *o, sherd_diag *d)
{
    *how = (sherd__backend_options){ .threads = o->threads,
                                     .quick = o->quick_test,
                                     .device_memory = o->device_memory,
                                     .device_nodes = o->device_nodes,
                                     .timeout_s = o->device_timeout_s };
    return parse_devices(o->devices, how, d);
}

static int find_backend(const entry **out, const char *name, sherd_diag *d)
{
    for (size_t i = 0; i < BACKENDS; i++)
        if (strcmp(backends[i].of->name, name) == 0) {
            *out = &backends[i];
            return SHERD_OK;
        }
    return sherd__fail(d, SHERD_EUNSUPPORTED, "sherd_backend_name lists them; auto chooses",
                       "there is no backend \"%.40s\"", name);
}

/* ---- in the other process -------------------------------------------------------------------- */

static void fill(sherd_device *out, const sherd__backend *b, uint32_t number,
                 const sherd__device_info *i)
{
    *out = (sherd_device){ .number = number,
                           .memory = i->memory,
                           .processor = i->processor,
                           .usable = i->unusable[0] == '\0' };
    snprintf(out->backend, sizeof out->backend, "%s", b->name);
    memcpy(out->model, i->model, sizeof out->model);
    memcpy(out->driver, i->driver, sizeof out->driver);
    memcpy(out->why, i->unusable, sizeof out->why);
}

/* Opens device `number` alone, and sets its rates. */
static int measure(const sherd__backend *b, sherd__backend_options how, sherd_device *out,
                   sherd_diag *d)
{
    void *ctx = NULL;
    uint32_t count;
    how.all_devices = false;
    how.devices_len = 1;
    how.devices[0] = out->number;
    int err = b->open(&ctx, &how, d);
    if (err) {
        out->usable = false;
        snprintf(out->why, sizeof out->why, "%.199s", d->message);
        return err;
    }
    const sherd__device *v = b->devices(ctx, &count);
    out->gflops = v->gflops;
    out->residue_gflops = v->residue_gflops;
    out->byte_gops = v->byte_gops;
    memcpy(out->library, v->library, sizeof out->library);
    out->resident_gflops = v->resident_gflops;
    out->resident_residue_gflops = v->resident_residue_gflops;
    out->resident_byte_gops = v->resident_byte_gops;
    b->close(ctx);
    return SHERD_OK;
}

/* Opens the first device that is not a processor, that is usable and that passes its self-test.
 * Sets *d to why the first of those before it is not chosen, also where one is chosen. Returns 0
 * and chooses none if all are processors. */
static int open_first(const sherd__backend *b, const sherd__backend_options *how, report *r,
                      sherd_diag *d)
{
    int first = SHERD_OK;
    for (uint32_t i = 0; i < r->count; i++) {
        sherd_device *v = &r->list[i];
        sherd_diag mine = { .code = 0 };
        if (v->processor) continue;
        int err = v->usable ? measure(b, *how, v, &mine)
                            : sherd__fail(&mine, SHERD_EDEVICE, NULL, "%s cannot be used: %s",
                                          v->model, v->why);
        if (err && !first) {
            first = err;
            *d = mine;
        }
        if (err) continue;
        r->chosen = (int32_t)i;
        return SHERD_OK;
    }
    return first;
}

static int list_devices(const sherd__backend *b, const sherd__backend_options *how, report *r,
                        sherd_diag *d)
{
    sherd__device_info list[SHERD__DEVICES_MAX];
    int err = b->list(how, list, SHERD__DEVICES_MAX, &r->count, d);
    if (err) return err;
    if (r->count > SHERD__DEVICES_MAX) r->count = SHERD__DEVICES_MAX;
    for (uint32_t i = 0; i < r->count; i++) fill(&r->list[i], b, i, &list[i]);
    return SHERD_OK;
}

/* Opens each usable device that the options name; the list says why one cannot be opened. After a
 * while, the others are measured at small sizes only: the report must arrive within OPEN_S. */
static void measure_all(const sherd__backend *b, const sherd__backend_options *how, report *r)
{
    sherd__backend_options all = *how;
    const double from = sherd__clock_s();
    for (uint32_t i = 0; i < r->count; i++) {
        sherd_diag mine = { .code = 0 };
        all.quick = how->quick || sherd__clock_s() - from > SEVERAL_S;
        if (!r->list[i].usable || (how->devices_len && !names(how, i))) continue;
        all.rates = &r->rates[i];
        (void)measure(b, all, &r->list[i], &mine);
    }
}

/* Opens the devices that the options name, until one fails: it is not usable, or not there. */
static int open_named(const sherd__backend *b, const sherd__backend_options *how, report *r,
                      sherd_diag *d)
{
    const bool numbers = !how->all_devices && how->devices_len > 0;
    const uint32_t len = numbers ? how->devices_len : how->all_devices ? r->count : 1;
    int err = SHERD_OK;
    for (uint32_t i = 0; i < len && !err; i++) {
        sherd_device absent = { .number = numbers ? how->devices[i] : i };
        err = measure(b, *how, absent.number < r->count ? &r->list[absent.number] : &absent, d);
    }
    return err;
}

int sherd_devices_probe(const sherd_node_options *opt, const char *how_much, int fd, sherd_diag *d)
{
    sherd_node_options o;
    sherd__backend_options how;
    const entry *b = NULL;
    report r = { .version = SHERD_VERSION, .size = sizeof r, .chosen = -1 };
    int err = sherd__options_read(&o, sizeof o, opt, "sherd_node_options", d);
    if (!err) err = read_options(&how, &o, d);
    if (!err) err = find_backend(&b, o.backend ? o.backend : "opencl", d);
    if (!err && !b->of->list)
        err = sherd__fail(d, SHERD_EINVAL, NULL, "backend %s has no driver", b->of->name);
    if (err) return err;
    how.library = library_of(b, &o);
    r.err = list_devices(b->of, &how, &r, &r.fault);
    if (!r.err && strcmp(how_much, "first") == 0) r.err = open_first(b->of, &how, &r, &r.fault);
    else if (!r.err && strcmp(how_much, "open") == 0) r.err = open_named(b->of, &how, &r, &r.fault);
    else if (!r.err && strcmp(how_much, "measure") == 0) measure_all(b->of, &how, &r);
    return sherd__write_all(fd, -1, &r, sizeof r)
               ? sherd__fail(d, SHERD_EIO, NULL, "cannot write what was found")
               : SHERD_OK;
}

/* ---- in this process ------------------------------------------------------------------------- */

typedef struct child {
    pid_t pid;
    int out; /* reads what it writes */
} child;

static int start_child(child *c, const entry *b, const sherd_node_options *o, const char *how_much,
                       sherd_diag *d)
{
    char program[PATH_MAX], memory[32];
    int fds[2];
    if (o->program) snprintf(program, sizeof program, "%s", o->program);
    else sherd__command_find(program, sizeof program);
    snprintf(memory, sizeof memory, "%llu", (unsigned long long)o->device_memory);
    const char *argv[20] = { "sherd", "node", "--probe", how_much, "--backend", b->of->name };
    size_t n = 6;
    if (o->devices) argv[n++] = "--device", argv[n++] = o->devices;
    if (library_of(b, o)) argv[n++] = b->option, argv[n++] = library_of(b, o);
    if (o->device_memory) argv[n++] = "--device-memory", argv[n++] = memory;
    if (o->quick_test) argv[n++] = "--selftest", argv[n++] = "quick";
    if (pipe2(fds, O_CLOEXEC))
        return sherd__fail(d, SHERD_EIO, NULL, "no pipe: %s", strerror(errno));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int err = posix_spawnp(&c->pid, program, &actions, NULL, (char *const *)(uintptr_t)argv,
                           environ);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    c->out = fds[0];
    if (!err) return SHERD_OK;
    close(fds[0]);
    return sherd__fail(d, SHERD_EUNSUPPORTED,
                       "name the sherd command as the node's `program`, or choose backend cpu",
                       "the driver of %s is not used untested, and %.200s cannot be started: %s",
                       b->of->name, program, strerror(err));
}

/* Reads the report. Returns the number of bytes that arrived in time, fewer if the child ended. */
static size_t read_report(const child *c, report *r, double seconds, const sherd_hooks *hooks)
{
    const double end = sherd__clock_s() + seconds;
    size_t got = 0;
    while (got < sizeof *r && sherd__clock_s() < end && !sherd__hooks_interrupted(hooks)) {
        struct pollfd p = { .fd = c->out, .events = POLLIN };
        if (poll(&p, 1, 50) <= 0) continue;
        ssize_t n = read(c->out, (char *)r + got, sizeof *r - got);
        if (n == 0) break;
        if (n > 0) got += (size_t)n;
    }
    return got;
}

static bool are_ours(sherd__device_rates *r)
{
    if (r->len > SHERD__DEVICE_RATES) return false;
    for (uint32_t i = 0; i < r->len; i++) {
        r->list[i].name[sizeof r->list[i].name - 1] = '\0';
        r->list[i].unit[sizeof r->list[i].unit - 1] = '\0';
    }
    return true;
}

/* Returns whether a report is of this version, with bounded numbers; terminates its texts. */
static bool is_ours(report *r)
{
    r->version[sizeof r->version - 1] = '\0';
    if (strcmp(r->version, SHERD_VERSION) != 0 || r->size != sizeof *r ||
        r->count > SHERD__DEVICES_MAX || r->chosen < -1 || r->chosen >= (int32_t)r->count)
        return false;
    r->fault.message[sizeof r->fault.message - 1] = '\0';
    r->fault.hint[sizeof r->fault.hint - 1] = '\0';
    for (uint32_t i = 0; i < r->count; i++) {
        sherd_device *v = &r->list[i];
        v->backend[sizeof v->backend - 1] = v->model[sizeof v->model - 1] = '\0';
        v->driver[sizeof v->driver - 1] = v->why[sizeof v->why - 1] = '\0';
        v->library[sizeof v->library - 1] = '\0';
        if (!are_ours(&r->rates[i])) return false;
    }
    return true;
}

/* Waits for the child, at most `seconds`, then ends it. Returns false if it had to be ended. */
static bool end_child(child *c, double seconds, int *status)
{
    const double end = sherd__clock_s() + seconds;
    close(c->out);
    while (waitpid(c->pid, status, WNOHANG) == 0) {
        if (sherd__clock_s() < end) {
            poll(NULL, 0, 5);
            continue;
        }
        kill(c->pid, SIGKILL);
        while (waitpid(c->pid, status, 0) < 0 && errno == EINTR) continue;
        return false;
    }
    return true;
}

/* Examines the devices of a backend in another process. */
static int examine_apart(const entry *b, const sherd_node_options *o, const char *how_much,
                         report *r, sherd_diag *d)
{
    child c;
    int status = 0;
    const double seconds = strcmp(how_much, "list") == 0 ? LIST_S : OPEN_S;
    *r = (report){ .count = 0 };
    int err = start_child(&c, b, o, how_much, d);
    if (err) return err;
    const size_t got = read_report(&c, r, o->probe_timeout_s > 0 ? o->probe_timeout_s : seconds,
                                   &o->hooks);
    const bool whole = got == sizeof *r;
    const bool ended = end_child(&c, whole || got == 0 ? 1 : 0, &status);
    if (whole && is_ours(r))
        return r->err ? sherd__fail(d, r->err, r->fault.hint[0] ? r->fault.hint : NULL, "%s",
                                    r->fault.message)
                      : SHERD_OK;
    r->count = 0;
    if (sherd__hooks_interrupted(&o->hooks))
        return sherd__fail(d, SHERD_EINTERRUPTED, NULL, "interrupted before the node listened");
    if (!ended)
        return sherd__fail(d, SHERD_EDEVICE, NULL, "the driver of %s does not answer", b->of->name);
    if (WIFSIGNALED(status))
        return sherd__fail(d, SHERD_EDEVICE, NULL, "the driver of %s ends the process (%s)",
                           b->of->name, strsignal(WTERMSIG(status)));
    return sherd__fail(d, SHERD_EDEVICE, "are program and library of one version?",
                       "the devices of %s cannot be listed", b->of->name);
}

/* ---- choosing -------------------------------------------------------------------------------- */

static void log_line(const sherd_hooks *h, sherd_log_level level, const char *where,
                     const char *why)
{
    char line[620];
    if (!h->log) return;
    snprintf(line, sizeof line, "computing on %s: %s", where, why);
    h->log(h->ctx, level, line);
}

/* Returns whether the machine may have a GPU. */
static bool has_device_files(void)
{
    static const char *const patterns[] = { "/dev/nvidiactl", "/dev/kfd", "/dev/dxg", "/dev/mali0",
                                            "/dev/dri/renderD*" };
    bool found = false;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns && !found; i++) {
        glob_t g;
        found = glob(patterns[i], 0, NULL, &g) == 0;
        globfree(&g);
    }
    return found;
}

static bool has_accelerator(const report *r)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (r->list[i].usable && !r->list[i].processor) return true;
    return false;
}

/* Sets the device that was opened, and says why it is not the first one. */
static void use_chosen(sherd__backend_options *how, const report *r, const sherd_node_options *o)
{
    const sherd_device *v = &r->list[r->chosen];
    char where[120];
    how->devices[0] = (uint32_t)r->chosen;
    how->devices_len = 1;
    snprintf(where, sizeof where, "%s %u, %s", v->backend, how->devices[0], v->model);
    if (r->fault.message[0]) log_line(&o->hooks, SHERD_LOG_WARN, where, r->fault.message);
}

/* Examines a backend that "auto" tries. Returns 0 where it has a device to use, which *how then
 * names; SHERD_EUNSUPPORTED where it has none, another error where its driver fails. */
static int try_backend(const entry *b, sherd__backend_options *how, const sherd_node_options *o,
                       sherd_diag *d)
{
    report r;
    int err = examine_apart(b, o, o->devices ? "open" : "first", &r, d);
    if (err) return err;
    if (r.chosen >= 0) use_chosen(how, &r, o);
    return has_accelerator(&r) ? SHERD_OK
                               : sherd__fail(d, SHERD_EUNSUPPORTED, NULL,
                                             "%s has no device but the processor", b->of->name);
}

/* Chooses a backend with a driver, and its first device that is usable and not a processor unless
 * the options name devices; else the backend of the processor. If a device or memory that the
 * options name is refused by one backend, and no other one has it, fails as the first did. */
static int choose_any(const entry **out, sherd__backend_options *how, const sherd_node_options *o,
                      sherd_diag *d)
{
    *out = &backends[0];
    if (!names_libraries(o) && !has_device_files()) {
        if (o->devices || o->device_memory)
            return sherd__fail(d, SHERD_EINVAL, "leave it out, or name a backend",
                               "%s, and this machine has no GPU",
                               o->devices ? "a device is named" : "memory of a device is limited");
        log_line(&o->hooks, SHERD_LOG_INFO, "the processor", "this machine has no GPU");
        return SHERD_OK;
    }
    sherd_diag why[BACKENDS] = { { .code = 0 } };
    const sherd_diag *refused = NULL;
    int err = SHERD_EUNSUPPORTED;
    for (size_t i = 0; i < BACKENDS && err && err != SHERD_EINTERRUPTED; i++) {
        if (!is_tried(&backends[i], o)) continue;
        err = try_backend(&backends[i], how, o, &why[i]);
        if (err == SHERD_EINTERRUPTED || (err == SHERD_EINVAL && !refused)) refused = &why[i];
        if (!err) *out = &backends[i];
    }
    if (err && refused) {
        if (d) *d = *refused;
        return refused->code;
    }
    for (size_t i = 0; i < BACKENDS; i++)
        if (why[i].code)
            log_line(&o->hooks,
                     why[i].code == SHERD_EUNSUPPORTED && !o->devices && !o->device_memory
                         ? SHERD_LOG_INFO
                         : SHERD_LOG_WARN,
                     err ? "the processor" : (*out)->of->name, why[i].message);
    return SHERD_OK;
}

static int choose(const entry **out, sherd__backend_options *how, const sherd_node_options *o,
                  sherd_diag *d)
{
    report r;
    if (!o->backend || strcmp(o->backend, "auto") == 0) return choose_any(out, how, o, d);
    int err = find_backend(out, o->backend, d);
    if (err) return err;
    if ((*out)->of->list) return examine_apart(*out, o, "open", &r, d);
    return how->devices_len || how->all_devices || o->device_memory
               ? sherd__fail(d, SHERD_EINVAL, "choose another backend, or leave it out",
                             "backend %s has no devices to choose from", (*out)->of->name)
               : SHERD_OK;
}

int sherd__backend_choose(const sherd__backend **out, sherd__backend_options *how,
                          const sherd_node_options *o, sherd_diag *d)
{
    const entry *chosen = NULL;
    int err = read_options(how, o, d);
    if (!err) err = choose(&chosen, how, o, d);
    if (err) return err;
    *out = chosen->of;
    how->library = library_of(chosen, o);
    return SHERD_OK;
}

/* ---- lists ----------------------------------------------------------------------------------- */

struct sherd_devices {
    size_t count;
    sherd_device list[SHERD__DEVICES_MAX * BACKENDS];
    sherd_device_rate rates[SHERD__DEVICES_MAX * BACKENDS][SHERD__DEVICE_RATES];
    uint32_t rates_len[SHERD__DEVICES_MAX * BACKENDS];
    size_t faults_count;
    sherd_diag faults[BACKENDS]; /* why a backend has no device */
    char why[BACKENDS * SHERD__TEXT_MAX];
};

static void add_fault(sherd_devices *v, const sherd_diag *why)
{
    const size_t len = strlen(v->why);
    v->faults[v->faults_count++] = *why;
    snprintf(v->why + len, sizeof v->why - len, "%s%.190s", len ? "; " : "", why->message);
}

static void add(sherd_devices *v, const sherd_device *device, const sherd__device_rates *r)
{
    v->list[v->count] = *device;
    v->rates_len[v->count] = r->len;
    for (uint32_t i = 0; i < r->len; i++) {
        sherd_device_rate *out = &v->rates[v->count][i];
        *out = (sherd_device_rate){ .n = r->list[i].n, .value = r->list[i].value };
        memcpy(out->name, r->list[i].name, sizeof out->name);
        memcpy(out->unit, r->list[i].unit, sizeof out->unit);
    }
    v->count++;
}

/* Sets *out to the backend whose devices are listed; NULL: to all. */
static int find_listed(const entry **out, const char *name, sherd_diag *d)
{
    *out = NULL;
    if (!name || strcmp(name, "auto") == 0) return SHERD_OK;
    int err = find_backend(out, name, d);
    return err || (*out)->of->list
               ? err
               : sherd__fail(d, SHERD_EINVAL, "choose another backend, or leave it out",
                             "backend %s has no devices to list", name);
}

int sherd_devices_find(sherd_devices **out, const sherd_node_options *opt, bool rates,
                       sherd_diag *d)
{
    sherd_node_options o;
    sherd__backend_options how; /* read here for its errors */
    const entry *only = NULL;
    *out = NULL;
    int err = sherd__options_read(&o, sizeof o, opt, "sherd_node_options", d);
    if (!err) err = read_options(&how, &o, d);
    if (!err) err = find_listed(&only, o.backend, d);
    sherd_devices *v = err ? NULL : sherd__calloc(1, sizeof *v);
    if (!v) return err ? err : sherd__fail_memory(d, "a list of devices");
    for (size_t i = 0; i < BACKENDS; i++) {
        report r;
        sherd_diag mine = { .code = 0 };
        if (only ? only != &backends[i] : !is_tried(&backends[i], &o)) continue;
        err = examine_apart(&backends[i], &o, rates ? "measure" : "list", &r, &mine);
        if (err == SHERD_EINTERRUPTED) {
            sherd__free(v);
            return sherd__fail(d, err, NULL, "interrupted");
        }
        if (!err && r.count == 0)
            err = sherd__fail(&mine, SHERD_EUNSUPPORTED, NULL, "%s has no device",
                              backends[i].of->name);
        if (err) add_fault(v, &mine);
        for (uint32_t k = 0; k < r.count && !err; k++) add(v, &r.list[k], &r.rates[k]);
    }
    *out = v;
    return SHERD_OK;
}

size_t sherd_devices_count(const sherd_devices *v)
{
    return v->count;
}

const sherd_device *sherd_devices_at(const sherd_devices *v, size_t i)
{
    return i < v->count ? &v->list[i] : NULL;
}

const sherd_device_rate *sherd_devices_rate(const sherd_devices *v, size_t i, size_t k)
{
    return i < v->count && k < v->rates_len[i] ? &v->rates[i][k] : NULL;
}

const char *sherd_devices_missing(const sherd_devices *v)
{
    return v->why[0] ? v->why : NULL;
}

const sherd_diag *sherd_devices_fault_at(const sherd_devices *v, size_t i)
{
    return i < v->faults_count ? &v->faults[i] : NULL;
}

void sherd_devices_free(sherd_devices *v)
{
    sherd__free(v);
}

static const sherd_field device_fields[] = {
    SHERD__FIELD(sherd_device, backend, TEXT, "", "backend that uses it"),
    SHERD__FIELD(sherd_device, number, U32, "", "its number, for --device"),
    SHERD__FIELD(sherd_device, model, TEXT, "", "name of the device"),
    SHERD__FIELD(sherd_device, driver, TEXT, "", "name and version of the driver"),
    SHERD__FIELD(sherd_device, memory, U64, "bytes", "memory of the device"),
    SHERD__FIELD(sherd_device, processor, BOOL, "", "whether it is the host's processor"),
    SHERD__FIELD(sherd_device, usable, BOOL, "", "whether nodes can use it"),
    SHERD__FIELD(sherd_device, why, TEXT, "", "why not, or empty"),
    SHERD__FIELD(sherd_device, gflops, F64, "GF/s", "rate of products in float64; 0: not measured"),
    SHERD__FIELD(sherd_device, residue_gflops, F64, "GF/s", "rate of products modulo primes"),
    SHERD__FIELD(sherd_device, byte_gops, F64, "Gop/s", "rate of products of bytes"),
    SHERD__FIELD(sherd_device, library, TEXT, "",
                 "which library multiplies and what, or why none does; empty: not examined"),
    SHERD__FIELD(sherd_device, resident_gflops, F64, "GF/s",
                 "rate of products in float64 whose operands and results stay on the device"),
    SHERD__FIELD(sherd_device, resident_residue_gflops, F64, "GF/s", "... modulo primes"),
    SHERD__FIELD(sherd_device, resident_byte_gops, F64, "Gop/s", "... of bytes"),
};
SHERD__FIELDS(sherd_device, device_fields)

static const sherd_field device_rate_fields[] = {
    SHERD__FIELD(sherd_device_rate, name, TEXT, "", "what was measured"),
    SHERD__FIELD(sherd_device_rate, n, U32, "", "rows and columns of its operands; 0: no product"),
    SHERD__FIELD(sherd_device_rate, value, F64, "", "the rate, or a fraction of the time"),
    SHERD__FIELD(sherd_device_rate, unit, TEXT, "", "B/s, op/s, or empty for a fraction"),
};
SHERD__FIELDS(sherd_device_rate, device_rate_fields)
