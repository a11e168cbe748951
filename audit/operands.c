/* Operands for games and controls if no real ones are given. */
#include <math.h>
#include <string.h>

#include "audit/stats_internal.h"
#include "core/alloc.h"
#include "core/bytes.h"

int sherd__audit_blocks(double ***out, uint32_t blocks, size_t n)
{
    size_t bytes, heads = blocks * sizeof(double *);
    if (!sherd__mul(n, blocks * sizeof(double), &bytes) || !sherd__add(bytes, heads, &bytes))
        return SHERD_ENOMEM;
    double **v = sherd__calloc(1, bytes);
    if (!v) return SHERD_ENOMEM;
    for (uint32_t j = 0; j < blocks; j++) v[j] = (double *)(v + blocks) + j * n;
    *out = v;
    return SHERD_OK;
}

void sherd__audit_make_up(const sherd__entropy *e, double *const *blocks, uint32_t len, size_t rows,
                          size_t cols)
{
    for (uint32_t j = 0; j < len; j++) {
        for (size_t r = 0; r < rows; r++) {
            uint64_t bright = 1 + sherd__entropy_below(e, 8); /* eighths */
            for (size_t c = 0; c < cols; c++) {
                uint64_t word = sherd__entropy_u64(e);
                bool blank = word % 5 != 0;
                blocks[j][r * cols + c] = blank ? 0 : (double)(1 + (word >> 8) % 255 * bright / 8);
            }
        }
    }
}

void sherd__audit_permuted(const sherd__entropy *e, const double *const *in, double *const *out,
                           uint32_t len, size_t n)
{
    for (uint32_t j = 0; j < len; j++) memcpy(out[j], in[j], n * sizeof *out[j]);
    for (size_t i = len * n; i > 1; i--) {
        size_t k = (size_t)sherd__entropy_below(e, i);
        double *a = &out[(i - 1) / n][(i - 1) % n], *b = &out[k / n][k % n], t = *a;
        *a = *b;
        *b = t;
    }
}

uint32_t sherd__audit_residue(double x, uint32_t p)
{
    int64_t r = (int64_t)x % (int64_t)p;
    return (uint32_t)(r < 0 ? r + (int64_t)p : r);
}

void sherd__audit_draw(const sherd__entropy *e, uint32_t p, size_t n, uint32_t *out)
{
    uint32_t words[256], drop = (0 - p) % p;
    for (size_t done = 0; done < n;) {
        e->fill(e->ctx, words, sizeof words);
        for (size_t i = 0; i < sizeof words / sizeof *words && done < n; i++) {
            uint64_t wide = (uint64_t)words[i] * p;
            if ((uint32_t)wide >= drop) out[done++] = (uint32_t)(wide >> 32);
        }
    }
}
