/*
 * Our declarations of OpenCL are those of its header, and the library is loaded by name: a missing
 * library or function is named, an optional one is not required.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "node/backends/opencl_api.h"

#define SAME(name, result, parameters)                                                             \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&cl##name), result(*) parameters),      \
                   "cl" #name " is declared as in CL/cl.h");
OCL_REQUIRED(SAME)
OCL_OPTIONAL(SAME)

#define NUMBER(name) _Static_assert((long long)(OCL_##name) == (long long)(CL_##name), #name)
NUMBER(SUCCESS);
NUMBER(DEVICE_NOT_FOUND);
NUMBER(DEVICE_NOT_AVAILABLE);
NUMBER(MEM_OBJECT_ALLOCATION_FAILURE);
NUMBER(OUT_OF_RESOURCES);
NUMBER(OUT_OF_HOST_MEMORY);
NUMBER(BUILD_PROGRAM_FAILURE);
NUMBER(INVALID_CONTEXT);
NUMBER(INVALID_COMMAND_QUEUE);
NUMBER(INVALID_BUFFER_SIZE);
NUMBER(PLATFORM_NAME);
NUMBER(DEVICE_TYPE);
NUMBER(DEVICE_MAX_COMPUTE_UNITS);
NUMBER(DEVICE_MAX_WORK_GROUP_SIZE);
NUMBER(DEVICE_MAX_MEM_ALLOC_SIZE);
NUMBER(DEVICE_GLOBAL_MEM_SIZE);
NUMBER(DEVICE_LOCAL_MEM_SIZE);
NUMBER(DEVICE_ENDIAN_LITTLE);
NUMBER(DEVICE_AVAILABLE);
NUMBER(DEVICE_COMPILER_AVAILABLE);
NUMBER(DEVICE_NAME);
NUMBER(DRIVER_VERSION);
NUMBER(DEVICE_VERSION);
NUMBER(DEVICE_DOUBLE_FP_CONFIG);
NUMBER(DEVICE_HOST_UNIFIED_MEMORY);
NUMBER(PROGRAM_BUILD_LOG);
NUMBER(CONTEXT_PLATFORM);
NUMBER(MEM_READ_WRITE);
_Static_assert(OCL_TYPE_CPU == CL_DEVICE_TYPE_CPU && OCL_TYPE_GPU == CL_DEVICE_TYPE_GPU &&
                   OCL_TYPE_ACCELERATOR == CL_DEVICE_TYPE_ACCELERATOR &&
                   OCL_TYPE_ALL == CL_DEVICE_TYPE_ALL,
               "types of devices");

static int load(ocl_api *a, const char *name, sherd_diag *d)
{
    char file[4096];
    snprintf(file, sizeof file, "%s/tests/system/node/%s.so", getenv("BUILD"), name);
    *d = (sherd_diag){ .code = 0 };
    return sherd__opencl_load(a, file, d);
}

static void a_library_is_loaded_with_all_its_functions(void **s)
{
    (void)s;
    ocl_api a = { .library = NULL };
    sherd_diag d;
    assert_int_equal(load(&a, "preload_opencl", &d), SHERD_OK);
    assert_non_null(a.library);
    assert_true(a.GetPlatformIDs && a.Finish && a.EnqueueFillBuffer);
}

static void a_missing_library_is_named(void **s)
{
    (void)s;
    ocl_api a = { .library = NULL };
    sherd_diag d;
    assert_int_equal(load(&a, "preload_nothing", &d), SHERD_EUNSUPPORTED);
    assert_non_null(strstr(d.message, "OpenCL cannot be loaded"));
    assert_non_null(strstr(d.message, "preload_nothing.so"));
    assert_null(a.library);
}

static void a_missing_function_is_named(void **s)
{
    (void)s;
    ocl_api a = { .library = NULL };
    sherd_diag d;
    assert_int_equal(load(&a, "preload_opencl_lacking", &d), SHERD_EUNSUPPORTED);
    assert_non_null(strstr(d.message, "preload_opencl_lacking.so has no function clFinish"));
    assert_null(a.library);
}

static void an_optional_function_is_not_required(void **s)
{
    (void)s;
    ocl_api a = { .library = NULL };
    sherd_diag d;
    assert_int_equal(load(&a, "preload_opencl_plain", &d), SHERD_OK);
    assert_null(a.EnqueueFillBuffer);
    assert_non_null(a.Finish);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_library_is_loaded_with_all_its_functions),
        cmocka_unit_test(a_missing_library_is_named),
        cmocka_unit_test(a_missing_function_is_named),
        cmocka_unit_test(an_optional_function_is_not_required),
    };
    return cmocka_run_group_tests_name("node/opencl_api", tests, NULL, NULL);
}
