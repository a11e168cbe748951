/*
 * Products modulo 1 to 4 primes of both tables, recombined, compared with an __int128 loop and with
 * the committed hashes.
 */
#include "tests/vectors/exact.h"

/* Multiplies a row of A by a column of B, by definition. */
static sherd__i128 entry(const modular_case *c, const double *a, const double *b, size_t i,
                         size_t j)
{
    sherd__i128 sum = 0;
    for (size_t l = 0; l < c->k; l++)
        sum += (sherd__i128)(int64_t)a[i * c->k + l] * (int64_t)b[l * c->m + j];
    return sum;
}

static void check(const modular_case *c)
{
    double *a = modular_operand(c, 'A', c->n * c->k), *b = modular_operand(c, 'B', c->k * c->m);
    double *got = modular_product(c, a, b);
    char have[SHERD__DIGEST_TEXT], want[SHERD__DIGEST_TEXT];
    for (size_t i = 0; i < c->n; i++)
        for (size_t j = 0; j < c->m; j++) {
            double x = scalbn((double)entry(c, a, b, i, j), -c->shift);
            if (got[i * c->m + j] != x)
                fail_msg("%s: (%zu, %zu) is %.17g, expected %.17g", c->name, i, j,
                         got[i * c->m + j], x);
        }
    vector_digest(got, c->n, c->m, have);
    vector_wanted(c->name, want);
    if (strcmp(have, want)) fail_msg("%s has hash %s, expected %s", c->name, have, want);
    free(a);
    free(b);
    free(got);
}

static void products_modulo_all_numbers_of_primes_equal_int128(void **s)
{
    (void)s;
    for (size_t i = 0; i < MODULAR_CASES; i++) check(&modular_cases[i]);
}

static void each_case_needs_the_primes_that_it_is_computed_with(void **s)
{
    (void)s;
    for (size_t i = 0; i < MODULAR_CASES; i++) {
        const modular_case *c = &modular_cases[i];
        size_t primes = 0;
        assert_int_equal(sherd__exact_primes_needed(c->k, c->a_bound, c->b_bound, c->table,
                                                    &primes),
                         SHERD_OK);
        if (primes != c->primes)
            fail_msg("%s: %zu primes, expected %zu", c->name, primes, c->primes);
    }
}

static void the_vectors_equal_the_oracles_output(void **s)
{
    (void)s;
    char line[200], want[200];
    FILE *oracle = popen("python3 -W ignore tests/oracle/exact_v1.py", "re");
    FILE *file = fopen("tests/vectors/exact.txt", "re");
    size_t lines = 0;
    assert_true(oracle && file);
    while (fgets(want, sizeof want, oracle)) {
        assert_non_null(fgets(line, sizeof line, file));
        assert_string_equal(line, want);
        lines++;
    }
    assert_null(fgets(line, sizeof line, file));
    assert_int_equal(pclose(oracle), 0);
    assert_int_equal(lines, MODULAR_CASES + CLUSTER_CASES);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_case_needs_the_primes_that_it_is_computed_with),
        cmocka_unit_test(products_modulo_all_numbers_of_primes_equal_int128),
        cmocka_unit_test(the_vectors_equal_the_oracles_output),
    };
    return cmocka_run_group_tests_name("matrix/products", tests, NULL, NULL);
}
