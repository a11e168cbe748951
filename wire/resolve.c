/*
 * Host name resolution in threads. libuv's uv_getaddrinfo is not used: a request that has started
 * cannot be cancelled, and its loop cannot be closed before the resolver gives up, which may be
 * long after the user's --timeout. Here the owner and the thread share a block of memory, and the
 * last of the two to finish frees it.
 *
 * The thread blocks all signals and allocates nothing except what the resolver allocates. Until the
 * resolver answers, the look-up occupies an entry in a process-wide table, since its owner may be
 * gone by then.
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
    const void **place; /* NULL: the look-up needs no entry */
    char *host;
    char service[8];
};

static struct {
    pthread_mutex_t lock;
    const void *whose[SHERD__LOOKUPS]; /* NULL: free */
} places = { PTHREAD_MUTEX_INITIALIZER, { NULL } };

static const void **take_place(const void *whose)
{
    const void **place = NULL;
    unsigned have = 0;
    pthread_mutex_lock(&places.lock);
    for (unsigned i = 0; i < SHERD__LOOKUPS; i++) {
        if (!places.whose[i]) place = &places.whose[i];
        have += places.whose[i] == whose;
    }
    if (have >= SHERD__LOOKUPS_OF) place = NULL;
    if (place) *place = whose;
    pthread_mutex_unlock(&places.lock);
    return place;
}

static void leave_place(const void **place)
{
    if (!place) return;
    pthread_mutex_lock(&places.lock);
    *place = NULL;
    pthread_mutex_unlock(&places.lock);
}

static int ask(const sherd__lookup *l, int flags, struct addrinfo **list)
{
    struct addrinfo hints = { .ai_flags = flags,
                              .ai_family = AF_UNSPEC,
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

/* Calls `done` under the lock, so that sherd__lookup_drop waits for it. */
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
    leave_place(l->place);
    answer(l, error, list);
    return NULL;
}

static int start_thread(sherd__lookup *l, const void *whose)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t before;
    l->place = whose ? take_place(whose) : NULL;
    if (whose && !l->place) return SHERD_EBUSY;
    if (pthread_attr_init(&attr)) return SHERD_ENOMEM;
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sherd__signals_hold(&before);
    int bad = pthread_create(&thread, &attr, look_up, l);
    sherd__signals_restore(&before);
    pthread_attr_destroy(&attr);
    return bad ? SHERD_ENOMEM : SHERD_OK;
}

int sherd__lookup_start(sherd__lookup **out, const char *host, uint16_t port, const void *whose,
                        void (*done)(void *ctx), void *ctx)
{
    struct addrinfo *list = NULL;
    int err = SHERD_ENOMEM;
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
    err = start_thread(l, whose);
    if (err) goto failed;
    *out = l;
    return SHERD_OK;
failed:
    leave_place(l->place);
    free_lookup(l);
    return err;
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
