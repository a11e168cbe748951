/*
 * A chained hash table per session. Names are chosen by the peer: one that makes them collide slows
 * down its own look-ups and nobody else's. What is wiped on release is the fragment's body; that is
 * the pool's business (sherd__pool_give), reached through the fragment.
 */
#include "node/store.h"

#include "core/alloc.h"

void sherd__store_init(sherd__store *s)
{
    *s = (sherd__store){ .buckets = NULL };
}

static size_t bucket_of(const sherd__store *s, uint64_t job, uint32_t number)
{
    uint64_t x = job ^ (uint64_t)number * UINT64_C(0x9E3779B97F4A7C15);
    x *= UINT64_C(0xD6E8FEB86659FD93);
    return (size_t)(x >> 32) & (s->buckets_len - 1);
}

/* Doubles the table; a table that cannot grow still works, with longer chains. */
static int grow(sherd__store *s)
{
    size_t len = s->buckets_len ? 2 * s->buckets_len : 16;
    sherd__store bigger = *s;
    bigger.buckets = sherd__calloc(len, sizeof *bigger.buckets);
    if (!bigger.buckets) return s->buckets_len ? SHERD_OK : SHERD_ENOMEM;
    bigger.buckets_len = len;
    for (size_t i = 0; i < s->buckets_len; i++) {
        for (sherd__block *b = s->buckets[i], *next; b; b = next) {
            next = b->next;
            sherd__block **to = &bigger.buckets[bucket_of(&bigger, b->job, b->number)];
            b->next = *to;
            *to = b;
        }
    }
    sherd__free(s->buckets);
    *s = bigger;
    return SHERD_OK;
}

sherd__block *sherd__store_find(const sherd__store *s, uint64_t job, uint32_t number)
{
    if (s->buckets_len == 0) return NULL;
    sherd__block *b = s->buckets[bucket_of(s, job, number)];
    while (b && (b->job != job || b->number != number)) b = b->next;
    return b;
}

int sherd__store_put(sherd__store *s, uint64_t job, uint32_t number, sherd_fragment *f)
{
    if (number == 0 || sherd__store_find(s, job, number)) return SHERD_EINVAL;
    if (s->blocks >= s->buckets_len && grow(s)) return SHERD_ENOMEM;
    sherd__block *b = sherd__alloc(sizeof *b);
    if (!b) return SHERD_ENOMEM;
    sherd__block **at = &s->buckets[bucket_of(s, job, number)];
    *b = (sherd__block){ .fragment = f, .job = job, .number = number, .refs = 1, .next = *at };
    *at = b;
    s->blocks++;
    s->bytes += sherd__fragment_info_of(f)->len;
    return SHERD_OK;
}

static void unlink_block(sherd__store *s, sherd__block **at)
{
    sherd__block *b = *at;
    *at = b->next;
    s->blocks--;
    s->bytes -= sherd__fragment_info_of(b->fragment)->len;
    sherd__block_release(b);
}

static size_t drop_job(sherd__store *s, uint64_t job)
{
    size_t n = 0;
    for (size_t i = 0; i < s->buckets_len; i++) {
        for (sherd__block **at = &s->buckets[i]; *at;) {
            if ((*at)->job != job) {
                at = &(*at)->next;
            } else {
                unlink_block(s, at);
                n++;
            }
        }
    }
    return n;
}

size_t sherd__store_drop(sherd__store *s, uint64_t job, uint32_t number)
{
    if (s->buckets_len == 0) return 0;
    if (number == 0) return drop_job(s, job);
    sherd__block **at = &s->buckets[bucket_of(s, job, number)];
    while (*at && ((*at)->job != job || (*at)->number != number)) at = &(*at)->next;
    if (!*at) return 0;
    unlink_block(s, at);
    return 1;
}

void sherd__store_fini(sherd__store *s)
{
    for (size_t i = 0; i < s->buckets_len; i++)
        while (s->buckets[i]) unlink_block(s, &s->buckets[i]);
    sherd__free(s->buckets);
    sherd__store_init(s);
}

void sherd__block_hold(sherd__block *b)
{
    b->refs++;
}

void sherd__block_release(sherd__block *b)
{
    if (!b || --b->refs > 0) return;
    sherd__fragment_free(b->fragment);
    sherd__free(b);
}
