/* Names are looked up as those of nodes are (wire/resolve.h), so that signals are handled during
 * the lookup. */
#include "node/address.h"

#include <stdio.h>
#include <string.h>

#include "core/diag.h"
#include "wire/resolve.h"

static void on_answer(uv_async_t *a)
{
    (void)a; /* the loop is awake, which is all that was needed */
}

static void answered(void *async)
{
    (void)uv_async_send(async);
}

static void on_closed(uv_handle_t *h)
{
    *(bool *)h->data = true;
}

static int format_address(char out[SHERD__ADDRESS_TEXT], const struct sockaddr *addr)
{
    if (addr->sa_family == AF_INET6)
        return uv_ip6_name((const struct sockaddr_in6 *)(const void *)addr, out,
                           SHERD__ADDRESS_TEXT);
    return uv_ip4_name((const struct sockaddr_in *)(const void *)addr, out, SHERD__ADDRESS_TEXT);
}

static int wait_for(char out[SHERD__ADDRESS_TEXT], sherd__lookup *l, const char *host,
                    uv_loop_t *loop, const bool *stop, sherd_diag *d)
{
    const struct addrinfo *list;
    int error;
    while (!sherd__lookup_done(l, &error, &list)) {
        if (*stop)
            return sherd__fail(d, SHERD_EINTERRUPTED, NULL,
                               "interrupted while the name %s was looked up", host);
        uv_run(loop, UV_RUN_ONCE);
    }
    if (!error && format_address(out, list->ai_addr) == 0) return SHERD_OK;
    return sherd__fail(d, SHERD_ENET, "name an address of this machine",
                       "cannot listen on %s: name not resolved: %s", host,
                       gai_strerror(error ? error : EAI_FAMILY));
}

int sherd__address_find(char out[SHERD__ADDRESS_TEXT], const char *host, uv_loop_t *loop,
                        const bool *stop, sherd_diag *d)
{
    struct sockaddr_storage addr;
    sherd__lookup *l;
    uv_async_t wake;
    bool closed = false;
    if (uv_ip4_addr(host, 0, (struct sockaddr_in *)&addr) == 0 ||
        uv_ip6_addr(host, 0, (struct sockaddr_in6 *)&addr) == 0) {
        snprintf(out, SHERD__ADDRESS_TEXT, "%s", host);
        return SHERD_OK;
    }
    int err = uv_async_init(loop, &wake, on_answer);
    if (err)
        return sherd__fail(d, SHERD_ENET, NULL, "cannot wait for a name: %s", uv_strerror(err));
    wake.data = &closed;
    err = sherd__lookup_start(&l, host, 0, NULL, answered, &wake);
    if (err) {
        err = sherd__fail_memory(d, "looking up %s", host);
    } else {
        err = wait_for(out, l, host, loop, stop, d);
        sherd__lookup_drop(l); /* `wake` is not sent to after this */
    }
    uv_close((uv_handle_t *)&wake, on_closed);
    while (!closed) uv_run(loop, UV_RUN_NOWAIT);
    return err;
}

/* Returns 2 for IPv4, 1 for IPv6, 0 for an address that other machines do not reach. */
static int rank(const uv_interface_address_t *a)
{
    const struct sockaddr *addr = (const struct sockaddr *)(const void *)&a->address;
    if (a->is_internal) return 0;
    if (addr->sa_family == AF_INET)
        return ntohl(a->address.address4.sin_addr.s_addr) >> 16 != 0xa9fe ? 2 : 0; /* 169.254 */
    return addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&a->address.address6.sin6_addr);
}

unsigned sherd__address_of_machine(char out[SHERD__ADDRESS_TEXT])
{
    uv_interface_address_t *all;
    int len, best = 0;
    unsigned found = 0;
    if (uv_interface_addresses(&all, &len) != 0) return 0;
    for (int i = 0; i < len; i++) {
        int is = rank(&all[i]);
        found += is > 0;
        if (is > best &&
            format_address(out, (const struct sockaddr *)(const void *)&all[i].address) == 0)
            best = is;
    }
    uv_free_interface_addresses(all, len);
    return best ? found : 0;
}
