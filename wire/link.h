/*
 * The thin layer between a session and the network: libuv TCP, and TLS 1.3 with pinned keys. A link
 * moves bytes between its socket and its session, arms one timer for the session's deadline, and
 * passes events to its owner. All calls on a link are made on one loop thread.
 *
 * Events are delivered from the loop, never from inside a call of the owner. The owner may call any
 * function of the link from inside an event. The session exists from READY on (sherd__link_session
 * returns NULL before). The text of CLOSED begins with the peer's address and ends with a hint, if
 * there is one. A connection uses about 0.7 MB of memory; an idle one touches a tenth of that.
 *
 * SIGPIPE: libuv writes with write(2), which raises SIGPIPE if the peer has reset the connection.
 * The default action ends the process. The thread that runs the loop therefore has to block the
 * signal (pthread_sigmask), or the process has to ignore it. A library must not make that choice,
 * so no function here changes signal handling.
 *
 * If link_connect or listener_new fails, the loop must still be run once to close their handles.
 */
#ifndef WIRE_LINK_H
#define WIRE_LINK_H

#include <uv.h>

#include "wire/identity.h"
#include "wire/session.h"
#include "wire/turn.h"

typedef struct sherd__link sherd__link;
typedef struct sherd__listener sherd__listener;

typedef struct sherd__link_owner {
    /** Receives every event of the session. CLOSED is delivered exactly once and last, also if the
     *  connection was never established (unreachable, wrong key, not TLS 1.3). The owner frees the
     *  fragments in events. */
    void (*event)(void *ctx, sherd__link *l, sherd__event *event);
    /** Called when all handles are closed. The link is freed right after this call. */
    void (*closed)(void *ctx, sherd__link *l);
    void *ctx;
    /** The limit per loop iteration that all links of one peer key share; set by a node. It must
     *  outlive the link. NULL: a session in the node role has a limit of its own, and one in the
     *  coordinator role has none. Host name look-ups are counted for it too (wire/resolve.h). */
    sherd__turn *turn;
} sherd__link_owner;

typedef struct sherd__link_options {
    uv_loop_t *loop;
    const sherd_identity *identity; /* our own; must outlive the link */
    sherd__session_options session; /* the link fills in now_ms */
    sherd__link_owner owner;
    uint32_t connect_timeout_ms; /* 0: 5000 */
} sherd__link_options;

/** Connects to host:port and accepts only the peer key `key`. Returns at once; the outcome is
 *  reported by events. */
int sherd__link_connect(sherd__link **out, const sherd__link_options *opt, const char *host,
                        uint16_t port, const sherd__fingerprint *key, sherd_diag *d) SHERD_MUST;

typedef struct sherd__listen_options {
    uv_loop_t *loop;
    const sherd_identity *identity;
    /** Returns true if the key is allowed. All keys are denied by default. */
    bool (*allow)(void *ctx, const sherd__fingerprint *key);
    /** Called when a connection has passed TLS and the allow-list, before its first event. The
     *  callback fills in the options of the session and the owner of the link. A non-zero return
     *  value rejects the connection. */
    int (*accept)(void *ctx, sherd__link *l, const sherd__fingerprint *key,
                  const char *peer_address, sherd__session_options *session,
                  sherd__link_owner *owner);
    /** Reports a connection that failed before `accept`. `reason` is text (plain text, TLS 1.2, key
     *  not allowed, handshake timeout), `code` is SHERD_E*. May be NULL. */
    void (*rejected)(void *ctx, int code, const char *peer_address, const char *reason);
    /** Returns true if the allow-list names the address of this peer. A quarter of the half-open
     *  connections is reserved for such addresses, and a quarter for all others. May be NULL: then
     *  no address counts as named, and nothing is reserved. */
    bool (*named)(void *ctx, const char *peer_address);
    void *ctx;
    uint32_t half_open_max;        /* limit on connections in the handshake, in total; 0: 64 */
    uint32_t links_max;            /* limit on connections after the handshake; 0: 1024 */
    uint32_t handshake_timeout_ms; /* from TCP accept to the end of the TLS handshake; 0: 5000 */
} sherd__listen_options;

/** Binds to the numeric address `host` and listens. With port 0 the system chooses a port, which
 *  sherd__listener_port returns. Errors: SHERD_EADDRINUSE. */
int sherd__listener_new(sherd__listener **out, const sherd__listen_options *opt, const char *host,
                        uint16_t port, sherd_diag *d) SHERD_MUST;
uint16_t sherd__listener_port(const sherd__listener *l);
/** Stops accepting connections. Existing links stay open. */
void sherd__listener_close(sherd__listener *l);

/** Queries the system for the number of sent bytes that the peer has not acknowledged yet, and
 *  passes it to the session (sherd__session_unsent). */
void sherd__link_measure(sherd__link *l);
/** Returns the round-trip time that the system has measured on the connection, in seconds; 0: not
 *  known. */
double sherd__link_round_trip(const sherd__link *l);
/** Returns the session, or NULL until the connection is up (SHERD__EV_READY, or the first event of
 *  a server's link). */
sherd__session *sherd__link_session(sherd__link *l);
const char *sherd__link_peer_address(const sherd__link *l);
/** Sends pending bytes. Must follow any sherd__session_* call made outside an event callback. */
void sherd__link_flush(sherd__link *l);
/** Makes the link share the given limit per loop iteration. */
void sherd__link_turn(sherd__link *l, sherd__turn *turn);
/** Stops or resumes reading from the socket (back-pressure on the peer). Data that was already
 *  read, at most 128 KB, is still delivered. */
void sherd__link_pause(sherd__link *l, bool paused);
/** Ends the connection: sends BYE with the reason if the session is up, flushes for at most 2 s,
 *  lingers for at most 1 s, and closes. CLOSED follows with this code (0: SHERD_ECLOSED) and
 *  reason. */
void sherd__link_close(sherd__link *l, int code, const char *reason);
/** Ends the connection without a BYE: its descriptor is closed on return. CLOSED follows as after
 *  sherd__link_close. */
void sherd__link_abort(sherd__link *l, int code, const char *reason);

#endif
