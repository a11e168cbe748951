/*
 * Products of packed residues by tiles of bytes, compared with sums in 64 bits. Operands and
 * results end at the end of mapped memory, so that one byte beyond is a fault. The cases are
 * skipped if the processor has no such tiles; residues then are computed as doubles, which
 * contract/node/test_backend tests.
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

enum { PAGE = 4096, WORST = 1 };

static uint64_t state = 17;

static uint32_t draw(uint32_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state >> 33) % below);
}

/* len bytes in front of an inaccessible page. */
typedef struct fenced {
    uint8_t *map, *at;
    size_t size;
} fenced;

static fenced fence(size_t len)
{
    size_t size = (len + PAGE - 1) / PAGE * PAGE + PAGE;
    uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    assert_int_equal(mprotect(p + size - PAGE, PAGE, PROT_NONE), 0);
    memset(p, 0xa5, size - PAGE);
    return (fenced){ p, p + size - PAGE - len, size };
}

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
    p->x = (sherd__limbs){ prime, transposed, n, k, m, p->a.at, p->b.at, p->out.at, false, 0 };
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

static uint32_t element(const product *p, size_t i, size_t j)
{
    const sherd__limbs *x = &p->x;
    uint64_t sum = 0;
    for (size_t l = 0; l < x->k; l++)
        sum = (sum + (uint64_t)get(x->a, x->transposed ? l * x->n + i : i * x->k + l) *
                         get(x->b, l * x->m + j)) %
              x->p;
    return (uint32_t)sum;
}

static void check(uint32_t prime, bool transposed, size_t n, size_t k, size_t m, int worst)
{
    product p;
    open(&p, prime, transposed, n, k, m, worst);
    assert_int_equal(multiply(&p, NULL), SHERD_OK);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++)
            if (get(p.out.at, i * m + j) != element(&p, i, j))
                fail_msg("(%zu, %zu) of %zu x %zu x %zu%s modulo %u", i, j, n, k, m,
                         transposed ? " transposed" : "", prime);
    for (uint8_t *at = p.out.map; at < p.out.at; at++) assert_int_equal(*at, 0xa5);
    close_product(&p);
}

static const uint32_t primes[] = { 5931641, 5931637, 8388593, 8388571, 65537, 5, 3, 16777213 };
enum { PRIMES = sizeof primes / sizeof *primes };

static void products_of_any_shape_equal_sums_in_64_bits(void **s)
{
    (void)s;
    static const size_t edges[] = { 1, 2, 3, 15, 16, 17, 31, 63, 64, 65, 100, 129, 200 };
    enum { EDGES = sizeof edges / sizeof *edges };
    if (!sherd__limbs_here()) skip();
    for (int i = 0; i < 300; i++)
        check(primes[i % PRIMES], i / 2 % 2, edges[draw(EDGES)], edges[draw(EDGES)],
              edges[draw(EDGES)], i % 5 == 0);
}

static void sums_of_any_length_equal_sums_in_64_bits(void **s)
{
    (void)s;
    static const size_t depths[] = { 0, 1, 2047, 2048, 2049, 2112, 4096, 4097, 6200 };
    if (!sherd__limbs_here()) skip();
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++)
        for (size_t q = 0; q < PRIMES; q++)
            for (int way = 0; way < 4; way++) check(primes[q], way & 1, 3, depths[i], 5, way & 2);
}

static void products_larger_than_one_block_equal_sums_in_64_bits(void **s)
{
    (void)s;
    if (!sherd__limbs_here()) skip();
    check(5931641, false, 1030, 70, 37, 0);
    check(5931641, true, 1090, 9, 70, 0);
    check(8388593, false, 150, 66, 600, 0);
    check(8388593, true, 35, 2050, 300, WORST);
}

static void a_product_without_terms_is_zero(void **s)
{
    (void)s;
    if (!sherd__limbs_here()) skip();
    check(5931641, false, 20, 0, 20, 0);
    check(5931641, true, 20, 0, 20, 0);
    check(5931641, false, 0, 5, 20, 0);
    check(5931641, false, 20, 5, 0, 0);
}

/* At any place, and for each byte that can make it too large. */
static void a_residue_that_is_not_below_its_prime_is_detected(void **s)
{
    (void)s;
    if (!sherd__limbs_here()) skip();
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

static void threads_give_the_same_bits(void **s)
{
    (void)s;
    sherd__team *team;
    if (!sherd__limbs_here()) skip();
    assert_int_equal(sherd__team_new(&team, 3), SHERD_OK);
    for (int way = 0; way < 2; way++) {
        product p;
        open(&p, 5931641, way, 333, 2100, 290, 0);
        assert_int_equal(multiply(&p, NULL), SHERD_OK);
        uint8_t *alone = malloc(3 * 333 * 290);
        memcpy(alone, p.out.at, 3 * 333 * 290);
        memset(p.out.at, 0, 3 * 333 * 290);
        assert_int_equal(multiply(&p, team), SHERD_OK);
        assert_memory_equal(alone, p.out.at, 3 * 333 * 290);
        free(alone);
        close_product(&p);
    }
    sherd__team_free(team);
}

static void the_self_test_passes_and_the_speed_is_measured(void **s)
{
    (void)s;
    sherd_diag d = { 0 };
    assert_int_equal(sherd__limbs_selftest(&d), SHERD_OK);
    assert_true(sherd__limbs_gflops(NULL, 0, 5, 5) == 0);
    double speed = sherd__limbs_gflops(NULL, 64, 64, 64);
    assert_true(sherd__limbs_here() ? speed > 0 : speed == 0);
    if (!sherd__limbs_here()) return;
    sherd__alloc_fail_nth(1);
    assert_int_equal(sherd__limbs_selftest(&d), SHERD_ENOMEM);
    sherd__alloc_fail_nth(0);
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
        cmocka_unit_test(the_self_test_passes_and_the_speed_is_measured),
        cmocka_unit_test(tiles_are_not_used_if_openblas_coretype_is_set),
    };
    if (argc > 1 && strcmp(argv[1], "tiles?") == 0) return sherd__limbs_here();
    self = argv[0];
    unsetenv("OPENBLAS_CORETYPE"); /* this disables the tiles */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
