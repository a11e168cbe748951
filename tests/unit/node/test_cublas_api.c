/*
 * Our declarations of cuBLAS are those of its header, where that is, and the library is loaded by
 * name: the newest that the driver supports, from the folder that SHERD_CUDA_PATH names.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if __has_include(<cublas_api.h>)
#include <cublas_api.h>
#include <cuda.h>
#endif

#include "node/backends/cublas_api.h"
#include "tests/support/cublas_folder.h"

#ifdef CUBLAS_VERSION
#define SAME(name, parameters)                                                                     \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&cublas##name),                         \
                                                cublasStatus_t(*) parameters),                     \
                   "cublas" #name " is declared as in cublas_api.h");
CUBLAS_REQUIRED(SAME)
CUBLAS_OPTIONAL(SAME)
#define STATUS(name, number) _Static_assert((number) == (int)CUBLAS_STATUS_##name, #name);
CUBLAS_STATUSES(STATUS)
#define NUMBER(name, number) _Static_assert((number) == (int)CUBLAS_##name, #name);
CUBLAS_NUMBERS(NUMBER)
#define OTHER(name, number) _Static_assert((number) == (int)name, #name);
CUBLAS_OTHERS(OTHER)
#endif

static void declarations_are_those_of_the_header(void **s)
{
    (void)s;
#ifndef CUBLAS_VERSION
    print_message("cublas_api.h is not installed\n");
    skip(); /* compared when this was compiled */
#endif
}

/* Loads it for a driver of this version of CUDA. */
static int load(cublas_api *a, int driver, sherd_diag *d)
{
    *a = (cublas_api){ .major = 0 };
    *d = (sherd_diag){ .code = 0 };
    return sherd__cublas_load(a, driver, d);
}

static void the_library_of_a_folder_is_loaded_with_all_its_functions(void **s)
{
    (void)s;
    cublas_api a;
    sherd_diag d;
    cublas_use(cublas_folder("cublas", "preload_cuda", 12));
    assert_int_equal(load(&a, 12040, &d), SHERD_OK);
    assert_int_equal(a.major, 12);
    assert_int_equal(a.minor, 4);
    assert_true(a.Create_v2 && a.GemmEx && a.SetAtomicsMode);
}

static void toolkits_and_wheels_have_it_in_folders(void **s)
{
    (void)s;
    char lib[4096];
    cublas_api a;
    sherd_diag d;
    const char *const names[] = { "lib", "lib64" };
    for (int i = 0; i < 2; i++) {
        char top[32], below[64];
        snprintf(top, sizeof top, "cublas-%s", names[i]);
        snprintf(below, sizeof below, "%s/%s", top, names[i]);
        snprintf(lib, sizeof lib, "%s", cublas_folder(top, "preload_cuda", 99));
        (void)cublas_folder(below, "preload_cuda", 12);
        cublas_use(lib);
        assert_int_equal(load(&a, 12040, &d), SHERD_OK);
    }
}

static void a_library_that_is_newer_than_the_driver_is_not_loaded(void **s)
{
    (void)s;
    cublas_api a;
    sherd_diag d;
    cublas_use(cublas_folder("cublas-13", "preload_cuda", 13));
    assert_int_equal(load(&a, 12040, &d), SHERD_EINVAL);
    assert_non_null(strstr(d.message, "SHERD_CUDA_PATH has no libcublas.so.12 or an older one, nor "
                                      "has its lib64 or lib: "));
    assert_non_null(strstr(d.message, "/cublas-13"));
    assert_int_equal(load(&a, 13000, &d), SHERD_OK);
    assert_int_equal(load(&a, 15000, &d), SHERD_OK); /* 13 is the newest that is known */
    cublas_use(cublas_folder("cublas-11", "preload_cuda", 11));
    assert_int_equal(load(&a, 13000, &d), SHERD_OK);
    assert_int_equal(load(&a, 11080, &d), SHERD_OK);
    /* The newest of several: the older one lacks a function. */
    (void)cublas_folder("cublas-both", "preload_cuda_lacking", 11);
    cublas_use(cublas_folder("cublas-both", "preload_cuda", 12));
    assert_int_equal(load(&a, 12040, &d), SHERD_OK);
    assert_int_equal(load(&a, 11080, &d), SHERD_EUNSUPPORTED);
}

static void a_folder_without_both_libraries_is_named(void **s)
{
    (void)s;
    char lt[4200];
    const char *folder = cublas_folder("cublas-half", "preload_cuda", 12);
    cublas_api a;
    sherd_diag d;
    cublas_use(folder);
    snprintf(lt, sizeof lt, "%s/libcublasLt.so.12", folder);
    assert_int_equal(unlink(lt), 0);
    assert_int_equal(load(&a, 12040, &d), SHERD_EINVAL);
    assert_non_null(strstr(d.message, "cuBLAS cannot be loaded: "));
    assert_non_null(strstr(d.message, "/cublas-half/libcublasLt.so.12: cannot open shared object"));
    cublas_use("/nothing");
    assert_int_equal(load(&a, 12040, &d), SHERD_EINVAL);
    assert_non_null(strstr(d.message, "nor has its lib64 or lib: /nothing"));
}

static void an_empty_path_means_none(void **s)
{
    (void)s;
    cublas_api a;
    sherd_diag d;
    cublas_use("");
    assert_int_equal(load(&a, 12040, &d), SHERD_EUNSUPPORTED);
    assert_string_equal(d.message, "cuBLAS is not used: SHERD_CUDA_PATH is empty");
}

static void a_missing_function_is_named_with_the_version(void **s)
{
    (void)s;
    cublas_api a;
    sherd_diag d;
    cublas_use(cublas_folder("cublas-lacking", "preload_cuda_lacking", 12));
    assert_int_equal(load(&a, 12040, &d), SHERD_EUNSUPPORTED);
    assert_string_equal(d.message, "cuBLAS 12.4 has no function cublasGemmEx");
    assert_null(a.Create_v2);
    cublas_use(cublas_folder("cublas-plain", "preload_cuda_plain", 12));
    assert_int_equal(load(&a, 12040, &d), SHERD_OK); /* an optional function */
    assert_null(a.SetAtomicsMode);
}

/* No device is needed to load it. */
static void the_system_s_library_has_all_functions(void **s)
{
    (void)s;
    cublas_api a;
    sherd_diag d;
    unsetenv("SHERD_CUDA_PATH");
    if (load(&a, 99000, &d)) {
        print_message("%s\n", d.message);
        assert_int_equal(d.code, SHERD_EUNSUPPORTED);
        assert_non_null(strstr(d.message, "cuBLAS cannot be loaded"));
        assert_non_null(strstr(d.hint, "SHERD_CUDA_PATH"));
        skip();
    }
    assert_in_range(a.major, 11, 13);
}

static void statuses_have_names(void **s)
{
    (void)s;
    assert_string_equal(sherd__cublas_error(15), "CUBLAS_STATUS_NOT_SUPPORTED");
    assert_string_equal(sherd__cublas_error(99), "an error of cuBLAS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(declarations_are_those_of_the_header),
        cmocka_unit_test(the_library_of_a_folder_is_loaded_with_all_its_functions),
        cmocka_unit_test(toolkits_and_wheels_have_it_in_folders),
        cmocka_unit_test(a_library_that_is_newer_than_the_driver_is_not_loaded),
        cmocka_unit_test(a_folder_without_both_libraries_is_named),
        cmocka_unit_test(an_empty_path_means_none),
        cmocka_unit_test(a_missing_function_is_named_with_the_version),
        cmocka_unit_test(statuses_have_names),
        cmocka_unit_test(the_system_s_library_has_all_functions),
    };
    return cmocka_run_group_tests_name("node/cublas_api", tests, NULL, NULL);
}
