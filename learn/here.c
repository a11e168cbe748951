/*
 * Layers with parameters where products are computed on this machine: the activation above is
 * applied to each part of a product while it is in cache, its slope and the sums for biases are one
 * pass over the gradient, and in floats no operand is copied or turned. Elements are computed by
 * the same operations in the same order as on the long way, so that only bits of products of floats
 * may differ. What is kept has an exponent of its own, so fixed point then goes the long way.
 */
#include <stdbool.h>

#include "core/pick.h"
#include "learn/layer.h"
#include "matrix/clones.h"
#include "matrix/funcs.h"
#include "matrix/local.h"

#define BLOCK 32u  /* columns that are summed together */
#define FEW 16384u /* numbers that no second thread is woken for */

bool sherd__here_can(const sherd__layer_call *call, sherd_view x)
{
    const sherd__engine *e = &call->engine;
    bool exact = sherd__local_fixed(e->products) && !e->keeps && !call->kept;
    return (exact || sherd__local_is(e->products)) && sherd__tiled_takes(x);
}

#define REAL double
#define R(name) name
#define OF(name) name##_f64
#define NUMBER SHERD_F64
#include "learn/here.inc"
#undef REAL
#undef R
#undef OF
#undef NUMBER

#define REAL float
#define R(name) name##32
#define OF(name) name##_f32
#define NUMBER SHERD_F32
#include "learn/here.inc"
