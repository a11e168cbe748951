/*
 * A lane's use of its driver. The lane's thread gives up `busy` while it is in the driver.
 *
 * A copy goes through the parts of the lane's staging memory in turn: the host fills or empties one
 * while the device copies others. A part of 1 MiB takes 20 us on a fast link (50 GB/s), longer than
 * the driver's calls for it, and larger parts leave the caches of a processor, whose memcpy is then
 * slower. There are four of them because a thread takes longer than 20 us to wake up.
 */
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "node/backends/accelerator_internal.h"

#define PART ((size_t)1 << 20)
#define STAGING (SHERD__STAGING_PARTS * PART)

/* Copying between two memories of the host: 4 threads (of 10 GB/s and more) can keep a link of 50
 * GB/s busy, and both lanes of a device together use at most half of the node's threads. */
#define COPIERS_MOST 4u
#define SLICE ((size_t)256 << 10) /* bytes that a thread takes at a time */

void sherd__lane_enter(accelerator_lane *l)
{
    pthread_mutex_unlock(&l->busy);
}

void sherd__lane_leave(accelerator_lane *l)
{
    pthread_mutex_lock(&l->busy);
    while (l->hung) {
        pthread_mutex_unlock(&l->busy);
        pause();
        pthread_mutex_lock(&l->busy);
    }
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Notes that kernels were started, or that all of the lane's have ended. */
static void set_computes(accelerator_lane *l, bool computes)
{
    accelerator_device *v = l->on;
    if (l->computes == computes) return;
    l->computes = computes;
    pthread_mutex_lock(&v->of->lock);
    const double now = sherd__clock_s();
    if (computes) {
        if (v->computing++ == 0) v->computing_from = now;
    } else {
        l->computing_s += now - l->turned;
        if (--v->computing == 0) v->busy_s += now - v->computing_from;
    }
    pthread_mutex_unlock(&v->of->lock);
    l->turned = now;
}

/* Adds the time of a copy, which began after kernels that it waited for. */
static void add_copying(accelerator_lane *l, double from)
{
    l->copying_s += sherd__clock_s() - (l->turned > from ? l->turned : from);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* A copy in pieces; piece i goes through part i % SHERD__STAGING_PARTS. */
typedef struct copying {
    accelerator_lane *lane;
    void *memory; /* of the device */
    uint64_t at, len;
    uint64_t started, waited; /* pieces */
} copying;

static copying begin(accelerator_lane *l, void *memory, uint64_t at, uint64_t len)
{
    const size_t used = len < STAGING ? (size_t)len : STAGING;
    if (used > l->used) l->used = used;
    return (copying){ .lane = l, .memory = memory, .at = at, .len = len };
}

static size_t piece_len(const copying *c, uint64_t i)
{
    return c->len - i * PART < PART ? (size_t)(c->len - i * PART) : PART;
}

static uint8_t *part_of(const copying *c, uint64_t i)
{
    return c->lane->staging + i % SHERD__STAGING_PARTS * PART;
}

static bool more(const copying *c, uint64_t i)
{
    return i * PART < c->len;
}

typedef int copy_function(void *lane, const sherd__driver_copy *c, sherd_diag *d);

static int start(copying *c, copy_function *copy, sherd_diag *d)
{
    accelerator_lane *l = c->lane;
    const uint64_t i = c->started;
    const sherd__driver_copy piece = { .memory = c->memory,
                                       .at = c->at + i * PART,
                                       .staging = part_of(c, i),
                                       .len = piece_len(c, i),
                                       .part = (uint32_t)(i % SHERD__STAGING_PARTS) };
    sherd__lane_enter(l);
    int err = copy(l->driver, &piece, d);
    sherd__lane_leave(l);
    if (!err) c->started++;
    return err;
}

/* Waits for the oldest piece that the device copies. */
static int wait_for_piece(copying *c, sherd_diag *d)
{
    accelerator_lane *l = c->lane;
    sherd__lane_enter(l);
    int err = sherd__lane_driver(l)->wait(l->driver, c->waited++ % SHERD__STAGING_PARTS, d);
    sherd__lane_leave(l);
    set_computes(l, false); /* a copy follows what was started before it */
    return err;
}

/* Waits until the device uses none of the staging memory. */
static int end(copying *c, int err, sherd_diag *d)
{
    while (!err && c->waited < c->started) err = wait_for_piece(c, d);
    if (err) (void)sherd__lane_finish(c->lane, NULL);
    return err;
}

typedef struct sliced {
    uint8_t *to;
    const uint8_t *from;
    size_t len;
} sliced;

static void copy_slice(void *ctx, size_t i, unsigned thread)
{
    const sliced *s = ctx;
    const size_t at = i * SLICE;
    (void)thread;
    memcpy(s->to + at, s->from + at, s->len - at < SLICE ? s->len - at : SLICE);
}

static void copy_here(const accelerator_lane *l, uint8_t *to, const uint8_t *from, size_t len)
{
    sliced s = { to, from, len };
    sherd__team_run(l->copiers, (len + SLICE - 1) / SLICE, copy_slice, &s);
}

int sherd__lane_write(accelerator_lane *l, void *memory, uint64_t at, const uint8_t *from,
                      uint64_t len, sherd_diag *d)
{
    copying c = begin(l, memory, at, len);
    const double began = sherd__clock_s();
    int err = SHERD_OK;
    while (!err && more(&c, c.started)) {
        const uint64_t i = c.started;
        err = sherd__lane_check_cancelled(l, d);
        if (!err && i >= SHERD__STAGING_PARTS) err = wait_for_piece(&c, d);
        if (!err) copy_here(l, part_of(&c, i), from + i * PART, piece_len(&c, i));
        if (!err) err = start(&c, sherd__lane_driver(l)->write, d);
    }
    err = end(&c, err, d);
    add_copying(l, began);
    return err;
}

int sherd__lane_read(accelerator_lane *l, void *memory, uint64_t at, uint8_t *to, uint64_t len,
                     sherd_diag *d)
{
    copying c = begin(l, memory, at, len);
    const double began = sherd__clock_s();
    int err = SHERD_OK;
    for (uint64_t i = 0; !err && more(&c, i); i++) {
        err = sherd__lane_check_cancelled(l, d);
        while (!err && c.started < i + SHERD__STAGING_PARTS && more(&c, c.started))
            err = start(&c, sherd__lane_driver(l)->read, d);
        if (!err) err = wait_for_piece(&c, d);
        if (!err) copy_here(l, to + i * PART, part_of(&c, i), piece_len(&c, i));
    }
    err = end(&c, err, d);
    add_copying(l, began);
    return err;
}

void sherd__lane_wipe(accelerator_lane *l)
{
    if (l->used) sherd__wipe(l->staging, l->used);
    l->used = 0;
}

int sherd__lane_check_cancelled(const accelerator_lane *l, sherd_diag *d)
{
    return l->call && atomic_load(&l->call->cancelled)
               ? sherd__fail(d, SHERD_EINTERRUPTED, NULL, "the task was cancelled")
               : SHERD_OK;
}

/* ---- other functions of the driver ----------------------------------------------------------- */

int sherd__lane_zero(accelerator_lane *l, void *memory, uint64_t len, sherd_diag *d)
{
    sherd__lane_enter(l);
    int err = sherd__lane_driver(l)->zero(l->driver, memory, (len + 3) / 4 * 4, d);
    sherd__lane_leave(l);
    return err;
}

int sherd__lane_launch(accelerator_lane *l, sherd__kernel kernel, const sherd__kernel_memory *m,
                       const sherd__kernel_job *job, const uint32_t groups[2], sherd_diag *d)
{
    if (groups[0] == 0 || groups[1] == 0) return SHERD_OK;
    set_computes(l, true);
    sherd__lane_enter(l);
    int err = sherd__lane_driver(l)->launch(l->driver, kernel, m, job, groups, d);
    sherd__lane_leave(l);
    return err;
}

int sherd__lane_product(accelerator_lane *l, const sherd__library_product *p, sherd_diag *d)
{
    set_computes(l, true);
    sherd__lane_enter(l);
    int err = sherd__lane_driver(l)->library_product(l->driver, p, d);
    sherd__lane_leave(l);
    l->products += !err;
    return err;
}

int sherd__lane_finish(accelerator_lane *l, sherd_diag *d)
{
    sherd__lane_enter(l);
    int err = sherd__lane_driver(l)->finish(l->driver, d);
    sherd__lane_leave(l);
    set_computes(l, false);
    return err;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static int open_staging(accelerator_lane *l, uint32_t threads, sherd_diag *d)
{
    const sherd__driver *driver = sherd__lane_driver(l);
    void *staging = NULL;
    int err = SHERD_OK;
    if (driver->staging_new) err = driver->staging_new(l->driver, STAGING, &staging, d);
    else if (!(staging = sherd__alloc(STAGING)))
        err = sherd__fail_memory(d, "memory for copies to a device");
    l->staging = staging;
    if (threads == 0) threads = sherd__cpu_usable();
    threads /= 2 * ACCELERATOR_LANES;
    if (!err && threads > 1 &&
        sherd__team_new(&l->copiers, threads < COPIERS_MOST ? threads : COPIERS_MOST))
        err = sherd__fail_memory(d, "threads for copies to a device");
    return err;
}

int sherd__lane_open(accelerator_lane *l, accelerator_device *v, uint32_t threads, sherd_diag *d)
{
    l->on = v;
    int err = v->of->driver->lane_new(v->driver.of, &l->driver, d);
    if (!err) err = open_staging(l, threads, d);
    return err ? err : v->of->driver->memory_new(l->driver, 64, &l->bad, d);
}

void sherd__lane_close(accelerator_lane *l)
{
    const sherd__driver *driver = l->on ? sherd__lane_driver(l) : NULL;
    if (!driver) return;
    sherd__accelerator_library_close(l);
    if (l->bad) driver->memory_free(l->driver, l->bad);
    sherd__team_free(l->copiers);
    if (!l->staging || !driver->staging_free) sherd__free(l->staging);
    else driver->staging_free(l->driver, l->staging);
    if (l->driver) driver->lane_free(l->driver);
}
