/*
 * OpenBLAS asks for a buffer for each thread that multiplies, and where address space is short
 * (ulimit -v, ulimit -d, strict overcommitment) asks again for ever: in a product, or, for a thread
 * of its own, from the moment that it is loaded, so that the process cannot even end. Its room is
 * therefore looked for before it is asked to do anything.
 */
#ifndef MATRIX_BLAS_ROOM_H
#define MATRIX_BLAS_ROOM_H

#include <stdbool.h>

#include "sherd/err.h"

/**
 * For a command's first moments: waits until OpenBLAS's own threads have their buffers, which takes
 * a few ms where room is short and nothing elsewhere. SHERD_ENOMEM where they will not get them:
 * the process must then end by _exit, since the library's destructor waits for these threads.
 */
int sherd__blas_settle(sherd_diag *d) SHERD_MUST;

/** True where `threads` buffers more can be had now. */
bool sherd__blas_room(unsigned threads);

/**
 * Around each call of a BLAS function; any thread. enter: SHERD_ENOMEM where the call would not
 * come back, and then no leave. Callers that are inside together need a buffer each; OpenBLAS keeps
 * those that it has, so that room is looked for when there are more of them than ever before.
 */
int sherd__blas_enter(void) SHERD_MUST;
void sherd__blas_leave(void);

#endif
