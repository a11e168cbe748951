/*
 * OpenBLAS requests a buffer for each thread that multiplies. Where address space is short (ulimit
 * -v, ulimit -d, strict overcommitment) it repeats the request without end: during a product, or,
 * for one of its own threads, from the moment it is loaded, so that the process cannot even exit.
 * These functions therefore check that there is room before OpenBLAS is called.
 */
#ifndef MATRIX_BLAS_ROOM_H
#define MATRIX_BLAS_ROOM_H

#include <stdbool.h>

#include "sherd/err.h"

/**
 * Waits until OpenBLAS's own threads have their buffers. For the start of a command: it takes a few
 * ms where room is short and no time elsewhere. Returns SHERD_ENOMEM where they cannot get them.
 * The process must then end by _exit, since the library's destructor waits for these threads.
 */
int sherd__blas_settle(sherd_diag *d) SHERD_MUST;

/** Returns whether `threads` more buffers can be allocated now. */
bool sherd__blas_room(unsigned threads);

/**
 * Enclose each call of a BLAS function; any thread may call them. enter returns SHERD_ENOMEM where
 * the call would not return; leave must not be called then. Callers that are inside at the same
 * time need one buffer each. OpenBLAS keeps the buffers that it has, so that room is checked only
 * when there are more callers than ever before.
 */
int sherd__blas_enter(void) SHERD_MUST;
void sherd__blas_leave(void);

#endif
