/*
 * The server side of a link until TCP is up, and admission control: which addresses may connect,
 * and how many half-open connections they may have.
 *
 * Half-open connections (TLS not done, or rejected and not yet closed) are limited in total. One
 * address (IPv4, or an IPv6 /64) may have half of the total, and one prefix (/24, /48) three
 * quarters. An address or prefix above its share replaces its own oldest connection, if that is at
 * least a quarter of a second old, which is a hundred times what an honest handshake needs;
 * otherwise the new connection is refused. When the total is reached, the prefix with the most
 * connections loses one at once to a newcomer from a prefix with fewer.
 *
 * Addresses that the allow-list names and all other addresses form two classes. A quarter of the
 * total is reserved for each class. A class replaces connections of the other only after that
 * quarter of a second, since an address proves no key. An attacker can therefore keep other hosts
 * out only by connecting from very many prefixes, again every quarter of a second, and can keep
 * named hosts out only from named addresses.
 *
 * libuv stops listening until a connection that it has reported is accepted. A connection for which
 * there is no place or memory is therefore accepted into a spare handle and closed.
 */
#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "wire/link_state.h"

#define HALF_OPEN_MAX 64u
#define LINKS_MAX 1024u
#define GRACE_MS 250u
#define BACKLOG 511

struct sherd__listener {
    sherd__listen_options opt;
    uv_tcp_t tcp, spare;
    bool spare_busy, waiting, closing; /* waiting: a connection waits for spare to be free */
    unsigned refs;                     /* open handles */
    sherd__tls_context *context;
    sherd__link *oldest, *newest;
    uint32_t half_open, links;
    uint16_t port;
};

static void take_connection(sherd__listener *s);

void sherd__address_text(const struct sockaddr *addr, char *out, size_t size)
{
    char ip[64] = "?";
    if (addr->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)addr;
        (void)uv_ip6_name(v6, ip, sizeof ip);
        snprintf(out, size, "[%s]:%u", ip, ntohs(v6->sin6_port));
    } else {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)addr;
        (void)uv_ip4_name(v4, ip, sizeof ip);
        snprintf(out, size, "%s:%u", ip, ntohs(v4->sin_port));
    }
}

/* ---- list of links ---- */

static void remember(sherd__listener *s, sherd__link *l)
{
    l->listener = s;
    l->older = s->newest;
    if (s->newest) s->newest->newer = l;
    else s->oldest = l;
    s->newest = l;
    s->links++;
    s->half_open++;
}

void sherd__listener_forget(sherd__link *l)
{
    sherd__listener *s = l->listener;
    if (!s) return;
    *(l->older ? &l->older->newer : &s->oldest) = l->newer;
    *(l->newer ? &l->newer->older : &s->newest) = l->older;
    l->older = l->newer = NULL;
    l->listener = NULL;
    s->links--;
    if (!l->owned) s->half_open--;
}

/* ---- admission ---- */

bool sherd__listener_allows(void *ctx, const sherd__fingerprint *key)
{
    const sherd__link *l = ctx;
    const sherd__listener *s = l->listener;
    return s && s->opt.allow && s->opt.allow(s->opt.ctx, key);
}

int sherd__listener_admit(sherd__link *l)
{
    sherd__listener *s = l->listener;
    int err = s ? s->opt.accept(s->opt.ctx, l, &l->peer_key, l->address, &l->session_options,
                                &l->owner)
                : SHERD_ECLOSED;
    if (!err && l->listener) s->half_open--; /* accept may have closed the listener */
    return err;
}

void sherd__listener_reject(sherd__link *l, int code, const char *reason)
{
    const sherd__listener *s = l->listener;
    if (s && s->opt.rejected) s->opt.rejected(s->opt.ctx, code, l->address, reason);
}

/* ---- half-open connections ---- */

static void source_of(const struct sockaddr *addr, sherd__link_source *out)
{
    *out = (sherd__link_source){ .v4 = addr->sa_family == AF_INET };
    if (out->v4) {
        memcpy(out->bytes, &((const struct sockaddr_in *)(const void *)addr)->sin_addr, 4);
        return;
    }
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr;
    out->v4 = IN6_IS_ADDR_V4MAPPED(v6);
    memcpy(out->bytes, out->v4 ? v6->s6_addr + 12 : v6->s6_addr, out->v4 ? 4 : 16);
}

static bool same_class(const sherd__link_source *a, const sherd__link_source *b)
{
    return a->named == b->named;
}

static bool same_address(const sherd__link_source *a, const sherd__link_source *b)
{
    return same_class(a, b) && a->v4 == b->v4 && memcmp(a->bytes, b->bytes, a->v4 ? 4 : 8) == 0;
}

static bool same_prefix(const sherd__link_source *a, const sherd__link_source *b)
{
    return same_class(a, b) && a->v4 == b->v4 && memcmp(a->bytes, b->bytes, a->v4 ? 3 : 6) == 0;
}

typedef bool same_fn(const sherd__link_source *a, const sherd__link_source *b);

static uint32_t count(const sherd__listener *s, const sherd__link_source *of, same_fn *same)
{
    uint32_t n = 0;
    for (const sherd__link *l = s->oldest; l; l = l->newer) n += !l->owned && same(&l->source, of);
    return n;
}

static void give_up(sherd__listener *s, sherd__link *l)
{
    if (l->state == LINK_SHAKING)
        sherd__listener_reject(l, SHERD_EBUSY,
                               "its handshake was not finished, and other connections waited");
    sherd__listener_forget(l);
    sherd__link_shut(l);
    (void)s;
}

/* Closes the oldest half-open link from this source if it is older than GRACE_MS. Returns whether
 * it did. */
static bool replace_own(sherd__listener *s, const sherd__link_source *of, same_fn *same)
{
    sherd__link *l = s->oldest;
    while (l && (l->owned || !same(&l->source, of))) l = l->newer;
    if (!l || uv_now(s->opt.loop) - l->born_ms < GRACE_MS) return false;
    give_up(s, l);
    return true;
}

static bool any(const sherd__link_source *a, const sherd__link_source *b)
{
    (void)a, (void)b;
    return true;
}

/* Makes room for `of` when the total or the limit of its class is reached: closes a link of the
 * prefix in its class that has the most, or a link that is older than GRACE_MS. */
static bool make_room(sherd__listener *s, const sherd__link_source *of, bool class_full)
{
    sherd__link *victim = NULL;
    uint32_t most = 0;
    for (sherd__link *l = s->oldest; l; l = l->newer) {
        if (l->owned || !same_class(&l->source, of)) continue;
        uint32_t n = count(s, &l->source, same_prefix);
        if (n <= most) continue;
        most = n;
        victim = l;
    }
    if (victim && most > count(s, of, same_prefix) + 1) {
        give_up(s, victim);
        return true;
    }
    return replace_own(s, of, class_full ? same_class : any);
}

/* Returns true if one more half-open connection from this source can be admitted, and makes room
 * for it if needed. */
static bool find_place(sherd__listener *s, const sherd__link_source *of)
{
    uint32_t all = s->opt.half_open_max ? s->opt.half_open_max : HALF_OPEN_MAX;
    uint32_t most = all - all / 4;
    if (count(s, of, same_address) >= (all + 1) / 2) return replace_own(s, of, same_address);
    if (count(s, of, same_prefix) >= most) return replace_own(s, of, same_prefix);
    bool class_full = s->opt.named && count(s, of, same_class) >= most;
    return (!class_full && s->half_open < all) || make_room(s, of, class_full);
}

/* ---- connections ---- */

static void release(sherd__listener *s)
{
    if (--s->refs > 0) return;
    sherd__tls_context_free(s->context);
    sherd__free(s);
}

static void on_spare_closed(uv_handle_t *h)
{
    sherd__listener *s = h->data;
    bool again = s->waiting && !s->closing;
    s->spare_busy = s->waiting = false;
    if (again) take_connection(s);
    release(s);
}

static void refuse(sherd__listener *s, int code, const char *reason)
{
    struct sockaddr_storage addr;
    int len = sizeof addr;
    char text[80] = "?";
    if (s->spare_busy) {
        s->waiting = true;
        return;
    }
    (void)uv_tcp_init(s->opt.loop, &s->spare);
    s->spare.data = s;
    s->spare_busy = true;
    s->refs++;
    if (uv_accept((uv_stream_t *)&s->tcp, (uv_stream_t *)&s->spare) == 0 &&
        uv_tcp_getpeername(&s->spare, (struct sockaddr *)&addr, &len) == 0)
        sherd__address_text((struct sockaddr *)&addr, text, sizeof text);
    uv_close((uv_handle_t *)&s->spare, on_spare_closed);
    if (s->opt.rejected) s->opt.rejected(s->opt.ctx, code, text, reason);
}

static void take_connection(sherd__listener *s)
{
    struct sockaddr_storage addr;
    int len = sizeof addr;
    sherd__link *l;
    uint32_t links_max = s->opt.links_max ? s->opt.links_max : LINKS_MAX;
    if (s->links - s->half_open >= links_max) {
        refuse(s, SHERD_EBUSY, "too many connections");
        return;
    }
    int err = sherd__link_make(&l, s->opt.loop, LINK_SHAKING,
                               s->opt.handshake_timeout_ms ? s->opt.handshake_timeout_ms
                                                           : SHERD__LINK_SHAKE_MS);
    if (err) {
        refuse(s, err, sherd_strerror(err));
        return;
    }
    (void)uv_tcp_init(s->opt.loop, &l->tcp);
    l->tcp.data = l;
    l->tcp_open = true;
    l->refs++;
    l->accepted = true;
    l->born_ms = uv_now(s->opt.loop);
    err = uv_accept((uv_stream_t *)&s->tcp, (uv_stream_t *)&l->tcp);
    if (!err) err = uv_tcp_getpeername(&l->tcp, (struct sockaddr *)&addr, &len);
    if (err) { /* the connection is closed already */
        sherd__link_shut(l);
        return;
    }
    sherd__address_text((struct sockaddr *)&addr, l->address, sizeof l->address);
    source_of((struct sockaddr *)&addr, &l->source);
    l->source.named = s->opt.named && s->opt.named(s->opt.ctx, l->address);
    if (!find_place(s, &l->source)) {
        if (s->opt.rejected)
            s->opt.rejected(s->opt.ctx, SHERD_EBUSY, l->address, "too many unfinished handshakes");
        sherd__link_shut(l);
        return;
    }
    l->context = sherd__tls_context_share(s->context);
    remember(s, l);
    sherd__link_begin(l);
}

static void on_connection(uv_stream_t *stream, int status)
{
    if (status == 0) take_connection(stream->data);
}

/* ---- the listener ---- */

static int parse_address(struct sockaddr_storage *out, const char *host, uint16_t port)
{
    memset(out, 0, sizeof *out);
    if (uv_ip4_addr(host, port, (struct sockaddr_in *)out) == 0) return 0;
    return uv_ip6_addr(host, port, (struct sockaddr_in6 *)out);
}

static int bind_and_listen(sherd__listener *s, const char *host, uint16_t port, sherd_diag *d)
{
    struct sockaddr_storage addr;
    int len = sizeof addr, err = parse_address(&addr, host, port);
    if (!err) err = uv_tcp_bind(&s->tcp, (struct sockaddr *)&addr, 0);
    if (!err) err = uv_listen((uv_stream_t *)&s->tcp, BACKLOG, on_connection);
    if (!err) err = uv_tcp_getsockname(&s->tcp, (struct sockaddr *)&addr, &len);
    if (err == UV_EADDRINUSE)
        return sherd__fail(d, SHERD_EADDRINUSE, "choose another port, or 0 for any free one",
                           "%s:%u: the port is already in use", host, port);
    if (err)
        return sherd__fail(d, SHERD_ENET, "name an address of this machine and a port you may use",
                           "%s:%u: cannot listen: %s", host, port, uv_strerror(err));
    s->port = ntohs(addr.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&addr)->sin6_port
                                               : ((struct sockaddr_in *)&addr)->sin_port);
    return SHERD_OK;
}

int sherd__listener_new(sherd__listener **out, const sherd__listen_options *opt, const char *host,
                        uint16_t port, sherd_diag *d)
{
    assert(opt->loop && opt->identity && opt->accept);
    *out = NULL;
    sherd__listener *s = sherd__calloc(1, sizeof *s);
    if (!s) return sherd__fail_memory(d, "listening at %s:%u", host, port);
    s->opt = *opt;
    int err = sherd__tls_context_new(&s->context, opt->identity, true, d);
    if (err) {
        sherd__free(s);
        return err;
    }
    (void)uv_tcp_init(opt->loop, &s->tcp);
    s->tcp.data = s;
    s->refs = 1;
    err = bind_and_listen(s, host, port, d);
    if (err) {
        sherd__listener_close(s);
        return err;
    }
    *out = s;
    return SHERD_OK;
}

uint16_t sherd__listener_port(const sherd__listener *l)
{
    return l->port;
}

static void on_listener_closed(uv_handle_t *h)
{
    release(h->data);
}

void sherd__listener_close(sherd__listener *s)
{
    if (!s || s->closing) return;
    s->closing = true;
    while (s->oldest) {
        sherd__link *l = s->oldest;
        sherd__listener_forget(l);
        if (!l->owned) sherd__link_shut(l);
    }
    uv_close((uv_handle_t *)&s->tcp, on_listener_closed);
}
