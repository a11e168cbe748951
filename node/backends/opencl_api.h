/*
 * The functions of OpenCL 1.2 that the backend uses, found in libOpenCL when a node starts: nothing
 * of OpenCL is needed to build or to link. The declarations are our own. Where the real header has
 * been included before (a test does), its types are used, and the test compares the functions.
 */
#ifndef NODE_BACKENDS_OPENCL_API_H
#define NODE_BACKENDS_OPENCL_API_H

#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

#ifdef CL_VERSION_1_2
typedef cl_platform_id ocl_platform;
typedef cl_device_id ocl_device;
typedef cl_context ocl_context;
typedef cl_command_queue ocl_queue;
typedef cl_mem ocl_mem;
typedef cl_program ocl_program;
typedef cl_kernel ocl_kernel;
typedef cl_event ocl_event;
typedef cl_context_properties ocl_property;
#else
typedef struct ocl_platform_type *ocl_platform;
typedef struct ocl_device_type *ocl_device;
typedef struct ocl_context_type *ocl_context;
typedef struct ocl_queue_type *ocl_queue;
typedef struct ocl_mem_type *ocl_mem;
typedef struct ocl_program_type *ocl_program;
typedef struct ocl_kernel_type *ocl_kernel;
typedef struct ocl_event_type *ocl_event;
typedef intptr_t ocl_property;
#endif

enum {
    OCL_SUCCESS = 0,
    OCL_DEVICE_NOT_FOUND = -1,
    OCL_DEVICE_NOT_AVAILABLE = -2,
    OCL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
    OCL_OUT_OF_RESOURCES = -5,
    OCL_OUT_OF_HOST_MEMORY = -6,
    OCL_BUILD_PROGRAM_FAILURE = -11,
    OCL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST = -14,
    OCL_INVALID_CONTEXT = -34,
    OCL_INVALID_COMMAND_QUEUE = -36,
    OCL_INVALID_BUFFER_SIZE = -61,
    OCL_PLATFORM_NOT_FOUND = -1001,

    OCL_PLATFORM_NAME = 0x0902,
    OCL_DEVICE_TYPE = 0x1000,
    OCL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
    OCL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    OCL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
    OCL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
    OCL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
    OCL_DEVICE_ENDIAN_LITTLE = 0x1026,
    OCL_DEVICE_AVAILABLE = 0x1027,
    OCL_DEVICE_COMPILER_AVAILABLE = 0x1028,
    OCL_DEVICE_NAME = 0x102B,
    OCL_DRIVER_VERSION = 0x102D,
    OCL_DEVICE_VERSION = 0x102F,
    OCL_DEVICE_EXTENSIONS = 0x1030,
    OCL_DEVICE_DOUBLE_FP_CONFIG = 0x1032,
    OCL_DEVICE_HOST_UNIFIED_MEMORY = 0x1035,
    OCL_PROGRAM_BUILD_LOG = 0x1183,
    OCL_CONTEXT_PLATFORM = 0x1084,
    OCL_TYPE_CPU = 2,
    OCL_TYPE_GPU = 4,
    OCL_TYPE_ACCELERATOR = 8,
    OCL_MEM_READ_WRITE = 1
};
#define OCL_TYPE_ALL UINT64_C(0xFFFFFFFF)

/* X(NAME, result, parameters): clNAME. */
#define OCL_REQUIRED(X)                                                                            \
    X(GetPlatformIDs, int32_t, (uint32_t, ocl_platform *, uint32_t *))                             \
    X(GetPlatformInfo, int32_t, (ocl_platform, uint32_t, size_t, void *, size_t *))                \
    X(GetDeviceIDs, int32_t, (ocl_platform, uint64_t, uint32_t, ocl_device *, uint32_t *))         \
    X(GetDeviceInfo, int32_t, (ocl_device, uint32_t, size_t, void *, size_t *))                    \
    X(CreateContext, ocl_context,                                                                  \
      (const ocl_property *, uint32_t, const ocl_device *,                                         \
       void (*)(const char *, const void *, size_t, void *), void *, int32_t *))                   \
    X(ReleaseContext, int32_t, (ocl_context))                                                      \
    X(CreateCommandQueue, ocl_queue, (ocl_context, ocl_device, uint64_t, int32_t *))               \
    X(ReleaseCommandQueue, int32_t, (ocl_queue))                                                   \
    X(CreateBuffer, ocl_mem, (ocl_context, uint64_t, size_t, void *, int32_t *))                   \
    X(ReleaseMemObject, int32_t, (ocl_mem))                                                        \
    X(CreateProgramWithSource, ocl_program,                                                        \
      (ocl_context, uint32_t, const char **, const size_t *, int32_t *))                           \
    X(BuildProgram, int32_t,                                                                       \
      (ocl_program, uint32_t, const ocl_device *, const char *, void (*)(ocl_program, void *),     \
       void *))                                                                                    \
    X(GetProgramBuildInfo, int32_t, (ocl_program, ocl_device, uint32_t, size_t, void *, size_t *)) \
    X(ReleaseProgram, int32_t, (ocl_program))                                                      \
    X(CreateKernel, ocl_kernel, (ocl_program, const char *, int32_t *))                            \
    X(ReleaseKernel, int32_t, (ocl_kernel))                                                        \
    X(SetKernelArg, int32_t, (ocl_kernel, uint32_t, size_t, const void *))                         \
    X(EnqueueNDRangeKernel, int32_t,                                                               \
      (ocl_queue, ocl_kernel, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t,  \
       const ocl_event *, ocl_event *))                                                            \
    X(EnqueueReadBuffer, int32_t,                                                                  \
      (ocl_queue, ocl_mem, uint32_t, size_t, size_t, void *, uint32_t, const ocl_event *,          \
       ocl_event *))                                                                               \
    X(EnqueueWriteBuffer, int32_t,                                                                 \
      (ocl_queue, ocl_mem, uint32_t, size_t, size_t, const void *, uint32_t, const ocl_event *,    \
       ocl_event *))                                                                               \
    X(WaitForEvents, int32_t, (uint32_t, const ocl_event *))                                       \
    X(ReleaseEvent, int32_t, (ocl_event))                                                          \
    X(Flush, int32_t, (ocl_queue))                                                                 \
    X(Finish, int32_t, (ocl_queue))
/* Not in OpenCL 1.1, without which zeros are written. */
#define OCL_OPTIONAL(X)                                                                            \
    X(EnqueueFillBuffer, int32_t,                                                                  \
      (ocl_queue, ocl_mem, const void *, size_t, size_t, size_t, uint32_t, const ocl_event *,      \
       ocl_event *))

#define OCL_MEMBER(name, result, parameters) result(*name) parameters;
typedef struct ocl_api {
    void *library;
    OCL_REQUIRED(OCL_MEMBER)
    OCL_OPTIONAL(OCL_MEMBER) /* NULL: the library lacks it */
} ocl_api;

/**
 * Loads `file`; NULL: the system's libOpenCL. The library stays loaded until the process ends,
 * since drivers do not support being unloaded.
 *
 * Errors: SHERD_EUNSUPPORTED where there is no library, or it lacks a required function, which *d
 * names.
 */
int sherd__opencl_load(ocl_api *out, const char *file, sherd_diag *d) SHERD_MUST;
/** Returns the name of an error of OpenCL. */
const char *sherd__opencl_error(int32_t code);

#endif
