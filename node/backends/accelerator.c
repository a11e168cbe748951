/*
 * Lanes take calls from a list of their device. One lock protects all lists; a lane that computes
 * holds none but its own, and gives that up while it is in the driver. The watchdog ends the calls
 * of a device when a lane stays in the driver too long.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "node/backends/accelerator_internal.h"
#include "node/backends/program.h"
#include "node/check.h"

#define CALLS_MAX 64u  /* waiting and in progress on a device */
#define TIMEOUT_S 30.0 /* of a call, in addition to the time that it should take */
#define SLOWER 20.0    /* how much longer than estimated a call may take */
#define WATCH_S 0.05   /* between two looks at the lanes */
#define KEEP_S 1.0     /* how long memory is kept that no call needs */

/* ---- blocks ---------------------------------------------------------------------------------- */

static accelerator_block *block_of(const sherd__handle *h)
{
    return (accelerator_block *)(uintptr_t)h->id;
}

/* Waits until no other lane copies the block; returns true if this lane is to copy it. */
static bool begin_copy(accelerator_lane *l, accelerator_block *b)
{
    accelerator *a = l->on->of;
    sherd__lane_enter(l);
    pthread_mutex_lock(&a->lock);
    while (b->state == BEING_COPIED) pthread_cond_wait(&a->changed, &a->lock);
    bool mine = b->state == TO_COPY;
    if (mine) b->state = BEING_COPIED;
    pthread_mutex_unlock(&a->lock);
    sherd__lane_leave(l);
    return mine;
}

int sherd__accelerator_copy(accelerator_lane *l, accelerator_block *b, sherd_diag *d)
{
    accelerator *a = l->on->of;
    if (!begin_copy(l, b)) return SHERD_OK;
    void *memory = NULL;
    pthread_mutex_lock(&a->settling); /* several devices may hold one fragment */
    int err = sherd__task_settle(b->from, NULL, d);
    pthread_mutex_unlock(&a->settling);
    if (!err) err = sherd__lane_memory(l, b->len, &memory, d);
    if (!err) err = sherd__lane_write(l, memory, 0, sherd__fragment_bytes(b->from), b->len, d);
    if (err && memory) sherd__accelerator_forget(l, memory, b->len);
    pthread_mutex_lock(&a->lock);
    b->memory = err ? NULL : memory;
    b->state = err ? TO_COPY : COPIED;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    return err;
}

int sherd__accelerator_hold(void *ctx, uint32_t device, const sherd__fragment *f, uint64_t owner,
                            sherd__handle *out, sherd_diag *d)
{
    accelerator *a = ctx;
    accelerator_device *v = &a->devices[device];
    const sherd__fragment_info *i = sherd__fragment_info_of(f);
    accelerator_block *b = sherd__alloc(sizeof *b);
    if (!b) return sherd__fail_memory(d, "a block");
    *b = (accelerator_block){ .from = f, .on = v, .owner = owner, .len = i->len };
    pthread_mutex_lock(&a->lock);
    int err = v->lost ? sherd__fail(d, SHERD_EDEVICE, NULL, "%s", v->why)
                      : sherd__accelerator_take(v, b->len, d);
    pthread_mutex_unlock(&a->lock);
    if (err) {
        sherd__free(b);
        return err;
    }
    *out = (sherd__handle){ (uintptr_t)b, owner, device, i->dtype, i->primes, i->encoding };
    return SHERD_OK;
}

/* Returns the memory of a block that is dropped and not used; the lanes overwrite it. */
static void release(accelerator_block *b)
{
    accelerator_device *v = b ? b->on : NULL;
    if (!b || !b->dropped || b->calls) return;
    v->used -= b->len;
    if (!b->memory) {
        sherd__free(b);
        return;
    }
    b->next = v->released;
    v->released = b;
    pthread_cond_broadcast(&v->of->work);
}

void sherd__accelerator_drop(void *ctx, const sherd__handle *h)
{
    accelerator *a = ctx;
    accelerator_block *b = block_of(h);
    pthread_mutex_lock(&a->lock);
    b->dropped = true;
    release(b);
    pthread_mutex_unlock(&a->lock);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void call_done(sherd__executor_item *work)
{
    sherd__call *c = (sherd__call *)(void *)((char *)work - offsetof(sherd__call, work));
    c->done(c);
}

/* Ends a call: its done runs with the next drain. The lock is held. abandoned: the driver may still
 * use the blocks' memory. */
static void end_call(accelerator_device *v, sherd__call *c, int err, bool abandoned,
                     const char *why)
{
    accelerator_block *left = c->backend[1], *right = c->backend[2];
    c->lost = err == SHERD_ECLOSED;
    c->err = c->lost ? SHERD_EDEVICE : err;
    if (err) memcpy(c->text, why, strnlen(why, sizeof c->text - 1));
    v->calls--;
    v->of->ended++;
    if (!abandoned) {
        if (left) left->calls--;
        if (right) right->calls--;
        release(left);
        if (right != left) release(right);
    }
    c->work = (sherd__executor_item){ .done = call_done };
    sherd__executor_finish(c->executor, &c->work);
    pthread_cond_broadcast(&v->of->changed);
}

/* Marks a device as lost, and ends the calls that wait for it. The lock is held. */
static void lose(accelerator_device *v, const char *why)
{
    if (!v->lost) memcpy(v->why, why, strnlen(why, sizeof v->why - 1));
    v->lost = true;
    for (sherd__call *c; (c = v->first);) {
        v->first = c->backend[0];
        end_call(v, c, SHERD_ECLOSED, false, v->why);
    }
    v->last = NULL;
}

int sherd__accelerator_submit(void *ctx, sherd__call *c, sherd_diag *d)
{
    accelerator *a = ctx;
    accelerator_block *left = block_of(&c->left), *right = block_of(&c->right);
    accelerator_device *v = left ? left->on : &a->devices[c->left.device];
    if ((left && left->owner != c->owner) ||
        (right && (right->owner != c->owner || right->on != v)))
        return sherd__fail(d, SHERD_EINVAL, NULL, "a block belongs to another session or device");
    pthread_mutex_lock(&a->lock);
    int err = v->lost                 ? sherd__fail(d, SHERD_EDEVICE, NULL, "%s", v->why)
              : v->calls >= CALLS_MAX ? sherd__fail(d, SHERD_EBUSY, NULL, "too many calls")
                                      : SHERD_OK;
    if (!err) {
        c->err = SHERD_OK;
        c->lost = false;
        c->took_us = 0;
        memset(c->text, 0, sizeof c->text);
        atomic_init(&c->cancelled, false);
        c->backend[0] = NULL;
        c->backend[1] = left;
        c->backend[2] = right;
        if (left) left->calls++;
        if (right) right->calls++;
        v->calls++;
        if (v->first) v->last->backend[0] = c;
        else v->first = c;
        v->last = c;
        sherd__executor_expect(c->executor);
        pthread_cond_broadcast(&a->work);
    }
    pthread_mutex_unlock(&a->lock);
    return err;
}

void sherd__accelerator_cancel(void *ctx, sherd__call *c)
{
    (void)ctx;
    atomic_store(&c->cancelled, true);
}

static bool in_progress(const accelerator *a, const sherd__call *c)
{
    for (uint32_t i = 0; i < a->count; i++) {
        const accelerator_device *v = &a->devices[i];
        for (uint32_t l = 0; l < ACCELERATOR_LANES; l++)
            if (v->lanes[l].call == c) return true;
        for (const sherd__call *w = v->first; w; w = w->backend[0])
            if (w == c) return true;
    }
    return false;
}

static bool any_in_progress(const accelerator *a)
{
    uint32_t calls = 0;
    for (uint32_t i = 0; i < a->count; i++) calls += a->devices[i].calls;
    return calls > 0;
}

void sherd__accelerator_wait(void *ctx, const sherd__call *c)
{
    accelerator *a = ctx;
    pthread_mutex_lock(&a->lock);
    const uint64_t ended = a->ended;
    while (c ? in_progress(a, c) : any_in_progress(a) && a->ended == ended)
        pthread_cond_wait(&a->changed, &a->lock);
    pthread_mutex_unlock(&a->lock);
}

/* ---- threads --------------------------------------------------------------------------------- */

bool sherd__accelerator_free_released(accelerator_lane *l)
{
    accelerator *a = l->on->of;
    const double deadline = l->deadline;
    const bool any = l->on->released;
    for (accelerator_block *b; (b = l->on->released);) {
        l->on->released = b->next;
        if (!l->on->lost) {
            l->on->freeing++;
            l->deadline = sherd__clock_s() + a->timeout_s;
            pthread_mutex_unlock(&a->lock);
            sherd__accelerator_forget(l, b->memory, b->len);
            pthread_mutex_lock(&a->lock);
            l->deadline = deadline;
            l->on->freeing--;
            pthread_cond_broadcast(&a->changed);
        }
        sherd__free(b);
    }
    return any;
}

/* Returns the time that this much work should take. */
static double seconds_for(const accelerator_device *v, double flops)
{
    double rate = v->what->gflops;
    if (v->what->residue_gflops > 0 && (rate < 1e-3 || v->what->residue_gflops < rate))
        rate = v->what->residue_gflops;
    if (v->what->byte_gops > 0 && v->what->byte_gops < rate) rate = v->what->byte_gops;
    return flops / (1e9 * (rate > 0.1 ? rate : 0.1));
}

/* A program's steps have a deadline each. */
static double seconds_of(const accelerator_device *v, const sherd__call *c)
{
    const accelerator_block *left = c->backend[1];
    return left ? seconds_for(v, sherd__task_flops(c->task, left->from)) : 0;
}

void sherd__accelerator_renew(accelerator_lane *l, double flops)
{
    const accelerator_device *v = l->on;
    pthread_mutex_lock(&v->of->lock);
    if (l->deadline > 0)
        l->deadline = sherd__clock_s() + v->of->timeout_s + SLOWER * seconds_for(v, flops);
    pthread_mutex_unlock(&v->of->lock);
}

/* Computes a call. The lock is held before and after. */
static void run_call(accelerator_lane *l, sherd__call *c)
{
    accelerator_device *v = l->on;
    accelerator *a = v->of;
    sherd_diag d = { .code = 0 };
    l->call = c;
    l->deadline = sherd__clock_s() + a->timeout_s + SLOWER * seconds_of(v, c);
    pthread_mutex_unlock(&a->lock);
    const double from = c->clock ? c->clock() : 0;
    int err = atomic_load(&c->cancelled)
                  ? sherd__fail(&d, SHERD_EINTERRUPTED, NULL, "the task was cancelled")
              : c->program ? sherd__accelerator_run(l, c, &d)
                           : sherd__accelerator_compute(l, c, c->backend[1], c->backend[2], &d);
    c->took_us = c->clock ? 1e6 * (c->clock() - from) : 0;
    pthread_mutex_lock(&a->lock);
    l->call = NULL;
    l->deadline = 0;
    end_call(v, c, err, false, d.message[0] ? d.message : sherd_strerror(err));
    if (err == SHERD_ECLOSED) lose(v, d.message);
}

/* Waits for work. Frees kept memory if no work arrives for a moment. The lock is held. */
static void wait_for_work(accelerator_lane *l)
{
    accelerator *a = l->on->of;
    const double left = l->on->kept_at + KEEP_S - sherd__clock_s();
    struct timespec until = sherd__clock_after(left > 0 ? left : 0);
    if (!l->on->kept_len) {
        pthread_cond_wait(&a->work, &a->lock);
    } else if (left > 0) {
        pthread_cond_timedwait(&a->work, &a->lock, &until);
    } else {
        l->deadline = sherd__clock_s() + a->timeout_s;
        pthread_mutex_unlock(&a->lock);
        sherd__accelerator_evict(l, 0);
        pthread_mutex_lock(&a->lock);
        l->deadline = 0;
    }
}

static void *run_lane(void *ctx)
{
    accelerator_lane *l = ctx;
    accelerator_device *v = l->on;
    accelerator *a = v->of;
    pthread_mutex_lock(&l->busy);
    pthread_mutex_lock(&a->lock);
    for (;;) {
        (void)sherd__accelerator_free_released(l);
        sherd__call *c = v->first;
        if (c) {
            v->first = c->backend[0];
            if (!v->first) v->last = NULL;
            run_call(l, c);
        } else if (a->ending) {
            break;
        } else if (!v->released) {
            wait_for_work(l);
        }
    }
    l->ended = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    pthread_mutex_unlock(&l->busy);
    return NULL;
}

/* Abandons a lane that is in the driver for too long, and its device with it. The lock is held. */
static void check_lane(accelerator_lane *l, double now)
{
    accelerator_device *v = l->on;
    sherd__call *c = l->call;
    char why[SHERD__TEXT_MAX];
    if (l->deadline <= 0 || l->hung || now < l->deadline || pthread_mutex_trylock(&l->busy)) return;
    l->hung = true;
    pthread_mutex_unlock(&l->busy);
    const double should = c ? seconds_of(v, c) : 0;
    snprintf(why, sizeof why, "device %s does not respond for %.3g s, in which %s", v->what->core,
             v->of->timeout_s + SLOWER * should,
             c ? "it should have computed a task" : "it should have overwritten a block");
    v->stuck = true;
    l->call = NULL;
    pthread_cond_broadcast(&v->of->changed);
    lose(v, why);
    if (c) end_call(v, c, SHERD_ECLOSED, true, why);
}

/* Returns whether a call or memory keeps a lane busy, or is about to: the watchdog is woken with
 * the lanes. */
static bool any_in_driver(const accelerator *a)
{
    bool any = any_in_progress(a);
    for (uint32_t i = 0; i < a->count; i++) {
        any |= a->devices[i].released || a->devices[i].kept_len;
        for (uint32_t l = 0; l < ACCELERATOR_LANES; l++)
            any |= a->devices[i].lanes[l].deadline > 0 && !a->devices[i].lanes[l].hung;
    }
    return any;
}

static void *run_watchdog(void *ctx)
{
    accelerator *a = ctx;
    pthread_mutex_lock(&a->lock);
    while (!a->watch_ending) {
        struct timespec until = sherd__clock_after(WATCH_S);
        if (any_in_driver(a)) pthread_cond_timedwait(&a->work, &a->lock, &until);
        else pthread_cond_wait(&a->work, &a->lock);
        const double now = sherd__clock_s();
        for (uint32_t i = 0; i < a->count; i++)
            for (uint32_t l = 0; l < ACCELERATOR_LANES; l++)
                check_lane(&a->devices[i].lanes[l], now);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* ---- opening and closing --------------------------------------------------------------------- */

const sherd__device *sherd__accelerator_devices(void *ctx, uint32_t *count)
{
    const accelerator *a = ctx;
    *count = a->count;
    return a->list;
}

static void describe(accelerator_device *v)
{
    *v->what = (sherd__device){
        .threads = v->driver.units,
        .does = SHERD__DOES_RESIDUES | SHERD__DOES_BYTES |
                (v->driver.f64 ? SHERD__DOES_F64 | SHERD__DOES_MAPS | SHERD__DOES_PROGRAMS : 0),
        .memory = v->driver.memory,
        .cell = (uint64_t)16 << 20,
        .depth = 2 * ACCELERATOR_LANES
    };
    snprintf(v->what->name, sizeof v->what->name, "%s", v->of->driver->name);
    snprintf(v->what->core, sizeof v->what->core, "%s", v->driver.model);
}

/* Starts every kernel once, without work: drivers load or compile a kernel when it is first
 * started. The grid is wide, because PoCL 3.1 compiles a kernel again for a wider one, up to 65,535
 * items a side, and ends the process if another queue runs it at that time. */
static int load_kernels(accelerator_lane *l, sherd_diag *d)
{
    const uint64_t len = 4096;
    const uint32_t groups[2] = { 65535 / SHERD__GROUP, 1 };
    const sherd__kernel_job none = { .n = 0 };
    sherd__kernel_memory m = { .bad = l->bad };
    int err = sherd__accelerator_reserve(l->on, len, d);
    if (err) return err;
    err = sherd__lane_memory(l, len, &m.out, d);
    m.left = m.right = m.out;
    for (uint32_t k = l->on->driver.f64 ? 0 : SHERD__KERNEL_RESIDUES;
         k < SHERD__KERNELS_OWN && !err; k++)
        err = sherd__lane_launch(l, (sherd__kernel)k, &m, &none, groups, d);
    if (!err) err = sherd__lane_finish(l, d);
    if (m.out) sherd__accelerator_forget(l, m.out, len);
    sherd__accelerator_unreserve(l->on, len);
    sherd__accelerator_evict(l, 0);
    return err;
}

static int open_device(accelerator_device *v, const sherd__backend_options *opt, sherd_diag *d)
{
    int err = SHERD_OK;
    describe(v);
    for (uint32_t i = 0; i < ACCELERATOR_LANES && !err; i++)
        err = sherd__lane_open(&v->lanes[i], v, opt->threads, d);
    if (err) return err;
    pthread_mutex_lock(&v->lanes[0].busy);
    err = load_kernels(&v->lanes[0], d);
    if (!err) err = sherd__accelerator_selftest(v, opt, d);
    sherd__accelerator_evict(&v->lanes[0], 0);
    pthread_mutex_unlock(&v->lanes[0].busy);
    return err;
}

static int start_threads(accelerator *a, sherd_diag *d)
{
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t k = 0; k < ACCELERATOR_LANES; k++) {
            accelerator_lane *l = &a->devices[i].lanes[k];
            l->runs = pthread_create(&l->thread, NULL, run_lane, l) == 0;
            if (!l->runs) return sherd__fail(d, SHERD_ENOMEM, NULL, "cannot start a thread");
        }
    a->watched = pthread_create(&a->watchdog, NULL, run_watchdog, a) == 0;
    return a->watched ? SHERD_OK : sherd__fail(d, SHERD_ENOMEM, NULL, "cannot start a thread");
}

static void init_locks(accelerator *a)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&a->lock, NULL);
    pthread_mutex_init(&a->settling, NULL);
    pthread_cond_init(&a->work, &attr);
    pthread_cond_init(&a->changed, NULL);
    pthread_condattr_destroy(&attr);
    for (uint32_t i = 0; i < a->count; i++) {
        pthread_mutex_init(&a->devices[i].evicting, NULL);
        for (uint32_t l = 0; l < ACCELERATOR_LANES; l++)
            pthread_mutex_init(&a->devices[i].lanes[l].busy, NULL);
    }
}

int sherd__accelerator_start(void **ctx, const sherd__driver *driver,
                             const sherd__driver_device *devices, uint32_t count,
                             const sherd__backend_options *opt, sherd_diag *d)
{
    accelerator *a = *ctx = sherd__calloc(1, sizeof *a);
    assert(count >= 1 && count <= SHERD__DEVICES_MAX);
    if (!a) {
        for (uint32_t i = 0; i < count; i++) driver->close(devices[i].of);
        return sherd__fail_memory(d, "a backend");
    }
    a->driver = driver;
    a->count = count;
    a->timeout_s = opt->timeout_s > 0 ? opt->timeout_s : TIMEOUT_S;
    init_locks(a);
    for (uint32_t i = 0; i < count; i++) {
        a->devices[i].of = a;
        a->devices[i].driver = devices[i];
        a->devices[i].what = &a->list[i];
    }
    int err = SHERD_OK;
    for (uint32_t i = 0; i < count && !err; i++) err = open_device(&a->devices[i], opt, d);
    if (!err) err = start_threads(a, d);
    if (!err && opt->rates) err = sherd__accelerator_measure_busy(a, opt, d);
    if (!err) return SHERD_OK;
    sherd__accelerator_close(a);
    *ctx = NULL;
    return err == SHERD_ECLOSED ? SHERD_EDEVICE : err;
}

static void close_device(accelerator_device *v)
{
    const sherd__driver *driver = v->of->driver;
    for (uint32_t i = 0; i < v->kept_len; i++)
        driver->memory_free(v->lanes[0].driver, v->kept[i].memory);
    for (uint32_t i = 0; i < ACCELERATOR_LANES; i++) {
        sherd__lane_close(&v->lanes[i]);
        pthread_mutex_destroy(&v->lanes[i].busy);
    }
    pthread_mutex_destroy(&v->evicting);
    driver->close(v->driver.of);
}

/* Returns whether all lanes have ended but those of devices that are stuck. */
static bool lanes_ended(const accelerator *a)
{
    bool all = true;
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t k = 0; k < ACCELERATOR_LANES; k++) {
            const accelerator_lane *l = &a->devices[i].lanes[k];
            all &= !l->runs || l->ended || a->devices[i].stuck;
        }
    return all;
}

/* The watchdog ends last: a driver may hang while the last blocks are overwritten. */
static void end_lanes(accelerator *a)
{
    pthread_mutex_lock(&a->lock);
    a->ending = true;
    pthread_cond_broadcast(&a->work);
    while (!lanes_ended(a)) pthread_cond_wait(&a->changed, &a->lock);
    a->watch_ending = true;
    pthread_cond_broadcast(&a->work);
    pthread_mutex_unlock(&a->lock);
}

void sherd__accelerator_close(void *ctx)
{
    accelerator *a = ctx;
    bool abandoned = false;
    if (!a) return;
    end_lanes(a);
    if (a->watched) pthread_join(a->watchdog, NULL);
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t k = 0; k < ACCELERATOR_LANES; k++) {
            const accelerator_lane *l = &a->devices[i].lanes[k];
            const bool stuck = a->devices[i].stuck;
            abandoned |= stuck;
            if (l->runs && stuck) pthread_detach(l->thread);
            else if (l->runs) pthread_join(l->thread, NULL);
        }
    if (abandoned) return; /* the driver may use all of it until the process ends */
    for (uint32_t i = 0; i < a->count; i++) close_device(&a->devices[i]);
    pthread_mutex_destroy(&a->lock);
    pthread_mutex_destroy(&a->settling);
    pthread_cond_destroy(&a->work);
    pthread_cond_destroy(&a->changed);
    sherd__free(a);
}
