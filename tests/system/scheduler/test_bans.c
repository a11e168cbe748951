/*
 * A node that is banned while a call has no job: when operands are read, and when all shares are
 * made again. Preparing waits here until that has happened.
 *
 * link: -Wl,--wrap=sherd__prepare_multiply
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scheduler/plan/prepare.h"
#include "tests/support/send_signal.h"
#include "tests/system/scheduler/local_nodes.h"
#include "tests/system/scheduler/share_world.h"

#define LIAR 1u /* node-2: the bytes that it sends after its last result are not a record */
#define DOOMED 0u

int __real_sherd__prepare_multiply(sherd__prepared *p, const sherd__matrices *m,
                                   const sherd__nodes *nodes, const sherd_product_options *opt,
                                   sherd_diag *d);
int __wrap_sherd__prepare_multiply(sherd__prepared *p, const sherd__matrices *m,
                                   const sherd__nodes *nodes, const sherd_product_options *opt,
                                   sherd_diag *d);

static sherd_cluster *nodes;
static unsigned until_caught; /* number of the prepare call that waits, from 1; 0: none */
static bool one_dies;         /* before the first call */

static sherd_node_state state_of(uint32_t node)
{
    sherd_node_info info = { .size = sizeof info };
    assert_int_equal(sherd_cluster_node_at(nodes, node, &info, NULL), 0);
    return info.state;
}

int __wrap_sherd__prepare_multiply(sherd__prepared *p, const sherd__matrices *m,
                                   const sherd__nodes *n, const sherd_product_options *opt,
                                   sherd_diag *d)
{
    if (one_dies) send_signal(local_pid(nodes, DOOMED), SIGKILL);
    one_dies = false;
    if (until_caught && --until_caught == 0)
        for (unsigned t = 0; t < 20000 && state_of(LIAR) != SHERD_NODE_BANNED; t++) usleep(1000);
    return __real_sherd__prepare_multiply(p, m, n, opt, d);
}

/* Runs a second product in which prepare call number `at` does not return before the liar is
 * banned. */
static void caught_while_preparing(unsigned at, bool strict)
{
    const size_t n = 60;
    double *x = share_matrix(n, n), *y = share_matrix(n, n), *out = malloc(n * n * sizeof *out);
    sherd_view a = share_view(x, n, n), b = share_view(y, n, n);
    double *want = share_reference(a, b);
    sherd_product_options o = share_options(SHERD_SHARE, 0);
    sherd_report r = { .size = sizeof r };
    sherd_diag d = { 0 };
    nodes = local_open(NODES, "idle@node-2", 0);
    share_multiply(nodes, &o, a, b, NULL);
    until_caught = at;
    one_dies = at > 1;
    o.strict = strict;
    int err = sherd_multiply(nodes, a, b, out, n, &o, &r, &d);
    if (err != (strict ? SHERD_EWRONG : SHERD_OK))
        fail_msg("%s: %s", sherd_err_name(err), d.message);
    if (strict) assert_non_null(strstr(d.message, "node-2"));
    else share_must_equal(out, want, n * n, "a product around a liar");
    assert_int_equal(r.nodes_banned, 1);
    assert_int_equal(r.states[LIAR], SHERD_NODE_BANNED);
    assert_non_null(strstr(r.banned, "node-2"));
    assert_non_null(strstr(local_warned, "node-2"));
    sherd_report_fini(&r);
    if (!strict) { /* the next call does not count it */
        share_multiply(nodes, &o, a, b, &r);
        assert_int_equal(r.nodes_banned, 0);
        assert_string_equal(r.banned, "");
        assert_int_equal(r.states[LIAR], SHERD_NODE_BANNED);
        sherd_report_fini(&r);
    }
    sherd_cluster_close(nodes);
    free(x);
    free(y);
    free(out);
    free(want);
}

static void a_node_banned_while_operands_are_read_is_in_the_report(void **state)
{
    (void)state;
    caught_while_preparing(1, false);
}

static void a_node_banned_between_two_encodings_is_in_the_report(void **state)
{
    (void)state;
    caught_while_preparing(2, false);
}

static void strict_applies_between_jobs(void **state)
{
    (void)state;
    caught_while_preparing(1, true);
    caught_while_preparing(2, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_banned_while_operands_are_read_is_in_the_report),
        cmocka_unit_test(a_node_banned_between_two_encodings_is_in_the_report),
        cmocka_unit_test(strict_applies_between_jobs),
    };
    return cmocka_run_group_tests(tests, share_begin, share_end);
}
