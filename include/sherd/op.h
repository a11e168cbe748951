/* The operations that nodes compute: products, and element-wise operations in float64. */
#ifndef SHERD_OP_H
#define SHERD_OP_H

#include "sherd/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The numbers are sent to nodes and stored in files, and never change. */
typedef enum sherd_op {
    SHERD_OP_PRODUCT = 1, /* A*B */
    /* element-wise */
    SHERD_OP_SIGMOID = 16, /* 1/(1+exp(-a)) */
    SHERD_OP_MINUS = 17,   /* a - b */
    SHERD_OP_SQUARE = 18,  /* a * a */
    SHERD_OP_TIMES = 19,   /* a * b, element by element */
    SHERD_OP_RELU = 20,    /* max(a, 0); NaN stays NaN */
    SHERD_OP_TANH = 21,
    SHERD_OP_EXP = 22
} sherd_op;

/** Returns "dot", "sigmoid", "minus", "square", "multiply" (SHERD_OP_TIMES, as in numpy), "relu",
 *  "tanh" or "exp"; NULL for a number that is not an operation. */
SHERD_API const char *sherd_op_name(sherd_op op);
/** Returns the operation of that name, or 0. */
SHERD_API sherd_op sherd_op_find(const char *name);
/** Returns the number of operands, 1 or 2; 0 for a number that is not an operation. */
SHERD_API unsigned sherd_op_operands(sherd_op op);

#ifdef __cplusplus
}
#endif

#endif
