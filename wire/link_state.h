/*
 * The state of a link, shared by the three files that implement it: connect.c (client side until
 * TCP is up), listen.c (server side until TCP is up), and link.c (everything after that, and
 * closing).
 *
 *     RESOLVING -> CONNECTING -> SHAKING -> UP -> [LEAVING ->] ENDING -> LINGERING -> CLOSING
 *
 * LEAVING: the owner has closed the link, and BYE is being sent. ENDING: the session is over or was
 * never created, and pending data (BYE, an alert) is being sent. LINGERING: our sending direction
 * is shut down, and received data is discarded until the peer closes too. Closing at once would
 * answer the peer's data with a reset, and a reset makes the peer's kernel discard our reason
 * unread. Every state except UP has a deadline; in UP the session's deadline applies.
 */
#ifndef WIRE_LINK_STATE_H
#define WIRE_LINK_STATE_H

#include "wire/link.h"
#include "wire/resolve.h"
#include "wire/tls.h"

#define SHERD__LINK_SHAKE_MS 5000u
#define SHERD__LINK_FLUSH_MS 2000u
#define SHERD__LINK_LINGER_MS 1000u
#define SHERD__LINK_IN (128u * 1024u)   /* ciphertext per read: fits the second-level cache */
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

/* Origin of a connection. */
typedef struct sherd__link_source {
    uint8_t bytes[16]; /* of its address: 4 or 16 */
    bool v4;
    bool named; /* the allow-list names this address */
} sherd__link_source;

struct sherd__link {
    uv_loop_t *loop;
    uv_tcp_t tcp;
    uv_timer_t timer;
    uv_connect_t connect;
    uv_async_t answer; /* signals the end of the look-up */
    uv_write_t write;
    uv_shutdown_t shutdown;
    unsigned refs; /* handles and requests whose last callback has not run yet */

    link_state state;
    uint64_t deadline, armed; /* of the state; of the timer. UINT64_MAX: none */
    uint32_t timeout_ms;      /* for the connection to come up; used in messages */
    bool tcp_open, answer_open, writing, paused, write_broken;
    bool accepted;    /* by a listener: the peer has connected to us */
    bool behind;      /* node: reading waits for the next loop iteration, see link.c */
    sherd__turn turn; /* used if the owner has none */
    sherd__turn_part part;

    sherd__link_owner owner;
    bool owned; /* the owner gets events: from the start (client), from accept on (server) */
    bool closed_emitted; /* CLOSED was delivered */
    int close_code;
    char close_text[SHERD__TEXT_MAX]; /* the reason, if there is no session to report it */

    sherd__tls_context *context;
    sherd__tls *tls;
    sherd__session *session; /* NULL until UP */
    sherd__session_options session_options;
    sherd__fingerprint peer_key;
    char address[320];

    sherd__lookup *lookup; /* used by connect.c */
    const struct addrinfo *next_address;
    int last_error;
    sherd_diag deferred; /* a failure inside link_connect, reported from the loop */
    uint16_t port;

    /* listen.c; NULL for a client or after the listener was closed */
    sherd__listener *listener;
    sherd__link *newer, *older;
    uint64_t born_ms;
    sherd__link_source source;

    const uint8_t *rest; /* in `plain`: left for a later loop iteration */
    size_t rest_len;
    uint8_t *in, *plain;
};

/** Allocates the link and its buffers, and initialises its timer with the deadline of the state.
 *  Errors: SHERD_ENOMEM. */
int sherd__link_make(sherd__link **out, uv_loop_t *loop, link_state state,
                     uint32_t timeout_ms) SHERD_MUST;
/** Starts TLS. Called when TCP is up. */
void sherd__link_begin(sherd__link *l);
/** Ends a link that is not up: reports to owner or listener, and sends pending TLS output. */
void sherd__link_fail(sherd__link *l, int code, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void sherd__link_arm(sherd__link *l);
/** Closes the handle that waits for a look-up, if it is open. */
void sherd__link_end_lookup(sherd__link *l);
/** Closes the handles; the memory is freed in the last callback. */
void sherd__link_shut(sherd__link *l);
/** Releases one reference, after the last callback of a handle or request of the link. */
void sherd__link_unref(sherd__link *l);

/** Calls the listener's accept callback after TLS is done (listen.c). Returns its result. */
int sherd__listener_admit(sherd__link *l);
/** Calls the listener's rejected callback. */
void sherd__listener_reject(sherd__link *l, int code, const char *reason);
/** Removes the link from the listener's list. */
void sherd__listener_forget(sherd__link *l);
/** The allow callback in the form that TLS expects; ctx is the link. */
bool sherd__listener_allows(void *ctx, const sherd__fingerprint *key);

/** Formats an address and port: "1.2.3.4:80", "[::1]:80". */
void sherd__address_text(const struct sockaddr *addr, char *out, size_t size);

#endif
