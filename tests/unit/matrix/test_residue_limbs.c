/*
 * Products of packed residues by tiles of bytes, compared with sums in 64 bits. Operands and
 * results end at the end of mapped memory, so that one byte beyond is a fault. Each test runs with
 * the kernels for any processor, and with those for AVX-512 and AMX if the processor has them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "matrix/residue.h"
#include "matrix/residue_limbs.h"
#include "tests/support/fenced.h"
#include "tests/support/under_valgrind.h"

enum { WORST = 1 };

static uint32_t get(const uint8_t *at, size_t i)
{
    return at[3 * i] | (uint32_t)at[3 * i + 1] << 8 | (uint32_t)at[3 * i + 2] << 16;
}

static void put(uint8_t *at, size_t i, uint32_t v)
{
    for (size_t l = 0; l < 3; l++) at[3 * i + l] = (uint8_t)(v >> 8 * l);
}

typedef struct product {
    sherd__limbs x;
    fenced a, b, out;
    uint8_t *room, *left, *right;
} product;

static void open(product *p, uint32_t prime, bool transposed, size_t n, size_t k, size_t m,
                 int worst)
{
    size_t left, right;
    *p = (product){ .a = fence(3 * n * k), .b = fence(3 * k * m), .out = fence(3 * n * m) };
    p->x = (sherd__limbs){ .p = prime,
                           .transposed = transposed,
                           .n = n,
                           .k = k,
                           .m = m,
                           .a = p->a.at,
                           .b = p->b.at,
                           .out = p->out.at };
    sherd__limbs_room(&p->x, &left, &right);
    assert_true(left <= SHERD__LIMBS_MOST && right <= SHERD__LIMBS_MOST);
    p->room = malloc(left + right + 64);
    p->left = p->room + (64 - (uintptr_t)p->room % 64) % 64;
    p->right = p->left + left;
    for (size_t i = 0; i < n * k; i++) put(p->a.at, i, worst ? prime - 1 : draw(prime));
    for (size_t i = 0; i < k * m; i++) put(p->b.at, i, worst ? prime - 1 : draw(prime));
}

static void close_product(product *p)
{
    munmap(p->a.map, p->a.size);
    munmap(p->b.map, p->b.size);
    munmap(p->out.map, p->out.size);
    free(p->room);
}

static int multiply(product *p, sherd__team *team)
{
    return sherd__limbs_multiply(&p->x, team, p->left, p->right);
}

/* Returns the matrix as numbers, row by row; transposed: of its transpose. */
static uint32_t *numbers(const uint8_t *at, size_t rows, size_t cols, bool transposed)
{
    uint32_t *out = malloc((rows * cols + 1) * sizeof *out);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            out[i * cols + j] = get(at, transposed ? j * rows + i : i * cols + j);
    return out;
}

/* Residues have 24 bits, so their products have 48. */
static void compare(const product *p)
{
    const sherd__limbs *x = &p->x;
    uint32_t *a = numbers(x->a, x->n, x->k, x->transposed), *b = numbers(x->b, x->k, x->m, false);
    uint64_t *sums = malloc((x->m + 1) * sizeof *sums);
    assert_true(x->k <= 1 << 16);
    for (size_t i = 0; i < x->n; i++) {
        memset(sums, 0, x->m * sizeof *sums);
        for (size_t l = 0; l < x->k; l++)
            for (size_t j = 0; j < x->m; j++)
                sums[j] += (uint64_t)a[i * x->k + l] * b[l * x->m + j];
        for (size_t j = 0; j < x->m; j++)
            if (get(p->out.at, i * x->m + j) != sums[j] % x->p)
                fail_msg("(%zu, %zu) of %zu x %zu x %zu%s modulo %u", i, j, x->n, x->k, x->m,
                         x->transposed ? " transposed" : "", x->p);
    }
    free(a);
    free(b);
    free(sums);
}

static void check(uint32_t prime, bool transposed, size_t n, size_t k, size_t m, int worst)
{
    product p;
    open(&p, prime, transposed, n, k, m, worst);
    assert_int_equal(multiply(&p, NULL), SHERD_OK);
    compare(&p);
    for (uint8_t *at = p.out.map; at < p.out.at; at++) assert_int_equal(*at, 0xa5);
    close_product(&p);
}

static const uint32_t primes[] = { 5931641, 5931637, 8388593, 8388571, 65537, 5, 3, 16777213 };
enum { PRIMES = sizeof primes / sizeof *primes };

static void any_shape(void)
{
    static const size_t edges[] = { 1, 2, 3, 15, 16, 17, 31, 63, 64, 65, 100, 129, 200 };
    enum { EDGES = sizeof edges / sizeof *edges };
    for (int i = 0; i < (under_valgrind() ? 40 : 200); i++)
        check(primes[i % PRIMES], i / 2 % 2, edges[draw(EDGES)], edges[draw(EDGES)],
              edges[draw(EDGES)], i % 5 == 0);
}

static void any_length(void)
{
    static const size_t depths[] = { 0, 1, 2047, 2048, 2049, 2112, 4096, 4097, 6200 };
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++)
        for (size_t way = 0; way < 8; way++)
            check(primes[(i + way) % PRIMES], way & 1, 3, depths[i], 5, way & 2);
}

static void larger_than_one_block(void)
{
    check(5931641, false, 1030, 70, 37, 0);
    check(5931641, true, 1090, 9, 70, 0);
    check(8388593, false, 150, 66, 600, 0);
    check(8388593, true, 35, 2050, 300, WORST);
}

static void without_terms(void)
{
    check(5931641, false, 20, 0, 20, 0);
    check(5931641, true, 20, 0, 20, 0);
    check(5931641, false, 0, 5, 20, 0);
    check(5931641, false, 20, 5, 0, 0);
}

/* At any place, and for each byte that can make it too large. */
static void not_below(void)
{
    for (int i = 0; i < 400; i++) {
        uint32_t prime = primes[i % PRIMES],
                 hostile[5] = { prime, 0xffffff, prime + 1, prime | 0xffff, prime | 0xff00ff };
        uint32_t v = hostile[i / PRIMES % 5];
        size_t n = 1 + draw(140), k = 1 + draw(140), m = 1 + draw(300);
        product p;
        open(&p, prime, i % 2, n, k, m, WORST);
        if (v < prime) v = prime;
        if (i % 3) put(p.a.at, draw((uint32_t)(n * k)), v);
        else put(p.b.at, draw((uint32_t)(k * m)), v);
        assert_int_equal(multiply(&p, NULL), SHERD_EFRAME);
        close_product(&p);
    }
}

static void by_threads(void)
{
    sherd__team *team;
    assert_int_equal(sherd__team_new(&team, 3), SHERD_OK);
    for (int way = 0; way < (under_valgrind() ? 1 : 2); way++) {
        product p;
        open(&p, 5931641, way, 140, 2060, 70, 0);
        assert_int_equal(multiply(&p, NULL), SHERD_OK);
        uint8_t *alone = malloc(3 * 140 * 70);
        memcpy(alone, p.out.at, 3 * 140 * 70);
        memset(p.out.at, 0, 3 * 140 * 70);
        assert_int_equal(multiply(&p, team), SHERD_OK);
        assert_memory_equal(alone, p.out.at, 3 * 140 * 70);
        free(alone);
        close_product(&p);
    }
    sherd__team_free(team);
}

/* By its strips, which must be the same bytes at each level. */
static void sorted_operands(void)
{
    static uint64_t first;
    uint64_t sum = 0;
    state = 99;
    for (int i = 0; i < (under_valgrind() ? 8 : 40); i++) {
        product p;
        bool deep = i % 4 == 0; /* of several DEPTHs */
        size_t n = 1 + draw(deep ? 40 : 200), k = 1 + draw(deep ? 5000 : 150),
               m = 1 + draw(deep ? 40 : 200);
        open(&p, primes[i % PRIMES], i & 1, n, k, m, i % 5 == 0);
        size_t left = sherd__limbs_sorted_left(&p.x), right = sherd__limbs_sorted_right(&p.x);
        uint8_t *a = aligned_alloc(64, left + 64), *b = aligned_alloc(64, right + 64);
        memset(a, 0xa5, left + 64);
        memset(b, 0xa5, right + 64);
        assert_int_equal(sherd__limbs_sort_left(&p.x, NULL, a), SHERD_OK);
        assert_int_equal(sherd__limbs_sort_right(&p.x, 0, m, NULL, b), SHERD_OK);
        for (size_t z = 0; z < 64; z++) assert_true(a[left + z] == 0xa5 && b[right + z] == 0xa5);
        for (size_t z = 0; z < left; z++) sum = sum * 31 + a[z];
        for (size_t z = 0; z < right; z++) sum = sum * 31 + b[z];
        assert_int_equal(multiply(&p, NULL), SHERD_OK);
        uint8_t *want = malloc(3 * n * m);
        memcpy(want, p.out.at, 3 * n * m);
        for (int which = 1; which < 4; which++) {
            memset(p.out.at, 0, 3 * n * m);
            p.x.sorted_a = which & 1 ? a : NULL;
            p.x.sorted_b = which & 2 ? b : NULL;
            assert_int_equal(sherd__limbs_multiply(&p.x, NULL, which & 1 ? NULL : p.left,
                                                   which & 2 ? NULL : p.right),
                             SHERD_OK);
            assert_memory_equal(p.out.at, want, 3 * n * m);
        }
        free(a);
        free(b);
        free(want);
        close_product(&p);
    }
    if (!first) first = sum;
    assert_true(sum == first);
}

/* Some of them packed by themselves, as integers are converted for some columns at a time. */
static void columns_at_a_time(void)
{
    enum { M = 150, K = 2100, SOME = 64 };
    product p;
    open(&p, 5931641, false, 1, K, M, 0);
    size_t right = sherd__limbs_sorted_right(&p.x);
    uint8_t *all = aligned_alloc(64, right), *parts = aligned_alloc(64, right),
            *some = malloc(3 * K * SOME);
    assert_int_equal(sherd__limbs_sort_right(&p.x, 0, M, NULL, all), SHERD_OK);
    for (size_t col = 0; col < M; col += SOME) {
        size_t cols = M - col < SOME ? M - col : SOME;
        for (size_t i = 0; i < K; i++)
            memcpy(some + 3 * i * cols, p.b.at + 3 * (i * M + col), 3 * cols);
        p.x.b = some;
        assert_int_equal(sherd__limbs_sort_right(&p.x, col, cols, NULL, parts), SHERD_OK);
    }
    assert_memory_equal(all, parts, right);
    free(all);
    free(parts);
    free(some);
    close_product(&p);
}

static void not_below_while_sorting(void)
{
    for (int i = 0; i < (under_valgrind() ? 12 : 40); i++) {
        size_t n = 1 + draw(70), k = 1 + draw(4500), m = 1 + draw(70);
        product p;
        open(&p, primes[i % PRIMES], i & 1, n, k, m, WORST);
        size_t left = sherd__limbs_sorted_left(&p.x), right = sherd__limbs_sorted_right(&p.x);
        uint8_t *room = aligned_alloc(64, left > right ? left : right);
        put(p.a.at, draw((uint32_t)(n * k)), p.x.p);
        put(p.b.at, draw((uint32_t)(k * m)), p.x.p);
        assert_int_equal(sherd__limbs_sort_left(&p.x, NULL, room), SHERD_EFRAME);
        assert_int_equal(sherd__limbs_sort_right(&p.x, 0, m, NULL, room), SHERD_EFRAME);
        free(room);
        close_product(&p);
    }
}

static void at_each_level(void (*test)(void))
{
    for (unsigned level = 1; level <= 3; level++) {
        if (!sherd__limbs_force(level)) continue;
        assert_true(sherd__limbs_here());
        test();
    }
    assert_true(sherd__limbs_force(0));
}

static void products_of_any_shape_equal_sums_in_64_bits(void **s)
{
    (void)s;
    at_each_level(any_shape);
}

static void sums_of_any_length_equal_sums_in_64_bits(void **s)
{
    (void)s;
    at_each_level(any_length);
}

static void products_larger_than_one_block_equal_sums_in_64_bits(void **s)
{
    (void)s;
    at_each_level(larger_than_one_block);
}

static void a_product_without_terms_is_zero(void **s)
{
    (void)s;
    at_each_level(without_terms);
}

static void a_residue_that_is_not_below_its_prime_is_detected(void **s)
{
    (void)s;
    at_each_level(not_below);
}

static void threads_give_the_same_bits(void **s)
{
    (void)s;
    at_each_level(by_threads);
}

static void sorted_operands_are_the_same_strips_and_give_the_same_products(void **s)
{
    (void)s;
    at_each_level(sorted_operands);
}

static void columns_that_are_sorted_separately_are_stored_in_their_places(void **s)
{
    (void)s;
    at_each_level(columns_at_a_time);
}

static void a_residue_that_is_not_below_its_prime_is_detected_in_sorting(void **s)
{
    (void)s;
    at_each_level(not_below_while_sorting);
}

static void self_test(void)
{
    sherd_diag d = { 0 };
    assert_int_equal(sherd__limbs_selftest(&d), SHERD_OK);
    assert_true(sherd__limbs_gflops(NULL, 0, 5, 5) == 0);
    assert_true(sherd__limbs_gflops(NULL, 64, 64, 64) > 0);
    sherd__alloc_fail_nth(1);
    assert_int_equal(sherd__limbs_selftest(&d), SHERD_ENOMEM);
    sherd__alloc_fail_nth(0);
}

static void the_self_test_passes_and_the_speed_is_measured(void **s)
{
    (void)s;
    sherd_diag d = { 0 };
    at_each_level(self_test);
    assert_int_equal(sherd__limbs_selftest(&d), SHERD_OK);
    assert_true((sherd__limbs_gflops(NULL, 64, 64, 64) > 0) == sherd__limbs_here());
}

static char *self;

/* In a process of its own, since the variable is read only once. */
static void tiles_are_not_used_if_openblas_coretype_is_set(void **s)
{
    (void)s;
    pid_t pid = fork();
    int status;
    if (pid == 0) {
        setenv("OPENBLAS_CORETYPE", "Haswell", 1);
        execl(self, self, "tiles?", (char *)NULL);
        _exit(99);
    }
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_any_shape_equal_sums_in_64_bits),
        cmocka_unit_test(sums_of_any_length_equal_sums_in_64_bits),
        cmocka_unit_test(products_larger_than_one_block_equal_sums_in_64_bits),
        cmocka_unit_test(a_product_without_terms_is_zero),
        cmocka_unit_test(a_residue_that_is_not_below_its_prime_is_detected),
        cmocka_unit_test(threads_give_the_same_bits),
        cmocka_unit_test(sorted_operands_are_the_same_strips_and_give_the_same_products),
        cmocka_unit_test(columns_that_are_sorted_separately_are_stored_in_their_places),
        cmocka_unit_test(a_residue_that_is_not_below_its_prime_is_detected_in_sorting),
        cmocka_unit_test(the_self_test_passes_and_the_speed_is_measured),
        cmocka_unit_test(tiles_are_not_used_if_openblas_coretype_is_set),
    };
    if (argc > 1 && strcmp(argv[1], "tiles?") == 0) return sherd__limbs_here();
    self = argv[0];
    unsetenv("OPENBLAS_CORETYPE"); /* this disables the tiles */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
