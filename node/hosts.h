/* The address of a peer against the host of an allow-list's line. */
#ifndef NODE_HOSTS_H
#define NODE_HOSTS_H

#include <stdbool.h>

/** host: an address, or `*`; peer_address: "address:port". A name matches nothing. */
bool sherd__host_matches(const char *host, const char *peer_address);

#endif
