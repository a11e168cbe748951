/*
 * Digits drawn from strokes. A digit is a few quadratic Bezier curves in a 100 x 100 box. For each
 * image the control points are jittered and mapped by a random affine transform, and discs are
 * stamped along the curves. A stamp lowers a map of squared distances to the pen's path in an 8 x 8
 * window. Ink falls off linearly in the squared distance, which gives anti-aliasing without a
 * square root or a division. All arithmetic is in integers: coordinates in 1/4096 pixel for the
 * curves, 1/16 for the distances.
 *
 * The random numbers of row i are SplitMix64's (Steele, Lea, Flood 2014), started from a hash of
 * the seed and i, so rows do not depend on each other.
 */
#include "learn/digits.h"

#include <stdbool.h>

#define SIDE ((int)SHERD__DIGIT_SIDE)
#define MARGIN                                                                                     \
    12                             /* no transform below reaches beyond it, so stamps need no
                                      clipping */
#define CANVAS (SIDE + 2 * MARGIN) /* rows and columns of the distance map */
#define WINDOW 8                   /* a stamp's width and height in pixels */
#define STEPS 16                   /* stamps along one curve */
#define FAR 32000                  /* squared distance of a pixel without ink */
#define CURVES_MAX 10
#define FORMS 15

/* ---- shapes ---------------------------------------------------------------------------------- */

/* One curve from (x0, y0) over control (x1, y1) to (x2, y2); y grows downwards. */
typedef struct curve {
    int8_t x0, y0, x1, y1, x2, y2;
} curve;

typedef struct shape {
    uint8_t digit, len;
    curve curves[CURVES_MAX];
} shape;

static const shape forms[FORMS] = {
    { 0,
      4,
      { { 50, 4, 84, 6, 82, 50 },
        { 82, 50, 80, 96, 50, 96 },
        { 50, 96, 18, 94, 18, 50 },
        { 18, 50, 18, 6, 52, 4 } } },
    { 0,
      4,
      { { 58, 6, 86, 14, 78, 54 },
        { 78, 54, 68, 98, 40, 95 },
        { 40, 95, 14, 90, 22, 46 },
        { 22, 46, 32, 4, 58, 6 } } },
    { 1, 2, { { 52, 4, 51, 30, 50, 50 }, { 50, 50, 49, 72, 48, 96 } } },
    { 1, 3, { { 34, 24, 46, 16, 54, 5 }, { 54, 5, 53, 40, 52, 60 }, { 52, 60, 51, 80, 50, 96 } } },
    { 2,
      4,
      { { 20, 26, 28, 2, 54, 5 },
        { 54, 5, 84, 10, 70, 40 },
        { 70, 40, 54, 68, 18, 94 },
        { 18, 94, 50, 90, 84, 93 } } },
    { 2,
      6,
      { { 22, 24, 34, 2, 58, 6 },
        { 58, 6, 86, 16, 66, 50 },
        { 66, 50, 48, 84, 28, 94 },
        { 28, 94, 12, 92, 20, 80 },
        { 20, 80, 36, 74, 52, 88 },
        { 52, 88, 66, 96, 86, 86 } } },
    { 3,
      4,
      { { 22, 12, 56, -4, 72, 18 },
        { 72, 18, 76, 44, 42, 48 },
        { 42, 48, 82, 50, 78, 76 },
        { 78, 76, 64, 106, 18, 90 } } },
    { 4,
      4,
      { { 40, 6, 32, 36, 22, 56 },
        { 22, 56, 52, 58, 82, 54 },
        { 70, 14, 67, 40, 64, 60 },
        { 64, 60, 62, 80, 60, 96 } } },
    { 4,
      4,
      { { 62, 5, 40, 34, 16, 64 },
        { 16, 64, 50, 66, 86, 63 },
        { 62, 5, 63, 40, 62, 60 },
        { 62, 60, 62, 80, 61, 96 } } },
    { 5,
      4,
      { { 76, 7, 56, 9, 34, 7 },
        { 34, 7, 30, 28, 28, 46 },
        { 28, 46, 72, 32, 76, 64 },
        { 76, 64, 72, 104, 20, 90 } } },
    { 6,
      5,
      { { 66, 5, 36, 22, 26, 56 },
        { 26, 56, 18, 92, 46, 96 },
        { 46, 96, 76, 96, 74, 72 },
        { 74, 72, 70, 50, 46, 56 },
        { 46, 56, 30, 60, 24, 76 } } },
    { 7, 3, { { 18, 10, 50, 12, 82, 9 }, { 82, 9, 68, 34, 56, 56 }, { 56, 56, 48, 76, 42, 96 } } },
    { 7,
      4,
      { { 18, 14, 46, 6, 80, 10 },
        { 80, 10, 66, 38, 56, 60 },
        { 56, 60, 50, 78, 46, 96 },
        { 36, 54, 54, 50, 72, 51 } } },
    { 8,
      6,
      { { 54, 48, 22, 38, 28, 20 },
        { 28, 20, 36, 2, 54, 4 },
        { 54, 4, 82, 8, 72, 28 },
        { 72, 28, 62, 44, 40, 58 },
        { 40, 58, 14, 88, 46, 96 },
        { 46, 96, 86, 96, 54, 48 } } },
    { 9,
      5,
      { { 74, 20, 54, -2, 34, 14 },
        { 34, 14, 14, 38, 40, 48 },
        { 40, 48, 66, 52, 74, 20 },
        { 74, 20, 74, 48, 68, 68 },
        { 68, 68, 64, 84, 56, 96 } } },
};

/* The forms of a digit are adjacent: the first form of digit k is first_form[k]. */
static const uint8_t first_form[11] = { 0, 2, 4, 6, 7, 9, 10, 11, 13, 14, 15 };

/* ---- random numbers -------------------------------------------------------------------------- */

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint32_t draw(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(mix(*state) >> 32);
}

/* Uniform in [lo, hi], up to a negligible bias. */
static int32_t between(uint64_t *state, int32_t lo, int32_t hi)
{
    uint64_t span = (uint64_t)((int64_t)hi - lo + 1);
    return lo + (int32_t)(draw(state) * span >> 32);
}

/* Triangular in [lo, hi]: most images are similar, few are extreme. */
static int32_t mostly(uint64_t *state, int32_t lo, int32_t hi)
{
    int32_t a = between(state, lo, hi), b = between(state, lo, hi);
    return lo + ((a - lo) + (b - lo)) / 2;
}

/* ---- one image ------------------------------------------------------------------------------- */

/* The transform and the thickness of the pen. x' = ox + xx*u + xy*v; u and v are in box units from
   the centre. */
typedef struct hand {
    int32_t xx, xy, yx, yy, ox, oy; /* 1/4096 pixel */
    int32_t inner, outer;           /* squared radii of full ink and of no ink, 1/256 square
                                       pixel */
    int32_t slope;                  /* ink per unit between them, times 2^16 */
    int32_t peak;                   /* ink at the centre */
} hand;

typedef struct canvas {
    int16_t d2[CANVAS * CANVAS];
} canvas;

static hand draw_hand(uint64_t *state, int digit)
{
    hand h;
    int32_t tall = mostly(state, 740, 900); /* a box unit is 0.18 to 0.22 pixel */
    int32_t wide = mostly(state, 620, 900);
    int32_t slant = mostly(state, digit == 1 ? -90 : -130, digit == 1 ? 420 : 300);
    int32_t tilt = mostly(state, -110, 110);
    h.xx = wide;
    h.xy = -slant;
    h.yx = tilt;
    h.yy = tall;
    h.ox = (MARGIN + SIDE / 2) * 4096 + mostly(state, -5000, 5000);
    h.oy = (MARGIN + SIDE / 2) * 4096 + mostly(state, -5000, 5000);
    int32_t inner = mostly(state, 7, 20), outer = inner + mostly(state, 14, 20);
    h.inner = inner * inner;
    h.outer = outer * outer;
    h.peak = between(state, 235, 255);
    h.slope = h.peak * 65536 / (h.outer - h.inner);
    return h;
}

/* Lowers the map around (x, y), which is in 1/4096 pixel. */
static void stamp(canvas *c, int32_t x, int32_t y)
{
    int32_t left = (x >> 12) - WINDOW / 2 + 1, top = (y >> 12) - WINDOW / 2 + 1;
    int16_t dx2[WINDOW];
    for (int32_t j = 0; j < WINDOW; j++) {
        int32_t dx = ((left + j) * 4096 - x) / 256;
        dx2[j] = (int16_t)(dx * dx);
    }
    for (int32_t i = 0; i < WINDOW; i++) {
        int32_t dy = ((top + i) * 4096 - y) / 256;
        int16_t dy2 = (int16_t)(dy * dy), *row = c->d2 + (top + i) * CANVAS + left;
        for (int32_t j = 0; j < WINDOW; j++) {
            int16_t d2 = (int16_t)(dx2[j] + dy2);
            row[j] = d2 < row[j] ? d2 : row[j];
        }
    }
}

typedef struct point {
    int32_t x, y;
} point;

static point place(const hand *h, int32_t u, int32_t v)
{
    u -= 50;
    v -= 50;
    return (point){ h->ox + h->xx * u + h->xy * v, h->oy + h->yx * u + h->yy * v };
}

/* Curve points are positive, so the shift always rounds in one direction. */
static void stroke(canvas *c, point a, point b, point e)
{
    for (int32_t t = 0; t <= STEPS; t++) {
        int32_t wa = (STEPS - t) * (STEPS - t), wb = 2 * t * (STEPS - t), we = t * t;
        stamp(c, (int32_t)(((int64_t)wa * a.x + (int64_t)wb * b.x + (int64_t)we * e.x) >> 8),
              (int32_t)(((int64_t)wa * a.y + (int64_t)wb * b.y + (int64_t)we * e.y) >> 8));
    }
}

static bool same_point(const curve *a, const curve *b)
{
    return a->x2 == b->x0 && a->y2 == b->y0;
}

static void pen_shape(canvas *c, uint64_t *state, const shape *s, const hand *h)
{
    point end = { 0, 0 };
    for (unsigned k = 0; k < s->len; k++) {
        const curve *q = &s->curves[k];
        int32_t shake[6];
        for (int j = 0; j < 6; j++) shake[j] = mostly(state, -7, 7);
        bool joined = k > 0 && same_point(q - 1, q);
        point a = joined ? end : place(h, q->x0 + shake[0], q->y0 + shake[1]);
        point b = place(h, q->x1 + shake[2], q->y1 + shake[3]);
        end = place(h, q->x2 + shake[4], q->y2 + shake[5]);
        stroke(c, a, b, end);
    }
}

static void ink(uint8_t *pixels, const canvas *c, const hand *h)
{
    for (int y = 0; y < SIDE; y++) {
        const int16_t *row = c->d2 + (y + MARGIN) * CANVAS + MARGIN;
        for (int x = 0; x < SIDE; x++) {
            int32_t depth = h->outer > row[x] ? h->outer - row[x] : 0;
            int32_t v = depth * h->slope >> 16;
            pixels[y * SIDE + x] = (uint8_t)(v > h->peak ? h->peak : v);
        }
    }
}

static uint8_t draw_one(uint64_t seed, uint64_t i, uint8_t *pixels)
{
    canvas c;
    uint64_t state = mix(mix(seed + UINT64_C(0x9e3779b97f4a7c15)) ^ i);
    int32_t digit = between(&state, 0, 9);
    int32_t form = between(&state, first_form[digit], first_form[digit + 1] - 1);
    hand h = draw_hand(&state, digit);
    for (size_t k = 0; k < CANVAS * CANVAS; k++) c.d2[k] = FAR;
    pen_shape(&c, &state, &forms[form], &h);
    ink(pixels, &c, &h);
    return (uint8_t)digit;
}

void sherd__digits_draw(uint64_t seed, uint64_t first, size_t rows, uint8_t *pixels,
                        uint8_t *labels)
{
    for (size_t r = 0; r < rows; r++) {
        uint8_t digit = draw_one(seed, first + r, pixels + r * SHERD__DIGIT_PIXELS);
        if (labels) labels[r] = digit;
    }
}
