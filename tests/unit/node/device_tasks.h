/* Tasks of each kind that a device computes, with operands and results of up to a megabyte. */
#ifndef TESTS_UNIT_NODE_DEVICE_TASKS_H
#define TESTS_UNIT_NODE_DEVICE_TASKS_H

#include <stdbool.h>

#include "crypto/fragment.h"
#include "wire/session.h"

typedef struct task_kind {
    const char *name;
    uint32_t op;
    uint8_t left, right, result; /* dtypes; right 0: one operand */
    uint64_t n, k, m;            /* the left operand is n x k, or k x n where it is transposed */
    uint32_t primes;
    uint32_t groups; /* of the rows and of the terms, of different sizes */
    sherd_windows windows;
    bool same; /* both operands are one block */
} task_kind;

enum { TASK_KINDS = 14 };
extern const task_kind task_kinds[TASK_KINDS];

typedef struct device_task {
    const task_kind *kind;
    sherd__task task;
    sherd__fragment *left, *right;
    uint8_t *out, *whole; /* of task.result.len bytes, for two results */
} device_task;

/** Makes a task, with values from draw(). Free it with device_task_fini. */
void device_task_init(device_task *t, const task_kind *k);
void device_task_fini(device_task *t);

#endif
