/*
 * Sums of up to 512 products of a byte and a weight stay below 2^24, so they are exact in floats,
 * which any compiler multiplies in vectors. For up to 64 terms they stay below 2^21, and the
 * multiple of p that is subtracted from them is exact as well. The quotient is rounded to the
 * nearest number, and its error moves the remainder by less than p. The remainder, once p is added
 * to a negative one, is the same for any such quotient. Numbers of 32 bits are divided in doubles
 * likewise.
 */
#include "crypto/byte_code.h"

#include <assert.h>
#include <string.h>

#include "core/pieces.h"
#include "core/wipe.h"
#include "crypto/byte_code_kernels.h"
#include "matrix/clones.h"
#include "matrix/exact.h"

enum {
    TERMS = SHERD__BYTE_TERMS,
    CHECKS = SHERD__BYTE_CHECKS,
    SHORT = 64,  /* terms whose sums have quotients of 22 bits */
    CHUNK = 128, /* columns whose terms are kept as floats, at most */
    ROOM = CHUNK * (SHORT + 4),
    PART = 256 /* numbers that are reduced or recombined at a time */
};
_Static_assert(TERMS * 255 * 128 <= 1 << 24, "sums in floats");
_Static_assert((TERMS + 4) * 16 <= ROOM, "some columns of all terms");
#define ROUND_F32 0x1.8p23f
#define ROUND_F64 0x1.8p52

/* ---- remainders ------------------------------------------------------------------------------ */

/* Remainders above this are decreased by p; 255: none is. */
static int32_t most_of(uint32_t p, bool is_signed)
{
    return is_signed ? (int32_t)(p - 1) / 2 : UINT8_MAX;
}

/* Brings a remainder in (-p, p) to the range of residues, without a condition, which compilers do
 * not vectorise here. */
static inline __attribute__((always_inline)) uint8_t residue(int32_t r, int32_t p, int32_t most)
{
    r += p & (r >> 31);
    return (uint8_t)(r - (p & ((most - r) >> 31)));
}

static inline __attribute__((always_inline)) int32_t remainder_f64(double x, double p,
                                                                   double inverse)
{
    return (int32_t)(x - (x * inverse + ROUND_F64 - ROUND_F64) * p);
}

SHERD__CLONES
static void reduce(const double *x, size_t n, uint32_t p, uint8_t *out)
{
    const double f = (double)p, inverse = 1.0 / f;
    for (size_t i = 0; i < n; i++)
        out[i] = residue(remainder_f64(x[i], f, inverse), (int32_t)p, UINT8_MAX);
}

static void reduce_any(const double *x, size_t n, uint32_t len, size_t stride, uint8_t *out)
{
    for (size_t at = 0; at < n; at += PART)
        for (uint32_t q = 0; q < len; q++)
            reduce(x + at, sherd__least(PART, n - at), sherd__byte_primes[q],
                   out + q * stride + at);
}

SHERD__CLONES
static void settle(const int32_t *acc, size_t n, uint32_t p, int32_t most, uint8_t *out)
{
    const double f = (double)p, inverse = 1.0 / f;
    for (size_t i = 0; i < n; i++)
        out[i] = residue(remainder_f64((double)acc[i], f, inverse), (int32_t)p, most);
}

static void settle_any(const int32_t *acc, size_t n, uint32_t p, bool is_signed, uint8_t *out)
{
    settle(acc, n, p, most_of(p, is_signed), out);
}

/* Sums are below 2^22 in magnitude. */
SHERD__CLONES
static void settle_sums(const float *sum, size_t n, uint32_t p, int32_t most, uint8_t *out)
{
    const float f = (float)p, inverse = 1.0f / f;
    for (size_t i = 0; i < n; i++) {
        float r = sum[i] - (sum[i] * inverse + ROUND_F32 - ROUND_F32) * f;
        out[i] = residue((int32_t)r, (int32_t)p, most);
    }
}

/* ---- weighted sums --------------------------------------------------------------------------- */

SHERD__CLONES
static void to_floats(const uint8_t *in, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++) out[i] = (float)in[i];
}

/* Adds products of four rows of floats. */
SHERD__CLONES_WHOLE
static void add_four(const float *in, size_t apart, const int8_t *w, size_t n, float *restrict sum)
{
    const float *second = in + apart, *third = second + apart, *fourth = third + apart;
    const float a = w[0], b = w[1], c = w[2], d = w[3];
    for (size_t i = 0; i < n; i++)
        sum[i] += (in[i] * a + second[i] * b) + (third[i] * c + fourth[i] * d);
}

/* Some columns of all rows, as floats: rows are `wide` numbers apart, and those up to a multiple of
 * four are zero. */
typedef struct laid {
    float in[ROOM], sum[CHUNK];
    size_t rows, wide, n; /* n: columns that are there */
} laid;

static void open_laid(laid *l, size_t rows)
{
    l->rows = rows;
    l->wide = sherd__least(CHUNK, ROOM / (rows / 4 * 4 + 4));
}

static void take(laid *l, size_t j, const uint8_t *row)
{
    to_floats(row, l->n, l->in + j * l->wide);
}

static void pad(laid *l)
{
    for (size_t j = l->rows; j % 4; j++) memset(l->in + j * l->wide, 0, l->n * sizeof *l->in);
}

/* Computes one weighted sum of the rows. */
static void weigh(laid *l, const int8_t *w)
{
    int8_t four[4] = { 0 };
    memset(l->sum, 0, l->n * sizeof *l->sum);
    for (size_t j = 0; j < l->rows; j += 4) {
        memcpy(four, w + j, sherd__least(4, l->rows - j));
        if (l->rows - j < 4) memset(four + (l->rows - j), 0, 4 - (l->rows - j));
        add_four(l->in + j * l->wide, l->wide, four, l->n, l->sum);
    }
}

SHERD__CLONES
static void add_whole(const float *sum, size_t n, int32_t *acc)
{
    for (size_t i = 0; i < n; i++) acc[i] += (int32_t)sum[i];
}

/* Sums of more than SHORT terms have quotients that floats do not hold for every p. */
static void settle_laid(const laid *l, uint32_t p, bool is_signed, uint8_t *out)
{
    int32_t whole[CHUNK] = { 0 };
    if (l->rows <= SHORT) {
        settle_sums(l->sum, l->n, p, most_of(p, is_signed), out);
        return;
    }
    add_whole(l->sum, l->n, whole);
    settle_any(whole, l->n, p, is_signed, out);
}

static void combine_any(const sherd__byte_sums *s)
{
    laid l;
    open_laid(&l, s->terms);
    for (size_t at = 0; at < s->n; at += l.wide) {
        l.n = sherd__least(l.wide, s->n - at);
        for (uint32_t j = 0; j < s->terms; j++) take(&l, j, s->in[j] + at);
        pad(&l);
        for (uint32_t i = 0; i < s->sums; i++) {
            if (!s->out[i]) continue;
            weigh(&l, s->w + (size_t)i * s->terms);
            settle_laid(&l, s->p, s->is_signed, s->out[i] + at);
        }
    }
    sherd__wipe(&l, sizeof l); /* masks */
}

static void project_any(const sherd__byte_projection *s)
{
    laid l;
    for (size_t row = 0; row < s->rows; row += SHORT) {
        open_laid(&l, sherd__least(SHORT, s->rows - row));
        for (size_t at = 0; at < s->cols; at += l.wide) {
            l.n = sherd__least(l.wide, s->cols - at);
            for (size_t j = 0; j < l.rows; j++) take(&l, j, s->x + (row + j) * s->ld + at);
            pad(&l);
            for (size_t v = 0; v < CHECKS; v++) {
                weigh(&l, s->r + v * s->r_ld + row);
                add_whole(l.sum, l.n, s->acc + v * s->acc_ld + at);
            }
        }
    }
    sherd__wipe(&l, sizeof l);
}

/* ---- rejection ------------------------------------------------------------------------------- */

/* Rejected bytes are overwritten, so there is no branch for the processor to mispredict. */
static size_t keep_any(const uint8_t *in, size_t n, uint32_t p, uint8_t *out, size_t room)
{
    size_t have = 0;
    for (size_t i = 0; i < n && have < room; i++) {
        out[have] = in[i];
        have += in[i] < p;
    }
    return have;
}

/* ---- paths ----------------------------------------------------------------------------------- */

static const sherd__byte_kernels *kernels(void)
{
    static const sherd__byte_kernels any = { reduce_any, combine_any, project_any, settle_any,
                                             keep_any };
    const sherd__byte_kernels *wide = sherd__byte_kernels_wide();
    return wide && sherd__bytes_path_here() >= SHERD__BYTES_VNNI ? wide : &any;
}

void sherd__bytes_reduce(const double *x, size_t n, uint32_t len, size_t stride, uint8_t *out)
{
    assert(len <= SHERD__BYTE_PRIMES);
    kernels()->reduce(x, n, len, stride, out);
}

void sherd__bytes_combine(const int8_t *w, uint32_t sums, uint32_t terms, uint32_t p,
                          bool is_signed, const uint8_t *const *in, size_t n, uint8_t *const *out)
{
    assert(terms <= TERMS && p % 2 && p >= 3 && p <= UINT8_MAX);
    kernels()->combine(&(sherd__byte_sums){ w, sums, terms, p, is_signed, in, n, out });
}

void sherd__bytes_project(const int8_t *r, size_t r_ld, const uint8_t *x, size_t rows, size_t cols,
                          size_t ld, int32_t *acc, size_t acc_ld)
{
    kernels()->project(&(sherd__byte_projection){ r, r_ld, x, rows, cols, ld, acc, acc_ld });
}

void sherd__bytes_settle(const int32_t *acc, size_t n, uint32_t p, bool is_signed, uint8_t *out)
{
    assert(p % 2 && p >= 3 && p <= UINT8_MAX);
    kernels()->settle(acc, n, p, is_signed, out);
}

size_t sherd__bytes_keep(const uint8_t *in, size_t n, uint32_t p, uint8_t *out, size_t room)
{
    return kernels()->keep(in, n, p, out, room);
}

SHERD__CLONES
static bool below(const uint8_t *in, size_t n, uint8_t p)
{
    uint8_t beyond = 0;
    for (size_t i = 0; i < n; i++) beyond |= in[i] >= p;
    return !beyond;
}

bool sherd__bytes_below(const uint8_t *in, size_t n, uint32_t p)
{
    assert(p <= UINT8_MAX);
    return below(in, n, (uint8_t)p);
}

/* ---- the Chinese remainder theorem ----------------------------------------------------------- */

static uint64_t product_of(uint32_t len)
{
    uint64_t m = 1;
    for (uint32_t q = 0; q < len; q++) m *= sherd__byte_primes[q];
    return m;
}

void sherd__bytes_crt_init(sherd__bytes_crt *c, uint32_t len)
{
    assert(len >= 1 && len <= SHERD__BYTE_PRIMES);
    *c = (sherd__bytes_crt){ .len = len };
    for (uint32_t q = 0; q < len; q++) {
        const uint32_t p = sherd__byte_primes[q];
        const uint32_t rest = (uint32_t)(product_of(len) / p % p);
        for (c->fold[q] = 1; c->fold[q] * rest % p != 1;) c->fold[q]++;
    }
}

/*
 * x = sum_q in[q]*M/p_q - t*M, where t is the sum over M rounded to the nearest number, at
 * most 8. M is odd, so x/M differs from a half by 1/(2M) at least, and by 2^-40 at least since
 * sherd__bytes_primes_needed leaves M >> 40 unused for M of more than 40 bits. The quotient has
 * five roundings of numbers below 8, an error below 2^-47. So t is right.
 *
 * M/p_q, M and the sums are represented by two doubles, low + 2^32*high, low below 2^32 (and high
 * below 2^31). Sums of 8 products by bytes are below 2^43 in each half, and exact. Differences are
 * exact as well, and 2^32 times the upper one is; so the last addition is the only rounding, for
 * any number of primes. Up to six primes do not need it: M is below 2^48 and the sums below 2^51.
 */
typedef struct halves {
    double low, high;
} halves;

static halves halves_of(uint64_t m, uint32_t len)
{
    if (len <= 6) return (halves){ (double)m, 0 };
    return (halves){ (double)(uint32_t)m, (double)(m >> 32) };
}

/* Terms of two primes: a*M/p + b*M/r = (a*r + b*p) * M/(p*r). p is 0 if there is no second one. */
typedef struct two_terms {
    const uint8_t *a, *b;
    int32_t r, p;
    halves m;
} two_terms;

SHERD__CLONES_WHOLE
static void add_low(const two_terms *t, size_t n, double *restrict low)
{
    const uint8_t *a = t->a, *b = t->b;
    const int32_t r = t->r, p = t->p;
    const double m = t->m.low;
    for (size_t i = 0; i < n; i++) low[i] += (double)(a[i] * r + b[i] * p) * m;
}

SHERD__CLONES_WHOLE
static void add_both(const two_terms *t, size_t n, double *restrict low, double *restrict high)
{
    const uint8_t *a = t->a, *b = t->b;
    const int32_t r = t->r, p = t->p;
    const halves m = t->m;
    for (size_t i = 0; i < n; i++) {
        double x = (double)(a[i] * r + b[i] * p);
        low[i] += x * m.low;
        high[i] += x * m.high;
    }
}

SHERD__CLONES
static void balance_low(const double *sum, size_t n, double m, double *out)
{
    const double inverse = 1.0 / m;
    for (size_t i = 0; i < n; i++) out[i] = sum[i] - (sum[i] * inverse + ROUND_F64 - ROUND_F64) * m;
}

SHERD__CLONES
static void balance_both(const double *low, const double *high, size_t n, halves m, double *out)
{
    const double inverse = 1.0 / (m.high + m.low * 0x1p-32);
    for (size_t i = 0; i < n; i++) {
        double t = (high[i] + low[i] * 0x1p-32) * inverse + ROUND_F64 - ROUND_F64;
        out[i] = (high[i] - t * m.high) * 0x1p32 + (low[i] - t * m.low);
    }
}

uint32_t sherd__bytes_primes_needed(size_t k, uint64_t a, uint64_t b)
{
    sherd__u128 need;
    if (__builtin_mul_overflow((sherd__u128)k * a, (sherd__u128)b, &need)) return 0;
    for (uint32_t len = 1; len <= SHERD__BYTE_PRIMES; len++) {
        uint64_t m = product_of(len);
        if (need <= (m - 1) / 2 - (m >> 40)) return len;
    }
    return 0;
}

/* Pairs the terms of the primes; returns the number of pairs. */
static size_t pair_terms(const sherd__bytes_crt *c, const uint8_t *const *in, uint64_t all,
                         two_terms out[SHERD__BYTE_PRIMES / 2])
{
    const uint32_t *p = sherd__byte_primes;
    const uint32_t len = c->len, pairs = len / 2;
    for (uint32_t i = 0; i < pairs; i++, in += 2, p += 2)
        out[i] = (two_terms){ in[0], in[1], (int32_t)p[1], (int32_t)p[0],
                              halves_of(all / (p[0] * p[1]), len) };
    if (len % 2) out[pairs] = (two_terms){ in[0], in[0], 1, 0, halves_of(all / p[0], len) };
    return pairs + len % 2;
}

void sherd__bytes_crt_f64(const sherd__bytes_crt *c, const uint8_t *const *in, size_t n, int scale,
                          double *out)
{
    const uint64_t all = product_of(c->len);
    two_terms pair[SHERD__BYTE_PRIMES / 2];
    const size_t pairs = pair_terms(c, in, all, pair);
    const bool two = c->len > 6;
    double low[PART], high[PART];
    for (size_t at = 0; at < n; at += PART) {
        const size_t some = sherd__least(PART, n - at);
        memset(low, 0, some * sizeof *low);
        if (two) memset(high, 0, some * sizeof *high);
        for (two_terms *t = pair; t < pair + pairs; t++) {
            if (two) add_both(t, some, low, high);
            else add_low(t, some, low);
            t->a += some;
            t->b += some;
        }
        if (two) balance_both(low, high, some, halves_of(all, c->len), out + at);
        else balance_low(low, some, (double)all, out + at);
        if (scale) sherd__exact_unscale(out + at, some, scale);
    }
}
