/*
 * The macros with which one source is read as C for the host, as OpenCL C 1.2 and as CUDA C++.
 *
 * A kernel (SHERD__ENTRY) runs in groups of SHERD__GROUP items. SHERD__ITEMS { ... } is a part of
 * it that every item executes; SHERD__BARRIER separates parts that exchange numbers through memory
 * of the group (SHERD__SHARED). On a device each item has a thread. On the host a group is one call
 * of a function and SHERD__ITEMS a loop over its items, so variables that an item keeps from one
 * part to the next are declared with SHERD__PRIVATE and used by SHERD__MINE. The host's compilation
 * is the reference for the others.
 *
 * All kernels have the same parameters (SHERD__ENTRY): two operands, the result, a word that is set
 * where a value is out of range, and the job, which a source defines as sherd__kernel_job.
 *
 * Floating-point operations are not contracted (CUDA: --fmad=false). Where the device has no
 * float64, SHERD__F64 is 0.
 */
#ifndef CORE_KERNEL_H
#define CORE_KERNEL_H

#define SHERD__GROUP 256

#if defined(__OPENCL_VERSION__)

#define SHERD__DEVICE
#pragma OPENCL FP_CONTRACT OFF
#if defined(cl_khr_fp64) || __OPENCL_VERSION__ >= 300 && defined(__opencl_c_fp64)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define SHERD__F64 1
#else
#define SHERD__F64 0
#endif
typedef uchar uint8_t;
typedef char int8_t;
typedef ushort uint16_t;
typedef short int16_t;
typedef uint uint32_t;
typedef int int32_t;
typedef ulong uint64_t;
typedef long int64_t;
#define UINT64_C(x) x##UL
#define INT64_C(x) x##L
#define SHERD__FUNCTION static inline
#define SHERD__GLOBAL __global
#define SHERD__SHARED __local
#define SHERD__PRIVATE(type, name, size) type name size
#define SHERD__MINE(name) name
#define SHERD__ITEMS for (uint32_t item = (uint32_t)get_local_id(0), once = 0; !once; once = 1)
#define SHERD__BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define SHERD__ENTRY(name)                                                                         \
    __kernel __attribute__((reqd_work_group_size(SHERD__GROUP, 1, 1))) void                        \
    name(__global const uint8_t *left, __global const uint8_t *right, __global uint8_t *out,       \
         __global uint32_t *bad, const sherd__kernel_job job)
#define SHERD__GROUP_X ((uint32_t)get_group_id(0))
#define SHERD__GROUP_Y ((uint32_t)get_group_id(1))

#elif defined(__CUDACC__)

#include <stdint.h>

#define SHERD__DEVICE
#define SHERD__F64 1
#define SHERD__FUNCTION static __device__ __forceinline__
#define SHERD__GLOBAL
#define SHERD__SHARED __shared__
#define SHERD__PRIVATE(type, name, size) type name size
#define SHERD__MINE(name) name
#define SHERD__ITEMS for (uint32_t item = threadIdx.x, once = 0; !once; once = 1)
#define SHERD__BARRIER __syncthreads()
#define SHERD__ENTRY(name)                                                                         \
    extern "C" __global__ void __launch_bounds__(SHERD__GROUP)                                     \
        name(const uint8_t *left, const uint8_t *right, uint8_t *out, uint32_t *bad,               \
             const sherd__kernel_job job)
#define SHERD__GROUP_X blockIdx.x
#define SHERD__GROUP_Y blockIdx.y

#else

#include <math.h>
#include <stdint.h>
#include <string.h>

#define SHERD__F64 1
#define SHERD__FUNCTION static inline __attribute__((always_inline))
#define SHERD__GLOBAL
#define SHERD__SHARED
#define SHERD__PRIVATE(type, name, size) type name[SHERD__GROUP] size
#define SHERD__MINE(name) name[item]
#define SHERD__ITEMS for (uint32_t item = 0; item < SHERD__GROUP; item++)
#define SHERD__BARRIER (void)0
#define SHERD__ENTRY(name)                                                                         \
    static void name(const uint8_t *left, const uint8_t *right, uint8_t *out, uint32_t *bad,       \
                     const sherd__kernel_job job, uint32_t group_x, uint32_t group_y)
#define SHERD__GROUP_X group_x
#define SHERD__GROUP_Y group_y

#endif

#if SHERD__F64
SHERD__FUNCTION double sherd__kernel_double(uint64_t bits)
{
#if defined(__OPENCL_VERSION__)
    return as_double(bits);
#elif defined(__CUDACC__)
    return __longlong_as_double((long long)bits);
#else
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
#endif
}

SHERD__FUNCTION uint64_t sherd__kernel_bits(double x)
{
#if defined(__OPENCL_VERSION__)
    return as_ulong(x);
#elif defined(__CUDACC__)
    return (uint64_t)__double_as_longlong(x);
#else
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
#endif
}
#endif

#endif
