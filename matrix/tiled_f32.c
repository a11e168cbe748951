/* The kernels of matrix/tiled.c in f32. */
#include <stdbool.h>
#include <stddef.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "matrix/tiled_internal.h"

#define REAL float

#define LEVEL base
#define TARGET
#define VBYTES 16
#define MR 6
#define FMA(x, v, s) ((s) + (x) * (v))
#include "matrix/tiled_kernel.inc"

#ifdef __x86_64__
#define LEVEL fma
#define TARGET __attribute__((target("avx2,fma")))
#define VBYTES 32
#define MR 6
#define FMA(x, v, s) _mm256_fmadd_ps(_mm256_set1_ps(x), v, s)
#include "matrix/tiled_kernel.inc"

#define LEVEL avx512
#define TARGET __attribute__((target("avx512f,avx512dq,avx512vl,fma")))
#define VBYTES 64
#define MR 14
#define FMA(x, v, s) _mm512_fmadd_ps(_mm512_set1_ps(x), v, s)
#define BYTES(p) _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(p))))
#include "matrix/tiled_kernel.inc"
#endif

const sherd__tiles *sherd__tiles_f32(unsigned level)
{
#ifdef __x86_64__
    if (level == 3) return &tiles_avx512;
    if (level == 2) return &tiles_fma;
#endif
    return level == 1 ? &tiles_base : NULL;
}
