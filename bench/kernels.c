/*
 * Computations of the private schemes here, apart from nodes and links: a product modulo a prime
 * compared with dgemm, all shares of an operand compared with memcpy, and the check of answers
 * compared with the product that it checks. Both sides of a comparison use the same number of
 * threads and alternate; only the check uses one thread, as in a job. Results are verified, since a
 * figure of a wrong computation means nothing.
 */
#include <pthread.h>
#include <string.h>

#include "bench/bench.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "crypto/binding.h"
#include "crypto/freivalds.h"
#include "crypto/lagrange.h"
#include "crypto/mask.h"
#include "matrix/fixed.h"
#include "matrix/gemm.h"
#include "matrix/residue.h"

#define PRIMES 2u
#define TRIALS SHERD__FVP_TRIALS

static int no_memory(sherd_diag *d)
{
    return sherd__fail(d, SHERD_ENOMEM, "measure the others with --only", "out of memory");
}

static int wrong(const char *what, sherd_diag *d)
{
    return sherd__fail(d, SHERD_EINTERNAL, "please report this", "%s is wrong", what);
}

static int interrupted(sherd_diag *d)
{
    if (!sherd__bench_interrupted(NULL)) return 0;
    return sherd__fail(d, SHERD_EINTERRUPTED, NULL, "interrupted");
}

/* Returns n doubles with all pages touched, so that no page is faulted in while a clock runs. NULL
 * without memory. */
static double *room(size_t n)
{
    double *p = sherd__alloc_large(n * sizeof *p);
    if (p) memset(p, 0, n * sizeof *p);
    return p;
}

/* Fills x with integers in +-most. */
static void scatter(double *x, size_t n, uint32_t most, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        x[i] = (double)((int64_t)((seed >> 33) % (2 * (uint64_t)most + 1)) - (int64_t)most);
    }
}

/* ---- products modulo a prime ----------------------------------------------------------------- */

/* Returns whether c is a*b modulo p, all dim x dim: two trials with random weights. */
static bool is_product(const double *a, const double *b, const double *c, size_t dim, uint32_t p)
{
    const sherd__entropy e = sherd__entropy_os();
    double *x = room(8 * dim);
    bool equal = x != NULL;
    if (!equal) return false;
    double *const ru[TRIALS] = { x, x + dim }, *const vs[TRIALS] = { x + 2 * dim, x + 3 * dim };
    double *const ys[TRIALS] = { x + 4 * dim, x + 5 * dim };
    const double *const r[TRIALS] = { x + 6 * dim, x + 7 * dim };
    size_t since = 0;
    sherd__fvp_draw(&e, p, 2 * dim, x + 6 * dim);
    sherd__fvp_left(a, dim, dim, dim, r, p, ru, &since);
    sherd__fvp_right(b, dim, dim, dim, r, p, vs);
    sherd__fvp_right(c, dim, dim, dim, r, p, ys);
    for (unsigned t = 0; t < TRIALS; t++) {
        sherd__residue_from_f64(ru[t], dim, p, ru[t]);
        equal = equal &&
                sherd__fvp_dot(ru[t], vs[t], dim, p) == sherd__fvp_dot(r[t], ys[t], dim, p);
    }
    sherd__free(x);
    return equal;
}

static int run_modular(const sherd__bench *b, size_t dim, double *x, sherd__figure *f,
                       sherd_diag *d)
{
    const uint32_t p = sherd__primes_default.p[0];
    double *a = x, *v = a + dim * dim, *c = v + dim * dim, plain[SHERD__BENCH_RUNS_MAX];
    int runs = sherd__bench_runs(b, 5), err = 0;
    scatter(a, 2 * dim * dim, (p - 1) / 2, 1);
    for (int i = -1; i < runs && !err; i++) { /* the first pair warms up */
        double began = sherd__clock_s();
        err = sherd__gemm_f64(dim, dim, dim, a, dim, v, dim, 0.0, c, dim);
        double middle = sherd__clock_s();
        if (!err) err = sherd__residue_gemm(p, dim, dim, dim, a, dim, v, dim, c, dim);
        double seconds = sherd__clock_s() - middle;
        if (!err && i < 0 && !is_product(a, v, c, dim, p))
            return wrong("a product modulo a prime", d);
        if (!err) err = interrupted(d);
        if (i < 0) continue;
        plain[i] = middle - began;
        sherd__figure_add(f, 100 * plain[i] / seconds);
    }
    if (err) return err;
    sherd__figure_beside(f, "dgemm_seconds", "dgemm", sherd__median(plain, runs), "s");
    return 0;
}

int sherd__bench_modular(sherd__bench *b, sherd_diag *d)
{
    sherd__figure f = { .name = "modular",
                        .unit = "% of dgemm",
                        .better = SHERD__HIGHER,
                        .target = 95,
                        .what = "product mod p, 2048 x 2048 x 2048, one core" };
    size_t dim = b->quick ? 256 : 2048;
    if (b->quick) f.what = "product mod p, 256 x 256 x 256 (quick), one core";
    double *x = room(3 * dim * dim);
    if (!x) return no_memory(d);
    sherd__blas_threads_set(1);
    int err = run_modular(b, dim, x, &f, d);
    sherd__blas_threads_set(b->cores);
    sherd__free(x);
    if (!err) sherd__bench_tell(b, &f);
    return err;
}

/* ---- shares of an operand -------------------------------------------------------------------- */

enum { BLOCKS = 3, MASKS = 1, TERMS = BLOCKS + MASKS, SHARES = 7, BITS = 17 };
enum { ROWS = 4, MOST_THREADS = 16 };

static const sherd__lcc code = { BLOCKS, MASKS, SHARES };

/* dim x dim, cut into blocks of `height` rows; the last one may have fewer. */
typedef struct coding {
    size_t dim, height;
    double *a, *copy;
    sherd__fixed fixed;
    double w[PRIMES][SHARES * TERMS];
    uint8_t *out[PRIMES][SHARES];
    struct coding_part *part;
    unsigned parts;
    sherd__binding *binding; /* one run for each part */
} coding;

/** Rows [first, end) of the shares, and of the copy of A, for one thread. */
typedef struct coding_part {
    coding *c;
    size_t first, end, copy_first, copy_end;
    double *scratch;
    double *data, *mask; /* ROWS quantised rows of each block, and of the mask; aligned to cache
                            lines */
    sherd__masks *masks;
    sherd__binding_hash hash;
    pthread_t thread;
    int err;
} coding_part;

static void coding_fini(coding *c)
{
    for (unsigned q = 0; q < PRIMES; q++)
        for (unsigned i = 0; i < SHARES; i++) sherd__free(c->out[q][i]);
    for (unsigned i = 0; c->part && i < c->parts; i++) {
        sherd__free(c->part[i].scratch);
        sherd__masks_free(c->part[i].masks);
    }
    sherd__binding_free(c->binding);
    sherd__free(c->part);
    sherd__free(c->a);
    sherd__free(c->copy);
}

static int part_init(coding *c, unsigned i, const sherd__entropy *e)
{
    coding_part *t = &c->part[i];
    *t = (coding_part){ .c = c,
                        .first = c->height * i / c->parts,
                        .end = c->height * (i + 1) / c->parts,
                        .copy_first = c->dim * i / c->parts,
                        .copy_end = c->dim * (i + 1) / c->parts,
                        .scratch = room(TERMS * ROWS * c->dim + 8) };
    if (!t->scratch) return SHERD_ENOMEM;
    t->data = t->scratch + (64 - (uintptr_t)t->scratch % 64) % 64 / sizeof *t->data;
    t->mask = t->data + BLOCKS * ROWS * c->dim;
    if (i == 0) return sherd__masks_new(&t->masks, e);
    return sherd__masks_clone(&t->masks, c->part[0].masks);
}

static int coding_init(coding *c, size_t dim, unsigned threads, sherd_diag *d)
{
    const sherd__entropy e = sherd__entropy_os();
    *c = (coding){ .dim = dim,
                   .height = (dim + BLOCKS - 1) / BLOCKS,
                   .a = room(dim * dim),
                   .copy = room(dim * dim),
                   .parts = threads };
    c->part = sherd__calloc(threads, sizeof *c->part);
    if (!c->a || !c->copy || !c->part) return no_memory(d);
    for (unsigned q = 0; q < PRIMES; q++)
        for (unsigned i = 0; i < SHARES; i++) {
            size_t len = SHERD__RESIDUE_BYTES * c->height * dim;
            sherd__lcc_encode_weights(&code, sherd__primes_default.p[q], i, c->w[q] + i * TERMS);
            c->out[q][i] = sherd__alloc_large(len);
            if (!c->out[q][i]) return no_memory(d);
            memset(c->out[q][i], 0, len);
        }
    for (unsigned i = 0; i < threads; i++)
        if (part_init(c, i, &e) != 0) return no_memory(d);
    scatter(c->a, dim * dim, 1000000, 3);
    int err = sherd__fixed_choose(sherd_view_c(c->a, SHERD_F64, dim, dim), BITS, "A", &c->fixed, d);
    if (err) return err;
    err = sherd__binding_new(&c->binding, threads, (double)c->fixed.bound, &e);
    return err ? no_memory(d) : SHERD_OK;
}

/* Quantises and hashes rows [row, row+rows) of every block, interleaved as in a job. */
static int read_rows(coding_part *t, size_t row, size_t rows)
{
    const coding *c = t->c;
    const sherd_view v = sherd_view_c(c->a, SHERD_F64, c->dim, c->dim);
    int err = 0;
    for (size_t i = 0; i < rows && !err; i++) {
        size_t from[BLOCKS], count = 0;
        double *to[BLOCKS];
        for (size_t j = 0; j < BLOCKS; j++) {
            double *out = t->data + (j * ROWS + i) * c->dim;
            size_t at = j * c->height + row + i;
            if (at < c->dim) from[count] = at, to[count++] = out;
            else memset(out, 0, c->dim * sizeof *out);
        }
        sherd__fixed_turns(&c->fixed, v, from, count, 0, c->dim, to);
        for (size_t j = 0; j < BLOCKS && !err; j++)
            err = sherd__binding_add(c->binding, &t->hash, t->data + (j * ROWS + i) * c->dim,
                                     c->dim);
    }
    return err;
}

/* Encodes rows [row, row+rows) of all shares for both primes. */
static int encode_rows(coding_part *t, size_t row, size_t rows)
{
    coding *c = t->c;
    const double *term[TERMS];
    int err = read_rows(t, row, rows);
    for (size_t j = 0; j < BLOCKS; j++) term[j] = t->data + j * ROWS * c->dim;
    term[BLOCKS] = t->mask;
    for (uint32_t q = 0; q < PRIMES && !err; q++) {
        uint32_t p = sherd__primes_default.p[q];
        const sherd__mask_id id = { SHERD__MASK_LEFT, 0, q, p, c->dim };
        uint8_t *to[SHARES];
        for (size_t i = 0; i < SHARES; i++)
            to[i] = c->out[q][i] + SHERD__RESIDUE_BYTES * row * c->dim;
        err = sherd__masks_part(t->masks, &id, row, rows, 0, c->dim, t->mask, c->dim);
        if (!err) sherd__lcc_encode(c->w[q], SHARES, TERMS, p, term, rows * c->dim, to);
    }
    return err;
}

static void *encode_part(void *arg)
{
    coding_part *t = arg;
    t->err = 0;
    for (size_t row = t->first; row < t->end && !t->err; row += ROWS)
        t->err = encode_rows(t, row, t->end - row < ROWS ? t->end - row : ROWS);
    if (!t->err) t->err = sherd__binding_hold(t->c->binding, (size_t)(t - t->c->part), &t->hash);
    return NULL;
}

static void *copy_part(void *arg)
{
    coding_part *t = arg;
    size_t from = t->copy_first * t->c->dim, len = (t->copy_end - t->copy_first) * t->c->dim;
    memcpy(t->c->copy + from, t->c->a + from, len * sizeof(double));
    t->err = 0;
    return NULL;
}

/* Runs the parts on all threads; the part of a thread that does not start runs here. */
static int run_parts(coding *c, void *(*work)(void *))
{
    bool started[MOST_THREADS] = { false };
    int err = 0;
    for (unsigned i = 1; i < c->parts; i++)
        started[i] = pthread_create(&c->part[i].thread, NULL, work, &c->part[i]) == 0;
    for (unsigned i = 0; i < c->parts; i++) {
        if (started[i]) pthread_join(c->part[i].thread, NULL);
        else work(&c->part[i]);
        if (!err) err = c->part[i].err;
    }
    return err;
}

/* Returns whether the last row of the first block is recovered from as many shares as there are
 * terms. */
static bool decodes(const coding *c)
{
    static const uint32_t share[TERMS] = { 6, 1, 4, 3 };
    const sherd_view v = sherd_view_c(c->a, SHERD_F64, c->dim, c->dim);
    double w[TERMS], *want = c->part->data, *got = c->part->mask;
    sherd__fixed_row(&c->fixed, v, c->height - 1, 0, c->dim, want);
    for (uint32_t q = 0; q < PRIMES; q++) {
        const uint8_t *in[TERMS];
        for (size_t i = 0; i < TERMS; i++)
            in[i] = c->out[q][share[i]] + SHERD__RESIDUE_BYTES * (c->height - 1) * c->dim;
        sherd__lcc_decode_weights(&code, sherd__primes_default.p[q], 0, share, TERMS, w);
        if (sherd__lcc_decode(w, 1, TERMS, sherd__primes_default.p[q], in, c->dim, &got) != 0 ||
            memcmp(want, got, c->dim * sizeof *got) != 0)
            return false;
    }
    return true;
}

static int run_encode(const sherd__bench *b, coding *c, sherd__figure *f, sherd_diag *d)
{
    double ours[SHERD__BENCH_RUNS_MAX], copies[SHERD__BENCH_RUNS_MAX];
    double read = 8e-9 * (double)(c->dim * c->dim);
    double bytes = read + 3e-9 * PRIMES * SHARES * (double)(c->height * c->dim);
    int runs = sherd__bench_runs(b, 5), err = 0;
    for (int i = -1; i < runs && !err; i++) { /* the first pair warms up */
        double began = sherd__clock_s();
        err = run_parts(c, copy_part);
        double middle = sherd__clock_s();
        if (!err) err = run_parts(c, encode_part);
        double end = sherd__clock_s();
        if (!err && i < 0 && !decodes(c)) return wrong("a share", d);
        if (!err) err = interrupted(d);
        if (i < 0) continue;
        copies[i] = 2 * read / (middle - began);
        ours[i] = bytes / (end - middle);
        sherd__figure_add(f, 100 * ours[i] / copies[i]);
    }
    if (err) return err;
    sherd__figure_beside(f, "gb_per_second", "encoding", sherd__median(ours, runs), "GB/s");
    sherd__figure_beside(f, "memcpy_gb_per_second", "memcpy", sherd__median(copies, runs),
                         "GB/s, read and written");
    return 0;
}

int sherd__bench_encode(sherd__bench *b, sherd_diag *d)
{
    sherd__figure f = { .name = "encode",
                        .unit = "% of memcpy",
                        .better = SHERD__HIGHER,
                        .target = 40,
                        .what = "encode 4096 x 4096, N=7 K=3 T=1, all cores" };
    if (b->quick) f.what = "encode 512 x 512 (quick), N=7 K=3 T=1, all cores";
    unsigned threads = b->cores < MOST_THREADS ? b->cores : MOST_THREADS;
    coding c;
    int err = coding_init(&c, b->quick ? 512 : 4096, threads, d);
    if (!err) err = run_encode(b, &c, &f, d);
    coding_fini(&c);
    if (!err) sherd__bench_tell(b, &f);
    return err;
}

/* ---- checks of answers ----------------------------------------------------------------------- */

/* Operands of integers that are canonical for both primes, and vectors for each prime and trial: r
 * (n), s (m), ru and vs (k). */
typedef struct checking {
    size_t n, k, m;
    double *u, *v, *y, *r, *s, *ru, *vs;
    uint8_t *answer[PRIMES];
} checking;

static void checking_fini(checking *c)
{
    double *const all[] = { c->u, c->v, c->y, c->r, c->s, c->ru, c->vs };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) sherd__free(all[i]);
    for (unsigned q = 0; q < PRIMES; q++) sherd__free(c->answer[q]);
}

static int checking_init(checking *c, size_t n, size_t k, size_t m, sherd_diag *d)
{
    const size_t vectors = PRIMES * TRIALS, len = SHERD__RESIDUE_BYTES * n * m;
    *c = (checking){ .n = n,
                     .k = k,
                     .m = m,
                     .u = room(n * k),
                     .v = room(k * m),
                     .y = room(n * m),
                     .r = room(vectors * n),
                     .s = room(vectors * m),
                     .ru = room(vectors * k),
                     .vs = room(vectors * k),
                     .answer = { sherd__alloc_large(len), sherd__alloc_large(len) } };
    if (!c->u || !c->v || !c->y || !c->r || !c->s || !c->ru || !c->vs || !c->answer[0] ||
        !c->answer[1])
        return no_memory(d);
    scatter(c->u, n * k, 65535, 5);
    scatter(c->v, k * m, 65535, 6);
    return 0;
}

/* Vectors of one prime: both trials of x, each with `len` values. */
#define VECTORS(x, q, len)                                                                         \
    {                                                                                              \
        (x) + (q)*TRIALS *(len), (x) + ((q)*TRIALS + 1) * (len)                                    \
    }

static int multiply(checking *c)
{
    int err = 0;
    for (unsigned q = 0; q < PRIMES && !err; q++) {
        uint32_t p = sherd__primes_default.p[q];
        err = sherd__residue_gemm(p, c->n, c->k, c->m, c->u, c->k, c->v, c->m, c->y, c->m);
        if (!err) sherd__residue_pack(c->y, c->n * c->m, p, c->answer[q]);
    }
    return err;
}

/* Computes rT*U and V*s for both primes in one pass over the operands. */
static void project(checking *c)
{
    size_t since = 0;
    sherd__fvp_sum sum[PRIMES];
    memset(c->ru, 0, PRIMES * TRIALS * c->k * sizeof *c->ru);
    for (unsigned q = 0; q < PRIMES; q++)
        sum[q] = (sherd__fvp_sum){ sherd__primes_default.p[q], VECTORS(c->r, q, c->n),
                                   VECTORS(c->ru, q, c->k) };
    sherd__fvp_left_many(c->u, c->n, c->k, c->k, sum, PRIMES, &since);
    for (size_t i = 0; i < c->k; i += ROWS)
        for (unsigned q = 0; q < PRIMES; q++) {
            const double *const s[TRIALS] = VECTORS(c->s, q, c->m);
            double *const vs[TRIALS] = VECTORS(c->vs + i, q, c->k);
            sherd__fvp_right(c->v + i * c->m, c->k - i < ROWS ? c->k - i : ROWS, c->m, c->m, s,
                             sherd__primes_default.p[q], vs);
        }
}

static int check(checking *c, bool *right)
{
    int err = 0;
    *right = true;
    project(c);
    for (unsigned q = 0; q < PRIMES && !err; q++) {
        uint32_t p = sherd__primes_default.p[q], rys[TRIALS];
        const double *const r[TRIALS] = VECTORS(c->r, q, c->n);
        const double *const s[TRIALS] = VECTORS(c->s, q, c->m);
        double *const ru[TRIALS] = VECTORS(c->ru, q, c->k);
        const double *const vs[TRIALS] = VECTORS(c->vs, q, c->k);
        err = sherd__fvp_answer(c->answer[q], c->n, c->m, r, s, p, rys);
        for (unsigned t = 0; t < TRIALS; t++) {
            sherd__residue_from_f64(ru[t], c->k, p, ru[t]);
            *right = *right && rys[t] == sherd__fvp_dot(ru[t], vs[t], c->k, p);
        }
    }
    return err;
}

static void draw(checking *c)
{
    const sherd__entropy e = sherd__entropy_os();
    for (unsigned q = 0; q < PRIMES; q++) {
        sherd__fvp_draw(&e, sherd__primes_default.p[q], TRIALS * c->n, c->r + q * TRIALS * c->n);
        sherd__fvp_draw(&e, sherd__primes_default.p[q], TRIALS * c->m, c->s + q * TRIALS * c->m);
    }
}

static int run_check(const sherd__bench *b, checking *c, sherd__figure *f, sherd_diag *d)
{
    double products[SHERD__BENCH_RUNS_MAX], checks[SHERD__BENCH_RUNS_MAX];
    int runs = sherd__bench_runs(b, 5), err = 0;
    bool right;
    for (int i = -1; i < runs && !err; i++) { /* the first pair warms up */
        int at = i < 0 ? 0 : i;
        double began = sherd__clock_s();
        err = multiply(c);
        products[at] = sherd__clock_s() - began;
        began = sherd__clock_s();
        draw(c);
        if (!err) err = check(c, &right);
        checks[at] = sherd__clock_s() - began;
        if (!err && !right) return wrong("the check of a product", d);
        if (!err) err = interrupted(d);
        if (i >= 0) sherd__figure_add(f, 100 * checks[at] / products[at]);
    }
    if (err) return err;
    sherd__figure_beside(f, "seconds", "check", sherd__median(checks, runs), "s");
    sherd__figure_beside(f, "product_seconds", "product, all cores, two primes",
                         sherd__median(products, runs), "s");
    return 0;
}

static int measure_check(sherd__bench *b, size_t n, size_t k, size_t m, sherd__figure *f,
                         sherd_diag *d)
{
    checking c;
    int err = checking_init(&c, n, k, m, d);
    if (!err) err = run_check(b, &c, f, d);
    checking_fini(&c);
    if (!err) sherd__bench_tell(b, f);
    return err;
}

int sherd__bench_freivalds(sherd__bench *b, sherd_diag *d)
{
    sherd__figure square = { .name = "freivalds-4096",
                             .unit = "% of product",
                             .target = 2,
                             .what = "Freivalds, two trials, 4096 x 4096 x 4096" };
    sherd__figure layer = { .name = "freivalds-layer",
                            .unit = "% of product",
                            .target = 12,
                            .what = "Freivalds, two trials, 60000 x 784 x 128" };
    if (b->quick) {
        square.what = "Freivalds, two trials, 256 x 256 x 256 (quick)";
        layer.what = "Freivalds, two trials, 600 x 784 x 128 (quick)";
    }
    size_t dim = b->quick ? 256 : 4096;
    int err = measure_check(b, dim, dim, dim, &square, d);
    return err ? err : measure_check(b, b->quick ? 600 : 60000, 784, 128, &layer, d);
}
