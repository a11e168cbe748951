/*
 * Memory of a device. Allocating and freeing it take long and wait for kernels of all lanes, so
 * memory that is returned is kept for the next allocation of the same size: results of a job, and
 * most of its blocks, have few sizes. Kept memory is overwritten. It is not part of what is in use:
 * a lane frees as much of it as an allocation needs to stay within the budget, all of it where the
 * driver has no memory, and all of it when it was not needed for a moment.
 */
#include <assert.h>
#include <string.h>

#include "core/clock.h"
#include "core/diag.h"
#include "node/backends/accelerator_internal.h"

int sherd__accelerator_take(accelerator_device *v, uint64_t len, sherd_diag *d)
{
    if (len > v->driver.memory || v->used > v->driver.memory - len)
        return sherd__fail(d, SHERD_ENOMEM, NULL,
                           "%llu bytes: %llu of the device's %llu are in use",
                           (unsigned long long)len, (unsigned long long)v->used,
                           (unsigned long long)v->driver.memory);
    v->used += len;
    return SHERD_OK;
}

int sherd__accelerator_reserve(accelerator_device *v, uint64_t len, sherd_diag *d)
{
    pthread_mutex_lock(&v->of->lock);
    int err = sherd__accelerator_take(v, len, d);
    pthread_mutex_unlock(&v->of->lock);
    return err;
}

void sherd__accelerator_unreserve(accelerator_device *v, uint64_t len)
{
    pthread_mutex_lock(&v->of->lock);
    assert(len <= v->used);
    v->used -= len;
    pthread_mutex_unlock(&v->of->lock);
}

/* ---- kept memory ----------------------------------------------------------------------------- */

/* Returns what is allocated for len bytes. */
static uint64_t size_of(uint64_t len)
{
    return (len + 16) / 16 * 16;
}

/* Removes piece i of kept memory, and returns it. The lock is held. */
static void *remove_kept(accelerator_device *v, uint32_t i)
{
    void *memory = v->kept[i].memory;
    v->kept_bytes -= v->kept[i].len;
    v->kept_len--;
    memmove(&v->kept[i], &v->kept[i + 1], (v->kept_len - i) * sizeof *v->kept);
    return memory;
}

/* Returns kept memory of this size, or NULL. */
static void *find_kept(accelerator_device *v, uint64_t size)
{
    void *memory = NULL;
    pthread_mutex_lock(&v->of->lock);
    for (uint32_t i = v->kept_len; i-- > 0 && !memory;)
        if (v->kept[i].len == size) memory = remove_kept(v, i);
    pthread_mutex_unlock(&v->of->lock);
    return memory;
}

/* Keeps memory. Returns what is to be freed in its place, or NULL. */
static void *keep(accelerator_device *v, void *memory, uint64_t size)
{
    pthread_mutex_lock(&v->of->lock);
    void *oldest = v->kept_len == ACCELERATOR_KEPT ? remove_kept(v, 0) : NULL;
    v->kept[v->kept_len++] = (accelerator_kept){ memory, size };
    v->kept_bytes += size;
    v->kept_at = sherd__clock_s();
    pthread_mutex_unlock(&v->of->lock);
    return oldest;
}

/* Removes the oldest piece if more than `most` bytes are kept. */
static void *take_oldest(accelerator_device *v, uint64_t most)
{
    pthread_mutex_lock(&v->of->lock);
    void *memory = v->kept_bytes > most ? remove_kept(v, 0) : NULL;
    if (memory) v->evictions++;
    pthread_mutex_unlock(&v->of->lock);
    return memory;
}

void sherd__accelerator_evict(accelerator_lane *l, uint64_t most)
{
    accelerator_device *v = l->on;
    sherd__lane_enter(l);
    pthread_mutex_lock(&v->evicting); /* memory that another lane frees is free afterwards */
    for (void *memory; (memory = take_oldest(v, most));)
        sherd__lane_driver(l)->memory_free(l->driver, memory);
    pthread_mutex_unlock(&v->evicting);
    sherd__lane_leave(l);
}

static uint64_t evictions(accelerator_device *v)
{
    pthread_mutex_lock(&v->of->lock);
    const uint64_t n = v->evictions;
    pthread_mutex_unlock(&v->of->lock);
    return n;
}

/* Returns how much may be kept beside what is in use. */
static uint64_t keepable(accelerator_device *v)
{
    pthread_mutex_lock(&v->of->lock);
    const uint64_t n = v->driver.memory - v->used;
    pthread_mutex_unlock(&v->of->lock);
    return n;
}

/* Frees what was released, and waits until other lanes have. Returns whether there was any. */
static bool free_released(accelerator_lane *l)
{
    accelerator_device *v = l->on;
    pthread_mutex_lock(&v->of->lock);
    bool any = sherd__accelerator_free_released(l);
    pthread_mutex_unlock(&v->of->lock);
    sherd__lane_enter(l);
    pthread_mutex_lock(&v->of->lock);
    any |= v->freeing > 0;
    while (v->freeing > 0 && !v->lost) pthread_cond_wait(&v->of->changed, &v->of->lock);
    pthread_mutex_unlock(&v->of->lock);
    sherd__lane_leave(l);
    return any;
}

/* ---- allocating ------------------------------------------------------------------------------ */

int sherd__lane_memory(accelerator_lane *l, uint64_t len, void **out, sherd_diag *d)
{
    accelerator_device *v = l->on;
    int err;
    uint64_t before;
    bool again;
    sherd_diag why; /* of the last attempt */
    *out = NULL;
    if (len > v->driver.largest)
        return sherd__fail(d, SHERD_ENOMEM, NULL,
                           "%llu bytes: the device has at most %llu in one piece",
                           (unsigned long long)len, (unsigned long long)v->driver.largest);
    *out = find_kept(v, size_of(len));
    if (*out) return SHERD_OK;
    sherd__accelerator_evict(l, keepable(v));
    do {
        before = evictions(v);
        why = (sherd_diag){ .code = 0 };
        sherd__lane_enter(l);
        err = sherd__lane_driver(l)->memory_new(l->driver, size_of(len), out, &why);
        sherd__lane_leave(l);
        again = err == SHERD_ENOMEM && free_released(l);
        if (err == SHERD_ENOMEM) sherd__accelerator_evict(l, 0);
    } while (err == SHERD_ENOMEM && (again || evictions(v) != before));
    if (!err) return SHERD_OK;
    if (err != SHERD_ENOMEM)
        return sherd__fail(d, err, why.hint[0] ? why.hint : NULL, "%s", why.message);
    return sherd__fail(d, err, NULL, "%s lacks %llu bytes: %.200s", v->driver.model,
                       (unsigned long long)len, why.message);
}

void sherd__accelerator_forget(accelerator_lane *l, void *memory, uint64_t len)
{
    int err = sherd__lane_zero(l, memory, len, NULL);
    if (!err) err = sherd__lane_finish(l, NULL);
    if (!err) memory = keep(l->on, memory, size_of(len));
    if (!memory) return;
    sherd__lane_enter(l); /* after an error the device is lost: its memory is not read again */
    sherd__lane_driver(l)->memory_free(l->driver, memory);
    sherd__lane_leave(l);
}
