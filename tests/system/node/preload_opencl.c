/*
 * A stand-in for libOpenCL (standin.h), with faults of SHERD_TEST_OPENCL. In addition:
 *
 *   cpu         the devices are processors    largest=N   bytes of one allocation
 *   nof64       they have no float64          busy        others use them alone
 *   short=N     waiting for launch N returns CL_OUT_OF_RESOURCES
 *   list=N      listing devices returns -N
 */
#define STANDIN_VARIABLE "SHERD_TEST_OPENCL"
#include "tests/system/node/standin.h"

#define ocl_mem_type standin_memory
#include "node/backends/opencl_api.h"

struct ocl_kernel_type {
    standin_kernel *run;
    ocl_mem memory[4];
    sherd__kernel_job job;
};

struct ocl_queue_type {
    standin_queue copies;
    bool hangs, is_short;
};

struct ocl_event_type {
    ocl_queue of;
    unsigned at;
};

struct ocl_device_type {
    char unused;
};

static struct ocl_device_type devices[DEVICES_MAX];
static char something; /* what platforms, contexts and programs point to */

#define EXPORTED(name, result, parameters) EXPORT result cl##name parameters;
OCL_REQUIRED(EXPORTED)
OCL_OPTIONAL(EXPORTED)

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

int32_t clGetPlatformIDs(uint32_t n, ocl_platform *out, uint32_t *count)
{
    begin();
    if (word("none")) return OCL_PLATFORM_NOT_FOUND;
    if (out && n) *out = (ocl_platform)(void *)&something;
    if (count) *count = 1;
    return OCL_SUCCESS;
}

int32_t clGetPlatformInfo(ocl_platform p, uint32_t what, size_t size, void *out, size_t *needed)
{
    (void)p, (void)what;
    return give_text("Stand-in", size, out, needed);
}

int32_t clGetDeviceIDs(ocl_platform p, uint64_t type, uint32_t n, ocl_device *out, uint32_t *count)
{
    const uint32_t all = devices_count();
    (void)p, (void)type;
    if (word("list")) return -(int32_t)word("list");
    for (uint32_t i = 0; i < all && i < n && out; i++) out[i] = &devices[i];
    if (count) *count = all;
    return OCL_SUCCESS;
}

int32_t clGetDeviceInfo(ocl_device v, uint32_t what, size_t size, void *out, size_t *needed)
{
    const uint64_t memory = device_memory();
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

ocl_context clCreateContext(const ocl_property *p, uint32_t n, const ocl_device *v,
                            void (*notify)(const char *, const void *, size_t, void *), void *ctx,
                            int32_t *err)
{
    (void)p, (void)n, (void)v, (void)notify, (void)ctx;
    *err = OCL_SUCCESS;
    return (ocl_context)(void *)&something;
}

int32_t clReleaseContext(ocl_context c)
{
    (void)c;
    return OCL_SUCCESS;
}

ocl_queue clCreateCommandQueue(ocl_context c, ocl_device v, uint64_t how, int32_t *err)
{
    (void)c, (void)v, (void)how;
    *err = OCL_SUCCESS;
    return calloc(1, sizeof(struct ocl_queue_type));
}

int32_t clReleaseCommandQueue(ocl_queue q)
{
    free(q);
    return OCL_SUCCESS;
}

ocl_mem clCreateBuffer(ocl_context c, uint64_t flags, size_t len, void *host, int32_t *err)
{
    (void)c, (void)flags, (void)host;
    *err = OCL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (!has_memory(len)) return NULL;
    ocl_mem m = calloc(1, sizeof *m);
    *m = (standin_memory){ .bytes = aligned_alloc(64, (len + 63) / 64 * 64), .len = len };
    memset(m->bytes, 0, len);
    memory_add(m);
    *err = OCL_SUCCESS;
    return m;
}

int32_t clReleaseMemObject(ocl_mem m)
{
    memory_remove(m);
    atomic_fetch_sub(&held, m->len);
    free(m->bytes);
    free(m);
    return OCL_SUCCESS;
}

/* ---- programs and kernels -------------------------------------------------------------------- */

ocl_program clCreateProgramWithSource(ocl_context c, uint32_t n, const char **texts,
                                      const size_t *lengths, int32_t *err)
{
    (void)c;
    *err = OCL_SUCCESS;
    for (uint32_t i = 0; i < n; i++)
        if (strlen(texts[i]) != lengths[i]) abort();
    return (ocl_program)(void *)&something;
}

int32_t clBuildProgram(ocl_program p, uint32_t n, const ocl_device *v, const char *options,
                       void (*notify)(ocl_program, void *), void *ctx)
{
    (void)p, (void)n, (void)v, (void)options, (void)notify, (void)ctx;
    return word("nobuild") ? OCL_BUILD_PROGRAM_FAILURE : OCL_SUCCESS;
}

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

int32_t clReleaseProgram(ocl_program p)
{
    (void)p;
    return OCL_SUCCESS;
}

ocl_kernel clCreateKernel(ocl_program p, const char *name, int32_t *err)
{
    ocl_kernel k = calloc(1, sizeof *k);
    (void)p;
    k->run = kernel_named(name);
    *err = OCL_SUCCESS;
    return k;
}

int32_t clReleaseKernel(ocl_kernel k)
{
    free(k);
    return OCL_SUCCESS;
}

int32_t clSetKernelArg(ocl_kernel k, uint32_t i, size_t size, const void *value)
{
    if (i > 4 || size != (i < 4 ? sizeof(ocl_mem) : sizeof k->job)) return -51;
    memcpy(i < 4 ? (void *)&k->memory[i] : (void *)&k->job, value, size);
    return OCL_SUCCESS;
}

int32_t clEnqueueNDRangeKernel(ocl_queue q, ocl_kernel k, uint32_t dimensions, const size_t *from,
                               const size_t *all, const size_t *group, uint32_t waits,
                               const ocl_event *wait, ocl_event *event)
{
    const size_t groups[2] = { all[0] / group[0], all[1] / group[1] };
    (void)from, (void)waits, (void)wait, (void)event;
    if (dimensions != 2 || group[0] != SHERD__GROUP || group[1] != 1) return -53;
    const unsigned n = begin_launch();
    if (atomic_load(&lost)) return OCL_DEVICE_NOT_AVAILABLE;
    if (strikes("fail", n)) return -59;
    q->hangs |= strikes("hang", n);
    q->is_short |= strikes("short", n);
    queue_run(&q->copies, q->copies.asked);
    run_launch(n, k->run, k->memory, &k->job, groups);
    return OCL_SUCCESS;
}

/* Waits for copies of a queue. */
static int32_t wait_for(ocl_queue q, unsigned until)
{
    if (q->hangs) never();
    if (atomic_load(&lost)) return OCL_DEVICE_NOT_AVAILABLE;
    if (q->is_short) {
        q->is_short = false;
        return OCL_OUT_OF_RESOURCES;
    }
    queue_run(&q->copies, until);
    return OCL_SUCCESS;
}

static int32_t copy(ocl_queue q, uint32_t blocks, void *to, const void *from, size_t len,
                    ocl_event *event)
{
    if (strikes("nocopy", begin_copy())) return -59;
    if (atomic_load(&lost)) return OCL_DEVICE_NOT_AVAILABLE;
    const unsigned at = queue_add(&q->copies, to, from, len);
    if (blocks) return wait_for(q, at);
    *event = calloc(1, sizeof **event);
    **event = (struct ocl_event_type){ q, at };
    return OCL_SUCCESS;
}

int32_t clEnqueueReadBuffer(ocl_queue q, ocl_mem m, uint32_t blocks, size_t at, size_t len,
                            void *to, uint32_t waits, const ocl_event *wait, ocl_event *event)
{
    (void)waits, (void)wait;
    if (at > m->len || len > m->len - at) abort();
    return copy(q, blocks, to, m->bytes + at, len, event);
}

int32_t clEnqueueWriteBuffer(ocl_queue q, ocl_mem m, uint32_t blocks, size_t at, size_t len,
                             const void *from, uint32_t waits, const ocl_event *wait,
                             ocl_event *event)
{
    (void)waits, (void)wait;
    if (at > m->len || len > m->len - at) abort();
    return copy(q, blocks, m->bytes + at, from, len, event);
}

int32_t clWaitForEvents(uint32_t n, const ocl_event *events)
{
    if (n != 1) abort();
    return wait_for(events[0]->of, events[0]->at);
}

int32_t clReleaseEvent(ocl_event e)
{
    free(e);
    return OCL_SUCCESS;
}

int32_t clFlush(ocl_queue q)
{
    (void)q;
    return OCL_SUCCESS;
}

#ifndef STANDIN_WITHOUT_FILL
int32_t clEnqueueFillBuffer(ocl_queue q, ocl_mem m, const void *pattern, size_t each, size_t at,
                            size_t len, uint32_t waits, const ocl_event *wait, ocl_event *event)
{
    (void)waits, (void)wait, (void)event;
    if (at > m->len || len > m->len - at || len % each) abort();
    q->hangs |= word("nozero") > 0;
    if (q->hangs) return OCL_SUCCESS;
    queue_run(&q->copies, q->copies.asked);
    for (size_t i = 0; i < len; i += each) memcpy(m->bytes + at + i, pattern, each);
    return OCL_SUCCESS;
}
#endif

#ifndef STANDIN_WITHOUT_FINISH
int32_t clFinish(ocl_queue q)
{
    return wait_for(q, q->copies.asked);
}
#endif
