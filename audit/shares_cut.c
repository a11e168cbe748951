/*
 * Shares of an operand for which the record describes the cut. The operand is cut into parts of
 * some rows, the last of which may be shorter. Each part is cut into its own K blocks, and its rows
 * in a share are sent in panels. Blocks that stay at nodes are numbered by share and panel, and the
 * numbers of others follow from their tasks' numbers. So the place of each is known, no matter
 * which was sent first, was sent again, or was not sent because a position had enough answers
 * without that domain. Attacks need the same rows of all shares, so the combination of panels and
 * domains with the most data is used.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/shares_internal.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "crypto/inner.h"

typedef struct cut {
    const sherd__view_coded *c;
    uint64_t height, panel; /* rows of a whole part in a share, and of a panel */
    uint64_t each, panels;  /* panels of a whole part, and total */
    uint32_t row_blocks;    /* into which the rows of a part are cut */
    uint64_t cols;          /* of a share */
} cut;

/* Position of panel p: first row and number of rows in its part, and in the share. */
typedef struct spot {
    uint64_t from, rows, height, at, count;
} spot;

/* A panel of one domain. */
typedef struct held {
    const sherd__node_view *v;
    size_t block;
} held;

static uint64_t divided(uint64_t a, uint64_t b)
{
    return a ? (a - 1) / b + 1 : 0;
}

static cut cut_of(const sherd__view_coded *c)
{
    cut k = { .c = c, .row_blocks = c->inner ? 1 : c->blocks };
    k.cols = c->inner ? divided(c->cols, c->blocks) : c->cols;
    k.height = divided(c->part, k.row_blocks);
    k.panel = c->panel < k.height ? c->panel : k.height;
    k.each = divided(k.height, k.panel);
    k.panels = c->rows / c->part * k.each +
               divided(divided(c->rows % c->part, k.row_blocks), k.panel);
    return k;
}

static spot spot_of(const cut *k, uint64_t p)
{
    uint64_t part = p / k->each, first = part * k->c->part, left = k->c->rows - first;
    spot s = { .from = first, .rows = left < k->c->part ? left : k->c->part };
    s.height = divided(s.rows, k->row_blocks);
    s.at = p % k->each * k->panel;
    s.count = s.height - s.at < k->panel ? s.height - s.at : k->panel;
    return s;
}

/* Returns the panel of this share that a task's left block is; UINT64_MAX: none that a coordinator
   could have sent. */
static uint64_t panel_of(const cut *k, const sherd__view_task *t, const sherd__view_block *b,
                         uint64_t share)
{
    uint64_t number = k->c->stays ? b->number : t->number, p;
    if (number == 0) return UINT64_MAX;
    number--;
    if (k->c->stays ? number / k->panels != share : number % k->c->shares != share)
        return UINT64_MAX;
    p = k->c->stays ? number % k->panels : number / k->c->shares % k->panels;
    return spot_of(k, p).count == b->info.rows && b->info.cols == k->cols ? p : UINT64_MAX;
}

/* Sets of[panel] to what domain `d` was sent; returns how many panels there are. */
static uint64_t find_panels(const cut *k, const sherd__views *v, uint32_t d, uint64_t job,
                            const sherd__seen_code *code, held *of)
{
    uint64_t have = 0;
    for (size_t i = 0; i < v->len; i++)
        for (size_t t = 0; v->nodes[i].domain == d && t < v->nodes[i].tasks_len; t++) {
            const sherd__view_task *task = &v->nodes[i].tasks[t];
            if (task->job != job || !sherd__shares_coded(&v->nodes[i], task) ||
                task->primes_len != code->primes_len ||
                memcmp(task->primes, code->primes, task->primes_len * sizeof *task->primes))
                continue;
            uint64_t p = panel_of(k, task, &v->nodes[i].blocks[task->left], d);
            if (p == UINT64_MAX || of[p].v) continue;
            of[p] = (held){ &v->nodes[i], task->left };
            have++;
        }
    return have;
}

/* ---- selection ------------------------------------------------------------------------------- */

typedef struct rank {
    uint64_t have;
    uint32_t domain;
} rank;

static int compare_ranks(const void *a, const void *b)
{
    const rank *x = a, *y = b;
    if (x->have != y->have) return x->have > y->have ? -1 : 1;
    return x->domain < y->domain ? -1 : 1;
}

/* Selects the domains that hold the most panels, as many as give the largest number of shares times
   panels. Puts them at the head of `order`, and marks in common[] the panels that all of them
   hold. */
static uint32_t choose(const held *of, uint64_t panels, rank *order, uint32_t len, uint8_t *common)
{
    uint64_t best = 0;
    uint32_t most = 0;
    qsort(order, len, sizeof *order, compare_ranks);
    memset(common, 1, panels);
    for (uint32_t i = 0; i < len; i++) {
        const held *mine = of + order[i].domain * panels;
        uint64_t left = 0;
        for (uint64_t p = 0; p < panels; p++) left += common[p] &= mine[p].v != NULL;
        if (left > 0 && left * (i + 1) >= best) {
            best = left * (i + 1);
            most = i + 1;
        }
    }
    memset(common, 1, panels);
    for (uint32_t i = 0; i < most; i++)
        for (uint64_t p = 0; p < panels; p++)
            common[p] &= of[order[i].domain * panels + p].v != NULL;
    return most;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int take_panels(shares_panel *to, const cut *k, const held *of, const uint8_t *common,
                       const uint32_t *primes, size_t rows_max)
{
    int err = SHERD_OK;
    for (uint64_t p = 0; p < k->panels && to->kept < rows_max && !err; p++) {
        shares_block b;
        if (!common[p]) continue;
        err = sherd__shares_body(of[p].v, &of[p].v->blocks[of[p].block], &b);
        if (err) break;
        err = sherd__shares_append(to, &b, primes, rows_max);
        sherd__free(b.body);
    }
    return err;
}

/* Sets the row of the data that row r of block j contains, for all selected rows. */
static void name_rows(const cut *k, const uint8_t *common, const uint32_t *order, size_t kept,
                      uint32_t *row)
{
    size_t r = 0;
    for (uint64_t p = 0; p < k->panels && r < kept; p++) {
        if (!common[p]) continue;
        const spot s = spot_of(k, p);
        for (uint64_t i = 0; i < s.count && r < kept; i++, r++)
            for (uint32_t j = 0; j < k->c->blocks; j++) {
                uint64_t at = (k->c->inner ? 0 : j) * s.height + s.at + i, of = s.from + at;
                row[j * kept + r] = at >= s.rows ? SHERD__SEEN_PADDING
                                    : order      ? order[of]
                                                 : (uint32_t)of;
            }
    }
}

/* Checks that the data are those that were coded: as many rows, or all rows that the record
   names. */
static int check_data(const sherd__view_coded *c, const uint32_t *order, uint64_t n, sherd_diag *d)
{
    static const char hint[] = "give the data that the recorded run was given";
    if (n == 0) return SHERD_OK;
    for (uint64_t i = 0; order && i < c->rows; i++)
        if (order[i] >= n)
            return sherd__fail(d, SHERD_EINVAL, hint,
                               "rows.npy: row %llu of the recorded operand is row %u of its data, "
                               "and --data has %llu",
                               (unsigned long long)i, order[i], (unsigned long long)n);
    if (order || n == c->rows) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, hint,
                       "the operand of this record has %llu rows, and --data has %llu",
                       (unsigned long long)c->rows, (unsigned long long)n);
}

/* The shares that are attacked: the panels that domains hold, the first `len` domains in this
 * order, and which panels all of them have; rows: the order of the data's rows, or NULL. */
typedef struct chosen {
    const held *of;
    const rank *order;
    uint32_t len;
    const uint8_t *common;
    const uint32_t *rows;
} chosen;

static int take_all(sherd__shares *s, shares_node *nodes, const cut *k, const chosen *x,
                    size_t rows_max)
{
    const rank *order = x->order;
    const uint8_t *common = x->common;
    const uint32_t len = x->len;
    uint64_t there = 0;
    int err = SHERD_OK;
    for (uint32_t i = 0; i < len && !err; i++)
        err = take_panels(&nodes[order[i].domain].a, k, x->of + order[i].domain * k->panels, common,
                          s->code.primes, rows_max);
    if (err) return err;
    size_t kept = nodes[order[0].domain].a.kept, cells;
    if (!sherd__mul(kept, k->c->blocks, &cells)) return SHERD_ENOMEM;
    s->rows = sherd__calloc(1, sizeof *s->rows);
    if (!s->rows || !(s->rows[0] = sherd__calloc(cells, sizeof **s->rows))) return SHERD_ENOMEM;
    s->rows_len = 1;
    for (uint32_t i = 0; i < len; i++) {
        nodes[order[i].domain].a.sent = 0;
        for (uint64_t p = 0; p < k->panels; p++)
            nodes[order[i].domain].a.sent += spot_of(k, p).count;
    }
    name_rows(k, common, x->rows, kept, s->rows[0]);
    for (uint64_t p = 0; p < k->panels; p++) there += common[p];
    if (there < k->panels || len < s->code.shares)
        snprintf(s->note, sizeof s->note,
                 "%llu of %llu panels of A are attacked, of %u of %u shares: not all were sent",
                 (unsigned long long)there, (unsigned long long)k->panels, len, s->code.shares);
    return SHERD_OK;
}

int sherd__shares_cut(sherd__shares *s, shares_node *nodes, const shares_job *from, sherd_diag *d)
{
    const sherd__views *v = from->v;
    const sherd__view_coded *c = from->cut;
    const uint32_t *rows = c->stays && v->order_len == c->rows ? v->order : NULL;
    const sherd__lcc code = { c->blocks, c->masks, c->shares };
    const sherd__code *by = c->inner ? &sherd__code_inner : &sherd__code_lagrange;
    const cut k = cut_of(c);
    size_t cells;
    for (uint32_t q = 0; q < s->code.primes_len; q++)
        if (by->check(&code, s->code.primes[q])) return SHERD_EFORMAT;
    if (c->shares != v->domains_len || s->code.primes_len == 0) return SHERD_EFORMAT;
    int err = check_data(c, rows, from->want->n, d);
    if (err) return err;
    if (k.panels > UINT32_MAX || !sherd__mul(c->shares, (size_t)k.panels, &cells))
        return SHERD_EFORMAT;
    held *of = sherd__calloc(cells, sizeof *of);
    uint8_t *common = sherd__calloc((size_t)k.panels, 1);
    rank *order = sherd__calloc(c->shares, sizeof *order);
    if (!of || !common || !order) err = SHERD_ENOMEM;
    for (uint32_t i = 0; i < c->shares && !err; i++)
        order[i] = (rank){ find_panels(&k, v, i, from->job, &s->code, of + i * k.panels), i };
    uint32_t len = err ? 0 : choose(of, k.panels, order, c->shares, common);
    if (!err && len == 0) err = SHERD_EFORMAT;
    s->code.blocks = c->blocks;
    s->code.masks = c->masks;
    s->code.shares = c->shares;
    s->code.form = c->inner ? SHERD__SEEN_INNER_LEFT : SHERD__SEEN_LAGRANGE;
    s->cols = c->cols;
    s->kind = c->both ? SHERD__SHARES_BOTH : SHERD__SHARES_ONE;
    s->stays = c->stays;
    s->order = rows;
    s->order_len = rows ? v->order_len : 0;
    s->largest = c->largest;
    s->largest_b = c->right;
    const chosen x = { of, order, len, common, rows };
    if (!err) err = take_all(s, nodes, &k, &x, from->want->rows);
    sherd__free(of);
    sherd__free(common);
    sherd__free(order);
    return err;
}
