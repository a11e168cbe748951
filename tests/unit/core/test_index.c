/* Entries are found by name, however many there are, and keep their numbers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/alloc.h"
#include "core/index.h"

typedef struct entry {
    uint64_t name, value;
} entry;

static const sherd__table_key key = { { 7 } };

static void entries_are_found_by_name_and_number(void **s)
{
    (void)s;
    enum { MANY = 3000 };
    sherd__index x;
    sherd__index_init(&x, sizeof(entry), sizeof(uint64_t), 1 << 20, &key);
    uint64_t name = 0;
    assert_null(sherd__index_find(&x, &name));
    for (uint64_t i = 0; i < MANY; i++) {
        name = i << 32; /* equal low bits */
        assert_null(sherd__index_find(&x, &name));
        entry *e = sherd__index_add(&x, &name);
        assert_true(e && e->name == name && e->value == 0);
        e->value = i;
    }
    assert_int_equal(sherd__index_len(&x), MANY);
    for (uint64_t i = 0; i < MANY; i++) {
        name = i << 32;
        assert_int_equal(((entry *)sherd__index_find(&x, &name))->value, i);
        assert_true(sherd__index_at(&x, i) == sherd__index_find(&x, &name));
    }
    name = 5;
    assert_null(sherd__index_find(&x, &name));
    name = 0;
    entry *again = sherd__index_add(&x, &name);
    assert_true(sherd__index_find(&x, &name) == again);
    for (uint64_t i = 1; i < MANY; i++) { /* after it has grown, too */
        name = i << 32 | 1;
        assert_non_null(sherd__index_add(&x, &name));
    }
    name = 0;
    assert_true(sherd__index_find(&x, &name) == sherd__index_at(&x, MANY));
    sherd__index_fini(&x);
}

static void after_a_reservation_an_add_needs_no_allocation(void **s)
{
    (void)s;
    sherd__index x;
    sherd__index_init(&x, sizeof(entry), sizeof(uint64_t), 65 * sizeof(entry), &key);
    for (uint64_t i = 0; i < 65; i++) {
        for (size_t n = 1;; n++) {
            sherd__alloc_fail_nth(n);
            int err = sherd__index_reserve(&x);
            sherd__alloc_fail_nth(0);
            if (!err) break;
            assert_int_equal(err, SHERD_ENOMEM);
        }
        sherd__alloc_fail_nth(1);
        void *e = sherd__index_add(&x, &i);
        sherd__alloc_fail_nth(0);
        assert_non_null(e);
    }
    uint64_t more = 65;
    assert_int_equal(sherd__index_reserve(&x), SHERD_EINVAL);
    assert_null(sherd__index_add(&x, &more));
    assert_int_equal(sherd__index_len(&x), 65);
    sherd__index_fini(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_found_by_name_and_number),
        cmocka_unit_test(after_a_reservation_an_add_needs_no_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
