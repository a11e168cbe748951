/* The self-test of byte products finds wrong ones: a product is computed by the library and then
 * damaged as a faulty processor would.
 *
 * link: -Wl,--wrap=sherd__bytes_multiply
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "matrix/residue_bytes.h"
#include "tests/support/under_valgrind.h"

static bool (*damage)(const sherd__bytes_product *x);
static uint32_t only; /* the prime whose products are damaged; 0: all */

int __real_sherd__bytes_multiply(const sherd__bytes_product *x, sherd__team *team);
int __wrap_sherd__bytes_multiply(const sherd__bytes_product *x, sherd__team *team);

int __wrap_sherd__bytes_multiply(const sherd__bytes_product *x, sherd__team *team)
{
    int err = __real_sherd__bytes_multiply(x, team);
    if (!err && damage && (only == 0 || only == x->p) && damage(x)) {
        uint8_t *last = x->out + (x->n - 1) * x->ld + x->m - 1;
        *last = (uint8_t)((*last + 1) % x->p);
    }
    return err;
}

static bool every(const sherd__bytes_product *x)
{
    return x->k > 0;
}

static bool added(const sherd__bytes_product *x)
{
    return x->add;
}

/* Sums that need more than one reduction. */
static bool longest(const sherd__bytes_product *x)
{
    return x->k > 65536;
}

/* A byte above any residue, which only extreme operands have. */
static bool beyond(const sherd__bytes_product *x)
{
    for (size_t i = 0; i < x->n * x->k; i++)
        if (x->a[i] == 255) return true;
    return false;
}

static void must_fail(bool (*how)(const sherd__bytes_product *x), uint32_t p)
{
    sherd_diag d = { .code = 0 };
    damage = how;
    only = p;
    assert_int_equal(sherd__bytes_selftest(&d), SHERD_EDEVICE);
    damage = NULL;
    assert_non_null(strstr(d.message, "of a product modulo"));
    assert_non_null(strstr(d.message, sherd__bytes_path_name(sherd__bytes_path_here())));
    assert_true(strlen(d.hint) > 0);
}

static void one_wrong_element_modulo_any_prime_is_found(void **s)
{
    (void)s;
    const size_t step = under_valgrind() ? SHERD__BYTE_PRIMES - 1 : 1; /* the first and the last */
    for (size_t i = 0; i < SHERD__BYTE_PRIMES; i += step) {
        must_fail(every, sherd__byte_primes[i]);
        must_fail(added, sherd__byte_primes[i]);
        must_fail(beyond, sherd__byte_primes[i]);
    }
}

static void wrong_sums_of_many_terms_are_found(void **s)
{
    (void)s;
    must_fail(longest, 0);
}

static void it_passes_on_every_path_of_this_processor(void **s)
{
    (void)s;
    for (int path = SHERD__BYTES_ANY; path < SHERD__BYTES_PATHS; path++) {
        if (!sherd__bytes_force((sherd__bytes_path)path)) continue;
        assert_int_equal(sherd__bytes_selftest(NULL), SHERD_OK);
        must_fail(every, 0);
    }
    assert_true(sherd__bytes_force(SHERD__BYTES_BEST));
}

static void without_memory_it_fails(void **s)
{
    (void)s;
    for (size_t i = 1; i <= 2; i++) {
        sherd__alloc_fail_nth(i);
        assert_int_equal(sherd__bytes_selftest(NULL), SHERD_ENOMEM);
    }
    sherd__alloc_fail_nth(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_wrong_element_modulo_any_prime_is_found),
        cmocka_unit_test(wrong_sums_of_many_terms_are_found),
        cmocka_unit_test(it_passes_on_every_path_of_this_processor),
        cmocka_unit_test(without_memory_it_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
