/*
 * Looks up each host of a node file once, all at the same time: a name server that does not answer
 * costs a single wait, regardless of the number of names.
 *
 * Trusts the resolver as far as connecting does: wrong addresses may join domains or separate them.
 * A node file should give domain= if that matters.
 */
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "core/alloc.h"
#include "scheduler/cluster/domains.h"
#include "wire/resolve.h"

typedef struct name {
    char host[256];
    uint32_t peer;
    sherd__lookup *lookup;
} name;

struct sherd__names {
    uint32_t len, peers;
    name list[];
};

/* Copies the host name as it is compared when domains are numbered: without the trailing dot. */
static void put_host(name *n, const sherd__peer *p)
{
    size_t len = strlen(p->host);
    memcpy(n->host, p->host, len + 1);
    if (len > 1 && n->host[len - 1] == '.') n->host[len - 1] = '\0';
}

static const name *find(const sherd__names *n, const char *host)
{
    for (uint32_t i = 0; i < n->len; i++)
        if (strcasecmp(n->list[i].host, host) == 0) return &n->list[i];
    return NULL;
}

int sherd__names_start(sherd__names **out, sherd__peer *const *peers, uint32_t count)
{
    sherd__names *n = sherd__calloc(1, sizeof *n + count * sizeof n->list[0]);
    *out = NULL;
    if (!n) return SHERD_ENOMEM;
    n->peers = count;
    for (uint32_t i = 0; i < count; i++) {
        name *next = &n->list[n->len];
        put_host(next, peers[i]);
        if (sherd__peer_loopback(peers[i]) || find(n, next->host)) continue;
        next->peer = i;
        int err = sherd__lookup_start(&next->lookup, next->host, peers[i]->port, NULL, NULL, NULL);
        if (err) {
            sherd__names_free(n);
            return err;
        }
        n->len++;
    }
    *out = n;
    return SHERD_OK;
}

uint32_t sherd__names_missing(sherd__names *n)
{
    const struct addrinfo *found;
    int error;
    for (uint32_t i = 0; i < n->len; i++)
        if (!sherd__lookup_done(n->list[i].lookup, &error, &found)) return n->list[i].peer;
    return n->peers;
}

static void map(struct in6_addr *out, const struct sockaddr *sa)
{
    if (sa->sa_family == AF_INET6) {
        *out = ((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
        return;
    }
    *out = (struct in6_addr){ 0 };
    out->s6_addr[10] = out->s6_addr[11] = 0xff;
    memcpy(&out->s6_addr[12], &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
}

size_t sherd__names_addresses(void *names, const char *host, struct in6_addr *out, size_t room)
{
    const name *n = find(names, host);
    const struct addrinfo *found = NULL;
    size_t len = 0;
    int error;
    if (!n || !sherd__lookup_done(n->lookup, &error, &found) || error) return 0;
    for (const struct addrinfo *a = found; a && len < room; a = a->ai_next)
        if (a->ai_family == AF_INET || a->ai_family == AF_INET6) map(&out[len++], a->ai_addr);
    return len;
}

void sherd__names_free(sherd__names *n)
{
    for (uint32_t i = 0; n && i < n->len; i++) sherd__lookup_drop(n->list[i].lookup);
    sherd__free(n);
}
