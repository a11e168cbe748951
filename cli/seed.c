/*
 * A seed is a number or a file of 32 raw bytes, the output of `head -c 32 /dev/urandom`. A number
 * is easy to repeat and to guess, so nothing secret may derive from it.
 */
#include "cli/seed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "store/file.h"

#define SEED_BYTES 32u
#define MAKE_ONE "head -c 32 /dev/urandom >FILE makes one"

bool sherd__seed_number(const char *text, uint64_t *out)
{
    if (*text == '\0' || text[strspn(text, "0123456789")] != '\0') return false;
    errno = 0;
    unsigned long long n = strtoull(text, NULL, 10);
    *out = errno ? UINT64_MAX : (uint64_t)n;
    return true;
}

int sherd__seed_read(uint8_t seed[SEED_BYTES], const char *path, sherd_diag *d)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    sherd_diag why = { 0 };
    uint64_t number;
    if (sherd__seed_number(path, &number))
        return sherd__fail(d, SHERD_EINVAL, MAKE_ONE ", or name the file ./N",
                           "--seed %s: a number can be guessed, and the permutations that derive "
                           "from this seed are secret: expected a file of %u random bytes",
                           path, SEED_BYTES);
    int err = sherd__file_read_small(&bytes, &len, path, 4096, &why);
    if (err)
        return sherd__fail(d, err, err == SHERD_EINTERRUPTED ? NULL : MAKE_ONE,
                           "--seed names a file of %u bytes; %s", SEED_BYTES, why.message);
    if (len == SEED_BYTES) memcpy(seed, bytes, SEED_BYTES);
    else
        err = sherd__fail(d, SHERD_EFORMAT, MAKE_ONE,
                          "%s: expected a seed of exactly 32 bytes, found %zu", path, len);
    sherd__wipe(bytes, len);
    sherd__free(bytes);
    return err;
}
