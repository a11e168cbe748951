/*
 * Entries of one size in one array, numbered as they were added, found by their first bytes in
 * constant time, whatever names others choose (SipHash under a key). Nothing is taken out.
 */
#ifndef CORE_INDEX_H
#define CORE_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/grouped.h"

typedef struct sherd__index {
    sherd__table_key key;
    size_t entry, name; /* bytes of an entry, and of these the name's, which come first */
    sherd_buf entries;
    uint32_t *slots; /* number of an entry and 1; 0: none. At most half are taken */
    size_t cap;      /* 0 or a power of two */
} sherd__index;

/** Entries of `entry` bytes, a multiple of 8, take bytes_max in all at most. */
void sherd__index_init(sherd__index *x, size_t entry, size_t name, size_t bytes_max,
                       const sherd__table_key *key);
void sherd__index_fini(sherd__index *x);

size_t sherd__index_len(const sherd__index *x);
/** Entry i < len; valid until the next one is added. */
void *sherd__index_at(const sherd__index *x, size_t i);
/** The number of an entry that was found. */
uint32_t sherd__index_number(const sherd__index *x, const void *entry);
/** The entry of this name, or NULL; valid likewise. */
void *sherd__index_find(const sherd__index *x, const void *name);
/** Room for one more entry: to add it cannot fail then. SHERD_ENOMEM, SHERD_EINVAL: too many. */
int sherd__index_reserve(sherd__index *x) SHERD_MUST;
/** Likewise for n of them. */
int sherd__index_reserve_many(sherd__index *x, size_t n) SHERD_MUST;
/** A new entry, zeros behind its name. An older one of that name is found no more. NULL: no
 *  room. */
void *sherd__index_add(sherd__index *x, const void *name);

#endif
