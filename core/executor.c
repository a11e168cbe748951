/*
 * A mutex, a condition variable and two lists. It does not use libuv's thread pool, which is shared
 * with file and resolver work, has no bound, and runs work out of order. Threads are woken without
 * the mutex, which they would wait for, and only if they wait: work may take microseconds. Work of
 * a device takes longer: sherd__executor_finish always wakes, and under the mutex, without which
 * the executor could be freed meanwhile.
 */
#include "core/executor.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

#include "core/alloc.h"

typedef struct queue {
    sherd__executor_item *head, **tail;
} queue;

struct sherd__executor {
    pthread_mutex_t lock;
    pthread_cond_t more;
    pthread_t thread;
    bool threaded, stop;
    bool waits; /* the thread has nothing to do */
    queue todo, finished;
    size_t queued, queue_max, pending, expected;
    void (*wake)(void *ctx);
    void *wake_ctx;
};

static void push(queue *q, sherd__executor_item *w)
{
    w->next = NULL;
    *q->tail = w;
    q->tail = &w->next;
}

static sherd__executor_item *pop(queue *q)
{
    sherd__executor_item *w = q->head;
    if (w && !(q->head = w->next)) q->tail = &q->head;
    return w;
}

static void *loop(void *arg)
{
    sherd__executor *e = arg;
    pthread_mutex_lock(&e->lock);
    while (!e->stop) {
        sherd__executor_item *w = pop(&e->todo);
        if (!w) {
            e->waits = true;
            pthread_cond_wait(&e->more, &e->lock);
            e->waits = false;
            continue;
        }
        e->queued--;
        pthread_mutex_unlock(&e->lock);
        w->run(w);
        pthread_mutex_lock(&e->lock);
        bool first = !e->finished.head; /* otherwise it was woken and has not drained */
        push(&e->finished, w);
        if (!first) continue;
        pthread_mutex_unlock(&e->lock);
        e->wake(e->wake_ctx);
        pthread_mutex_lock(&e->lock);
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

static sherd__executor *make(size_t queue_max)
{
    sherd__executor *e = sherd__calloc(1, sizeof *e);
    if (!e) return NULL;
    e->todo.tail = &e->todo.head;
    e->finished.tail = &e->finished.head;
    e->queue_max = queue_max;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->more, NULL);
    return e;
}

int sherd__executor_new(sherd__executor **out, size_t queue_max, void (*wake)(void *), void *ctx)
{
    sherd__executor *e = make(queue_max);
    *out = NULL;
    if (!e) return SHERD_ENOMEM;
    e->wake = wake;
    e->wake_ctx = ctx;
    e->threaded = true;
    if (pthread_create(&e->thread, NULL, loop, e)) {
        e->threaded = false;
        sherd__executor_free(e);
        return SHERD_ENOMEM;
    }
    *out = e;
    return SHERD_OK;
}

int sherd__executor_new_inline(sherd__executor **out)
{
    *out = make((size_t)-1);
    return *out ? SHERD_OK : SHERD_ENOMEM;
}

int sherd__executor_submit(sherd__executor *e, sherd__executor_item *w)
{
    if (!e->threaded) {
        if (e->stop) return SHERD_EBUSY;
        w->run(w);
        push(&e->finished, w);
        e->pending++;
        return SHERD_OK;
    }
    pthread_mutex_lock(&e->lock);
    bool full = e->stop || e->queued >= e->queue_max, waits = e->waits;
    if (!full) {
        push(&e->todo, w);
        e->queued++;
        e->pending++;
    }
    pthread_mutex_unlock(&e->lock);
    if (!full && waits) pthread_cond_signal(&e->more);
    return full ? SHERD_EBUSY : SHERD_OK;
}

void sherd__executor_expect(sherd__executor *e)
{
    pthread_mutex_lock(&e->lock);
    e->expected++;
    pthread_mutex_unlock(&e->lock);
    e->pending++;
}

void sherd__executor_finish(sherd__executor *e, sherd__executor_item *w)
{
    pthread_mutex_lock(&e->lock);
    assert(e->expected > 0);
    push(&e->finished, w);
    e->expected--;
    pthread_cond_broadcast(&e->more);
    if (e->threaded) e->wake(e->wake_ctx);
    pthread_mutex_unlock(&e->lock);
}

size_t sherd__executor_drain(sherd__executor *e)
{
    pthread_mutex_lock(&e->lock);
    sherd__executor_item *w = e->finished.head;
    e->finished = (queue){ NULL, &e->finished.head };
    pthread_mutex_unlock(&e->lock);
    size_t n = 0;
    for (sherd__executor_item *next; w; w = next, n++) {
        next = w->next;
        assert(e->pending > 0);
        e->pending--; /* accessed only by the submitting thread */
        w->done(w);
    }
    return n;
}

size_t sherd__executor_pending(const sherd__executor *e)
{
    return e->pending;
}

void sherd__executor_free(sherd__executor *e)
{
    if (!e) return;
    if (e->threaded) {
        pthread_mutex_lock(&e->lock);
        e->stop = true;
        pthread_cond_signal(&e->more);
        pthread_mutex_unlock(&e->lock);
        pthread_join(e->thread, NULL);
    }
    e->stop = true;
    pthread_mutex_lock(&e->lock);
    while (e->expected) pthread_cond_wait(&e->more, &e->lock);
    pthread_mutex_unlock(&e->lock);
    for (sherd__executor_item *w; (w = pop(&e->todo));) push(&e->finished, w);
    while (e->finished.head) sherd__executor_drain(e);
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->more);
    sherd__free(e);
}
