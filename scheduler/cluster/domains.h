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

/** Domains of peers, numbered from 0. split: the first two nodes of one host with different domains
 *  in the file; both are 0 if there are none. file: begins messages; NULL: not known. */
typedef struct sherd__domains {
    uint32_t *of; /* by peer; of the caller */
    uint32_t len;
    uint32_t split[2];
    const char *file;
} sherd__domains;
/**
 * Numbers the domains in the order of their first nodes. A peer without domain= is given the domain
 * of other nodes on its host; if there is none, the host's name is its domain text. SHERD_ENOMEM.
 */
int sherd__domains_number(sherd__domains *out, sherd__peer *const *peers, uint32_t count,
                          sherd__addresses addresses, void *ctx) SHERD_MUST;
/** Parses a numeric address. A name has no address, and no resolver is asked. ctx: NULL. */
size_t sherd__addresses_written(void *ctx, const char *host, struct in6_addr *out, size_t room);
typedef struct sherd__domain_fault {
    char text[900];
    const char *hint;
} sherd__domain_fault;
/** Private schemes count adversaries, so they cannot rely on a domain that was only guessed, or on
 *  two domains on one host. Returns true in these cases, with the reason and what to do. unnamed:
 *  the first of the peers that had no domain= before they were numbered, or count. same_host: the
 *  user knows that domains share a host. */
bool sherd__domains_fault(const sherd__domains *domains, sherd__peer *const *peers, uint32_t count,
                          uint32_t unnamed, bool same_host, sherd__domain_fault *out);

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
