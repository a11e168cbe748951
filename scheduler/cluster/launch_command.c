/*
 * All options of a node are on its command line, never in its environment, because our user's
 * variables are not meant for nodes. Memory and threads are shares of the machine. Cores are
 * assigned in order, and only if all of them are assigned (sherd__command_cores).
 */
#include "scheduler/cluster/launch_command.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/cpu.h"
#include "core/diag.h"
#include "core/memory.h"

extern char **environ;

/* Environment variable of a node that says which process started it. A program that runs in place
 * of the node inherits it. */
#define STARTED_BY "_SHERD_NODE_OF"

static uint32_t default_threads(uint32_t nodes)
{
    uint32_t n = sherd__cpu_usable() / nodes;
    return n ? n : 1;
}

uint32_t sherd__command_cores(uint32_t nodes, uint32_t threads, uint32_t usable)
{
    return nodes > 1 && (uint64_t)nodes * threads == usable ? threads : 0;
}

static uint32_t cores_of(sherd__command *c, const sherd__launch_options *o, uint32_t threads)
{
    if (o->unbound || sched_getaffinity(0, sizeof c->usable, &c->usable)) return 0;
    return sherd__command_cores(o->nodes, threads, (uint32_t)CPU_COUNT(&c->usable));
}

static bool starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Copies our environment without the variables that set options for us: a node's options are on its
 * command line. */
static int make_env(sherd__command *c, uint32_t threads)
{
    size_t len = 0, kept = 0;
    while (environ[len]) len++;
    c->env = sherd__calloc(len + 4, sizeof *c->env);
    if (!c->env) return SHERD_ENOMEM;
    for (size_t i = 0; i < len; i++) {
        bool ours = starts_with(environ[i], "SHERD_") && !starts_with(environ[i], "SHERD_TEST_");
        if (ours || starts_with(environ[i], STARTED_BY "=") ||
            starts_with(environ[i], "OPENBLAS_NUM_THREADS=") ||
            starts_with(environ[i], "OMP_NUM_THREADS="))
            continue;
        c->env[kept++] = environ[i];
    }
    snprintf(c->blas, sizeof c->blas, "OPENBLAS_NUM_THREADS=%u", threads);
    snprintf(c->omp, sizeof c->omp, "OMP_NUM_THREADS=%u", threads);
    snprintf(c->by, sizeof c->by, STARTED_BY "=%ld", (long)getpid());
    c->env[kept++] = c->blas;
    c->env[kept++] = c->omp;
    c->env[kept] = c->by;
    return SHERD_OK;
}

int sherd__command_allowed(sherd_diag *d)
{
    const char *by = getenv(STARTED_BY);
    if (!by) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL,
                       "name the sherd command as the cluster's `program`, or do what the first "
                       "argument says before a cluster is opened",
                       "this process was started as a node, by process %.20s, and would start "
                       "nodes itself, without end",
                       by);
}

static const char here; /* an address within the file that contains this library */

/* Writes the path of that file. The loader knows a program by its argv[0], which may lack a
 * folder. */
static bool find_file(char out[PATH_MAX])
{
    Dl_info info;
    if (!dladdr(&here, &info) || !info.dli_fname) return false;
    return realpath(strchr(info.dli_fname, '/') ? info.dli_fname : "/proc/self/exe", out) != NULL;
}

void sherd__command_find(char *out, size_t size)
{
    static const char *const places[] = { "sherd", "../bin/sherd", "../../bin/sherd" };
    char file[PATH_MAX];
    struct stat st, self;
    if (find_file(file) && stat("/proc/self/exe", &self) == 0) {
        *strrchr(file, '/') = '\0';
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            int len = snprintf(out, size, "%s/%s", file, places[i]);
            if (len > 0 && (size_t)len < size && access(out, X_OK) == 0 && stat(out, &st) == 0 &&
                S_ISREG(st.st_mode) && (st.st_dev != self.st_dev || st.st_ino != self.st_ino))
                return;
        }
    }
    snprintf(out, size, "sherd");
}

static void add(sherd__command *c, size_t *len, const char *option, const char *value)
{
    c->argv[(*len)++] = option;
    c->argv[(*len)++] = value;
}

int sherd__command_make(sherd__command *c, const sherd__launch_options *o)
{
    uint32_t threads = o->threads ? o->threads : default_threads(o->nodes);
    uint64_t memory = o->memory ? o->memory : sherd__memory_of_node(o->nodes);
    if (o->program) snprintf(c->program, sizeof c->program, "%s", o->program);
    else sherd__command_find(c->program, sizeof c->program);
    snprintf(c->threads, sizeof c->threads, "%u", threads);
    snprintf(c->memory, sizeof c->memory, "%llu", (unsigned long long)memory);
    snprintf(c->nodes, sizeof c->nodes, "%u", o->nodes);
    snprintf(c->pipe, sizeof c->pipe, "%d", SHERD__CHILD_PIPE);
    const sherd__launch_on *on = &o->on;
    const bool chosen = on->devices || on->each;
    snprintf(c->backend, sizeof c->backend, "%s",
             on->backend ? on->backend
             : chosen    ? "auto"
                         : "cpu");
    c->each = on->each;
    const char *argv[] = { "sherd",         o->verb ? o->verb : "node",
                           "--listen",      "127.0.0.1:0",
                           "--parent-pipe", c->pipe,
                           "--threads",     c->threads,
                           "--memory",      c->memory,
                           "--selftest",    "quick",
                           "--backend",     c->backend,
                           "--name",        c->name };
    size_t len = sizeof argv / sizeof *argv;
    memcpy(c->argv, argv, sizeof argv);
    c->bound = cores_of(c, o, threads);
    if (o->log_dir) c->argv[len++] = "--stay";
    if (c->bound) add(c, &len, "--cores", c->cores);
    if (chosen) add(c, &len, "--device", on->each ? c->devices : on->devices);
    if (!on->each && o->nodes > 1 && strcmp(c->backend, "cpu") != 0)
        add(c, &len, "--device-nodes", c->nodes); /* all of them use the same ones */
    if (on->opencl_library) add(c, &len, "--opencl-library", on->opencl_library);
    if (on->cuda_library) add(c, &len, "--cuda-library", on->cuda_library);
    c->argv[len] = NULL;
    return make_env(c, threads);
}

void sherd__command_for(sherd__command *c, uint32_t i, const char *name)
{
    uint32_t seen = 0;
    size_t len = 0;
    snprintf(c->name, sizeof c->name, "%s", name);
    c->cores[0] = '\0';
    for (uint32_t core = 0; c->bound && core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &c->usable) && seen++ / c->bound == i)
            len += (size_t)snprintf(c->cores + len, sizeof c->cores - len, "%s%u", len ? "," : "",
                                    core);
    len = 0;
    for (uint32_t k = i * c->each; k < (i + 1) * c->each && k < c->pool_len; k++)
        len += (size_t)snprintf(c->devices + len, sizeof c->devices - len, "%s%u", len ? "," : "",
                                c->pool[k]);
}
