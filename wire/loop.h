/* Event loops, made where libuv can make them. */
#ifndef WIRE_LOOP_H
#define WIRE_LOOP_H

#include <uv.h>

#include "sherd/err.h"

/**
 * uv_loop_init, with a look first at whether there are as many descriptors as a loop takes: libuv
 * ends the process where it cannot open the pipe of its signal lock, which it makes with the first
 * loop of a process. (Another thread may still take them in between.)
 *
 * Errors: SHERD_ENOMEM  no memory, or too few descriptors: the hint names the limit; *loop must not
 *         be closed then.
 */
int sherd__loop_init(uv_loop_t *loop, sherd_diag *d) SHERD_MUST;

#endif
