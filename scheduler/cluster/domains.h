/*
 * Determines which nodes count as one adversary: those with the same domain=, and if it is not
 * given, those on the same host, under any name or address in the node file.
 */
#ifndef SCHEDULER_CLUSTER_DOMAINS_H
#define SCHEDULER_CLUSTER_DOMAINS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "wire/identity.h"

#define SHERD__ADDRESSES_MAX 8u

/** Returns the addresses of a host name (IPv4 as mapped IPv6): how many of `room`; 0 if there are
 *  none. */
typedef size_t (*sherd__addresses)(void *ctx, const char *host, struct in6_addr *out, size_t room);

/**
 * Numbers the domains from 0 in the order of their first nodes: domain_of[i] for peers[i]. A peer
 * without domain= is given the domain of other nodes on its host; if there is none, the host's name
 * is its domain text. split[0] and split[1] are the first two nodes of one host with different
 * domains in the file; both are 0 if there are none. SHERD_ENOMEM.
 */
int sherd__domains_number(sherd__peer *const *peers, uint32_t count, sherd__addresses addresses,
                          void *ctx, uint32_t *domain_of, uint32_t *domains,
                          uint32_t split[2]) SHERD_MUST;
/** Parses a numeric address. A name has no address, and no resolver is asked. ctx: NULL. */
size_t sherd__addresses_written(void *ctx, const char *host, struct in6_addr *out, size_t room);
/** Private schemes count adversaries, so they cannot rely on a domain that was only guessed, or on
 *  two domains on one host. Returns true in these cases, with the reason in `fault` and what to do
 *  in *hint. unnamed: the first of the peers that had no domain= before they were numbered, or
 *  count. split: as set by sherd__domains_number. same_host: the user knows that domains share a
 *  host. */
bool sherd__domains_fault(sherd__peer *const *peers, uint32_t count, uint32_t unnamed,
                          const uint32_t split[2], bool same_host, char *fault, size_t size,
                          const char **hint);

/* Looks up the hosts of a node file with the system's resolver. All names are looked up at the same
 * time, and the caller decides how long to wait. */
typedef struct sherd__names sherd__names;

/** Starts to look up the hosts of peers that are neither numeric nor loopback. SHERD_ENOMEM. */
int sherd__names_start(sherd__names **out, sherd__peer *const *peers, uint32_t count) SHERD_MUST;
/** Returns the first of the peers whose host has not been resolved yet, or count. */
uint32_t sherd__names_missing(sherd__names *n);
/** As sherd__addresses; ctx is a sherd__names. Returns 0 for a host that is not resolved. */
size_t sherd__names_addresses(void *names, const char *host, struct in6_addr *out, size_t room);
/** Frees n; lookups without an answer are abandoned. NULL is allowed. */
void sherd__names_free(sherd__names *n);

#endif
