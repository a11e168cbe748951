/*
 * The buffer doubles up to the cap. A secret buffer grows by copy and wipe, never by realloc, which
 * would leave the old bytes in freed memory.
 */
#include "core/buf.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "core/alloc.h"

void sherd__buf_init(sherd__buf *b, size_t cap_max, int secret)
{
    *b = (sherd__buf){ .cap_max = cap_max, .secret = secret };
}

void sherd__buf_fini(sherd__buf *b)
{
    if (b->secret && b->data) sodium_memzero(b->data, b->cap);
    sherd__free(b->data);
    *b = (sherd__buf){ .cap_max = b->cap_max, .secret = b->secret };
}

int sherd__buf_reserve(sherd__buf *b, size_t len, uint8_t **at)
{
    if (len > b->cap_max - b->len) return SHERD_EINVAL;
    if (len > b->cap - b->len) {
        size_t cap = b->cap ? b->cap : 64;
        while (cap < b->len + len && cap <= b->cap_max / 2) cap *= 2;
        if (cap < b->len + len || cap > b->cap_max) cap = b->cap_max;
        uint8_t *p = sherd__alloc(cap);
        if (!p) return SHERD_ENOMEM;
        if (b->len) memcpy(p, b->data, b->len);
        if (b->secret && b->data) sodium_memzero(b->data, b->cap);
        sherd__free(b->data);
        b->data = p;
        b->cap = cap;
    }
    *at = b->data + b->len;
    return SHERD_OK;
}

void sherd__buf_commit(sherd__buf *b, size_t len)
{
    assert(len <= b->cap - b->len && "sherd__buf_reserve made room");
    b->len += len;
}

int sherd__buf_append(sherd__buf *b, const void *src, size_t len)
{
    uint8_t *at;
    int err = sherd__buf_reserve(b, len, &at);
    if (err) return err;
    if (len) memcpy(at, src, len);
    b->len += len;
    return SHERD_OK;
}

void sherd__buf_consume(sherd__buf *b, size_t n)
{
    assert(n <= b->len);
    if (n < b->len) memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
}
