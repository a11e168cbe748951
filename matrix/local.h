/*
 * The internals of the local multiplier (sherd_multiplier_local): its threads, and products with a
 * finishing step, which in floats need not be f64. Code that uses sherd_multiplier checks here
 * whether it can take this shorter path.
 */
#ifndef MATRIX_LOCAL_H
#define MATRIX_LOCAL_H

#include <stdbool.h>

#include "matrix/tiled.h"
#include "sherd/multiplier.h"

/** Returns whether m computes on this machine in floats. */
bool sherd__local_is(sherd_multiplier m);
/** Returns whether m computes on this machine in fixed point. */
bool sherd__local_fixed(sherd_multiplier m);
/** Returns m's team of threads, of the size that sherd__blas_threads returns, for passes over
 *  elements, if m computes on this machine (in fixed point too). Returns NULL for another
 *  multiplier, for one thread, and if there is no memory. */
sherd__team *sherd__local_team(sherd_multiplier m);
/** Does sherd__tiled_multiply with the threads and the memory of m, if sherd__local_is(m). The
 *  caller checks shapes. Errors: SHERD_ENOMEM. If sherd__local_fixed(m), does
 *  sherd__reference_finished, with the bits and errors of sherd_multiplier_multiply. */
int sherd__local_multiply(sherd_multiplier m, const sherd__tiled *p, sherd_diag *d) SHERD_MUST;

#endif
