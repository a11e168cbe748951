/*
 * An array of entries of one size, numbered in the order in which they were added. An entry is
 * found by its first bytes, its name, in constant time, whatever names a peer chooses (SipHash
 * under a key). Entries are never removed.
 */
#ifndef CORE_INDEX_H
#define CORE_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/grouped.h"

typedef struct sherd__index {
    sherd__table_key key;
    size_t entry, name; /* bytes of an entry, and of the name at its start */
    sherd__buf entries;
    uint32_t *slots; /* number of an entry plus 1; 0: free. At most half are taken */
    size_t cap;      /* 0 or a power of two */
} sherd__index;

/** Initialises an index of entries of `entry` bytes (a multiple of 8) and at most bytes_max bytes
 *  in all. A name has `name` bytes. */
void sherd__index_init(sherd__index *x, size_t entry, size_t name, size_t bytes_max,
                       const sherd__table_key *key);
void sherd__index_fini(sherd__index *x);

size_t sherd__index_len(const sherd__index *x);
/** Returns entry i, i < len. The pointer is valid until the next entry is added. */
void *sherd__index_at(const sherd__index *x, size_t i);
/** Returns the number of an entry that was found. */
uint32_t sherd__index_number(const sherd__index *x, const void *entry);
/** Returns the entry of this name, or NULL. The pointer is valid until the next entry is added. */
void *sherd__index_find(const sherd__index *x, const void *name);
/** Reserves room for one more entry, so that adding it cannot fail. Errors: SHERD_ENOMEM;
 *  SHERD_EINVAL if there would be too many entries. */
int sherd__index_reserve(sherd__index *x) SHERD_MUST;
/** Reserves room for n more entries; errors as for sherd__index_reserve. */
int sherd__index_reserve_many(sherd__index *x, size_t n) SHERD_MUST;
/** Adds an entry with this name, followed by zeros. An older entry of the same name is no longer
 *  found. Returns NULL if there is no room. */
void *sherd__index_add(sherd__index *x, const void *name);

#endif
