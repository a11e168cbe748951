/* Addresses are compared as numbers: their text has many forms, and a listener for both IPv4 and
 * IPv6 reports IPv4 peers as ::ffff:a.b.c.d. */
#include "node/hosts.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool sherd__host_matches(const char *host, const char *peer_address)
{
    char text[256];
    unsigned char want[16], have[16];
    if (strcmp(host, "*") == 0) return true;
    const char *from = peer_address + (peer_address[0] == '[');
    size_t len = peer_address[0] == '[' ? strcspn(from, "]") : strcspn(from, ":");
    if (peer_address[0] != '[' && strrchr(from, ':') != strchr(from, ':')) len = strlen(from);
    snprintf(text, sizeof text, "%.*s", (int)(len < 255 ? len : 255), from);
    if (strncasecmp(text, "::ffff:", 7) == 0) memmove(text, text + 7, strlen(text + 7) + 1);
    for (int family = AF_INET;; family = AF_INET6) {
        size_t size = family == AF_INET ? 4 : 16;
        if (inet_pton(family, host, want) == 1 && inet_pton(family, text, have) == 1)
            return memcmp(want, have, size) == 0;
        if (family == AF_INET6) return false;
    }
}
