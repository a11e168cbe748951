/* See cuda_api.h. */
#include "node/backends/cuda_api.h"

#include "core/diag.h"
#include "node/backends/driver_library.h"

#define OLDEST 11000 /* CUDA 11.0 */

static int too_old(const cuda_api *a, sherd_diag *d)
{
    return sherd__fail(d, SHERD_EUNSUPPORTED, "update the driver",
                       "the driver supports CUDA %d.%d: CUDA 11.0 is required", a->version / 1000,
                       a->version % 1000 / 10);
}

static int lacks(const cuda_api *a, const char *file, const char *name, sherd_diag *d)
{
    return sherd__fail(d, SHERD_EUNSUPPORTED, "update the driver: CUDA 11.0 is required",
                       "%s (CUDA %d.%d) has no function %s", file ? file : "libcuda.so.1",
                       a->version / 1000, a->version % 1000 / 10, name);
}

int sherd__cuda_load(cuda_api *out, const char *file, sherd_diag *d)
{
    static const char *const names[] = { "libcuda.so.1", NULL };
    cuda_api a = { .version = 0 };
    int err = sherd__driver_library(&a.library, file, names, "CUDA",
                                    "install the driver of the device", d);
    if (err) return err;
#define FIND(name, parameters) sherd__driver_symbol(a.library, "cu" #name, &a.name);
#define NEED(name, parameters)                                                                     \
    if (!a.name) return lacks(&a, file, "cu" #name, d);
    CUDA_REQUIRED(FIND)
    CUDA_OPTIONAL(FIND)
    if (a.DriverGetVersion && !a.DriverGetVersion(&a.version) && a.version < OLDEST)
        return too_old(&a, d);
    CUDA_REQUIRED(NEED)
    *out = a;
    return SHERD_OK;
}

const char *sherd__cuda_error(const cuda_api *a, cuda_result code)
{
    const char *name = NULL;
    if (a->GetErrorName && a->GetErrorName(code, &name) == SHERD__CUDA_SUCCESS && name) return name;
    return "an error of CUDA";
}
