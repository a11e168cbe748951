/* See opencl_api.h. */
#include "node/backends/opencl_api.h"

#include "core/diag.h"
#include "node/backends/driver_library.h"

static int lacks(const char *file, const char *name, sherd_diag *d)
{
    return sherd__fail(d, SHERD_EUNSUPPORTED, "update the driver: OpenCL 1.2 is required",
                       "%s has no function %s", file ? file : "libOpenCL.so.1", name);
}

int sherd__opencl_load(ocl_api *out, const char *file, sherd_diag *d)
{
    static const char *const names[] = { "libOpenCL.so.1", "libOpenCL.so", NULL };
    ocl_api a = { .library = NULL };
    int err =
        sherd__driver_library(&a.library, file, names, "OpenCL",
                              "install the driver of the device, and ocl-icd-libopencl1 of Debian",
                              d);
    if (err) return err;
#define FIND(name, result, parameters) sherd__driver_symbol(a.library, "cl" #name, &a.name);
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
    case OCL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST:
        return "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST";
    case OCL_INVALID_CONTEXT: return "CL_INVALID_CONTEXT";
    case OCL_INVALID_COMMAND_QUEUE: return "CL_INVALID_COMMAND_QUEUE";
    case OCL_INVALID_BUFFER_SIZE: return "CL_INVALID_BUFFER_SIZE";
    case OCL_PLATFORM_NOT_FOUND: return "CL_PLATFORM_NOT_FOUND_KHR";
    default: return "an error of OpenCL";
    }
}
