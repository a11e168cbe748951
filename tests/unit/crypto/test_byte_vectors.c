/* Products of byte residues, masks of bytes and expanded seeds have the digests that
 * tests/oracle/bytes_v1.py computed with Python's integers (tests/vectors/bytes_v1.txt), by every
 * path. */
#include "tests/support/bytes_paths.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/mask.h"
#include "crypto/seeded.h"

static void compare(const uint8_t *got, size_t n, const char *want, const char *line)
{
    uint8_t digest[crypto_hash_sha256_BYTES];
    char hex[2 * sizeof digest + 1];
    crypto_hash_sha256(digest, got, n);
    sodium_bin2hex(hex, sizeof hex, digest, sizeof digest);
    if (strcmp(hex, want) != 0)
        fail_msg("%s by %s: %s", line, sherd__bytes_path_name(sherd__bytes_path_here()), hex);
}

static uint8_t *numbers(uint64_t *state, size_t n, uint32_t p, uint32_t less)
{
    uint8_t *x = malloc(n);
    for (size_t i = 0; i < n; i++) {
        *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        x[i] = (uint8_t)((*state >> 33) % p - less);
    }
    return x;
}

static bool product(const char *line)
{
    char want[65];
    sherd__bytes_product x = { 0 };
    if (sscanf(line, "product %" SCNu32 " %zu %zu %zu %64s", &x.p, &x.n, &x.k, &x.m, want) != 5)
        return false;
    uint64_t state = x.p;
    uint8_t *a = numbers(&state, x.n * x.k, x.p, 0);
    uint8_t *b = numbers(&state, x.k * x.m, x.p, x.p / 2);
    size_t left = sherd__bytes_laid(x.n, x.k), right = sherd__bytes_laid(x.m, x.k);
    uint8_t *laid = aligned_alloc(64, left + right);
    sherd__bytes_lay_rows(a, x.n, x.k, x.k, laid);
    sherd__bytes_lay_columns((const int8_t *)b, x.k, x.m, x.m, laid + left);
    x.a = laid;
    x.b = laid + left;
    x.out = malloc(x.n * x.m);
    x.ld = x.m;
    assert_int_equal(sherd__bytes_multiply(&x, NULL), SHERD_OK);
    compare(x.out, x.n * x.m, want, line);
    free(x.out);
    free(laid);
    free(a);
    free(b);
    return true;
}

static bool unit(const char *line, sherd__masks *m)
{
    char want[65];
    unsigned role;
    uint64_t number;
    size_t n;
    sherd__mask_id id;
    if (sscanf(line, "unit %u %" SCNu32 " %" SCNu32 " %" SCNu32 " %zu %" SCNu64 " %zu %64s", &role,
               &id.t, &id.prime_index, &id.p, &id.width, &number, &n, want) != 8)
        return false;
    uint8_t *out = malloc(n);
    id.role = (sherd__mask_role)role;
    assert_int_equal(sherd__masks_bytes(m, &id, number, n, out), SHERD_OK);
    compare(out, n, want, line);
    free(out);
    return true;
}

static bool seed(const char *line)
{
    char want[65], list[40], *at = list;
    unsigned dtype, wide;
    sherd__fragment_info i = { .origin = SHERD__HIDDEN };
    uint32_t primes[SHERD__BYTES_PRIMES_MAX];
    uint8_t key[SHERD__SEED_BYTES];
    sherd__fragment *f;
    if (sscanf(line, "seed %u %" SCNu64 " %" SCNu64 " %u %39s %64s", &dtype, &i.rows, &i.cols,
               &wide, list, want) != 6)
        return false;
    i.dtype = (uint8_t)dtype;
    for (char *end; *at; at = *end ? end + 1 : end)
        primes[i.primes++] = (uint32_t)strtoul(at, &end, 10);
    for (uint8_t k = 0; k < SHERD__SEED_BYTES; k++) key[k] = k;
    assert_int_equal(sherd__seeded_fragment(&f, &i, key, wide, primes), SHERD_OK);
    const uint64_t len = sherd__fragment_whole(sherd__fragment_info_of(f)).len;
    uint8_t *out = malloc(len);
    assert_int_equal(sherd__seed_expand(f, out), SHERD_OK);
    compare(out, len, want, line);
    free(out);
    sherd__fragment_free(f);
    return true;
}

static void all_lines(void)
{
    char line[200];
    uint8_t key[32];
    sherd__masks *m;
    int products = 0, units = 0, seeds = 0;
    for (uint8_t i = 0; i < 32; i++) key[i] = i;
    assert_int_equal(sherd__masks_from_key(&m, key), SHERD_OK);
    FILE *f = fopen("tests/vectors/bytes_v1.txt", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        if (product(line)) products++;
        else if (unit(line, m)) units++;
        else if (seed(line)) seeds++;
        else fail_msg("line %s", line);
    }
    fclose(f);
    sherd__masks_free(m);
    assert_int_equal(products, 11);
    assert_int_equal(units, 3);
    assert_int_equal(seeds, 5);
}

static void residues_have_the_digests_of_the_oracle(void **s)
{
    (void)s;
    on_every_path(all_lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(residues_have_the_digests_of_the_oracle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
