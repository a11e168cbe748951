/*
 * Columns that were seen in part: of a slot that another node had started, or of a record that was
 * cut. The kept rows are then consecutive rows of A. One column with enough non-zero values is
 * searched for in all of A's columns, at every row, by a rolling hash. That gives the rows, and the
 * other columns are compared from there.
 */
#include <string.h>

#include "audit/truth_internal.h"
#include "core/alloc.h"
#include "core/bytes.h"

#define WINDOW 48u
#define TELLING 8u     /* non-zero values needed in the searched column */
#define COMPARED 2000u /* rows on which the other columns are compared */
#define BASE UINT64_C(0x9e3779b97f4a7c15)

static uint64_t mix(double v)
{
    sherd__column_key k = { 0, 0 };
    sherd__key_add(&k, v);
    return k.sum;
}

/* Selects the column with the most non-zero values at its start. */
static bool choose(const sherd__sheaf *f, size_t *best)
{
    size_t most = 0;
    for (size_t j = 0; j < f->cols; j++) {
        size_t here = 0;
        for (size_t r = 0; r < WINDOW; r++) here += f->values[r * f->cols + j] != 0;
        if (here > most) {
            most = here;
            *best = j;
        }
    }
    return most >= TELLING;
}

static bool same(const sherd__truth *t, const sherd__sheaf *f, size_t j, size_t first, size_t c,
                 double *line)
{
    for (size_t r = 0; r < WINDOW; r++) {
        sherd__truth_row(t, first + r, line);
        if (line[c] != f->values[r * f->cols + j]) return false;
    }
    return true;
}

/* Finds the row of A where column j of f starts, or SIZE_MAX. */
static int find_start(const sherd__truth *t, const sherd__sheaf *f, size_t j, size_t *start)
{
    size_t k = t->a.cols, n = t->a.rows;
    double *lines = sherd__calloc(3 * k, sizeof *lines), *old = lines ? lines + k : NULL;
    uint64_t *h = sherd__calloc(k, sizeof *h), want = 0, top = 1;
    int err = lines && h ? SHERD_OK : SHERD_ENOMEM;
    *start = SIZE_MAX;
    for (size_t r = 0; r < WINDOW; r++) {
        want = want * BASE + mix(f->values[r * f->cols + j]);
        top *= BASE;
    }
    for (size_t r = 0; r < n && !err && *start == SIZE_MAX; r++) {
        sherd__truth_row(t, r, lines);
        if (r >= WINDOW) sherd__truth_row(t, r - WINDOW, old);
        for (size_t c = 0; c < k && *start == SIZE_MAX; c++) {
            h[c] = h[c] * BASE + mix(lines[c]) - (r >= WINDOW ? mix(old[c]) * top : 0);
            if (h[c] == want && r + 1 >= WINDOW && same(t, f, j, r + 1 - WINDOW, c, old + k))
                *start = r + 1 - WINDOW;
        }
    }
    sherd__free(lines);
    sherd__free(h);
    return err;
}

/* Finds which of A's columns agree with each of f's in all rows compared: possible[j * k + c]. */
static int compare(const sherd__truth *t, const sherd__sheaf *f, size_t start, size_t rows,
                   uint8_t *possible)
{
    size_t k = t->a.cols;
    double *line = sherd__calloc(k, sizeof *line);
    if (!line) return SHERD_ENOMEM;
    memset(possible, 1, f->cols * k);
    for (size_t r = 0; r < rows; r++) {
        sherd__truth_row(t, start + r, line);
        for (size_t j = 0; j < f->cols; j++) {
            uint8_t *p = possible + j * k;
            double v = f->values[r * f->cols + j];
            for (size_t c = 0; c < k; c++) p[c] &= line[c] == v;
        }
    }
    sherd__free(line);
    return SHERD_OK;
}

int sherd__truth_part(const sherd__truth *t, const sherd__sheaf *f, uint32_t *col, uint32_t *alike,
                      uint32_t *row, bool *found)
{
    size_t j, start, cells, k = t->a.cols;
    *found = false;
    if (f->kept < WINDOW || t->a.rows < WINDOW || !choose(f, &j)) return SHERD_OK;
    int err = find_start(t, f, j, &start);
    if (err || start == SIZE_MAX) return err;
    size_t have = t->a.rows - start < f->kept ? t->a.rows - start : f->kept;
    uint8_t *possible = sherd__mul(f->cols, k, &cells) ? sherd__alloc(cells) : NULL;
    if (!possible) return SHERD_ENOMEM;
    err = compare(t, f, start, have < COMPARED ? have : COMPARED, possible);
    for (size_t i = 0; i < f->cols && !err; i++) {
        uint32_t many = 0, first = SHERD__TRUTH_NONE;
        for (size_t c = 0; c < k; c++)
            if (possible[i * k + c]) {
                if (many++ == 0) first = (uint32_t)c;
            }
        col[i] = many ? t->first[first] : SHERD__TRUTH_NONE;
        alike[i] = many;
    }
    for (size_t r = 0; r < f->kept && !err; r++)
        row[r] = r < have ? (uint32_t)(start + r) : SHERD__TRUTH_NONE;
    sherd__free(possible);
    *found = !err;
    return err;
}
