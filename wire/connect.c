/*
 * The client side of a link until the TCP connection is up. Numeric addresses are used at once.
 * Host names are resolved in a separate thread, so that nothing blocks. The addresses are then
 * tried one after another: "localhost" resolves to two addresses, and a node listens on only one of
 * them. A libuv handle cannot be used again after a failed connect, so it is closed and initialised
 * again.
 *
 * Failures that occur inside the owner's call are reported later from the loop, like all other
 * failures.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/diag.h"
#include "wire/link_state.h"

static void attempt(sherd__link *l, const struct sockaddr *addr);

static void fail_later(sherd__link *l, int code, const char *hint, const char *what,
                       const char *why)
{
    sherd__fail(&l->deferred, code, hint, "%s%s", what, why);
    l->deadline = 0;
    sherd__link_arm(l);
}

static void on_retry(uv_handle_t *h)
{
    sherd__link *l = h->data;
    if (l->state == LINK_CONNECTING) {
        const struct addrinfo *a = l->next_address;
        l->next_address = a->ai_next;
        attempt(l, a->ai_addr);
    }
    sherd__link_unref(l);
}

static void attempt_failed(sherd__link *l, int error)
{
    if (l->next_address) {
        l->tcp_open = false;
        uv_close((uv_handle_t *)&l->tcp, on_retry);
        return;
    }
    fail_later(l, SHERD_ECONNECT,
               error == UV_ECONNREFUSED ? "is a node running there?"
                                        : "is the machine up and the address right?",
               "cannot connect: ", uv_strerror(error));
}

static void on_connect(uv_connect_t *req, int status)
{
    sherd__link *l = req->data;
    if (l->state == LINK_CLOSING) return;
    if (status < 0) attempt_failed(l, status);
    else sherd__link_begin(l);
}

static void attempt(sherd__link *l, const struct sockaddr *addr)
{
    l->state = LINK_CONNECTING;
    (void)uv_tcp_init(l->loop, &l->tcp);
    l->tcp.data = l;
    l->tcp_open = true;
    l->refs++;
    l->connect.data = l;
    int err = uv_tcp_connect(&l->connect, &l->tcp, addr, on_connect);
    if (err) attempt_failed(l, err);
}

static void on_answer(uv_async_t *h)
{
    sherd__link *l = h->data;
    const struct addrinfo *found;
    int error;
    if (l->state != LINK_RESOLVING || !sherd__lookup_done(l->lookup, &error, &found)) return;
    sherd__link_end_lookup(l);
    if (error) {
        l->state = LINK_CONNECTING;
        fail_later(l, SHERD_ECONNECT, "check the host's name",
                   "name not resolved: ", gai_strerror(error));
    } else {
        l->next_address = found->ai_next;
        attempt(l, found->ai_addr);
    }
}

/* Called from the resolver thread. */
static void answered(void *link)
{
    sherd__link *l = link;
    (void)uv_async_send(&l->answer);
}

static void resolve(sherd__link *l, const char *host, uint16_t port)
{
    int err = SHERD_ENOMEM;
    l->answer.data = l;
    if (uv_async_init(l->loop, &l->answer, on_answer) == 0) {
        l->refs++;
        l->answer_open = true;
        err = sherd__lookup_start(&l->lookup, host, port, l->owner.turn, answered, l);
    }
    if (!err) return;
    l->state = LINK_CONNECTING;
    fail_later(l, err, NULL, "name not looked up: ", sherd_strerror(err));
}

int sherd__link_connect(sherd__link **out, const sherd__link_options *opt, const char *host,
                        uint16_t port, const sherd__fingerprint *key, sherd_diag *d)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    sherd__link *l;
    assert(opt->loop && opt->identity && key);
    *out = NULL;
    if (host[0] == '\0' || strlen(host) > 255 || port == 0)
        return sherd__fail(d, SHERD_EINVAL, "write host:port",
                           "%.60s:%u is not an address to connect to", host, port);
    int err = sherd__link_make(&l, opt->loop, LINK_RESOLVING,
                               opt->connect_timeout_ms ? opt->connect_timeout_ms
                                                       : SHERD__LINK_SHAKE_MS);
    if (err) return sherd__fail_memory(d, "a connection to %s:%u", host, port);
    snprintf(l->address, sizeof l->address, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
    l->session_options = opt->session;
    l->peer_key = *key;
    err = sherd__tls_context_new(&l->context, opt->identity, false, d);
    if (err) {
        /* The link has no owner yet, so the error is reported only by the return value. */
        sherd__link_shut(l);
        return err;
    }
    l->owner = opt->owner;
    l->owned = true;
    if (uv_ip4_addr(host, port, &v4) == 0) attempt(l, (const struct sockaddr *)&v4);
    else if (uv_ip6_addr(host, port, &v6) == 0) attempt(l, (const struct sockaddr *)&v6);
    else resolve(l, host, port);
    sherd__link_arm(l);
    *out = l;
    return SHERD_OK;
}
