/*
 * Random draws. Words are read from the source by the hundred, because a call of a cipher for each
 * word would take more time than the rest of a short step. Numbers below n are drawn by
 * multiplication and rejection (Lemire 2019, arXiv 1805.10941, algorithm 5), which divides only if
 * a word may have to be rejected.
 */
#include "learn/draw.h"

#include <math.h>

#include "core/bytes.h"
#include "core/wipe.h"
#include "matrix/funcs.h"

#define WORDS 512u

typedef struct words {
    const sherd__entropy *e;
    uint8_t bytes[4 * WORDS];
    size_t at;
} words;

static void words_init(words *w, const sherd__entropy *e)
{
    w->e = e;
    w->at = WORDS;
}

static uint32_t next_word(words *w)
{
    if (w->at == WORDS) {
        w->e->fill(w->e->ctx, w->bytes, sizeof w->bytes);
        w->at = 0;
    }
    return sherd__get_u32(w->bytes + 4 * w->at++);
}

static uint32_t next_below(words *w, uint32_t n)
{
    uint64_t m = (uint64_t)next_word(w) * n;
    if ((uint32_t)m < n) {
        uint32_t reject = (0 - n) % n;
        while ((uint32_t)m < reject) m = (uint64_t)next_word(w) * n;
    }
    return (uint32_t)(m >> 32);
}

void sherd__draw_shuffle(const sherd__entropy *e, uint32_t *out, uint32_t n)
{
    words w;
    words_init(&w, e);
    for (uint32_t i = 0; i < n; i++) out[i] = i;
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = next_below(&w, i), t = out[i - 1];
        out[i - 1] = out[k];
        out[k] = t;
    }
    sherd__wipe(&w, sizeof w);
}

void sherd__draw_below(const sherd__entropy *e, uint32_t n, uint32_t *out, size_t len)
{
    words w;
    words_init(&w, e);
    for (size_t i = 0; i < len; i++) out[i] = next_below(&w, n);
    sherd__wipe(&w, sizeof w);
}

/* Uniform in (-1, 1), 53 bits. */
static double uniform(const sherd__entropy *e)
{
    return ((double)(sherd__entropy_u64(e) >> 11) + 0.5) * 0x1p-52 - 1.0;
}

void sherd__draw_normal(const sherd__entropy *e, double out[2])
{
    double u, v, s, log_s;
    do {
        u = uniform(e);
        v = uniform(e);
        s = u * u + v * v;
    } while (s >= 1.0 || s == 0.0);
    sherd__log_f64(&s, 1, &log_s);
    double f = sqrt(-2.0 * log_s / s);
    out[0] = u * f;
    out[1] = v * f;
}
