/*
 * This machine as the library sees it: processors, memory, the kernels of BLAS, and the versions of
 * the libraries in use.
 */
#ifndef SHERD_MACHINE_H
#define SHERD_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/field.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sherd_machine {
    size_t size;               /* sizeof(sherd_machine), set by the caller */
    char blas_core[32];        /* the kernels that OpenBLAS uses in this process: "SkylakeX" */
    uint32_t cores;            /* that this process may use, at least 1 */
    uint32_t cores_online;     /* of the machine; 0: not known */
    bool cores_limited;        /* `cores` is a limit of the control group, not of the machine */
    uint64_t memory;           /* bytes of the machine; 0: not known */
    uint64_t memory_limit;     /* of the container that this process runs in; 0: none */
    uint64_t memory_available; /* bytes that this process can fill without swapping or being killed;
                                  UINT64_MAX: not known. It can change at any time */
} sherd_machine;

/** Fills *out with the present state. SHERD_EINVAL: its size is not set. */
SHERD_API int sherd_machine_get(sherd_machine *out, sherd_diag *d) SHERD_MUST;
SHERD_API const sherd_field *sherd_machine_fields(size_t *count);

/** Returns the name of the i-th library in use ("openblas"); NULL after the last. */
SHERD_API const char *sherd_library_name(size_t i);
/** Writes the version that the i-th library reports about itself, at most size bytes: "not loaded"
 *  if this process has no such library. */
SHERD_API void sherd_library_version(size_t i, char *out, size_t size);

/**
 * Waits until OpenBLAS's own threads have their buffers, for which address space may be short
 * (ulimit -v). To be called at the start of a program that runs under such limits: it takes a few
 * ms where space is short and no time elsewhere. SHERD_ENOMEM: they cannot get them. The process
 * must then end by _exit, since OpenBLAS's destructor waits for these threads.
 */
SHERD_API int sherd_blas_ready(sherd_diag *d) SHERD_MUST;
/** Sets the number of threads of products that are computed in this process, at least 1; fewer are
 *  used if address space for their buffers is short. */
SHERD_API void sherd_blas_threads_set(unsigned threads);
/** Returns the number of calls that reached BLAS in this process so far: a program can show by it
 *  that it computed no product itself. */
SHERD_API uint64_t sherd_blas_calls(void);

#ifdef __cplusplus
}
#endif

#endif
