/*
 * The order in which masks of residues of one byte are drawn. Each block of a mask is here a run of
 * consecutive numbers, and operands are constant: so residues that are drawn one after another
 * differ by one number, except from one block to the next.
 * link: -Wl,--wrap=sherd__masks_bytes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "crypto/mask.h"
#include "tests/unit/schemes/share_world.h"

int __wrap_sherd__masks_bytes(sherd__masks *m, const sherd__mask_id *id, uint64_t unit, size_t n,
                              uint8_t *out);

int __wrap_sherd__masks_bytes(sherd__masks *m, const sherd__mask_id *id, uint64_t unit, size_t n,
                              uint8_t *out)
{
    (void)m;
    (void)unit;
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)(i % id->p);
    return SHERD_OK;
}

/* Returns residue (row, col) of a share modulo the first prime (docs/PROTOCOL.md). */
static uint32_t residue(const uint8_t *body, const sherd__fragment_info *i, size_t row, size_t col)
{
    const bool left = i->dtype == SHERD__BYTES_LEFT;
    const size_t line = left ? row : col, term = left ? col : row;
    const size_t tiles = ((size_t)(left ? i->cols : i->rows) + 63) / 64;
    const size_t tile = line / 16 * i->primes * tiles + term / 64;
    const size_t in = left ? line % 16 * 64 + term % 64
                           : term % 64 / 4 * 64 + line % 16 * 4 + term % 4;
    const uint8_t byte = body[tile * 1024 + in];
    const int value = left ? byte : (int8_t)byte;
    return (uint32_t)(value + (value < 0 ? (int)sherd__byte_primes[0] : 0));
}

/* Returns how often two residues that follow each other in an order do not differ by `step`. */
static size_t breaks(const uint8_t *body, const sherd__fragment_info *i, const uint32_t *order,
                     uint32_t step)
{
    const uint32_t p = sherd__byte_primes[0];
    size_t n = 0, cols = (size_t)i->cols;
    for (size_t k = 1; k < i->rows * cols; k++) {
        uint32_t a = residue(body, i, order[k - 1] / cols, order[k - 1] % cols);
        uint32_t b = residue(body, i, order[k] / cols, order[k] % cols);
        n += (b + p - a) % p != step;
    }
    return n;
}

/* Checks a share, whose mask is drawn in so many blocks, and frees it. */
static void drawn_in(sherd__fragment *f, size_t blocks)
{
    const sherd__fragment_info info = *sherd__fragment_info_of(f);
    const size_t rows = (size_t)info.rows, cols = (size_t)info.cols;
    const bool left = info.dtype == SHERD__BYTES_LEFT;
    uint8_t *body = share_read(f);
    uint32_t *order = calloc(rows * cols, sizeof *order), *part = calloc(rows * cols, sizeof *part);
    const uint32_t p = sherd__byte_primes[0];
    const uint32_t step = (residue(body, &info, 0, 1) + p - residue(body, &info, 0, 0)) % p;
    size_t len = 0, at = 0;
    assert_true(sherd__fragment_is_bytes(info.dtype) && step != 0);
    sherd__share_drawn(left, rows, cols, rows, order);
    assert_true(breaks(body, &info, order, step) < blocks);
    for (size_t k = 0; k < rows * cols; k++) {
        assert_true(order[k] < rows * cols && !part[order[k]]++);
        len += order[k] / cols < rows / 2;
    }
    sherd__share_drawn(left, rows, cols, rows / 2, part); /* the same order, without other rows */
    for (size_t k = 0; k < rows * cols; k++)
        if (order[k] / cols < rows / 2) assert_int_equal(part[at++], order[k]);
    assert_int_equal(at, len);
    free(part);
    free(order);
    free(body);
    sherd__fragment_free(f);
}

static size_t divided(size_t n, size_t by)
{
    return (n + by - 1) / by;
}

static void masks_of_bytes_are_drawn_in_the_order_that_is_stated(void **state)
{
    (void)state;
    static const size_t shapes[][3] = { /* n, k, m */
                                        { 64, 512, 64 },  { 50, 300, 100 }, { 33, 320, 64 },
                                        { 16, 200, 130 }, { 1, 1, 2 },      { 5, 64, 3 }
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const size_t n = shapes[i][0], k = shapes[i][1], m = shapes[i][2];
        const fixture f = { .n = n,
                            .k = k,
                            .m = m,
                            .blocks = 1,
                            .masks = 1,
                            .shares = 3,
                            .bytes = true,
                            .panel_rows = n,
                            .tile_cols = m,
                            .type = SHERD_U8,
                            .all = 3,
                            .bits = 8 };
        product x;
        sherd__fragment *u, *v;
        share_open(&x, f);
        if (k > 1) {
            assert_int_equal(x.h.ops->left(x.h.ctx, 1, 0, &u), 0);
            drawn_in(u, divided(n, 32) * divided(k, 256));
        }
        assert_int_equal(x.h.ops->resident(x.h.ctx, 1, 0, &v), 0);
        drawn_in(v, divided(k, 64) * divided(m, 64));
        share_close(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(masks_of_bytes_are_drawn_in_the_order_that_is_stated, share_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
