/* A seed is 32 raw bytes, not text: the output of `head -c 32 /dev/urandom`. */
#include "cli/seed.h"

#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "store/file.h"

#define SEED_BYTES 32u
#define MAKE_ONE "head -c 32 /dev/urandom >FILE makes one"

int sherd__seed_read(uint8_t seed[SEED_BYTES], const char *path, sherd_diag *d)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    sherd_diag why = { 0 };
    int err = sherd__file_read_small(&bytes, &len, path, 4096, &why);
    if (err) /* the user may have given a number, as other programs expect */
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
