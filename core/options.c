/* Copies between structs of different versions of the public interface. */
#include "core/options.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "core/diag.h"

/* All structs of this interface are far smaller: a larger size is an uninitialised one. */
#define SIZE_LIMIT ((size_t)1 << 16)

static size_t size_of(const void *x)
{
    size_t size;
    memcpy(&size, x, sizeof size);
    return size;
}

static int check(size_t found, const char *what, sherd_diag *d)
{
    if (found > sizeof found && found <= SIZE_LIMIT) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, "set the struct to zero, then `size` to its sizeof",
                       "%s.size is %zu, not the size of the struct", what, found);
}

int sherd__options_read(void *to, size_t size, const void *from, const char *what, sherd_diag *d)
{
    const uint8_t *bytes = from;
    size_t from_size = from ? size_of(from) : size, shared = from_size < size ? from_size : size;
    int err = check(from_size, what, d);
    if (err) return err;
    for (size_t i = size; i < from_size; i++)
        if (bytes[i])
            return sherd__fail(d, SHERD_EUNSUPPORTED,
                               "use the library that the program was built for",
                               "%s: a member at byte %zu is set that this library does not know",
                               what, i);
    if (from) memcpy(to, from, shared);
    else shared = 0;
    memset((uint8_t *)to + shared, 0, size - shared);
    memcpy(to, &size, sizeof size);
    return SHERD_OK;
}

int sherd__result_check(const void *out, const char *what, sherd_diag *d)
{
    if (!out) return sherd__fail(d, SHERD_EINVAL, NULL, "%s is NULL", what);
    return check(size_of(out), what, d);
}

void sherd__result_write(void *out, const void *result, size_t size)
{
    size_t out_size = size_of(out), shared = out_size < size ? out_size : size;
    assert(shared > sizeof out_size);
    memcpy((uint8_t *)out + sizeof out_size, (const uint8_t *)result + sizeof out_size,
           shared - sizeof out_size);
    memset((uint8_t *)out + shared, 0, out_size - shared);
}
