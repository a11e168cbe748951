/*
 * Loops compiled for several instruction sets, one of which is chosen when the program starts.
 * -march=native is not used, so that one build runs everywhere. All copies give the same bits (no
 * contraction; fma only where it is called by name). Compilers other than gcc (the fuzzers are
 * built with clang) build only the portable copy. So does the thread sanitizer, which is not
 * initialised yet when the choice is made.
 */
#ifndef MATRIX_CLONES_H
#define MATRIX_CLONES_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define SHERD__CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
/** For loops that call fma. */
#define SHERD__CLONES_FMA __attribute__((target_clones("avx512f", "fma", "default")))
/** For conversions between 64-bit integers and doubles, which AVX-512 DQ provides. */
#define SHERD__CLONES_DQ __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
/**
 * For sums and products of integers that all stay below 2^53, and for nothing else: a product and a
 * sum may be contracted to one fma, whose result is then the same.
 */
#define SHERD__CLONES_WHOLE                                                                        \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"),                   \
                   optimize("fp-contract=fast")))
/** For code that no compiler generates from portable loops: a function for processors with AVX2
 *  only, called where SHERD__IS_V3 is true. It is not defined on other platforms. */
#define SHERD__V3 __attribute__((target("arch=x86-64-v3")))
#define SHERD__IS_V3 __builtin_cpu_supports("x86-64-v3")
/** The same for AVX-512. */
#define SHERD__V4 __attribute__((target("arch=x86-64-v4")))
#define SHERD__IS_V4 __builtin_cpu_supports("x86-64-v4")
/** Like SHERD__V4, with products of 16-bit halves and shuffles of bytes: Ice Lake, Zen 4 and
 *  later. */
#define SHERD__V4_BYTES __attribute__((target("arch=x86-64-v4,avx512vnni,avx512vbmi")))
#define SHERD__IS_V4_BYTES                                                                         \
    (SHERD__IS_V4 && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi"))
#else
#define SHERD__CLONES
#define SHERD__CLONES_FMA
#define SHERD__CLONES_DQ
#define SHERD__CLONES_WHOLE
#endif

#endif
