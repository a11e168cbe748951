/*
 * OpenCL 1.2 as a driver of accelerator.c: libOpenCL is found when the node starts, kernels are
 * compiled for each device, and each lane has a queue and kernel objects of its own, since the
 * arguments of a kernel are set before each launch.
 */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "node/backends/accelerator.h"
#include "node/backends/opencl_api.h"

#define PLATFORMS_MAX 16u
#define LOCAL_BYTES (KERNEL_DEPTH * (2 * KERNEL_TILE + 1) * 8u) /* memory of a group (tile.h) */
#define OPTIONS "-cl-std=CL1.2"

typedef struct device {
    ocl_api api;
    ocl_device id;
    ocl_context context;
    ocl_program program;
    bool f64;
} device;

typedef struct lane {
    device *on;
    ocl_queue queue;
    ocl_event copied[SHERD__STAGING_PARTS]; /* of the copy of each part; NULL: none */
    ocl_kernel kernels[SHERD__KERNELS_OWN]; /* NULL: the device lacks float64 */
} lane;

/* ---- errors ---------------------------------------------------------------------------------- */

static int error_of(int32_t code)
{
    switch (code) {
    case OCL_MEM_OBJECT_ALLOCATION_FAILURE:
    case OCL_OUT_OF_RESOURCES:
    case OCL_OUT_OF_HOST_MEMORY:
    case OCL_INVALID_BUFFER_SIZE: return SHERD_ENOMEM;
    case OCL_DEVICE_NOT_AVAILABLE:
    case OCL_DEVICE_NOT_FOUND:
    case OCL_INVALID_CONTEXT:
    case OCL_INVALID_COMMAND_QUEUE: return SHERD_ECLOSED;
    default: return SHERD_EDEVICE;
    }
}

static int fail(int err, int32_t code, const char *what, sherd_diag *d)
{
    return sherd__fail(d, err, NULL, "%s: %s (%d)", what, sherd__opencl_error(code), (int)code);
}

static int check(int32_t code, const char *what, sherd_diag *d)
{
    return code == OCL_SUCCESS ? SHERD_OK : fail(error_of(code), code, what, d);
}

/* For functions that wait for the queue. They return CL_OUT_OF_RESOURCES where a kernel has failed,
 * and using less memory would not help. */
static int check_queue(int32_t code, const char *what, sherd_diag *d)
{
    return code == OCL_OUT_OF_RESOURCES ? fail(SHERD_EDEVICE, code, what, d) : check(code, what, d);
}

/* ---- finding devices ------------------------------------------------------------------------- */

static uint64_t number(const ocl_api *a, ocl_device id, uint32_t what)
{
    uint64_t x = 0; /* shorter values are at its start: hosts are little-endian */
    return a->GetDeviceInfo(id, what, sizeof x, &x, NULL) ? 0 : x;
}

/* Copies a text without spaces around it. */
static void text(const ocl_api *a, ocl_device id, uint32_t what, char *out, size_t size)
{
    char all[512] = "";
    if (a->GetDeviceInfo(id, what, sizeof all, all, NULL)) all[0] = '\0';
    all[sizeof all - 1] = '\0';
    const char *from = all + strspn(all, " ");
    snprintf(out, size, "%s", from);
    for (size_t len = strlen(out); len > 0 && out[len - 1] == ' '; len--) out[len - 1] = '\0';
}

/* Returns why a device cannot be used, or NULL. */
static const char *objection(const ocl_api *a, ocl_device id)
{
    char version[64];
    unsigned major = 0, minor = 0;
    text(a, id, OCL_DEVICE_VERSION, version, sizeof version);
    (void)sscanf(version, "OpenCL %u.%u", &major, &minor);
    if (major < 1 || (major == 1 && minor < 2)) return "it has no OpenCL 1.2";
    if (!number(a, id, OCL_DEVICE_AVAILABLE)) return "it is not available: others may use it alone";
    if (!number(a, id, OCL_DEVICE_COMPILER_AVAILABLE)) return "its driver has no compiler";
    if (!number(a, id, OCL_DEVICE_ENDIAN_LITTLE)) return "it is big-endian";
    if (number(a, id, OCL_DEVICE_MAX_WORK_GROUP_SIZE) < SHERD__GROUP)
        return "its groups have fewer than 256 items";
    if (number(a, id, OCL_DEVICE_LOCAL_MEM_SIZE) < LOCAL_BYTES)
        return "its groups have too little memory";
    return NULL;
}

static void describe(const ocl_api *a, sherd__driver_found *f)
{
    char platform[64] = "", version[64];
    ocl_device id = f->id[1];
    const char *why = objection(a, id);
    (void)a->GetPlatformInfo(f->id[0], OCL_PLATFORM_NAME, sizeof platform - 1, platform, NULL);
    text(a, id, OCL_DRIVER_VERSION, version, sizeof version);
    text(a, id, OCL_DEVICE_NAME, f->info.model, sizeof f->info.model);
    snprintf(f->info.driver, sizeof f->info.driver, "%.40s %.20s", platform, version);
    f->info.memory = number(a, id, OCL_DEVICE_GLOBAL_MEM_SIZE);
    f->info.processor = (number(a, id, OCL_DEVICE_TYPE) & OCL_TYPE_CPU) != 0;
    f->largest = number(a, id, OCL_DEVICE_MAX_MEM_ALLOC_SIZE);
    f->units = (uint32_t)number(a, id, OCL_DEVICE_MAX_COMPUTE_UNITS);
    f->f64 = number(a, id, OCL_DEVICE_DOUBLE_FP_CONFIG) != 0;
    f->shared = (uint32_t)number(a, id, OCL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
    if (why) snprintf(f->info.unusable, sizeof f->info.unusable, "%s", why);
}

/* Adds the devices of a platform that are of this type, or with `others`, that are not. Returns the
 * platform's error. */
static int32_t add(const ocl_api *a, ocl_platform p, uint64_t type, bool others,
                   sherd__driver_found *out, uint32_t *count)
{
    ocl_device ids[SHERD__DEVICES_MAX];
    uint32_t n = 0;
    int32_t code = a->GetDeviceIDs(p, OCL_TYPE_ALL, SHERD__DEVICES_MAX, ids, &n);
    if (code) return code;
    for (uint32_t i = 0; i < n && i < SHERD__DEVICES_MAX && *count < SHERD__DEVICES_MAX; i++) {
        bool of_type = (number(a, ids[i], OCL_DEVICE_TYPE) & type) != 0;
        if (of_type == others) continue;
        out[*count] = (sherd__driver_found){ .id = { p, ids[i] } };
        describe(a, &out[(*count)++]);
    }
    return OCL_SUCCESS;
}

/* A platform may have no device, except for PoCL: the processor is one, but PoCL denies it where it
 * cannot make the folder of its cache. */
static int check_platform(const ocl_api *a, ocl_platform p, int32_t code, sherd_diag *d)
{
    char name[64] = "";
    if (!code) return SHERD_OK;
    (void)a->GetPlatformInfo(p, OCL_PLATFORM_NAME, sizeof name - 1, name, NULL);
    const bool pocl = strcmp(name, "Portable Computing Language") == 0;
    if (code == OCL_DEVICE_NOT_FOUND && !pocl) return SHERD_OK;
    return sherd__fail(d, SHERD_EDEVICE,
                       pocl ? "let PoCL write the folder of its cache: the one that "
                              "POCL_CACHE_DIR names, else one below XDG_CACHE_HOME or ~/.cache"
                            : NULL,
                       "the OpenCL platform \"%s\" cannot list its devices: %s (%d)", name,
                       sherd__opencl_error(code), (int)code);
}

/* Finds up to SHERD__DEVICES_MAX devices: first GPUs and accelerators, then processors. A platform
 * that fails is an error only where no other one has a device. */
static int find(const void *api, sherd__driver_found *out, uint32_t *count, sherd_diag *d)
{
    const ocl_api *a = api;
    ocl_platform platforms[PLATFORMS_MAX];
    sherd_diag why = { .code = 0 };
    uint32_t n = 0;
    *count = 0;
    int32_t code = a->GetPlatformIDs(PLATFORMS_MAX, platforms, &n);
    if (code == OCL_PLATFORM_NOT_FOUND) return SHERD_OK;
    int err = check(code, "OpenCL lists no platforms", d);
    if (err) return SHERD_EDEVICE;
    if (n > PLATFORMS_MAX) n = PLATFORMS_MAX;
    for (uint32_t others = 0; others < 2; others++)
        for (uint32_t i = 0; i < n; i++) {
            code = add(a, platforms[i], OCL_TYPE_GPU | OCL_TYPE_ACCELERATOR, others, out, count);
            if (!err) err = check_platform(a, platforms[i], code, &why);
        }
    if (*count > 0 || !err) return SHERD_OK;
    return sherd__fail(d, err, why.hint[0] ? why.hint : NULL, "%s", why.message);
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static void forget_copy(lane *l, uint32_t part)
{
    if (l->copied[part]) l->on->api.ReleaseEvent(l->copied[part]);
    l->copied[part] = NULL;
}

static void lane_free(void *ctx)
{
    lane *l = ctx;
    if (!l) return;
    for (uint32_t i = 0; i < SHERD__STAGING_PARTS; i++) forget_copy(l, i);
    for (size_t i = 0; i < SHERD__KERNELS_OWN; i++)
        if (l->kernels[i]) l->on->api.ReleaseKernel(l->kernels[i]);
    if (l->queue) l->on->api.ReleaseCommandQueue(l->queue);
    sherd__free(l);
}

static int lane_new(void *ctx, void **out, sherd_diag *d)
{
    device *v = ctx;
    int32_t code = OCL_SUCCESS;
    *out = NULL;
    lane *l = sherd__calloc(1, sizeof *l);
    if (!l) return sherd__fail_memory(d, "a queue of a device");
    l->on = v;
    l->queue = v->api.CreateCommandQueue(v->context, v->id, 0, &code);
    for (size_t i = 0; i < SHERD__KERNELS_OWN && !code; i++) {
        if (!v->f64 && i <= SHERD__KERNEL_F64) continue;
        l->kernels[i] = v->api.CreateKernel(v->program, sherd__kernel_names[i], &code);
    }
    int err = check(code, "cannot create a queue of the device", d);
    if (err) lane_free(l);
    else *out = l;
    return err;
}

static int memory_new(void *ctx, uint64_t len, void **out, sherd_diag *d)
{
    const lane *l = ctx;
    int32_t code = OCL_SUCCESS;
    *out = l->on->api.CreateBuffer(l->on->context, OCL_MEM_READ_WRITE, len, NULL, &code);
    if (code) *out = NULL;
    return check(code, "cannot allocate memory of the device", d);
}

static void memory_free(void *ctx, void *memory)
{
    const lane *l = ctx;
    (void)l->on->api.ReleaseMemObject(memory);
}

/* A copy that was queued begins when the queue is flushed. */
static int begin_copy(const lane *l, int32_t code, const char *what, sherd_diag *d)
{
    if (!code) code = l->on->api.Flush(l->queue);
    return check_queue(code, what, d);
}

static int copy_in(void *ctx, const sherd__driver_copy *c, sherd_diag *d)
{
    lane *l = ctx;
    forget_copy(l, c->part);
    return begin_copy(l,
                      l->on->api.EnqueueWriteBuffer(l->queue, c->memory, 0, c->at, c->len,
                                                    c->staging, 0, NULL, &l->copied[c->part]),
                      "cannot copy a block to the device", d);
}

static int copy_out(void *ctx, const sherd__driver_copy *c, sherd_diag *d)
{
    lane *l = ctx;
    forget_copy(l, c->part);
    return begin_copy(l,
                      l->on->api.EnqueueReadBuffer(l->queue, c->memory, 0, c->at, c->len,
                                                   c->staging, 0, NULL, &l->copied[c->part]),
                      "cannot copy a result from the device", d);
}

static int copy_wait(void *ctx, uint32_t part, sherd_diag *d)
{
    lane *l = ctx;
    const int32_t code = l->on->api.WaitForEvents(1, &l->copied[part]);
    forget_copy(l, part);
    return check_queue(code, "a copy to or from the device failed", d);
}

static int zero(void *ctx, void *memory, uint64_t len, sherd_diag *d)
{
    static const uint8_t zeros[4096];
    const lane *l = ctx;
    int32_t code = OCL_SUCCESS;
    if (l->on->api.EnqueueFillBuffer && len)
        code = l->on->api.EnqueueFillBuffer(l->queue, memory, zeros, 4, 0, len, 0, NULL, NULL);
    for (uint64_t at = 0; at < len && !l->on->api.EnqueueFillBuffer && !code; at += sizeof zeros)
        code = l->on->api.EnqueueWriteBuffer(l->queue, memory, 1, at,
                                             len - at < sizeof zeros ? len - at : sizeof zeros,
                                             zeros, 0, NULL, NULL);
    return check(code, "cannot overwrite memory of the device", d);
}

static int launch(void *ctx, sherd__kernel which, const sherd__kernel_memory *m,
                  const sherd__kernel_job *job, const uint32_t groups[2], sherd_diag *d)
{
    const lane *l = ctx;
    const ocl_api *a = &l->on->api;
    ocl_kernel k = l->kernels[which];
    const size_t all[2] = { (size_t)groups[0] * SHERD__GROUP, groups[1] },
                 group[2] = { SHERD__GROUP, 1 };
    void *const operands[] = { m->left, m->right ? m->right : m->left, m->out, m->bad };
    int32_t code = OCL_SUCCESS;
    for (uint32_t i = 0; i < 4 && !code; i++)
        code = a->SetKernelArg(k, i, sizeof operands[i], &operands[i]);
    if (!code) code = a->SetKernelArg(k, 4, sizeof *job, job);
    if (!code) code = a->EnqueueNDRangeKernel(l->queue, k, 2, NULL, all, group, 0, NULL, NULL);
    return check(code, "cannot start a product on the device", d);
}

static int finish(void *ctx, sherd_diag *d)
{
    const lane *l = ctx;
    return check_queue(l->on->api.Finish(l->queue), "the device failed", d);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int load(void *api, const char *file, sherd_diag *d)
{
    return sherd__opencl_load(api, file, d);
}

static void device_close(void *ctx)
{
    device *v = ctx;
    if (v->program) v->api.ReleaseProgram(v->program);
    if (v->context) v->api.ReleaseContext(v->context);
    sherd__free(v);
}

/* Returns the log of the compiler, which the caller frees, or NULL. */
static char *build_log(const device *v)
{
    size_t len = 0;
    if (v->api.GetProgramBuildInfo(v->program, v->id, OCL_PROGRAM_BUILD_LOG, 0, NULL, &len) || !len)
        return NULL;
    char *log = sherd__calloc(len + 1, 1);
    if (log &&
        v->api.GetProgramBuildInfo(v->program, v->id, OCL_PROGRAM_BUILD_LOG, len, log, NULL)) {
        sherd__free(log);
        return NULL;
    }
    return log;
}

static int build_failed(const device *v, int32_t code, sherd_diag *d)
{
    char *log = build_log(v);
    int err = sherd__driver_cannot_compile(sherd__opencl_error(code), log,
                                           "can the driver's cache folder be written?", d);
    sherd__free(log);
    return err;
}

static int build(device *v, sherd_diag *d)
{
    const char *texts[SHERD__KERNELS_PARTS];
    size_t lengths[SHERD__KERNELS_PARTS];
    int32_t code;
    for (size_t i = 0; i < SHERD__KERNELS_PARTS; i++) {
        const sherd__kernels_part part = sherd__kernels_part_at(i);
        texts[i] = part.text;
        lengths[i] = part.len;
    }
    v->program = v->api.CreateProgramWithSource(v->context, SHERD__KERNELS_PARTS, texts, lengths,
                                                &code);
    if (code) return check(code, "cannot create the program of the kernels", d);
    code = v->api.BuildProgram(v->program, 1, &v->id, OPTIONS, NULL, NULL);
    return code ? build_failed(v, code, d) : SHERD_OK;
}

static int device_open(const void *api, const sherd__driver_found *f, void **out, uint64_t *memory,
                       sherd_diag *d)
{
    const ocl_property properties[] = { OCL_CONTEXT_PLATFORM, (ocl_property)f->id[0], 0 };
    const ocl_device id = f->id[1];
    int32_t code;
    device *v = sherd__calloc(1, sizeof *v);
    if (!v) return sherd__fail_memory(d, "a device");
    v->api = *(const ocl_api *)api;
    v->id = id;
    v->f64 = f->f64;
    v->context = v->api.CreateContext(properties, 1, &id, NULL, NULL, &code);
    int err = check(code, "cannot open the device", d);
    if (err) v->context = NULL;
    else err = build(v, d);
    if (err) {
        device_close(v);
        return err;
    }
    *out = v;
    *memory = f->info.memory;
    return SHERD_OK;
}

/* ---- the backend ----------------------------------------------------------------------------- */

static const sherd__driver driver = {
    .name = "opencl",
    .interface = "OpenCL",
    .no_device = "install the driver of the device",
    .api_size = sizeof(ocl_api),
    .load = load,
    .find = find,
    .open = device_open,
    .close = device_close,
    .lane_new = lane_new,
    .lane_free = lane_free,
    .memory_new = memory_new,
    .memory_free = memory_free,
    .write = copy_in,
    .read = copy_out,
    .wait = copy_wait,
    .zero = zero,
    .launch = launch,
    .finish = finish,
};

SHERD__ACCELERATOR_BACKEND(opencl, driver);
