/* Products of byte residues, by the kernels for any processor, and by those for AVX-512-VNNI and
 * AMX if the processor has them. */
#include "tests/support/bytes_paths.h"
#include "tests/unit/matrix/bytes_products.h"

static void products_of_any_shape_are_exact(void **s)
{
    (void)s;
    on_every_path(products_of_any_shape);
}

/* More terms than are multiplied at a time, and than fit one sum. */
static void products_of_any_length(void)
{
    static const size_t lengths[] = { 4095, 4096, 4097, 8200, 65535, 65536, 65537, 140000 };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i += under_valgrind() ? 3 : 1)
        for (int how = RANDOM; how <= BEYOND; how++)
            check_long(sherd__byte_primes[i], 3, lengths[i], 5, how);
    check(239, 3, 65537, 5, WORST);
    check(251, 131, 4200, 100, WORST);
    for (size_t i = 0; i < (under_valgrind() ? 1 : SHERD__BYTE_PRIMES); i++)
        check_long(sherd__byte_primes[i], 8, 65536, 16, LARGE);
}

static void products_of_any_length_are_exact(void **s)
{
    (void)s;
    on_every_path(products_of_any_length);
}

static void by_threads(void)
{
    sherd__team *team;
    product p;
    assert_int_equal(sherd__team_new(&team, 3), SHERD_OK);
    open_product(&p, 241, 300, 130, 210, RANDOM);
    assert_int_equal(sherd__bytes_multiply(&p.x, team), SHERD_OK);
    compare(&p, NULL);
    close_product(&p);
    sherd__team_free(team);
}

static void threads_compute_the_same_product(void **s)
{
    (void)s;
    on_every_path(by_threads);
}

/* As documented, since it is the form on the wire. */
static void operands_are_laid_out_in_strips_of_tiles(void **s)
{
    (void)s;
    enum { N = 19, K = 70 };
    uint8_t in[N * K], laid[2 * 2 * 1024];
    for (size_t i = 0; i < sizeof in; i++) in[i] = (uint8_t)(1 + i % 255);
    assert_int_equal(sherd__bytes_laid(N, K), sizeof laid);
    sherd__bytes_lay_rows(in, N, K, K, laid);
    for (size_t r = 0; r < 32; r++)
        for (size_t t = 0; t < 128; t++)
            assert_int_equal(laid[r / 16 * 2048 + t / 64 * 1024 + r % 16 * 64 + t % 64],
                             r < N && t < K ? in[r * K + t] : 0);
    sherd__bytes_lay_columns((const int8_t *)in, K, N, N, laid);
    for (size_t c = 0; c < 32; c++)
        for (size_t t = 0; t < 128; t++)
            assert_int_equal(laid[c / 16 * 2048 + t / 4 * 64 + c % 16 * 4 + t % 4],
                             c < N && t < K ? in[t * N + c] : 0);
}

/* Parts of rows fill their tiles only, in strips that are apart or not. */
static void rows_of_a_right_operand_are_laid_out_in_parts(void **s)
{
    (void)s;
    enum { K = 64 * 4 + 9, M = 37, APART = 5 * 1024 + 128 };
    static const size_t from[] = { 0, 64, 192, 192, K };
    int8_t in[K * M];
    uint8_t whole[3 * 5 * 1024], laid[3 * APART], empty[sizeof laid];
    for (size_t i = 0; i < sizeof in; i++) in[i] = (int8_t)(1 + draw(100));
    sherd__bytes_lay_columns(in, K, M, M, whole);
    memset(laid, 0x77, sizeof laid);
    memset(empty, 0x77, sizeof empty);
    for (size_t i = 4; i-- > 0;)
        sherd__bytes_lay_columns_at(in + from[i] * M, from[i + 1] - from[i], M, M, from[i], K, laid,
                                    APART);
    for (size_t i = 0; i < 3; i++) {
        assert_memory_equal(laid + i * APART, whole + i * 5120, 5120);
        assert_memory_equal(laid + i * APART + 5120, empty, APART - 5120);
    }
    memset(laid, 0x77, sizeof laid);
    sherd__bytes_lay_columns_at(in + 64 * M, 128, M, M, 64, K, laid, 0);
    for (size_t i = 0; i < 3; i++) {
        assert_memory_equal(laid + i * 5120, empty, 1024);
        assert_memory_equal(laid + i * 5120 + 1024, whole + i * 5120 + 1024, 2048);
        assert_memory_equal(laid + i * 5120 + 3072, empty, 2048);
    }
    sherd__bytes_lay_columns_at(NULL, 0, M, M, 0, 0, NULL, 0);
}

static void a_product_can_be_stopped(void **s)
{
    (void)s;
    atomic_bool stop = true;
    product p;
    open_product(&p, 251, 20, 20, 20, RANDOM);
    p.x.stop = &stop;
    assert_int_equal(sherd__bytes_multiply(&p.x, NULL), SHERD_EINTERRUPTED);
    close_product(&p);
}

static void the_self_test_passes(void **s)
{
    (void)s;
    for (int path = SHERD__BYTES_BEST; path < SHERD__BYTES_PATHS; path++)
        if (sherd__bytes_force((sherd__bytes_path)path))
            assert_int_equal(sherd__bytes_selftest(NULL), SHERD_OK);
    assert_true(sherd__bytes_force(SHERD__BYTES_BEST));
    assert_string_equal(sherd__bytes_path_name(SHERD__BYTES_VNNI), "vnni");
}

/* A user who names an older processor measures what that processor would do. */
static void a_named_core_limits_the_path(void **s)
{
    (void)s;
    assert_int_equal(sherd__bytes_path_of_core(NULL), SHERD__BYTES_AMX);
    assert_int_equal(sherd__bytes_path_of_core(""), SHERD__BYTES_AMX);
    assert_int_equal(sherd__bytes_path_of_core("COOPERLAKE"), SHERD__BYTES_VNNI);
    assert_int_equal(sherd__bytes_path_of_core("haswell"), SHERD__BYTES_AVX2);
    assert_int_equal(sherd__bytes_path_of_core("Nehalem"), SHERD__BYTES_ANY);
    assert_int_equal(sherd__bytes_path_of_core("NEOVERSEN2"), SHERD__BYTES_NEON);
    assert_int_equal(sherd__bytes_path_of_core("NeoverseN1"), SHERD__BYTES_ANY);
    assert_true(sherd__bytes_path_here() <= sherd__bytes_path_of_core(getenv("OPENBLAS_CORETYPE")));
}

/* The primes differ, and no larger one below 256 is missing. */
static void the_primes_are_the_largest_below_256(void **s)
{
    (void)s;
    size_t at = 0;
    for (uint32_t p = 255; at < SHERD__BYTE_PRIMES; p--) {
        bool prime = true;
        for (uint32_t q = 2; q * q <= p; q++) prime = prime && p % q != 0;
        if (prime) assert_int_equal(sherd__byte_primes[at++], p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_any_shape_are_exact),
        cmocka_unit_test(products_of_any_length_are_exact),
        cmocka_unit_test(threads_compute_the_same_product),
        cmocka_unit_test(operands_are_laid_out_in_strips_of_tiles),
        cmocka_unit_test(rows_of_a_right_operand_are_laid_out_in_parts),
        cmocka_unit_test(a_product_can_be_stopped),
        cmocka_unit_test(the_self_test_passes),
        cmocka_unit_test(a_named_core_limits_the_path),
        cmocka_unit_test(the_primes_are_the_largest_below_256),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
