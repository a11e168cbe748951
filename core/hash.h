/* The hash by which processes compare data that they hold: BLAKE2b, 256 bits. */
#ifndef CORE_HASH_H
#define CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { SHERD__HASH = 32 };

typedef struct sherd__hash_part {
    const void *bytes;
    size_t len;
} sherd__hash_part;

/** Hashes the n parts as one concatenated string. */
void sherd__hash_of(const sherd__hash_part *parts, size_t n, uint8_t out[SHERD__HASH]);

#endif
