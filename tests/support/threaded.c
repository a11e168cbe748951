/* See threaded.h. */
#include "tests/support/threaded.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/diag.h"

/* A call in progress. */
typedef struct job {
    sherd__executor_item work; /* must be first */
    struct threaded *on;
    sherd__call *call;
    const sherd__fragment *left, *right;
    struct job *next;
} job;

typedef struct threaded {
    threaded_options o;
    sherd__device device;
    sherd__executor *thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    job *jobs;
    uint64_t finished, refused;
} threaded;

static void end(sherd__executor_item *work)
{
    sherd__call *c = (sherd__call *)(void *)((char *)work - offsetof(sherd__call, work));
    c->done(c);
}

static void run(sherd__executor_item *work)
{
    job *j = (job *)work;
    threaded *v = j->on;
    sherd__call *c = j->call;
    sherd_diag d = { .code = 0 };
    c->err = sherd__backend_cpu.compute(v->o.cpu, c, j->left, j->right, &d);
    if (c->err) memcpy(c->text, d.message, strnlen(d.message, sizeof c->text - 1));
    usleep(v->o.latency_us);
    pthread_mutex_lock(&v->lock);
    job **at = &v->jobs;
    while (*at != j) at = &(*at)->next;
    *at = j->next;
    v->finished++;
    c->work = (sherd__executor_item){ .done = end };
    sherd__executor_finish(c->executor, &c->work);
    pthread_cond_broadcast(&v->ended);
    pthread_mutex_unlock(&v->lock);
}

static void forget(sherd__executor_item *work)
{
    free(work);
}

static void no_wake(void *ctx)
{
    (void)ctx;
}

static int threaded_hold(void *ctx, uint32_t device, const sherd__fragment *f, uint64_t owner,
                         sherd__handle *out, sherd_diag *d)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(f);
    (void)ctx, (void)d;
    *out = (sherd__handle){ (uintptr_t)f, owner, device, i->dtype, i->primes, i->encoding };
    return SHERD_OK;
}

static void threaded_drop(void *ctx, const sherd__handle *h)
{
    (void)ctx, (void)h;
}

static int threaded_submit(void *ctx, sherd__call *c, sherd_diag *d)
{
    threaded *v = ctx;
    uint32_t under_way = 0;
    (void)sherd__executor_drain(v->thread);
    pthread_mutex_lock(&v->lock);
    for (const job *j = v->jobs; j; j = j->next) under_way++;
    v->refused += under_way >= v->o.depth;
    pthread_mutex_unlock(&v->lock);
    if (under_way >= v->o.depth) return sherd__fail(d, SHERD_EBUSY, NULL, "the device is busy");
    job *j = calloc(1, sizeof *j);
    if (!j) abort();
    *j = (job){ .work = { .run = run, .done = forget },
                .on = v,
                .call = c,
                .left = (const sherd__fragment *)(uintptr_t)c->left.id,
                .right = (const sherd__fragment *)(uintptr_t)c->right.id };
    c->lost = false;
    c->took_us = 0;
    memset(c->text, 0, sizeof c->text);
    atomic_init(&c->cancelled, false);
    sherd__executor_expect(c->executor);
    pthread_mutex_lock(&v->lock);
    j->next = v->jobs;
    v->jobs = j;
    pthread_mutex_unlock(&v->lock);
    if (sherd__executor_submit(v->thread, &j->work)) abort();
    return SHERD_OK;
}

static void threaded_cancel(void *ctx, sherd__call *c)
{
    (void)ctx;
    atomic_store(&c->cancelled, true);
}

static bool is_under_way(const threaded *v, const sherd__call *c)
{
    const job *j = v->jobs;
    while (j && j->call != c) j = j->next;
    return j != NULL;
}

static void threaded_wait(void *ctx, const sherd__call *c)
{
    threaded *v = ctx;
    pthread_mutex_lock(&v->lock);
    uint64_t at_first = v->finished;
    while (c ? is_under_way(v, c) : v->jobs && v->finished == at_first)
        pthread_cond_wait(&v->ended, &v->lock);
    pthread_mutex_unlock(&v->lock);
}

static const sherd__device *threaded_devices(void *ctx, uint32_t *count)
{
    const threaded *v = ctx;
    *count = 1;
    return &v->device;
}

int threaded_open(void **ctx, const threaded_options *o)
{
    threaded *v = *ctx = calloc(1, sizeof *v);
    if (!v) abort();
    v->o = *o;
    v->device = (sherd__device){
        .name = "thread", .threads = 1, .does = SHERD__DOES_ALL, .gflops = 1, .depth = o->depth
    };
    pthread_mutex_init(&v->lock, NULL);
    pthread_cond_init(&v->ended, NULL);
    return sherd__executor_new(&v->thread, 64, no_wake, NULL);
}

static void threaded_close(void *ctx)
{
    threaded *v = ctx;
    if (v->jobs) abort();
    sherd__executor_free(v->thread);
    pthread_mutex_destroy(&v->lock);
    pthread_cond_destroy(&v->ended);
    free(v);
}

uint64_t threaded_refused(const void *ctx)
{
    return ((const threaded *)ctx)->refused;
}

const sherd__backend threaded_backend = {
    .abi = SHERD__BACKEND_ABI,
    .name = "threaded",
    .devices = threaded_devices,
    .hold = threaded_hold,
    .drop = threaded_drop,
    .submit = threaded_submit,
    .cancel = threaded_cancel,
    .wait = threaded_wait,
    .close = threaded_close,
};
