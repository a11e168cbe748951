/*
 * Resolves host names to addresses, each in a thread of its own, because the system's resolver
 * waits for name servers for an arbitrary time and cannot be cancelled. A caller that no longer
 * wants to wait drops the look-up; its thread ends when the resolver returns, and the answer is
 * discarded. The number of threads is therefore limited, in total and per peer.
 */
#ifndef WIRE_RESOLVE_H
#define WIRE_RESOLVE_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>

#include "sherd/err.h"

typedef struct sherd__lookup sherd__lookup;

/* Limits on running threads: per peer (the largest all-reduce group needs 12), and in total. */
enum { SHERD__LOOKUPS_OF = 32, SHERD__LOOKUPS = 128 };

/**
 * Starts a look-up of `host` for stream sockets at `port`. `done` (may be NULL) is called once when
 * the answer is available, from another thread or, if the host is a numeric address, from inside
 * this call. It must return quickly. `whose` is an address that identifies one peer; the peer's
 * look-ups are counted by it. NULL: a look-up of our own, which is not limited. The caller releases
 * *out with sherd__lookup_drop. Errors, after which `done` is not called: SHERD_ENOMEM; SHERD_EBUSY
 * if a limit is reached.
 */
int sherd__lookup_start(sherd__lookup **out, const char *host, uint16_t port, const void *whose,
                        void (*done)(void *ctx), void *ctx) SHERD_MUST;

/** Returns true if the answer is available. Sets *error to the result of getaddrinfo and, if that
 *  is 0, *list to the addresses, which belong to the look-up. */
bool sherd__lookup_done(sherd__lookup *l, int *error, const struct addrinfo **list);

/** Releases the look-up, answered or not. `done` is not called after that. NULL is allowed. */
void sherd__lookup_drop(sherd__lookup *l);

#endif
