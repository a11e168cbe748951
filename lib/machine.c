/*
 * Libraries are found by symbol name, so that this file does not include headers of other layers,
 * and are asked at run time: those installed may be newer than those of the build.
 */
#include "sherd/machine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/cpu.h"
#include "core/field.h"
#include "core/memory.h"
#include "core/options.h"
#include "matrix/blas_room.h"
#include "matrix/gemm.h"

static const struct {
    const char *library, *symbol;
    int takes; /* -1: no argument */
} asked[] = {
    { "libuv", "uv_version_string", -1 },
    { "libsodium", "sodium_version_string", -1 },
    { "openssl", "OpenSSL_version", 6 },
    { "libzip", "zip_libzip_version", -1 },
    { "zlib", "zlibVersion", -1 },
    { "jansson", "jansson_version_str", -1 },
    { "openblas", "openblas_get_config", -1 },
};

#define LIBRARIES (sizeof asked / sizeof *asked)

/* Returns a string that a loaded library reports about itself, or NULL. */
static const char *ask(const char *symbol, int argument)
{
    void *address = dlsym(RTLD_DEFAULT, symbol);
    if (!address) return NULL;
    if (argument >= 0) {
        const char *(*with_argument)(int);
        memcpy(&with_argument, &address, sizeof address);
        return with_argument(argument);
    }
    const char *(*plain)(void);
    memcpy(&plain, &address, sizeof address);
    return plain();
}

const char *sherd_library_name(size_t i)
{
    return i < LIBRARIES ? asked[i].library : NULL;
}

void sherd_library_version(size_t i, char *out, size_t size)
{
    static const char blas[] = "OpenBLAS ";
    const char *version = i < LIBRARIES ? ask(asked[i].symbol, asked[i].takes) : NULL;
    if (version && strncmp(version, blas, sizeof blas - 1) == 0) version += sizeof blas - 1;
    if (version) snprintf(out, size, "%.*s", (int)strcspn(version, " "), version);
    else snprintf(out, size, "not loaded");
}

int sherd_machine_get(sherd_machine *out, sherd_diag *d)
{
    int err = sherd__result_check(out, "sherd_machine", d);
    if (err) return err;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    sherd_machine m = { .cores = sherd__cpu_usable(),
                        .cores_online = online > 0 ? (uint32_t)online : 0,
                        .memory_available = sherd__memory_available() };
    m.memory = sherd__memory_machine(&m.memory_limit);
    m.cores_limited = m.cores < m.cores_online && sherd__cpu_quota(SHERD__CPU_QUOTA) == m.cores;
    snprintf(m.blas_core, sizeof m.blas_core, "%s", sherd__blas_core());
    sherd__result_write(out, &m, sizeof m);
    return SHERD_OK;
}

static const sherd_field machine_fields[] = {
    SHERD__FIELD(sherd_machine, blas_core, TEXT, "", "kernels that OpenBLAS uses"),
    SHERD__FIELD(sherd_machine, cores, U32, "", "processors that this process may use"),
    SHERD__FIELD(sherd_machine, cores_online, U32, "", "processors of the machine"),
    SHERD__FIELD(sherd_machine, cores_limited, BOOL, "", "the control group allows no more"),
    SHERD__FIELD(sherd_machine, memory, U64, "bytes", "memory of the machine"),
    SHERD__FIELD(sherd_machine, memory_limit, U64, "bytes", "limit of the container"),
    SHERD__FIELD(sherd_machine, memory_available, U64, "bytes",
                 "memory that this process can fill"),
};
SHERD__FIELDS(sherd_machine, machine_fields)

int sherd_blas_ready(sherd_diag *d)
{
    return sherd__blas_settle(d);
}

void sherd_blas_threads_set(unsigned threads)
{
    sherd__blas_threads_set(threads);
}

uint64_t sherd_blas_calls(void)
{
    return sherd__blas_calls();
}
