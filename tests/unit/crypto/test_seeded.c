/*
 * Shares from seeds: what any T nodes see is enumerated over small fields; the weights are those of
 * the design; a seed expands to the residues that its definition in the header gives, computed with
 * libsodium's primitives, and to those that the coordinator draws.
 * link: -Wl,--wrap=sherd__keystream_read
 */
#include "tests/support/bytes_paths.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "crypto/inner.h"
#include "crypto/keystream.h"
#include "crypto/seeded.h"
#include "matrix/residue_bytes.h"
#include "sherd/mat.h"

enum { SLOTS = 8, TERMS = 6, KEY = 32 };

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

/* ---- weights --------------------------------------------------------------------------------- */

static uint32_t residue(double w, uint32_t p)
{
    return (uint32_t)(w < 0 ? w + p : w);
}

/* The weights of one operand: of the left one, or of the right one. */
static void weights(const sherd__code *by, const sherd__lcc *c, uint32_t p, bool left, double *w)
{
    const uint32_t blocks = left ? c->blocks : sherd__code_right_blocks(by, c);
    for (uint32_t i = 0; i < c->shares; i++) {
        double *row = w + i * (blocks + c->masks);
        assert_int_equal(left ? by->left(c, p, i, row) : by->right(c, p, i, row), SHERD_OK);
    }
}

static void the_weights_are_those_of_the_example(void **s)
{
    (void)s;
    static const uint32_t p = 251, seeded[] = { 0 };
    static const uint32_t want[4][7] = { { 0, 124, 246, 177, 230, 216, 197 },
                                         { 0, 5, 16, 35, 64, 105, 160 },
                                         { 0, 246, 236, 94, 195, 161, 116 },
                                         { 1, 128, 5, 197, 14, 21, 30 } };
    const sherd__lcc c = { 3, 1, 7 };
    double w[7 * 4];
    weights(&sherd__code_lagrange, &c, p, true, w);
    assert_int_equal(sherd__seeded_weights(p, 7, 3, 1, seeded, w), SHERD_OK);
    for (uint32_t i = 0; i < 7; i++)
        for (uint32_t j = 0; j < 4; j++) {
            assert_int_equal(residue(w[4 * i + j], p), want[j][i]);
            assert_true(w[4 * i + j] <= 125 && w[4 * i + j] >= -125);
        }
}

/* An encoding of one element of each block. */
typedef struct encoding {
    uint32_t p, shares, blocks, masks;
    const double *w;
} encoding;

static uint32_t share_of(const encoding *e, uint32_t slot, const uint32_t *x)
{
    uint32_t sum = 0;
    for (uint32_t j = 0; j < e->blocks + e->masks; j++)
        sum += residue(e->w[slot * (e->blocks + e->masks) + j], e->p) * x[j];
    return sum % e->p;
}

/* Sets the digits of n to the base p; returns whether n is larger. */
static bool digits(uint32_t n, uint32_t p, uint32_t len, uint32_t *x)
{
    for (uint32_t i = 0; i < len; i++, n /= p) x[i] = n % p;
    return n > 0;
}

/* Returns the next set of `len` slots in ascending order. */
static bool next_set(uint32_t *set, uint32_t len, uint32_t slots)
{
    for (uint32_t i = len; i-- > 0;) {
        if (set[i] + len - i >= slots) continue;
        set[i]++;
        for (uint32_t j = i + 1; j < len; j++) set[j] = set[j - 1] + 1;
        return true;
    }
    return false;
}

/* For each data: over all values of the masks, every view of the set occurs as often as any
 * other. Returns whether it does. */
static bool uniform(const encoding *e, const uint32_t *set, uint32_t len, uint32_t *count)
{
    uint32_t views = 1, all = 1, x[TERMS];
    for (uint32_t i = 0; i < len; i++) views *= e->p;
    for (uint32_t t = 0; t < e->masks; t++) all *= e->p;
    for (uint32_t data = 0; !digits(data, e->p, e->blocks, x); data++) {
        memset(count, 0, views * sizeof *count);
        for (uint32_t drawn = 0; !digits(drawn, e->p, e->masks, x + e->blocks); drawn++) {
            uint32_t view = 0;
            for (uint32_t i = 0; i < len; i++) view = view * e->p + share_of(e, set[i], x);
            count[view]++;
        }
        for (uint32_t v = 0; v < views; v++)
            if (count[v] * views != all) return false;
    }
    return true;
}

/* Enumerates the views of all sets of T slots, and of T+1 as a control, for one choice of seeds. */
static void enumerate(const encoding *e)
{
    static uint32_t count[11 * 11 * 11];
    uint32_t set[TERMS];
    for (uint32_t i = 0; i < e->masks; i++) set[i] = i;
    do assert_true(uniform(e, set, e->masks, count));
    while (next_set(set, e->masks, e->shares));
    for (uint32_t i = 0; i <= e->masks; i++) set[i] = i;
    assert_false(uniform(e, set, e->masks + 1, count));
}

static void what_t_nodes_see_does_not_depend_on_the_operand(void **s)
{
    (void)s;
    static const struct {
        const sherd__code *by;
        uint32_t p;
        sherd__lcc c;
    } cases[] = {
        { &sherd__code_lagrange, 7, { 1, 1, 4 } },  { &sherd__code_lagrange, 11, { 2, 1, 5 } },
        { &sherd__code_lagrange, 11, { 2, 2, 7 } }, { &sherd__code_lagrange, 11, { 1, 2, 5 } },
        { &sherd__code_inner, 5, { 2, 1, 4 } },     { &sherd__code_inner, 7, { 2, 1, 4 } },
        { &sherd__code_inner, 5, { 1, 2, 5 } },     { &sherd__code_inner, 7, { 2, 2, 6 } }
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int left = 0; left < 2; left++) {
            const sherd__lcc *c = &cases[i].c;
            double w[SLOTS * TERMS];
            encoding e = { cases[i].p, c->shares, c->blocks, c->masks, w };
            uint32_t seeded[TERMS];
            if (!left) e.blocks = sherd__code_right_blocks(cases[i].by, c);
            for (uint32_t t = 0; t < c->masks; t++) seeded[t] = t;
            do {
                weights(cases[i].by, c, e.p, left, w);
                assert_int_equal(sherd__seeded_weights(e.p, e.shares, e.blocks, e.masks, seeded, w),
                                 SHERD_OK);
                for (uint32_t t = 0; t < e.masks; t++) /* mask t is the share of its slot */
                    for (uint32_t j = 0; j < e.blocks + e.masks; j++)
                        assert_true(w[seeded[t] * (e.blocks + e.masks) + j] == (j == e.blocks + t));
                enumerate(&e);
            } while (next_set(seeded, c->masks, c->shares));
        }
}

/* For each data and masks there are seeds for which all shares are the same. */
static void seeded_shares_are_shares_of_some_masks(void **s)
{
    (void)s;
    static const uint32_t p = 251, seeded[] = { 5, 1 };
    const sherd__lcc c = { 3, 2, 9 };
    double w[9 * 5], own[9 * 5];
    weights(&sherd__code_lagrange, &c, p, true, w);
    memcpy(own, w, sizeof w);
    assert_int_equal(sherd__seeded_weights(p, 9, 3, 2, seeded, own), SHERD_OK);
    const encoding drawn = { p, 9, 3, 2, w }, from_seeds = { p, 9, 3, 2, own };
    for (uint32_t i = 0; i < 200; i++) {
        uint32_t x[5], y[5];
        for (int j = 0; j < 5; j++) x[j] = y[j] = (i * 77 + (uint32_t)j * 31 + i * i) % p;
        for (int t = 0; t < 2; t++) y[3 + t] = share_of(&drawn, seeded[t], x);
        for (uint32_t slot = 0; slot < 9; slot++)
            assert_int_equal(share_of(&drawn, slot, x), share_of(&from_seeds, slot, y));
    }
}

static void slots_that_are_not_distinct_shares_are_refused(void **s)
{
    (void)s;
    static const uint32_t twice[] = { 3, 3 }, beyond[] = { 0, 7 };
    const sherd__lcc c = { 2, 2, 7 };
    double w[7 * 4], most[64] = { 1 };
    weights(&sherd__code_lagrange, &c, 251, true, w);
    assert_int_equal(sherd__seeded_weights(251, 7, 2, 2, twice, w), SHERD_EINVAL);
    weights(&sherd__code_lagrange, &c, 251, true, w);
    assert_int_equal(sherd__seeded_weights(251, 7, 2, 2, beyond, w), SHERD_EINVAL);
    assert_int_equal(sherd__seeded_weights(251, 1, 1, 0, beyond, most), SHERD_EINVAL);
    assert_int_equal(sherd__seeded_weights(251, 1, 64, 1, beyond, most), SHERD_EINVAL);
}

/* ---- seeds ----------------------------------------------------------------------------------- */

static sherd__masks *masks_of(uint8_t byte)
{
    sherd__masks *m;
    uint8_t key[KEY];
    memset(key, byte, KEY);
    assert_int_equal(sherd__masks_from_key(&m, key), SHERD_OK);
    return m;
}

/* Seeds of everything that names one, then of another key, are all different, and so are the
 * streams of the primes of one. */
static void every_part_of_a_seeds_name_changes_it(void **s)
{
    (void)s;
    static const sherd__seed_id ids[] = { { SHERD__MASK_LEFT, 0, 0 },
                                          { SHERD__MASK_RIGHT, 0, 0 },
                                          { SHERD__MASK_LEFT, 1, 0 },
                                          { SHERD__MASK_LEFT, 0, 1 },
                                          { SHERD__MASK_LEFT, 0, UINT64_C(1) << 32 } };
    enum { IDS = sizeof ids / sizeof *ids };
    uint8_t seed[2 * IDS][KEY], again[KEY];
    sherd__masks *m[] = { masks_of(1), masks_of(2) };
    for (int i = 0; i < 2 * IDS; i++) {
        sherd__masks_seed(m[i / IDS], &ids[i % IDS], seed[i]);
        sherd__masks_seed(m[i / IDS], &ids[i % IDS], again);
        assert_memory_equal(again, seed[i], KEY);
        for (int j = 0; j < i; j++) assert_memory_not_equal(seed[i], seed[j], KEY);
    }
    sherd__masks_free(m[0]);
    sherd__masks_free(m[1]);
}

static void no_byte_is_accepted_for_two_primes(void **s)
{
    (void)s;
    enum { N = 4000, PRIMES = 8 };
    static uint8_t x[PRIMES][N];
    const sherd__seed_id id = { SHERD__MASK_RIGHT, 3, 0 };
    sherd__masks *m = masks_of(1);
    for (uint32_t q = 0; q < PRIMES; q++) {
        const sherd__mask_id of = { id.role, 0, q, sherd__byte_primes[q], 0 };
        assert_int_equal(sherd__masks_seeded(m, &id, &of, 0, N, x[q]), SHERD_OK);
    }
    /* Two streams of one key would agree from their beginning to the first rejected byte, and after
     * it with a shift. */
    for (int q = 0; q < PRIMES; q++)
        for (int r = 0; r < q; r++)
            for (size_t shift = 0; shift < 200; shift++) {
                size_t equal = 0;
                for (size_t i = 0; i + shift < N; i++) equal += x[q][i] == x[r][i + shift];
                assert_true(equal < 70); /* 17 expected */
            }
    /* Nor where the primes are equal and have different places. */
    const sherd__mask_id second = { id.role, 0, 1, sherd__byte_primes[0], 0 };
    assert_int_equal(sherd__masks_seeded(m, &id, &second, 0, N, x[1]), SHERD_OK);
    assert_memory_not_equal(x[0], x[1], N);
    sherd__masks_free(m);
}

/* ---- expansion ------------------------------------------------------------------------------- */

typedef struct definition {
    const uint8_t *seed;
    bool left;
    size_t rows, cols, wide, primes;
} definition;

/* Draws the n residues of the block at (row, col), as crypto/seed.h says. */
static void drawn(const definition *e, uint32_t q, size_t row, size_t col, size_t n, uint8_t *out)
{
    static const char label[] = "sherd byte-v1";
    const uint32_t p = sherd__byte_primes[q];
    uint8_t key[KEY], nonce[8], text[sizeof label + 24] = { 0 }, *at = text + sizeof label;
    memcpy(text, label, sizeof label);
    sherd__put_u32(at, e->left ? 1 : 2);
    sherd__put_u32(at + 8, q);
    sherd__put_u32(at + 12, p);
    crypto_generichash(key, KEY, text, sizeof text, e->seed, KEY);
    sherd__put_u64(nonce, (uint64_t)row << 32 | col);
    for (uint64_t block = 0; n > 0; block++) {
        uint8_t stream[64] = { 0 };
        crypto_stream_chacha20_xor_ic(stream, stream, 64, nonce, block, key);
        for (size_t i = 0; i < 64 && n > 0; i++)
            if (stream[i] < p) *out++ = stream[i], n--;
    }
}

/* Writes the residue of (i, j) where docs/PROTOCOL.md places it. */
static void write_at(const definition *e, uint32_t q, size_t i, size_t j, uint8_t x, uint8_t *out)
{
    const size_t tiles = ((e->left ? e->cols : e->rows) + 63) / 64;
    if (e->left) {
        out[((i / 16 * e->primes + q) * tiles + j / 64) * 1024 + i % 16 * 64 + j % 64] = x;
        return;
    }
    const uint32_t p = sherd__byte_primes[q];
    out[((j / 16 * e->primes + q) * tiles + i / 64) * 1024 + i % 64 / 4 * 64 + j % 16 * 4 + i % 4] =
        (uint8_t)(x > p / 2 ? x - p : x);
}

static void expand_by_definition(const definition *e, uint8_t *out)
{
    const size_t high = e->left ? 32 : 64;
    uint8_t x[8192];
    for (uint32_t q = 0; q < e->primes; q++)
        for (size_t row = 0; row < e->rows; row += high)
            for (size_t col = 0; col < e->cols; col += e->wide) {
                const size_t rows = e->rows - row < high ? e->rows - row : high;
                const size_t cols = e->cols - col < e->wide ? e->cols - col : e->wide;
                const bool tiles = e->left && rows % 16 == 0 && cols % 64 == 0;
                drawn(e, q, row, col, rows * cols, x);
                for (size_t at = 0; at < rows * cols; at++) {
                    size_t i = at / cols, j = at % cols;
                    if (tiles) {
                        size_t tile = at / 1024, across = cols / 64;
                        i = tile / across * 16 + at % 1024 / 64;
                        j = tile % across * 64 + at % 64;
                    }
                    write_at(e, q, row + i, col + j, x[at], out);
                }
            }
}

static sherd__fragment *fragment_of(const definition *e)
{
    const size_t lines = e->left ? e->rows : e->cols, terms = e->left ? e->cols : e->rows;
    const sherd__fragment_info whole = { .origin = SHERD__HIDDEN,
                                         .dtype = e->left ? SHERD__BYTES_LEFT : SHERD__BYTES_RIGHT,
                                         .primes = (uint8_t)e->primes,
                                         .rows = e->rows,
                                         .cols = e->cols,
                                         .len = sherd__bytes_laid(lines, terms) * e->primes };
    sherd__fragment *f;
    assert_int_equal(sherd__seeded_fragment(&f, &whole, e->seed, (uint32_t)e->wide,
                                            sherd__byte_primes),
                     SHERD_OK);
    const sherd__fragment_info *i = sherd__fragment_info_of(f);
    const sherd__fragment_info back = sherd__fragment_whole(i);
    assert_int_equal(i->encoding, SHERD__SEED);
    assert_int_equal(i->len, 34 + e->primes);
    assert_memory_equal(&back, &whole, sizeof back);
    return f;
}

static const uint8_t seed[KEY] = { 9, 8, 7 };
static const definition shapes[] = {
    { seed, true, 1, 1, 256, 1 },    { seed, true, 33, 300, 256, 2 },
    { seed, true, 32, 256, 256, 6 }, { seed, true, 48, 320, 256, 3 },
    { seed, true, 70, 64, 256, 8 },  { seed, false, 1, 1, 64, 1 },
    { seed, false, 64, 64, 64, 6 },  { seed, false, 130, 75, 64, 2 },
    { seed, false, 130, 75, 16, 2 }, { seed, false, 64, 16, 16, 3 },
    { seed, false, 63, 100, 64, 8 }, { seed, true, 0, 5, 256, 2 },
};

static void expand_all(void)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        sherd__fragment *f = fragment_of(&shapes[i]);
        const uint64_t len = sherd__fragment_whole(sherd__fragment_info_of(f)).len;
        uint8_t *got = malloc(len + 1), *want = calloc(1, len + 1);
        memset(got, 0xa5, len + 1); /* all is written, and no more */
        assert_int_equal(sherd__seed_check(f, NULL), SHERD_OK);
        assert_int_equal(sherd__seed_expand(f, got), SHERD_OK);
        expand_by_definition(&shapes[i], want);
        assert_memory_equal(got, want, len);
        assert_int_equal(got[len], 0xa5);
        free(got);
        free(want);
        sherd__fragment_free(f);
    }
}

static void a_seed_expands_as_the_header_says(void **s)
{
    (void)s;
    on_every_path(expand_all);
}

static void the_coordinator_draws_what_a_seed_expands_to(void **s)
{
    (void)s;
    enum { N = 8192 };
    static uint8_t own[N], there[N];
    const sherd__seed_id id = { SHERD__MASK_LEFT, 5, 77 };
    const sherd__mask_id stream = { SHERD__MASK_LEFT, 0, 2, 239, 0 };
    const sherd__drawn block = { true, 32, 256 };
    uint8_t key[KEY];
    sherd__masks *m = masks_of(3), *node;
    sherd__masks_seed(m, &id, key);
    assert_int_equal(sherd__masks_from_key(&node, key), SHERD_OK);
    assert_int_equal(sherd__masks_block(m, &stream, &id, 9, &block, own), SHERD_OK);
    assert_int_equal(sherd__masks_block(node, &stream, NULL, 9, &block, there), SHERD_OK);
    assert_memory_equal(own, there, N);
    /* A mask of the same handle, and another fragment, do not reuse the stream. */
    assert_int_equal(sherd__masks_block(m, &stream, NULL, 9, &block, there), SHERD_OK);
    assert_memory_not_equal(own, there, N);
    const sherd__seed_id other = { SHERD__MASK_LEFT, 5, 78 };
    assert_int_equal(sherd__masks_block(m, &stream, &other, 9, &block, there), SHERD_OK);
    assert_memory_not_equal(own, there, N);
    sherd__masks_free(m);
    sherd__masks_free(node);
}

/* ---- what a peer may send -------------------------------------------------------------------- */

static void impossible_seeds_are_refused(void **s)
{
    (void)s;
    const definition left = { seed, true, 20, 30, 256, 2 }, right = { seed, false, 20, 30, 16, 2 };
    static const struct {
        bool left;
        size_t at;
        uint8_t byte;
    } bad[] = { { true, 33, 0 },  { true, 32, 1 },    { false, 32, 17 },
                { false, 33, 1 }, { true, 34, 0 },    { true, 34, 1 },
                { true, 35, 2 },  { false, 35, 250 }, { false, 32, 0 } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sherd__fragment *f = fragment_of(bad[i].left ? &left : &right);
        sherd_diag d = { 0 };
        assert_int_equal(sherd__seed_check(f, NULL), SHERD_OK);
        ((uint8_t *)(uintptr_t)sherd__fragment_bytes(f))[bad[i].at] = bad[i].byte;
        assert_int_equal(sherd__seed_check(f, &d), SHERD_EFRAME);
        assert_true(strlen(d.message) > 0);
        sherd__fragment_free(f);
    }
}

static void descriptions_of_impossible_seeds_are_refused(void **s)
{
    (void)s;
    const sherd__fragment_info good = { .origin = SHERD__HIDDEN,
                                        .dtype = SHERD__BYTES_LEFT,
                                        .encoding = SHERD__SEED,
                                        .primes = 6,
                                        .rows = 100,
                                        .cols = 100,
                                        .len = 40 };
    assert_int_equal(sherd__fragment_info_check(&good, NULL), SHERD_OK);
    for (int i = 0; i < 8; i++) {
        sherd__fragment_info bad = good;
        switch (i) {
        case 0: bad.len = 39; break;
        case 1: bad.len = sherd__fragment_whole(&good).len; break;
        case 2: bad.dtype = SHERD__RESIDUES, bad.primes = 2, bad.len = 36; break;
        case 3: bad.dtype = SHERD__BYTES, bad.origin = SHERD__RESULT; break;
        case 4: bad.dtype = SHERD_F64, bad.primes = 0, bad.len = 34; break;
        case 5: bad.origin = SHERD__RESULT; break;
        case 6: bad.groups = 1; break;
        default: bad.encoding = 3;
        }
        assert_int_equal(sherd__fragment_info_check(&bad, NULL), SHERD_EFRAME);
    }
    sherd__fragment_info huge = good;
    huge.rows = huge.cols = UINT32_MAX;
    assert_int_equal(sherd__fragment_info_check(&huge, NULL), SHERD_EFRAME);
}

/* ---- deferred fragments ---------------------------------------------------------------------- */

static int released;

static void release(void *ctx, uint8_t *bytes, uint64_t len)
{
    assert_ptr_equal(ctx, &released);
    assert_true(len > 0);
    released++;
    free(bytes);
}

static void a_deferred_share_is_computed_once_when_it_is_settled(void **s)
{
    (void)s;
    sherd__fragment *f = fragment_of(&shapes[1]), *share, *other = fragment_of(&shapes[1]);
    const uint64_t len = sherd__fragment_whole(sherd__fragment_info_of(f)).len;
    uint8_t *want = malloc(len), *bytes = calloc(1, len);
    assert_int_equal(sherd__seed_expand(f, want), SHERD_OK);
    assert_int_equal(sherd__seed_defer(&share, f, bytes, release, &released), SHERD_OK);
    assert_int_equal(sherd__fragment_info_of(share)->len, len);
    broken = 3;
    assert_int_equal(sherd__fragment_settle(share), SHERD_EINTERNAL);
    assert_int_equal(broken, 0);
    assert_int_equal(sherd__fragment_settle(share), SHERD_OK);
    assert_memory_equal(sherd__fragment_bytes(share), want, len);
    bytes[0] ^= 1; /* as it would not be if it were computed again */
    assert_int_equal(sherd__fragment_settle(share), SHERD_OK);
    assert_int_equal(bytes[0], want[0] ^ 1);
    sherd__fragment_free(share);
    assert_int_equal(released, 1);
    /* One that is never used is freed with its seed; one that is read is settled. */
    assert_int_equal(sherd__seed_defer(&share, other, malloc(len), release, &released), SHERD_OK);
    bytes = malloc(len);
    assert_int_equal(sherd__fragment_read(share, 0, bytes, len), SHERD_OK);
    assert_memory_equal(bytes, want, len);
    sherd__fragment_free(share);
    assert_int_equal(sherd__seed_defer(&share, fragment_of(&shapes[1]), malloc(len), release,
                                       &released),
                     SHERD_OK);
    sherd__fragment_free(share);
    assert_int_equal(released, 3);
    assert_int_equal(sherd__fragment_settle(f = fragment_of(&shapes[0])), SHERD_OK);
    sherd__fragment_free(f);
    free(bytes);
    free(want);
}

static void without_memory_nothing_is_taken(void **s)
{
    (void)s;
    sherd__fragment *f = fragment_of(&shapes[0]), *share;
    const sherd__fragment_info whole = sherd__fragment_whole(sherd__fragment_info_of(f));
    uint8_t bytes[1024];
    for (size_t nth = 1; nth < 3; nth++) {
        sherd__alloc_fail_nth(nth);
        assert_int_equal(sherd__seeded_fragment(&share, &whole, seed, 256, sherd__byte_primes),
                         SHERD_ENOMEM);
        assert_null(share);
    }
    sherd__alloc_fail_nth(1);
    assert_int_equal(sherd__seed_defer(&share, f, bytes, release, &released), SHERD_ENOMEM);
    assert_null(share);
    sherd__alloc_fail_nth(1);
    assert_int_equal(sherd__seed_expand(f, bytes), SHERD_ENOMEM);
    sherd__alloc_fail_nth(0);
    sherd__fragment_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_weights_are_those_of_the_example),
        cmocka_unit_test(what_t_nodes_see_does_not_depend_on_the_operand),
        cmocka_unit_test(seeded_shares_are_shares_of_some_masks),
        cmocka_unit_test(slots_that_are_not_distinct_shares_are_refused),
        cmocka_unit_test(every_part_of_a_seeds_name_changes_it),
        cmocka_unit_test(no_byte_is_accepted_for_two_primes),
        cmocka_unit_test(a_seed_expands_as_the_header_says),
        cmocka_unit_test(the_coordinator_draws_what_a_seed_expands_to),
        cmocka_unit_test(impossible_seeds_are_refused),
        cmocka_unit_test(descriptions_of_impossible_seeds_are_refused),
        cmocka_unit_test(a_deferred_share_is_computed_once_when_it_is_settled),
        cmocka_unit_test(without_memory_nothing_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
