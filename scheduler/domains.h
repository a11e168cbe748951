/*
 * Which nodes are one adversary: those of one domain= and, where it is not given, those of one host,
 * under whatever name or address the node file has it.
 */
#ifndef SCHEDULER_DOMAINS_H
#define SCHEDULER_DOMAINS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "wire/identity.h"

#define SHERD__ADDRESSES_MAX 8u

/** Addresses of a host name, IPv4 as mapped IPv6: how many of `room`; 0 where there are none. *later:
 *  the resolver does not answer at all, so that asking for other names would only take time. */
typedef size_t (*sherd__addresses)(const char *host, struct in6_addr *out, size_t room, bool *later);

/** The system's resolver; numeric hosts are not looked up. It may wait for a name server. */
size_t sherd__addresses_system(const char *host, struct in6_addr *out, size_t room, bool *later);

/**
 * Numbers the domains 0.. in the order of their first nodes: domain_of[i] for peers[i]. A peer without
 * domain= is given that of its host's other nodes, or else the host's name, as its domain text.
 * split[0] and split[1]: the first two nodes of one host for which the file says different domains;
 * both 0 where there are none. SHERD_ENOMEM.
 */
int sherd__domains_number(sherd__peer *const *peers, uint32_t count, sherd__addresses addresses,
                          uint32_t *domain_of, uint32_t *domains, uint32_t split[2]) SHERD_MUST;

#endif
