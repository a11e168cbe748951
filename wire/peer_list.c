/*
 * The public form of node files and allow-lists. The parser's struct (wire/identity.h) has the key
 * in binary, as it is compared; callers get text. A line that is written is read again, so that no
 * member can smuggle in another word.
 */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/field.h"
#include "core/options.h"
#include "wire/identity.h"

struct sherd_peers {
    sherd__peers peers;
};

static const char *const roles[] = { "", "node", "coordinator", NULL };

static sherd_role role_of(const char *text)
{
    unsigned i = 0;
    while (strcmp(roles[i], text) != 0) i++;
    return (sherd_role)i;
}

static const sherd_field peer_fields[] = {
    SHERD__FIELD(sherd_peer, host, TEXT, "", "name or address"),
    SHERD__FIELD(sherd_peer, port, U32, "", "TCP port"),
    SHERD__FIELD(sherd_peer, key, TEXT, "", "fingerprint of the peer's key"),
    SHERD__FIELD(sherd_peer, name, TEXT, "", "name"),
    SHERD__FIELD(sherd_peer, domain, TEXT, "", "domain that the peer belongs to"),
    SHERD__FIELD(sherd_peer, weight, F64, "", "not used"),
    SHERD__FIELD_ENUM(sherd_peer, role, roles, "node or coordinator"),
    SHERD__FIELD(sherd_peer, loopback, BOOL, "", "the peer's host is this machine"),
    SHERD__FIELD(sherd_peer, line, U32, "", "line in the list"),
};
SHERD__FIELDS(sherd_peer, peer_fields)

static int list_new(sherd_peers **out, sherd_diag *d)
{
    *out = sherd__calloc(1, sizeof **out);
    return *out ? SHERD_OK : sherd__fail_memory(d, "a list of peers");
}

static int list_done(sherd_peers **out, int err)
{
    if (!err) return SHERD_OK;
    sherd__free(*out);
    *out = NULL;
    return err;
}

int sherd_peers_load(sherd_peers **out, const char *path, sherd_diag *d)
{
    int err = list_new(out, d);
    return err ? err : list_done(out, sherd__peers_load(&(*out)->peers, path, d));
}

int sherd_peers_parse(sherd_peers **out, const char *text, const char *name, sherd_diag *d)
{
    int err = list_new(out, d);
    if (err) return err;
    return list_done(out, sherd__peers_parse(&(*out)->peers, text, strlen(text),
                                             name ? name : "list", d));
}

size_t sherd_peers_count(const sherd_peers *p)
{
    return p->peers.len;
}

int sherd_peers_at(const sherd_peers *p, size_t i, sherd_peer *out, sherd_diag *d)
{
    int err = sherd__result_check(out, "sherd_peer", d);
    if (err) return err;
    if (i >= p->peers.len)
        return sherd__fail(d, SHERD_EINVAL, NULL, "there is no peer %zu: the list has %zu", i,
                           p->peers.len);
    const sherd__peer *from = &p->peers.list[i];
    sherd_peer peer = { .port = from->port,
                        .weight = from->weight,
                        .role = role_of(from->role),
                        .loopback = sherd__peer_loopback(from),
                        .line = from->line };
    memcpy(peer.host, from->host, sizeof peer.host);
    memcpy(peer.name, from->name, sizeof peer.name);
    memcpy(peer.domain, from->domain, sizeof peer.domain);
    if (from->has_key) sherd__fingerprint_text(&from->key, peer.key);
    sherd__result_write(out, &peer, sizeof peer);
    return SHERD_OK;
}

void sherd_peers_free(sherd_peers *p)
{
    if (p) sherd__peers_fini(&p->peers);
    sherd__free(p);
}

static bool same(const sherd__peer *a, const sherd__peer *b)
{
    return strcmp(a->host, b->host) == 0 && a->port == b->port && strcmp(a->name, b->name) == 0 &&
           strcmp(a->domain, b->domain) == 0 && a->has_key == b->has_key && a->weight == b->weight;
}

/* Copies a text of `size` bytes at most. Returns false if it has no end. */
static bool copy(char *to, const char *from, size_t size)
{
    memcpy(to, from, size);
    return memchr(from, '\0', size) != NULL;
}

/* Fills the parser's struct, as far as the members have values that it can hold. */
static bool take(sherd__peer *to, const sherd_peer *p)
{
    bool known = (unsigned)p->role <= SHERD_ROLE_COORDINATOR;
    *to = (sherd__peer){ .port = (uint16_t)p->port,
                         .weight = p->weight == 0 ? 1 : p->weight,
                         .has_key = p->key[0] != '\0' };
    snprintf(to->role, sizeof to->role, "%s", known ? roles[p->role] : "");
    return known && p->port <= UINT16_MAX && to->weight > 0 && to->weight < 1e6 &&
           copy(to->host, p->host, sizeof to->host) && copy(to->name, p->name, sizeof to->name) &&
           copy(to->domain, p->domain, sizeof to->domain) && memchr(p->key, '\0', sizeof p->key) &&
           (!to->has_key || sherd__fingerprint_parse(&to->key, p->key) == SHERD_OK);
}

int sherd_peer_write(const sherd_peer *from, char *out, size_t size, sherd_diag *d)
{
    sherd_peer p;
    sherd__peer peer, again;
    char line[SHERD_PEER_LINE_SIZE];
    bool found = false;
    int err = sherd__options_read(&p, sizeof p, from, "sherd_peer", d);
    if (err) return err;
    bool good = take(&peer, &p);
    if (good) sherd__peer_format(&peer, line, sizeof line);
    if (good && sherd__peer_parse(&again, &found, line, "peer", d)) return SHERD_EFORMAT;
    if (!good || !found || !same(&peer, &again))
        return sherd__fail(d, SHERD_EFORMAT, "names have 1 to 63 letters, digits and . _ - : / @ +",
                           "a member of the peer has a value that a line cannot have");
    if (strlen(line) >= size)
        return sherd__fail(d, SHERD_EINVAL, NULL, "the line takes %zu bytes, and %zu are given",
                           strlen(line) + 1, size);
    memcpy(out, line, strlen(line) + 1);
    return SHERD_OK;
}
