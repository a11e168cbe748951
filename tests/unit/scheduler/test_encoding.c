/* Dense or CSR: the choice follows from density, widths and speeds, and rates are those of the
 * machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scheduler/plan/encoding.h"
#include "wire/cipher.h"

/* The first layer of MNIST over seven nodes, with a fifth of the pixels nonzero. */
static sherd__encoding_input digits(void)
{
    return (sherd__encoding_input){ .rows = 60000,
                                    .cols = 784,
                                    .nonzeros = 60000 * 784 / 5,
                                    .groups = 7,
                                    .widest = 120,
                                    .skips = true,
                                    .value_bytes = 1,
                                    .m = 128,
                                    .tiles = 1,
                                    .nodes = 7,
                                    .gflops = 20,
                                    .threads = 1,
                                    .link = 125e6 };
}

static sherd__encoding choose(const sherd__encoding_input *in)
{
    sherd__encoding e;
    sherd__encoding_choose(&e, in);
    assert_true(e.csr ? e.csr_s < e.dense_s : true);
    return e;
}

static void sparse_operands_are_sent_in_csr_and_dense_ones_dense(void **state)
{
    (void)state;
    sherd__encoding_input in = digits();
    assert_true(choose(&in).csr);
    in.nonzeros = in.rows * in.cols;
    assert_false(choose(&in).csr);
    in.nonzeros = in.rows * in.cols * 9 / 10; /* one byte and its column number take two bytes */
    assert_false(choose(&in).csr);
    in.value_bytes = 8;
    in.nonzeros = in.rows * in.cols / 2;
    assert_true(choose(&in).csr);
    in.nonzeros = 0;
    assert_false(choose(&in).csr); /* nothing is sent */
    in.skips = false;
    assert_true(choose(&in).csr);
    in.none = true; /* nodes do not compute with it */
    assert_false(choose(&in).csr);
    in.none = false;
    in.rows = 0;
    assert_false(choose(&in).csr);
}

static void csr_is_used_only_if_the_savings_exceed_its_cost(void **state)
{
    (void)state;
    sherd__encoding_input in = digits();
    in.m = 1; /* no products to save, and a link of unlimited speed */
    in.link = 1e12;
    assert_false(choose(&in).csr);
    in.link = 125e6;
    assert_true(choose(&in).csr);
    in.link = 1e12;
    in.m = 128; /* a fifth of the products, on slow nodes */
    in.gflops = 1;
    assert_true(choose(&in).csr);
    in.threads = 16; /* BLAS has sixteen threads, sparse products one */
    assert_false(choose(&in).csr);
    in.threads = 1;
    in.primes_len = 3; /* expanded for every density */
    assert_false(choose(&in).csr);
}

static void groups_of_single_columns_omit_zeros_without_csr(void **state)
{
    (void)state;
    sherd__encoding_input in = digits();
    in.widest = 1;
    in.groups = 784;
    assert_false(choose(&in).csr);
    in.widest = 2;
    in.groups = 392;
    in.value_bytes = 8;
    assert_true(choose(&in).csr);
}

static void without_a_nodes_speed_the_process_uses_its_own(void **state)
{
    (void)state;
    sherd__encoding_input in = digits();
    in.gflops = 0;
    sherd__encoding a = choose(&in), b = choose(&in);
    assert_true(a.dense_s > 0 && a.dense_s == b.dense_s && a.csr_s == b.csr_s);
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[400];
    snprintf(path, sizeof path, "%.200s/%.100s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void the_rate_is_that_of_the_fastest_interface_that_is_up(void **state)
{
    (void)state;
    static const char *const names[] = { "eth0", "eth1", "eth2", "lo", "veth", "odd" };
    static const char *const states[] = { "up\n", "up\n", "down\n", "unknown\n", "up\n", "up\n" };
    static const char *const speeds[] = {
        "100\n", "2500\n", "100000\n", "900000\n", "-1\n", "x\n"
    };
    char folder[] = "/tmp/sherd-net-XXXXXX", path[300];
    assert_non_null(mkdtemp(folder));
    assert_true(sherd__interface_rate(folder) == 0);
    for (int i = 0; i < 6; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        assert_int_equal(mkdir(path, 0700), 0);
        write_file(path, "operstate", states[i]);
        write_file(path, "speed", speeds[i]);
    }
    assert_true(sherd__interface_rate(folder) == 2500e6 / 8);
    snprintf(path, sizeof path, "rm -r %s", folder);
    assert_int_equal(system(path), 0);
    assert_true(sherd__interface_rate(folder) == 0);
}

static void no_link_is_faster_than_its_cipher(void **state)
{
    (void)state;
    double cipher = sherd__cipher_rate(), local = sherd__link_rate(true);
    assert_true(cipher >= 50e6 && cipher < 1e12);
    assert_true(cipher == sherd__cipher_rate()); /* measured once */
    assert_true(local > 0 && local < cipher && local == sherd__link_rate(true));
    assert_true(sherd__link_rate(false) > 0 && sherd__link_rate(false) <= local);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sparse_operands_are_sent_in_csr_and_dense_ones_dense),
        cmocka_unit_test(csr_is_used_only_if_the_savings_exceed_its_cost),
        cmocka_unit_test(groups_of_single_columns_omit_zeros_without_csr),
        cmocka_unit_test(without_a_nodes_speed_the_process_uses_its_own),
        cmocka_unit_test(the_rate_is_that_of_the_fastest_interface_that_is_up),
        cmocka_unit_test(no_link_is_faster_than_its_cipher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
