/*
 * A seed is a number or a file of 32 raw bytes, the output of `head -c 32 /dev/urandom`. A number
 * is easy to repeat and to guess, so nothing secret may derive from it.
 */
#include "cli/seed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "sherd/train.h"
#include "store/file.h"

#define SEED_BYTES 32u
#define MAKE_ONE "head -c 32 /dev/urandom >FILE makes one"

static bool is_digits(const char *text)
{
    return *text != '\0' && text[strspn(text, "0123456789")] == '\0';
}

int sherd__seed_read(uint8_t seed[SEED_BYTES], const char *path, sherd_diag *d)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    sherd_diag why = { 0 };
    if (is_digits(path))
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

int sherd__seed_read_any(uint8_t seed[SEED_BYTES], uint64_t *number, bool *is_number,
                         const char *text, sherd_diag *d)
{
    bool digits = is_digits(text), signs = strchr("0123456789+-", *text) && *text != '\0';
    *is_number = false;
    if (!digits && (!signs || access(text, F_OK) == 0)) return sherd__seed_read(seed, text, d);
    errno = 0;
    unsigned long long n = digits ? strtoull(text, NULL, 10) : 0;
    if (!digits || errno || n > SHERD_TRAIN_SEED_MAX)
        return sherd__fail(d, SHERD_EINVAL, MAKE_ONE,
                           "--seed %s: expected a whole number from 0 to %" PRIu64
                           ", or a file of %u bytes",
                           text, SHERD_TRAIN_SEED_MAX, SEED_BYTES);
    *number = n;
    *is_number = true;
    return SHERD_OK;
}
