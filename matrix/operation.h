/* Matrices of an operation, where functions pass them on together. */
#ifndef MATRIX_OPERATION_H
#define MATRIX_OPERATION_H

#include <stdbool.h>
#include <stddef.h>

#include "sherd/multiplier.h"

/** Operands A and B, and row-major memory for the result, whose rows are ld numbers apart. */
typedef struct sherd__matrices {
    sherd_view a, b;
    double *out;
    size_t ld;
} sherd__matrices;

/** A product with a kept left operand: of `rows` of it, or of their transpose, and B. */
typedef struct sherd__kept_product {
    sherd_rows rows;
    bool transposed;
    sherd_view b;
    double *out;
    size_t ld;
} sherd__kept_product;

#endif
