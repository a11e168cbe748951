/*
 * How busy a device is with calls from blocks that it has to answers in memory of the host: calls
 * follow each other, as many in progress as the backend asks for, and the lanes count the time in
 * which kernels ran and in which they copied. For people (sherd node --list-devices --measure).
 */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "node/backends/accelerator_trial.h"

#define DEPTH (2 * ACCELERATOR_LANES)
#define ALL_S 1.0 /* that calls should take together */
#define CALLS_MIN 8u
#define CALLS_MAX 64u

typedef struct turns turns;
typedef struct turn {
    sherd__call call; /* must be first */
    turns *of;
    uint8_t *out;
} turn;

struct turns {
    accelerator *on;
    accelerator_trial trial;
    sherd__executor *executor;
    sherd__handle left, right;
    turn list[DEPTH];
    uint32_t waiting; /* calls that are still to be submitted */
    int err;
    sherd_diag *d;
};

/* What the lanes of a device have counted. */
typedef struct counted {
    double at, busy, computing, copying;
} counted;

static counted count(accelerator *a)
{
    const accelerator_device *v = &a->devices[0];
    counted c = { .at = sherd__clock_s() };
    pthread_mutex_lock(&a->lock);
    c.busy = v->busy_s;
    for (uint32_t i = 0; i < ACCELERATOR_LANES; i++) {
        c.computing += v->lanes[i].computing_s;
        c.copying += v->lanes[i].copying_s;
    }
    pthread_mutex_unlock(&a->lock);
    return c;
}

static void done(sherd__call *c);

static void submit(turn *x)
{
    turns *t = x->of;
    x->call = (sherd__call){ .task = &t->trial.task,
                             .left = t->left,
                             .right = t->right,
                             .owner = 1,
                             .out = x->out,
                             .executor = t->executor,
                             .done = done };
    if (t->err || !t->waiting) return;
    t->waiting--;
    t->err = sherd__accelerator_submit(t->on, &x->call, t->d);
}

static void done(sherd__call *c)
{
    turn *x = (turn *)(void *)c;
    if (c->err && !x->of->err) x->of->err = sherd__fail(x->of->d, c->err, NULL, "%s", c->text);
    submit(x);
}

static int run(turns *t, uint32_t calls)
{
    t->waiting = calls;
    for (uint32_t i = 0; i < DEPTH; i++) submit(&t->list[i]);
    while (sherd__executor_pending(t->executor)) {
        sherd__accelerator_wait(t->on, NULL);
        (void)sherd__executor_drain(t->executor);
    }
    return t->err;
}

static void close_turns(turns *t)
{
    if (t->left.id) sherd__accelerator_drop(t->on, &t->left);
    if (t->right.id) sherd__accelerator_drop(t->on, &t->right);
    for (uint32_t i = 0; i < DEPTH; i++) sherd__free(t->list[i].out);
    if (t->executor) sherd__executor_free(t->executor);
    sherd__trial_end(&t->trial);
}

/* Makes operands of n x n, holds them, and takes memory for as many answers as are in progress. */
static int open_turns(turns *t, const accelerator_measured *m, uint32_t n)
{
    accelerator_trial *x = &t->trial;
    x->lane = &t->on->devices[0].lanes[0];
    x->resident = true;
    int err = sherd__trial_square(x, m->dtype, m->primes, n, t->d);
    if (!err) err = sherd__executor_new_inline(&t->executor);
    for (uint32_t i = 0; i < DEPTH && !err; i++) {
        t->list[i].of = t;
        t->list[i].out = sherd__alloc(x->task.result.len);
        if (!t->list[i].out) err = sherd__fail_memory(t->d, "a measurement");
    }
    if (!err) err = sherd__accelerator_hold(t->on, 0, x->left, 1, &t->left, t->d);
    if (!err) err = sherd__accelerator_hold(t->on, 0, x->right, 1, &t->right, t->d);
    return err;
}

static void add(sherd__device_rates *r, const char *what, const accelerator_measured *m, uint32_t n,
                double value, const char *unit)
{
    char name[sizeof r->list[0].name];
    snprintf(name, sizeof name, "%s-%s", what, m->name);
    sherd__device_rates_add(r, name, n, value, unit);
}

static int measure(accelerator *a, const accelerator_measured *m, uint32_t n, uint32_t calls,
                   sherd__device_rates *out, sherd_diag *d)
{
    turns t = { .on = a, .d = d };
    int err = open_turns(&t, m, n);
    if (!err) err = run(&t, DEPTH); /* copies the blocks */
    const counted before = count(a);
    if (!err) err = run(&t, calls);
    const counted after = count(a);
    close_turns(&t);
    if (err) return sherd__trial_left_out(err, d);
    const double all = after.at - before.at, lanes = all * ACCELERATOR_LANES;
    const double computing = (after.computing - before.computing) / lanes;
    const double copying = (after.copying - before.copying) / lanes;
    add(out, "answers", m, n, calls * 2.0 * n * n * n / all, "op/s");
    add(out, "busy", m, n, (after.busy - before.busy) / all, "");
    add(out, "computing", m, n, computing, "");
    add(out, "copying", m, n, copying, "");
    add(out, "idle", m, n, 1 - computing - copying, "");
    return SHERD_OK;
}

/* Returns the largest product of a kind that was measured, up to SHERD__MEASURED_N; NULL: none. */
static const sherd__device_rate *largest(const sherd__device_rates *r, const char *name)
{
    const sherd__device_rate *found = NULL;
    for (uint32_t i = 0; i < r->len; i++)
        if (strcmp(r->list[i].name, name) == 0 && r->list[i].n <= SHERD__MEASURED_N)
            found = &r->list[i];
    return found;
}

int sherd__accelerator_measure_busy(accelerator *a, const sherd__backend_options *opt,
                                    sherd_diag *d)
{
    int err = SHERD_OK;
    for (size_t k = 0; k < KINDS && !err; k++) {
        const accelerator_measured *m = &sherd__accelerator_measured[k];
        const sherd__device_rate *of = largest(opt->rates, m->name);
        if (!of) continue;
        const double calls = ALL_S * of->value / (2.0 * of->n * of->n * of->n);
        err = measure(a, m, of->n,
                      opt->quick || calls < CALLS_MIN ? CALLS_MIN
                      : calls > CALLS_MAX             ? CALLS_MAX
                                                      : (uint32_t)calls,
                      opt->rates, d);
    }
    return err;
}
