/*
 * Finds the code and converts its shares to the arrays that attacks use. Tiles of B are judged as
 * separate encodings: attacks must find whether they are parts of one mask, or one mask used twice.
 * The record says how A was cut, if it has that information and it agrees with the transferred
 * data. Otherwise A is taken as cut once, and the code is the one that gives shares of the observed
 * height. A domain is left out if its share is less high than the others', because parts were lost
 * or late.
 */
#include "audit/shares.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/shares_internal.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "crypto/fragment.h"
#include "crypto/inner.h"
#include "schemes/share/share.h"

typedef struct moved {
    uint64_t job, bytes;
} moved;

static int compare_moved(const void *a, const void *b)
{
    const moved *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return (x->job > y->job) - (x->job < y->job);
}

static int compare_jobs(const void *a, const void *b)
{
    const moved *x = a, *y = b;
    return (x->job > y->job) - (x->job < y->job);
}

/* Lists every coded task. */
static size_t list_tasks(const sherd__views *v, moved *list)
{
    size_t n = 0;
    for (size_t i = 0; i < v->len; i++)
        for (size_t t = 0; t < v->nodes[i].tasks_len; t++) {
            const sherd__view_task *task = &v->nodes[i].tasks[t];
            if (sherd__shares_coded(&v->nodes[i], task))
                list[n++] = (moved){ task->job, v->nodes[i].blocks[task->left].info.len };
        }
    return n;
}

int sherd__shares_jobs(const sherd__views *v, uint64_t **jobs, size_t *len)
{
    size_t all = 1, n = 0, tasks;
    for (size_t i = 0; i < v->len; i++) all += v->nodes[i].tasks_len;
    moved *list = sherd__calloc(all, sizeof *list);
    uint64_t *out = sherd__calloc(all, sizeof *out);
    *jobs = NULL;
    *len = 0;
    if (!list || !out) {
        sherd__free(list);
        sherd__free(out);
        return SHERD_ENOMEM;
    }
    tasks = list_tasks(v, list);
    qsort(list, tasks, sizeof *list, compare_jobs);
    for (size_t i = 0; i < tasks; i++) {
        if (n > 0 && list[n - 1].job == list[i].job) list[n - 1].bytes += list[i].bytes;
        else list[n++] = list[i];
    }
    qsort(list, n, sizeof *list, compare_moved);
    for (size_t i = 0; i < n; i++) out[i] = list[i].job;
    sherd__free(list);
    *jobs = out;
    *len = n;
    return SHERD_OK;
}

/* ---- the code -------------------------------------------------------------------------------- */

/* Returns whether shares of so many columns are parts of the columns of A, as the auditor says, or
 * as its data show. */
static bool by_columns(size_t cols, const sherd__shares_want *w)
{
    return w->code == SHERD_CODE_AUTO ? w->cols > cols : w->code == SHERD_CODE_INNER;
}

static sherd__shares_kind kind_of(const shares_node *nodes, size_t len, const sherd__shares_want *w)
{
    uint64_t right = 0, rows = 0;
    size_t have = 0;
    bool same = true, inner = false;
    for (size_t i = 0; i < len; i++) {
        if (!nodes[i].tiles) continue;
        if (right && nodes[i].right_operands[0] != right) same = false;
        right = nodes[i].right_operands[0];
        rows += nodes[i].a.rows;
        inner = inner || by_columns(nodes[i].a.cols, w);
        have++;
    }
    if (inner || (have > 1 && !same)) return SHERD__SHARES_BOTH;
    return w->n > 0 && rows == w->n ? SHERD__SHARES_BLIND
           : have > 1               ? SHERD__SHARES_ONE
                                    : SHERD__SHARES_BOTH;
}

/* Chooses the inner-product code, whose shares have all rows of A, and some of its columns. */
static int choose_inner(sherd__shares *s, uint32_t shares, size_t cols, const sherd__shares_want *w,
                        sherd_diag *d)
{
    uint32_t blocks = sherd__code_inner.blocks(shares, w->masks, 0, true);
    bool fits = blocks && (!w->n || w->n == s->share_rows) &&
                (!w->cols || (w->cols - 1) / blocks + 1 == cols);
    s->code.blocks = blocks;
    s->code.masks = w->masks;
    s->code.shares = shares;
    s->code.form = SHERD__SEEN_INNER_LEFT;
    s->cols = w->cols ? w->cols : (uint64_t)blocks * cols;
    const sherd__lcc c = { blocks, w->masks, shares };
    for (uint32_t q = 0; q < s->code.primes_len; q++)
        fits = fits && sherd__code_inner.check(&c, s->code.primes[q]) == 0;
    return fits ? SHERD_OK
                : sherd__fail(d, SHERD_EINVAL, "give the --colluding T of the run, and its A",
                              "no inner-product code of %u nodes with T = %u has shares of %llu x "
                              "%zu",
                              shares, w->masks, (unsigned long long)s->share_rows, cols);
}

static int choose_code(sherd__shares *s, uint32_t shares, size_t cols, const sherd__shares_want *w,
                       sherd_diag *d)
{
    const uint32_t masks = w->masks;
    const uint64_t n = w->n;
    bool both = s->kind == SHERD__SHARES_BOTH;
    if (both && by_columns(cols, w)) return choose_inner(s, shares, cols, w, d);
    uint32_t blocks = sherd__lcc_blocks(shares, masks, w->spare, both);
    uint64_t h = s->share_rows;
    if (n > 0)
        for (uint32_t k = 1;
             k + masks <= SHERD__LCC_BLOCKS_MAX && (blocks == 0 || (n + blocks - 1) / blocks != h);
             k++)
            if ((n + k - 1) / k == h) blocks = k;
    if (blocks == 0 || (n > 0 && (n + blocks - 1) / blocks != h))
        return sherd__fail(d, SHERD_EINVAL,
                           "give the --colluding T and --spare S of the run, and its A",
                           "no code of %u nodes with T = %u has shares of %llu rows", shares, masks,
                           (unsigned long long)h);
    s->code.blocks = blocks;
    s->code.masks = masks;
    s->code.shares = shares;
    const sherd__lcc c = { blocks, masks, shares };
    for (uint32_t q = 0; q < s->code.primes_len; q++)
        if (sherd__lcc_check(&c, s->code.primes[q]))
            return sherd__fail(d, SHERD_EINVAL, "give the --colluding T and --spare S of the run",
                               "K = %u, T = %u, N = %u is not a code", blocks, masks, shares);
    return SHERD_OK;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static void give(sherd__shares *s, const uint32_t **index, uint32_t share, shares_panel *p,
                 uint32_t primes)
{
    for (uint32_t q = 0; q < primes; q++) {
        index[(size_t)share * primes + q] = p->of[q];
        s->arrays[s->arrays_len++] = p->of[q];
        p->of[q] = NULL;
    }
}

/* Returns A's panel or a tile of B; NULL for a domain with another number of tiles than most. */
static shares_panel *part_of(shares_node *n, uint32_t part, uint32_t tiles)
{
    return part == 0 ? &n->a : n->tiles == tiles ? &n->b[part - 1] : NULL;
}

/* Returns the shape that most domains have; domains of other shapes are left out. */
static const shares_panel *common(shares_node *nodes, size_t len, uint32_t part, uint32_t tiles)
{
    const shares_panel *best = NULL;
    size_t most = 0;
    for (size_t i = 0; i < len; i++) {
        const shares_panel *p = part_of(&nodes[i], part, tiles);
        size_t same = 0;
        for (size_t j = 0; p && p->kept && j < len; j++) {
            const shares_panel *o = part_of(&nodes[j], part, tiles);
            same += o && o->rows == p->rows && o->cols == p->cols && o->kept == p->kept;
        }
        if (same > most) {
            most = same;
            best = p;
        }
    }
    return best;
}

/* "A"; "B", "B, tile 2", ..., or "right 1", "right 2", ... */
static const char *name_part(sherd__shares *s, uint32_t part)
{
    char *name = s->parts[part];
    size_t size = sizeof *s->parts;
    if (part == 0) snprintf(name, size, "A");
    else if (s->stays) snprintf(name, size, "right %u", part);
    else if (part == 1) snprintf(name, size, "B");
    else snprintf(name, size, "B, tile %u", part);
    return name;
}

/* Makes sherd__seen.order of a panel: masks of residues of one byte are drawn block by block. *out
 * is NULL without such residues. */
static int drawing_order(sherd__shares *s, const shares_panel *p, const uint32_t **out)
{
    bool bytes = false;
    size_t first = 0;
    for (size_t i = 0; i < p->pieces_len; i++)
        bytes |= sherd__fragment_is_bytes(p->pieces[i].dtype);
    *out = NULL;
    if (!bytes) return SHERD_OK;
    uint32_t *order = sherd__calloc(p->kept * p->cols, sizeof *order);
    if (!order) return SHERD_ENOMEM;
    *out = s->arrays[s->arrays_len++] = order;
    for (size_t i = 0; i < p->pieces_len; i++) {
        const shares_piece *x = &p->pieces[i];
        const size_t len = x->kept * p->cols;
        if (sherd__fragment_is_bytes(x->dtype))
            sherd__share_drawn(x->dtype == SHERD__BYTES_LEFT, x->rows, p->cols, x->kept, order);
        for (size_t k = 0; k < len; k++)
            order[k] = (uint32_t)(first + (sherd__fragment_is_bytes(x->dtype) ? order[k] : k));
        first += len;
        order += len;
    }
    return SHERD_OK;
}

static int take_code(sherd__shares *s, shares_node *nodes, size_t len, uint32_t part,
                     uint32_t tiles, const shares_panel *shape)
{
    const shares_panel want = *shape;
    const uint32_t *order;
    uint32_t primes = s->code.primes_len, *seeded = sherd__calloc(len, sizeof *seeded);
    const uint32_t **index = s->index + part * len * primes;
    if (!seeded) return SHERD_ENOMEM;
    s->arrays[s->arrays_len++] = seeded;
    int err = drawing_order(s, shape, &order);
    if (err) return err;
    for (size_t i = 0; i < len; i++) {
        shares_panel *p = part_of(&nodes[i], part, tiles);
        if (p && p->rows == want.rows && p->cols == want.cols && p->kept == want.kept) {
            give(s, index, (uint32_t)i, p, primes);
            seeded[i] = p->seeded;
        } else if (part == 0 && !s->note[0]) {
            snprintf(s->note, sizeof s->note,
                     "a node's share is not as high as the others' and was left out: it was lost, "
                     "or arrived late");
        }
    }
    s->seen[s->seen_len++] = (sherd__seen){
        .name = name_part(s, part),
        .code = &s->code,
        .rows = want.kept,
        .cols = want.cols,
        .order = order,
        .residues = index,
        .seeded = seeded,
        .domain = s->numbered ? s->domains : NULL,
        .row = part > 0      ? s->right_row
               : s->rows_len ? s->rows[0]
                             : NULL,
        .rows_sent = want.sent,
        .right = part > 0 && !s->stays,
        .col = part > 0 ? (part - 1) * s->tile_cols : 0,
        .block_cols = part == 0 && s->code.form != SHERD__SEEN_LAGRANGE ? want.cols : 0,
    };
    return SHERD_OK;
}

static int take_apart(sherd__shares *s, const uint32_t **index, shares_panel *p, size_t domain,
                      const char *name, const uint32_t *row)
{
    const uint32_t *order;
    if (p->kept == 0) return SHERD_OK;
    int err = drawing_order(s, p, &order);
    if (err) return err;
    s->domains[domain] = (uint32_t)domain;
    s->seen[s->seen_len++] = (sherd__seen){ .name = name,
                                            .code = &s->single,
                                            .rows = p->kept,
                                            .cols = p->cols,
                                            .order = order,
                                            .residues = index,
                                            .domain = &s->domains[domain],
                                            .row = row,
                                            .rows_sent = p->sent };
    give(s, index, 0, p, s->code.primes_len);
    return SHERD_OK;
}

/*
 * blind cuts A's rows into one range for each of `slots` nodes, and these into panels. Tasks are
 * numbered panel by panel: for each panel over all slots, then for the next panel, then for the
 * next tile. The first panel of the first range is the highest, so its height, and all positions
 * from it, follow from what a listener sees.
 */
static int rows_of_blind(sherd__shares *s, const shares_node *nodes, size_t len, size_t slots,
                         uint64_t n)
{
    uint64_t each = n / slots, more = n % slots, first = each + (more > 0), high = 0;
    for (size_t i = 0; i < len; i++)
        for (size_t k = 0; k < nodes[i].known_len; k++)
            if (nodes[i].places[k].rows > high) high = nodes[i].places[k].rows;
    if (high == 0 || first == 0 || n > UINT32_MAX) return SHERD_OK;
    uint64_t panels = (first - 1) / high + 1;
    for (size_t i = 0; i < len; i++) {
        const shares_node *d = &nodes[i];
        uint32_t *row = sherd__calloc(d->a.kept, sizeof *row);
        if (!row) return SHERD_ENOMEM;
        s->rows[s->rows_len++] = row;
        for (size_t k = 0; k < d->a.kept; k++) row[k] = SHERD__SEEN_UNKNOWN;
        for (size_t k = 0; k < d->known_len; k++) {
            const shares_place *p = &d->places[k];
            uint64_t ordinal = p->task ? p->task - 1 : UINT64_MAX, slot = ordinal % slots;
            uint64_t begin = slot * each + (slot < more ? slot : more), rows = each + (slot < more);
            uint64_t from = ordinal / slots % panels * high;
            if (p->task == 0 || from + p->rows > rows)
                continue; /* a coordinator does not send this */
            for (size_t r = 0; r < p->rows && p->at + r < d->a.kept; r++)
                row[p->at + r] = (uint32_t)(begin + from + r);
        }
    }
    return SHERD_OK;
}

/* Takes every domain separately; also for B, except where it is public. */
static int take_all_apart(sherd__shares *s, shares_node *nodes, size_t len, size_t slots,
                          uint64_t n, sherd_diag *d)
{
    bool blind = s->kind == SHERD__SHARES_BLIND;
    s->apart = true;
    s->single = s->code;
    s->single.blocks = s->single.masks = s->single.shares = 1;
    s->single.one_time = blind;
    if (blind && slots && rows_of_blind(s, nodes, len, slots, n))
        return sherd__fail_memory(d, "the shares");
    int err = SHERD_OK;
    for (size_t i = 0; i < len && !err; i++) {
        const uint32_t **index = s->index + 2 * i * s->code.primes_len;
        err = take_apart(s, index, &nodes[i].a, i, "A", s->rows_len ? s->rows[i] : NULL);
        if (!err && s->kind == SHERD__SHARES_BOTH && nodes[i].tiles > 0)
            err = take_apart(s, index + s->code.primes_len, &nodes[i].b[0], i, "B", NULL);
    }
    if (err) return sherd__fail_memory(d, "the shares");
    if (s->seen_len > 0) return SHERD_OK;
    return sherd__fail(d, SHERD_EFORMAT, NULL, "no share of the record is complete");
}

/* Names the rows of B in the blocks that it was cut into, `kept` rows of shares of `rows`. */
static int name_right(sherd__shares *s, size_t rows, size_t kept)
{
    size_t cells;
    if (!sherd__mul(kept, s->code.blocks, &cells)) return SHERD_ENOMEM;
    uint32_t *row = sherd__calloc(cells, sizeof *row);
    if (!row) return SHERD_ENOMEM;
    s->right_row = row;
    for (size_t j = 0; j < s->code.blocks; j++)
        for (size_t r = 0; r < kept; r++)
            *row++ = j * rows + r < s->cols ? (uint32_t)(j * rows + r) : SHERD__SEEN_PADDING;
    return SHERD_OK;
}

/* Takes one code over all domains: A's shares and every tile of a coded B. cut: A's cut is already
   known. */
static int take_together(sherd__shares *s, shares_node *nodes, size_t len, bool cut,
                         const sherd__shares_want *w, sherd_diag *d)
{
    uint32_t tiles = 0;
    size_t sent = 0;
    bool more = false;
    for (size_t i = 0; i < len; i++) {
        if (nodes[i].tiles > tiles) tiles = nodes[i].tiles;
        if (nodes[i].rights_sent > sent) sent = nodes[i].rights_sent;
        more = more || nodes[i].more;
    }
    const shares_panel *a = common(nodes, len, 0, tiles), *b = common(nodes, len, 1, tiles);
    if (!a || (!b && s->kind == SHERD__SHARES_BOTH))
        return sherd__fail(d, SHERD_EFORMAT, NULL, "no share of the record is complete");
    s->share_rows = a->rows;
    s->tile_cols = b ? b->cols : 0;
    int err = cut ? SHERD_OK : choose_code(s, (uint32_t)len, a->cols, w, d);
    if (err) return err;
    if (s->code.form != SHERD__SEEN_LAGRANGE && name_right(s, b->rows, b->kept))
        return sherd__fail_memory(d, "the shares");
    err = take_code(s, nodes, len, 0, tiles, a);
    for (uint32_t t = 1; t <= tiles && s->kind == SHERD__SHARES_BOTH && !err; t++)
        if ((b = common(nodes, len, t, tiles))) err = take_code(s, nodes, len, t, tiles, b);
    if (err) return sherd__fail_memory(d, "the shares");
    if (more && s->kind == SHERD__SHARES_BOTH)
        snprintf(
            s->left_out, sizeof s->left_out,
            s->stays
                ? "A was multiplied by %zu operands or tiles: shares of the first %u are "
                  "attacked; --encodings attacks more"
                : "B was sent in %zu tiles: the first %u are attacked; --encodings attacks more",
            sent, w->right_operands);
    return SHERD_OK;
}

/* Returns the share that a domain's own records belong to, from the least number of their tasks,
   since tasks are numbered position by position and, within a position, share by share. *step
   becomes a multiple of the number of shares. UINT32_MAX: no coded task. */
static uint32_t number_of(const sherd__views *v, uint32_t domain, uint64_t job, uint32_t *step)
{
    uint32_t least = UINT32_MAX;
    for (int again = 0; again < 2; again++)
        for (size_t i = 0; i < v->len; i++)
            for (size_t t = 0; v->nodes[i].domain == domain && t < v->nodes[i].tasks_len; t++) {
                const sherd__view_task *task = &v->nodes[i].tasks[t];
                if (task->job != job || !sherd__shares_coded(&v->nodes[i], task)) continue;
                if (!again && task->number > 0 && task->number - 1 < least)
                    least = task->number - 1;
                for (uint32_t a = task->number - 1 - least; again && a;) { /* greatest common
                                                                              divisor */
                    uint32_t rest = *step % a;
                    *step = a;
                    a = rest;
                }
            }
    return least;
}

/* For nodes' own records: sorts the shares (*len of them) by their numbers, and sets their domains.
   Nothing changes if the numbers contradict each other, if no code fits, or if the scheme may be
   `blind`: its nodes also all have the same B. */
static int number_shares(sherd__shares *s, shares_node **nodes, size_t *len, const sherd__views *v,
                         uint64_t job, const sherd__shares_want *w)
{
    const shares_panel *a = common(*nodes, *len, 0, 0);
    uint32_t step = 0, most = 0, *number;
    bool agree = true;
    s->kind = kind_of(*nodes, *len, w);
    if (!a || *len < 2 || s->kind == SHERD__SHARES_BLIND ||
        (s->kind == SHERD__SHARES_ONE && w->n == 0))
        return SHERD_OK;
    number = sherd__calloc(*len, sizeof *number);
    if (!number) return SHERD_ENOMEM;
    s->share_rows = a->rows;
    for (uint32_t i = 0; i < *len; i++) {
        number[i] = number_of(v, i, job, &step);
        if (number[i] != UINT32_MAX && number[i] >= most) most = number[i] + 1;
        for (uint32_t j = 0; j < i; j++) agree &= number[i] != number[j];
    }
    if (most < *len) most = (uint32_t)*len;
    agree = agree && most <= SHERD__LCC_BLOCKS_MAX && (step == 0 || step % most == 0) &&
            choose_code(s, most, a->cols, w, NULL) == 0;
    shares_node *list = agree ? sherd__calloc(most, sizeof *list) : NULL;
    if (list) s->domains = sherd__calloc(most, sizeof *s->domains);
    for (uint32_t i = 0; s->domains && i < *len; i++) {
        if (number[i] == UINT32_MAX) continue;
        list[number[i]] = (*nodes)[i];
        s->domains[number[i]] = i;
        (*nodes)[i] = (shares_node){ 0 };
    }
    sherd__free(number);
    if (!agree) return SHERD_OK;
    if (!s->domains) {
        sherd__free(list);
        return SHERD_ENOMEM;
    }
    for (size_t i = 0; i < *len; i++) sherd__shares_node_fini(&(*nodes)[i]);
    sherd__free(*nodes);
    *nodes = list;
    *len = most;
    s->numbered = true;
    snprintf(s->note, sizeof s->note,
             "nodes' own records do not state which share belongs to which node: shares are "
             "numbered by their tasks, as if all nodes had been recorded");
    return SHERD_OK;
}

/* cut: the shares were read by the record's description of their cut. */
static int arrange(sherd__shares *s, shares_node *nodes, size_t len, const shares_job *of, bool cut,
                   sherd_diag *d)
{
    const sherd__views *v = of->v;
    const sherd__shares_want *w = of->want;
    size_t parts = 2, most; /* A and B, and one for each additional operand that was sent */
    for (size_t i = 0; i < len; i++)
        if (nodes[i].tiles + (size_t)1 > parts) parts = nodes[i].tiles + (size_t)1;
    most = parts * len * SHERD__AUDIT_PRIMES;
    if (!cut) s->kind = kind_of(nodes, len, w);
    s->parts = sherd__calloc(parts, sizeof *s->parts);
    if (!cut) s->rows = sherd__calloc(len, sizeof *s->rows);
    s->arrays = sherd__calloc(most + 2 * parts + 2 * len,
                              sizeof *s->arrays); /* and of their order */
    s->index = sherd__calloc(most, sizeof *s->index);
    s->seen = sherd__calloc(parts + 2 * len, sizeof *s->seen);
    if (!s->numbered) s->domains = sherd__calloc(len, sizeof *s->domains);
    for (size_t i = 0; i < len; i++) {
        s->stray += nodes[i].a.stray;
        for (uint32_t k = 0; k < nodes[i].tiles; k++) s->stray += nodes[i].b[k].stray;
    }
    if (!s->parts || !s->arrays || !s->index || !s->seen || !s->domains || !s->rows)
        return sherd__fail_memory(d, "the shares");
    if (!v->of_coordinator && !s->numbered)
        snprintf(s->note, sizeof s->note,
                 "nodes' own records do not state which share belongs to which node: coalitions "
                 "are attacked only in a coordinator's record");
    if (s->kind == SHERD__SHARES_BLIND || (!v->of_coordinator && !s->numbered))
        return take_all_apart(s, nodes, len, v->of_coordinator ? v->len : 0, w->n, d);
    return take_together(s, nodes, len, cut, w, d);
}

/* Reads the cut that the record describes; *cut is false if it has no usable description. */
static int read_cut(sherd__shares *s, shares_node *nodes, shares_job of, bool *cut, sherd_diag *d)
{
    const sherd__views *v = of.v;
    int err = SHERD_OK;
    *cut = false;
    of.cut = v->of_coordinator ? sherd__view_coding(v, of.job) : NULL;
    if (!of.cut) return SHERD_OK;
    for (uint32_t i = 0; i < v->domains_len && !err; i++)
        err = sherd__shares_domain(&nodes[i], &of, i, &s->code);
    if (!err) err = sherd__shares_cut(s, nodes, &of, d);
    *cut = !err;
    if (err != SHERD_EFORMAT) return err;
    for (uint32_t i = 0; i < v->domains_len; i++) sherd__shares_node_fini(&nodes[i]);
    memset(nodes, 0, v->domains_len * sizeof *nodes);
    *s = (sherd__shares){ .note = "the description of the code (coded.jsonl) disagrees with what "
                                  "was sent, and is not used" };
    return SHERD_OK;
}

int sherd__shares_read(sherd__shares *out, const sherd__views *v, uint64_t job,
                       const sherd__shares_want *w, sherd_diag *d)
{
    const shares_job of = { v, job, w, NULL };
    sherd__shares s = { 0 };
    size_t len = v->domains_len;
    bool cut = false;
    shares_node *nodes = sherd__calloc(len, sizeof *nodes);
    int err = nodes ? read_cut(&s, nodes, of, &cut, d) : SHERD_ENOMEM;
    for (uint32_t i = 0; i < len && !err && !cut; i++)
        err = sherd__shares_domain(&nodes[i], &of, i, &s.code);
    if (!err && !v->of_coordinator) err = number_shares(&s, &nodes, &len, v, job, w);
    if (err == SHERD_ENOMEM) err = sherd__fail_memory_hint(d, "give fewer --rows", "the shares");
    if (!err) err = arrange(&s, nodes, len, &of, cut, d);
    for (size_t i = 0; nodes && i < len; i++) sherd__shares_node_fini(&nodes[i]);
    sherd__free(nodes);
    *out = s;
    if (err) {
        sherd__shares_fini(out);
        return err;
    }
    out->code_b = out->code;
    if (out->code.form != SHERD__SEEN_LAGRANGE) out->code_b.form = SHERD__SEEN_INNER_RIGHT;
    for (uint32_t i = 0; i < out->seen_len; i++) /* the arrays moved with *out */
        out->seen[i].code = out->apart           ? &out->single
                            : out->seen[i].right ? &out->code_b
                                                 : &out->code;
    return SHERD_OK;
}

int sherd__shares_number(sherd__shares *s, unsigned product)
{
    s->names = sherd__calloc(s->seen_len, sizeof *s->names);
    if (!s->names) return SHERD_ENOMEM;
    for (uint32_t i = 0; i < s->seen_len; i++) {
        snprintf(s->names[i], sizeof *s->names, "%.12s (%u)", s->seen[i].name, product);
        s->seen[i].name = s->names[i];
    }
    return SHERD_OK;
}

bool sherd__shares_right(const sherd__shares *s)
{
    bool is = false;
    for (uint32_t i = 0; i < s->seen_len; i++) is |= s->seen[i].right && !s->apart;
    return is;
}

void sherd__shares_fini(sherd__shares *s)
{
    sherd__free(s->parts);
    sherd__free(s->names);
    for (size_t i = 0; i < s->arrays_len; i++) sherd__free(s->arrays[i]);
    for (size_t i = 0; i < s->rows_len; i++) sherd__free(s->rows[i]);
    sherd__free(s->arrays);
    sherd__free(s->rows);
    sherd__free(s->right_row);
    sherd__free(s->index);
    sherd__free(s->seen);
    sherd__free(s->domains);
    memset(s, 0, sizeof *s);
}
