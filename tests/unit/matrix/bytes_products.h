/* Products of byte residues by one path, compared with sums in 64 bits. Operands and results end at
 * the end of mapped memory, so that one byte beyond is a fault. */
#ifndef TESTS_UNIT_MATRIX_BYTES_PRODUCTS_H
#define TESTS_UNIT_MATRIX_BYTES_PRODUCTS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "matrix/residue_bytes.h"
#include "tests/support/fenced.h"
#include "tests/support/under_valgrind.h"

enum { RANDOM = 0, WORST = 1, BEYOND = 2, LARGE = 3 };

typedef struct product {
    sherd__bytes_product x;
    fenced rows, columns, a, b, out;
    int64_t *sums; /* of the product, not reduced */
} product;

static void fill(uint8_t *at, size_t n, uint32_t p, int half, int how)
{
    for (size_t i = 0; i < n; i++) {
        int v = (int)draw(p) - half;
        if (how == WORST) v = half ? -half : (int)p - 1;
        if (how == LARGE) v = half ? (int)draw(16) - half : (int)(p - 1 - draw(16));
        if (how == BEYOND) v = half ? -128 : 255;
        at[i] = (uint8_t)v;
    }
}

static int64_t *sums_of(const product *p, size_t n, size_t k, size_t m)
{
    int64_t *sums = calloc(n * m + 1, sizeof *sums);
    assert_non_null(sums);
    for (size_t i = 0; i < n; i++)
        for (size_t l = 0; l < k; l++)
            for (size_t j = 0; j < m; j++)
                sums[i * m + j] += p->rows.at[i * k + l] * (int8_t)p->columns.at[l * m + j];
    return sums;
}

static void open_product(product *p, uint32_t prime, size_t n, size_t k, size_t m, int how)
{
    *p = (product){ .rows = fence(n * k),
                    .columns = fence(k * m),
                    .a = fence(sherd__bytes_laid(n, k)),
                    .b = fence(sherd__bytes_laid(m, k)),
                    .out = fence(n * m) };
    fill(p->rows.at, n * k, prime, 0, how);
    fill(p->columns.at, k * m, prime, (int)(prime - 1) / 2, how);
    p->sums = sums_of(p, n, k, m);
    sherd__bytes_lay_rows(p->rows.at, n, k, k, p->a.at);
    sherd__bytes_lay_columns((const int8_t *)p->columns.at, k, m, m, p->b.at);
    p->x = (sherd__bytes_product){
        .p = prime, .n = n, .k = k, .m = m, .a = p->a.at, .b = p->b.at, .out = p->out.at, .ld = m
    };
}

static void close_product(product *p)
{
    const fenced all[] = { p->rows, p->columns, p->a, p->b, p->out };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) munmap(all[i].map, all[i].size);
    free(p->sums);
}

static void compare(const product *p, const uint8_t *before)
{
    const sherd__bytes_product *x = &p->x;
    for (size_t i = 0; i < x->n; i++)
        for (size_t j = 0; j < x->m; j++) {
            int64_t sum = p->sums[i * x->m + j] + (before ? before[i * x->m + j] : 0);
            int64_t want = (sum % (int64_t)x->p + x->p) % x->p;
            if (p->out.at[i * x->m + j] != want)
                fail_msg("(%zu, %zu) of %zu x %zu x %zu modulo %u: %u, expected %d", i, j, x->n,
                         x->k, x->m, x->p, p->out.at[i * x->m + j], (int)want);
        }
    for (uint8_t *at = p->out.map; at < p->out.at; at++) assert_int_equal(*at, 0xa5);
}

/* Computes and compares the product and the sum with what is there. */
static void check_sums(product *p)
{
    size_t len = p->x.n * p->x.m;
    memset(p->out.at, 0x5a, len);
    p->x.add = false;
    assert_int_equal(sherd__bytes_multiply(&p->x, NULL), SHERD_OK);
    compare(p, NULL);
    uint8_t *before = malloc(len + 1);
    memcpy(before, p->out.at, len);
    p->x.add = true;
    assert_int_equal(sherd__bytes_multiply(&p->x, NULL), SHERD_OK);
    compare(p, before);
    free(before);
}

/* The same product with strips apart, whose gaps are filled, and with A in rows, apart as well. */
static void check_strides(product *p)
{
    const size_t n = p->x.n, k = p->x.k, m = p->x.m, strip = sherd__bytes_laid(1, k), gap = 192;
    const size_t down = (n + 15) / 16, across = (m + 15) / 16;
    if (n == 0 || m == 0 || k == 0) return;
    fenced a = fence(down * (strip + gap) - gap), b = fence(across * (strip + gap) - gap);
    fenced rows = fence((n - 1) * (k + 3) + k);
    for (size_t i = 0; i < down; i++) memcpy(a.at + i * (strip + gap), p->a.at + i * strip, strip);
    for (size_t i = 0; i < across; i++)
        memcpy(b.at + i * (strip + gap), p->b.at + i * strip, strip);
    for (size_t i = 0; i < n; i++) memcpy(rows.at + i * (k + 3), p->rows.at + i * k, k);
    const sherd__bytes_product plain = p->x;
    p->x.a = a.at;
    p->x.b = b.at;
    p->x.a_strip = p->x.b_strip = strip + gap;
    check_sums(p);
    p->x.a_strip = 0;
    p->x.a = rows.at;
    p->x.a_ld = k + 3;
    check_sums(p);
    p->x = plain;
    p->x.a = p->rows.at;
    p->x.a_ld = k;
    check_sums(p);
    p->x = plain;
    munmap(a.map, a.size);
    munmap(b.map, b.size);
    munmap(rows.map, rows.size);
}

static void check(uint32_t prime, size_t n, size_t k, size_t m, int how)
{
    product p;
    open_product(&p, prime, n, k, m, how);
    check_sums(&p);
    check_strides(&p);
    close_product(&p);
}

/* Checks the sums alone, which take long enough. */
static void check_long(uint32_t prime, size_t n, size_t k, size_t m, int how)
{
    product p;
    open_product(&p, prime, n, k, m, how);
    check_sums(&p);
    close_product(&p);
}

static void products_of_any_shape(void)
{
    static const size_t edges[] = {
        1, 2, 7, 8, 9, 15, 16, 17, 33, 48, 49, 63, 64, 65, 97, 129, 200
    };
    enum { EDGES = sizeof edges / sizeof *edges };
    for (unsigned i = 0; i < (under_valgrind() ? 60 : 200); i++)
        check(sherd__byte_primes[i % SHERD__BYTE_PRIMES], edges[draw(EDGES)], edges[draw(EDGES)],
              edges[draw(EDGES)], (int)(i % 3));
    check(251, 20, 0, 20, RANDOM);
    check(3, 20, 70, 20, RANDOM);
}

#endif
