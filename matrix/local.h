/*
 * Behind the local multiplier (sherd_multiplier_local): its threads, and products that come with a
 * finishing step, and in floats need not be f64. Code that is written against
 * sherd_multiplier asks here whether the short way is open.
 */
#ifndef MATRIX_LOCAL_H
#define MATRIX_LOCAL_H

#include <stdbool.h>

#include "matrix/tiled.h"
#include "sherd/multiplier.h"

/** Whether m computes on this machine in floats. */
bool sherd__local_is(sherd_multiplier m);
/** Whether m computes on this machine in fixed point. */
bool sherd__local_fixed(sherd_multiplier m);
/** As many threads as sherd__blas_threads says, m's own, for passes over elements, if m computes on
 *  this machine (in fixed point too); NULL for another multiplier, with one thread, and without
 *  memory. */
sherd__team *sherd__local_team(sherd_multiplier m);
/** sherd__tiled_multiply by the threads and in the memory of m, for which sherd__local_is: shapes
 *  are the caller's concern, SHERD_ENOMEM. For which sherd__local_fixed: sherd__reference_finished,
 *  with the bits and errors of sherd_multiplier_multiply. */
int sherd__local_multiply(sherd_multiplier m, const sherd__tiled *p, sherd_diag *d) SHERD_MUST;

#endif
