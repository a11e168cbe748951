/*
 * Available memory: the minimum over machine and control groups, and large requests beyond it.
 *
 * link: -Wl,--wrap=sherd__memory_available
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/memory.h"

#define MIB ((uint64_t)1 << 20)

static uint64_t there;
static unsigned asked;

uint64_t __wrap_sherd__memory_available(void);
uint64_t __wrap_sherd__memory_available(void)
{
    asked++;
    return there;
}

/* Writes a file below the test's folder, and creates the folders above it. */
static char root[] = "/tmp/sherd-memory-XXXXXX";

static void put(const char *path, const char *text)
{
    char all[256];
    snprintf(all, sizeof all, "%s%s", root, path);
    for (char *p = all + sizeof root; (p = strchr(p, '/')); p++) {
        *p = '\0';
        (void)mkdir(all, 0700);
        *p = '/';
    }
    FILE *f = fopen(all, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void available_memory_is_the_minimum_over_machine_and_groups(void **s)
{
    (void)s;
    assert_non_null(mkdtemp(root));
    assert_true(sherd__memory_available_in(root) == UINT64_MAX);
    put("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n");
    assert_true(sherd__memory_available_in(root) == 8000 * 1024);

    put("/proc/self/cgroup", "5:cpu:/x\n0::/user/job\n");
    put("/sys/fs/cgroup/user/job/memory.max", "max\n");
    put("/sys/fs/cgroup/user/job/memory.current", "1000000\n");
    assert_true(sherd__memory_available_in(root) == 8000 * 1024);
    put("/sys/fs/cgroup/user/job/memory.max", "5000000\n");
    assert_true(sherd__memory_available_in(root) == 4000000);
    put("/sys/fs/cgroup/user/job/memory.stat", "anon 1\ninactive_file 300000\nactive_file 50000\n");
    assert_true(sherd__memory_available_in(root) == 4350000); /* its cache can be reclaimed */

    put("/sys/fs/cgroup/user/memory.max", "3000000\n"); /* groups above it count as well */
    put("/sys/fs/cgroup/user/memory.current", "1000000\n");
    assert_true(sherd__memory_available_in(root) == 2000000);
    put("/sys/fs/cgroup/user/memory.current", "3000001\n");
    assert_true(sherd__memory_available_in(root) == 0);

    put("/proc/self/cgroup", "4:memory:/old/job\n"); /* cgroup v1; the folder is not visible */
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "7000000\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "6000000\n");
    put("/sys/fs/cgroup/memory/memory.stat", "cache 9\ntotal_inactive_file 2000000\n");
    assert_true(sherd__memory_available_in(root) == 3000000);
    char remove[64];
    snprintf(remove, sizeof remove, "rm -rf %s", root);
    assert_int_equal(system(remove), 0);
}

/* The system would grant any of these requests. */
static void large_requests_beyond_available_memory_fail(void **s)
{
    (void)s;
    there = 300 * MIB;
    void *p[5] = { sherd__alloc(301 * MIB), sherd__alloc_large(301 * MIB),
                   sherd__alloc_pages(301 * MIB), sherd__calloc(301, MIB), NULL };
    for (int i = 0; i < 4; i++) {
        assert_null(p[i]);
        sherd__free(p[i]);
    }
    assert_int_equal(asked, 4);
    void *small = sherd__alloc(100), *fits = sherd__alloc(299 * MIB);
    assert_non_null(small);
    assert_non_null(fits);
    assert_null(sherd__realloc(small, 301 * MIB)); /* and the existing allocation is kept */
    asked = 0;
    void *under = sherd__alloc(255 * MIB); /* small requests do not ask for it */
    assert_non_null(under);
    assert_int_equal(asked, 0);
    sherd__free(under);
    sherd__free(fits);
    sherd__free(small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(available_memory_is_the_minimum_over_machine_and_groups),
        cmocka_unit_test(large_requests_beyond_available_memory_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
