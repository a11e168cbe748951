/*
 * Not libuv's uv_getaddrinfo: a request that has begun cannot be cancelled, and its loop cannot be
 * closed before the resolver gives up, long after the user's --timeout. Here the two sides share
 * a block that the later of them frees.
 *
 * The thread takes no signals, and allocates nothing but what the resolver does.
 */
#include "wire/resolve.h"

#include <pthread.h>
#include <stdio.h>

#include "core/alloc.h"
#include "core/signals.h"

struct sherd__lookup {
    pthread_mutex_t lock;
    bool answered, dropped;
    int error;
    struct addrinfo *list;
    void (*done)(void *ctx);
    void *ctx;
    char *host;
    char service[8];
};

static int ask(const sherd__lookup *l, int flags, struct addrinfo **list)
{
    struct addrinfo hints = { .ai_flags = flags, .ai_family = AF_UNSPEC,
                              .ai_socktype = SOCK_STREAM };
    return getaddrinfo(l->host, l->service, &hints, list);
}

static void free_lookup(sherd__lookup *l)
{
    if (l->list) freeaddrinfo(l->list);
    pthread_mutex_destroy(&l->lock);
    sherd__free(l->host);
    sherd__free(l);
}

/* `done` runs under the lock, so that dropping waits for it. */
static void answer(sherd__lookup *l, int error, struct addrinfo *list)
{
    pthread_mutex_lock(&l->lock);
    l->error = error;
    l->list = error ? NULL : list;
    l->answered = true;
    bool dropped = l->dropped;
    if (!dropped && l->done) l->done(l->ctx);
    pthread_mutex_unlock(&l->lock);
    if (dropped) free_lookup(l);
}

static void *look_up(void *lookup)
{
    sherd__lookup *l = lookup;
    struct addrinfo *list = NULL;
    int error = ask(l, 0, &list);
    answer(l, error, list);
    return NULL;
}

static int start_thread(sherd__lookup *l)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t before;
    if (pthread_attr_init(&attr)) return SHERD_ENOMEM;
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sherd__signals_hold(&before);
    int bad = pthread_create(&thread, &attr, look_up, l);
    sherd__signals_restore(&before);
    pthread_attr_destroy(&attr);
    return bad ? SHERD_ENOMEM : SHERD_OK;
}

int sherd__lookup_start(sherd__lookup **out, const char *host, uint16_t port,
                        void (*done)(void *ctx), void *ctx)
{
    struct addrinfo *list = NULL;
    sherd__lookup *l = sherd__calloc(1, sizeof *l);
    *out = NULL;
    if (!l) return SHERD_ENOMEM;
    pthread_mutex_init(&l->lock, NULL);
    l->done = done;
    l->ctx = ctx;
    snprintf(l->service, sizeof l->service, "%u", port);
    l->host = sherd__strdup(host);
    if (!l->host) goto failed;
    int error = ask(l, AI_NUMERICHOST, &list);
    if (error != EAI_NONAME) {
        *out = l;
        answer(l, error, list);
        return SHERD_OK;
    }
    if (start_thread(l)) goto failed;
    *out = l;
    return SHERD_OK;
failed:
    free_lookup(l);
    return SHERD_ENOMEM;
}

bool sherd__lookup_done(sherd__lookup *l, int *error, const struct addrinfo **list)
{
    pthread_mutex_lock(&l->lock);
    bool answered = l->answered;
    if (answered) {
        *error = l->error;
        *list = l->list;
    }
    pthread_mutex_unlock(&l->lock);
    return answered;
}

void sherd__lookup_drop(sherd__lookup *l)
{
    if (!l) return;
    pthread_mutex_lock(&l->lock);
    bool answered = l->answered;
    l->dropped = true;
    pthread_mutex_unlock(&l->lock);
    if (answered) free_lookup(l);
}
