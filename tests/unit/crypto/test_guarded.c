/*
 * Keys of masks are in guarded memory only: the test searches the memory of this process for a key,
 * and every mapping that contains it must be excluded from core dumps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/rand.h"
#include "core/wipe.h"
#include "crypto/mask.h"

enum { KEY = 32, LARGEST = 1 << 26 }; /* size of a mapping: larger ones are reserved, not used */

/* The key that is searched for is not stored anywhere, and the compiler does not know it: code that
 * needs it computes it and wipes it. */
static volatile uint8_t secret = 0xa5;

static void key_of(uint8_t out[KEY])
{
    for (unsigned i = 0; i < KEY; i++) out[i] = (uint8_t)(secret ^ (i * 37 + 11));
}

static bool is_key(const uint8_t *p)
{
    for (unsigned i = 0; i < KEY; i++)
        if (p[i] != (uint8_t)(secret ^ (i * 37 + 11))) return false;
    return true;
}

static void fill(void *ctx, void *out, size_t len)
{
    (void)ctx;
    assert_int_equal(len, KEY);
    key_of(out);
}

typedef struct found {
    size_t all, open; /* places with the key; those of them that a core dump would contain */
} found;

static size_t count_in(int memory, uint8_t *room, uintptr_t from, size_t len)
{
    size_t n = 0;
    ssize_t got = pread(memory, room, len, (off_t)from);
    for (ssize_t i = 0; i + KEY <= got; i++) n += is_key(room + i);
    if (got > 0) sherd__wipe(room, (size_t)got);
    return n;
}

/* `room` is in a mapping of its own, which the search leaves out. */
static found search(void)
{
    found f = { 0, 0 };
    uint8_t *room = mmap(NULL, LARGEST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int memory = open("/proc/self/mem", O_RDONLY);
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512], mode[8];
    unsigned long long from = 0, to = 0;
    size_t here = 0;
    assert_true(room != MAP_FAILED && memory >= 0 && maps);
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%llx-%llx %7s", &from, &to, mode) == 3) {
            bool own = (uintptr_t)room >= from && (uintptr_t)room < to;
            here = mode[0] == 'r' && !own && to - from <= LARGEST
                       ? count_in(memory, room, (uintptr_t)from, (size_t)(to - from))
                       : 0;
            f.all += here;
        } else if (!strncmp(line, "VmFlags:", 8) && !strstr(line, " dd")) {
            f.open += here;
        }
    }
    fclose(maps);
    close(memory);
    munmap(room, LARGEST);
    return f;
}

static void the_search_finds_a_key_anywhere_in_memory(void **state)
{
    (void)state;
    uint8_t *heap = malloc(KEY);
    key_of(heap);
    found f = search();
    assert_true(f.all == 1 && f.open == 1);
    sherd__wipe(heap, KEY);
    free(heap);
    assert_int_equal(search().all, 0);
}

/* New memory the first time, and then that of keys which were freed. */
static void keys_of_masks_are_only_in_memory_that_is_not_dumped(void **state)
{
    (void)state;
    static double out[64];
    const sherd__entropy e = { fill, NULL };
    const sherd__mask_id id = { SHERD__MASK_LEFT, 0, 0, 5931641, 64 };
    for (unsigned round = 0; round < 2; round++) {
        sherd__masks *m, *again;
        assert_int_equal(sherd__masks_new(&m, &e), 0);
        assert_int_equal(sherd__masks_clone(&again, m), 0);
        assert_int_equal(sherd__masks_row(again, &id, 3, out), 0);
        found f = search();
        assert_int_equal(f.all, 2);
        assert_int_equal(f.open, 0);
        sherd__masks_free(m);
        sherd__masks_free(again);
        assert_int_equal(search().all, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_search_finds_a_key_anywhere_in_memory),
        cmocka_unit_test(keys_of_masks_are_only_in_memory_that_is_not_dumped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
