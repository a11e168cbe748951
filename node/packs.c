/*
 * Rows by number. A table says of each example which pack has it and where, and nothing is held
 * there: a shard is looked up in the store when a step begins, so a pack may be dropped at any
 * time. Neighbours in a pack stay neighbours: where a shard is one run of a pack, as under orders
 * that do not change, nothing is copied. All memory counts in the node's budget, since a
 * coordinator decides how much of it there is.
 */
#include "node/packs.h"

#include <string.h>

#include "core/diag.h"
#include "node/examples.h"

enum {
    ALIGN = 64,
    UNSEEN_MOST = 1 << 20 /* packs between two steps, of which some were called off */
};

/* ---- the table ------------------------------------------------------------------------------- */

int sherd__packs_open(sherd__packs *p, sherd__pool *pool, uint32_t examples, sherd_diag *d)
{
    uint64_t bytes = sizeof *p->rows * (uint64_t)examples;
    *p = (sherd__packs){ .pool = pool, .examples = examples };
    p->rows = (sherd__packed *)(void *)sherd__pool_get(pool, bytes);
    if (!p->rows) {
        *p = (sherd__packs){ 0 };
        return sherd__fail(d, SHERD_ENOMEM, NULL, "no room to remember %u examples", examples);
    }
    memset(p->rows, 0, bytes);
    return SHERD_OK;
}

static void drop_list(sherd__packs *p)
{
    sherd__pool_give(p->pool, (uint8_t *)p->numbers, 4 * (uint64_t)p->list.len);
    p->numbers = NULL;
    p->list.len = 0;
}

void sherd__packs_close(sherd__packs *p)
{
    if (!p->rows) return;
    drop_list(p);
    sherd__pool_give(p->pool, (uint8_t *)p->rows, sizeof *p->rows * (uint64_t)p->examples);
    *p = (sherd__packs){ 0 };
}

static int take(sherd__packs *p, const sherd__block *b, uint32_t pack, sherd_diag *d)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(b->fragment);
    const uint8_t *bytes = sherd__fragment_bytes(b->fragment);
    if (i->dtype != SHERD_U32 || i->encoding != SHERD__DENSE || i->groups || i->rows != 1 || !bytes)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "block %u holds no numbers of rows", b->number);
    if (i->cols > p->examples)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "block %u numbers more rows than there are",
                           b->number);
    for (uint32_t k = 0; k < i->cols; k++) {
        uint32_t row;
        memcpy(&row, bytes + 4 * (size_t)k, 4);
        if (row >= p->examples)
            return sherd__fail(d, SHERD_EFORMAT, NULL, "row %u of %u", row, p->examples);
        p->rows[row] = (sherd__packed){ pack + 1, k };
    }
    return SHERD_OK;
}

int sherd__packs_take(sherd__packs *p, const sherd__store *store, uint64_t job, uint32_t packs,
                      sherd_diag *d)
{
    int err = SHERD_OK;
    if (packs > p->taken && packs - p->taken > UNSEEN_MOST) /* each is looked up, here */
        return sherd__fail(d, SHERD_EFORMAT, NULL, "%u packs came at once", packs - p->taken);
    for (; p->taken < packs && !err; p->taken++) {
        const sherd__block *b = sherd__store_find(store, job, sherd__circle_pack(p->taken));
        if (b) err = take(p, b, p->taken, d); /* else it was dropped before anybody asked */
    }
    return err;
}

int sherd__packs_list(sherd__packs *p, const sherd__rows *list, sherd_diag *d)
{
    if (p->list.len && sherd__rows_equal(&p->list, list)) return SHERD_OK;
    if (p->list.len != list->len) {
        drop_list(p);
        p->numbers = (uint32_t *)(void *)sherd__pool_get(p->pool, 4 * (uint64_t)list->len);
    }
    if (!p->numbers)
        return sherd__fail(d, SHERD_ENOMEM, NULL, "no room for a list of %u rows", list->len);
    p->list = *list;
    sherd__rows_list(list, p->numbers);
    return SHERD_OK;
}

/* ---- shards ---------------------------------------------------------------------------------- */

/* Whether b is the row behind a. */
static bool next_to(const sherd__packed *a, const sherd__packed *b)
{
    return a->pack == b->pack && a->at + 1 == b->at;
}

static int count_runs(const sherd__packs *p, const uint32_t *rows, uint64_t n, size_t *runs,
                      sherd_diag *d)
{
    *runs = 0;
    for (uint64_t i = 0; i < n; i++) {
        const sherd__packed *at = &p->rows[rows[i]];
        if (!at->pack) return sherd__fail(d, SHERD_EINVAL, NULL, "row %u is not here", rows[i]);
        *runs += i == 0 || !next_to(&p->rows[rows[i - 1]], at);
    }
    return SHERD_OK;
}

static int hold_run(const sherd__store *store, uint64_t job, uint32_t row,
                    const sherd__packed *at, sherd__run *out, sherd_diag *d)
{
    uint32_t block = sherd__circle_pack(at->pack - 1);
    sherd__block *x = sherd__store_find(store, job, block + 1);
    sherd__block *t = sherd__store_find(store, job, block + 2);
    if (!x || !t) return sherd__fail(d, SHERD_EINVAL, NULL, "row %u is not here any more", row);
    sherd__block_hold(x);
    sherd__block_hold(t);
    *out = (sherd__run){ x, t, at->at, 1 };
    return SHERD_OK;
}

static uint64_t input_bytes(const sherd__picked *p)
{
    const sherd__fragment_info *x = sherd__fragment_info_of(p->runs[0].x->fragment);
    return p->what.rows * x->cols * sherd_dtype_size((sherd_dtype)x->dtype);
}

static uint64_t target_bytes(const sherd__picked *p)
{
    const sherd__fragment_info *t = sherd__fragment_info_of(p->runs[0].targets->fragment);
    return p->what.rows * t->cols * sherd_dtype_size((sherd_dtype)t->dtype);
}

/* Each run fits its blocks, and all are of one kind. */
static int check_runs(const sherd__picked *p, size_t inputs, size_t width, sherd_diag *d)
{
    const sherd__fragment_info *x = sherd__fragment_info_of(p->runs[0].x->fragment);
    const sherd__fragment_info *t = sherd__fragment_info_of(p->runs[0].targets->fragment);
    for (size_t i = 0; i < p->len; i++) {
        const sherd__run *r = &p->runs[i];
        int err = sherd__examples_fit(r->x, r->targets, r->first, r->rows, inputs, width, d);
        if (err) return err;
        if (sherd__fragment_info_of(r->x->fragment)->dtype != x->dtype ||
            sherd__fragment_info_of(r->targets->fragment)->dtype != t->dtype)
            return sherd__fail(d, SHERD_ESHAPE, NULL, "blocks %u and %u hold numbers of two types",
                               p->runs[0].x->number, r->x->number);
    }
    return SHERD_OK;
}

int sherd__packs_pick(const sherd__packs *p, const sherd__store *store, uint64_t job,
                      const sherd__plan_shard *what, size_t inputs, size_t width,
                      sherd__picked *out, sherd_diag *d)
{
    const uint32_t *rows = p->numbers + what->first;
    *out = (sherd__picked){ .what = *what, .pool = p->pool };
    int err = count_runs(p, rows, what->rows, &out->room, d);
    if (err) return err;
    out->runs = (sherd__run *)(void *)sherd__pool_get(p->pool, out->room * sizeof *out->runs);
    if (!out->runs)
        return sherd__fail(d, SHERD_ENOMEM, NULL, "no room to find %llu examples",
                           (unsigned long long)what->rows);
    for (uint64_t i = 0; i < what->rows && !err; i++) {
        const sherd__packed *at = &p->rows[rows[i]];
        if (i > 0 && next_to(&p->rows[rows[i - 1]], at)) {
            out->runs[out->len - 1].rows++;
            continue;
        }
        err = hold_run(store, job, rows[i], at, &out->runs[out->len], d);
        if (!err) out->len++;
    }
    if (!err) err = check_runs(out, inputs, width, d);
    if (!err && out->len > 1)
        out->scratch = (input_bytes(out) + ALIGN - 1) / ALIGN * ALIGN + target_bytes(out);
    return err;
}

/* Rows `first` on of a block of `row` bytes each. */
static const uint8_t *at_row(const sherd__block *b, uint64_t first, uint64_t row)
{
    return sherd__fragment_bytes(b->fragment) + first * row;
}

sherd__shard sherd__picked_shard(const sherd__picked *p, uint8_t *scratch)
{
    sherd__block *x = p->runs[0].x, *t = p->runs[0].targets;
    const sherd__fragment_info *xi = sherd__fragment_info_of(x->fragment);
    bool labels = sherd__fragment_info_of(t->fragment)->dtype == SHERD_U32;
    uint64_t x_row = input_bytes(p) / p->what.rows, t_row = target_bytes(p) / p->what.rows;
    const uint8_t *from = at_row(x, p->runs[0].first, x_row);
    const uint8_t *targets = at_row(t, p->runs[0].first, t_row);
    if (p->len > 1) {
        uint8_t *to = scratch, *t_to = scratch + p->scratch - target_bytes(p);
        from = to;
        targets = t_to;
        for (size_t i = 0; i < p->len; i++) {
            const sherd__run *r = &p->runs[i];
            memcpy(to, at_row(r->x, r->first, x_row), r->rows * x_row);
            memcpy(t_to, at_row(r->targets, r->first, t_row), r->rows * t_row);
            to += r->rows * x_row;
            t_to += r->rows * t_row;
        }
    }
    sherd__shard out = { .x = sherd_view_c(from, (sherd_dtype)xi->dtype, (size_t)p->what.rows,
                                      (size_t)xi->cols), .targets = { .labels = NULL } };
    if (labels) out.targets.labels = (const uint32_t *)(const void *)targets;
    else out.targets.values = (const double *)(const void *)targets;
    return out;
}

void sherd__picked_release(sherd__picked *p)
{
    for (size_t i = 0; i < p->len; i++) {
        sherd__block_release(p->runs[i].x);
        sherd__block_release(p->runs[i].targets);
    }
    sherd__pool_give(p->pool, (uint8_t *)p->runs, p->room * sizeof *p->runs);
    *p = (sherd__picked){ 0 };
}
