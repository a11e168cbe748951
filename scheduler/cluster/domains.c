/*
 * Hosts are compared by name (ignoring case and a trailing dot) and by the addresses of the name.
 * All of loopback is one host. A name that cannot be resolved is compared as a name only; its node
 * cannot be connected to, either. If one machine has two different addresses, this cannot be
 * detected here.
 */
#include "scheduler/cluster/domains.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "store/file.h"

typedef struct host {
    char name[256];
    struct in6_addr at[SHERD__ADDRESSES_MAX];
    size_t len;
    bool named; /* the file gives its domain */
} host;

static void look_up(host *h, const sherd__peer *p, sherd__addresses addresses, void *ctx)
{
    size_t len = strlen(p->host);
    snprintf(h->name, sizeof h->name, "%s", p->host);
    if (len > 1 && h->name[len - 1] == '.') h->name[len - 1] = '\0';
    h->named = p->domain[0] != '\0';
    sherd__peer plain = *p;
    memcpy(plain.host, h->name, sizeof plain.host);
    if (!sherd__peer_loopback(&plain))
        h->len = addresses(ctx, h->name, h->at, SHERD__ADDRESSES_MAX);
    for (size_t i = 0; i < h->len; i++)
        if (sherd__address_loopback(&h->at[i])) h->at[i] = in6addr_loopback;
    if (sherd__peer_loopback(&plain)) h->at[h->len++] = in6addr_loopback;
}

static bool same_host(const host *a, const host *b)
{
    if (strcasecmp(a->name, b->name) == 0) return true;
    for (size_t i = 0; i < a->len; i++)
        for (size_t j = 0; j < b->len; j++)
            if (memcmp(&a->at[i], &b->at[j], sizeof a->at[i]) == 0) return true;
    return false;
}

/* Gives nodes of one host that have no domain= the number of the lowest of them. A host that shares
 * addresses with two others joins all three. */
static void join_hosts(const host *h, uint32_t count, uint32_t *first)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (h[i].named || h[j].named || first[i] == first[j] || !same_host(&h[i], &h[j]))
                continue;
            uint32_t to = first[i] < first[j] ? first[i] : first[j];
            uint32_t from = first[i] < first[j] ? first[j] : first[i];
            for (uint32_t k = 0; k <= i; k++)
                if (first[k] == from) first[k] = to;
        }
    }
}

/* Joins nodes with the same domain=, and nodes without domain= with one of the same host that has
 * it. */
static void join_domains(sherd__peer *const *peers, const host *h, uint32_t count, uint32_t *first)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; h[i].named && j < i; j++)
            if (h[j].named && strcmp(peers[i]->domain, peers[j]->domain) == 0) first[i] = first[j];
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!h[i].named || first[i] != i) continue;
        for (uint32_t j = 0; j < count; j++) {
            if (h[j].named || h[first[j]].named) continue;
            bool joins = strcasecmp(peers[i]->domain, h[j].name) == 0;
            for (uint32_t k = 0; k < count && !joins; k++)
                joins = h[k].named && first[k] == i && same_host(&h[j], &h[k]);
            if (!joins) continue;
            for (uint32_t k = 0, from = first[j]; k < count; k++)
                if (first[k] == from) first[k] = i;
        }
    }
}

static void find_split(const host *h, const uint32_t *first, uint32_t count, uint32_t split[2])
{
    split[0] = split[1] = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; h[i].named && j < i; j++) {
            if (!h[j].named || first[i] == first[j] || !same_host(&h[i], &h[j])) continue;
            split[0] = j;
            split[1] = i;
            return;
        }
    }
}

int sherd__domains_number(sherd__domains *out, sherd__peer *const *peers, uint32_t count,
                          sherd__addresses addresses, void *ctx)
{
    uint32_t *domain_of = out->of;
    host *h = sherd__calloc(count, sizeof *h);
    uint32_t *first = sherd__calloc(count, sizeof *first);
    out->len = 0;
    if (!h || !first) {
        sherd__free(h);
        sherd__free(first);
        return SHERD_ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        first[i] = i;
        look_up(&h[i], peers[i], addresses, ctx);
    }
    join_hosts(h, count, first);
    join_domains(peers, h, count, first);
    find_split(h, first, count, out->split);
    for (uint32_t i = 0; i < count; i++) {
        const sherd__peer *of = peers[first[i]];
        if (!h[i].named)
            snprintf(peers[i]->domain, sizeof peers[i]->domain, "%.63s",
                     h[first[i]].named ? of->domain : h[first[i]].name);
        domain_of[i] = UINT32_MAX;
        for (uint32_t j = 0; j < i && domain_of[i] == UINT32_MAX; j++)
            if (first[j] == first[i]) domain_of[i] = domain_of[j];
        if (domain_of[i] == UINT32_MAX) domain_of[i] = out->len++;
    }
    sherd__free(h);
    sherd__free(first);
    return SHERD_OK;
}

size_t sherd__addresses_written(void *ctx, const char *name, struct in6_addr *out, size_t room)
{
    struct in6_addr a = { 0 };
    (void)ctx;
    a.s6_addr[10] = a.s6_addr[11] = 0xff; /* IPv4-mapped IPv6 */
    if (room == 0 ||
        (inet_pton(AF_INET, name, &a.s6_addr[12]) != 1 && inet_pton(AF_INET6, name, &a) != 1))
        return 0;
    out[0] = a;
    return 1;
}

bool sherd__domains_fault(const sherd__domains *domains, sherd__peer *const *peers, uint32_t count,
                          uint32_t unnamed, bool same_host, sherd__domain_fault *out)
{
    const uint32_t *split = domains->split;
    if (unnamed < count) {
        snprintf(out->text, sizeof out->text,
                 "%s:%u has no domain= in the node file: a private scheme must know which nodes "
                 "are one adversary",
                 peers[unnamed]->host, peers[unnamed]->port);
        out->hint = "add the name of its operator to every node's line, as domain=NAME";
        return true;
    }
    if (split[0] == split[1] || same_host) return false;
    snprintf(out->text, sizeof out->text,
             "%s, lines %" PRIu32 " and %" PRIu32 ": %s:%u (domain %s) and %s:%u (domain %s) are "
             "one host, whose operator sees both",
             domains->file ? sherd__path_tail(domains->file) : "node file", peers[split[0]]->line,
             peers[split[1]]->line, peers[split[0]]->host, peers[split[0]]->port,
             peers[split[0]]->domain, peers[split[1]]->host, peers[split[1]]->port,
             peers[split[1]]->domain);
    out->hint = "give them one domain, or use --same-host-domains if they are separate (tunnels, a "
                "simulation)";
    return true;
}
