/* See cublas_api.h. */
#include "node/backends/cublas_api.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/diag.h"
#include "node/backends/driver_library.h"

#define OLDEST 11 /* major versions of CUDA */
#define NEWEST 13
#define HINT "SHERD_CUDA_PATH can name the folder of a toolkit or of a Python wheel that has it"

static int load_file(void **out, const char *file, sherd_diag *d)
{
    return sherd__driver_library(out, file, NULL, "cuBLAS", NULL, d);
}

/* Loads both libraries of a folder: libcublas finds libcublasLt by its name once that is loaded.
 * SHERD_EUNSUPPORTED: the folder has none. */
static int load_from(void **out, const char *folder, int major, sherd_diag *d)
{
    static const char *const below[] = { "", "/lib64", "/lib" };
    char file[PATH_MAX + 64];
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        void *lt;
        snprintf(file, sizeof file, "%.4000s%s/libcublas.so.%d", folder, below[i], major);
        if (access(file, F_OK)) continue;
        snprintf(file, sizeof file, "%.4000s%s/libcublasLt.so.%d", folder, below[i], major);
        int err = load_file(&lt, file, d);
        snprintf(file, sizeof file, "%.4000s%s/libcublas.so.%d", folder, below[i], major);
        if (!err) err = load_file(out, file, d);
        return err ? SHERD_EINVAL : SHERD_OK;
    }
    return SHERD_EUNSUPPORTED;
}

static int find_in(void **out, const char *folder, int newest, sherd_diag *d)
{
    int err = SHERD_EUNSUPPORTED;
    if (!*folder) return sherd__fail(d, err, NULL, "cuBLAS is not used: SHERD_CUDA_PATH is empty");
    for (int major = newest; major >= OLDEST && err == SHERD_EUNSUPPORTED; major--)
        err = load_from(out, folder, major, d);
    if (err != SHERD_EUNSUPPORTED) return err;
    return sherd__fail(
        d, SHERD_EINVAL, NULL,
        "cuBLAS cannot be loaded: SHERD_CUDA_PATH has no libcublas.so.%d%s, nor has its "
        "lib64 or lib: %.100s",
        newest, newest > OLDEST ? " or an older one" : "", folder);
}

/* Finds the library where the system's loader looks for libraries. */
static int find_anywhere(void **out, int newest, int driver, sherd_diag *d)
{
    char names[NEWEST - OLDEST + 1][32];
    const char *list[NEWEST - OLDEST + 2] = { NULL };
    sherd_diag why = { .code = 0 };
    for (int i = 0; newest - i >= OLDEST; i++) {
        snprintf(names[i], sizeof names[i], "libcublas.so.%d", newest - i);
        list[i] = names[i];
    }
    int err = sherd__driver_library(out, NULL, list, "cuBLAS", HINT, &why);
    return err ? sherd__fail(d, err, HINT, "%s (the driver has CUDA %d.%d)", why.message,
                             driver / 1000, driver % 1000 / 10)
               : SHERD_OK;
}

int sherd__cublas_load(cublas_api *out, int driver, sherd_diag *d)
{
    const char *folder = getenv("SHERD_CUDA_PATH");
    const int newest = driver / 1000 < NEWEST ? driver / 1000 : NEWEST;
    cublas_api a = { .major = 0 };
    void *library = NULL;
    int err = folder ? find_in(&library, folder, newest, d)
                     : find_anywhere(&library, newest, driver, d);
    if (err) return err;
#define FIND(name, parameters) sherd__driver_symbol(library, "cublas" #name, &a.name);
#define NEED(name, parameters)                                                                     \
    if (!a.name)                                                                                   \
        return sherd__fail(d, SHERD_EUNSUPPORTED, "use one of CUDA 11.2 or later",                 \
                           "cuBLAS %d.%d has no function cublas" #name, a.major, a.minor);
    CUBLAS_REQUIRED(FIND)
    CUBLAS_OPTIONAL(FIND)
    if (a.GetProperty)
        (void)(a.GetProperty(SHERD__CUBLAS_MAJOR_VERSION, &a.major) ||
               a.GetProperty(SHERD__CUBLAS_MINOR_VERSION, &a.minor));
    CUBLAS_REQUIRED(NEED)
    *out = a;
    return SHERD_OK;
}

const char *sherd__cublas_error(cublas_status status)
{
#define NAME(name, number)                                                                         \
    case number: return "CUBLAS_STATUS_" #name;
    switch ((int)status) {
        CUBLAS_STATUSES(NAME)
    default: return "an error of cuBLAS";
    }
}
