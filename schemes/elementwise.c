/*
 * Element-wise operations. No sums can be compared here, so Freivalds' check does not apply.
 * Instead, a secret sample of every answer is recomputed and compared bit for bit; the exact bits
 * are defined by matrix/funcs.h. One wrong entry is missed with probability 1 - sample/size; a node
 * with more wrong entries is detected sooner.
 */
#include "schemes/elementwise.h"

#include <sodium.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "crypto/fragment_make.h"
#include "matrix/funcs.h"
#include "matrix/view.h"

#define SAMPLE_MIN 64u  /* entries of an answer that are recomputed, at least */
#define SAMPLE_PART 64u /* one entry in this many */

typedef struct ew {
    sherd__elementwise_params p;
    size_t n, m;
    unsigned arity;
    uint32_t panels;
    uint32_t **positions; /* for each slot, ascending */
    uint32_t *planned;
    uint32_t *perms;   /* n x m, or NULL: derived row by row */
    uint32_t *scratch; /* m: used by the compute thread */
    uint32_t *cols;    /* m */
    double *line;      /* m */
} ew;

static size_t rows_of(const ew *e, sherd__cell c, size_t *first)
{
    *first = (size_t)c.panel * e->p.panel_rows;
    return e->n - *first < e->p.panel_rows ? e->n - *first : e->p.panel_rows;
}

/* Columns of row r that belong to the slot, in the order in which they are sent. */
static int columns(ew *e, uint32_t slot, size_t r, const uint32_t **out)
{
    const uint32_t *perm = e->perms ? e->perms + r * e->m : e->scratch;
    *out = e->positions[slot];
    if (!e->p.perm.row) return SHERD_OK;
    if (!e->perms) {
        int err = e->p.perm.row(e->p.perm.ctx, r, (uint32_t)e->m, e->scratch);
        if (err) return err;
    }
    for (uint32_t j = 0; j < e->planned[slot]; j++) e->cols[j] = perm[e->positions[slot][j]];
    *out = e->cols;
    return SHERD_OK;
}

static uint8_t dtype_of(sherd_view v)
{
    return (uint8_t)(v.dtype == SHERD_F32 ? SHERD_F32 : SHERD_F64);
}

static int make_operand(ew *e, sherd__cell at, sherd_view v, sherd__fragment **out)
{
    size_t first, rows = rows_of(e, at, &first), cols = e->planned[at.slot];
    uint8_t dtype = dtype_of(v);
    size_t size = sherd_dtype_size((sherd_dtype)dtype), len = 8 + rows * cols * size;
    uint8_t *body = sherd__alloc(len);
    if (!body) return SHERD_ENOMEM;
    sherd__put_u32(body, (uint32_t)rows);
    sherd__put_u32(body + 4, (uint32_t)cols);
    int err = SHERD_OK;
    for (size_t t = 0; t < rows && !err; t++) {
        const uint32_t *which;
        uint8_t *to = body + 8 + t * cols * size;
        err = columns(e, at.slot, first + t, &which);
        if (err) break;
        sherd__view_gather_f64(v, first + t, which, cols, e->line);
        if (dtype == SHERD_F64) {
            memcpy(to, e->line, cols * size);
        } else {
            for (size_t j = 0; j < cols; j++) {
                float x = (float)e->line[j];
                memcpy(to + 4 * j, &x, 4);
            }
        }
    }
    sherd__fragment_info info = {
        .origin = SHERD__HIDDEN, .dtype = dtype, .groups = 1, .rows = rows, .cols = cols, .len = len
    };
    if (!err) err = sherd__fragment_take(out, &info, body, NULL, NULL);
    if (err) sherd__free(body);
    return err;
}

static int ew_hide(void *ctx, sherd__cell at, sherd__cell_work *out)
{
    ew *e = ctx;
    size_t first, rows = rows_of(e, at, &first), cols = e->planned[at.slot];
    *out = (sherd__cell_work){ .empty = rows == 0 || cols == 0 };
    if (out->empty) return SHERD_OK;
    out->result = (sherd__fragment_info){ .origin = SHERD__RESULT,
                                          .dtype = SHERD_F64,
                                          .rows = rows,
                                          .cols = cols,
                                          .len = (uint64_t)rows * cols * sizeof(double) };
    int err = make_operand(e, at, e->p.a, &out->left);
    if (!err && e->arity == 2) err = make_operand(e, at, e->p.b, &out->right);
    if (err) {
        sherd__fragment_free(out->left);
        out->left = NULL;
    }
    return err;
}

static size_t sample_size(size_t entries)
{
    size_t want = entries / SAMPLE_PART > SAMPLE_MIN ? entries / SAMPLE_PART : SAMPLE_MIN;
    return want < entries ? want : entries;
}

static bool same_bits(double a, double b)
{
    uint64_t x, y;
    memcpy(&x, &a, 8);
    memcpy(&y, &b, 8);
    return x == y || (a != a && b != b); /* any NaN matches any NaN */
}

/* Recomputes `want` different entries of row t. They are taken from a secret start in secret steps
 * that reach every column, so every entry is equally likely. */
static int check_row(ew *e, sherd__cell at, size_t t, size_t first, size_t want, const double *y)
{
    size_t cols = e->planned[at.slot], step;
    const uint32_t *which;
    int err = columns(e, at.slot, first + t, &which);
    size_t j = (size_t)sherd__entropy_below(&e->p.entropy, cols);
    do step = 1 + (size_t)sherd__entropy_below(&e->p.entropy, cols);
    while (sherd__gcd(step, cols) != 1);
    for (size_t i = 0; i < want && !err; i++, j = (j + step) % cols) {
        double a = sherd__view_at(e->p.a, first + t, which[j]), b = 0, expected = 0;
        if (e->arity == 2) b = sherd__view_at(e->p.b, first + t, which[j]);
        err = sherd__map_f64(e->p.op, &a, e->arity == 2 ? &b : NULL, 1, &expected);
        if (!err && !same_bits(expected, y[t * cols + j])) err = SHERD_EWRONG;
    }
    return err;
}

static int ew_check(void *ctx, sherd__cell at, const uint8_t *body)
{
    ew *e = ctx;
    const double *y = (const double *)(const void *)body;
    size_t first, rows = rows_of(e, at, &first), cols = e->planned[at.slot];
    size_t want = sample_size(rows * cols), each = want / rows, more = want % rows;
    /* The rows with an extra draw start at a secret row, so that no row is checked less. */
    size_t shift = (size_t)sherd__entropy_below(&e->p.entropy, rows);
    int err = SHERD_OK;
    for (size_t t = 0; t < rows && !err; t++)
        err = check_row(e, at, t, first, each + ((t + shift) % rows < more), y);
    return err;
}

static int ew_fold(void *ctx, sherd__cell at, const uint8_t *body)
{
    ew *e = ctx;
    if (!body) return SHERD_OK;
    const double *y = (const double *)(const void *)body;
    size_t first, rows = rows_of(e, at, &first), cols = e->planned[at.slot];
    for (size_t t = 0; t < rows; t++) {
        const uint32_t *which;
        int err = columns(e, at.slot, first + t, &which);
        if (err) return err;
        double *out = e->p.out + (first + t) * e->p.ldo;
        for (size_t j = 0; j < cols; j++) out[which[j]] = y[t * cols + j];
    }
    return SHERD_OK;
}

static void ew_shape(const void *ctx, sherd__scheme_shape *out)
{
    const ew *e = ctx;
    *out = (sherd__scheme_shape){
        .slots = e->p.slots, .tiles = e->m ? 1 : 0, .panels = e->panels, .paired = e->arity == 2
    };
    for (uint32_t i = 0; i < e->p.slots; i++) {
        uint64_t len = (uint64_t)e->p.panel_rows * e->planned[i] * sizeof(double);
        if (len > out->result_max) out->result_max = len;
    }
}

static void ew_entries(const void *ctx, sherd__cell cell, uint64_t *a, uint64_t *b)
{
    const ew *e = ctx;
    size_t first;
    *a = (uint64_t)rows_of(e, cell, &first) * e->planned[cell.slot];
    *b = 0; /* paired: the second operand reveals as many entries as the first, in the same cells */
}

static int ew_finish(void *ctx)
{
    (void)ctx;
    return SHERD_OK;
}

static void ew_free(void *ctx)
{
    ew *e = ctx;
    for (uint32_t i = 0; e->positions && i < e->p.slots; i++) sherd__free(e->positions[i]);
    if (e->perms) sodium_memzero(e->perms, e->n * e->m * sizeof *e->perms);
    sherd__free(e->positions);
    sherd__free(e->planned);
    sherd__free(e->perms);
    sherd__free(e->scratch);
    sherd__free(e->cols);
    sherd__free(e->line);
    sherd__free(e);
}

static const sherd__hiding_ops scheme_elementwise = {
    .shape = ew_shape,
    .hide = ew_hide,
    .check = ew_check,
    .fold = ew_fold,
    .entries = ew_entries,
    .finish = ew_finish,
    .free = ew_free,
};

static int deal_positions(ew *e)
{
    for (size_t j = 0; j < e->m; j++) {
        if (e->p.exposures[j] >= e->p.slots) return SHERD_EINVAL;
        e->planned[e->p.exposures[j]]++;
    }
    for (uint32_t i = 0; i < e->p.slots; i++) {
        e->positions[i] = sherd__calloc(e->planned[i], sizeof **e->positions);
        if (!e->positions[i]) return SHERD_ENOMEM;
        e->planned[i] = 0;
    }
    for (size_t j = 0; j < e->m; j++) {
        uint32_t i = e->p.exposures[j];
        e->positions[i][e->planned[i]++] = (uint32_t)j;
    }
    return SHERD_OK;
}

static int cache_perms(ew *e)
{
    size_t len;
    if (!e->p.perm.row || !sherd__mul(e->n, e->m, &len) ||
        !sherd__mul(len, sizeof *e->perms, &len) || len > e->p.perm_cache)
        return SHERD_OK;
    if (!(e->perms = sherd__alloc(len))) return SHERD_ENOMEM;
    int err = SHERD_OK;
    for (size_t r = 0; r < e->n && !err; r++)
        err = e->p.perm.row(e->p.perm.ctx, r, (uint32_t)e->m, e->perms + r * e->m);
    return err;
}

static int open_ew(ew *e)
{
    e->panels = e->n ? (uint32_t)((e->n - 1) / e->p.panel_rows + 1) : 0;
    e->positions = sherd__calloc(e->p.slots, sizeof *e->positions);
    e->planned = sherd__calloc(e->p.slots, sizeof *e->planned);
    e->scratch = sherd__calloc(e->m, sizeof *e->scratch);
    e->cols = sherd__calloc(e->m, sizeof *e->cols);
    e->line = sherd__calloc(e->m, sizeof *e->line);
    if (!e->positions || !e->planned || !e->scratch || !e->cols || !e->line) return SHERD_ENOMEM;
    int err = deal_positions(e);
    return err ? err : cache_perms(e);
}

int sherd__elementwise_open(sherd__hiding *out, const sherd__elementwise_params *p)
{
    *out = (sherd__hiding){ 0 };
    unsigned arity = sherd__map_arity(p->op);
    if (!p->slots || !p->panel_rows || !arity) return SHERD_EINVAL;
    if (arity == 2 && (p->a.rows != p->b.rows || p->a.cols != p->b.cols)) return SHERD_ESHAPE;
    ew *e = sherd__calloc(1, sizeof *e);
    if (!e) return SHERD_ENOMEM;
    e->p = *p;
    e->n = p->a.rows;
    e->m = p->a.cols;
    e->arity = arity;
    int err = open_ew(e);
    if (err) {
        ew_free(e);
        return err;
    }
    *out = (sherd__hiding){ &scheme_elementwise, e };
    return SHERD_OK;
}

size_t sherd__elementwise_planned(const sherd__hiding *h, uint32_t slot)
{
    const ew *e = h->ctx;
    return e->planned[slot];
}

double sherd__elementwise_check_error(const sherd__hiding *h)
{
    const ew *e = h->ctx;
    double worst = 0;
    for (uint32_t i = 0; i < e->p.slots; i++) {
        size_t rows = e->p.panel_rows < e->n ? e->p.panel_rows : e->n;
        size_t entries = rows * e->planned[i];
        if (!entries) continue;
        double missed = 1 - (double)sample_size(entries) / (double)entries;
        if (missed > worst) worst = missed;
    }
    return worst;
}
