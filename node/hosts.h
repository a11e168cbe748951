/* Compares a peer's address with the host of a line of the allow-list. */
#ifndef NODE_HOSTS_H
#define NODE_HOSTS_H

#include <stdbool.h>

/** Returns whether the host allows the peer. host is an address or `*`; peer_address is
 *  "address:port". A host name matches no peer. */
bool sherd__host_matches(const char *host, const char *peer_address);

#endif
