/*
 * The thin shell between a session and the network: libuv TCP, TLS 1.3 with pinned keys. A link
 * pumps bytes between its socket and its session, arms one timer for the session's deadline, and
 * hands events to its owner. One loop thread owns a link and all its calls.
 *
 * Events come from the loop, never from inside a call of the owner; the owner may call anything of
 * its link from inside an event. The session is there from READY on (sherd__link_session is NULL
 * before). The text of CLOSED begins with the peer's address and ends, where there is one, with a
 * remedy. Memory of a connection: about 0.7 MB, of which an idle one touches a tenth.
 *
 * SIGPIPE: libuv writes with write(2), and a write to a connection that the peer has reset raises
 * it. Its default ends the process, so the thread that runs the loop has to have it blocked
 * (pthread_sigmask), or the process ignored. A library may not decide that: nothing here touches
 * signals.
 *
 * When link_connect or listener_new fails, the loop has still to be run once for their handles.
 */
#ifndef WIRE_LINK_H
#define WIRE_LINK_H

#include <uv.h>

#include "wire/identity.h"
#include "wire/session.h"
#include "wire/turn.h"

typedef struct sherd_link sherd_link;
typedef struct sherd_listener sherd_listener;

typedef struct sherd__link_owner {
    /** Every event of the session. CLOSED is the last one, exactly once, also when the connection
     *  never came up (unreachable, wrong key, not TLS 1.3); fragments in events are the owner's. */
    void (*event)(void *ctx, sherd_link *l, sherd__event *event);
    /** The handle is gone and the link's memory with it, right after this call. */
    void (*closed)(void *ctx, sherd_link *l);
    void *ctx;
    /** A node's: what links that count for one key have of a turn. Outlives the link. NULL: of a
     *  session as the node its own, as the coordinator no bound. Names are looked up for it, too
     *  (wire/resolve.h). */
    sherd__turn *turn;
} sherd__link_owner;

typedef struct sherd__link_options {
    uv_loop_t *loop;
    const sherd_identity *identity; /* ours; outlives the link */
    sherd__session_options session; /* now_ms is filled in by the link */
    sherd__link_owner owner;
    uint32_t connect_timeout_ms; /* 0: 5000 */
} sherd__link_options;

/** Connects to host:port and accepts exactly `key` there. Returns at once; events follow. */
int sherd__link_connect(sherd_link **out, const sherd__link_options *opt, const char *host,
                        uint16_t port, const sherd__fingerprint *key, sherd_diag *d) SHERD_MUST;

typedef struct sherd__listen_options {
    uv_loop_t *loop;
    const sherd_identity *identity;
    /** Default deny: true lets the key in. */
    bool (*allow)(void *ctx, const sherd__fingerprint *key);
    /** A connection has passed TLS and the allow-list: fill in the session's options and the owner
     *  of its link. Called before its first event. Non-zero turns it away. */
    int (*accept)(void *ctx, sherd_link *l, const sherd__fingerprint *key, const char *peer_address,
                  sherd__session_options *session, sherd__link_owner *owner);
    /** A connection that never became one: reason says why (plain text, TLS 1.2, key not allowed,
     *  handshake timeout), code is SHERD_E*. May be NULL. */
    void (*rejected)(void *ctx, int code, const char *peer_address, const char *reason);
    /** Whether the allow-list names the address of this peer: a quarter of the half-open places is
     *  kept for such, and a quarter for others. May be NULL: it names none, and none is kept. */
    bool (*named)(void *ctx, const char *peer_address);
    void *ctx;
    uint32_t half_open_max;        /* connections still in handshake, all together; 0: 64 */
    uint32_t links_max;            /* connections past their handshake; 0: 1024 */
    uint32_t handshake_timeout_ms; /* TCP up to TLS done; 0: 5000 */
} sherd__listen_options;

/** Binds and listens at `host`, a number. Port 0: the system chooses; sherd__listener_port says
 *  which. SHERD_EADDRINUSE. */
int sherd__listener_new(sherd_listener **out, const sherd__listen_options *opt, const char *host,
                        uint16_t port, sherd_diag *d) SHERD_MUST;
uint16_t sherd__listener_port(const sherd_listener *l);
/** Stops accepting; links live on. */
void sherd__listener_close(sherd_listener *l);

/** Asks the system how much of what was sent has not been taken by the peer yet, and tells the
 *  session (sherd__session_unsent). */
void sherd__link_measure(sherd_link *l);
/** NULL until the connection is up (SHERD__EV_READY, or a server's first event). */
sherd_session *sherd__link_session(sherd_link *l);
const sherd__fingerprint *sherd__link_peer_key(const sherd_link *l);
const char *sherd__link_peer_address(const sherd_link *l);
/** Call after any sherd__session_* call from outside an event callback: sends what is pending. */
void sherd__link_flush(sherd_link *l);
/** From now on it has its part of that turn. */
void sherd__link_turn(sherd_link *l, sherd__turn *turn);
/** Stops, or goes on, reading from the socket (back-pressure towards the peer). What was read
 *  already, 128 KB at most, is still delivered. */
void sherd__link_pause(sherd_link *l, bool paused);
/** Ends the connection: BYE with the reason if the session is up, a bounded flush (2 s) and linger
 *  (1 s), then close. CLOSED follows, with this code (0: SHERD_ECLOSED) and reason. */
void sherd__link_close(sherd_link *l, int code, const char *reason);
/** Ends the connection without a goodbye: its descriptor is closed on return. CLOSED follows as
 *  after sherd__link_close. */
void sherd__link_abort(sherd_link *l, int code, const char *reason);

#endif
