/*
 * Lists of rows in a form that is small and travels: whoever has it makes the same list. A step's
 * rows are a stretch of one.
 */
#ifndef LEARN_ROWS_H
#define LEARN_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sherd__rows_kind {
    SHERD__ROWS_GIVEN,    /* 0, 1, 2, ... */
    SHERD__ROWS_SHUFFLED, /* each row once, in an order that the key decides */
    SHERD__ROWS_DRAWN     /* each number drawn by the key: some rows never, some often */
} sherd__rows_kind;

typedef struct sherd__rows {
    sherd__rows_kind kind;
    uint32_t examples; /* rows are below it */
    uint32_t len;      /* of the list; `examples`, unless drawn */
    uint8_t key[32];   /* one-way of the run's seed; GIVEN: zeros */
} sherd__rows;

/** Whether these are numbers of a list: above 0, and equal where they have to be. */
bool sherd__rows_valid(const sherd__rows *r);
bool sherd__rows_equal(const sherd__rows *a, const sherd__rows *b);
/** Writes the list, len numbers. */
void sherd__rows_list(const sherd__rows *r, uint32_t *out);

#endif
