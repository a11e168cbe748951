/* The proxy of the fault tests; see proxy.h. One thread, poll, nonblocking sockets. */
#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "command.h"

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_port = htons(port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

void proxy_open(proxy *p, uint16_t node_port, proxy_fault fault, int direction, uint64_t after)
{
    struct sockaddr_in a = loopback(0);
    socklen_t len = sizeof a;
    memset(p, 0, sizeof *p);
    p->node_port = node_port;
    p->fault = fault;
    p->direction = direction;
    p->after = after;
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (p->listener < 0 || bind(p->listener, (struct sockaddr *)&a, len) ||
        listen(p->listener, 16) || getsockname(p->listener, (struct sockaddr *)&a, &len)) {
        perror("proxy");
        abort();
    }
    p->port = ntohs(a.sin_port);
}

static void drop(int *fd, bool reset)
{
    struct linger now = { .l_onoff = 1, .l_linger = 0 };
    if (*fd < 0) return;
    if (reset) (void)setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(*fd);
    *fd = -1;
}

static void drop_pair(proxy_pair *r, bool reset)
{
    drop(&r->side[0], reset);
    drop(&r->side[1], reset);
}

static void take(proxy *p)
{
    struct sockaddr_in a = loopback(p->node_port);
    int fd = accept4(p->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 || p->pairs_len == PROXY_PAIRS) {
        drop(&fd, true);
        return;
    }
    proxy_pair *r = &p->pairs[p->pairs_len++];
    r->side[0] = fd;
    r->side[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(r->side[1], (struct sockaddr *)&a, sizeof a)) drop_pair(r, true);
}

/* The first connection that has carried enough bytes gets the fault. */
static void strike(proxy *p, proxy_pair *r)
{
    p->struck_ms = clock_now_ms();
    if (p->fault == PROXY_RESET) drop_pair(r, true);
    r->stalled = p->fault == PROXY_STALL;
    r->halved = p->fault == PROXY_HALF;
    if (r->halved) (void)shutdown(r->side[1 - p->direction], SHUT_WR);
}

static void receive(proxy *p, proxy_pair *r, int from)
{
    proxy_way *w = &r->way[from];
    ssize_t n = recv(r->side[from], w->bytes, sizeof w->bytes, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) {
        drop_pair(r, true);
        return;
    }
    w->from = 0;
    w->to = (uint32_t)n;
    w->ended = n == 0;
    if (p->struck_ms || from != p->direction) return;
    p->seen += (uint64_t)n;
    if (p->seen >= p->after) strike(p, r);
}

static void forward(proxy_pair *r, int from)
{
    proxy_way *w = &r->way[from];
    int out = r->side[1 - from];
    if (w->to > w->from) {
        ssize_t n = send(out, w->bytes + w->from, w->to - w->from, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN) drop_pair(r, true);
        else if (n > 0) w->from += (uint32_t)n;
    } else if (w->ended && !w->closed) {
        (void)shutdown(out, SHUT_WR);
        w->closed = true;
        if (r->way[1 - from].closed) drop_pair(r, false);
    }
}

/* A stalled pair is not served; of a half-closed one, the counted direction is dropped. */
static short wanted(const proxy *p, const proxy_pair *r, int side)
{
    const proxy_way *in = &r->way[side], *out = &r->way[1 - side];
    short events = 0;
    if (r->stalled || r->side[side] < 0) return 0;
    if (in->from == in->to && !in->ended && !(r->halved && side == p->direction)) events |= POLLIN;
    if (out->to > out->from && !(r->halved && side != p->direction)) events |= POLLOUT;
    return events;
}

void proxy_turn(proxy *p, int ms)
{
    struct pollfd f[1 + 2 * PROXY_PAIRS] = { { .fd = p->listener, .events = POLLIN } };
    unsigned pairs = p->pairs_len;
    for (unsigned i = 0; i < 2 * pairs; i++) {
        short events = wanted(p, &p->pairs[i / 2], (int)(i % 2));
        f[1 + i] = (struct pollfd){ .fd = events ? p->pairs[i / 2].side[i % 2] : -1,
                                    .events = events };
    }
    if (poll(f, 1 + 2 * pairs, ms) <= 0) return;
    for (unsigned i = 0; i < pairs; i++) {
        proxy_pair *r = &p->pairs[i];
        for (int from = 0; from < 2; from++) {
            if (r->side[0] < 0 || r->stalled) break;
            bool dead_way = r->halved && from == p->direction;
            if (f[1 + 2 * i + (unsigned)from].revents && r->way[from].from == r->way[from].to &&
                !r->way[from].ended && !dead_way)
                receive(p, r, from);
            if (r->side[0] >= 0 && !r->stalled && !(r->halved && from == p->direction))
                forward(r, from);
        }
    }
    if (f[0].revents) take(p);
}

void proxy_close(proxy *p)
{
    for (unsigned i = 0; i < p->pairs_len; i++) drop_pair(&p->pairs[i], false);
    close(p->listener);
}
