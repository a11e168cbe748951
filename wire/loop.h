/* Initialises event loops without the risk that libuv aborts the process. */
#ifndef WIRE_LOOP_H
#define WIRE_LOOP_H

#include <uv.h>

#include "sherd/err.h"

/**
 * Calls uv_loop_init after it has checked that enough descriptors for a loop are available. The
 * check is needed because libuv aborts the process if it cannot open the pipe of its signal lock,
 * which it creates with the first loop of a process. (Another thread may still take the descriptors
 * in between.)
 *
 * Errors: SHERD_ENOMEM  no memory, or too few descriptors: the hint names the limit; *loop must not
 * be closed then.
 */
int sherd__loop_init(uv_loop_t *loop, sherd_diag *d) SHERD_MUST;

#endif
