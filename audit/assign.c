/*
 * The Hungarian method with potentials, one row at a time by a shortest augmenting path; and its
 * variant for ascending assignments by dynamic programming. Both are exact.
 */
#include "audit/assign.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"

typedef struct solver {
    const double *cost;
    size_t rows, cols;     /* rows <= cols */
    bool turned;           /* cost is read transposed */
    double *u, *v, *least; /* potentials of rows and columns; least reduced cost to each column */
    size_t *owner, *from;  /* of a column: its row, and the column before it on the path; cols + 1
                              entries each */
    bool *done;
} solver;

static double cost_of(const solver *s, size_t r, size_t c)
{
    return s->turned ? s->cost[c * s->rows + r] : s->cost[r * s->cols + c];
}

/* Assigns a column to row r and moves other rows along the cheapest path. Column `cols` means
   none. */
static void place(solver *s, size_t r)
{
    size_t at = s->cols;
    s->owner[at] = r;
    for (size_t c = 0; c < s->cols; c++) s->least[c] = INFINITY;
    memset(s->done, 0, (s->cols + 1) * sizeof *s->done);
    do {
        double delta = INFINITY;
        size_t row = s->owner[at], next = s->cols;
        s->done[at] = true;
        for (size_t c = 0; c < s->cols; c++) {
            if (s->done[c]) continue;
            double reduced = cost_of(s, row, c) - s->u[row] - s->v[c];
            if (reduced < s->least[c]) {
                s->least[c] = reduced;
                s->from[c] = at;
            }
            if (s->least[c] < delta || next == s->cols) {
                delta = s->least[c];
                next = c;
            }
        }
        for (size_t c = 0; c <= s->cols; c++) {
            if (s->done[c]) {
                s->u[s->owner[c]] += delta;
                s->v[c] -= delta;
            } else if (c < s->cols) {
                s->least[c] -= delta;
            }
        }
        at = next;
    } while (s->owner[at] != SHERD__ASSIGN_NONE);
    while (at != s->cols) {
        size_t before = s->from[at];
        s->owner[at] = s->owner[before];
        at = before;
    }
}

int sherd__assign(const double *cost, size_t rows, size_t cols, size_t *to)
{
    solver s = { .cost = cost, .rows = rows, .cols = cols };
    if (rows > cols) s = (solver){ .cost = cost, .rows = cols, .cols = rows, .turned = true };
    s.u = sherd__calloc(s.rows + 1, sizeof *s.u);
    s.v = sherd__calloc(s.cols + 1, sizeof *s.v);
    s.least = sherd__calloc(s.cols + 1, sizeof *s.least);
    s.owner = sherd__calloc(s.cols + 1, sizeof *s.owner);
    s.from = sherd__calloc(s.cols + 1, sizeof *s.from);
    s.done = sherd__calloc(s.cols + 1, sizeof *s.done);
    int err = s.u && s.v && s.least && s.owner && s.from && s.done ? SHERD_OK : SHERD_ENOMEM;
    if (!err) {
        for (size_t c = 0; c <= s.cols; c++) s.owner[c] = SHERD__ASSIGN_NONE;
        for (size_t r = 0; r < s.rows; r++) place(&s, r);
        for (size_t r = 0; r < rows; r++) to[r] = SHERD__ASSIGN_NONE;
        for (size_t c = 0; c < s.cols; c++) {
            if (s.owner[c] == SHERD__ASSIGN_NONE) continue;
            if (s.turned) to[c] = s.owner[c];
            else to[s.owner[c]] = c;
        }
    }
    sherd__free(s.u);
    sherd__free(s.v);
    sherd__free(s.least);
    sherd__free(s.owner);
    sherd__free(s.from);
    sherd__free(s.done);
    return err;
}

int sherd__assign_ascending(const double *cost, size_t rows, size_t cols, size_t *to)
{
    size_t cells;
    if (rows > cols) return SHERD_EINVAL;
    if (!sherd__mul(rows, cols, &cells)) return SHERD_ENOMEM;
    /* best[c]: least sum of the rows so far with the last of them at c or before. took: whether it
       is at c. */
    double *best = sherd__calloc(cols + 1, sizeof *best),
           *next = sherd__calloc(cols + 1, sizeof *next);
    bool *took = sherd__calloc(cells, sizeof *took);
    int err = best && next && took ? SHERD_OK : SHERD_ENOMEM;
    for (size_t r = 0; r < rows && !err; r++) {
        next[0] = INFINITY;
        for (size_t c = 0; c < cols; c++) {
            double here = best[c] + cost[r * cols + c];
            took[r * cols + c] = here < next[c];
            next[c + 1] = here < next[c] ? here : next[c];
        }
        double *swap = best;
        best = next;
        next = swap;
    }
    for (size_t r = rows, c = cols; r > 0 && !err; r--) {
        while (c > 0 && !took[(r - 1) * cols + c - 1]) c--;
        to[r - 1] = --c;
    }
    sherd__free(best);
    sherd__free(next);
    sherd__free(took);
    return err;
}
