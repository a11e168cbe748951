/*
 * Products that must have the same bits on all machines. The operands are computed with integers
 * only. tests/oracle/exact_v1.py computes them and the products independently, with Python's
 * integers, and prints the SHA-256 of each: tests/vectors/exact.txt.
 */
#ifndef TESTS_VECTORS_EXACT_H
#define TESTS_VECTORS_EXACT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "matrix/exact.h"
#include "matrix/residue.h"
#include "sherd/mat.h"
#include "store/digest.h"

/* Products modulo the first `primes` primes of a table: |a| <= 2^a_bits - 1. The result is
 * recombined and multiplied by 2^-shift. worst: every a is the bound and every b minus the
 * bound. */
typedef struct modular_case {
    const char *name;
    const sherd__primes *table;
    size_t primes, n, k, m;
    uint64_t a_bound, b_bound;
    int shift;
    bool worst;
} modular_case;

#define H(bits) ((UINT64_C(1) << (bits)) - 1)
static const modular_case modular_cases[] = {
    { "default-1", &sherd__primes_default, 1, 9, 1100, 11, 51, 51, 3, false },
    { "default-2", &sherd__primes_default, 2, 9, 2100, 11, H(16), H(16), 32, false },
    { "default-3", &sherd__primes_default, 3, 9, 2100, 11, H(27), H(27), 41, false },
    { "default-4", &sherd__primes_default, 4, 9, 2100, 11, H(38), H(38), 70, false },
    { "wide-1", &sherd__primes_wide, 1, 9, 1100, 11, 61, 61, 3, false },
    { "wide-2", &sherd__primes_wide, 2, 9, 2100, 11, H(17), H(16), 32, false },
    { "wide-3", &sherd__primes_wide, 3, 9, 2100, 11, H(28), H(28), 41, false },
    { "wide-4", &sherd__primes_wide, 4, 9, 2100, 11, H(39), H(39), 70, false },
    { "default-1-worst", &sherd__primes_default, 1, 3, 1140, 5, 51, 51, 0, true },
    { "default-2-worst", &sherd__primes_default, 2, 3, 4096, 5, H(16), H(16), 0, true },
    { "default-3-worst", &sherd__primes_default, 3, 3, 2100, 5, H(27), H(28), 0, true },
    { "default-4-worst", &sherd__primes_default, 4, 3, 2100, 5, H(38), H(39), 0, true },
    { "wide-1-worst", &sherd__primes_wide, 1, 3, 1127, 5, 61, 61, 0, true },
    { "wide-2-worst", &sherd__primes_wide, 2, 3, 2047, 5, H(17), H(17), 0, true },
    { "wide-3-worst", &sherd__primes_wide, 3, 3, 2047, 5, H(28), H(29), 0, true },
    { "wide-4-worst", &sherd__primes_wide, 4, 3, 2047, 5, H(40), H(40), 0, true },
};
#undef H
#define MODULAR_CASES (sizeof modular_cases / sizeof *modular_cases)

/* Products over nodes. Floats are value / 2^20, and a third of them are zero. `bits` is --bits;
 * `bits_b` is --bits-b where a scheme takes it (otherwise both are equal, or integers). */
typedef struct cluster_case {
    const char *name;
    size_t n, k, m;
    sherd_dtype a, b;
    uint64_t a_bound, b_bound;
    uint32_t bits, bits_b;
    uint32_t primes;         /* of plain and permute; 0: one product in f64 is exact */
    uint32_t private_primes; /* of coded schemes; 0: they do not accept integers as wide as these */
    uint32_t nodes_max;      /* keeps the test short */
} cluster_case;

static const cluster_case cluster_cases[] = {
    { "floats-17", 67, 130, 33, SHERD_F64, SHERD_F64, 1 << 30, 1 << 27, 17, 17, 0, 2, 99 },
    { "floats-26", 40, 257, 35, SHERD_F64, SHERD_F64, 1 << 30, 1 << 22, 26, 26, 3, 3, 99 },
    { "floats-deep", 3, 92700, 2, SHERD_F64, SHERD_F64, 1 << 30, 1 << 22, 26, 26, 4, 4, 3 },
    { "bytes", 70, 40, 21, SHERD_U8, SHERD_I8, 255, 127, 17, 8, 0, 1, 99 },
    { "long", 37, 257, 18, SHERD_I64, SHERD_I32, UINT64_C(1) << 36, 2147483647, 17, 17, 4, 0, 99 },
};
#define CLUSTER_CASES (sizeof cluster_cases / sizeof *cluster_cases)

/* --- operands --------------------------------------------------------------------------------- */

static inline uint64_t vector_seed(const char *name, char operand)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (; *name; name++) h = (h ^ (uint8_t)*name) * UINT64_C(1099511628211);
    return (h ^ (uint8_t)operand) * UINT64_C(1099511628211);
}

static inline uint64_t vector_draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Returns a value in [-bound, bound]; one in four is at either end. */
static inline int64_t vector_value(uint64_t *state, uint64_t bound)
{
    uint64_t x = vector_draw(state) << 31;
    x |= vector_draw(state);
    if (x % 4 == 0) return x / 4 % 2 ? (int64_t)bound : -(int64_t)bound;
    return (int64_t)(x / 4 % (2 * bound + 1)) - (int64_t)bound;
}

static inline double *modular_operand(const modular_case *c, char which, size_t len)
{
    uint64_t state = vector_seed(c->name, which), bound = which == 'A' ? c->a_bound : c->b_bound;
    double *x = malloc((len + 1) * sizeof *x);
    for (size_t i = 0; i < len; i++) {
        int64_t v = vector_value(&state, bound);
        if (c->worst) v = which == 'A' ? (int64_t)bound : -(int64_t)bound;
        x[i] = (double)v;
    }
    return x;
}

static inline void vector_put(uint8_t *at, sherd_dtype t, int64_t v, bool zero)
{
    switch (t) {
    case SHERD_F64: memcpy(at, &(double){ zero ? 0.0 : (double)v / 0x1p20 }, 8); break;
    case SHERD_U8: *at = (uint8_t)(v < 0 ? -v : v); break;
    case SHERD_I8: *(int8_t *)at = (int8_t)v; break;
    case SHERD_I32: memcpy(at, &(int32_t){ (int32_t)v }, 4); break;
    default: memcpy(at, &v, 8); break;
    }
}

/* Returns a row-major operand; the caller frees data. */
static inline sherd_view cluster_operand(const cluster_case *c, char which)
{
    bool left = which == 'A';
    sherd_dtype t = left ? c->a : c->b;
    size_t rows = left ? c->n : c->k, cols = left ? c->k : c->m, size = sherd_dtype_size(t);
    uint64_t state = vector_seed(c->name, which), bound = left ? c->a_bound : c->b_bound;
    uint8_t *data = malloc(rows * cols * size);
    for (size_t i = 0; i < rows * cols; i++) {
        int64_t v = vector_value(&state, bound);
        vector_put(data + i * size, t, v, vector_draw(&state) % 3 == 0);
    }
    return sherd_view_c(data, t, rows, cols);
}

/* ---- expected results ------------------------------------------------------------------------ */

static inline void vector_digest(const double *c, size_t n, size_t m, char out[SHERD__DIGEST_TEXT])
{
    sherd__digest g;
    assert_int_equal(sherd__digest_view(&g, sherd_view_c(c, SHERD_F64, n, m), NULL), SHERD_OK);
    sherd__digest_text(&g, out);
}

/* Reads the committed hash of a case. */
static inline void vector_wanted(const char *name, char out[SHERD__DIGEST_TEXT])
{
    char line[200], have[100], hash[SHERD__DIGEST_TEXT];
    FILE *f = fopen("tests/vectors/exact.txt", "re");
    assert_non_null(f);
    *out = '\0';
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "%99s %64s", have, hash) == 2 && !strcmp(have, name))
            memcpy(out, hash, sizeof hash);
    fclose(f);
    if (!*out) fail_msg("tests/vectors/exact.txt has no line for %s", name);
}

/* Computes the case modulo its primes by BLAS and recombines it. */
static inline double *modular_product(const modular_case *c, const double *a, const double *b)
{
    size_t n = c->n, k = c->k, m = c->m;
    double *ra = malloc(n * k * 8), *rb = malloc(k * m * 8), *rc = malloc(c->primes * n * m * 8);
    double *out = malloc(n * m * 8);
    const double *part[SHERD__TABLE_PRIMES];
    sherd__crt crt;
    for (size_t q = 0; q < c->primes; q++) {
        uint32_t p = c->table->p[q];
        double *to = rc + q * n * m;
        sherd__residue_from_f64(a, n * k, p, ra);
        sherd__residue_from_f64(b, k * m, p, rb);
        assert_int_equal(sherd__residue_gemm(p, n, k, m, ra, k, rb, m, to, m), SHERD_OK);
        part[q] = to;
    }
    assert_int_equal(sherd__crt_init(&crt, c->table->p, c->primes), SHERD_OK);
    sherd__crt_f64(&crt, part, n * m, c->shift, out);
    free(ra);
    free(rb);
    free(rc);
    return out;
}

#endif
