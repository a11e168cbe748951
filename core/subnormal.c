/*
 * Control bits of floating-point units: FTZ and DAZ of MXCSR (Intel SDM, volume 1, 10.2.3), FZ of
 * FPCR (Arm ARM, C5.2.8). The functions are not inline: the compiler moves no arithmetic across a
 * call.
 */
#include "core/subnormal.h"

#include <stdint.h>

#if defined(__SSE2__)
#include <xmmintrin.h>

#define FLUSH UINT64_C(0x8040)

static uint64_t control(void)
{
    return _mm_getcsr();
}

static void set_control(uint64_t word)
{
    _mm_setcsr((unsigned)word);
}
#elif defined(__aarch64__)
#define FLUSH (UINT64_C(1) << 24)

static uint64_t control(void)
{
    uint64_t word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    return word;
}

static void set_control(uint64_t word)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(word));
}
#else
#define FLUSH UINT64_C(1)

static uint64_t control(void)
{
    return 0;
}

static void set_control(uint64_t word)
{
    (void)word;
}
#endif

bool sherd__subnormal_flushed(void)
{
    return (control() & FLUSH) == FLUSH;
}

bool sherd__subnormal_flush(bool flush)
{
    uint64_t word = control(), bits = flush ? FLUSH : 0;
    if ((word & FLUSH) != bits) set_control((word & ~FLUSH) | bits);
    return (word & FLUSH) == FLUSH;
}
