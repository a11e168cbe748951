/* Implements tasks.h on core/grouped.h. An item's number consists of attempt and task. */
#include "wire/tasks.h"

#include "core/alloc.h"

static uint64_t number_of(uint32_t task, uint32_t attempt)
{
    return (uint64_t)attempt << 32 | task;
}

static sherd__open_task *open_of(sherd__grouped_item *item)
{
    return (sherd__open_task *)(void *)item;
}

void sherd__tasks_fini(sherd__tasks *t)
{
    (void)sherd__tasks_reap(t, SIZE_MAX);
    sherd__grouped_fini(&t->table);
}

size_t sherd__tasks_reap(sherd__tasks *t, size_t most)
{
    size_t n = 0;
    sherd__grouped_give_up_all(&t->table);
    for (sherd__open_task *open; n < most && (open = sherd__tasks_given_up(t)); n++)
        sherd__tasks_remove(t, open);
    return n;
}

int sherd__tasks_add(sherd__tasks *t, const sherd__task *task, uint64_t sequence)
{
    sherd__grouped *g = &t->table;
    if (sherd__tasks_find(t, task->job, task->task, task->attempt)) return SHERD_EINVAL;
    if (g->len >= SHERD__TASKS_MAX) return SHERD_EBUSY;
    if (!sherd__budget_take(&g->budget, sizeof(sherd__open_task))) return SHERD_ENOMEM;
    sherd__open_task *open = sherd__alloc(sizeof *open);
    if (open) {
        *open = (sherd__open_task){ .task = *task, .sequence = sequence };
        if (!sherd__grouped_add(g, &open->item, task->job, number_of(task->task, task->attempt)))
            return SHERD_OK;
    }
    sherd__free(open);
    sherd__budget_give(&g->budget, sizeof *open);
    return SHERD_ENOMEM;
}

sherd__open_task *sherd__tasks_find(const sherd__tasks *t, uint64_t job, uint32_t task,
                                    uint32_t attempt)
{
    return open_of(sherd__grouped_find(&t->table, job, number_of(task, attempt)));
}

void sherd__tasks_remove(sherd__tasks *t, sherd__open_task *open)
{
    sherd__grouped_remove(&t->table, &open->item);
    sherd__free(open);
    sherd__budget_give(&t->table.budget, sizeof *open);
}

sherd__open_task *sherd__tasks_first(const sherd__tasks *t, uint64_t job)
{
    return open_of(sherd__grouped_first(&t->table, job));
}

sherd__open_task *sherd__tasks_next(const sherd__open_task *open)
{
    return open_of(open->item.next);
}

void sherd__tasks_give_up(sherd__tasks *t, uint64_t job)
{
    (void)sherd__grouped_give_up(&t->table, job);
}

sherd__open_task *sherd__tasks_given_up(const sherd__tasks *t)
{
    return open_of(sherd__grouped_given_up(&t->table));
}
