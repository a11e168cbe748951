/*
 * CUDA's driver as a driver of accelerator.c: libcuda is found when the node starts, which compiles
 * the kernels' PTX for the device. Each lane has a stream, and memory of the host that the device
 * copies from and to without the driver's help. The context is the device's primary one, as that of
 * libraries of CUDA. Where the machine has cuBLAS, each lane has a handle of it.
 *
 * A context with a failed kernel, or whose device failed, answers every call with that error: the
 * device is lost.
 */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/embed.h"
#include "node/backends/accelerator.h"
#include "node/backends/cublas.h"
#include "node/backends/cuda_api.h"
#include "node/backends/driver_library.h"

#define OLDEST_MAJOR 7 /* compute capability, that of the PTX */
#define OLDEST_MINOR 5

SHERD__EMBED(sherd__kernels_ptx, "node/backends/kernels/kernels.ptx");

typedef struct device {
    cuda_api api;
    cuda_device id;
    cuda_context context;
    cuda_module module;
    cuda_function functions[SHERD__KERNELS];
    cublas_api blas;
    int blas_err; /* SHERD_OK: it was loaded */
    sherd_diag blas_why;
} device;

typedef struct lane {
    device *on;
    cuda_stream stream;
    cublas_handle blas;                      /* NULL: not used */
    cuda_event copied[SHERD__STAGING_PARTS]; /* the last copy of each part is done */
} lane;

/* ---- errors ---------------------------------------------------------------------------------- */

static int error_of(cuda_result code)
{
    switch (code) {
    case SHERD__CUDA_OUT_OF_MEMORY: return SHERD_ENOMEM;
    case SHERD__CUDA_DEINITIALIZED:
    case SHERD__CUDA_DEVICE_UNAVAILABLE:
    case SHERD__CUDA_INVALID_CONTEXT:
    case SHERD__CUDA_ECC_UNCORRECTABLE:
    case SHERD__CUDA_NVLINK_UNCORRECTABLE:
    case SHERD__CUDA_CONTAINED:
    case SHERD__CUDA_ILLEGAL_ADDRESS:
    case SHERD__CUDA_LAUNCH_TIMEOUT:
    case SHERD__CUDA_CONTEXT_IS_DESTROYED:
    case SHERD__CUDA_ASSERT:
    case SHERD__CUDA_HARDWARE_STACK_ERROR:
    case SHERD__CUDA_ILLEGAL_INSTRUCTION:
    case SHERD__CUDA_MISALIGNED_ADDRESS:
    case SHERD__CUDA_INVALID_ADDRESS_SPACE:
    case SHERD__CUDA_INVALID_PC:
    case SHERD__CUDA_LAUNCH_FAILED:
    case SHERD__CUDA_MPS_CONNECTION_FAILED:
    case SHERD__CUDA_MPS_RPC_FAILURE:
    case SHERD__CUDA_MPS_CLIENT_TERMINATED:
    case SHERD__CUDA_EXTERNAL_DEVICE:
    case SHERD__CUDA_UNKNOWN: return SHERD_ECLOSED;
    default: return SHERD_EDEVICE;
    }
}

/* Returns the remedy, or NULL. */
static const char *hint_of(cuda_result code)
{
    switch (code) {
    case SHERD__CUDA_STUB_LIBRARY:
        return "this is the toolkit's library without a driver: name that of the driver";
    case SHERD__CUDA_OPERATING_SYSTEM:
    case SHERD__CUDA_NOT_PERMITTED:
    case SHERD__CUDA_UNKNOWN:
        return "nvidia-smi shows whether the kernel's module is loaded; a container needs "
               "the files /dev/nvidia*";
    case SHERD__CUDA_SYSTEM_NOT_READY: return "is the service nvidia-fabricmanager running?";
    case SHERD__CUDA_SYSTEM_DRIVER_MISMATCH:
        return "the kernel has the driver's module of another version: restart the machine";
    case SHERD__CUDA_COMPAT_NOT_SUPPORTED_ON_DEVICE:
        return "leave the library of CUDA's package for compatibility out of the search path";
    case SHERD__CUDA_MPS_CONNECTION_FAILED:
    case SHERD__CUDA_MPS_RPC_FAILURE: return "is the server of MPS running?";
    case SHERD__CUDA_ECC_UNCORRECTABLE:
        return "the device's memory has an error: nvidia-smi -q -d ECC, and reset the device";
    default: return NULL;
    }
}

static int check(const cuda_api *a, cuda_result code, const char *what, sherd_diag *d)
{
    if (code == SHERD__CUDA_SUCCESS) return SHERD_OK;
    return sherd__fail(d, error_of(code), hint_of(code), "%s: %s (%d)", what,
                       sherd__cuda_error(a, code), (int)code);
}

/* ---- finding devices ------------------------------------------------------------------------- */

static int number(const cuda_api *a, cuda_device id, cuda_attribute what)
{
    int x = 0;
    return a->DeviceGetAttribute(&x, what, id) ? 0 : x;
}

static void describe(const cuda_api *a, const char *blas, cuda_device id, sherd__driver_found *f)
{
    const int major = number(a, id, SHERD__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    const int minor = number(a, id, SHERD__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    sherd__device_info *i = &f->info;
    size_t memory = 0;
    char text[160];
    *f = (sherd__driver_found){ .id = { (void *)(intptr_t)id }, .f64 = true };
    if (a->DeviceGetName(i->model, sizeof i->model - 1, id)) i->model[0] = '\0';
    if (!a->DeviceTotalMem_v2(&memory, id)) i->memory = f->largest = memory;
    snprintf(text, sizeof text, "CUDA %d.%d, compute capability %d.%d, %s", a->version / 1000,
             a->version % 1000 / 10, major, minor, blas);
    snprintf(i->driver, sizeof i->driver, "%.63s", text);
    f->units = (uint32_t)number(a, id, SHERD__CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    f->shared = number(a, id, SHERD__CU_DEVICE_ATTRIBUTE_INTEGRATED) != 0;
    if (major < OLDEST_MAJOR || (major == OLDEST_MAJOR && minor < OLDEST_MINOR))
        snprintf(i->unusable, sizeof i->unusable,
                 "its compute capability is %d.%d, and %d.%d is required", major, minor,
                 OLDEST_MAJOR, OLDEST_MINOR);
    else if (number(a, id, SHERD__CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) ==
             SHERD__CU_COMPUTEMODE_PROHIBITED)
        snprintf(i->unusable, sizeof i->unusable,
                 "its compute mode is prohibited: nvidia-smi -c DEFAULT changes it");
}

static void name_blas(const cublas_api *a, char name[SHERD__LIBRARY_NAME])
{
    snprintf(name, SHERD__LIBRARY_NAME, "cuBLAS %d.%d", a->major, a->minor);
}

/* A driver that may not open its files does not say so: it has no device then, or an error without
 * a reason. */
static int check_files(cuda_result code, sherd_diag *d)
{
    static const char *const names[] = { "nvidiactl", "nvidia-uvm", "nvidia0", NULL };
    switch (code) {
    case SHERD__CUDA_NO_DEVICE:
    case SHERD__CUDA_OPERATING_SYSTEM:
    case SHERD__CUDA_NOT_PERMITTED:
    case SHERD__CUDA_UNKNOWN: return sherd__driver_files("/dev", names, d);
    default: return SHERD_OK;
    }
}

static int find(const void *api, sherd__driver_found *out, uint32_t *count, sherd_diag *d)
{
    const cuda_api *a = api;
    char blas[SHERD__LIBRARY_NAME] = "no cuBLAS";
    cublas_api b;
    cuda_device id;
    int n = 0;
    *count = 0;
    cuda_result code = a->Init(0);
    int err = check_files(code, d);
    if (err || code == SHERD__CUDA_NO_DEVICE) return err;
    if (!code) code = a->DeviceGetCount(&n);
    if (!code && n > 0 && !sherd__cublas_load(&b, a->version, NULL)) name_blas(&b, blas);
    for (int i = 0; i < n && *count < SHERD__DEVICES_MAX && !code; i++) {
        code = a->DeviceGet(&id, i);
        if (!code) describe(a, blas, id, &out[(*count)++]);
    }
    return check(a, code, "CUDA cannot be used", d) ? SHERD_EDEVICE : SHERD_OK;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

/* Each thread has a context of its own choice. */
static int enter(const device *v, sherd_diag *d)
{
    return check(&v->api, v->api.CtxSetCurrent(v->context), "the device cannot be used", d);
}

static void lane_free(void *ctx)
{
    lane *l = ctx;
    if (!enter(l->on, NULL)) {
        for (size_t i = 0; i < SHERD__STAGING_PARTS; i++)
            if (l->copied[i]) l->on->api.EventDestroy_v2(l->copied[i]);
        if (l->stream) l->on->api.StreamDestroy_v2(l->stream);
    }
    sherd__free(l);
}

static int lane_new(void *ctx, void **out, sherd_diag *d)
{
    device *v = ctx;
    *out = NULL;
    lane *l = sherd__calloc(1, sizeof *l);
    if (!l) return sherd__fail_memory(d, "a stream of a device");
    l->on = v;
    int err = enter(v, d);
    if (!err)
        err = check(&v->api, v->api.StreamCreate(&l->stream, SHERD__CU_STREAM_NON_BLOCKING),
                    "cannot create a stream of the device", d);
    for (size_t i = 0; i < SHERD__STAGING_PARTS && !err; i++)
        err = check(&v->api,
                    v->api.EventCreate(&l->copied[i], SHERD__CU_EVENT_BLOCKING_SYNC |
                                                          SHERD__CU_EVENT_DISABLE_TIMING),
                    "cannot create an event of the device", d);
    if (err) lane_free(l);
    else *out = l;
    return err;
}

static int staging_new(void *ctx, size_t len, void **out, sherd_diag *d)
{
    const lane *l = ctx;
    int err = enter(l->on, d);
    if (!err)
        err = check(&l->on->api, l->on->api.MemHostAlloc(out, len, 0),
                    "cannot allocate memory for copies to the device", d);
    if (err) *out = NULL;
    return err;
}

static void staging_free(void *ctx, void *staging)
{
    const lane *l = ctx;
    if (!enter(l->on, NULL)) l->on->api.MemFreeHost(staging);
}

static cuda_pointer pointer(void *memory, uint64_t at)
{
    return (cuda_pointer)(uintptr_t)memory + at;
}

static int memory_new(void *ctx, uint64_t len, void **out, sherd_diag *d)
{
    const lane *l = ctx;
    cuda_pointer memory = 0;
    int err = enter(l->on, d);
    if (!err)
        err = check(&l->on->api, l->on->api.MemAlloc_v2(&memory, len),
                    "cannot allocate memory of the device", d);
    *out = err ? NULL : (void *)(uintptr_t)memory;
    return err;
}

static void memory_free(void *ctx, void *memory)
{
    const lane *l = ctx;
    if (!enter(l->on, NULL)) l->on->api.MemFree_v2(pointer(memory, 0));
}

static int mark(const lane *l, cuda_result code, uint32_t part, const char *what, sherd_diag *d)
{
    if (!code) code = l->on->api.EventRecord(l->copied[part], l->stream);
    return check(&l->on->api, code, what, d);
}

static int copy_in(void *ctx, const sherd__driver_copy *c, sherd_diag *d)
{
    const lane *l = ctx;
    int err = enter(l->on, d);
    return err ? err
               : mark(l,
                      l->on->api.MemcpyHtoDAsync_v2(pointer(c->memory, c->at), c->staging, c->len,
                                                    l->stream),
                      c->part, "cannot copy a block to the device", d);
}

static int copy_out(void *ctx, const sherd__driver_copy *c, sherd_diag *d)
{
    const lane *l = ctx;
    int err = enter(l->on, d);
    return err ? err
               : mark(l,
                      l->on->api.MemcpyDtoHAsync_v2(c->staging, pointer(c->memory, c->at), c->len,
                                                    l->stream),
                      c->part, "cannot copy a result from the device", d);
}

static int copy_wait(void *ctx, uint32_t part, sherd_diag *d)
{
    const lane *l = ctx;
    int err = enter(l->on, d);
    return err ? err
               : check(&l->on->api, l->on->api.EventSynchronize(l->copied[part]),
                       "a copy to or from the device failed", d);
}

static int zero(void *ctx, void *memory, uint64_t len, sherd_diag *d)
{
    const lane *l = ctx;
    int err = enter(l->on, d);
    return err || len == 0
               ? err
               : check(&l->on->api,
                       l->on->api.MemsetD32Async(pointer(memory, 0), 0, len / 4, l->stream),
                       "cannot overwrite memory of the device", d);
}

static int launch(void *ctx, sherd__kernel which, const sherd__kernel_memory *m,
                  const sherd__kernel_job *job, const uint32_t groups[2], sherd_diag *d)
{
    const lane *l = ctx;
    sherd__kernel_job copy = *job;
    cuda_pointer operands[] = { pointer(m->left, 0), pointer(m->right ? m->right : m->left, 0),
                                pointer(m->out, 0), pointer(m->bad, 0) };
    void *parameters[] = { &operands[0], &operands[1], &operands[2], &operands[3], &copy };
    int err = enter(l->on, d);
    return err ? err
               : check(&l->on->api,
                       l->on->api.LaunchKernel(l->on->functions[which], groups[0], groups[1], 1,
                                               SHERD__GROUP, 1, 1, 0, l->stream, parameters, NULL),
                       "cannot start a product on the device", d);
}

static int finish(void *ctx, sherd_diag *d)
{
    const lane *l = ctx;
    int err = enter(l->on, d);
    return err ? err
               : check(&l->on->api, l->on->api.StreamSynchronize(l->stream), "the device failed",
                       d);
}

/* ---- products by cuBLAS ---------------------------------------------------------------------- */

static int library_new(void *ctx, void *memory, uint64_t len, char name[SHERD__LIBRARY_NAME],
                       sherd_diag *d)
{
    lane *l = ctx;
    const device *v = l->on;
    int err = enter(v, d);
    if (err) return err;
    if (v->blas_err)
        return sherd__fail(d, v->blas_err, v->blas_why.hint[0] ? v->blas_why.hint : NULL, "%s",
                           v->blas_why.message);
    name_blas(&v->blas, name);
    const cublas_status status = sherd__cublas_new(&v->blas, l->stream, memory, len, &l->blas);
    err = sherd__cublas_check(status, "cuBLAS cannot be used", d);
    return err == SHERD_EUNSUPPORTED ? SHERD_EDEVICE : err;
}

static void library_free(void *ctx)
{
    lane *l = ctx;
    if (l->blas && !enter(l->on, NULL)) l->on->blas.Destroy_v2(l->blas);
    l->blas = NULL;
}

/* Where the library says that a product failed, the driver says whether the device is lost. */
static int library_product(void *ctx, const sherd__library_product *p, sherd_diag *d)
{
    const lane *l = ctx;
    int err = enter(l->on, d);
    if (err) return err;
    const cublas_status status = sherd__cublas_product(&l->on->blas, l->blas, p);
    if (sherd__cublas_check(status, "", NULL) == SHERD_EDEVICE)
        err = check(&l->on->api, l->on->api.StreamSynchronize(l->stream),
                    "a product of cuBLAS failed", d);
    return err ? err : sherd__cublas_check(status, "a product of cuBLAS failed", d);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int load(void *api, const char *file, sherd_diag *d)
{
    return sherd__cuda_load(api, file, d);
}

static void device_close(void *ctx)
{
    device *v = ctx;
    if (v->context) {
        if (v->module && !enter(v, NULL)) v->api.ModuleUnload(v->module);
        v->api.CtxSetCurrent(NULL);
        v->api.DevicePrimaryCtxRelease_v2(v->id);
    }
    sherd__free(v);
}

static int build(device *v, sherd_diag *d)
{
    char log[1024] = "";
    cuda_jit_option options[] = { SHERD__CU_JIT_ERROR_LOG_BUFFER,
                                  SHERD__CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { log, (void *)(uintptr_t)(sizeof log - 1) };
    cuda_result code = v->api.ModuleLoadDataEx(&v->module, sherd__kernels_ptx, 2, options, values);
    for (size_t i = 0; i < SHERD__KERNELS && !code; i++)
        code = v->api.ModuleGetFunction(&v->functions[i], v->module, sherd__kernel_names[i]);
    if (!code || error_of(code) != SHERD_EDEVICE)
        return check(&v->api, code, "cannot load the kernels", d);
    return sherd__driver_cannot_compile(sherd__cuda_error(&v->api, code), log,
                                        "is the driver whole? libnvidia-ptxjitcompiler is part of "
                                        "it, and CUDA_DISABLE_PTX_JIT must not be set",
                                        d);
}

/* In exclusive mode, one process has the device. */
static int open_context(device *v, const sherd__driver_found *f, sherd_diag *d)
{
    if (v->api.DevicePrimaryCtxSetFlags_v2) /* refused where a library has made the context */
        (void)v->api.DevicePrimaryCtxSetFlags_v2(v->id, SHERD__CU_CTX_SCHED_BLOCKING_SYNC);
    cuda_result code = v->api.DevicePrimaryCtxRetain(&v->context, v->id);
    if (!code) return enter(v, d);
    v->context = NULL;
    const bool exclusive = number(&v->api, v->id, SHERD__CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) ==
                           SHERD__CU_COMPUTEMODE_EXCLUSIVE_PROCESS;
    if (exclusive && (code == SHERD__CUDA_DEVICE_UNAVAILABLE || code == SHERD__CUDA_INVALID_DEVICE))
        return sherd__fail(d, SHERD_EUNSUPPORTED, NULL,
                           "%s cannot be used: another process has it, and its compute mode is "
                           "exclusive",
                           f->info.model);
    return check(&v->api, code, "cannot open the device", d);
}

static int device_open(const void *api, const sherd__driver_found *f, void **out, uint64_t *memory,
                       sherd_diag *d)
{
    size_t unused = 0, all;
    device *v = sherd__calloc(1, sizeof *v);
    if (!v) return sherd__fail_memory(d, "a device");
    v->api = *(const cuda_api *)api;
    v->id = (cuda_device)(intptr_t)f->id[0];
    int err = open_context(v, f, d);
    if (!err) err = build(v, d);
    if (!err) v->blas_err = sherd__cublas_load(&v->blas, v->api.version, &v->blas_why);
    if (!err)
        err = check(&v->api, v->api.MemGetInfo_v2(&unused, &all),
                    "the device does not say how much memory it has", d);
    if (err) {
        device_close(v);
        return err;
    }
    *out = v;
    *memory = unused;
    return SHERD_OK;
}

/* ---- the backend ----------------------------------------------------------------------------- */

static const sherd__driver driver = {
    .name = "cuda",
    .interface = "CUDA",
    .no_device = "CUDA_VISIBLE_DEVICES can hide devices, and one in MIG mode needs an instance",
    .api_size = sizeof(cuda_api),
    .load = load,
    .find = find,
    .open = device_open,
    .close = device_close,
    .lane_new = lane_new,
    .lane_free = lane_free,
    .staging_new = staging_new,
    .staging_free = staging_free,
    .memory_new = memory_new,
    .memory_free = memory_free,
    .write = copy_in,
    .read = copy_out,
    .wait = copy_wait,
    .zero = zero,
    .launch = launch,
    .finish = finish,
    .library_new = library_new,
    .library_free = library_free,
    .library_product = library_product,
};

SHERD__ACCELERATOR_BACKEND(cuda, driver);
