/*
 * Which nodes are one adversary: those of one domain= and, where it is not given, those of one
 * host, under whatever name or address the node file has it.
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

/** Addresses of a host name, IPv4 as mapped IPv6: how many of `room`; 0 where there are none. */
typedef size_t (*sherd__addresses)(void *ctx, const char *host, struct in6_addr *out, size_t room);

/**
 * Numbers the domains 0.. in the order of their first nodes: domain_of[i] for peers[i]. A peer
 * without domain= is given that of its host's other nodes, or else the host's name, as its domain
 * text.
 * split[0] and split[1]: the first two nodes of one host for which the file says different domains;
 * both 0 where there are none. SHERD_ENOMEM.
 */
int sherd__domains_number(sherd__peer *const *peers, uint32_t count, sherd__addresses addresses,
                          void *ctx, uint32_t *domain_of, uint32_t *domains,
                          uint32_t split[2]) SHERD_MUST;
/** Addresses that are written as such; a name has none, nobody is asked for it. ctx: NULL. */
size_t sherd__addresses_written(void *ctx, const char *host, struct in6_addr *out, size_t room);
/** Private schemes count adversaries: a domain that is only guessed, or two on one host, are none
 *  to count on. Why that is so here, and *hint what to do about it; false: they are. unnamed: the
 *  first of the peers that had no domain= before they were numbered, or count; split as numbering
 *  gave it; same_host: that it is one host is known. */
bool sherd__domains_fault(sherd__peer *const *peers, uint32_t count, uint32_t unnamed,
                          const uint32_t split[2], bool same_host, char *fault, size_t size,
                          const char **hint);

/* The system's resolver, for the hosts of a node file: all are asked for at once, and waited for
 * only as long as somebody likes. */
typedef struct sherd__names sherd__names;

/** Begins to look up the hosts of peers that are neither numbers nor loopback. SHERD_ENOMEM. */
int sherd__names_start(sherd__names **out, sherd__peer *const *peers, uint32_t count) SHERD_MUST;
/** The first of peers whose host is not answered yet, or count. */
uint32_t sherd__names_missing(sherd__names *n);
/** As sherd__addresses; ctx is a sherd__names. Of a host that is not answered: none. */
size_t sherd__names_addresses(void *names, const char *host, struct in6_addr *out, size_t room);
/** Lets go of those not answered, too. NULL is allowed. */
void sherd__names_free(sherd__names *n);

#endif
