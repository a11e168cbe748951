/* Masks of bytes: equal to the definition in the header, computed with libsodium's primitives, by
 * every path; uniform; with keys of their own.
 * link: -Wl,--wrap=sherd__keystream_read
 */
#include "tests/support/bytes_paths.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "crypto/keystream.h"
#include "crypto/mask.h"
#include "tests/support/fenced.h"

enum { KEY = 32, MOST = 70000 };

static int broken; /* the reads until one fails; 0: none fails */

int __real_sherd__keystream_read(sherd__keystream *ks, uint64_t nonce, uint64_t block, void *out,
                                 size_t len);
int __wrap_sherd__keystream_read(sherd__keystream *ks, uint64_t nonce, uint64_t block, void *out,
                                 size_t len);

int __wrap_sherd__keystream_read(sherd__keystream *ks, uint64_t nonce, uint64_t block, void *out,
                                 size_t len)
{
    if (broken && --broken == 0) return SHERD_EINTERNAL;
    return __real_sherd__keystream_read(ks, nonce, block, out, len);
}

static sherd__masks *masks_of(uint8_t byte)
{
    sherd__masks *m;
    uint8_t key[KEY];
    memset(key, byte, KEY);
    assert_int_equal(sherd__masks_from_key(&m, key), SHERD_OK);
    return m;
}

/* The definition of crypto/mask.h. */
static void defined(uint8_t byte, const sherd__mask_id *id, uint64_t unit, size_t n, uint8_t *out)
{
    static const char label[] = "sherd byte-v1";
    uint8_t master[KEY], key[KEY], nonce[8], text[sizeof label + 24], *at = text + sizeof label;
    memset(master, byte, KEY);
    memcpy(text, label, sizeof label);
    sherd__put_u32(at, (uint32_t)id->role);
    sherd__put_u32(at + 4, id->t);
    sherd__put_u32(at + 8, id->prime_index);
    sherd__put_u32(at + 12, id->p);
    sherd__put_u64(at + 16, id->width);
    crypto_generichash(key, KEY, text, sizeof text, master, KEY);
    sherd__put_u64(nonce, unit);
    for (uint64_t block = 0; n > 0; block++) {
        uint8_t stream[64] = { 0 };
        crypto_stream_chacha20_xor_ic(stream, stream, 64, nonce, block, key);
        for (size_t i = 0; i < 64 && n > 0; i++)
            if (stream[i] < id->p) {
                *out++ = stream[i];
                n--;
            }
    }
}

static void units_of_any_length(void)
{
    static const size_t lengths[] = { 0,   1,   2,    61,    62,    63,    64,    65,   127,
                                      128, 250, 1000, 16000, 16383, 16384, 16385, MOST, 5 };
    static const uint32_t primes[] = { 251, 211, 227, 129, 3, 255 };
    static uint8_t want[MOST];
    sherd__masks *m = masks_of(7);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (uint32_t q = 0; q < 6; q++) {
            const size_t n = lengths[i];
            const sherd__mask_id id = { i % 2 ? SHERD__MASK_LEFT : SHERD__MASK_RIGHT,
                                        (uint32_t)i % 3, (q + (uint32_t)i) % 8, primes[q], i };
            uint64_t unit = i % 3 ? draw(1u << 30) : UINT64_MAX - q;
            fenced got = fence(n);
            assert_int_equal(sherd__masks_bytes(m, &id, unit, n, got.at), SHERD_OK);
            defined(7, &id, unit, n, want);
            assert_memory_equal(got.at, want, n);
            for (uint8_t *at = got.map; at < got.at; at++) assert_int_equal(*at, 0xa5);
            munmap(got.map, got.size);
        }
    sherd__masks_free(m);
}

static void units_equal_the_definition_in_the_header(void **s)
{
    (void)s;
    on_every_path(units_of_any_length);
}

static void every_part_of_a_masks_name_changes_the_unit(void **s)
{
    (void)s;
    enum { N = 400 };
    const sherd__mask_id ids[] = {
        { SHERD__MASK_LEFT, 0, 0, 251, N },  { SHERD__MASK_RIGHT, 0, 0, 251, N },
        { SHERD__MASK_LEFT, 1, 0, 251, N },  { SHERD__MASK_LEFT, 64, 0, 251, N },
        { SHERD__MASK_LEFT, 0, 1, 251, N },  { SHERD__MASK_LEFT, 0, 7, 251, N },
        { SHERD__MASK_LEFT, 0, 0, 241, N },  { SHERD__MASK_LEFT, 0, 0, 251, N + 1 },
        { SHERD__MASK_RIGHT, 4, 0, 251, N }, { SHERD__MASK_LEFT, 0, 0, 251, N }
    };
    enum { IDS = sizeof ids / sizeof *ids };
    static uint8_t x[IDS + 1][N];
    uint8_t again[N];
    sherd__masks *m = masks_of(1), *o = masks_of(2);
    for (size_t i = 0; i < IDS; i++) /* the last one is another unit */
        assert_int_equal(sherd__masks_bytes(m, &ids[i], i + 1 == IDS, N, x[i]), SHERD_OK);
    assert_int_equal(sherd__masks_bytes(o, &ids[0], 0, N, x[IDS]), SHERD_OK);
    for (size_t i = 0; i <= IDS; i++)
        for (size_t j = i + 1; j <= IDS; j++) {
            size_t equal = 0;
            for (size_t k = 0; k < N; k++) equal += x[i][k] == x[j][k];
            assert_true(equal < 20); /* 1.6 expected */
        }
    for (size_t i = 0; i < IDS; i++) {
        assert_int_equal(sherd__masks_bytes(m, &ids[i], i + 1 == IDS, N, again), SHERD_OK);
        assert_memory_equal(again, x[i], N);
    }
    sherd__masks_free(m);
    sherd__masks_free(o);
}

/* One handle draws both kinds, whose keys are in the same slots. */
static void masks_of_words_have_other_keys(void **s)
{
    (void)s;
    enum { N = 64 };
    const sherd__mask_id id = { SHERD__MASK_LEFT, 0, 0, 251, N };
    double words[N], again[N];
    uint8_t bytes[N], want[N];
    sherd__masks *m = masks_of(9);
    assert_int_equal(sherd__masks_row(m, &id, 0, words), SHERD_OK);
    assert_int_equal(sherd__masks_bytes(m, &id, 0, N, bytes), SHERD_OK);
    defined(9, &id, 0, N, want);
    assert_memory_equal(bytes, want, N);
    assert_int_equal(sherd__masks_row(m, &id, 0, again), SHERD_OK);
    assert_memory_equal(again, words, sizeof words);
    sherd__masks_free(m);
}

static void residues_are_uniform(void **s)
{
    (void)s;
    enum { N = 251 * 4000 };
    const sherd__mask_id id = { SHERD__MASK_RIGHT, 0, 0, 251, N };
    uint32_t count[256] = { 0 };
    uint8_t *x = malloc(N);
    double chi = 0;
    sherd__masks *m = masks_of(77);
    assert_int_equal(sherd__masks_bytes(m, &id, 5, N, x), SHERD_OK);
    for (size_t i = 0; i < N; i++) count[x[i]]++;
    for (unsigned r = 0; r < 251; r++) chi += (count[r] - 4000.0) * (count[r] - 4000.0) / 4000.0;
    for (unsigned r = 251; r < 256; r++) assert_int_equal(count[r], 0);
    assert_true(chi > 250 - 6 * 22.4 && chi < 250 + 6 * 22.4); /* six standard deviations */
    sherd__masks_free(m);
    free(x);
}

static void an_error_of_the_cipher_is_returned(void **s)
{
    (void)s;
    const sherd__mask_id id = { SHERD__MASK_LEFT, 0, 0, 251, 0 };
    static uint8_t out[MOST];
    sherd__masks *m = masks_of(1);
    for (int nth = 1; nth <= 4; nth++) {
        broken = nth;
        assert_int_equal(sherd__masks_bytes(m, &id, 0, MOST, out), SHERD_EINTERNAL);
        assert_int_equal(broken, 0);
    }
    assert_int_equal(sherd__masks_bytes(m, &id, 0, MOST, out), SHERD_OK);
    sherd__masks_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_equal_the_definition_in_the_header),
        cmocka_unit_test(every_part_of_a_masks_name_changes_the_unit),
        cmocka_unit_test(masks_of_words_have_other_keys),
        cmocka_unit_test(residues_are_uniform),
        cmocka_unit_test(an_error_of_the_cipher_is_returned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
