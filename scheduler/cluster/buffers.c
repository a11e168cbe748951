/*
 * A short list of idle buffers under a mutex. Each buffer records its capacity. A buffer is used
 * again only for a length of at least half its capacity. Idle buffers are limited in number and
 * bytes. Between jobs they are wiped, and only some of them are kept.
 */
#include "scheduler/cluster/buffers.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/wipe.h"

#define IDLE_MAX 1024u /* 63 nodes have 250 answers in progress */
#define IDLE_BYTES ((size_t)256 << 20)
/* Capacities are multiples of this, because answers of one job differ slightly in length. */
#define ROUND 65536u

typedef struct buffer {
    size_t capacity;
    size_t used; /* bytes that may have been written since the buffer was last wiped */
    _Alignas(max_align_t) uint8_t bytes[]; /* aligned as by the allocator: suitable for doubles */
} buffer;

struct sherd__buffers {
    pthread_mutex_t lock;
    buffer *idle[IDLE_MAX];
    unsigned count;
    size_t bytes; /* capacity of the idle ones */
};

int sherd__buffers_new(sherd__buffers **out)
{
    *out = sherd__calloc(1, sizeof **out);
    if (!*out) return SHERD_ENOMEM;
    pthread_mutex_init(&(*out)->lock, NULL);
    return SHERD_OK;
}

/* Wipes idle buffers, and frees those beyond `keep` bytes, the oldest of them. */
static void settle(sherd__buffers *b, size_t keep)
{
    buffer *kept[IDLE_MAX];
    unsigned count = 0;
    pthread_mutex_lock(&b->lock);
    while (b->count) {
        buffer *at = b->idle[--b->count];
        const bool stays = keep > 0 && at->capacity <= keep;
        if (stays) sherd__wipe(at->bytes, at->used);
        else sherd__wipe_pages(at->bytes, at->used);
        at->used = 0;
        if (!stays) b->bytes -= at->capacity;
        if (stays) keep -= at->capacity;
        if (stays) kept[count++] = at;
        else sherd__free(at);
    }
    while (count) b->idle[b->count++] = kept[--count];
    pthread_mutex_unlock(&b->lock);
}

void sherd__buffers_rest(sherd__buffers *b)
{
    settle(b, SHERD__BUFFERS_KEPT);
}

void sherd__buffers_free(sherd__buffers *b)
{
    if (!b) return;
    settle(b, 0);
    pthread_mutex_destroy(&b->lock);
    sherd__free(b);
}

uint8_t *sherd__buffers_get(sherd__buffers *b, uint64_t len)
{
    buffer *found = NULL;
    pthread_mutex_lock(&b->lock);
    for (unsigned i = b->count; i-- > 0 && !found;) { /* the last one is still in the cache */
        size_t has = b->idle[i]->capacity;
        if (has < len || (has > ROUND && has / 2 > len)) continue;
        found = b->idle[i];
        b->idle[i] = b->idle[--b->count];
        b->bytes -= found->capacity;
    }
    pthread_mutex_unlock(&b->lock);
    if (found && found->used < len) found->used = (size_t)len;
    if (found) return found->bytes;
    size_t capacity, size;
    if (!sherd__add(len, ROUND - 1, &capacity)) return NULL;
    capacity -= capacity % ROUND;
    if (len < ROUND / 4) capacity = len;
    if (!sherd__add(capacity, sizeof *found, &size) || !(found = sherd__alloc_large(size)))
        return NULL;
    *found = (buffer){ .capacity = capacity, .used = (size_t)len };
    return found->bytes;
}

void sherd__buffers_give(sherd__buffers *b, uint8_t *bytes)
{
    if (!bytes) return;
    buffer *back = (buffer *)(void *)(bytes - offsetof(buffer, bytes));
    pthread_mutex_lock(&b->lock);
    if (b->count < IDLE_MAX && back->capacity <= IDLE_BYTES - b->bytes) {
        b->bytes += back->capacity;
        b->idle[b->count++] = back;
        back = NULL;
    }
    pthread_mutex_unlock(&b->lock);
    if (back) sherd__wipe_pages(back->bytes, back->used);
    sherd__free(back);
}

uint8_t *sherd__buffers_body(void *ctx, uint64_t len)
{
    return sherd__buffers_get(ctx, len);
}

uint8_t *sherd__buffers_place(void *ctx, uint64_t job, uint32_t number, uint64_t len)
{
    (void)job;
    (void)number;
    return sherd__buffers_get(ctx, len);
}

void sherd__buffers_unplace(void *ctx, uint8_t *bytes, uint64_t len)
{
    (void)len;
    sherd__buffers_give(ctx, bytes);
}
