#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "crypto/keystream.h"

static void compare(uint64_t nonce, uint64_t block, size_t len)
{
    uint8_t key[32], n8[8], *a = malloc(len + 1), *b = calloc(1, len + 1);
    sherd__keystream ks;
    for (int i = 0; i < 32; i++) key[i] = (uint8_t)(i * 7 + 1);
    sherd__put_u64(n8, nonce);
    a[len] = 0x5a;
    assert_int_equal(sherd__keystream_init(&ks, key), 0);
    assert_int_equal(sherd__keystream_read(&ks, nonce, block, a, len), 0);
    sherd__keystream_fini(&ks);
    crypto_stream_chacha20_xor_ic(b, b, len, n8, block, key);
    assert_memory_equal(a, b, len);
    assert_int_equal(a[len], 0x5a);
    free(a);
    free(b);
}

static void the_bytes_equal_libsodiums_at_every_length(void **s)
{
    (void)s;
    for (size_t len = 0; len < 300; len++) compare(0, 0, len);
    compare(UINT64_C(0xfedcba9876543210), 12345, 100000);
    compare(7, 1, (1 << 20) + 65); /* more than one call of the cipher */
}

static void the_block_counter_carries_beyond_32_bits(void **s)
{
    (void)s;
    compare(3, (UINT64_C(1) << 32) - 2, 64 * 5 + 3);
    compare(3, (UINT64_C(1) << 32) - 40, 64 * 40);
    compare(3, (UINT64_C(5) << 32) - 1, 64 * 64);
    compare(3, UINT64_C(5) << 32, 64);
}

static void reads_in_any_order_are_parts_of_one_stream(void **s)
{
    (void)s;
    uint8_t key[32] = { 9 }, whole[640], part[64];
    sherd__keystream ks;
    assert_int_equal(sherd__keystream_init(&ks, key), 0);
    assert_int_equal(sherd__keystream_read(&ks, 1, 0, whole, sizeof whole), 0);
    for (uint64_t b = 10; b-- > 0;) {
        assert_int_equal(sherd__keystream_read(&ks, 2, b, part, sizeof part), 0);
        assert_memory_not_equal(part, whole + b * 64, 64);
        assert_int_equal(sherd__keystream_read(&ks, 1, b, part, sizeof part), 0);
        assert_memory_equal(part, whole + b * 64, 64);
    }
    sherd__keystream_fini(&ks);
    sherd__keystream_fini(&ks); /* finishing twice is allowed */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bytes_equal_libsodiums_at_every_length),
        cmocka_unit_test(the_block_counter_carries_beyond_32_bits),
        cmocka_unit_test(reads_in_any_order_are_parts_of_one_stream),
    };
    return cmocka_run_group_tests_name("crypto/keystream", tests, NULL, NULL);
}
