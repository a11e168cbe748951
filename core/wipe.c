/* libsodium's erasure under a name of this library, for folders that do not otherwise use
 * libsodium. */
#include "core/wipe.h"

#include <sodium.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

void sherd__wipe(void *p, size_t len)
{
    sodium_memzero(p, len);
}

#define FEW_PAGES 16u /* fewer pages are wiped faster than the system takes them back */

void sherd__wipe_pages(void *p, size_t len)
{
    uint8_t *at = p;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), edge = (size_t)(-(uintptr_t)p & (page - 1));
    size_t inner = len > edge ? (len - edge) & ~(page - 1) : 0;
    if (inner < FEW_PAGES * page || madvise(at + edge, inner, MADV_DONTNEED)) {
        sherd__wipe(p, len);
        return;
    }
    sherd__wipe(at, edge);
    sherd__wipe(at + edge + inner, len - edge - inner);
}
