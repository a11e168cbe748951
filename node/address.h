/* The address that a node listens on, from a number or a name. */
#ifndef NODE_ADDRESS_H
#define NODE_ADDRESS_H

#include <stdbool.h>
#include <uv.h>

#include "sherd/err.h"

#define SHERD__ADDRESS_TEXT 64 /* bytes, with its terminator */

/**
 * The number of `host`: the first one that the system's resolver has for a name. It may wait for a
 * name server as long as it likes: the loop runs meanwhile, until it is there or *stop, which what
 * runs in the loop may set. SHERD_ENET: no such name; SHERD_EINTERRUPTED: *stop; SHERD_ENOMEM.
 */
int sherd__address_find(char out[SHERD__ADDRESS_TEXT], const char *host, uv_loop_t *loop,
                        const bool *stop, sherd_diag *d) SHERD_MUST;

#endif
