/* libsodium's erasure under our name, for the rooms that have no other business with libsodium. */
#include "core/wipe.h"

#include <sodium.h>

void sherd__wipe(void *p, size_t len)
{
    sodium_memzero(p, len);
}
