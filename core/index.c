/* Hash table of entry numbers with linear probing; the entries are stored contiguously in a
 * buffer. */
#include "core/index.h"

#include <sodium.h>
#include <string.h>

#include "core/alloc.h"

enum { CAP_FIRST = 64 };

void sherd__index_init(sherd__index *x, size_t entry, size_t name, size_t bytes_max,
                       const sherd__table_key *key)
{
    *x = (sherd__index){ .key = *key, .entry = entry, .name = name };
    sherd__buf_init(&x->entries, bytes_max, 0);
}

void sherd__index_fini(sherd__index *x)
{
    sherd__buf_fini(&x->entries);
    sherd__free(x->slots);
    x->slots = NULL;
    x->cap = 0;
}

size_t sherd__index_len(const sherd__index *x)
{
    return x->entry ? x->entries.len / x->entry : 0;
}

void *sherd__index_at(const sherd__index *x, size_t i)
{
    return x->entries.data + i * x->entry;
}

uint32_t sherd__index_number(const sherd__index *x, const void *entry)
{
    return (uint32_t)((size_t)((const uint8_t *)entry - x->entries.data) / x->entry);
}

/* Returns the slot of this name, or the free slot where it is to be stored. */
static size_t slot_of(const sherd__index *x, const void *name)
{
    uint64_t hash;
    crypto_shorthash((unsigned char *)&hash, name, x->name, x->key.bytes);
    size_t at = (size_t)hash & (x->cap - 1);
    while (x->slots[at] && memcmp(sherd__index_at(x, x->slots[at] - 1), name, x->name))
        at = (at + 1) & (x->cap - 1);
    return at;
}

void *sherd__index_find(const sherd__index *x, const void *name)
{
    uint32_t number = x->cap ? x->slots[slot_of(x, name)] : 0;
    return number ? sherd__index_at(x, number - 1) : NULL;
}

static int grow(sherd__index *x)
{
    size_t cap = x->cap ? 2 * x->cap : CAP_FIRST;
    uint32_t *slots = sherd__calloc(cap, sizeof *slots);
    if (!slots) return SHERD_ENOMEM;
    sherd__free(x->slots);
    x->slots = slots;
    x->cap = cap;
    for (size_t i = 0; i < sherd__index_len(x); i++)
        slots[slot_of(x, sherd__index_at(x, i))] = (uint32_t)i + 1;
    return SHERD_OK;
}

int sherd__index_reserve_many(sherd__index *x, size_t n)
{
    uint8_t *at;
    size_t len = sherd__index_len(x);
    if (n >= UINT32_MAX - len) return SHERD_EINVAL;
    while (2 * (len + n) > x->cap)
        if (grow(x)) return SHERD_ENOMEM;
    return sherd__buf_reserve(&x->entries, n * x->entry, &at);
}

int sherd__index_reserve(sherd__index *x)
{
    return sherd__index_reserve_many(x, 1);
}

void *sherd__index_add(sherd__index *x, const void *name)
{
    uint8_t *at;
    if (sherd__index_reserve(x) || sherd__buf_reserve(&x->entries, x->entry, &at)) return NULL;
    size_t slot = slot_of(x, name);
    memset(at, 0, x->entry);
    memcpy(at, name, x->name);
    sherd__buf_commit(&x->entries, x->entry);
    x->slots[slot] = (uint32_t)sherd__index_len(x);
    return at;
}
