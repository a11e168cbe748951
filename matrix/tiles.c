/* The request for tiles of AMX, and their configuration. */
#include "matrix/tiles.h"

#ifndef SHERD__V4_BYTES
bool sherd__tiles_here(void)
{
    return false;
}
#else
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

struct sherd__tiles_shape {
    uint8_t palette, start, none[14];
    uint16_t bytes[16];
    uint8_t rows[16];
};

const struct sherd__tiles_shape sherd__tiles_shape = {
    .palette = 1,
    .bytes = { 64, 64, 64, 64, 64, 64, 64, 64 },
    .rows = { 16, 16, 16, 16, 16, 16, 16, 16 },
};

static pthread_once_t asked = PTHREAD_ONCE_INIT;
static bool granted;

/* The state of the tiles adds 8 KB to what the system saves, so the system requires a request. */
static void ask(void)
{
    enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
    const char *core = getenv("OPENBLAS_CORETYPE");
    if (core && core[0] != '\0') return;
    if (!SHERD__IS_V4_BYTES || !__builtin_cpu_supports("amx-tile") ||
        !__builtin_cpu_supports("amx-int8"))
        return;
    granted = syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

bool sherd__tiles_here(void)
{
    (void)pthread_once(&asked, ask);
    return granted;
}
#endif
