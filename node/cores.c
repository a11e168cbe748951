/*
 * Affinity belongs to a thread, not to a process, and is inherited by the threads that it starts:
 * so all existing threads are bound one by one. The kernel counts how long each thread was ready
 * and had no core (schedstat). This count tells whether other processes use the core; other
 * counters tell only that the core is busy, which is intended.
 *
 * Nothing here makes a node fail: where the system refuses something, the node stays unbound.
 */
#include "node/cores.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/cpu.h"
#include "core/diag.h"

#define CROWDED_LOOKS 2u
#define LEAST_SHARE 5u   /* of the time between two looks: less than this is not worth a move */
#define BESIDE_SHARE 10u /* of that time: above it, other threads than the loop's compute */

struct sherd__cores {
    cpu_set_t own, all;
    sherd__cores_rule rule;
    uint64_t ran, waited, beside;
    uv_timer_t timer;
    pid_t loop; /* the thread that calls look() */
    bool watched, loop_free;
};

/* ---- when to be bound ------------------------------------------------------------------------ */

void sherd__cores_rule_init(sherd__cores_rule *r, uint64_t now_ms)
{
    *r = (sherd__cores_rule){ .bound = true, .since_ms = now_ms };
}

static void turn(sherd__cores_rule *r, bool bound, uint64_t now_ms)
{
    r->bound = bound;
    r->since_ms = now_ms;
    r->crowded = 0;
}

bool sherd__cores_judge(sherd__cores_rule *r, uint64_t now_ms, uint64_t ran, uint64_t waited)
{
    const uint64_t look_ns = SHERD__CORES_LOOK_MS * UINT64_C(1000000);
    if (!r->bound) {
        if (now_ms - r->since_ms >= r->away_ms) turn(r, true, now_ms);
        return r->bound;
    }
    bool crowded = waited > ran / 2 && waited > look_ns / LEAST_SHARE;
    if (now_ms - r->since_ms > r->away_ms) r->away_ms = 0; /* bound for longer than unbound */
    r->crowded = crowded ? r->crowded + 1 : 0;
    if (r->crowded < CROWDED_LOOKS) return true;
    turn(r, false, now_ms);
    r->away_ms = r->away_ms ? 2 * r->away_ms : SHERD__CORES_AWAY_MS;
    if (r->away_ms > SHERD__CORES_AWAY_MAX_MS) r->away_ms = SHERD__CORES_AWAY_MAX_MS;
    return false;
}

bool sherd__cores_frees_loop(uint64_t beside)
{
    return beside > SHERD__CORES_LOOK_MS * UINT64_C(1000000) / BESIDE_SHARE;
}

/* ---- threads of this process ----------------------------------------------------------------- */

/* Calls fn for each thread. Returns true if it succeeded for all of them. */
static bool each_thread(bool (*fn)(pid_t thread, void *ctx), void *ctx)
{
    DIR *dir = opendir("/proc/self/task");
    bool all = dir != NULL;
    for (const struct dirent *e; all && (e = readdir(dir));)
        if (e->d_name[0] != '.') all = fn((pid_t)strtol(e->d_name, NULL, 10), ctx);
    if (dir) closedir(dir);
    return all;
}

/* A thread that has just ended needs no core, so ESRCH is a success. */
static bool bind_thread(pid_t thread, void *ctx)
{
    return sched_setaffinity(thread, sizeof(cpu_set_t), ctx) == 0 || errno == ESRCH;
}

typedef struct times {
    sherd__cpu_times all;
    uint64_t beside; /* time that all threads but the loop's ran */
    pid_t loop;
} times;

static bool add_times(pid_t thread, void *ctx)
{
    times *sum = ctx;
    sherd__cpu_times t;
    if (!sherd__cpu_times_of(thread, &t)) return false;
    sum->all.ran += t.ran;
    sum->all.waited += t.waited;
    sum->all.turns += t.turns;
    sum->beside += thread == sum->loop ? 0 : t.ran;
    return true;
}

/* ---- cores ----------------------------------------------------------------------------------- */

static bool parse(const char *list, cpu_set_t *out)
{
    CPU_ZERO(out);
    for (const char *p = list;; p++) {
        char *end;
        if (*p < '0' || *p > '9') return false;
        unsigned long core = strtoul(p, &end, 10);
        if (core >= CPU_SETSIZE) return false;
        CPU_SET(core, out);
        if (*end == '\0') return true;
        if (*end != ',') return false;
        p = end;
    }
}

int sherd__cores_take(sherd__cores **out, const char *list, sherd_diag *d)
{
    cpu_set_t own, all, both;
    times t = { 0 };
    *out = NULL;
    if (!parse(list, &own))
        return sherd__fail(d, SHERD_EINVAL, NULL, "\"%.80s\" is not a list of cores, as 0,2,3",
                           list);
    if (sched_getaffinity(0, sizeof all, &all) || !each_thread(add_times, &t) || t.all.turns == 0)
        return SHERD_OK;
    CPU_AND(&both, &own, &all);
    if (!CPU_EQUAL(&both, &own)) return SHERD_OK;
    sherd__cores *c = sherd__calloc(1, sizeof *c);
    if (!c) return sherd__fail_memory(d, "the list of cores");
    c->own = own;
    c->all = all;
    if (!each_thread(bind_thread, &c->own)) {
        (void)each_thread(bind_thread, &c->all);
        sherd__free(c);
        return SHERD_OK;
    }
    sherd__cores_rule_init(&c->rule, 0);
    *out = c;
    return SHERD_OK;
}

static void note(sherd__cores *c, const times *t)
{
    c->ran = t->all.ran;
    c->waited = t->all.waited;
    c->beside = t->beside;
}

/* A thread that ends during a look makes it fail, and one that ended before takes its times out of
 * the sums. In both cases the next look decides. */
static void look(uv_timer_t *timer)
{
    sherd__cores *c = timer->data;
    bool was = c->rule.bound, was_free = c->loop_free;
    times t = { .loop = c->loop };
    if (!each_thread(add_times, &t)) return;
    bool grew = t.all.ran >= c->ran && t.all.waited >= c->waited && t.beside >= c->beside;
    uint64_t ran = t.all.ran - c->ran, waited = t.all.waited - c->waited;
    uint64_t beside = t.beside - c->beside;
    note(c, &t);
    if (!grew) return;
    bool bound = sherd__cores_judge(&c->rule, uv_now(timer->loop), ran, waited);
    c->loop_free = bound && sherd__cores_frees_loop(beside);
    if (bound != was) (void)each_thread(bind_thread, bound ? &c->own : &c->all);
    if (bound != was || c->loop_free != was_free)
        (void)bind_thread(c->loop, bound && !c->loop_free ? &c->own : &c->all);
}

void sherd__cores_watch(sherd__cores *c, uv_loop_t *loop)
{
    c->loop = gettid();
    times t = { .loop = c->loop };
    if (each_thread(add_times, &t)) note(c, &t);
    uv_timer_init(loop, &c->timer);
    c->timer.data = c;
    c->watched = true;
    sherd__cores_rule_init(&c->rule, uv_now(loop));
    uv_timer_start(&c->timer, look, SHERD__CORES_LOOK_MS, SHERD__CORES_LOOK_MS);
    uv_unref((uv_handle_t *)&c->timer);
}

void sherd__cores_unwatch(sherd__cores *c)
{
    if (c && c->watched) uv_close((uv_handle_t *)&c->timer, NULL);
    if (c) c->watched = false;
}

bool sherd__cores_bound(const sherd__cores *c)
{
    return c && c->rule.bound;
}

void sherd__cores_free(sherd__cores *c)
{
    sherd__free(c);
}
