/*
 * Open-addressing table with backward-shift deletion: no tombstones, so that a session which lives
 * for millions of tasks probes as few slots at its end as at its start. It never shrinks.
 */
#include "wire/tasks.h"

#include "core/alloc.h"

enum { CAP_FIRST = 64 };

static size_t home(const sherd__tasks *t, uint64_t job, uint32_t task, uint32_t attempt)
{
    uint64_t h = (job ^ ((uint64_t)attempt << 32 | task)) * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return (size_t)(h ^ h >> 32) & (t->cap - 1);
}

static size_t home_of(const sherd__tasks *t, const sherd__open_task *o)
{
    return home(t, o->task.job, o->task.task, o->task.attempt);
}

void sherd__tasks_fini(sherd__tasks *t)
{
    sherd__free(t->slots);
    *t = (sherd__tasks){ 0 };
}

static void place(sherd__tasks *t, const sherd__open_task *o)
{
    size_t i = home_of(t, o);
    while (t->slots[i].used) i = (i + 1) & (t->cap - 1);
    t->slots[i] = *o;
}

static int grow(sherd__tasks *t)
{
    sherd__tasks bigger = { .cap = t->cap ? 2 * t->cap : CAP_FIRST, .len = t->len };
    bigger.slots = sherd__calloc(bigger.cap, sizeof *bigger.slots);
    if (!bigger.slots) return SHERD_ENOMEM;
    for (size_t i = 0; i < t->cap; i++)
        if (t->slots[i].used) place(&bigger, &t->slots[i]);
    sherd__free(t->slots);
    *t = bigger;
    return SHERD_OK;
}

int sherd__tasks_add(sherd__tasks *t, const sherd__task *task, uint64_t sequence)
{
    if (sherd__tasks_find(t, task->job, task->task, task->attempt)) return SHERD_EINVAL;
    if (t->len >= SHERD__TASKS_MAX) return SHERD_EBUSY;
    if (4 * (t->len + 1) > 3 * t->cap) {
        int err = grow(t);
        if (err) return err;
    }
    place(t, &(sherd__open_task){ .task = *task, .sequence = sequence, .used = true });
    t->len++;
    return SHERD_OK;
}

sherd__open_task *sherd__tasks_find(const sherd__tasks *t, uint64_t job, uint32_t task,
                                    uint32_t attempt)
{
    if (t->len == 0) return NULL;
    for (size_t i = home(t, job, task, attempt); t->slots[i].used; i = (i + 1) & (t->cap - 1)) {
        const sherd__task *have = &t->slots[i].task;
        if (have->job == job && have->task == task && have->attempt == attempt)
            return &t->slots[i];
    }
    return NULL;
}

void sherd__tasks_remove(sherd__tasks *t, sherd__open_task *open)
{
    size_t mask = t->cap - 1, hole = (size_t)(open - t->slots);
    for (size_t i = (hole + 1) & mask; t->slots[i].used; i = (i + 1) & mask) {
        size_t wanted = home_of(t, &t->slots[i]);
        if (((i - wanted) & mask) < ((i - hole) & mask)) continue; /* would move before its home */
        t->slots[hole] = t->slots[i];
        hole = i;
    }
    t->slots[hole].used = false;
    t->len--;
}
