/*
 * Right blocks of clear products. Two of them are tiles of one slot if they were used with the same
 * first panel of A. The hashes of their rows' values are then added up, which gives those of whole
 * rows, whatever the order of the values.
 */
#include "audit/right_operand.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "matrix/view.h"

#define SLOTS_MAX 65536u

typedef struct slot {
    size_t right;   /* the block of a tile */
    uint64_t panel; /* hash of the first panel that it was used with */
    size_t first, rows;
} slot;

typedef struct reading {
    const sherd__node_view *v;
    sherd__right_operand r;
    slot *slots;
    size_t len;
} reading;

void sherd__right_operand_fini(sherd__right_operand *r)
{
    sherd__free(r->keys);
    memset(r, 0, sizeof *r);
}

/* Returns a complete body, or NULL with *err, which is 0 if it cannot be read. */
static uint8_t *body_of(const sherd__node_view *v, size_t block, int *err)
{
    const sherd__view_block *b = &v->blocks[block];
    uint8_t *body = sherd__alloc((size_t)b->info.len);
    *err = body ? SHERD_OK : SHERD_ENOMEM;
    if (body && sherd__view_body(v, b, body)) {
        sherd__free(body);
        body = NULL;
    }
    return body;
}

static bool usable(const sherd__node_view *v, const sherd__view_task *t)
{
    if (t->op != 1 || t->left == SHERD__VIEW_NONE || t->right == SHERD__VIEW_NONE) return false;
    const sherd__view_block *a = &v->blocks[t->left], *b = &v->blocks[t->right];
    return a->whole && b->whole && a->info.primes == 0 && b->info.primes == 0 &&
           b->info.encoding == SHERD__DENSE && b->info.rows > 0;
}

/* Adds the hashes of a tile's rows to those of its slot. */
static int add_rows(reading *g, const sherd__view_block *b, const uint8_t *body, size_t first)
{
    const sherd__fragment_info *i = &b->info;
    size_t size = sherd_dtype_size((sherd_dtype)i->dtype), at = first, widest = (size_t)i->cols;
    const uint8_t *p = body + 8 * (size_t)i->groups;
    double *line = sherd__calloc(widest, sizeof *line);
    uint64_t *scratch = sherd__calloc(widest, sizeof *scratch);
    int err = line && scratch ? SHERD_OK : SHERD_ENOMEM;
    for (uint32_t q = 0; q < (i->groups ? i->groups : 1) && !err; q++) {
        const uint8_t *table = body + 8 * (size_t)q;
        uint64_t rows = i->groups ? sherd__get_u32(table) : i->rows;
        size_t cols = i->groups ? sherd__get_u32(table + 4) : widest;
        for (uint64_t r = 0; r < rows; r++, p += cols * size, at++) {
            memcpy(scratch, p, cols * size);
            sherd__view_row_f64(sherd_view_c(scratch, (sherd_dtype)i->dtype, 1, cols), 0, 0, cols,
                                line);
            for (size_t c = 0; c < cols; c++) {
                sherd__key_add(&g->r.keys[at], line[c]);
                if (fabs(line[c]) > g->r.largest) g->r.largest = fabs(line[c]);
            }
        }
    }
    if (i->rows > g->r.tall) g->r.tall = i->rows;
    if (i->cols > g->r.wide) g->r.wide = i->cols;
    g->r.integers |= i->dtype != SHERD_F64 && i->dtype != SHERD_F32;
    sherd__free(line);
    sherd__free(scratch);
    return err;
}

/* Finds the rows that a tile's hashes are added to: those of its slot, or new ones. */
static int place(reading *g, const sherd__view_task *t, uint64_t panel, size_t *first)
{
    size_t rows = (size_t)g->v->blocks[t->right].info.rows, bytes;
    slot *s = sherd__realloc(g->slots, (g->len + 1) * sizeof *s);
    if (!s) return SHERD_ENOMEM;
    g->slots = s;
    for (size_t i = 0; i < g->len; i++)
        if (s[i].panel == panel && s[i].rows == rows) {
            *first = s[i].first;
            s[g->len++] = (slot){ t->right, panel, *first, rows };
            return SHERD_OK;
        }
    if (!sherd__mul(g->r.len + rows, sizeof *g->r.keys, &bytes)) return SHERD_ENOMEM;
    sherd__column_key *keys = sherd__realloc(g->r.keys, bytes);
    if (!keys) return SHERD_ENOMEM;
    g->r.keys = keys;
    *first = g->r.len;
    memset(keys + *first, 0, rows * sizeof *keys);
    g->r.len += rows;
    s[g->len++] = (slot){ t->right, panel, *first, rows };
    return SHERD_OK;
}

static int take(reading *g, const sherd__view_task *t)
{
    size_t first = 0;
    int err;
    for (size_t i = g->len; i > 0; i--)
        if (g->slots[i - 1].right == t->right) return SHERD_OK;
    if (g->len == SLOTS_MAX) return SHERD_OK;
    uint8_t *left = body_of(g->v, t->left, &err), *right = NULL;
    if (left) {
        uint64_t panel = sherd__view_hash(left, (size_t)g->v->blocks[t->left].info.len);
        right = body_of(g->v, t->right, &err);
        if (right) err = place(g, t, panel, &first);
        if (right && !err) err = add_rows(g, &g->v->blocks[t->right], right, first);
    }
    sherd__free(left);
    sherd__free(right);
    return err;
}

int sherd__right_operand_of(sherd__right_operand *out, const sherd__node_view *v, uint64_t job)
{
    reading g = { .v = v };
    int err = SHERD_OK;
    for (size_t i = 0; i < v->tasks_len && !err; i++)
        if (v->tasks[i].job == job && usable(v, &v->tasks[i])) err = take(&g, &v->tasks[i]);
    sherd__free(g.slots);
    if (err) sherd__right_operand_fini(&g.r);
    else *out = g.r;
    return err;
}

int sherd__audit_right(sherd__findings *l, const sherd__right_operand *r, const char *who,
                       const sherd__truth *b)
{
    sherd_audit_finding f = { .test = "verbatim",
                              .statistic = "fraction of the rows of B",
                              .subject = "B",
                              .chance = 0,
                              .low = NAN,
                              .high = NAN,
                              .ln_p = 0 };
    sherd__sheaf rows = { .cols = r->len, .keys = r->keys };
    size_t all = b->a.cols, found = 0, telling = 0;
    uint32_t *col = sherd__calloc(r->len, 2 * sizeof *col);
    uint8_t *seen = sherd__calloc(all, 1);
    if (!col || !seen) {
        sherd__free(col);
        sherd__free(seen);
        return SHERD_ENOMEM;
    }
    sherd__truth_columns(b, &rows, col, col + r->len);
    for (size_t i = 0; i < r->len; i++) {
        if (col[i] == SHERD__TRUTH_NONE || seen[col[i]]) continue;
        seen[col[i]] = 1;
        found++;
        telling += r->keys[i].nonzeros > 0;
    }
    sherd__free(col);
    sherd__free(seen);
    f.value = all ? (double)found / (double)all : 0;
    if (telling) f.ln_p = fmin(0, (double)telling * (log((double)all) - 64 * M_LN2));
    snprintf(f.who, sizeof f.who, "%s", who);
    snprintf(f.sentence, sizeof f.sentence,
             "%zu of B's %zu rows were sent with all their values, in any order (by chance none: "
             "values are compared by a 64-bit hash)",
             found, all);
    return sherd__findings_add(l, &f);
}

/* Checks by shapes that B is the operand of which r was sent. b: the truth of B transposed. */
static int check_shape(const sherd__right_operand *r, const char *who, const sherd__truth *b,
                       sherd_diag *d)
{
    if (r->tall <= b->a.cols && r->wide <= b->a.rows) return SHERD_OK;
    return sherd__fail(d, SHERD_ESHAPE, "give the B that the recorded run was given",
                       "%s was sent %llu rows and %llu columns of B, and --right is %zu x %zu", who,
                       (unsigned long long)r->tall, (unsigned long long)r->wide, b->a.cols,
                       b->a.rows);
}

int sherd__audit_right_operand(sherd__findings *l, const sherd__views *v, uint64_t job,
                               const char *const *names, sherd_view b, sherd_diag *d)
{
    sherd__right_operand *r = sherd__calloc(v->len, sizeof *r);
    sherd__truth t = { 0 };
    bool integers = false;
    double largest = 0;
    int err = r ? SHERD_OK : SHERD_ENOMEM;
    for (size_t i = 0; i < v->len && !err; i++) {
        err = sherd__right_operand_of(&r[i], &v->nodes[i], job);
        integers |= r[i].integers;
        largest = fmax(largest, r[i].largest);
    }
    if (err) err = sherd__fail_memory(d, "what was sent of B");
    if (!err) err = sherd__truth_open(&t, sherd_view_t(b), integers, largest, d);
    for (size_t i = 0; i < v->len && !err; i++) err = check_shape(&r[i], names[i], &t, d);
    for (size_t i = 0; i < v->len && !err; i++)
        if (r[i].len > 0 && sherd__audit_right(l, &r[i], names[i], &t))
            err = sherd__fail_memory(d, "the rows of B");
    for (size_t i = 0; r && i < v->len; i++) sherd__right_operand_fini(&r[i]);
    sherd__free(r);
    sherd__truth_fini(&t);
    return err;
}
