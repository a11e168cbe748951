/* Links over real sockets on loopback, with both ends in one loop. */
#ifndef TESTS_UNIT_WIRE_LINK_WORLD_H
#define TESTS_UNIT_WIRE_LINK_WORLD_H

#include "wire/link_state.h"

#define JOB 77u
#define WAIT_MS 20000 /* for events that are immediate, on a machine that runs no valgrind */

extern sherd_identity *link_id_c, *link_id_n, *link_id_x; /* coordinator, node, stranger */

typedef struct side {
    sherd__link *link;
    int ready, blocks, tasks, results, closed_events, closed_calls;
    int err;
    char text[SHERD__TEXT_MAX];
    uint8_t *body; /* of the last block or result */
    uint64_t body_len;
    bool close_on_ready;
} side;

typedef struct world {
    uv_loop_t loop;
    sherd__listener *listener;
    const sherd_identity *allowed;
    side c, n; /* the newest link of each kind */
    int accepted, rejected, reject_code, turn_away;
    char reason[SHERD__TEXT_MAX], from[80];
    bool close_in_accept;
    sherd__turn *turn; /* of links that are dialled */
} world;

int link_keys_make(void **s);
int link_keys_free(void **s);
sherd__fragment_info link_info_of(sherd__origin origin, uint64_t values);
bool link_allow(void *ctx, const sherd__fingerprint *key);
int link_on_accept(void *ctx, sherd__link *l, const sherd__fingerprint *key, const char *address,
                   sherd__session_options *session, sherd__link_owner *owner);
void link_on_rejected(void *ctx, int code, const char *address, const char *reason);
/** Replaces the listener by another one; 0 means the default of a number. */
int link_listen(world *w, uint32_t half_open_max, uint32_t timeout_ms);
void link_world_open(world *w);
/** Connects w->c. */
int link_dial(world *w, const char *host, uint16_t port, const sherd_identity *id,
              const sherd_identity *pinned, uint32_t timeout_ms);
void link_connect_as(world *w, const sherd_identity *id, const sherd_identity *pinned);
/** Runs the loop until *what is `value` or `ms` have passed. Returns whether *what was reached. */
bool link_run_until(world *w, const int *what, int value, uint64_t ms);
void link_world_close(world *w);
/** Connects the usual two links and waits until both are READY. */
void link_both_up(world *w);
/** Shrinks the kernel's buffers, so that the link's own limits count. */
void link_narrow(world *w);
uint8_t *link_body(uint64_t values);
/** Sends a block of so many values behind a group table (link_body); takes over the bytes. */
void link_put(world *w, uint32_t block, uint8_t *bytes, uint64_t values);
/** Checks that text begins with `start` and contains `words`. */
void link_expect(const char *text, const char *start, const char *words);
/** Returns a connected socket; does not wait for the listener. */
int link_raw_socket(uint16_t port);
/** Reads what the other end still sends, and returns whether it has closed. */
bool link_is_closed(int fd);

#endif
