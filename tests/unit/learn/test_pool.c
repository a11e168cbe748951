/*
 * Max-pools compared bit by bit: the maximum of a square is the first of its largest numbers, with
 * NaN as the largest, and slopes are added to it in the order of outputs. The oracle handles one
 * square after the other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "learn/layer.h"
#include "tests/support/draw.h"

enum { EXAMPLES = 2, MOST = 40000 };

/* Few different numbers, so that there are ties, and special values. */
static double some_number(void)
{
    static const double odd[] = { NAN, INFINITY, -INFINITY, -0.0, 0, 1e-320, -1e-40 };
    return draw() % 9 ? (double)(draw() % 6) / 3 - 1 : odd[draw() % 7];
}

static double some_slope(void)
{
    return draw() % 40 ? (double)draw() / 0x1p31 - 0.3 : draw() % 2 ? INFINITY : -0.0;
}

static sherd__layer layer(size_t height, size_t width, size_t channels, size_t window,
                          size_t stride, sherd_dtype dtype)
{
    sherd__layer l = {
        .spec = { .kind = &sherd__layer_max_pool, .window = window, .stride = stride },
        .in = { height, width, channels },
        .dtype = dtype
    };
    assert_int_equal(l.spec.kind->fit(&l, NULL), 0);
    assert_true(EXAMPLES * height * width * channels <= MOST);
    return l;
}

#define TYPE(T, suffix, DTYPE)                                                                     \
    static T x##suffix[MOST], y##suffix[MOST], dy##suffix[MOST], dx##suffix[MOST];                 \
    static T want_y##suffix[MOST], want_dx##suffix[MOST];                                          \
                                                                                                   \
    static size_t first_largest##suffix(const sherd__layer *l, const T *at)                        \
    {                                                                                              \
        size_t best = 0;                                                                           \
        for (size_t wy = 0; wy < l->spec.window; wy++)                                             \
            for (size_t wx = 0; wx < l->spec.window; wx++) {                                       \
                size_t k = (wy * l->in.width + wx) * l->in.channels;                               \
                if (at[k] > at[best] || (isnan(at[k]) && !isnan(at[best]))) best = k;              \
            }                                                                                      \
        return best;                                                                               \
    }                                                                                              \
                                                                                                   \
    static void by_loops##suffix(const sherd__layer *l)                                            \
    {                                                                                              \
        size_t stride = l->spec.stride ? l->spec.stride : l->spec.window, o = 0;                   \
        memset(want_dx##suffix, 0, sizeof want_dx##suffix);                                        \
        for (size_t i = 0; i < EXAMPLES; i++)                                                      \
            for (size_t oy = 0; oy < l->out.height; oy++)                                          \
                for (size_t ox = 0; ox < l->out.width; ox++)                                       \
                    for (size_t c = 0; c < l->in.channels; c++, o++) {                             \
                        size_t row = i * l->in.height + oy * stride;                               \
                        size_t at = (row * l->in.width + ox * stride) * l->in.channels + c;        \
                        at += first_largest##suffix(l, x##suffix + at);                            \
                        want_y##suffix[o] = x##suffix[at];                                         \
                        want_dx##suffix[at] += dy##suffix[o];                                      \
                    }                                                                              \
    }                                                                                              \
                                                                                                   \
    static void check##suffix(sherd__layer l)                                                      \
    {                                                                                              \
        size_t in = l.in.height * l.in.width * l.in.channels;                                      \
        size_t outs = EXAMPLES * l.out.height * l.out.width * l.in.channels;                       \
        sherd__layer_call c = { .examples = EXAMPLES,                                              \
                                .x = sherd_view_c(x##suffix, DTYPE, EXAMPLES, in) };               \
        for (size_t i = 0; i < EXAMPLES * in; i++) x##suffix[i] = (T)some_number();                \
        for (size_t i = 0; i < outs; i++) dy##suffix[i] = (T)some_slope();                         \
        by_loops##suffix(&l);                                                                      \
        c.y##suffix = y##suffix;                                                                   \
        c.dy##suffix = dy##suffix;                                                                 \
        c.dx##suffix = dx##suffix;                                                                 \
        assert_int_equal(l.spec.kind->forward##suffix(&l, &c, NULL), 0);                           \
        assert_int_equal(l.spec.kind->backward##suffix(&l, &c, NULL), 0);                          \
        assert_memory_equal(y##suffix, want_y##suffix, outs * sizeof(T));                          \
        assert_memory_equal(dx##suffix, want_dx##suffix, EXAMPLES *in * sizeof(T));                \
    }

TYPE(double, , SHERD_F64)
TYPE(float, 32, SHERD_F32)

static void maxima_have_the_bits_of_single_squares(void **s)
{
    (void)s;
    draw_state = 3;
    for (unsigned i = 0; i < 400; i++) {
        size_t window = 1 + draw() % 6, stride = draw() % 8;
        size_t channels = 1 + (draw() % 3 ? draw() % 9 : draw() % 70);
        size_t height = window + draw() % 7, width = window + draw() % (channels > 9 ? 9 : 160);
        check(layer(height, width, channels, window, stride, SHERD_F64));
        check32(layer(height, width, channels, window, stride, SHERD_F32));
    }
}

static void a_window_is_limited_to_places_that_32_bits_count(void **s)
{
    (void)s;
    for (size_t w = UINT16_MAX; w <= UINT16_MAX + 1; w++) {
        sherd__layer l = { .spec = { .kind = &sherd__layer_max_pool, .window = w },
                           .in = { w, w, 1 } };
        assert_int_equal(l.spec.kind->fit(&l, NULL), w == UINT16_MAX ? 0 : SHERD_ESHAPE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maxima_have_the_bits_of_single_squares),
        cmocka_unit_test(a_window_is_limited_to_places_that_32_bits_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
