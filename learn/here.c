/*
 * Layers with parameters, with products computed on this machine. The activation above is applied
 * to each part of a product while it is in cache. Its slope and the sums for biases take one pass
 * over the gradient, and in floats no operand is copied or transposed. Elements are computed by the
 * same operations in the same order as with the multiplier, so only the bits of float products may
 * differ. Kept operands have an exponent of their own, so fixed point with kept operands uses the
 * multiplier.
 */
#include <stdbool.h>

#include "core/pick.h"
#include "learn/layer.h"
#include "matrix/clones.h"
#include "matrix/funcs.h"
#include "matrix/local.h"

#define BLOCK 32u  /* columns that are summed at a time */
#define FEW 16384u /* too few numbers to wake a second thread for */

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
