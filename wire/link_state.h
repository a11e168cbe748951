/*
 * What a link is made of, for the three files that make it: connect.c (client side until TCP is
 * up), listen.c (server side until TCP is up), link.c (everything after, and every end).
 *
 *     RESOLVING -> CONNECTING -> SHAKING -> UP -> [LEAVING ->] ENDING -> LINGERING -> CLOSING
 *
 * LEAVING: the owner has closed, BYE is on its way. ENDING: the session is over, or there never was
 * one; what is pending (BYE, an alert) goes out. LINGERING: our half is shut, and what still comes
 * is thrown away until the peer closes too: closing at once would answer its bytes with a reset,
 * and a reset makes its kernel drop our reason unread. Every state but UP has a deadline; UP has
 * its session's.
 */
#ifndef WIRE_LINK_STATE_H
#define WIRE_LINK_STATE_H

#include "wire/link.h"
#include "wire/resolve.h"
#include "wire/tls.h"

#define SHERD__LINK_SHAKE_MS 5000u
#define SHERD__LINK_FLUSH_MS 2000u
#define SHERD__LINK_LINGER_MS 1000u
#define SHERD__LINK_IN (128u * 1024u)   /* ciphertext a read: stays in the second-level cache */
#define SHERD__LINK_PLAIN (16u * 1024u) /* one TLS record */

typedef enum link_state {
    LINK_RESOLVING,
    LINK_CONNECTING,
    LINK_SHAKING,
    LINK_UP,
    LINK_LEAVING,
    LINK_ENDING,
    LINK_LINGERING,
    LINK_CLOSING
} link_state;

/* Where a connection comes from. */
typedef struct sherd__source {
    uint8_t bytes[16]; /* of its address: 4, or 16 */
    bool v4;
    bool named; /* the allow-list names this address */
} sherd__source;

struct sherd_link {
    uv_loop_t *loop;
    uv_tcp_t tcp;
    uv_timer_t timer;
    uv_connect_t connect;
    uv_async_t answer; /* the look-up's */
    uv_write_t write;
    uv_shutdown_t shutdown;
    unsigned refs; /* handles and requests whose last callback is still to come */

    link_state state;
    uint64_t deadline, armed; /* of the state; of the timer. UINT64_MAX: none */
    uint32_t timeout_ms;      /* for the connection to come up, for messages */
    bool tcp_open, answer_open, writing, paused, write_broken;
    bool behind;      /* a node: not read until the loop's next turn, see link.c */
    sherd__turn turn; /* where the owner has none */
    sherd__turn_part part;

    sherd__link_owner owner;
    bool owned; /* the owner hears events: from the start (client), from accept on (server) */
    bool told;  /* of CLOSED */
    int close_code;
    char close_text[SHERD__TEXT_MAX]; /* why, where the session cannot say it */

    sherd_tls_context *context;
    sherd_tls *tls;
    sherd_session *session; /* NULL until UP */
    sherd__session_options session_options;
    sherd__fingerprint peer_key;
    char address[320];

    sherd__lookup *lookup; /* connect.c */
    const struct addrinfo *next_address;
    int last_error;
    sherd_diag deferred; /* a failure inside link_connect: told from the loop */
    uint16_t port;

    sherd_listener *listener; /* listen.c; NULL for a client, and once the listener is closed */
    sherd_link *newer, *older;
    uint64_t born_ms;
    sherd__source source;

    const uint8_t *rest; /* of `plain`: what a later turn handles */
    size_t rest_len;
    uint8_t *in, *plain;
};

/** Memory, buffers and timer, with the state's deadline set. SHERD_ENOMEM. */
int sherd__link_make(sherd_link **out, uv_loop_t *loop, link_state state,
                     uint32_t timeout_ms) SHERD_MUST;
/** TCP is up: TLS begins. */
void sherd__link_begin(sherd_link *l);
/** Ends a link that is not up: tells the owner or the listener, sends what TLS has to say. */
void sherd__link_fail(sherd_link *l, int code, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void sherd__link_arm(sherd_link *l);
/** Closes the handle that waits for a look-up, if it is open. */
void sherd__link_end_lookup(sherd_link *l);
/** Closes the handles; the memory goes in the last callback. */
void sherd__link_shut(sherd_link *l);
/** One handle or request of the link has had its last callback. */
void sherd__link_unref(sherd_link *l);

/** TLS is done (listen.c): asks the listener's accept; what it returns. */
int sherd__listener_admit(sherd_link *l);
/** Tells rejected(). */
void sherd__listener_reject(sherd_link *l, int code, const char *reason);
/** Takes the link off the listener's list. */
void sherd__listener_forget(sherd_link *l);
/** The allow callback of the listener, as TLS asks for it; ctx is the link. */
bool sherd__listener_allows(void *ctx, const sherd__fingerprint *key);

/** "1.2.3.4:80", "[::1]:80". */
void sherd__address_text(const struct sockaddr *addr, char *out, size_t size);

#endif
