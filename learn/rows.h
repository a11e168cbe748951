/*
 * Lists of rows in a compact form that fits in messages: every receiver makes the same list from
 * it. A step's rows are a range of a list.
 */
#ifndef LEARN_ROWS_H
#define LEARN_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sherd__rows_kind {
    SHERD__ROWS_GIVEN,    /* 0, 1, 2, ... */
    SHERD__ROWS_SHUFFLED, /* each row once, in an order derived from the key */
    SHERD__ROWS_DRAWN     /* each entry drawn with the key: a row may occur never or often */
} sherd__rows_kind;

typedef struct sherd__rows {
    sherd__rows_kind kind;
    uint32_t examples; /* rows are below it */
    uint32_t len;      /* of the list; equal to `examples`, unless drawn */
    uint8_t key[32];   /* derived from the run's seed by a one-way function; GIVEN: zeros */
} sherd__rows;

/** Returns whether the numbers are valid: above 0, and equal where they must be. */
bool sherd__rows_valid(const sherd__rows *r);
bool sherd__rows_equal(const sherd__rows *a, const sherd__rows *b);
/** Writes the list, len numbers. */
void sherd__rows_list(const sherd__rows *r, uint32_t *out);

#endif
