/*
 * share and share1 between a real backend and the exact reference: the node's arithmetic accepts
 * what the scheme hides, in both orientations, and its answers are accepted and decode to the exact
 * bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rand.h"
#include "crypto/fragment_make.h"
#include "crypto/byte_code.h"
#include "crypto/inner.h"
#include "matrix/exact.h"
#include "matrix/reference.h"
#include "matrix/residue.h"
#include "node/backend.h"
#include "node/check.h"
#include "schemes/share/share.h"

static void *backend;
static sherd__seeded rng_state;
static sherd__entropy rng;

static int open_backend(void **state)
{
    (void)state;
    sherd__backend_options opt = { .threads = 1, .quick = true };
    rng = sherd__entropy_seeded(&rng_state, 13);
    return sherd__backend_cpu.open(&backend, &opt, NULL);
}

static int close_backend(void **state)
{
    (void)state;
    sherd__backend_cpu.close(backend);
    return 0;
}

static size_t below(size_t n)
{
    return (size_t)sherd__entropy_below(&rng, n);
}

static double *random_matrix(size_t rows, size_t cols)
{
    double *x = malloc((rows * cols + 1) * sizeof *x);
    for (size_t i = 0; i < rows * cols; i++) x[i] = ((double)below(20001) - 10000) / 64;
    return x;
}

/* The bytes of a fragment in memory, as a node would have them. */
static sherd__fragment *arrive(sherd__fragment *sent)
{
    const sherd__fragment_info *info = sherd__fragment_info_of(sent);
    uint8_t *bytes = sherd__alloc_pages(info->len); /* aligned, as the buffers of nodes are */
    sherd__fragment *f;
    assert_int_equal(sherd__fragment_read(sent, 0, bytes, (size_t)info->len), 0);
    assert_int_equal(sherd__fragment_table_check(info, bytes, NULL), 0);
    assert_int_equal(sherd__fragment_take(&f, info, bytes, NULL, NULL), 0);
    sherd__fragment_free(sent);
    return f;
}

static uint8_t *answer(const sherd__hiding *h, const sherd__scheme_shape *s, sherd__cell c)
{
    sherd__cell_work w;
    sherd_diag d = { 0 };
    assert_int_equal(h->ops->hide(h->ctx, c, &w), 0);
    if (!w.left) assert_int_equal(h->ops->left(h->ctx, c.slot, c.panel, &w.left), 0);
    if (!w.right) assert_int_equal(h->ops->resident(h->ctx, c.slot, c.tile, &w.right), 0);
    sherd__fragment *left = arrive(w.left), *right = arrive(w.right);
    sherd__task task = { .job = 1,
                         .task = 1,
                         .attempt = 1,
                         .result = w.result,
                         .op = s->transposed ? SHERD__OP_MULTIPLY_T : SHERD__OP_MULTIPLY,
                         .primes_len = s->primes_len };
    memcpy(task.primes, s->primes, sizeof s->primes);
    uint8_t *body = malloc(w.result.len + 1);
    if (sherd__task_check(&task, left, right, &d) ||
        sherd__backend_cpu.compute(backend, &(sherd__call){ .task = &task, .out = body }, left,
                                   right, &d))
        fail_msg("%s", d.message);
    sherd__fragment_free(left);
    sherd__fragment_free(right);
    assert_int_equal(h->ops->check(h->ctx, c, body), 0);
    return body;
}

static void run_position(const sherd__hiding *h, const sherd__scheme_shape *s, uint32_t t,
                         uint32_t p)
{
    uint32_t slot[16], n = 0;
    const uint8_t *body[16];
    for (uint32_t skip = s->slots - s->threshold, i = 0; i < s->slots; i++) {
        if (skip && below(s->slots - i) < skip) {
            skip--;
            continue;
        }
        slot[n] = i;
        body[n++] = answer(h, s, (sherd__cell){ i, t, p });
    }
    assert_int_equal(h->ops->decode(h->ctx, t, p, slot, body, n), 0);
    for (uint32_t i = 0; i < n; i++) free((void *)(uintptr_t)body[i]);
}

static void run_all(const sherd__hiding *h, sherd_view left, sherd_view b, const sherd__fixed *fa,
                    const sherd__fixed *fb, const double *c)
{
    sherd__scheme_shape s;
    double *ref = calloc(left.rows * b.cols + 1, sizeof *ref);
    h->ops->shape(h->ctx, &s);
    for (uint32_t t = 0; t < s.tiles; t++)
        for (uint32_t p = 0; p < s.panels; p++) run_position(h, &s, t, p);
    assert_int_equal(h->ops->finish(h->ctx), 0);
    assert_int_equal(sherd__reference_i128(&(sherd__matrices){ left, b, ref, b.cols }, fa, fb,
                                           NULL),
                     0);
    assert_memory_equal(c, ref, left.rows * b.cols * sizeof *ref);
    free(ref);
}

static void multiply(size_t n, size_t k, size_t m, bool public_b, bool stays, unsigned bits,
                     bool bytes)
{
    size_t primes, terms = n > k ? n : k;
    uint32_t blocks = 1 + (uint32_t)below(n < 3 ? n : 3);
    double *da = random_matrix(n, k), *db = random_matrix(k, m), *dd = random_matrix(n, m);
    double *c = calloc((n + k) * m + 1, sizeof *c);
    sherd_view a = sherd_view_c(da, SHERD_F64, n, k), b = sherd_view_c(db, SHERD_F64, k, m);
    sherd_view d = sherd_view_c(dd, SHERD_F64, n, m);
    sherd__share_params p = { .a = a,
                              .b = b,
                              .c = c,
                              .ldc = m,
                              .by = &sherd__code_lagrange,
                              .code = { blocks, 1, 8 },
                              .public_b = public_b,
                              .left_stays = stays,
                              .entropy = rng,
                              .panel_rows = 1 + below(below(2) ? n : 2),
                              .tile_cols = 1 + below(m) };
    sherd__fixed fd;
    sherd__hiding h;
    if (stays && below(3)) p.part_rows = 1 + below(n);
    if (!stays && !public_b && below(2)) {
        p.by = &sherd__code_inner;
        p.code.shares = blocks + 2;
    }
    assert_int_equal(sherd__fixed_choose(a, bits, "A", &p.fixed_a, NULL), 0);
    assert_int_equal(sherd__fixed_choose(b, bits, "B", &p.fixed_b, NULL), 0);
    assert_int_equal(sherd__fixed_choose(d, bits, "D", &fd, NULL), 0);
    primes = sherd__bytes_primes_needed(terms, p.fixed_a.bound, p.fixed_b.bound);
    p.bytes = bytes && !public_b && primes;
    if (!p.bytes)
        assert_int_equal(sherd__exact_primes_needed(terms, p.fixed_a.bound, p.fixed_b.bound,
                                                    &sherd__primes_default, &primes),
                         0);
    p.primes_len = (uint32_t)primes;
    memcpy(p.primes, p.bytes ? sherd__byte_primes : sherd__primes_default.p,
           primes * sizeof p.primes[0]);
    assert_int_equal(sherd__share_open(&h, &p), 0);
    run_all(&h, a, b, &p.fixed_a, &p.fixed_b, c);
    if (stays && !public_b) {
        assert_int_equal(sherd__share_next(&h,
                                           &(sherd__kept_product){ (sherd_rows){ 0, n }, true, d, c,
                                                                   m },
                                           &fd),
                         0);
        run_all(&h, sherd_view_t(a), d, &p.fixed_a, &fd, c);
    }
    for (unsigned i = 0; stays && p.part_rows && i < 4; i++) {
        size_t parts = (n - 1) / p.part_rows + 1, from = below(parts), to = from + 1;
        to += below(parts - from);
        sherd_rows rows = { from * p.part_rows, 0 };
        rows.count = (to * p.part_rows < n ? to * p.part_rows : n) - rows.first;
        sherd_view some = sherd_view_sub(a, rows.first, rows.count, 0, k);
        sherd_view dy = sherd_view_sub(d, rows.first, rows.count, 0, m);
        bool back = i % 2 && !public_b;
        assert_int_equal(sherd__share_next(&h,
                                           &(sherd__kept_product){ rows, back, back ? dy : b, c,
                                                                   m },
                                           back ? &fd : &p.fixed_b),
                         0);
        run_all(&h, back ? sherd_view_t(some) : some, back ? dy : b, &p.fixed_a,
                back ? &fd : &p.fixed_b, c);
    }
    h.ops->free(h.ctx);
    free(da);
    free(db);
    free(dd);
    free(c);
}

static void coded_products_are_exact(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 60; i++)
        multiply(1 + below(30), 1 + below(30), 1 + below(30), i % 3 == 0, i % 2,
                 (unsigned[]){ 2, 9, 17, 30, 34, 40 }[below(6)], below(2));
}

static void inner_sizes_beyond_a_block_are_exact(void **state)
{
    (void)state;
    for (unsigned bytes = 0; bytes < 2; bytes++) {
        multiply(20, 2500, 9, false, true, 17, bytes);
        multiply(2500, 20, 9, false, true, 24, bytes);
        multiply(300, 700, 290, false, bytes, 17, bytes);
    }
    multiply(10, 2500, 9, true, false, 26, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coded_products_are_exact),
        cmocka_unit_test(inner_sizes_beyond_a_block_are_exact),
    };
    return cmocka_run_group_tests_name("crypto/share", tests, open_backend, close_backend);
}
