/*
 * A stand-in for libOpenCL: devices whose kernels are the host's compilation of ours, and whose
 * faults the variable SHERD_TEST_OPENCL chooses, as words that are separated by commas:
 *
 *   devices=N   number of devices (1)         memory=N    bytes of each device (1 GiB)
 *   cpu         they are processors           largest=N   bytes of one allocation
 *   nof64       without float64               old=N       the first N (1) are of OpenCL 1.1
 *   busy        others use them alone         none        there is no platform
 *   nobuild     kernels are not compiled      abort       the driver aborts when it is asked
 *   chatty      it prints to descriptor 1     stuck       it does not answer
 *                                             full=N      allocation N finds no memory
 *   fail=N      launch N fails                lost=N      with launch N the device is lost
 *   short=N     waiting for launch N returns CL_OUT_OF_RESOURCES
 *   hang=N      launch N does not end         wrong=N     launch N spoils a byte of its result
 *   crash=N     with launch N the process ends                gone        the next launch loses it
 *
 * Allocations and launches are counted from 1 in each process. Kernels run when they are started.
 * standin_dirty counts memory that was freed although it still held a number.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/backends/kernels/kernels.h"
#include "node/backends/opencl_api.h"

#define EXPORT __attribute__((visibility("default")))
#define DEVICES_MAX 8

struct ocl_mem_type {
    uint8_t *bytes;
    size_t len;
    ocl_mem next;
};

/* All memory, which a context owns: that of a device that was given up is not a leak. */
static ocl_mem all_memory;
static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;

struct ocl_kernel_type {
    void (*run)(const uint8_t *, const uint8_t *, uint8_t *, uint32_t *, const sherd__kernel_job,
                uint32_t, uint32_t);
    ocl_mem memory[4];
    sherd__kernel_job job;
};

struct ocl_queue_type {
    bool hangs, is_short;
};

struct ocl_device_type {
    char unused;
};

static struct ocl_device_type devices[DEVICES_MAX];
static char something; /* what platforms, contexts and programs point to */
static atomic_uint allocations, launches, dirty;
static atomic_bool lost;

EXPORT unsigned standin_dirty(void);
EXPORT unsigned standin_launches(void);
EXPORT void standin_reset(void);

/* Counts from 1 again. */
void standin_reset(void)
{
    atomic_store(&allocations, 0);
    atomic_store(&launches, 0);
    atomic_store(&dirty, 0);
    atomic_store(&lost, false);
}

unsigned standin_dirty(void)
{
    return atomic_load(&dirty);
}

unsigned standin_launches(void)
{
    return atomic_load(&launches);
}

/* Returns the value of a word of the variable; 1 if it has none, 0 if it is not there. */
static unsigned long long word(const char *name)
{
    const char *at = getenv("SHERD_TEST_OPENCL");
    size_t len = strlen(name);
    for (; at && *at; at += strcspn(at, ","), at += *at == ',') {
        if (strncmp(at, name, len) != 0) continue;
        if (at[len] == '=') return strtoull(at + len + 1, NULL, 10);
        if (at[len] == ',' || at[len] == '\0') return 1;
    }
    return 0;
}

static _Noreturn void never(void)
{
    for (;;) pause();
}

static int32_t give(const void *from, size_t len, size_t size, void *out, size_t *needed)
{
    if (needed) *needed = len;
    if (out && size < len) return -30;
    if (out) memcpy(out, from, len);
    return OCL_SUCCESS;
}

static int32_t give_text(const char *text, size_t size, void *out, size_t *needed)
{
    return give(text, strlen(text) + 1, size, out, needed);
}

static int32_t give_number(uint64_t x, size_t size, void *out, size_t *needed)
{
    return give(&x, size < 8 ? size : 8, size, out, needed);
}

/* ---- platforms and devices ------------------------------------------------------------------- */

EXPORT int32_t clGetPlatformIDs(uint32_t n, ocl_platform *out, uint32_t *count);
int32_t clGetPlatformIDs(uint32_t n, ocl_platform *out, uint32_t *count)
{
    if (word("abort")) abort();
    if (word("chatty") && write(STDOUT_FILENO, "driver\n", 7) != 7) abort();
    if (word("stuck")) never();
    if (word("none")) return OCL_PLATFORM_NOT_FOUND;
    if (out && n) *out = (ocl_platform)(void *)&something;
    if (count) *count = 1;
    return OCL_SUCCESS;
}

EXPORT int32_t clGetPlatformInfo(ocl_platform p, uint32_t what, size_t size, void *out,
                                 size_t *needed);
int32_t clGetPlatformInfo(ocl_platform p, uint32_t what, size_t size, void *out, size_t *needed)
{
    (void)p, (void)what;
    return give_text("Stand-in", size, out, needed);
}

EXPORT int32_t clGetDeviceIDs(ocl_platform p, uint64_t type, uint32_t n, ocl_device *out,
                              uint32_t *count);
int32_t clGetDeviceIDs(ocl_platform p, uint64_t type, uint32_t n, ocl_device *out, uint32_t *count)
{
    uint32_t all = word("devices") ? (uint32_t)word("devices") : 1;
    (void)p, (void)type;
    if (all > DEVICES_MAX) all = DEVICES_MAX;
    for (uint32_t i = 0; i < all && i < n && out; i++) out[i] = &devices[i];
    if (count) *count = all;
    return OCL_SUCCESS;
}

EXPORT int32_t clGetDeviceInfo(ocl_device v, uint32_t what, size_t size, void *out, size_t *needed);
int32_t clGetDeviceInfo(ocl_device v, uint32_t what, size_t size, void *out, size_t *needed)
{
    const uint64_t memory = word("memory") ? word("memory") : (uint64_t)1 << 30;
    char name[32];
    snprintf(name, sizeof name, "Stand-in GPU %d", (int)(v - devices));
    switch (what) {
    case OCL_DEVICE_NAME: return give_text(name, size, out, needed);
    case OCL_DRIVER_VERSION: return give_text("1.0", size, out, needed);
    case OCL_DEVICE_VERSION:
        return give_text((unsigned long long)(v - devices) < word("old") ? "OpenCL 1.1 stand-in"
                                                                         : "OpenCL 1.2 stand-in",
                         size, out, needed);
    case OCL_DEVICE_TYPE:
        return give_number(word("cpu") ? OCL_TYPE_CPU : OCL_TYPE_GPU, size, out, needed);
    case OCL_DEVICE_MAX_COMPUTE_UNITS: return give_number(4, size, out, needed);
    case OCL_DEVICE_MAX_WORK_GROUP_SIZE: return give_number(1024, size, out, needed);
    case OCL_DEVICE_LOCAL_MEM_SIZE: return give_number(48 << 10, size, out, needed);
    case OCL_DEVICE_GLOBAL_MEM_SIZE: return give_number(memory, size, out, needed);
    case OCL_DEVICE_MAX_MEM_ALLOC_SIZE:
        return give_number(word("largest") ? word("largest") : memory, size, out, needed);
    case OCL_DEVICE_AVAILABLE: return give_number(!word("busy"), size, out, needed);
    case OCL_DEVICE_COMPILER_AVAILABLE:
    case OCL_DEVICE_ENDIAN_LITTLE: return give_number(1, size, out, needed);
    case OCL_DEVICE_DOUBLE_FP_CONFIG: return give_number(word("nof64") ? 0 : 63, size, out, needed);
    case OCL_DEVICE_HOST_UNIFIED_MEMORY: return give_number(0, size, out, needed);
    default: return -30;
    }
}

/* ---- contexts, queues and memory ------------------------------------------------------------- */

EXPORT ocl_context clCreateContext(const ocl_property *p, uint32_t n, const ocl_device *v,
                                   void (*notify)(const char *, const void *, size_t, void *),
                                   void *ctx, int32_t *err);
ocl_context clCreateContext(const ocl_property *p, uint32_t n, const ocl_device *v,
                            void (*notify)(const char *, const void *, size_t, void *), void *ctx,
                            int32_t *err)
{
    (void)p, (void)n, (void)v, (void)notify, (void)ctx;
    *err = OCL_SUCCESS;
    return (ocl_context)(void *)&something;
}

EXPORT int32_t clReleaseContext(ocl_context c);
int32_t clReleaseContext(ocl_context c)
{
    (void)c;
    return OCL_SUCCESS;
}

EXPORT ocl_queue clCreateCommandQueue(ocl_context c, ocl_device v, uint64_t how, int32_t *err);
ocl_queue clCreateCommandQueue(ocl_context c, ocl_device v, uint64_t how, int32_t *err)
{
    (void)c, (void)v, (void)how;
    *err = OCL_SUCCESS;
    return calloc(1, sizeof(struct ocl_queue_type));
}

EXPORT int32_t clReleaseCommandQueue(ocl_queue q);
int32_t clReleaseCommandQueue(ocl_queue q)
{
    free(q);
    return OCL_SUCCESS;
}

EXPORT ocl_mem clCreateBuffer(ocl_context c, uint64_t flags, size_t len, void *host, int32_t *err);
ocl_mem clCreateBuffer(ocl_context c, uint64_t flags, size_t len, void *host, int32_t *err)
{
    (void)c, (void)flags, (void)host;
    *err = OCL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (atomic_fetch_add(&allocations, 1) + 1 == word("full")) return NULL;
    ocl_mem m = calloc(1, sizeof *m);
    m->bytes = aligned_alloc(64, (len + 63) / 64 * 64);
    m->len = len;
    memset(m->bytes, 0, len);
    pthread_mutex_lock(&memory_lock);
    m->next = all_memory;
    all_memory = m;
    pthread_mutex_unlock(&memory_lock);
    *err = OCL_SUCCESS;
    return m;
}

EXPORT int32_t clReleaseMemObject(ocl_mem m);
int32_t clReleaseMemObject(ocl_mem m)
{
    size_t i = 0;
    while (i < m->len && !m->bytes[i]) i++;
    if (i < m->len && m->len > 64) atomic_fetch_add(&dirty, 1); /* 64: the word for bad values */
    pthread_mutex_lock(&memory_lock);
    ocl_mem *at = &all_memory;
    while (*at != m) at = &(*at)->next;
    *at = m->next;
    pthread_mutex_unlock(&memory_lock);
    free(m->bytes);
    free(m);
    return OCL_SUCCESS;
}

/* ---- programs and kernels -------------------------------------------------------------------- */

EXPORT ocl_program clCreateProgramWithSource(ocl_context c, uint32_t n, const char **texts,
                                             const size_t *lengths, int32_t *err);
ocl_program clCreateProgramWithSource(ocl_context c, uint32_t n, const char **texts,
                                      const size_t *lengths, int32_t *err)
{
    (void)c;
    *err = OCL_SUCCESS;
    for (uint32_t i = 0; i < n; i++)
        if (strlen(texts[i]) != lengths[i]) abort();
    return (ocl_program)(void *)&something;
}

EXPORT int32_t clBuildProgram(ocl_program p, uint32_t n, const ocl_device *v, const char *options,
                              void (*notify)(ocl_program, void *), void *ctx);
int32_t clBuildProgram(ocl_program p, uint32_t n, const ocl_device *v, const char *options,
                       void (*notify)(ocl_program, void *), void *ctx)
{
    (void)p, (void)n, (void)v, (void)options, (void)notify, (void)ctx;
    return word("nobuild") ? OCL_BUILD_PROGRAM_FAILURE : OCL_SUCCESS;
}

EXPORT int32_t clGetProgramBuildInfo(ocl_program p, ocl_device v, uint32_t what, size_t size,
                                     void *out, size_t *needed);
int32_t clGetProgramBuildInfo(ocl_program p, ocl_device v, uint32_t what, size_t size, void *out,
                              size_t *needed)
{
    (void)p, (void)v, (void)what;
    char log[2000];
    memset(log, ' ', sizeof log);
    memcpy(log, "cannot write to the cache\nsecond line", 37);
    log[sizeof log - 1] = '\0';
    return give_text(log, size, out, needed);
}

EXPORT int32_t clReleaseProgram(ocl_program p);
int32_t clReleaseProgram(ocl_program p)
{
    (void)p;
    return OCL_SUCCESS;
}

EXPORT ocl_kernel clCreateKernel(ocl_program p, const char *name, int32_t *err);
ocl_kernel clCreateKernel(ocl_program p, const char *name, int32_t *err)
{
    ocl_kernel k = calloc(1, sizeof *k);
    (void)p;
    if (strcmp(name, "sherd__kernel_map") == 0) k->run = sherd__kernel_map;
    if (strcmp(name, "sherd__kernel_product_f64") == 0) k->run = sherd__kernel_product_f64;
    if (strcmp(name, "sherd__kernel_product_residues") == 0)
        k->run = sherd__kernel_product_residues;
    if (strcmp(name, "sherd__kernel_product_bytes") == 0) k->run = sherd__kernel_product_bytes;
    if (!k->run) abort();
    *err = OCL_SUCCESS;
    return k;
}

EXPORT int32_t clReleaseKernel(ocl_kernel k);
int32_t clReleaseKernel(ocl_kernel k)
{
    free(k);
    return OCL_SUCCESS;
}

EXPORT int32_t clSetKernelArg(ocl_kernel k, uint32_t i, size_t size, const void *value);
int32_t clSetKernelArg(ocl_kernel k, uint32_t i, size_t size, const void *value)
{
    if (i > 4 || size != (i < 4 ? sizeof(ocl_mem) : sizeof k->job)) return -51;
    memcpy(i < 4 ? (void *)&k->memory[i] : (void *)&k->job, value, size);
    return OCL_SUCCESS;
}

static void run(ocl_kernel k, const size_t *all, const size_t *group)
{
    for (size_t y = 0; y < all[1] / group[1]; y++)
        for (size_t x = 0; x < all[0] / group[0]; x++)
            k->run(k->memory[0]->bytes, k->memory[1]->bytes, k->memory[2]->bytes,
                   (uint32_t *)(void *)k->memory[3]->bytes, k->job, (uint32_t)x, (uint32_t)y);
}

EXPORT int32_t clEnqueueNDRangeKernel(ocl_queue q, ocl_kernel k, uint32_t dimensions,
                                      const size_t *from, const size_t *all, const size_t *group,
                                      uint32_t waits, const ocl_event *wait, ocl_event *event);
int32_t clEnqueueNDRangeKernel(ocl_queue q, ocl_kernel k, uint32_t dimensions, const size_t *from,
                               const size_t *all, const size_t *group, uint32_t waits,
                               const ocl_event *wait, ocl_event *event)
{
    const unsigned n = atomic_fetch_add(&launches, 1) + 1;
    (void)from, (void)waits, (void)wait, (void)event;
    if (dimensions != 2 || group[0] != SHERD__GROUP || group[1] != 1) return -53;
    if (n == word("crash")) abort();
    if (n == word("lost") || word("gone")) atomic_store(&lost, true);
    if (atomic_load(&lost)) return OCL_DEVICE_NOT_AVAILABLE;
    if (n == word("fail")) return -59;
    q->hangs |= n == word("hang");
    q->is_short |= n == word("short");
    run(k, all, group);
    if (n == word("wrong")) k->memory[2]->bytes[k->memory[2]->len / 2] ^= 1;
    return OCL_SUCCESS;
}

static int32_t copy(ocl_queue q, void *to, const void *from, size_t len)
{
    if (q->hangs) never();
    if (atomic_load(&lost)) return OCL_DEVICE_NOT_AVAILABLE;
    if (q->is_short) {
        q->is_short = false;
        return OCL_OUT_OF_RESOURCES;
    }
    memcpy(to, from, len);
    return OCL_SUCCESS;
}

EXPORT int32_t clEnqueueReadBuffer(ocl_queue q, ocl_mem m, uint32_t blocks, size_t at, size_t len,
                                   void *to, uint32_t waits, const ocl_event *wait,
                                   ocl_event *event);
int32_t clEnqueueReadBuffer(ocl_queue q, ocl_mem m, uint32_t blocks, size_t at, size_t len,
                            void *to, uint32_t waits, const ocl_event *wait, ocl_event *event)
{
    (void)blocks, (void)waits, (void)wait, (void)event;
    if (at > m->len || len > m->len - at) abort();
    return copy(q, to, m->bytes + at, len);
}

EXPORT int32_t clEnqueueWriteBuffer(ocl_queue q, ocl_mem m, uint32_t blocks, size_t at, size_t len,
                                    const void *from, uint32_t waits, const ocl_event *wait,
                                    ocl_event *event);
int32_t clEnqueueWriteBuffer(ocl_queue q, ocl_mem m, uint32_t blocks, size_t at, size_t len,
                             const void *from, uint32_t waits, const ocl_event *wait,
                             ocl_event *event)
{
    (void)blocks, (void)waits, (void)wait, (void)event;
    if (at > m->len || len > m->len - at) abort();
    return copy(q, m->bytes + at, from, len);
}

#ifndef STANDIN_WITHOUT_FILL
EXPORT int32_t clEnqueueFillBuffer(ocl_queue q, ocl_mem m, const void *pattern, size_t each,
                                   size_t at, size_t len, uint32_t waits, const ocl_event *wait,
                                   ocl_event *event);
int32_t clEnqueueFillBuffer(ocl_queue q, ocl_mem m, const void *pattern, size_t each, size_t at,
                            size_t len, uint32_t waits, const ocl_event *wait, ocl_event *event)
{
    (void)waits, (void)wait, (void)event;
    if (at > m->len || len > m->len - at || len % each) abort();
    if (q->hangs) return OCL_SUCCESS;
    for (size_t i = 0; i < len; i += each) memcpy(m->bytes + at + i, pattern, each);
    return OCL_SUCCESS;
}
#endif

#ifndef STANDIN_WITHOUT_FINISH
EXPORT int32_t clFinish(ocl_queue q);
int32_t clFinish(ocl_queue q)
{
    if (q->hangs) never();
    return atomic_load(&lost) ? OCL_DEVICE_NOT_AVAILABLE : OCL_SUCCESS;
}
#endif
