/* Hashes the parts in place, without a copy: the data compared may be as large as memory. */
#include "core/hash.h"

#include <sodium.h>

void sherd__hash_of(const sherd__hash_part *parts, size_t n, uint8_t out[SHERD__HASH])
{
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, SHERD__HASH);
    for (size_t i = 0; i < n; i++) crypto_generichash_update(&state, parts[i].bytes, parts[i].len);
    crypto_generichash_final(&state, out, SHERD__HASH);
}
