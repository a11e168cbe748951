/* Resolves the address that a node listens on, and finds the one that others reach it at. */
#ifndef NODE_ADDRESS_H
#define NODE_ADDRESS_H

#include <stdbool.h>
#include <uv.h>

#include "sherd/err.h"

#define SHERD__ADDRESS_TEXT 64 /* bytes, including the terminator */

/**
 * Finds the numeric address of `host`. For a name this is the first address that the system's
 * resolver returns. The resolver may wait for a name server for any length of time: the loop runs
 * meanwhile, until the answer arrives or *stop is set by a callback of the loop.
 *
 * Errors: SHERD_ENET if the name does not exist; SHERD_EINTERRUPTED if *stop was set;
 * SHERD_ENOMEM.
 */
int sherd__address_find(char out[SHERD__ADDRESS_TEXT], const char *host, uv_loop_t *loop,
                        const bool *stop, sherd_diag *d) SHERD_MUST;

/** Copies the first address of this machine that other machines may reach: not of loopback, not
 *  link-local, IPv4 before IPv6. Returns the number of such addresses; 0: *out is unchanged. */
unsigned sherd__address_of_machine(char out[SHERD__ADDRESS_TEXT]);

#endif
