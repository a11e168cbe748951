/*
 * Private schemes erase masks, shares, check vectors and projections before they return the memory
 * to the heap. Freeing is wrapped: a block of a certain size that still has many nonzero bytes is a
 * failure. So are many nonzero bytes on the stack of a thread that encoded.
 * link: -Wl,--wrap=sherd__free,--wrap=sherd__alloc,--wrap=sherd__alloc_large,--wrap=sherd__calloc
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_DEFINED(p, n) ((void)0)
#endif

#include "core/alloc.h"
#include "crypto/byte_code.h"
#include "crypto/lagrange.h"
#include "crypto/mask.h"
#include "matrix/exact.h"
#include "matrix/fixed.h"
#include "schemes/blind/blind.h"
#include "schemes/share/share.h"
#include "tests/support/bytes_paths.h"

enum { LARGE = 2048, ROWS = 64, INNER = 48, COLS = 56 };

static size_t watched, left; /* large blocks freed, and those of them that were not erased */

void __real_sherd__free(void *p);
void __wrap_sherd__free(void *p);
void *__real_sherd__alloc(size_t n);
void *__wrap_sherd__alloc(size_t n);
void *__real_sherd__alloc_large(size_t n);
void *__wrap_sherd__alloc_large(size_t n);
void *__real_sherd__calloc(size_t count, size_t size);
void *__wrap_sherd__calloc(size_t count, size_t size);

/* Blocks start as zeros, including the allocator's slack, so that bytes that were never written do
 * not count as left. */
static void *cleared(void *p)
{
    return p ? memset(p, 0, malloc_usable_size(p)) : NULL;
}

void *__wrap_sherd__alloc(size_t n)
{
    return cleared(__real_sherd__alloc(n));
}

void *__wrap_sherd__alloc_large(size_t n)
{
    return cleared(__real_sherd__alloc_large(n));
}

void *__wrap_sherd__calloc(size_t count, size_t size)
{
    return cleared(__real_sherd__calloc(count, size));
}

void __wrap_sherd__free(void *p)
{
    size_t n = p ? malloc_usable_size(p) : 0, some = 0;
    VALGRIND_MAKE_MEM_DEFINED(p, n); /* the gaps in structs are examined, too */
    for (size_t i = 0; n >= LARGE && i < n; i++) some += ((const volatile uint8_t *)p)[i] != 0;
    watched += n >= LARGE;
    left += n >= LARGE && some > n / 16; /* the library cannot erase the allocator's slack */
    __real_sherd__free(p);
}

static void fill(void *ctx, void *out, size_t len)
{
    uint32_t *x = ctx;
    uint8_t *to = out;
    for (size_t i = 0; i < len; i++) to[i] = (uint8_t)((*x = *x * 1664525 + 1013904223) >> 24);
}

static void watch(void)
{
    watched = left = 0;
}

static void a_block_that_is_not_erased_is_detected(void **state)
{
    (void)state;
    watch();
    uint8_t *p = sherd__alloc(2 * LARGE);
    memset(p, 7, 2 * LARGE);
    sherd__free(p);
    assert_int_equal(watched, 1);
    assert_int_equal(left, 1);
}

static void freed_masks_leave_no_data_in_memory(void **state)
{
    (void)state;
    static double out[8 * 4096];
    uint32_t x = 5;
    const sherd__entropy e = { fill, &x };
    sherd__masks *m;
    watch();
    assert_int_equal(sherd__masks_new(&m, &e), 0);
    assert_int_equal(sherd__masks_row(m, &(sherd__mask_id){ SHERD__MASK_LEFT, 0, 0, 5931641, 4096 },
                                      3, out),
                     0);
    sherd__masks_free(m);
    assert_true(watched > 0);
    assert_int_equal(left, 0);
}

/* Makes and reads every share of both operands. An answer of noise causes all check vectors to be
 * drawn again. */
static void use(sherd__hiding *h)
{
    sherd__scheme_shape s;
    h->ops->shape(h->ctx, &s);
    uint8_t *noise = calloc(1, s.result_max), *bytes = malloc(1 << 20);
    for (uint32_t t = 0; t < s.tiles; t++)
        for (uint32_t p = 0; p < s.panels; p++)
            for (uint32_t i = 0; i < s.slots; i++) {
                const sherd__cell c = { i, t, p };
                sherd__cell_work w;
                sherd__fragment *v;
                if (i == 3)
                    continue; /* its share was made with the others, but is never
                                       * requested */
                assert_int_equal(h->ops->hide(h->ctx, c, &w), 0);
                uint64_t len = sherd__fragment_info_of(w.left)->len;
                assert_true(len <= 1 << 20);
                assert_int_equal(sherd__fragment_read(w.left, 0, bytes, len), 0);
                assert_int_equal(h->ops->resident(h->ctx, i, t, &v), 0);
                len = sherd__fragment_info_of(v)->len;
                assert_true(len <= 1 << 20);
                assert_int_equal(sherd__fragment_read(v, 0, bytes, len), 0);
                sherd__fragment_free(w.left);
                sherd__fragment_free(v);
                if (i == 1) assert_int_equal(h->ops->check(h->ctx, c, noise), SHERD_EWRONG);
            }
    free(noise);
    free(bytes);
}

static void freed_shares_leave_no_data_in_memory(void **state)
{
    (void)state;
    static double a[ROWS * INNER], b[INNER * COLS], c[ROWS * COLS];
    uint32_t x = 9;
    for (size_t i = 0; i < ROWS * INNER; i++) a[i] = (double)(i % 101) / 7 + 1;
    for (size_t i = 0; i < INNER * COLS; i++) b[i] = (double)(i % 89) / 9 + 1;
    sherd__share_params p = {
        .a = sherd_view_c(a, SHERD_F64, ROWS, INNER),
        .ldc = COLS,
        .c = c,
        .b = sherd_view_c(b, SHERD_F64, INNER, COLS),
        .by = &sherd__code_lagrange,
        .code = { 2, 1, 5 },
        .panel_rows = 16,
        .tile_cols = 28,
        .primes_len = 2,
        .entropy = { fill, &x },
    };
    sherd__hiding h;
    memcpy(p.primes, sherd__primes_default.p, p.primes_len * sizeof p.primes[0]);
    assert_int_equal(sherd__fixed_choose(p.a, 17, "A", &p.fixed_a, NULL), 0);
    assert_int_equal(sherd__fixed_choose(p.b, 17, "B", &p.fixed_b, NULL), 0);
    watch();
    assert_int_equal(sherd__share_open(&h, &p), 0);
    use(&h);
    h.ops->free(h.ctx);
    assert_true(watched > 20);
    assert_int_equal(left, 0);
}

/* As above, but every allocation of hiding fails once. */
static void a_share_that_could_not_be_sent_leaves_no_data_in_memory(void **state)
{
    (void)state;
    static double a[ROWS * INNER], b[INNER * COLS], c[ROWS * COLS];
    sherd__hiding h;
    sherd__cell_work w;
    size_t reached = 1;
    for (size_t i = 0; i < ROWS * INNER; i++) a[i] = (double)(i % 101) / 7 + 1;
    for (size_t i = 0; i < INNER * COLS; i++) b[i] = (double)(i % 89) / 9 + 1;
    for (size_t n = 1; reached; n++) {
        uint32_t x = 9;
        sherd__share_params p = {
            .a = sherd_view_c(a, SHERD_F64, ROWS, INNER),
            .ldc = COLS,
            .c = c,
            .b = sherd_view_c(b, SHERD_F64, INNER, COLS),
            .by = &sherd__code_lagrange,
            .code = { 2, 1, 5 },
            .panel_rows = 64,
            .tile_cols = 56,
            .primes_len = 2,
            .entropy = { fill, &x },
        };
        memcpy(p.primes, sherd__primes_default.p, p.primes_len * sizeof p.primes[0]);
        assert_int_equal(sherd__fixed_choose(p.a, 17, "A", &p.fixed_a, NULL), 0);
        assert_int_equal(sherd__fixed_choose(p.b, 17, "B", &p.fixed_b, NULL), 0);
        watch();
        assert_int_equal(sherd__share_open(&h, &p), 0);
        sherd__alloc_fail_nth(n);
        int err = h.ops->hide(h.ctx, (sherd__cell){ 0, 0, 0 }, &w);
        reached = sherd__alloc_fail_nth(0) >= n;
        assert_int_equal(err, reached ? SHERD_ENOMEM : 0);
        if (!err) sherd__fragment_free(w.left);
        h.ops->free(h.ctx);
        if (left) fail_msg("allocation %zu: %zu of %zu blocks", n, left, watched);
    }
}

static int no_product(void *ctx, uint64_t row, uint32_t q, size_t from, size_t n, uint8_t *out)
{
    (void)ctx, (void)row, (void)q, (void)from;
    memset(out, 1, 3 * n);
    return SHERD_OK;
}

/* Rows of R*B that were subtracted, and masked rows that could not be sent. */
static void masked_rows_leave_no_data_in_memory(void **state)
{
    (void)state;
    enum { WIDE = 1024 };
    static double a[ROWS * INNER], b[INNER * WIDE], c[ROWS * WIDE];
    const uint8_t key[32] = { 7 };
    sherd__hiding h;
    sherd__cell_work w;
    size_t reached = 1;
    for (size_t i = 0; i < ROWS * INNER; i++) a[i] = (double)(i % 101) / 7 + 1;
    for (size_t i = 0; i < INNER * WIDE; i++) b[i] = (double)(i % 89) / 9 + 1;
    uint8_t *answer = calloc(ROWS * WIDE, 9);
    for (size_t n = 1; reached; n++) {
        uint32_t x = 9;
        sherd__blind_params p = {
            .a = sherd_view_c(a, SHERD_F64, ROWS, INNER),
            .ldc = WIDE,
            .c = c,
            .b = sherd_view_c(b, SHERD_F64, INNER, WIDE),
            .slots = 1,
            .panel_rows = ROWS,
            .tile_cols = WIDE,
            .primes_len = 2,
            .source = { no_product, NULL },
            .entropy = { fill, &x },
        };
        memcpy(p.primes, sherd__primes_default.p, p.primes_len * sizeof p.primes[0]);
        assert_int_equal(sherd__fixed_choose(p.a, 17, "A", &p.fixed_a, NULL), 0);
        assert_int_equal(sherd__fixed_choose(p.b, 17, "B", &p.fixed_b, NULL), 0);
        watch();
        assert_int_equal(sherd__blind_open(&h, &p), 0);
        assert_int_equal(sherd__blind_arm(&h, key, 0), 0);
        sherd__alloc_fail_nth(n);
        int err = h.ops->hide(h.ctx, (sherd__cell){ 0, 0, 0 }, &w);
        reached = sherd__alloc_fail_nth(0) >= n;
        assert_int_equal(err, reached ? SHERD_ENOMEM : 0);
        if (!err) {
            assert_int_equal(h.ops->fold(h.ctx, (sherd__cell){ 0, 0, 0 }, answer), 0);
            sherd__fragment_free(w.left);
        }
        h.ops->free(h.ctx);
        if (left) fail_msg("allocation %zu: %zu of %zu blocks", n, left, watched);
    }
    free(answer);
}

enum { STACK = 1 << 20, WORDS = 517, TERMS_MOST = 12 };

static double terms[TERMS_MOST][WORDS];

typedef struct encoding {
    uint32_t blocks;
    bool usual; /* usual weights, for which the fastest path is used */
    uint8_t *out[4];
} encoding;

static void *encode(void *arg)
{
    encoding *e = arg;
    const double *in[TERMS_MOST];
    const sherd__lcc code = { e->blocks - 1, 1, 4 };
    double w[4 * TERMS_MOST];
    for (uint32_t j = 0; j < e->blocks; j++) {
        in[j] = terms[j];
        for (int i = 0; i < 4; i++) w[(size_t)i * e->blocks + j] = 12345 * (i + 1);
    }
    for (uint32_t i = 0; e->usual && i < 4; i++)
        assert_int_equal(sherd__lcc_encode_weights(&code, 5931641, i, w + (size_t)i * e->blocks),
                         0);
    if (e->blocks) sherd__lcc_encode(w, 4, e->blocks, 5931641, in, WORDS, e->out);
    memset(w, 0, sizeof w);
    return NULL;
}

/* Returns the number of nonzero bytes on the stack of a thread that encoded. */
__attribute__((no_sanitize("address"))) static size_t left_on_stack(void *(*work)(void *), void *e)
{
    pthread_attr_t attr;
    pthread_t thread;
    size_t some = 0;
    uint8_t *stack = NULL;
    assert_int_equal(posix_memalign((void **)&stack, 4096, STACK), 0);
    memset(stack, 0, STACK);
    pthread_attr_init(&attr);
    assert_int_equal(pthread_attr_setstack(&attr, stack, STACK), 0);
    assert_int_equal(pthread_create(&thread, &attr, work, e), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    VALGRIND_MAKE_MEM_DEFINED(stack, STACK);
    for (size_t i = 0; i < STACK; i++) some += ((const volatile uint8_t *)stack)[i] != 0;
    free(stack);
    return some;
}

static void encoding_leaves_no_terms_on_its_stack(void **state)
{
    (void)state;
    static const uint32_t blocks[] = { 4, 4, 12 };
    encoding e = { .blocks = 0 };
    for (int j = 0; j < TERMS_MOST; j++)
        for (int i = 0; i < WORDS; i++) terms[j][i] = (i * 7919 + j * 104729) % 2000003 + 300000;
    for (int i = 0; i < 4; i++) e.out[i] = calloc(WORDS, 3);
    size_t nothing = left_on_stack(encode, &e); /* the thread's own */
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        e.blocks = blocks[i];
        e.usual = i == 0;
        size_t some = left_on_stack(encode, &e);
        if (some > nothing + 2000) fail_msg("%zu bytes, %zu without", some, nothing);
        assert_int_not_equal(e.out[3][3 * WORDS - 2], 0);
    }
    for (int i = 0; i < 4; i++) free(e.out[i]);
}

enum { BYTES = 1000, BYTE_ROWS = 32 };

static uint8_t bytes[BYTE_ROWS][BYTES];

static void *no_work(void *arg)
{
    return arg;
}

static void *combine_bytes(void *arg)
{
    const uint8_t *in[BYTE_ROWS];
    uint8_t *out = arg;
    for (int i = 0; i < BYTE_ROWS; i++) in[i] = bytes[i];
    sherd__bytes_combine((const int8_t *)bytes[0], 1, BYTE_ROWS, 251, false, in, BYTES, &out);
    return NULL;
}

static void *project_bytes(void *arg)
{
    sherd__bytes_project((const int8_t *)bytes[0], BYTE_ROWS, bytes[0], BYTE_ROWS, BYTES, BYTES,
                         arg, BYTES);
    return NULL;
}

static void codes_of_bytes(void)
{
    static int32_t out[SHERD__BYTE_CHECKS * BYTES];
    size_t nothing = left_on_stack(no_work, NULL);
    for (int i = 0; i < BYTE_ROWS; i++)
        for (int j = 0; j < BYTES; j++) bytes[i][j] = (uint8_t)(1 + (i * 7919 + j * 104729) % 255);
    size_t combined = left_on_stack(combine_bytes, out);
    size_t projected = left_on_stack(project_bytes, out);
    if (combined > nothing + 2000 || projected > nothing + 2000)
        fail_msg("%zu and %zu bytes, %zu without", combined, projected, nothing);
}

static void codes_of_bytes_leave_no_terms_on_their_stack(void **state)
{
    (void)state;
    on_every_path(codes_of_bytes);
}

/* A unit of bytes is not freed: the words of the handle are erased at once. */
static void masks_of_bytes_leave_no_data_in_memory(void **state)
{
    (void)state;
    static uint8_t out[4096];
    uint8_t key[32] = { 1 };
    size_t some = 0;
    sherd__masks *m;
    const sherd__mask_id id = { SHERD__MASK_LEFT, 0, 0, 251, 0 };
    assert_int_equal(sherd__masks_from_key(&m, key), 0);
    assert_int_equal(sherd__masks_bytes(m, &id, 0, sizeof out, out), 0);
    size_t n = malloc_usable_size(m);
    VALGRIND_MAKE_MEM_DEFINED(m, n);
    for (size_t i = 0; i < n; i++) some += ((const volatile uint8_t *)m)[i] != 0;
    assert_true(some < 200); /* pointers and one id */
    sherd__masks_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_that_is_not_erased_is_detected),
        cmocka_unit_test(freed_masks_leave_no_data_in_memory),
        cmocka_unit_test(freed_shares_leave_no_data_in_memory),
        cmocka_unit_test(a_share_that_could_not_be_sent_leaves_no_data_in_memory),
        cmocka_unit_test(masked_rows_leave_no_data_in_memory),
        cmocka_unit_test(encoding_leaves_no_terms_on_its_stack),
        cmocka_unit_test(codes_of_bytes_leave_no_terms_on_their_stack),
        cmocka_unit_test(masks_of_bytes_leave_no_data_in_memory),
    };
    return cmocka_run_group_tests_name("crypto/wipe", tests, NULL, NULL);
}
