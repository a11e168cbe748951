/*
 * Measures the cost of a link: two TLS endpoints with their own keys in one process, a loopback
 * connection between them, and one thread for each. They do what wire/link.c does with a body,
 * without record headers and the event loop. Two threads and buffers of many bodies are needed: a
 * single core that reads what it has just written finds every byte in its caches, and measures 1.5
 * times the rate of a real link. Only processor time of the two threads counts, so other processes
 * do not affect the result. The data is all zeros and never leaves the process.
 */
#include "wire/link_rate.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/fresh.h"
#include "wire/link_state.h"
#include "wire/tls.h"

#define MEMORY (16u << 20)  /* at each end: larger than the caches of one core */
#define WARM (4u << 20)     /* bytes sent before timing: windows are open, pages are mapped */
#define MEASURED (6u << 20) /* bytes sent per timed round */
#define ROUNDS 5
#define TIMEOUT_S 5 /* timeout of each end for the other */

static double rate;
static sherd__fresh fresh = SHERD__FRESH;

typedef struct end {
    sherd_identity *id;
    sherd__tls_context *context;
    sherd__tls *tls;
    int fd;
} end;

/* Creates two connected sockets. Returns false on failure, with no socket left open. */
static bool connected(int fd[2])
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = door >= 0 && bind(door, (struct sockaddr *)&at, len) == 0 && listen(door, 1) == 0 &&
              getsockname(door, (struct sockaddr *)&at, &len) == 0;
    fd[0] = ok ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    ok = fd[0] >= 0 && connect(fd[0], (struct sockaddr *)&at, len) == 0;
    fd[1] = ok ? accept(door, NULL, NULL) : -1;
    if (fd[1] >= 0) (void)fcntl(fd[1], F_SETFD, FD_CLOEXEC);
    if (door >= 0) close(door);
    if (fd[1] >= 0) return true;
    if (fd[0] >= 0) close(fd[0]);
    fd[0] = fd[1] = -1;
    return false;
}

static bool open_end(end *e, bool server, const sherd__fingerprint *peer)
{
    sherd__tls_policy policy = { .pinned = peer };
    return sherd__tls_context_new(&e->context, e->id, server, NULL) == 0 &&
           sherd__tls_new(&e->tls, e->context, &policy) == 0;
}

static void close_end(end *e)
{
    sherd__tls_free(e->tls);
    sherd__tls_context_free(e->context);
    sherd_identity_free(e->id);
    if (e->fd >= 0) close(e->fd);
}

/* Sends the output pending at `from` to `to` and decrypts the available plaintext to out. */
static bool pass(end *from, end *to, uint8_t *piece, uint8_t *out, size_t room, size_t *got)
{
    const uint8_t *bytes;
    size_t len, one;
    while ((len = sherd__tls_pending(from->tls, &bytes)) > 0) {
        ssize_t sent = send(from->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent <= 0) return false;
        sherd__tls_sent(from->tls, (size_t)sent);
        for (size_t left = (size_t)sent; left > 0;) {
            ssize_t n = recv(to->fd, piece, left < SHERD__LINK_IN ? left : SHERD__LINK_IN, 0);
            if (n <= 0) return false;
            left -= (size_t)n;
            sherd__tls_feed(to->tls, piece, (size_t)n);
            do {
                if (sherd__tls_read(to->tls, out + *got, room - *got, &one)) return false;
                *got += one;
            } while (one > 0 && *got < room);
        }
    }
    return true;
}

static bool shake_hands(end *a, end *b, uint8_t *piece, uint8_t *body)
{
    for (int round = 0; round < 8 && !(sherd__tls_ready(a->tls) && sherd__tls_ready(b->tls));
         round++) {
        size_t none = 0;
        if (!pass(a, b, piece, body, 1, &none) || !pass(b, a, piece, body, 1, &none)) return false;
    }
    return sherd__tls_ready(a->tls) && sherd__tls_ready(b->tls);
}

/* The work of one end: transfers `total` bytes to or from its memory, which is reused. */
typedef struct course {
    end *at;
    uint8_t *memory, *piece; /* piece: for the reader, SHERD__LINK_IN bytes */
    size_t total;
    double took; /* processor seconds of this thread; 0: failed */
} course;

static bool flush(end *e)
{
    const uint8_t *bytes;
    size_t len;
    while ((len = sherd__tls_pending(e->tls, &bytes)) > 0) {
        ssize_t n = send(e->fd, bytes, len, MSG_NOSIGNAL);
        if (n <= 0) return false;
        sherd__tls_sent(e->tls, (size_t)n);
    }
    return true;
}

static void *send_all(void *arg)
{
    course *c = arg;
    size_t done = 0, taken = 0;
    double began = sherd__clock_busy_s();
    bool ok = true;
    while (ok && done < c->total) {
        size_t at = done % MEMORY, n = MEMORY - at;
        if (n > c->total - done) n = c->total - done;
        ok = sherd__tls_write(c->at->tls, c->memory + at, n, &taken) == 0;
        done += taken;
        if (ok && !sherd__tls_room(c->at->tls)) ok = flush(c->at);
    }
    ok = ok && flush(c->at);
    if (!ok) shutdown(c->at->fd, SHUT_RDWR);
    c->took = ok ? sherd__clock_busy_s() - began : 0;
    return NULL;
}

static void receive_all(course *c)
{
    size_t done = 0, one;
    double began = sherd__clock_busy_s();
    bool ok = true;
    while (ok && done < c->total) {
        ssize_t n = recv(c->at->fd, c->piece, SHERD__LINK_IN, 0);
        ok = n > 0;
        if (ok) sherd__tls_feed(c->at->tls, c->piece, (size_t)n);
        do {
            size_t at = done % MEMORY;
            ok = ok && sherd__tls_read(c->at->tls, c->memory + at, MEMORY - at, &one) == 0;
            done += ok ? one : 0;
        } while (ok && one > 0);
    }
    if (!ok) shutdown(c->at->fd, SHUT_RDWR);
    c->took = ok ? sherd__clock_busy_s() - began : 0;
}

/* Transfers `total` bytes. Returns the processor seconds of both threads, or 0 on failure. */
static double transfer(course *from, course *to, size_t total)
{
    pthread_t sender;
    from->total = to->total = total;
    if (pthread_create(&sender, NULL, send_all, from)) return 0;
    receive_all(to);
    pthread_join(sender, NULL);
    return from->took > 0 && to->took > 0 ? from->took + to->took : 0;
}

static bool open_ends(end *a, end *b, uint8_t *piece, uint8_t *body)
{
    static const struct timeval timeout = { .tv_sec = TIMEOUT_S };
    int fd[2] = { -1, -1 };
    bool ok = sherd_identity_new(&a->id, NULL) == 0 && sherd_identity_new(&b->id, NULL) == 0 &&
              connected(fd);
    a->fd = fd[0];
    b->fd = fd[1];
    for (int i = 0; i < 2 && ok; i++)
        ok = setsockopt(fd[i], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) == 0 &&
             setsockopt(fd[i], SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) == 0;
    return ok && open_end(a, false, sherd__identity_fingerprint(b->id)) &&
           open_end(b, true, sherd__identity_fingerprint(a->id)) && shake_hands(a, b, piece, body);
}

static int by_time(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double median(double took[ROUNDS])
{
    qsort(took, ROUNDS, sizeof *took, by_time);
    return took[ROUNDS / 2];
}

static void measure(void)
{
    end a = { .fd = -1 }, b = { .fd = -1 };
    uint8_t *memory = sherd__alloc(2 * (size_t)MEMORY + SHERD__LINK_IN);
    uint8_t *piece = memory ? memory + 2 * (size_t)MEMORY : NULL;
    if (memory) memset(memory, 0, 2 * (size_t)MEMORY + SHERD__LINK_IN);
    if (memory && open_ends(&a, &b, piece, memory)) {
        course from = { .at = &a, .memory = memory };
        course to = { .at = &b, .memory = memory + MEMORY, .piece = piece };
        bool ok = transfer(&from, &to, WARM) > 0;
        double took[ROUNDS];
        for (int i = 0; i < ROUNDS && ok; i++) ok = (took[i] = transfer(&from, &to, MEASURED)) > 0;
        if (ok) rate = 2.0 * MEASURED / median(took);
    }
    close_end(&a);
    close_end(&b);
    sherd__free(memory);
}

double sherd__link_rate_here(void)
{
    bool again = sherd__fresh_lock(&fresh);
    if (again) measure();
    double now = rate;
    sherd__fresh_unlock(&fresh, again);
    return now;
}
