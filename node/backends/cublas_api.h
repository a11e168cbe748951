/*
 * The functions of cuBLAS that the backend for CUDA uses, found when it opens a device: the library
 * is optional. The declarations are our own, as those of cuda_api.h. Where the real header has been
 * included before (a test does), its types are used, and the test compares the functions.
 */
#ifndef NODE_BACKENDS_CUBLAS_API_H
#define NODE_BACKENDS_CUBLAS_API_H

#include "node/backends/cuda_api.h"

typedef struct cublasContext *cublas_handle;
#ifdef CUBLAS_VERSION
typedef cublasStatus_t cublas_status;
typedef cublasOperation_t cublas_operation;
typedef cublasPointerMode_t cublas_pointers;
typedef cublasAtomicsMode_t cublas_atomics;
typedef cublasMath_t cublas_math;
typedef cudaDataType cublas_type;
typedef cublasComputeType_t cublas_compute;
typedef cublasGemmAlgo_t cublas_algorithm;
typedef libraryPropertyType cublas_property;
#else
typedef unsigned cublas_status;
typedef unsigned cublas_operation;
typedef unsigned cublas_pointers;
typedef unsigned cublas_atomics;
typedef unsigned cublas_math;
typedef unsigned cublas_type;
typedef unsigned cublas_compute;
typedef int cublas_algorithm;
typedef unsigned cublas_property;
#endif

/* X(NAME, number): CUBLAS_STATUS_NAME. */
#define CUBLAS_STATUSES(X)                                                                         \
    X(NOT_INITIALIZED, 1)                                                                          \
    X(ALLOC_FAILED, 3)                                                                             \
    X(INVALID_VALUE, 7)                                                                            \
    X(ARCH_MISMATCH, 8)                                                                            \
    X(MAPPING_ERROR, 11)                                                                           \
    X(EXECUTION_FAILED, 13)                                                                        \
    X(INTERNAL_ERROR, 14)                                                                          \
    X(NOT_SUPPORTED, 15)                                                                           \
    X(LICENSE_ERROR, 16)

/* X(NAME, number): CUBLAS_NAME. */
#define CUBLAS_NUMBERS(X)                                                                          \
    X(OP_N, 0)                                                                                     \
    X(OP_T, 1)                                                                                     \
    X(POINTER_MODE_HOST, 0)                                                                        \
    X(ATOMICS_NOT_ALLOWED, 0)                                                                      \
    X(DEFAULT_MATH, 0)                                                                             \
    X(PEDANTIC_MATH, 2)                                                                            \
    X(COMPUTE_64F_PEDANTIC, 71)                                                                    \
    X(COMPUTE_32I, 72)                                                                             \
    X(GEMM_DEFAULT, -1)

/* X(NAME, number): NAME, of other headers of CUDA. */
#define CUBLAS_OTHERS(X)                                                                           \
    X(CUDA_R_64F, 1)                                                                               \
    X(CUDA_R_8I, 3)                                                                                \
    X(CUDA_R_32I, 10)                                                                              \
    X(MAJOR_VERSION, 0)                                                                            \
    X(MINOR_VERSION, 1)

#define CUBLAS_STATUS_NUMBER(name, number) SHERD__CUBLAS_STATUS_##name = (number),
#define CUBLAS_NUMBER(name, number) SHERD__CUBLAS_##name = (number),
enum {
    SHERD__CUBLAS_SUCCESS = 0,
    CUBLAS_STATUSES(CUBLAS_STATUS_NUMBER) CUBLAS_NUMBERS(CUBLAS_NUMBER) CUBLAS_OTHERS(CUBLAS_NUMBER)
};

/* X(NAME, parameters): cublasNAME, a function that returns a cublas_status. */
#define CUBLAS_REQUIRED(X)                                                                         \
    X(GetProperty, (cublas_property, int *))                                                       \
    X(Create_v2, (cublas_handle *))                                                                \
    X(Destroy_v2, (cublas_handle))                                                                 \
    X(SetStream_v2, (cublas_handle, cuda_stream))                                                  \
    X(SetWorkspace_v2, (cublas_handle, void *, size_t))                                            \
    X(SetPointerMode_v2, (cublas_handle, cublas_pointers))                                         \
    X(SetMathMode, (cublas_handle, cublas_math))                                                   \
    X(GemmEx, (cublas_handle, cublas_operation, cublas_operation, int, int, int, const void *,     \
               const void *, cublas_type, int, const void *, cublas_type, int, const void *,       \
               void *, cublas_type, int, cublas_compute, cublas_algorithm))
/* Without the first, sums are not added up by atomic operations, either: that is the default.
 * Without the second, one rate is not measured. */
#define CUBLAS_OPTIONAL(X)                                                                         \
    X(SetAtomicsMode, (cublas_handle, cublas_atomics))                                             \
    X(Dgemm_v2, (cublas_handle, cublas_operation, cublas_operation, int, int, int, const double *, \
                 const double *, int, const double *, int, const double *, double *, int))

#define CUBLAS_MEMBER(name, parameters) cublas_status(*name) parameters;
typedef struct cublas_api {
    int major, minor; /* version */
    CUBLAS_REQUIRED(CUBLAS_MEMBER)
    CUBLAS_OPTIONAL(CUBLAS_MEMBER) /* NULL: the library lacks it */
} cublas_api;

/**
 * Loads the newest cuBLAS, of CUDA 11 to 13, that is not newer than the driver's CUDA (`driver`, as
 * cuda_api.version). SHERD_CUDA_PATH names a folder that has it, also in lib64 or lib; it must have
 * libcublasLt of the same version, too. Without that variable the system's loader searches; an
 * empty one means that cuBLAS is not used. The library stays loaded until the process ends.
 *
 * Errors: SHERD_EUNSUPPORTED where there is no library, or it lacks a required function, which *d
 * names; SHERD_EINVAL where SHERD_CUDA_PATH names a folder without one that can be loaded;
 * SHERD_EDEVICE where the system has one that cannot be loaded, such as libcublas without
 * libcublasLt.
 */
int sherd__cublas_load(cublas_api *out, int driver, sherd_diag *d) SHERD_MUST;
/** Returns the name of a status. */
const char *sherd__cublas_error(cublas_status status);

#endif
