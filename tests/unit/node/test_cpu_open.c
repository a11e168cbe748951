/* Opening the CPU backend runs every self-test, unless these have passed before.
 *
 * link: -Wl,--wrap=sherd__gemm_selftest -Wl,--wrap=sherd__residue_selftest
 * link: -Wl,--wrap=sherd__limbs_selftest -Wl,--wrap=sherd__bytes_selftest
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "matrix/gemm.h"
#include "matrix/residue.h"
#include "matrix/residue_bytes.h"
#include "matrix/residue_limbs.h"
#include "node/backend.h"

enum { GEMM, RESIDUE, LIMBS, BYTES, TESTS };
static unsigned calls[TESTS];
static int failing; /* TESTS: none */

static int selftest(int which)
{
    calls[which]++;
    return which == failing ? SHERD_EDEVICE : SHERD_OK;
}

#define WRAP(name, which)                                                                          \
    int __wrap_##name(sherd_diag *d);                                                              \
    int __wrap_##name(sherd_diag *d)                                                               \
    {                                                                                              \
        (void)d;                                                                                   \
        return selftest(which);                                                                    \
    }
WRAP(sherd__gemm_selftest, GEMM)
WRAP(sherd__residue_selftest, RESIDUE)
WRAP(sherd__limbs_selftest, LIMBS)
WRAP(sherd__bytes_selftest, BYTES)

static int open_with(bool tested, int fails)
{
    const sherd__backend_options opt = { .threads = 1, .quick = true, .tested = tested };
    void *ctx = NULL;
    failing = fails;
    for (int i = 0; i < TESTS; i++) calls[i] = 0;
    int err = sherd__backend_cpu.open(&ctx, &opt, NULL);
    if (err) assert_null(ctx);
    else sherd__backend_cpu.close(ctx);
    return err;
}

static void every_self_test_runs_once(void **s)
{
    (void)s;
    assert_int_equal(open_with(false, TESTS), SHERD_OK);
    for (int i = 0; i < TESTS; i++) assert_int_equal(calls[i], 1);
}

static void one_failed_self_test_is_enough(void **s)
{
    (void)s;
    for (int i = 0; i < TESTS; i++) assert_int_equal(open_with(false, i), SHERD_EDEVICE);
}

static void tests_that_have_passed_are_left_out(void **s)
{
    (void)s;
    assert_int_equal(open_with(true, GEMM), SHERD_OK);
    for (int i = 0; i < TESTS; i++) assert_int_equal(calls[i], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_self_test_runs_once),
        cmocka_unit_test(one_failed_self_test_is_enough),
        cmocka_unit_test(tests_that_have_passed_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
