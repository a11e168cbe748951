/* Copies between option structs of different versions of the public interface. */
#include "core/options.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "core/diag.h"

/* No struct of this interface comes near it: a larger size was never initialised. */
#define SIZE_LIMIT ((size_t)1 << 16)

void sherd__options_init(void *opt, size_t opt_size, const void *defaults, size_t size)
{
    assert(opt_size >= sizeof opt_size);
    memset(opt, 0, opt_size);
    memcpy(opt, defaults, opt_size < size ? opt_size : size);
    memcpy(opt, &opt_size, sizeof opt_size);
}

int sherd__options_read(void *to, size_t size, const void *from, size_t first, const char *what,
                        sherd_diag *d)
{
    const uint8_t *bytes = from;
    size_t from_size;
    memcpy(&from_size, bytes, sizeof from_size);
    if (from_size < first || from_size > SIZE_LIMIT)
        return sherd__fail(d, SHERD_EINVAL, "call its _init function before setting members",
                           "%s: size is %zu, expected %zu", what, from_size, size);
    for (size_t i = size; i < from_size; i++)
        if (bytes[i])
            return sherd__fail(d, SHERD_EUNSUPPORTED,
                               "use the library that the program was built for",
                               "%s: a member at byte %zu is set that this library does not know",
                               what, i);
    memcpy(to, from, from_size < size ? from_size : size);
    memcpy(to, &size, sizeof size);
    return 0;
}
