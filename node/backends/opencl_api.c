/* See opencl_api.h. */
#include "node/backends/opencl_api.h"

#include <dlfcn.h>
#include <string.h>

#include "core/diag.h"

static void *open_any(const char *file)
{
    static const char *const names[] = { "libOpenCL.so.1", "libOpenCL.so" };
    void *library = NULL;
    if (file) return dlopen(file, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static void find(void *library, const char *name, void *member)
{
    void *symbol = dlsym(library, name);
    memcpy(member, &symbol, sizeof symbol);
}

static int lacks(const char *file, const char *name, sherd_diag *d)
{
    return sherd__fail(d, SHERD_EUNSUPPORTED, "update the driver: OpenCL 1.2 is required",
                       "%s has no function %s", file ? file : "libOpenCL.so.1", name);
}

int sherd__opencl_load(ocl_api *out, const char *file, sherd_diag *d)
{
    ocl_api a = { .library = open_any(file) };
    if (!a.library) {
        const char *why = dlerror();
        return sherd__fail(d, SHERD_EUNSUPPORTED,
                           "install the driver of the device, and ocl-icd-libopencl1 of Debian",
                           "OpenCL cannot be loaded: %.200s", why ? why : "no reason given");
    }
#define FIND(name, result, parameters) find(a.library, "cl" #name, &a.name);
#define NEED(name, result, parameters)                                                             \
    if (!a.name) return lacks(file, "cl" #name, d);
    OCL_REQUIRED(FIND)
    OCL_OPTIONAL(FIND)
    OCL_REQUIRED(NEED)
    *out = a;
    return SHERD_OK;
}

const char *sherd__opencl_error(int32_t code)
{
    switch (code) {
    case OCL_DEVICE_NOT_FOUND: return "CL_DEVICE_NOT_FOUND";
    case OCL_DEVICE_NOT_AVAILABLE: return "CL_DEVICE_NOT_AVAILABLE";
    case OCL_MEM_OBJECT_ALLOCATION_FAILURE: return "CL_MEM_OBJECT_ALLOCATION_FAILURE";
    case OCL_OUT_OF_RESOURCES: return "CL_OUT_OF_RESOURCES";
    case OCL_OUT_OF_HOST_MEMORY: return "CL_OUT_OF_HOST_MEMORY";
    case OCL_BUILD_PROGRAM_FAILURE: return "CL_BUILD_PROGRAM_FAILURE";
    case OCL_INVALID_CONTEXT: return "CL_INVALID_CONTEXT";
    case OCL_INVALID_COMMAND_QUEUE: return "CL_INVALID_COMMAND_QUEUE";
    case OCL_INVALID_BUFFER_SIZE: return "CL_INVALID_BUFFER_SIZE";
    case OCL_PLATFORM_NOT_FOUND: return "CL_PLATFORM_NOT_FOUND_KHR";
    default: return "an error of OpenCL";
    }
}
