/* See driver_library.h. */
#include "node/backends/driver_library.h"

#include <dlfcn.h>
#include <string.h>

#include "core/diag.h"

int sherd__driver_library(void **out, const char *file, const char *const *names, const char *what,
                          const char *hint, sherd_diag *d)
{
    void *library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; !file && names[i] && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        return sherd__fail(d, SHERD_EUNSUPPORTED, hint, "%s cannot be loaded: %.200s", what,
                           why ? why : "no reason given");
    }
    *out = library;
    return SHERD_OK;
}

void sherd__driver_symbol(void *library, const char *name, void *member)
{
    void *symbol = dlsym(library, name);
    memcpy(member, &symbol, sizeof symbol);
}
