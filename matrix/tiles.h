/* Tiles of AMX, as products of bytes use them: eight tiles of 16 rows of 64 bytes. */
#ifndef MATRIX_TILES_H
#define MATRIX_TILES_H

#include <stdbool.h>

#include "matrix/clones.h"

/** Returns whether this processor multiplies tiles of bytes and the system lets the process use
 *  them; the system is asked once. Returns false if OPENBLAS_CORETYPE is set: a user who names an
 *  older processor gets what that processor supports. */
bool sherd__tiles_here(void);

#ifdef SHERD__V4_BYTES
#define SHERD__TILES                                                                               \
    __attribute__((target("arch=x86-64-v4,avx512vnni,avx512vbmi,amx-tile,amx-int8")))
/** The configuration for _tile_loadconfig. */
extern const struct sherd__tiles_shape sherd__tiles_shape;
/** Begins and ends the use of tiles by a thread; in functions with SHERD__TILES. */
#define SHERD__TILES_BEGIN()                                                                       \
    do {                                                                                           \
        _tile_loadconfig(&sherd__tiles_shape);                                                     \
        __asm__ volatile("" ::: "memory"); /* the intrinsics do not declare what they read */      \
    } while (0)
#define SHERD__TILES_END() _tile_release()
#endif

#endif
