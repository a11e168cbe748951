/*
 * Builds shares from blocks. The left blocks of a domain's tasks, in the order of the tasks'
 * numbers, are the panels of its share of A. Each counts once, no matter how often and to which of
 * its nodes it was sent. The right blocks, in the order of their first use, are the tiles of its
 * share of B, or all matrices that A was multiplied by.
 */
#include <stdlib.h>
#include <string.h>

#include "audit/shares_internal.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "core/memory.h"
#include "crypto/seed.h"

#define PANELS_MAX 65536u

/* A task of one of a domain's nodes. key: its number or its attempt. */
typedef struct turn {
    const sherd__node_view *v;
    const sherd__view_task *t;
    uint32_t key;
} turn;

bool sherd__shares_coded(const sherd__node_view *v, const sherd__view_task *t)
{
    if (t->left == SHERD__VIEW_NONE || t->right == SHERD__VIEW_NONE) return false;
    const sherd__view_block *a = &v->blocks[t->left], *b = &v->blocks[t->right];
    bool right = b->info.primes == 0 || (b->info.groups <= 1 && b->info.primes == t->primes_len);
    bool left = a->info.primes > 0 && a->info.groups <= 1 && a->info.rows > 0 && a->info.cols > 0 &&
                a->info.primes == t->primes_len;
    return t->primes_len > 0 && a->whole && b->whole && left && right;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Returns the offset in a body of residue (row, col) modulo prime number q. Residues of one byte
   are in tiles of 16 lines and 64 terms (docs/PROTOCOL.md). */
static size_t offset_of(const sherd__fragment_info *i, uint32_t q, size_t row, size_t col)
{
    const bool left = i->dtype == SHERD__BYTES_LEFT;
    const size_t rows = (size_t)i->rows, cols = (size_t)i->cols;
    if (!sherd__fragment_is_bytes(i->dtype))
        return 8 * (size_t)i->groups + 3 * ((q * rows + row) * cols + col);
    const size_t line = left ? row : col, term = left ? col : row;
    const size_t tiles = ((left ? cols : rows) + 63) / 64;
    const size_t tile = (line / 16 * i->primes + q) * tiles + term / 64;
    return tile * 1024 +
           (left ? line % 16 * 64 + term % 64 : term % 64 / 4 * 64 + line % 16 * 4 + term % 4);
}

/* Reads a residue of one byte: signed in a right block. */
static uint32_t byte_residue(uint8_t dtype, uint8_t byte, uint32_t p)
{
    const int32_t value = dtype == SHERD__BYTES_RIGHT ? (int8_t)byte : byte;
    const int32_t half = ((int32_t)p - 1) / 2;
    if (dtype == SHERD__BYTES_RIGHT && (value > half || value < -half)) return p + byte;
    return value < 0 ? p - (uint32_t)-value : (uint32_t)value;
}

static uint32_t residue_of(const sherd__fragment_info *i, const uint8_t *at, uint32_t p)
{
    return sherd__fragment_is_bytes(i->dtype)
               ? byte_residue(i->dtype, *at, p)
               : (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16;
}

/* Counts the bytes of a laid out block that are not 0 and belong to no residue. They must be 0: a
   coordinator could send anything in them. */
static uint64_t stray_bytes(const sherd__fragment_info *i, const uint8_t *body)
{
    uint64_t stray = 0;
    if (!sherd__fragment_is_bytes(i->dtype)) return 0;
    for (size_t b = 0; b < i->len; b++) stray += body[b] != 0;
    for (uint32_t q = 0; q < i->primes; q++)
        for (size_t r = 0; r < i->rows; r++)
            for (size_t c = 0; c < i->cols; c++) stray -= body[offset_of(i, q, r, c)] != 0;
    return stray;
}

int sherd__shares_append(shares_panel *p, const shares_block *b, const uint32_t *primes,
                         size_t rows_max)
{
    const sherd__fragment_info *info = &b->info;
    const uint8_t *body = b->body;
    size_t rows = (size_t)info->rows, cols = (size_t)info->cols, bytes;
    size_t take = p->kept >= rows_max ? 0 : rows < rows_max - p->kept ? rows : rows_max - p->kept;
    if (p->cols != 0 && p->cols != cols) return SHERD_OK;
    p->cols = cols;
    p->rows += rows;
    p->sent += rows;
    p->stray += stray_bytes(info, body);
    p->seeded |= b->seeded;
    if (take == 0) return SHERD_OK;
    if (!sherd__mul(p->kept + take, cols, &bytes) || !sherd__mul(bytes, sizeof **p->of, &bytes))
        return SHERD_ENOMEM;
    shares_piece *pieces = sherd__realloc(p->pieces, (p->pieces_len + 1) * sizeof *pieces);
    if (!pieces) return SHERD_ENOMEM;
    p->pieces = pieces;
    for (uint32_t q = 0; q < info->primes; q++) {
        uint32_t *to = sherd__realloc(p->of[q], bytes);
        if (!to) return SHERD_ENOMEM;
        p->of[q] = to;
        for (size_t r = 0; r < take; r++)
            for (size_t c = 0; c < cols; c++)
                to[(p->kept + r) * cols + c] = residue_of(info, body + offset_of(info, q, r, c),
                                                          primes[q]);
    }
    p->kept += take;
    pieces[p->pieces_len++] = (shares_piece){ rows, take, info->dtype };
    return SHERD_OK;
}

int sherd__shares_body(const sherd__node_view *v, const sherd__view_block *b, shares_block *out)
{
    const size_t len = (size_t)b->info.len;
    *out = (shares_block){ .info = sherd__fragment_whole(&b->info),
                           .seeded = b->info.encoding == SHERD__SEED };
    uint8_t *sent = sherd__alloc(len);
    int err = sent ? sherd__view_body(v, b, sent) : SHERD_ENOMEM;
    if (err || !out->seeded) {
        if (err) sherd__free(sent);
        else out->body = sent;
        return err;
    }
    sherd__fragment *seed;
    err = sherd__fragment_take(&seed, &b->info, sent, NULL, NULL);
    if (err) {
        sherd__free(sent);
        return err;
    }
    err = sherd__seed_check(seed, NULL);
    if (!err && out->info.len > sherd__memory_available()) err = SHERD_ENOMEM; /* as it claims */
    if (!err && !(out->body = sherd__alloc((size_t)out->info.len))) err = SHERD_ENOMEM;
    if (!err) err = sherd__seed_expand(seed, out->body);
    sherd__fragment_free(seed);
    if (err) sherd__free(out->body);
    return err;
}

static int take_left(shares_node *n, const turn *at, size_t rows_max)
{
    shares_block b;
    int err = sherd__shares_body(at->v, &at->v->blocks[at->t->left], &b);
    if (err) return err == SHERD_EFRAME ? SHERD_OK : err;
    uint64_t h = sherd__view_hash(b.body, (size_t)b.info.len);
    bool is_known = n->known_len == PANELS_MAX;
    for (size_t i = 0; i < n->known_len && !is_known; i++) is_known = n->known[i] == h;
    if (n->known_len == PANELS_MAX) n->a.sent += (size_t)b.info.rows; /* counted if it is new */
    if (!is_known) {
        uint64_t *known = sherd__realloc(n->known, (n->known_len + 1) * sizeof *known);
        if (known) n->known = known;
        shares_place *places = known
                                   ? sherd__realloc(n->places, (n->known_len + 1) * sizeof *places)
                                   : NULL;
        if (places) {
            n->places = places;
            places[n->known_len] = (shares_place){ at->t->number, (size_t)b.info.rows, n->a.rows };
            n->known[n->known_len++] = h;
            err = sherd__shares_append(&n->a, &b, at->t->primes, rows_max);
        } else {
            err = SHERD_ENOMEM;
        }
    }
    sherd__free(b.body);
    return err;
}

/* Reads a tile of B when it is first used. */
static int take_right(shares_node *n, const turn *at, size_t rows_max)
{
    shares_block b;
    int err = sherd__shares_body(at->v, &at->v->blocks[at->t->right], &b);
    if (err) return err == SHERD_EFRAME ? SHERD_OK : err;
    uint64_t h = sherd__view_hash(b.body, (size_t)b.info.len) | 1;
    uint32_t i = 0;
    while (i < n->tiles && n->right_operands[i] != h) i++;
    if (i == n->tiles && i == n->tiles_max) {
        n->more = true;
    } else if (i == n->tiles) {
        n->right_operands[n->tiles++] = h;
        if (b.info.primes) err = sherd__shares_append(&n->b[i], &b, at->t->primes, rows_max);
    }
    sherd__free(b.body);
    return err;
}

static int compare_turns(const void *a, const void *b)
{
    const turn *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->t > y->t) - (x->t < y->t);
}

/* Lists the coded tasks of a domain's nodes in the order of their numbers. For many products, which
   all number their tasks from 1, the order is that of attempts, which increase over all
   products. */
static int list_turns(const sherd__views *v, uint32_t domain, uint64_t job, bool numbers,
                      turn **out, size_t *len)
{
    size_t all = 0, n = 0;
    for (size_t i = 0; i < v->len; i++)
        if (v->nodes[i].domain == domain) all += v->nodes[i].tasks_len;
    turn *list = sherd__calloc(all, sizeof *list);
    if (!list) return SHERD_ENOMEM;
    for (size_t i = 0; i < v->len; i++) {
        const sherd__node_view *w = &v->nodes[i];
        for (size_t k = 0; w->domain == domain && k < w->tasks_len; k++)
            if (w->tasks[k].job == job && sherd__shares_coded(w, &w->tasks[k]))
                list[n++] = (turn){ w, &w->tasks[k],
                                    numbers ? w->tasks[k].number : w->tasks[k].attempt };
    }
    if (n) qsort(list, n, sizeof *list, compare_turns);
    *out = list;
    *len = n;
    return SHERD_OK;
}

static int compare_rights(const void *a, const void *b)
{
    const turn *x = a, *y = b;
    if (x->v != y->v) return x->v < y->v ? -1 : 1;
    return (x->t->right > y->t->right) - (x->t->right < y->t->right);
}

static int compare_hashes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Returns whether a task is of this code; products with other primes are not read. */
static bool of_code(const sherd__seen_code *code, const sherd__view_task *t)
{
    return code->primes_len == t->primes_len &&
           memcmp(code->primes, t->primes, t->primes_len * sizeof *t->primes) == 0;
}

/* Counts the different right blocks of a code, whichever nodes they were sent to and how often;
   reorders the list. SHERD_ENOMEM. */
static int count_rights(turn *list, size_t len, const sherd__seen_code *code, size_t *out)
{
    size_t n = 0, all = 0;
    int err = SHERD_OK;
    const turn *last = NULL;
    uint64_t *hashes = sherd__calloc(len, sizeof *hashes);
    if (!hashes) return SHERD_ENOMEM;
    if (len) qsort(list, len, sizeof *list, compare_rights);
    for (size_t i = 0; i < len && !err; i++) {
        shares_block b;
        if (!of_code(code, list[i].t)) continue;
        if (last && compare_rights(last, &list[i]) == 0) continue;
        last = &list[i];
        err = sherd__shares_body(list[i].v, &list[i].v->blocks[list[i].t->right], &b);
        if (!err) hashes[n++] = sherd__view_hash(b.body, (size_t)b.info.len);
        if (!err) sherd__free(b.body);
        if (err == SHERD_EFRAME) err = SHERD_OK;
    }
    if (n) qsort(hashes, n, sizeof *hashes, compare_hashes);
    for (size_t i = 0; i < n; i++) all += i == 0 || hashes[i] != hashes[i - 1];
    sherd__free(hashes);
    *out = all;
    return err;
}

/* Allocates room for what there is, even if more was requested. */
static int make_room(shares_node *n, uint32_t wanted, size_t there)
{
    uint32_t tiles = wanted < there ? wanted : there ? (uint32_t)there : 1;
    if (n->b) return SHERD_OK;
    n->b = sherd__calloc(tiles, sizeof *n->b);
    n->right_operands = sherd__calloc(tiles, sizeof *n->right_operands);
    n->tiles_max = tiles;
    return n->b && n->right_operands ? SHERD_OK : SHERD_ENOMEM;
}

int sherd__shares_domain(shares_node *n, const shares_job *of, uint32_t domain,
                         sherd__seen_code *code)
{
    const sherd__shares_want *w = of->want;
    const bool lefts = !of->cut;
    const turn *left = NULL, *right = NULL; /* of the previous task: most blocks are used again */
    turn *list;
    size_t len;
    int err = list_turns(of->v, domain, of->job, !of->cut || !of->cut->stays, &list, &len);
    if (err) return err;
    err = make_room(n, w->right_operands, len);
    for (size_t i = 0; i < len && !err && (lefts || !n->more); i++) {
        const sherd__view_task *t = list[i].t;
        if (code->primes_len == 0) {
            code->primes_len = t->primes_len;
            memcpy(code->primes, t->primes, sizeof t->primes);
        }
        if (!of_code(code, t)) continue;
        if (!right || right->v != list[i].v || right->t->right != t->right)
            err = take_right(n, &list[i], w->rows);
        if (!err && lefts && (!left || left->v != list[i].v || left->t->left != t->left))
            err = take_left(n, &list[i], w->rows);
        left = right = &list[i];
    }
    n->rights_sent = n->tiles;
    if (!err && n->more) err = count_rights(list, len, code, &n->rights_sent);
    sherd__free(list);
    return err;
}

static void panel_fini(shares_panel *p)
{
    for (unsigned q = 0; q < SHERD__AUDIT_PRIMES; q++) sherd__free(p->of[q]);
    sherd__free(p->pieces);
}

void sherd__shares_node_fini(shares_node *n)
{
    panel_fini(&n->a);
    for (uint32_t i = 0; i < n->tiles; i++) panel_fini(&n->b[i]);
    sherd__free(n->b);
    sherd__free(n->right_operands);
    sherd__free(n->known);
    sherd__free(n->places);
}
