/*
 * Products with OpenBLAS and element-wise functions of matrix/funcs, over blocks as received.
 * float64 data go to BLAS without a copy; everything else (small integers, floats, packed residues)
 * is converted panel by panel into a fixed scratch, with a size that does not depend on the task.
 * One panel's conversion is used for as many products as the other operand has rows. Under `share`
 * these may be only a hundred, so residues are processed in strips of the inner size that are in
 * the second-level cache when BLAS packs them: of all sizes, a dgemm suffers least from a shorter
 * k.
 *
 * sherd__task_check has established that task and blocks agree; values are still hostile: residues
 * at or above the modulus and integers beyond 2^53 are found here, during conversion.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "matrix/funcs.h"
#include "matrix/gemm.h"
#include "matrix/residue.h"
#include "matrix/residue_bytes.h"
#include "matrix/residue_limbs.h"
#include "matrix/view.h"
#include "matrix/windows.h"
#include "node/backend.h"
#include "node/backends/cpu.h"
#include "node/backends/hosted.h"
#include "node/backends/outer.h"
#include "node/check.h"

#define STRIP 128u /* inner size of residues, per BLAS thread: a strip of B stays in L2 */
#define CELL 96u   /* rows of a cell, with blocks of about a megabyte */
#define CELL_BYTES ((uint64_t)1 << 20)

_Static_assert(SHERD__CSR_ROWS == CPU_PANEL, "one panel's rows are taken apart at a time");
_Static_assert(SHERD__LIMBS_MOST + CPU_LINE <= CPU_AREA * sizeof(double),
               "tiles are sorted in an area");

double *sherd__cpu_use(cpu *c, double *area, size_t n)
{
    assert(area >= c->all && area < c->all + 4 * CPU_AREA && n <= CPU_AREA);
    size_t *used = &c->used[(size_t)(area - c->all) / CPU_AREA];
    if (n > *used) *used = n;
    return area;
}

uint8_t *sherd__cpu_bytes(cpu *c, double *area, size_t n)
{
    uint8_t *at = (uint8_t *)sherd__cpu_use(c, area, (n + CPU_LINE) / sizeof *area);
    return at + (CPU_LINE - (uintptr_t)at % CPU_LINE) % CPU_LINE;
}

int sherd__cpu_check_cancelled(const cpu *c, sherd_diag *d)
{
    if (!atomic_load_explicit(&c->call->cancelled, memory_order_relaxed)) return SHERD_OK;
    return sherd__fail(d, SHERD_EINTERRUPTED, NULL, "the task was cancelled");
}

static void forget(cpu *c)
{
    for (size_t i = 0; i < 4; i++) {
        sherd__wipe(c->all + i * CPU_AREA, c->used[i] * sizeof(double));
        c->used[i] = 0;
    }
    if (c->csr.n) sherd__wipe(&c->csr, sizeof c->csr);
}

static int unpack_row(const cpu_operand *o, size_t r, cpu_range cols, double *out, sherd_diag *d)
{
    size_t bad, at = r * o->cols + cols.from;
    int err = sherd__residue_unpack(o->values + SHERD__RESIDUE_BYTES * at, cols.len, o->prime, out,
                                    &bad);
    if (err)
        return sherd__fail(d, SHERD_ERANGE, NULL, "residue %zu of a block is not below %u",
                           at + bad, o->prime);
    return SHERD_OK;
}

cpu_operand sherd__cpu_operand(const cpu *c, int side, uint32_t q, const sherd__fragment *f,
                               sherd__group g, size_t first)
{
    const sherd__task *t = c->call->task;
    const cpu_form *kept = &c->forms[side];
    cpu_operand o = { .values = g.values,
                      .rows = g.rows,
                      .cols = g.cols,
                      .dtype = sherd__fragment_info_of(f)->dtype,
                      .prime = t->primes_len ? t->primes[q] : 0,
                      .transposed = side == 0 && t->op == SHERD__OP_MULTIPLY_T };
    if (kept->fill) o.fill = kept->fill + q * kept->len + first * sherd__wire_size(kept->dtype);
    if (kept->bytes && kept->dtype) {
        o.dtype = kept->dtype;
        o.converted = true;
        o.values = kept->bytes + q * kept->len + first * sherd__wire_size(kept->dtype);
    } else if (kept->bytes) {
        o.sorted = kept->bytes + q * kept->len;
    }
    return o;
}

int sherd__cpu_too_large(const uint8_t *bytes, size_t n, sherd_diag *d)
{
    const int64_t most = INT64_C(1) << 53;
    for (size_t i = 0; i < n; i++) {
        int64_t x; /* not as a double: 2^53 + 1 would become 2^53 */
        memcpy(&x, bytes + i * sizeof x, sizeof x);
        if (x > most || x < -most)
            return sherd__fail(d, SHERD_ERANGE, "send it in fewer bits",
                               "a block holds the integer %" PRId64 "; up to 2^53 are taken", x);
    }
    return SHERD_OK;
}

/* Converts a panel to float64, with rows `ld` numbers apart. */
static int widen(const cpu *c, const cpu_operand *o, cpu_part part, double *out, size_t ld,
                 sherd_diag *d)
{
    const cpu_range rows = part.rows, cols = part.cols;
    sherd_view v = { .data = o->values,
                     .rows = o->rows,
                     .cols = o->cols,
                     .row_stride = (ptrdiff_t)o->cols,
                     .col_stride = 1 };
    int err = sherd__cpu_check_cancelled(c, d);
    if (o->dtype != SHERD__RESIDUES) v.dtype = (sherd_dtype)o->dtype;
    for (size_t r = 0; r < rows.len && !err; r++) {
        double *to = out + r * ld;
        if (o->dtype == SHERD__RESIDUES) {
            err = unpack_row(o, rows.from + r, cols, to, d);
            continue;
        }
        size_t at = (rows.from + r) * (size_t)o->cols + cols.from;
        if (o->prime && o->dtype == SHERD_I64)
            err = sherd__cpu_too_large(o->values + at * sizeof(int64_t), cols.len, d);
        if (!err) sherd__view_row_f64(v, rows.from + r, cols.from, cols.len, to);
        if (!err && o->prime) sherd__residue_from_f64(to, cols.len, o->prime, to);
    }
    return err;
}

int sherd__cpu_convert(cpu *c, const cpu_operand *o, cpu_part part, double *area, sherd_diag *d)
{
    sherd__cpu_use(c, area, part.rows.len * part.cols.len);
    return widen(c, o, part, area, part.cols.len, d);
}

/* Converts a panel and keeps it in the form that is being made: residues are packed again there,
 * and float64 is not elsewhere. */
static int convert_and_keep(cpu *c, const cpu_operand *o, cpu_part part, double *area,
                            cpu_numbers *out, sherd_diag *d)
{
    size_t first = part.rows.from * o->cols + part.cols.from, len = part.cols.len;
    if (!o->prime) {
        double *to = (double *)(void *)o->fill + first;
        *out = (cpu_numbers){ to, o->cols };
        return widen(c, o, part, to, o->cols, d);
    }
    int err = sherd__cpu_convert(c, o, part, area, d);
    for (size_t r = 0; r < part.rows.len && !err; r++, first += o->cols)
        sherd__residue_pack(area + r * len, len, o->prime, o->fill + SHERD__RESIDUE_BYTES * first);
    return err;
}

int sherd__cpu_fetch(cpu *c, const cpu_operand *o, cpu_part part, double *area, cpu_numbers *out,
                     sherd_diag *d)
{
    if (o->dtype == SHERD_F64 && !o->prime) {
        const double *values = (const double *)(const void *)o->values;
        *out = (cpu_numbers){ values + part.rows.from * o->cols + part.cols.from, (size_t)o->cols };
        return sherd__cpu_check_cancelled(c, d);
    }
    *out = (cpu_numbers){ area, part.cols.len };
    return o->fill ? convert_and_keep(c, o, part, area, out, d)
                   : sherd__cpu_convert(c, o, part, area, d);
}

/* Fetches the panel of a left operand that contributes to `rows` of the product from `inner`, in
 * the orientation in which it is stored. */
static int fetch_left(cpu *c, const cpu_operand *a, cpu_range rows, cpu_range inner,
                      cpu_numbers *out, sherd_diag *d)
{
    const cpu_part part = a->transposed ? (cpu_part){ inner, rows } : (cpu_part){ rows, inner };
    return sherd__cpu_fetch(c, a, part, c->left, out, d);
}

typedef int gemm(size_t n, size_t k, size_t m, const double *a, size_t lda, const double *b,
                 size_t ldb, double beta, double *c, size_t ldc);

static gemm *gemm_of(const cpu_operand *a)
{
    return a->transposed ? sherd__gemm_t_f64 : sherd__gemm_f64;
}

/* The panels that are multiplied with each other. */
typedef struct cut {
    cpu_range rows, inner, cols;
} cut;

static int multiply_panel(cpu *c, const cpu_operand *a, const cpu_operand *b, const cut *at,
                          const cpu_sum *out, sherd_diag *d)
{
    cpu_numbers u, v;
    int err = fetch_left(c, a, at->rows, at->inner, &u, d);
    if (!err) err = sherd__cpu_fetch(c, b, (cpu_part){ at->inner, at->cols }, c->right, &v, d);
    if (err) return err;
    return gemm_of(a)(at->rows.len, at->inner.len, at->cols.len, u.at, u.ld, v.at, v.ld,
                      out->add ? 1.0 : 0.0, out->at, out->ld);
}

/* Computes out (rows x cols, row-major, of dtype) = a * b in float64. */
static int multiply_plain(cpu *c, const cpu_operand *a, const cpu_operand *b, uint8_t dtype,
                          uint8_t *out, sherd_diag *d)
{
    size_t m = (size_t)b->cols;
    /* With panels where operands were converted: a float result has the same bits either way. */
    bool whole = a->dtype == SHERD_F64 && b->dtype == SHERD_F64 && !a->converted && !b->converted;
    if (dtype == SHERD_F64 && whole)
        return gemm_of(a)((size_t)cpu_height(a), (size_t)cpu_depth(a), m,
                          (const double *)(const void *)a->values, (size_t)a->cols,
                          (const double *)(const void *)b->values, m, 0.0, (double *)(void *)out,
                          m);
    for (size_t r = 0; r < cpu_height(a); r += CPU_PANEL) {
        for (size_t j = 0; j < m; j += CPU_PANEL) {
            cpu_range rows = cpu_panel(cpu_height(a), r), cols = cpu_panel(m, j);
            bool wide = dtype == SHERD_F64;
            double *to = wide ? (double *)(void *)out + r * m + j
                              : sherd__cpu_use(c, c->acc, rows.len * cols.len);
            size_t ldc = wide ? m : cols.len, k = 0;
            do { /* runs once for an inner size of 0: writes zeros */
                cpu_range inner = cpu_panel(cpu_depth(a), k);
                int err = multiply_panel(c, a, b, &(cut){ rows, inner, cols },
                                         &(cpu_sum){ to, ldc, k > 0 }, d);
                if (err) return err;
            } while ((k += CPU_PANEL) < cpu_depth(a));
            for (size_t i = 0; i < rows.len && !wide; i++)
                cpu_narrow(c->acc + i * cols.len, cols.len, out + 4 * ((r + i) * m + j));
        }
    }
    return SHERD_OK;
}

/* Returns how many columns of the left operand are converted and multiplied at a time. Threads
 * share a strip, so more threads need a longer one. */
static size_t strip_of(const cpu *c, size_t block)
{
    size_t most = c->threads < CPU_PANEL / STRIP ? c->threads * STRIP : CPU_PANEL;
    return most < block ? most : block;
}

/* Computes acc = rows x cols panel of a * b modulo a's prime, canonical; added to acc if `add`.
 * Strips of the inner size are summed from a canonical value on, as long as sums are exact. */
static int residue_panel(cpu *c, const cpu_operand *a, const cpu_operand *b, cpu_part part,
                         bool add, sherd_diag *d)
{
    size_t n = part.rows.len * part.cols.len, block = sherd__prime_block(a->prime), k = 0,
           since = 0;
    size_t most = strip_of(c, block);
    do {
        cpu_range inner = { k, cpu_depth(a) - k < most ? (size_t)(cpu_depth(a) - k) : most };
        if (since + inner.len > block) {
            sherd__residue_from_f64(c->acc, n, a->prime, c->acc);
            since = 0;
        }
        int err = multiply_panel(c, a, b, &(cut){ part.rows, inner, part.cols },
                                 &(cpu_sum){ c->acc, part.cols.len, k || add }, d);
        if (err) return err;
        since += inner.len;
    } while ((k += most) < cpu_depth(a));
    sherd__residue_from_f64(c->acc, n, a->prime, c->acc);
    return SHERD_OK;
}

/* With `add`, the product is added to out, which holds an earlier one. */
static int multiply_modular(cpu *c, const cpu_operand *a, const cpu_operand *b, uint8_t *out,
                            bool add, sherd_diag *d)
{
    size_t m = (size_t)b->cols;
    cpu_operand had = {
        .values = out, .rows = cpu_height(a), .cols = m, .dtype = SHERD__RESIDUES, .prime = a->prime
    };
    for (size_t r = 0; r < cpu_height(a); r += CPU_PANEL) {
        for (size_t j = 0; j < m; j += CPU_PANEL) {
            const cpu_part part = { cpu_panel(cpu_height(a), r), cpu_panel(m, j) };
            const size_t len = part.cols.len;
            sherd__cpu_use(c, c->acc, part.rows.len * len);
            int err = add ? sherd__cpu_convert(c, &had, part, c->acc, d) : SHERD_OK;
            if (!err) err = residue_panel(c, a, b, part, add, d);
            if (err) return err;
            for (size_t i = 0; i < part.rows.len; i++)
                sherd__residue_pack(c->acc + i * len, len, a->prime,
                                    out + SHERD__RESIDUE_BYTES * ((r + i) * m + j));
        }
    }
    return SHERD_OK;
}

static int multiply_residues(cpu *c, const cpu_operand *a, const cpu_operand *b, uint8_t *out,
                             bool add, sherd_diag *d)
{
    return sherd__cpu_limbs(c, a, b, out, add, d) ? SHERD_OK
                                                  : multiply_modular(c, a, b, out, add, d);
}

/*
 * Multiplies modulo prime number q of the task, with windows. The rows of the matrix of windows are
 * laid out as many at a time as are multiplied together, and are in cache then. Sums over all
 * windows are added up in out.
 */
static int multiply_windows(cpu *c, uint32_t q, const sherd__fragment *left,
                            const sherd__fragment *right, uint8_t *out, sherd_diag *d)
{
    const sherd__task *t = c->call->task;
    const size_t each = SHERD__RESIDUE_BYTES;
    const sherd__fragment_info *a = sherd__fragment_info_of(left);
    const sherd__fragment_info *b = sherd__fragment_info_of(right);
    const sherd__windows w = sherd__task_windows(t);
    bool transposed = t->op == SHERD__OP_MULTIPLY_T;
    size_t all = a->rows * w.count, m = b->cols, wb = sherd__wire_size(b->dtype);
    size_t most = (CPU_AREA * sizeof(double) - CPU_LINE) / (each * w.row), whole = CPU_PANEL;
    const uint8_t *images = sherd__group_first(left) + q * a->rows * a->cols * each;
    const uint8_t *v = sherd__group_first(right) + (b->primes ? q * b->rows * m * wb : 0);
    if (transposed) whole *= 2; /* terms, not rows */
    if (most > whole) most = whole;
    if (all == 0) memset(out, 0, t->result.rows * m * each); /* empty sums */
    for (size_t first = 0; first < all; first += most) {
        size_t n = all - first < most ? all - first : most;
        uint8_t *laid = sherd__cpu_bytes(c, c->sum, n * w.row * each);
        sherd__windows_rows(&w, images, each, first, n, laid);
        cpu_operand x = { .values = laid,
                          .rows = n,
                          .cols = w.row,
                          .dtype = SHERD__RESIDUES,
                          .prime = t->primes[q],
                          .transposed = transposed };
        sherd__group g = sherd__group_at(right, 0, v);
        if (transposed) {
            g.values += first * m * wb;
            g.rows = n;
        }
        cpu_operand y = sherd__cpu_operand(c, 1, q, right, g, transposed ? first * m : 0);
        int err = multiply_residues(c, &x, &y, transposed ? out : out + first * m * each,
                                    transposed && first > 0, d);
        if (err) return err;
    }
    return SHERD_OK;
}

/* Multiplies all groups (one, where the left one is transposed); with primes, modulo prime number q
 * of the task. */
static int multiply_groups(cpu *c, uint32_t q, const sherd__fragment *left,
                           const sherd__fragment *right, uint8_t *out, sherd_diag *d)
{
    const sherd__task *t = c->call->task;
    const sherd__fragment_info *a = sherd__fragment_info_of(left);
    const sherd__fragment_info *b = sherd__fragment_info_of(right);
    size_t wa = sherd__wire_size(a->dtype), wb = sherd__wire_size(b->dtype);
    const uint8_t *u = sherd__group_first(left), *v = sherd__group_first(right);
    size_t at_a = 0, at_b = 0;                      /* numbers before the group */
    if (a->primes) u += q * a->rows * a->cols * wa; /* residues: one group, one block per prime */
    if (b->primes) v += q * b->rows * b->cols * wb;
    for (uint32_t g = 0; g < sherd__groups_of(a); g++) {
        sherd__group ga = sherd__group_at(left, g, u), gb = sherd__group_at(right, g, v);
        cpu_operand x = sherd__cpu_operand(c, 0, q, left, ga, at_a);
        cpu_operand y = sherd__cpu_operand(c, 1, q, right, gb, at_b);
        int err = sherd__cpu_check_cancelled(c, d);
        if (!err)
            err = x.prime ? multiply_residues(c, &x, &y, out, false, d)
                          : multiply_plain(c, &x, &y, t->result.dtype, out, d);
        if (!err && cpu_height(&x) == 0) err = sherd__cpu_fill(c, &y, d);
        if (err) return err;
        u += ga.rows * ga.cols * wa;
        v += gb.rows * gb.cols * wb;
        at_a += ga.rows * ga.cols;
        at_b += gb.rows * gb.cols;
        out += ga.rows * gb.cols * sherd__wire_size(t->result.dtype);
    }
    return SHERD_OK;
}

/* --- tasks ---------------------------------------------------------------------------------- */

static int run_multiply(cpu *c, const sherd__task *t, const sherd__fragment *left,
                        const sherd__fragment *right, uint8_t *out, sherd_diag *d)
{
    if (sherd__outer_fits(t, left)) {
        sherd__fragment_source s;
        int err = sherd__outer_source(&s, left, right, NULL);
        if (err) return err;
        err = s.fill(s.ctx, 0, out, t->result.len);
        s.free(s.ctx);
        return err;
    }
    size_t each = t->result.rows * t->result.cols * sherd__wire_size(t->result.dtype);
    uint32_t primes = t->primes_len ? t->primes_len : 1;
    int err = 0;
    bool dense = sherd__fragment_info_of(left)->encoding == SHERD__DENSE;
    bool bytes = t->result.dtype == SHERD__BYTES;
    for (uint32_t q = 0; q < primes && !err; q++)
        err = bytes               ? sherd__cpu_residue_bytes(c, q, left, right, out + q * each, d)
              : t->windows.window ? multiply_windows(c, q, left, right, out + q * each, d)
              : dense             ? multiply_groups(c, q, left, right, out + q * each, d)
                                  : sherd__cpu_csr(c, q, left, right, out + q * each, d);
    return err;
}

static int run_map(cpu *c, const sherd__task *t, const sherd__fragment *left,
                   const sherd__fragment *right, uint8_t *out, sherd_diag *d)
{
    enum { CHUNK = 4096 };
    const sherd__fragment_info *i = sherd__fragment_info_of(left);
    size_t n = i->rows * i->cols;
    cpu_operand a = { .values = sherd__group_first(left), .rows = 1, .cols = n, .dtype = i->dtype };
    cpu_operand b = { .rows = 1, .cols = n };
    if (right) {
        b.values = sherd__group_first(right);
        b.dtype = sherd__fragment_info_of(right)->dtype;
    }
    for (size_t at = 0; at < n; at += CHUNK) {
        const size_t len = n - at < CHUNK ? n - at : CHUNK;
        const cpu_part part = { { 0, 1 }, { at, len } };
        cpu_numbers x, y = { 0 };
        int err = sherd__cpu_fetch(c, &a, part, c->left, &x, d);
        if (!err && right) err = sherd__cpu_fetch(c, &b, part, c->right, &y, d);
        bool wide = t->result.dtype == SHERD_F64;
        double *to = wide ? (double *)(void *)out + at : sherd__cpu_use(c, c->acc, len);
        if (!err) err = sherd__map_f64(t->op, x.at, y.at, len, to);
        if (err) return err;
        if (!wide) cpu_narrow(to, len, out + 4 * at);
    }
    return SHERD_OK;
}

static int cpu_compute(void *ctx, const sherd__call *call, const sherd__fragment *left,
                       const sherd__fragment *right, sherd_diag *d)
{
    cpu *c = ctx;
    const sherd__task *t = call->task;
    uint8_t *out = call->out;
    c->call = call;
    int err = sherd__task_check(t, left, right, d);
    if (!err) err = sherd__task_check_groups(t, left, right, d);
    if (err || t->result.len == 0) return err;
    bool product = t->op == SHERD__OP_MULTIPLY || t->op == SHERD__OP_MULTIPLY_T;
    err = sherd__cpu_forms_begin(c, left, right, d);
    if (!err)
        err = product ? run_multiply(c, t, left, right, out, d)
                      : run_map(c, t, left, right, out, d);
    sherd__cpu_forms_end(c, err);
    forget(c);
    return err;
}

static int cpu_submit(void *ctx, sherd__call *c, sherd_diag *d)
{
    return sherd__hosted_submit_wishing(ctx, cpu_compute, sherd__cpu_wishes, c, d);
}

static int cpu_stream(void *ctx, const sherd__task *t, const sherd__fragment *left,
                      const sherd__fragment *right, sherd__fragment_source *out, uint64_t *memory,
                      sherd_diag *d)
{
    (void)ctx;
    int err = sherd__task_check(t, left, right, d);
    *out = (sherd__fragment_source){ .fill = NULL };
    if (err || t->result.len == 0 || !sherd__outer_fits(t, left)) return err;
    if (sherd__task_defers_groups(t, left)) return SHERD_OK; /* not compared yet */
    return sherd__outer_source(out, left, right, memory);
}

static void cpu_close(void *ctx)
{
    cpu *c = ctx;
    if (!c) return;
    if (c->all) forget(c);
    sherd__team_free(c->team);
    sherd__free(c->all);
    sherd__free(c);
}

static void describe(const cpu *c, sherd__device *out, const sherd__backend_options *opt)
{
    *out = (sherd__device){ .name = "cpu",
                            .threads = sherd__blas_threads(),
                            .does = SHERD__DOES_ALL,
                            .cell = CELL_BYTES,
                            .depth = 2 };
    strncpy(out->core, sherd__blas_core(), sizeof out->core - 1);
    out->gflops = sherd__gemm_gflops(opt->quick ? 160 : 768);
    out->residue_gflops = sherd__limbs_gflops(c->team, CELL, opt->quick ? 160 : 768,
                                              opt->quick ? 160 : 768);
    out->byte_gops = out->threads * (opt->quick ? sherd__bytes_gops(CELL, 256, 384)
                                                : sherd__bytes_gops(256, 768, 768));
}

static const sherd__device *cpu_devices(void *ctx, uint32_t *count)
{
    const cpu *c = ctx;
    *count = 1;
    return &c->device;
}

static int open_team(cpu *c)
{
    unsigned threads = sherd__blas_threads();
    return threads > 1 ? sherd__team_new(&c->team, threads) : SHERD_OK;
}

/* Tests every kind of product that a call may choose. */
static int test_products(sherd_diag *d)
{
    int err = sherd__gemm_selftest(d);
    if (!err) err = sherd__residue_selftest(d);
    if (!err) err = sherd__limbs_selftest(d);
    if (!err) err = sherd__bytes_selftest(d);
    return err;
}

static int cpu_open(void **ctx, const sherd__backend_options *opt, sherd_diag *d)
{
    *ctx = NULL;
    if (opt->threads) sherd__blas_threads_set(opt->threads);
    int err = opt->tested ? SHERD_OK : test_products(d);
    if (err) return err;
    cpu *c = sherd__calloc(1, sizeof *c);
    if (c) c->all = sherd__alloc(4 * CPU_AREA * sizeof(double));
    if (!c || !c->all || open_team(c)) {
        cpu_close(c);
        return sherd__fail_memory(d, "the backend's scratch");
    }
    c->left = c->all;
    c->right = c->all + CPU_AREA;
    c->acc = c->all + 2 * CPU_AREA;
    c->sum = c->all + 3 * CPU_AREA;
    describe(c, &c->device, opt);
    c->threads = c->device.threads;
    *ctx = c;
    return SHERD_OK;
}

const sherd__backend sherd__backend_cpu = {
    .abi = SHERD__BACKEND_ABI,
    .name = "cpu",
    .open = cpu_open,
    .devices = cpu_devices,
    .hold = sherd__hosted_hold,
    .drop = sherd__hosted_drop,
    .submit = cpu_submit,
    .cancel = sherd__hosted_cancel,
    .multiplier = sherd__hosted_multiplier,
    .compute = cpu_compute,
    .stream = cpu_stream,
    .close = cpu_close,
};
