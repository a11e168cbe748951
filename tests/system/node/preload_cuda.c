/*
 * A stand-in for libcuda (standin.h), with faults of SHERD_TEST_CUDA, and for cuBLAS
 * (standin_cublas.h), if a name of its libraries names this file. In addition:
 *
 *   init=N      cuInit returns N              driver=N    version of CUDA (12040)
 *   prohibited  the devices' compute mode     exclusive   likewise, and others have the devices
 *   taken=N     bytes that others use         code=N      what a lost device answers (719)
 *   mig         devices are slices of one in MIG mode
 *   dies=N      with launch N its device is lost, and others are not
 *   meet=N      launches from N on last until one of another device is in progress, too, or a
 *               second; if this happens to none of 20 launches, the process ends
 *   slowkernels=N kernels of products of n = N (64) and more take 20 ms longer
 *
 * Pointers to memory of a device point to pages that cannot be read or written; kernels and copies
 * use a second mapping of it. Kernels must be those of the PTX, with a job of our size. Calls
 * without cuInit or a context fail, and copies from or to other memory than that of cuMemHostAlloc
 * end the process. A device is lost once its launch is waited for.
 */
#define STANDIN_VARIABLE "SHERD_TEST_CUDA"
#include "tests/system/node/standin.h"

#include <sys/mman.h>

#include "node/backends/cublas_api.h"

#define SUCCESS SHERD__CUDA_SUCCESS

struct cuda_function_type {
    standin_kernel *run;
};

struct cuda_stream_type {
    standin_queue queue;
    bool hangs;
};

struct cuda_event_type {
    cuda_stream of;
    unsigned at; /* the copy that it follows */
};

/* Memory of a device, or with `at` NULL of the host. */
typedef struct area {
    standin_memory is; /* must be first */
    uint8_t *at;       /* what its pointer is */
} area;

static char contexts[DEVICES_MAX];
static struct cuda_function_type functions[SHERD__KERNELS];
static const char *image;
static atomic_bool ready, met;
static atomic_uint launching; /* a bit for each device */
static atomic_uint alone;     /* launches that met no other one */
/* initial-exec: without memory of its own, which a thread that hangs would not free. */
static _Thread_local cuda_context current __attribute__((tls_model("initial-exec")));

#define EXPORTED(name, parameters) EXPORT cuda_result cu##name parameters;
CUDA_REQUIRED(EXPORTED)
CUDA_OPTIONAL(EXPORTED)

static unsigned bit_of_current(void)
{
    return 1u << ((const char *)(const void *)current - contexts);
}

/* What a function answers that needs a context. */
static cuda_result state(void)
{
    if (!atomic_load(&ready)) return 3;
    if (!current) return SHERD__CUDA_INVALID_CONTEXT;
    if (!atomic_load(&lost) && !(atomic_load(&dead) & bit_of_current())) return SUCCESS;
    return word("code") ? (cuda_result)word("code") : SHERD__CUDA_LAUNCH_FAILED;
}

cuda_result cuGetErrorName(cuda_result code, const char **name)
{
#define NAME(text, number)                                                                         \
    case number: *name = "CUDA_ERROR_" #text; return SUCCESS;
    switch (code) {
        CUDA_ERRORS(NAME)
    default: return 1;
    }
}

/* ---- devices and contexts -------------------------------------------------------------------- */

cuda_result cuInit(unsigned flags)
{
    (void)flags;
    begin();
    if (word("none")) return SHERD__CUDA_NO_DEVICE;
    if (word("init")) return (cuda_result)word("init");
    atomic_store(&ready, true);
    return SUCCESS;
}

cuda_result cuDriverGetVersion(int *version)
{
    *version = word("driver") ? (int)word("driver") : 12040;
    return SUCCESS;
}

cuda_result cuDeviceGetCount(int *count)
{
    *count = (int)devices_count();
    return atomic_load(&ready) ? SUCCESS : 3;
}

cuda_result cuDeviceGet(cuda_device *out, int i)
{
    *out = i;
    return SUCCESS;
}

cuda_result cuDeviceGetName(char *out, int size, cuda_device v)
{
    snprintf(out, (size_t)size, word("mig") ? "Stand-in GPU MIG 1g.10gb %d" : "Stand-in GPU %d", v);
    return SUCCESS;
}

cuda_result cuDeviceGetAttribute(int *out, cuda_attribute what, cuda_device v)
{
    const bool old = (unsigned long long)v < word("old");
    switch (what) {
    case SHERD__CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *out = 4; break;
    case SHERD__CU_DEVICE_ATTRIBUTE_INTEGRATED: *out = 0; break;
    case SHERD__CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
        *out = word("prohibited")  ? SHERD__CU_COMPUTEMODE_PROHIBITED
               : word("exclusive") ? SHERD__CU_COMPUTEMODE_EXCLUSIVE_PROCESS
                                   : 0;
        break;
    case SHERD__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *out = old ? 7 : 9; break;
    case SHERD__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *out = 0; break;
    default: return 1;
    }
    return SUCCESS;
}

cuda_result cuDeviceTotalMem_v2(size_t *out, cuda_device v)
{
    (void)v;
    *out = device_memory();
    return SUCCESS;
}

cuda_result cuDevicePrimaryCtxRetain(cuda_context *out, cuda_device v)
{
    if (word("exclusive")) return SHERD__CUDA_DEVICE_UNAVAILABLE;
    *out = (cuda_context)(void *)&contexts[v];
    return SUCCESS;
}

cuda_result cuDevicePrimaryCtxRelease_v2(cuda_device v)
{
    (void)v;
    return SUCCESS;
}

#ifndef STANDIN_WITHOUT_FLAGS
cuda_result cuDevicePrimaryCtxSetFlags_v2(cuda_device v, unsigned flags)
{
    (void)v, (void)flags;
    return SUCCESS;
}
#endif

cuda_result cuCtxSetCurrent(cuda_context c)
{
    current = c;
    return SUCCESS;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Returns the area that has these bytes, of a device or of the host; ends the process if none. */
static area *find(const void *pointer, size_t len, bool of_device)
{
    const uintptr_t at = (uintptr_t)pointer;
    pthread_mutex_lock(&memory_lock);
    area *m = (area *)(void *)all_memory;
    for (; m; m = (area *)(void *)m->is.next) {
        const uintptr_t from = (uintptr_t)(of_device ? m->at : m->is.bytes);
        if ((m->at != NULL) == of_device && at >= from && at - from < m->is.len &&
            len <= m->is.len - (at - from))
            break;
    }
    pthread_mutex_unlock(&memory_lock);
    if (!m) abort();
    return m;
}

static uint8_t *bytes_at(cuda_pointer pointer, size_t len)
{
    const void *at = (const void *)(uintptr_t)pointer;
    area *m = find(at, len, true);
    return m->is.bytes + ((uintptr_t)at - (uintptr_t)m->at);
}

cuda_result cuMemGetInfo_v2(size_t *unused, size_t *all)
{
    *all = device_memory();
    *unused = *all - word("taken");
    return state();
}

cuda_result cuMemAlloc_v2(cuda_pointer *out, size_t len)
{
    if (state()) return state();
    if (!has_memory(len)) return SHERD__CUDA_OUT_OF_MEMORY;
    area *m = calloc(1, sizeof *m);
    const int fd = memfd_create("device", MFD_CLOEXEC);
    if (ftruncate(fd, (off_t)len)) abort();
    m->is.bytes = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    m->at = mmap(NULL, len, PROT_NONE, MAP_SHARED, fd, 0);
    close(fd);
    if (m->is.bytes == MAP_FAILED || m->at == MAP_FAILED) abort();
    m->is.len = len;
    memory_add(&m->is);
    *out = (uintptr_t)m->at;
    return SUCCESS;
}

cuda_result cuMemFree_v2(cuda_pointer pointer)
{
    if (state()) return state();
    area *m = find((const void *)(uintptr_t)pointer, 0, true);
    memory_remove(&m->is);
    atomic_fetch_sub(&held, m->is.len);
    munmap(m->is.bytes, m->is.len);
    munmap(m->at, m->is.len);
    free(m);
    return SUCCESS;
}

cuda_result cuMemHostAlloc(void **out, size_t len, unsigned flags)
{
    (void)flags;
    if (state()) return state();
    area *m = calloc(1, sizeof *m);
    m->is = (standin_memory){ .bytes = *out = calloc(1, len), .len = len };
    memory_add(&m->is);
    return SUCCESS;
}

cuda_result cuMemFreeHost(void *pointer)
{
    if (state()) return state();
    area *m = find(pointer, 0, false);
    memory_remove(&m->is);
    free(m->is.bytes);
    free(m);
    return SUCCESS;
}

/* ---- streams and copies ---------------------------------------------------------------------- */

cuda_result cuStreamCreate(cuda_stream *out, unsigned flags)
{
    (void)flags;
    *out = calloc(1, sizeof **out);
    return state();
}

cuda_result cuStreamDestroy_v2(cuda_stream s)
{
    free(s);
    return state();
}

cuda_result cuStreamSynchronize(cuda_stream s)
{
    if (s->hangs) never();
    if (!state()) queue_run(&s->queue, s->queue.asked);
    return state();
}

cuda_result cuEventCreate(cuda_event *out, unsigned flags)
{
    if (flags != (SHERD__CU_EVENT_BLOCKING_SYNC | SHERD__CU_EVENT_DISABLE_TIMING)) return 1;
    *out = calloc(1, sizeof **out);
    return state();
}

cuda_result cuEventDestroy_v2(cuda_event e)
{
    free(e);
    return state();
}

cuda_result cuEventRecord(cuda_event e, cuda_stream s)
{
    *e = (struct cuda_event_type){ s, s->queue.asked };
    return state();
}

cuda_result cuEventSynchronize(cuda_event e)
{
    if (e->of && e->of->hangs) never();
    if (!state() && e->of) queue_run(&e->of->queue, e->at);
    return state();
}

static cuda_result copy(cuda_stream s, void *to, const void *from, size_t len)
{
    if (strikes("nocopy", begin_copy())) return 1;
    if (!state() && !s->hangs) (void)queue_add(&s->queue, to, from, len);
    return state();
}

cuda_result cuMemcpyHtoDAsync_v2(cuda_pointer to, const void *from, size_t len, cuda_stream s)
{
    (void)find(from, len, false);
    return copy(s, bytes_at(to, len), from, len);
}

cuda_result cuMemcpyDtoHAsync_v2(void *to, cuda_pointer from, size_t len, cuda_stream s)
{
    (void)find(to, len, false);
    return copy(s, to, bytes_at(from, len), len);
}

cuda_result cuMemsetD32Async(cuda_pointer to, unsigned value, size_t n, cuda_stream s)
{
    if (value || to % 4) abort();
    s->hangs |= word("nozero") > 0;
    if (state() || s->hangs) return state();
    queue_run(&s->queue, s->queue.asked);
    memset(bytes_at(to, 4 * n), 0, 4 * n);
    return SUCCESS;
}

/* ---- kernels --------------------------------------------------------------------------------- */

cuda_result cuModuleLoadDataEx(cuda_module *out, const void *text, unsigned n,
                               cuda_jit_option *options, void **values)
{
    static const char log[] = "ptxas fatal: no memory\nsecond line";
    if (state()) return state();
    if (n != 2 || options[0] != SHERD__CU_JIT_ERROR_LOG_BUFFER) abort();
    image = text;
    *out = (cuda_module)(void *)contexts;
    if (!word("nobuild")) return SUCCESS;
    if ((uintptr_t)values[1] < sizeof log) abort();
    memcpy(values[0], log, sizeof log);
    return SHERD__CUDA_INVALID_PTX;
}

#ifndef STANDIN_WITHOUT_UNLOAD
cuda_result cuModuleUnload(cuda_module m)
{
    (void)m;
    return state();
}
#endif

cuda_result cuModuleGetFunction(cuda_function *out, cuda_module m, const char *name)
{
    char last[128];
    (void)m;
    snprintf(last, sizeof last, "\t.param .align 8 .b8 %s_param_4[%zu]\n)", name,
             sizeof(sherd__kernel_job));
    if (!strstr(image, last)) return 500;
    for (*out = functions; (*out)->run && (*out)->run != kernel_named(name); (*out)++) continue;
    (*out)->run = kernel_named(name);
    return SUCCESS;
}

/* Waits until launches of two devices are in progress, unless some were before. */
static void meet_others(void)
{
    for (unsigned i = 0; i < 1000 && !atomic_load(&met); i++) {
        const unsigned now = atomic_load(&launching);
        if (now & (now - 1)) atomic_store(&met, true);
        else usleep(1000);
    }
    if (!atomic_load(&met) && atomic_fetch_add(&alone, 1) + 1 == 20) abort();
}

static bool is_slow(standin_kernel *run, const sherd__kernel_job *job)
{
    const uint64_t n = word("slowkernels") > 1 ? word("slowkernels") : 64;
    return word("slowkernels") && job->n * job->k * job->m >= n * n * n &&
           (run == sherd__kernel_product_f64 || run == sherd__kernel_product_residues ||
            run == sherd__kernel_product_bytes);
}

cuda_result cuLaunchKernel(cuda_function f, unsigned x, unsigned y, unsigned z, unsigned items,
                           unsigned items_y, unsigned items_z, unsigned shared, cuda_stream s,
                           void **parameters, void **extra)
{
    const size_t groups[2] = { x, y };
    standin_memory *memory[4];
    if (state()) return state();
    if (z != 1 || y > 65535 || items != SHERD__GROUP || items_y != 1 || items_z != 1 || shared ||
        extra)
        return 1;
    const unsigned n = begin_launch();
    if (is_slow(f->run, parameters[4])) usleep(20000);
    if (strikes("fail", n)) return SHERD__CUDA_LAUNCH_OUT_OF_RESOURCES;
    s->hangs |= strikes("hang", n);
    if (s->hangs) return SUCCESS;
    queue_run(&s->queue, s->queue.asked);
    for (size_t i = 0; i < 4; i++)
        memory[i] = &find((const void *)*(const uintptr_t *)parameters[i], 0, true)->is;
    if (strikes("dies", n)) atomic_fetch_or(&dead, bit_of_current());
    atomic_fetch_or(&launching, bit_of_current());
    if (word("meet") && n >= word("meet")) meet_others();
    run_launch(n, f->run, memory, parameters[4], groups);
    atomic_fetch_and(&launching, ~bit_of_current());
    return SUCCESS;
}

#include "tests/system/node/standin_cublas.h"
