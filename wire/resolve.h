/*
 * Host names to addresses, in a thread of its own for each: the system's resolver waits for name
 * servers as long as it likes and cannot be told to stop. Whoever has waited long enough lets go,
 * and the thread ends by itself, unheard. So what a peer has looked up is bounded by threads.
 */
#ifndef WIRE_RESOLVE_H
#define WIRE_RESOLVE_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>

#include "sherd/err.h"

typedef struct sherd__lookup sherd__lookup;

/* Threads under way: of one peer (the largest circle asks for 12 names at once), and of all. */
enum { SHERD__LOOKUPS_OF = 32, SHERD__LOOKUPS = 128 };

/**
 * Begins to look `host` up for stream sockets at `port`. `done` (may be NULL) is called once when
 * the answer is there, from another thread or, for a host that is a number, from inside this call;
 * it must be quick. `whose`: an address that is the same for all look-ups of one peer, and counts
 * them; NULL: our own, without a bound. SHERD_ENOMEM, SHERD_EBUSY beyond a bound, and no call then.
 */
int sherd__lookup_start(sherd__lookup **out, const char *host, uint16_t port, const void *whose,
                        void (*done)(void *ctx), void *ctx) SHERD_MUST;

/** Whether the answer is there: then *error as getaddrinfo returned it and, where that is 0, *list,
 *  which is the look-up's. */
bool sherd__lookup_done(sherd__lookup *l, int *error, const struct addrinfo **list);

/** Lets go of it, answered or not; `done` is not called any more. NULL is allowed. */
void sherd__lookup_drop(sherd__lookup *l);

#endif
