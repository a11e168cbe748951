/*
 * Builds matrices from blocks. Tasks that share a right block are the panels of one slot, in order
 * (under plain: of everything that a node was given). If the first panel of a slot was also sent
 * with another right block, that is the same slot for another tile of B, and it is used once.
 */
#include "audit/adversary_view.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "matrix/view.h"

#define CHAINS_MAX 65536u
#define MULTIPLY 1u

void sherd__adversary_view_fini(sherd__adversary_view *s)
{
    for (size_t i = 0; i < s->len; i++) {
        sherd__free(s->sheaves[i].values);
        sherd__free(s->sheaves[i].keys);
        sherd__free(s->sheaves[i].panels);
    }
    sherd__free(s->sheaves);
    memset(s, 0, sizeof *s);
}

/* ---- sheaves --------------------------------------------------------------------------------- */

static sherd__sheaf *add_sheaf(sherd__adversary_view *s, size_t cols)
{
    size_t bytes;
    sherd__sheaf *list = sherd__mul(s->len + 1, sizeof *list, &bytes)
                             ? sherd__realloc(s->sheaves, bytes)
                             : NULL;
    if (!list) return NULL;
    s->sheaves = list;
    sherd__sheaf *f = &list[s->len];
    memset(f, 0, sizeof *f);
    f->cols = cols;
    f->keys = sherd__calloc(cols, sizeof *f->keys);
    if (!f->keys) return NULL;
    s->len++;
    s->cols += cols;
    return f;
}

static int add_panel(sherd__sheaf *f, uint32_t rows)
{
    uint32_t *p = sherd__realloc(f->panels, (f->panels_len + 1) * sizeof *p);
    if (!p) return SHERD_ENOMEM;
    f->panels = p;
    f->panels[f->panels_len++] = rows;
    return SHERD_OK;
}

/* Allocates room for `more` rows, up to rows_max. */
static int make_room(sherd__sheaf *f, uint64_t more, size_t rows_max)
{
    uint64_t want = f->kept + more < rows_max ? f->kept + more : rows_max;
    size_t bytes;
    if (want <= f->kept) return SHERD_OK;
    if (!sherd__mul((size_t)want, f->cols, &bytes) || !sherd__mul(bytes, sizeof *f->values, &bytes))
        return SHERD_ENOMEM;
    double *p = sherd__realloc(f->values, bytes);
    if (!p) return SHERD_ENOMEM;
    f->values = p;
    return SHERD_OK;
}

static void take_row(sherd__adversary_view *s, sherd__sheaf *f, const double *x, size_t rows_max)
{
    for (size_t j = 0; j < f->cols; j++) sherd__key_add(&f->keys[j], x[j]);
    f->rows++;
    if (f->kept >= rows_max) return;
    double *to = f->values + f->kept++ * f->cols;
    for (size_t j = 0; j < f->cols; j++) {
        to[j] = isfinite(x[j]) ? x[j] : 0; /* attacks need finite numbers */
        if (fabs(to[j]) > s->largest) s->largest = fabs(to[j]);
    }
}

/* ---- records --------------------------------------------------------------------------------- */

static bool clear_product(const sherd__node_view *v, const sherd__view_task *t)
{
    if (t->op != MULTIPLY || t->left == SHERD__VIEW_NONE || t->right == SHERD__VIEW_NONE)
        return false;
    const sherd__view_block *b = &v->blocks[t->left];
    return b->whole && b->info.primes == 0 && b->info.rows > 0 && b->info.cols > 0;
}

/* Return the rows and columns of group q of a body; without a table, those of the matrix. */
static uint64_t group_rows(const sherd__view_block *b, const uint8_t *body, uint32_t q)
{
    return b->info.groups ? sherd__get_u32(body + 8 * (size_t)q) : b->info.rows;
}

static size_t group_cols(const sherd__view_block *b, const uint8_t *body, uint32_t q)
{
    return b->info.groups ? sherd__get_u32(body + 8 * (size_t)q + 4) : (size_t)b->info.cols;
}

/* Read position in the rows of a body: dense, or CSR with counts, columns and values in separate
   arrays that were checked with the table. */
typedef struct cursor {
    const uint8_t *values, *counts, *columns;
    size_t size, width; /* size: bytes of a value; width: of a count or a column, 0 if dense */
    sherd_dtype dtype;
    uint64_t *scratch; /* a row's values, aligned */
    double *packed;    /* the same values as doubles */
    double *line;      /* the row that next_row read */
} cursor;

static void close_cursor(cursor *at)
{
    sherd__free(at->scratch);
    sherd__free(at->packed);
    sherd__free(at->line);
}

/* The caller closes it, on failure too. */
static int open_cursor(cursor *at, const sherd__view_block *b, const uint8_t *body)
{
    sherd__csr csr;
    size_t widest = (size_t)b->info.cols;
    at->line = sherd__calloc(widest, sizeof *at->line);
    at->scratch = sherd__calloc(widest, sizeof *at->scratch);
    at->packed = sherd__calloc(widest, sizeof *at->packed);
    if (!at->line || !at->scratch || !at->packed) return SHERD_ENOMEM;
    at->values = body + 8 * (size_t)b->info.groups;
    at->dtype = (sherd_dtype)b->info.dtype;
    at->size = sherd_dtype_size(at->dtype);
    at->width = 0;
    if (!sherd__csr_layout(&b->info, &csr)) return SHERD_OK;
    at->width = csr.width;
    at->counts = body + csr.counts;
    at->columns = body + csr.columns;
    at->values = body + csr.values;
    return SHERD_OK;
}

static uint32_t little(const uint8_t *p, size_t width)
{
    return width == 1 ? *p : width == 2 ? sherd__get_u16(p) : sherd__get_u32(p);
}

/* Reads the next row, of `cols` columns, to at->line. */
static void next_row(cursor *at, size_t cols)
{
    double *line = at->line;
    size_t n = at->width ? little(at->counts, at->width) : cols;
    memcpy(at->scratch, at->values, n * at->size);
    at->values += n * at->size;
    double *to = at->width ? at->packed : line;
    sherd__view_row_f64(sherd_view_c(at->scratch, at->dtype, 1, n), 0, 0, n, to);
    if (!at->width) return;
    memset(line, 0, cols * sizeof *line);
    for (size_t i = 0; i < n; i++) line[little(at->columns + i * at->width, at->width)] = to[i];
    at->counts += at->width;
    at->columns += n * at->width;
}

/* ---- products of ones ------------------------------------------------------------------------ */

static int body_of_ones(bool *ones, const sherd__view_block *b, const uint8_t *body)
{
    cursor at = { 0 };
    int err = open_cursor(&at, b, body);
    *ones = !err;
    for (uint32_t q = 0; q < (b->info.groups ? b->info.groups : 1) && *ones; q++) {
        uint64_t rows = group_rows(b, body, q);
        size_t cols = group_cols(b, body, q);
        for (uint64_t r = 0; r < rows && *ones; r++) {
            next_row(&at, cols);
            for (size_t j = 0; j < cols && *ones; j++) *ones = at.line[j] == 1;
        }
    }
    close_cursor(&at);
    return err;
}

/* Sets *ones to whether each number of a block is 1; false if it cannot be read. */
static int block_of_ones(bool *ones, const sherd__node_view *v, const sherd__view_block *b)
{
    *ones = false;
    if (!b->whole || b->info.primes || b->info.rows == 0 || b->info.cols == 0) return SHERD_OK;
    uint8_t *body = sherd__alloc((size_t)b->info.len);
    if (!body) return SHERD_ENOMEM;
    int err = sherd__view_body(v, b, body) ? SHERD_OK : body_of_ones(ones, b, body);
    sherd__free(body);
    return err;
}

static int task_of_ones(bool *ones, const sherd__node_view *v, const sherd__view_task *t)
{
    int err = block_of_ones(ones, v, &v->blocks[t->left]);
    return err || !*ones ? err : block_of_ones(ones, v, &v->blocks[t->right]);
}

/* ---- the job --------------------------------------------------------------------------------- */

#define JOBS_MAX 64u

typedef struct clear_job {
    uint64_t job, bytes;
} clear_job;

typedef struct clear_jobs {
    clear_job seen[JOBS_MAX]; /* with other numbers than ones */
    size_t len;
    uint64_t *ones; /* with a task of ones; some may be in `seen`, too */
    size_t ones_len;
} clear_jobs;

static size_t seen_at(const clear_jobs *l, uint64_t job)
{
    size_t at = 0;
    while (at < l->len && l->seen[at].job != job) at++;
    return at;
}

static int add_ones(clear_jobs *l, uint64_t job)
{
    for (size_t i = l->ones_len; i-- > 0;)
        if (l->ones[i] == job) return SHERD_OK;
    uint64_t *more = sherd__realloc(l->ones, (l->ones_len + 1) * sizeof *more);
    if (!more) return SHERD_ENOMEM;
    l->ones = more;
    more[l->ones_len++] = job;
    return SHERD_OK;
}

static int add_job(clear_jobs *l, const sherd__node_view *v, const sherd__view_task *t)
{
    size_t at = seen_at(l, t->job);
    if (at == JOBS_MAX) return SHERD_OK;
    if (at == l->len) { /* one task with other numbers is enough */
        bool ones;
        int err = task_of_ones(&ones, v, t);
        if (err || ones) return err ? err : add_ones(l, t->job);
        l->seen[l->len++] = (clear_job){ .job = t->job };
    }
    l->seen[at].bytes += v->blocks[t->left].info.len;
    return SHERD_OK;
}

int sherd__adversary_view_job(const sherd__views *v, sherd__clear_product *out)
{
    clear_jobs l = { .len = 0 };
    size_t best = 0;
    int err = SHERD_OK;
    for (size_t i = 0; i < v->len; i++)
        for (size_t t = 0; t < v->nodes[i].tasks_len && !err; t++)
            if (clear_product(&v->nodes[i], &v->nodes[i].tasks[t]))
                err = add_job(&l, &v->nodes[i], &v->nodes[i].tasks[t]);
    for (size_t i = 1; i < l.len; i++)
        if (l.seen[i].bytes > l.seen[best].bytes) best = i;
    *out = (sherd__clear_product){ .job = l.seen[best].job, .jobs = l.len };
    for (size_t i = 0; i < l.ones_len; i++) out->ones += seen_at(&l, l.ones[i]) == l.len;
    sherd__free(l.ones);
    return err;
}

/* ---- views ----------------------------------------------------------------------------------- */

typedef struct chain {
    size_t right;
    uint64_t first; /* hash of the first panel's body */
    uint32_t groups;
    size_t sheaf; /* index of its first sheaf */
    bool skip;    /* the same slot again, or a body that does not fit */
} chain;

/* Creates the sheaves of a chain; its first panel has the groups of columns. */
static int open_chain(sherd__adversary_view *s, chain *c, const sherd__view_block *b,
                      const uint8_t *body)
{
    c->sheaf = s->len;
    c->groups = b->info.groups;
    for (uint32_t q = 0; q < (c->groups ? c->groups : 1); q++) {
        sherd__sheaf *f = add_sheaf(s, group_cols(b, body, q));
        if (!f) return SHERD_ENOMEM;
    }
    return SHERD_OK;
}

static bool fits_chain(const sherd__adversary_view *s, const chain *c, const sherd__view_block *b,
                       const uint8_t *body)
{
    if (b->info.groups != c->groups) return false;
    if (!c->groups) return b->info.cols == s->sheaves[c->sheaf].cols;
    for (uint32_t q = 0; q < c->groups; q++)
        if (sherd__get_u32(body + 8 * (size_t)q + 4) != s->sheaves[c->sheaf + q].cols) return false;
    return true;
}

static int take_panel(sherd__adversary_view *s, const chain *c, const sherd__view_block *b,
                      const uint8_t *body, size_t rows_max)
{
    cursor at = { 0 };
    int err = open_cursor(&at, b, body);
    for (uint32_t q = 0; q < (c->groups ? c->groups : 1) && !err; q++) {
        sherd__sheaf *f = &s->sheaves[c->sheaf + q];
        uint64_t rows = group_rows(b, body, q);
        if (rows > UINT32_MAX || add_panel(f, (uint32_t)rows) || make_room(f, rows, rows_max))
            err = SHERD_ENOMEM;
        for (uint64_t r = 0; r < rows && !err; r++) {
            next_row(&at, f->cols);
            take_row(s, f, at.line, rows_max);
        }
    }
    close_cursor(&at);
    s->bytes += b->info.len;
    if (b->info.dtype != SHERD_F64 && b->info.dtype != SHERD_F32) s->integers = true;
    return err;
}

static chain *chain_of(chain **list, size_t *len, size_t right)
{
    for (size_t i = *len; i > 0; i--)
        if ((*list)[i - 1].right == right) return &(*list)[i - 1];
    if (*len == CHAINS_MAX) return NULL;
    chain *more = sherd__realloc(*list, (*len + 1) * sizeof *more);
    if (!more) return NULL;
    *list = more;
    more[*len] = (chain){ .right = right, .sheaf = SIZE_MAX };
    return &more[(*len)++];
}

static int take_task(sherd__adversary_view *s, const sherd__node_view *v, const sherd__view_task *t,
                     chain **list, size_t *len, size_t rows_max)
{
    const sherd__view_block *b = &v->blocks[t->left];
    chain *c = chain_of(list, len, t->right);
    if (!c) return SHERD_ENOMEM;
    if (c->skip) return SHERD_OK;
    uint8_t *body = sherd__alloc((size_t)b->info.len);
    int err = body ? SHERD_OK : SHERD_ENOMEM;
    if (!err && sherd__view_body(v, b, body)) goto out; /* a body that cannot be read is left out */
    if (!err && c->sheaf == SIZE_MAX) {
        c->first = sherd__view_hash(body, (size_t)b->info.len);
        for (size_t i = 0; i < *len && !c->skip; i++)
            c->skip = &(*list)[i] != c && (*list)[i].sheaf != SIZE_MAX &&
                      (*list)[i].first == c->first;
        if (!c->skip) err = open_chain(s, c, b, body);
    }
    if (!err && !c->skip && fits_chain(s, c, b, body)) err = take_panel(s, c, b, body, rows_max);
out:
    sherd__free(body);
    return err;
}

/* Joins the groups of a slot, aligned where possible. */
static int join_own(sherd__adversary_view *s)
{
    sherd__adversary_view joined;
    const sherd__adversary_view *part = s;
    int err = sherd__adversary_view_join(&joined, &part, 1, SIZE_MAX);
    if (err) return err;
    joined.ordered = s->ordered && (joined.len == s->len || joined.len == 1);
    sherd__adversary_view_fini(s);
    *s = joined;
    return SHERD_OK;
}

int sherd__adversary_view_of(sherd__adversary_view *out, const sherd__node_view *v, uint64_t job,
                             size_t rows_max)
{
    sherd__adversary_view s = { 0 };
    chain *list = NULL;
    size_t len = 0;
    int err = SHERD_OK;
    for (size_t t = 0; t < v->tasks_len && !err; t++)
        if (v->tasks[t].job == job && clear_product(v, &v->tasks[t]))
            err = take_task(&s, v, &v->tasks[t], &list, &len, rows_max);
    size_t slots = 0;
    for (size_t i = 0; i < len; i++) slots += !list[i].skip && list[i].sheaf != SIZE_MAX;
    /* Columns of a group ascend; in older records groups do, too */
    s.ordered = slots == 1 && (!v->shuffled || s.len == 1);
    sherd__free(list);
    if (!err && s.len > 1) err = join_own(&s);
    if (err) sherd__adversary_view_fini(&s);
    else *out = s;
    return err;
}

/* --- pooling ---------------------------------------------------------------------------------- */

static bool same_panels(const sherd__sheaf *a, const sherd__sheaf *b)
{
    return a->rows == b->rows && a->kept == b->kept && a->panels_len == b->panels_len &&
           (a->panels_len == 0 ||
            memcmp(a->panels, b->panels, a->panels_len * sizeof *a->panels) == 0);
}

static double correlation(const sherd__sheaf *a, size_t i, const sherd__sheaf *b, size_t j)
{
    double n = (double)a->kept, sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;
    for (size_t r = 0; r < a->kept; r++) {
        double x = a->values[r * a->cols + i], y = b->values[r * b->cols + j];
        sa += x;
        sb += y;
        saa += x * x;
        sbb += y * y;
        sab += x * y;
    }
    double va = saa - sa * sa / n, vb = sbb - sb * sb / n;
    return va > 0 && vb > 0 ? (sab - sa * sb / n) / sqrt(va * vb) : 0;
}

/* Returns whether the rows of a and b correspond. Columns of one half of a table nearly always
   correlate with some column of the other half. With shuffled rows no correlation exceeds 6
   standard deviations. */
static bool aligned(const sherd__sheaf *a, const sherd__sheaf *b)
{
    if (!same_panels(a, b) || a->kept < 50) return false;
    double most = 6 / sqrt((double)a->kept);
    size_t sa = a->cols / 12 + 1, sb = b->cols / 12 + 1;
    for (size_t i = 0; i < a->cols; i += sa)
        for (size_t j = 0; j < b->cols; j += sb)
            if (fabs(correlation(a, i, b, j)) > most) return true;
    return false;
}

static bool has_column(const sherd__sheaf *f, sherd__column_key k)
{
    if (k.nonzeros == 0) return false;
    for (size_t j = 0; j < f->cols; j++)
        if (f->keys[j].nonzeros == k.nonzeros && f->keys[j].sum == k.sum) return true;
    return false;
}

/* Appends b's columns to those of `to`, except columns that it already has. */
static int lay(sherd__adversary_view *s, sherd__sheaf *to, const sherd__sheaf *b)
{
    size_t *take = sherd__calloc(b->cols, sizeof *take), more = 0, bytes;
    if (!take) return SHERD_ENOMEM;
    for (size_t j = 0; j < b->cols; j++)
        if (!has_column(to, b->keys[j])) take[more++] = j;
    size_t cols = to->cols + more;
    sherd__column_key *keys = sherd__realloc(to->keys, cols * sizeof *keys);
    if (keys) to->keys = keys;
    double *values = keys && sherd__mul(cols, b->kept, &bytes) &&
                             sherd__mul(bytes, sizeof *values, &bytes)
                         ? sherd__alloc(bytes)
                         : NULL;
    if (values) {
        for (size_t j = 0; j < more; j++) keys[to->cols + j] = b->keys[take[j]];
        for (size_t r = 0; r < b->kept; r++) {
            memcpy(values + r * cols, to->values + r * to->cols, to->cols * sizeof *values);
            for (size_t j = 0; j < more; j++)
                values[r * cols + to->cols + j] = b->values[r * b->cols + take[j]];
        }
        sherd__free(to->values);
        to->values = values;
        to->cols = cols;
        s->cols += more;
    }
    sherd__free(take);
    return values ? SHERD_OK : SHERD_ENOMEM;
}

static int copy_sheaf(sherd__adversary_view *s, const sherd__sheaf *b)
{
    sherd__sheaf *f = add_sheaf(s, b->cols);
    size_t bytes;
    if (!f) return SHERD_ENOMEM;
    if (!sherd__mul(b->kept, b->cols, &bytes) || !sherd__mul(bytes, sizeof *f->values, &bytes))
        return SHERD_ENOMEM;
    f->values = sherd__alloc(bytes);
    f->panels = sherd__calloc(b->panels_len, sizeof *f->panels);
    if (!f->values || !f->panels) return SHERD_ENOMEM;
    memcpy(f->values, b->values, bytes);
    memcpy(f->keys, b->keys, b->cols * sizeof *f->keys);
    memcpy(f->panels, b->panels, b->panels_len * sizeof *f->panels);
    f->rows = b->rows;
    f->kept = b->kept;
    f->panels_len = b->panels_len;
    return SHERD_OK;
}

/* Appends whole rows of A below whole rows of A. */
static int stack(sherd__sheaf *to, const sherd__sheaf *b)
{
    size_t bytes;
    uint32_t *panels = sherd__realloc(to->panels,
                                      (to->panels_len + b->panels_len) * sizeof *panels);
    if (!panels) return SHERD_ENOMEM;
    to->panels = panels;
    if (!sherd__mul(to->kept + b->kept, to->cols, &bytes) ||
        !sherd__mul(bytes, sizeof *to->values, &bytes))
        return SHERD_ENOMEM;
    double *values = sherd__realloc(to->values, bytes);
    if (!values) return SHERD_ENOMEM;
    to->values = values;
    memcpy(values + to->kept * to->cols, b->values, b->kept * b->cols * sizeof *values);
    memcpy(panels + to->panels_len, b->panels, b->panels_len * sizeof *panels);
    for (size_t j = 0; j < to->cols; j++) {
        to->keys[j].nonzeros += b->keys[j].nonzeros;
        to->keys[j].sum += b->keys[j].sum;
    }
    to->panels_len += b->panels_len;
    to->kept += b->kept;
    to->rows += b->rows;
    return SHERD_OK;
}

static int add_part(sherd__adversary_view *s, const sherd__sheaf *b, size_t k)
{
    size_t at = 0;
    if (b->cols == k && s->len == 1 && s->sheaves[0].cols == k) return stack(&s->sheaves[0], b);
    while (at < s->len && !aligned(&s->sheaves[at], b)) at++;
    return at < s->len ? lay(s, &s->sheaves[at], b) : copy_sheaf(s, b);
}

int sherd__adversary_view_join(sherd__adversary_view *out, const sherd__adversary_view *const *part,
                               size_t len, size_t k)
{
    sherd__adversary_view s = { 0 };
    int err = SHERD_OK;
    for (size_t p = 0; p < len && !err; p++) {
        s.integers |= part[p]->integers;
        s.bytes += part[p]->bytes;
        if (part[p]->largest > s.largest) s.largest = part[p]->largest;
        for (size_t i = 0; i < part[p]->len && !err; i++)
            err = add_part(&s, &part[p]->sheaves[i], k);
    }
    s.ordered = s.len == 1 && s.sheaves[0].cols == k;
    if (err) sherd__adversary_view_fini(&s);
    else *out = s;
    return err;
}

/* --- the audit's own recorder ----------------------------------------------------------------- */

/* Copies the non-zero values of one column after the other, as --group 1 sends them. */
static int make_single(sherd__adversary_view *s, sherd_view a, uint32_t col, double *column,
                       size_t rows_max)
{
    sherd__sheaf *f = add_sheaf(s, 1);
    uint64_t nonzeros = 0;
    if (!f) return SHERD_ENOMEM;
    for (size_t r = 0; r < a.rows; r++) {
        column[r] = sherd__view_at(a, r, col);
        nonzeros += column[r] != 0;
    }
    if (add_panel(f, (uint32_t)nonzeros) || make_room(f, nonzeros, rows_max)) return SHERD_ENOMEM;
    for (size_t r = 0; r < a.rows; r++)
        if (column[r] != 0) take_row(s, f, &column[r], rows_max);
    return SHERD_OK;
}

int sherd__adversary_view_make(sherd__adversary_view *out, sherd_audit_form form, sherd_view a,
                               const sherd__node_part *part, size_t rows_max)
{
    sherd__adversary_view s = { .ordered = form == SHERD_AUDIT_PERMUTE ||
                                           form == SHERD_AUDIT_PLAIN };
    size_t width = form == SHERD_AUDIT_PLAIN ? a.cols : part->cols_len;
    size_t first = part->first, rows = part->rows;
    size_t longest = a.rows > width ? a.rows : width;
    double *line = sherd__calloc(longest, sizeof *line);
    int err = line ? SHERD_OK : SHERD_ENOMEM;
    s.integers = a.dtype != SHERD_F64 && a.dtype != SHERD_F32;
    if (form == SHERD_AUDIT_PERMUTE_SINGLE) {
        for (size_t i = 0; i < part->cols_len && !err; i++)
            err = make_single(&s, a, part->cols[i], line, rows_max);
    } else if (!err && width > 0) {
        sherd__sheaf *f = add_sheaf(&s, width);
        if (form != SHERD_AUDIT_PLAIN) {
            first = 0;
            rows = a.rows;
        }
        if (!f || add_panel(f, (uint32_t)rows) || make_room(f, rows, rows_max)) err = SHERD_ENOMEM;
        for (size_t r = first; r < first + rows && !err; r++) {
            if (form == SHERD_AUDIT_PLAIN) sherd__view_row_f64(a, r, 0, width, line);
            else sherd__view_gather_f64(a, r, part->cols, width, line);
            take_row(&s, f, line, rows_max);
        }
    }
    sherd__free(line);
    if (err) sherd__adversary_view_fini(&s);
    else *out = s;
    return err;
}
