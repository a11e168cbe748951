/*
 * Two ends of TLS with keys of their own in one process, a connection on loopback between them, and
 * some megabytes from one piece of memory to another. It is what wire/link.c does with a body, less
 * its headers and the event loop. Processor time of this thread alone: whoever else runs here takes
 * no part of it. Nothing but zeros travels, to nobody.
 */
#include "wire/carry.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "wire/tls.h"

#define BODY (4u << 20) /* as much as a large block: more than caches near a core keep */
#define ROUNDS 3

static double rate;
static pthread_once_t measured = PTHREAD_ONCE_INIT;

typedef struct end {
    sherd_identity *id;
    sherd_tls_context *context;
    sherd_tls *tls;
    int fd;
} end;

/* Two connected sockets; false leaves none. */
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
    sherd__identity_free(e->id);
    if (e->fd >= 0) close(e->fd);
}

/* What is pending at `from` goes to `to`, whose plaintext goes to out, as far as there is any. */
static bool pass(end *from, end *to, uint8_t *piece, uint8_t *out, size_t room, size_t *got)
{
    const uint8_t *bytes;
    size_t len, one;
    while ((len = sherd__tls_pending(from->tls, &bytes)) > 0) {
        ssize_t sent = send(from->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent <= 0) return false;
        sherd__tls_sent(from->tls, (size_t)sent);
        for (size_t left = (size_t)sent; left > 0;) {
            ssize_t n = recv(to->fd, piece, left < SHERD__TLS_GATHER ? left : SHERD__TLS_GATHER, 0);
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

/* BODY bytes from one end to the other; 0 where that failed. */
static double carry(end *a, end *b, uint8_t *piece, const uint8_t *from, uint8_t *to)
{
    size_t done = 0, got = 0, taken;
    double began = sherd__clock_busy_s();
    while (got < BODY) {
        size_t before = got;
        if (sherd__tls_write(a->tls, from + done, BODY - done, &taken)) return 0;
        done += taken;
        if (!pass(a, b, piece, to, BODY, &got) || (taken == 0 && got == before)) return 0;
    }
    return sherd__clock_busy_s() - began;
}

static void measure(void)
{
    end a = { .fd = -1 }, b = { .fd = -1 };
    int fd[2] = { -1, -1 };
    uint8_t *memory = sherd__calloc(2 * (size_t)BODY + SHERD__TLS_GATHER, 1);
    bool ok = memory && sherd__identity_new(&a.id) == 0 && sherd__identity_new(&b.id) == 0 &&
              connected(fd);
    a.fd = fd[0];
    b.fd = fd[1];
    ok = ok && open_end(&a, false, sherd__identity_fingerprint(b.id)) &&
         open_end(&b, true, sherd__identity_fingerprint(a.id)) &&
         shake_hands(&a, &b, memory + 2 * (size_t)BODY, memory);
    for (int round = 0; ok && round < ROUNDS; round++) {
        double took = carry(&a, &b, memory + 2 * (size_t)BODY, memory, memory + BODY);
        if (took > 0 && 2.0 * BODY / took > rate) rate = 2.0 * BODY / took;
    }
    close_end(&a);
    close_end(&b);
    sherd__free(memory);
}

double sherd__carry_rate(void)
{
    pthread_once(&measured, measure);
    return rate;
}
