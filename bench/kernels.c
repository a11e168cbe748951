/*
 * Computations of the private schemes on this machine, apart from nodes and links: a product modulo
 * a prime compared with dgemm, all shares of an operand compared with memcpy, and the check of
 * answers compared with the product that it checks. Both sides of a comparison use the same number
 * of threads; only the check uses one thread, as in a job. Results are verified, since a figure of
 * a wrong computation means nothing.
 */
#include <pthread.h>
#include <string.h>

#include "bench/bench.h"
#include "core/alloc.h"
#include "crypto/freivalds.h"
#include "crypto/lagrange.h"
#include "matrix/gemm.h"
#include "matrix/residue.h"
#include "matrix/residue_bytes.h"
#include "schemes/share/internal.h"

#define PRIMES 2u
#define ROWS 4u /* that are projected together, as in a job */

static uint32_t prime(unsigned q)
{
    return sherd__primes_default.p[q];
}

static int wrong(const char *what, sherd_diag *d)
{
    return sherd__fail(d, SHERD_EINTERNAL, "please report this", "%s is wrong", what);
}

/* ---- products modulo primes, and their checks ------------------------------------------------ */

/* Operands of integers that are canonical for all primes, and vectors for each prime and trial: r
 * (n), s (m), ru and vs (k). */
typedef struct checking {
    size_t n, k, m;
    double *memory, *u, *v, *y, *r, *s, *ru, *vs;
    uint8_t *answer[PRIMES];
} checking;

static int open_checking(sherd__bench *b, void *state, const void *spec, sherd_diag *d)
{
    checking *c = state;
    const sherd__kernel_spec *x = spec;
    const size_t vectors = PRIMES * TRIALS;
    c->n = b->quick ? x->n_quick : x->n;
    c->k = b->quick ? x->k_quick : x->k;
    c->m = b->quick ? x->m_quick : x->m;
    size_t n = c->n, k = c->k, m = c->m;
    c->memory = sherd__bench_room(n * k + k * m + n * m + vectors * (n + m + 2 * k));
    for (unsigned q = 0; q < PRIMES; q++)
        c->answer[q] = sherd__alloc_large(SHERD__RESIDUE_BYTES * n * m);
    if (!c->memory || !c->answer[0] || !c->answer[1]) return sherd__bench_no_memory(d);
    c->u = c->memory;
    c->v = c->u + n * k;
    c->y = c->v + k * m;
    c->r = c->y + n * m;
    c->s = c->r + vectors * n;
    c->ru = c->s + vectors * m;
    c->vs = c->ru + vectors * k;
    sherd__bench_integers(c->u, n * k, x->most, 5);
    sherd__bench_integers(c->v, k * m, x->most, 6);
    return 0;
}

static void close_checking(void *state)
{
    checking *c = state;
    sherd__free(c->memory);
    for (unsigned q = 0; q < PRIMES; q++) sherd__free(c->answer[q]);
}

/* Vectors of one prime: both trials of x, each with `len` values. */
#define VECTORS(x, q, len)                                                                         \
    {                                                                                              \
        (x) + (q)*TRIALS *(len), (x) + ((q)*TRIALS + 1) * (len)                                    \
    }

static void draw(checking *c, unsigned primes)
{
    const sherd__entropy e = sherd__entropy_os();
    for (unsigned q = 0; q < primes; q++) {
        sherd__fvp_draw(&e, prime(q), TRIALS * c->n, c->r + q * TRIALS * c->n);
        sherd__fvp_draw(&e, prime(q), TRIALS * c->m, c->s + q * TRIALS * c->m);
    }
}

/* Computes rT*U and V*s for all primes in one pass over the operands. */
static void project(checking *c, unsigned primes)
{
    size_t since = 0;
    sherd__fvp_sum sum[PRIMES];
    memset(c->ru, 0, PRIMES * TRIALS * c->k * sizeof *c->ru);
    for (unsigned q = 0; q < primes; q++)
        sum[q] = (sherd__fvp_sum){ prime(q), VECTORS(c->r, q, c->n), VECTORS(c->ru, q, c->k) };
    sherd__fvp_left_many(c->u, c->n, c->k, c->k, sum, primes, &since);
    for (size_t i = 0; i < c->k; i += ROWS)
        for (unsigned q = 0; q < primes; q++) {
            const double *const s[TRIALS] = VECTORS(c->s, q, c->m);
            double *const vs[TRIALS] = VECTORS(c->vs + i, q, c->k);
            sherd__fvp_right(c->v + i * c->m, c->k - i < ROWS ? c->k - i : ROWS, c->m, c->m, s,
                             prime(q), vs);
        }
}

static int check(checking *c, unsigned primes, bool *right)
{
    int err = 0;
    *right = true;
    project(c, primes);
    for (unsigned q = 0; q < primes && !err; q++) {
        uint32_t rys[TRIALS];
        const double *const r[TRIALS] = VECTORS(c->r, q, c->n);
        const double *const s[TRIALS] = VECTORS(c->s, q, c->m);
        double *const ru[TRIALS] = VECTORS(c->ru, q, c->k);
        const double *const vs[TRIALS] = VECTORS(c->vs, q, c->k);
        err = sherd__fvp_answer(c->answer[q], c->n, c->m, r, s, prime(q), rys);
        for (unsigned t = 0; t < TRIALS; t++) {
            sherd__residue_from_f64(ru[t], c->k, prime(q), ru[t]);
            *right = *right && rys[t] == sherd__fvp_dot(ru[t], vs[t], c->k, prime(q));
        }
    }
    return err;
}

static int multiply(checking *c, unsigned q)
{
    return sherd__residue_gemm(prime(q), c->n, c->k, c->m, c->u, c->k, c->v, c->m, c->y, c->m);
}

static int turn_modular(sherd__bench *b, void *state, sherd_diag *d)
{
    checking *c = state;
    bool right = true;
    sherd__blas_threads_set(1);
    double began = sherd__clock_s();
    int err = sherd__gemm_f64(c->n, c->k, c->m, c->u, c->k, c->v, c->m, 0.0, c->y, c->m);
    double middle = sherd__clock_s();
    if (!err) err = multiply(c, 0);
    sherd__bench_put(b, "modular", sherd__clock_s() - middle);
    sherd__bench_put(b, "dgemm", middle - began);
    sherd__blas_threads_set(b->cores);
    if (!err && b->warming) {
        sherd__residue_pack(c->y, c->n * c->m, prime(0), c->answer[0]);
        draw(c, 1);
        err = check(c, 1, &right);
    }
    if (err) return sherd__fail(d, err, NULL, "cannot multiply here");
    return right ? 0 : wrong("a product modulo a prime", d);
}

static int turn_freivalds(sherd__bench *b, void *state, sherd_diag *d)
{
    checking *c = state;
    bool right = true;
    int err = 0;
    double began = sherd__clock_s();
    for (unsigned q = 0; q < PRIMES && !err; q++) {
        err = multiply(c, q);
        if (!err) sherd__residue_pack(c->y, c->n * c->m, prime(q), c->answer[q]);
    }
    double middle = sherd__clock_s();
    draw(c, PRIMES);
    if (!err) err = check(c, PRIMES, &right);
    sherd__bench_put(b, "check", sherd__clock_s() - middle);
    sherd__bench_put(b, "product", middle - began);
    if (err) return sherd__fail(d, err, NULL, "cannot multiply here");
    return right ? 0 : wrong("the check of a product", d);
}

const sherd__kind sherd__bench_modular = { sizeof(checking), open_checking, turn_modular, NULL,
                                           close_checking,   false,         false };
const sherd__kind sherd__bench_freivalds = { sizeof(checking), open_checking, turn_freivalds, NULL,
                                             close_checking,   false,         false };

/* ---- products of bytes ----------------------------------------------------------------------- */

/* Operands of a product modulo a byte prime, the same integers as doubles, and both results. */
typedef struct bytes {
    size_t n, k, m;
    double *memory, *u, *v, *y;
    uint8_t *a, *b, *left, *right, *out; /* a is the allocation of all */
} bytes;

static uint8_t *aligned(uint8_t *at)
{
    return at + (64 - (uintptr_t)at % 64) % 64;
}

static int open_bytes(sherd__bench *b, void *state, const void *spec, sherd_diag *d)
{
    bytes *x = state;
    const sherd__kernel_spec *o = spec;
    size_t n = x->n = b->quick ? o->n_quick : o->n, k = x->k = b->quick ? o->k_quick : o->k;
    size_t m = x->m = b->quick ? o->m_quick : o->m;
    size_t left = sherd__bytes_laid(n, k), right = sherd__bytes_laid(m, k);
    x->memory = sherd__bench_room(n * k + k * m + n * m);
    x->a = sherd__alloc_large(n * k + k * m + n * m + left + right + 64);
    if (!x->memory || !x->a) return sherd__bench_no_memory(d);
    x->u = x->memory;
    x->v = x->u + n * k;
    x->y = x->v + k * m;
    x->b = x->a + n * k;
    x->out = x->b + k * m;
    x->left = aligned(x->out + n * m);
    x->right = x->left + left;
    sherd__bench_integers(x->u, n * k, o->most, 5);
    sherd__bench_integers(x->v, k * m, o->most, 6);
    for (size_t i = 0; i < n * k; i++) {
        x->u[i] += o->most;
        x->a[i] = (uint8_t)x->u[i];
    }
    for (size_t i = 0; i < k * m; i++) x->b[i] = (uint8_t)(int8_t)x->v[i];
    return 0;
}

static void close_bytes(void *state)
{
    bytes *x = state;
    sherd__free(x->memory);
    sherd__free(x->a);
}

static bool same(const bytes *x, uint32_t p)
{
    for (size_t i = 0; i < x->n * x->m; i++)
        if (((int64_t)x->y[i] % p + p) % p != x->out[i]) return false;
    return true;
}

/* Both operands are laid out for each product, as dgemm packs them. */
static int turn_bytes(sherd__bench *b, void *state, sherd_diag *d)
{
    bytes *x = state;
    const sherd__bytes_product of = { .p = sherd__byte_primes[0],
                                      .n = x->n,
                                      .k = x->k,
                                      .m = x->m,
                                      .a = x->left,
                                      .b = x->right,
                                      .out = x->out,
                                      .ld = x->m };
    const double terms = (double)x->n * (double)x->k * (double)x->m;
    sherd__blas_threads_set(1);
    double began = sherd__clock_s();
    int err = sherd__gemm_f64(x->n, x->k, x->m, x->u, x->k, x->v, x->m, 0.0, x->y, x->m);
    double middle = sherd__clock_s();
    sherd__bytes_lay_rows(x->a, x->n, x->k, x->k, x->left);
    sherd__bytes_lay_columns((const int8_t *)x->b, x->k, x->m, x->m, x->right);
    double laid = sherd__clock_s();
    if (!err) err = sherd__bytes_multiply(&of, NULL);
    double end = sherd__clock_s();
    sherd__blas_threads_set(b->cores);
    sherd__bench_put(b, "dgemm", middle - began);
    sherd__bench_put(b, "bytes", end - middle);
    sherd__bench_put(b, "rate", terms / (end - middle));
    sherd__bench_put(b, "laid", terms / (end - laid));
    if (err) return sherd__fail(d, err, NULL, "cannot multiply here");
    return !b->warming || same(x, of.p) ? 0 : wrong("a product modulo a byte prime", d);
}

const sherd__kind sherd__bench_bytes = { sizeof(bytes), open_bytes, turn_bytes, NULL,
                                         close_bytes,   false,      false };

/* ---- shares of an operand -------------------------------------------------------------------- */

enum { BLOCKS = 3, MASKS = 1, TERMS = BLOCKS + MASKS, SHARES = 7, BITS = 17, MOST_THREADS = 16 };

/* The encoding of A, dim x dim, as the coordinator makes it; each thread has a panel. */
typedef struct coding {
    size_t dim;
    double *a, *copy;
    sherd__hiding hiding;
    unsigned parts;
    struct coding_part {
        struct coding *c;
        share_span span;
        share_scratch scratch;
        sherd__masks *masks;
        uint8_t *out[SHARES];
        size_t first, end; /* rows of the copy */
        pthread_t thread;
        bool started;
        int err;
    } part[MOST_THREADS];
} coding;

static const share *encoding(const coding *c)
{
    return c->hiding.ctx;
}

static int open_part(coding *c, unsigned i)
{
    struct coding_part *t = &c->part[i];
    t->c = c;
    t->span = sherd__share_span_a(encoding(c), i);
    t->first = c->dim * i / c->parts;
    t->end = c->dim * (i + 1) / c->parts;
    size_t len = sherd__share_bytes(encoding(c), SHARE_LEFT, t->span.rows, c->dim);
    for (unsigned k = 0; k < SHARES; k++) {
        t->out[k] = sherd__alloc_large(len);
        if (!t->out[k]) return SHERD_ENOMEM;
        memset(t->out[k], 0, len);
    }
    return sherd__masks_clone(&t->masks, encoding(c)->a_masks);
}

static int open_encode(sherd__bench *b, void *state, const void *spec, sherd_diag *d)
{
    coding *c = state;
    const sherd__kernel_spec *x = spec;
    unsigned threads = b->cores < MOST_THREADS ? b->cores : MOST_THREADS;
    size_t dim = c->dim = b->quick ? x->n_quick : x->n, rows = (dim + BLOCKS - 1) / BLOCKS;
    sherd__share_params p = { .a = sherd_view_c(NULL, SHERD_F64, dim, dim),
                              .by = &sherd__code_lagrange,
                              .code = { BLOCKS, MASKS, SHARES },
                              .left_stays = true,
                              .panel_rows = (rows + threads - 1) / threads,
                              .tile_cols = 1,
                              .primes_len = PRIMES,
                              .primes = { prime(0), prime(1) },
                              .entropy = sherd__entropy_os() };
    p.a.data = c->a = sherd__bench_room(dim * dim);
    c->copy = sherd__bench_room(dim * dim);
    if (!c->a || !c->copy) return sherd__bench_no_memory(d);
    sherd__bench_integers(c->a, dim * dim, x->most, 3);
    int err = sherd__fixed_choose(p.a, BITS, "A", &p.fixed_a, d);
    if (err) return err;
    err = sherd__share_open(&c->hiding, &p);
    if (!err) c->parts = encoding(c)->panels;
    for (unsigned i = 0; i < c->parts && !err; i++) err = open_part(c, i);
    return err ? sherd__bench_no_memory(d) : 0;
}

static void close_encode(void *state)
{
    coding *c = state;
    for (unsigned i = 0; i < c->parts; i++) {
        for (unsigned k = 0; k < SHARES; k++) sherd__free(c->part[i].out[k]);
        sherd__share_scratch_free(&c->part[i].scratch);
        sherd__masks_free(c->part[i].masks);
    }
    if (c->hiding.ops) c->hiding.ops->free(c->hiding.ctx);
    sherd__free(c->a);
    sherd__free(c->copy);
}

static void *encode_part(void *arg)
{
    struct coding_part *t = arg;
    const share *s = encoding(t->c);
    const share_source of = { &s->a, t->masks, &t->span };
    t->err = sherd__share_pass(s, &t->scratch, &of, t->out, NULL);
    return NULL;
}

static void *copy_part(void *arg)
{
    struct coding_part *t = arg;
    size_t from = t->first * t->c->dim, len = (t->end - t->first) * t->c->dim;
    memcpy(t->c->copy + from, t->c->a + from, len * sizeof(double));
    return NULL;
}

/* Runs the parts on all threads; the part of a thread that does not start runs in the caller. */
static int run_parts(coding *c, void *(*work)(void *), double *seconds)
{
    int err = 0;
    double began = sherd__clock_s();
    for (unsigned i = 1; i < c->parts; i++)
        c->part[i].started = pthread_create(&c->part[i].thread, NULL, work, &c->part[i]) == 0;
    for (unsigned i = 0; i < c->parts; i++) {
        if (c->part[i].started) pthread_join(c->part[i].thread, NULL);
        else work(&c->part[i]);
        if (!err) err = c->part[i].err;
    }
    *seconds = sherd__clock_s() - began;
    return err;
}

/* Returns whether the first row of A is recovered from as many shares as there are terms. */
static bool decodes(const coding *c)
{
    static const uint32_t slots[TERMS] = { 6, 1, 4, 3 };
    const share *s = encoding(c);
    const struct coding_part *t = &c->part[0];
    double w[TERMS], *want = t->scratch.data, *got = t->scratch.term;
    sherd__fixed_row(&s->a.fixed, s->a.v, 0, 0, c->dim, want);
    for (uint32_t q = 0; q < PRIMES; q++) {
        const uint8_t *in[TERMS];
        for (size_t i = 0; i < TERMS; i++)
            in[i] = t->out[slots[i]] + q * t->span.rows * c->dim * SHERD__RESIDUE_BYTES;
        sherd__lcc_decode_weights(&s->p.code, prime(q), 0, slots, TERMS, w);
        if (sherd__lcc_decode(w, 1, TERMS, prime(q), in, c->dim, &got) != 0 ||
            memcmp(want, got, c->dim * sizeof *got) != 0)
            return false;
    }
    return true;
}

static int turn_encode(sherd__bench *b, void *state, sherd_diag *d)
{
    coding *c = state;
    double copying, encoded, read = 8.0 * (double)(c->dim * c->dim), written = 0;
    int err = run_parts(c, copy_part, &copying);
    if (!err) err = run_parts(c, encode_part, &encoded);
    if (err) return sherd__fail(d, err, NULL, "cannot encode");
    for (unsigned i = 0; i < c->parts; i++)
        written += (double)(SHARES * sherd__share_bytes(encoding(c), SHARE_LEFT,
                                                        c->part[i].span.rows, c->dim));
    sherd__bench_put(b, "memcpy", 2 * read / copying);
    sherd__bench_put(b, "encode", (read + written) / encoded);
    sherd__bench_put(b, "element", encoded * c->parts / (double)(c->dim * c->dim));
    return b->warming && !decodes(c) ? wrong("a share", d) : 0;
}

const sherd__kind sherd__bench_encode = { sizeof(coding), open_encode, turn_encode, NULL,
                                          close_encode,   false,       false };
