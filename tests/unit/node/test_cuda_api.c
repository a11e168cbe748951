/*
 * Our declarations of CUDA are those of its header, where that is, and the library is loaded by
 * name: a missing library or function is named, an optional one is not required.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<cuda.h>)
#include <cuda.h>
#elif __has_include("/usr/local/cuda/include/cuda.h")
#include "/usr/local/cuda/include/cuda.h"
#endif

#include "node/backends/cuda_api.h"

#ifdef CUDA_VERSION
#define SAME(name, parameters)                                                                     \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&cu##name), CUresult(*) parameters),    \
                   "cu" #name " is declared as in cuda.h");
CUDA_REQUIRED(SAME)
CUDA_OPTIONAL(SAME)
#define ERROR_NUMBER(name, number) _Static_assert((number) == (int)CUDA_ERROR_##name, #name);
CUDA_ERRORS(ERROR_NUMBER)
#define NUMBER(name, number) _Static_assert((number) == (int)CU_##name, #name);
CUDA_NUMBERS(NUMBER)
#endif

static void declarations_are_those_of_the_header(void **s)
{
    (void)s;
#ifndef CUDA_VERSION
    print_message("cuda.h is not installed\n");
    skip(); /* compared when this was compiled */
#endif
}

static int load(cuda_api *a, const char *name, sherd_diag *d)
{
    char file[4096];
    snprintf(file, sizeof file, "%s/tests/system/node/%s.so", getenv("BUILD"), name);
    *d = (sherd_diag){ .code = 0 };
    return sherd__cuda_load(a, file, d);
}

static void a_library_is_loaded_with_all_its_functions(void **s)
{
    (void)s;
    cuda_api a = { .library = NULL };
    sherd_diag d;
    assert_int_equal(load(&a, "preload_cuda", &d), SHERD_OK);
    assert_non_null(a.library);
    assert_int_equal(a.version, 12040);
    assert_true(a.Init && a.LaunchKernel && a.DevicePrimaryCtxSetFlags_v2);
    assert_string_equal(sherd__cuda_error(&a, 214), "CUDA_ERROR_ECC_UNCORRECTABLE");
    assert_string_equal(sherd__cuda_error(&a, 12345), "an error of CUDA");
}

static void a_missing_library_is_named(void **s)
{
    (void)s;
    cuda_api a = { .library = NULL };
    sherd_diag d;
    assert_int_equal(load(&a, "preload_nothing", &d), SHERD_EUNSUPPORTED);
    assert_non_null(strstr(d.message, "CUDA cannot be loaded"));
    assert_non_null(strstr(d.message, "preload_nothing.so"));
    assert_null(a.library);
}

static void a_missing_function_is_named_with_the_version(void **s)
{
    (void)s;
    cuda_api a = { .library = NULL };
    sherd_diag d;
    assert_int_equal(load(&a, "preload_cuda_lacking", &d), SHERD_EUNSUPPORTED);
    assert_non_null(
        strstr(d.message, "preload_cuda_lacking.so (CUDA 12.4) has no function cuModuleUnload"));
    assert_null(a.library);
}

static void an_optional_function_is_not_required(void **s)
{
    (void)s;
    cuda_api a = { .library = NULL };
    sherd_diag d;
    assert_int_equal(load(&a, "preload_cuda_plain", &d), SHERD_OK);
    assert_null(a.DevicePrimaryCtxSetFlags_v2);
    assert_non_null(a.LaunchKernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(declarations_are_those_of_the_header),
        cmocka_unit_test(a_library_is_loaded_with_all_its_functions),
        cmocka_unit_test(a_missing_library_is_named),
        cmocka_unit_test(a_missing_function_is_named_with_the_version),
        cmocka_unit_test(an_optional_function_is_not_required),
    };
    return cmocka_run_group_tests_name("node/cuda_api", tests, NULL, NULL);
}
