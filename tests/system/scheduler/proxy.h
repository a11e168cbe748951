/*
 * A TCP proxy between a coordinator and one node, which the waiting test drives. It forwards so
 * many bytes and then, once, resets the connection, closes one half of it, or stalls. Later
 * connections pass.
 */
#ifndef TESTS_SYSTEM_SCHEDULER_PROXY_H
#define TESTS_SYSTEM_SCHEDULER_PROXY_H

#include <stdbool.h>
#include <stdint.h>

typedef enum proxy_fault { PROXY_RESET, PROXY_HALF, PROXY_STALL } proxy_fault;

#define PROXY_PAIRS 16
#define PROXY_CHUNK 16384

typedef struct proxy_way {
    uint8_t bytes[PROXY_CHUNK];
    uint32_t from, to;  /* buffered bytes */
    bool ended, closed; /* ended: no more bytes come; closed: this was passed on */
} proxy_way;

typedef struct proxy_pair {
    int side[2];      /* 0: coordinator, 1: node; -1: closed */
    proxy_way way[2]; /* bytes that come from that side */
    bool halved, stalled;
} proxy_pair;

typedef struct proxy {
    int listener;
    uint16_t port, node_port;
    proxy_fault fault;
    int direction; /* counts bytes that come from this side */
    uint64_t after;
    uint64_t seen;
    int64_t struck_ms; /* time of the fault, or 0 */
    unsigned pairs_len;
    proxy_pair pairs[PROXY_PAIRS];
} proxy;

void proxy_open(proxy *p, uint16_t node_port, proxy_fault fault, int direction, uint64_t after);
/** Forwards for about `ms`. */
void proxy_turn(proxy *p, int ms);
void proxy_close(proxy *p);

#endif
