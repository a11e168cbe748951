/*
 * The functions of CUDA's driver that the backend uses, found in libcuda when a node starts:
 * nothing of CUDA is needed to build or to link. The declarations are our own. Where the real
 * header has been included before (a test does), its types are used, and the test compares the
 * functions.
 */
#ifndef NODE_BACKENDS_CUDA_API_H
#define NODE_BACKENDS_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

#ifdef CUDA_VERSION
typedef CUresult cuda_result;
typedef CUdevice_attribute cuda_attribute;
typedef CUjit_option cuda_jit_option;
typedef CUdeviceptr cuda_pointer;
typedef CUdevice cuda_device;
typedef CUcontext cuda_context;
typedef CUmodule cuda_module;
typedef CUfunction cuda_function;
typedef CUstream cuda_stream;
typedef CUevent cuda_event;
#else
typedef unsigned cuda_result;
typedef unsigned cuda_attribute;
typedef unsigned cuda_jit_option;
typedef unsigned long long cuda_pointer;
typedef int cuda_device;
typedef struct cuda_context_type *cuda_context;
typedef struct cuda_module_type *cuda_module;
typedef struct cuda_function_type *cuda_function;
typedef struct cuda_stream_type *cuda_stream;
typedef struct cuda_event_type *cuda_event;
#endif

/* X(NAME, number): CUDA_ERROR_NAME. */
#define CUDA_ERRORS(X)                                                                             \
    X(OUT_OF_MEMORY, 2)                                                                            \
    X(NOT_INITIALIZED, 3)                                                                          \
    X(DEINITIALIZED, 4)                                                                            \
    X(STUB_LIBRARY, 34)                                                                            \
    X(DEVICE_UNAVAILABLE, 46)                                                                      \
    X(NO_DEVICE, 100)                                                                              \
    X(INVALID_DEVICE, 101)                                                                         \
    X(INVALID_CONTEXT, 201)                                                                        \
    X(NO_BINARY_FOR_GPU, 209)                                                                      \
    X(ECC_UNCORRECTABLE, 214)                                                                      \
    X(INVALID_PTX, 218)                                                                            \
    X(NVLINK_UNCORRECTABLE, 220)                                                                   \
    X(JIT_COMPILER_NOT_FOUND, 221)                                                                 \
    X(UNSUPPORTED_PTX_VERSION, 222)                                                                \
    X(JIT_COMPILATION_DISABLED, 223)                                                               \
    X(CONTAINED, 226)                                                                              \
    X(OPERATING_SYSTEM, 304)                                                                       \
    X(ILLEGAL_ADDRESS, 700)                                                                        \
    X(LAUNCH_OUT_OF_RESOURCES, 701)                                                                \
    X(LAUNCH_TIMEOUT, 702)                                                                         \
    X(CONTEXT_IS_DESTROYED, 709)                                                                   \
    X(ASSERT, 710)                                                                                 \
    X(HARDWARE_STACK_ERROR, 714)                                                                   \
    X(ILLEGAL_INSTRUCTION, 715)                                                                    \
    X(MISALIGNED_ADDRESS, 716)                                                                     \
    X(INVALID_ADDRESS_SPACE, 717)                                                                  \
    X(INVALID_PC, 718)                                                                             \
    X(LAUNCH_FAILED, 719)                                                                          \
    X(NOT_PERMITTED, 800)                                                                          \
    X(SYSTEM_NOT_READY, 802)                                                                       \
    X(SYSTEM_DRIVER_MISMATCH, 803)                                                                 \
    X(COMPAT_NOT_SUPPORTED_ON_DEVICE, 804)                                                         \
    X(MPS_CONNECTION_FAILED, 805)                                                                  \
    X(MPS_RPC_FAILURE, 806)                                                                        \
    X(MPS_CLIENT_TERMINATED, 810)                                                                  \
    X(EXTERNAL_DEVICE, 911)                                                                        \
    X(UNKNOWN, 999)

/* X(NAME, number): CU_NAME. */
#define CUDA_NUMBERS(X)                                                                            \
    X(DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                                                   \
    X(DEVICE_ATTRIBUTE_INTEGRATED, 18)                                                             \
    X(DEVICE_ATTRIBUTE_COMPUTE_MODE, 20)                                                           \
    X(DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                                               \
    X(DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                                               \
    X(COMPUTEMODE_PROHIBITED, 2)                                                                   \
    X(COMPUTEMODE_EXCLUSIVE_PROCESS, 3)                                                            \
    X(CTX_SCHED_BLOCKING_SYNC, 4)                                                                  \
    X(STREAM_NON_BLOCKING, 1)                                                                      \
    X(EVENT_BLOCKING_SYNC, 1)                                                                      \
    X(EVENT_DISABLE_TIMING, 2)                                                                     \
    X(JIT_ERROR_LOG_BUFFER, 5)                                                                     \
    X(JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6)

#define CUDA_ERROR_NUMBER(name, number) SHERD__CUDA_##name = (number),
#define CUDA_NUMBER(name, number) SHERD__CU_##name = (number),
enum { SHERD__CUDA_SUCCESS = 0, CUDA_ERRORS(CUDA_ERROR_NUMBER) CUDA_NUMBERS(CUDA_NUMBER) };

/* X(NAME, parameters): cuNAME, a function that returns a cuda_result. */
#define CUDA_REQUIRED(X)                                                                           \
    X(Init, (unsigned))                                                                            \
    X(DriverGetVersion, (int *))                                                                   \
    X(DeviceGetCount, (int *))                                                                     \
    X(DeviceGet, (cuda_device *, int))                                                             \
    X(DeviceGetName, (char *, int, cuda_device))                                                   \
    X(DeviceGetAttribute, (int *, cuda_attribute, cuda_device))                                    \
    X(DeviceTotalMem_v2, (size_t *, cuda_device))                                                  \
    X(DevicePrimaryCtxRetain, (cuda_context *, cuda_device))                                       \
    X(DevicePrimaryCtxRelease_v2, (cuda_device))                                                   \
    X(CtxSetCurrent, (cuda_context))                                                               \
    X(MemGetInfo_v2, (size_t *, size_t *))                                                         \
    X(MemAlloc_v2, (cuda_pointer *, size_t))                                                       \
    X(MemFree_v2, (cuda_pointer))                                                                  \
    X(MemHostAlloc, (void **, size_t, unsigned))                                                   \
    X(MemFreeHost, (void *))                                                                       \
    X(MemcpyHtoDAsync_v2, (cuda_pointer, const void *, size_t, cuda_stream))                       \
    X(MemcpyDtoHAsync_v2, (void *, cuda_pointer, size_t, cuda_stream))                             \
    X(MemsetD32Async, (cuda_pointer, unsigned, size_t, cuda_stream))                               \
    X(StreamCreate, (cuda_stream *, unsigned))                                                     \
    X(StreamDestroy_v2, (cuda_stream))                                                             \
    X(StreamSynchronize, (cuda_stream))                                                            \
    X(EventCreate, (cuda_event *, unsigned))                                                       \
    X(EventDestroy_v2, (cuda_event))                                                               \
    X(EventRecord, (cuda_event, cuda_stream))                                                      \
    X(EventSynchronize, (cuda_event))                                                              \
    X(ModuleLoadDataEx, (cuda_module *, const void *, unsigned, cuda_jit_option *, void **))       \
    X(ModuleUnload, (cuda_module))                                                                 \
    X(ModuleGetFunction, (cuda_function *, cuda_module, const char *))                             \
    X(LaunchKernel, (cuda_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,    \
                     unsigned, cuda_stream, void **, void **))
/* Without the first, waiting threads use a processor; without the second, errors are numbers. */
#define CUDA_OPTIONAL(X)                                                                           \
    X(DevicePrimaryCtxSetFlags_v2, (cuda_device, unsigned))                                        \
    X(GetErrorName, (cuda_result, const char **))

#define CUDA_MEMBER(name, parameters) cuda_result(*name) parameters;
typedef struct cuda_api {
    void *library;
    int version; /* of CUDA that the driver supports: 12040 is 12.4 */
    CUDA_REQUIRED(CUDA_MEMBER)
    CUDA_OPTIONAL(CUDA_MEMBER) /* NULL: the library lacks it */
} cuda_api;

/**
 * Loads `file`; NULL: the system's libcuda. The library stays loaded until the process ends, since
 * drivers do not support being unloaded.
 *
 * Errors: SHERD_EUNSUPPORTED where there is no library, the driver is older than CUDA 11, or it
 * lacks a required function, which *d names.
 */
int sherd__cuda_load(cuda_api *out, const char *file, sherd_diag *d) SHERD_MUST;
/** Returns the name of an error of CUDA. */
const char *sherd__cuda_error(const cuda_api *a, cuda_result code);

#endif
