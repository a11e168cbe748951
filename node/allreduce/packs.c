/*
 * Rows by number. A table has, for each example, the pack that contains it and its position there.
 * Packs are stored in chunks; a chunk is freed with its last pack, so that a session may send and
 * drop any number of packs. Rows that are adjacent in a pack stay adjacent: where a shard is one
 * run of a pack, as under orders that do not change, nothing is copied. All memory counts in the
 * node's budget, since a coordinator decides how much of it there is.
 */
#include "node/allreduce/packs.h"

#include <string.h>

#include "core/bytes.h"
#include "core/diag.h"
#include "node/examples.h"

enum {
    ALIGN = 64,
    CHUNK = 256, /* packs */
    /* packs between two steps: of as many members as may be lost, each with all of its shards */
    UNSEEN_MOST = SHERD__ALLREDUCE_MOST * SHERD__SHARDS_MAX
};

enum { NUMBERS, INPUTS, TARGETS, BLOCKS };

typedef struct pack {
    sherd__block *block[BLOCKS]; /* held; NULL: not on this node */
    uint32_t next;               /* next dropped pack, from 1; 0: the last one */
    bool dropped;
} pack;

struct sherd__pack_chunk {
    sherd__pack_chunk *next; /* in the list of chunks of closed tables */
    sherd__pool *pool;
    uint32_t live;
    pack packs[CHUNK];
};

/* ---- memory ---------------------------------------------------------------------------------- */

int sherd__packs_open(sherd__packs *p, sherd__pool *pool, uint32_t examples, sherd_diag *d)
{
    *p = (sherd__packs){ .pool = pool, .examples = examples };
    p->rows = (sherd__packed *)(void *)sherd__pool_get(pool, sizeof *p->rows * (uint64_t)examples);
    if (p->rows) return SHERD_OK;
    *p = (sherd__packs){ 0 };
    return sherd__fail_memory(d, "the index of %u examples", examples);
}

static void drop_list(sherd__packs *p)
{
    sherd__pool_give(p->pool, (uint8_t *)p->numbers, 4 * (uint64_t)p->list.len);
    p->numbers = NULL;
    p->list.len = 0;
}

void sherd__packs_close(sherd__packs *p, sherd__pack_chunk **old)
{
    if (!p->rows) return;
    for (uint32_t i = 0; i < p->room; i++) {
        if (!p->chunks[i]) continue;
        p->chunks[i]->next = *old;
        *old = p->chunks[i];
    }
    drop_list(p);
    sherd__pool_give(p->pool, (uint8_t *)p->chunks, sizeof *p->chunks * (uint64_t)p->room);
    sherd__pool_give(p->pool, (uint8_t *)p->rows, sizeof *p->rows * (uint64_t)p->examples);
    *p = (sherd__packs){ 0 };
}

/* Grows the table of chunks to at least this many entries. */
static bool widen(sherd__packs *p, uint32_t chunks)
{
    if (chunks <= p->room) return true;
    uint32_t room = p->room ? p->room : 16;
    while (room < chunks) room *= 2;
    sherd__pack_chunk **wider = (sherd__pack_chunk **)(void *)sherd__pool_get(p->pool,
                                                                              sizeof *wider *
                                                                                  (uint64_t)room);
    if (!wider) return false;
    if (p->room) memcpy(wider, p->chunks, sizeof *wider * p->room);
    memset(wider + p->room, 0, sizeof *wider * (room - p->room));
    sherd__pool_give(p->pool, (uint8_t *)p->chunks, sizeof *wider * (uint64_t)p->room);
    p->chunks = wider;
    p->room = room;
    return true;
}

/* Returns the entry of the pack, which it allocates if necessary; NULL: no memory. */
static pack *make_place(sherd__packs *p, uint32_t number)
{
    uint32_t at = number / CHUNK;
    if (!widen(p, at + 1)) return NULL;
    if (!p->chunks[at]) {
        sherd__pack_chunk *c = (sherd__pack_chunk *)(void *)sherd__pool_get(p->pool, sizeof *c);
        if (!c) return NULL;
        *c = (sherd__pack_chunk){ .pool = p->pool };
        p->chunks[at] = c;
    }
    return &p->chunks[at]->packs[number % CHUNK];
}

/* Returns the entry of a pack, or NULL where it is not on this node. */
static pack *place_of(const sherd__packs *p, uint32_t number)
{
    sherd__pack_chunk *c = number / CHUNK < p->room ? p->chunks[number / CHUNK] : NULL;
    return c && c->packs[number % CHUNK].block[NUMBERS] ? &c->packs[number % CHUNK] : NULL;
}

/* ---- taking and releasing packs -------------------------------------------------------------- */

static void release(pack *k)
{
    for (uint32_t b = 0; b < BLOCKS; b++) sherd__block_release(k->block[b]);
    *k = (pack){ 0 };
}

/* Takes the next pack. If one of its blocks is missing, the pack has not arrived. */
static int take(sherd__packs *p, const sherd__store *store, uint64_t job, sherd_diag *d)
{
    pack k = { .next = 0 };
    for (uint32_t b = 0; b < BLOCKS; b++) {
        k.block[b] = sherd__store_find(store, job, sherd__allreduce_pack(p->taken) + b);
        if (!k.block[b]) return SHERD_OK;
    }
    pack *to = make_place(p, p->taken);
    if (!to) return sherd__fail_memory(d, "the index of pack %u", p->taken);
    for (uint32_t b = 0; b < BLOCKS; b++) sherd__block_hold(k.block[b]);
    *to = k;
    p->chunks[p->taken / CHUNK]->live++;
    uint8_t x = sherd__fragment_info_of(k.block[INPUTS]->fragment)->dtype;
    uint32_t size = (uint32_t)sherd_dtype_size((sherd_dtype)x);
    if (size > p->x_size) p->x_size = size;
    if (sherd__fragment_info_of(k.block[TARGETS]->fragment)->dtype == SHERD_F64) p->values = true;
    return SHERD_OK;
}

int sherd__packs_take(sherd__packs *p, const sherd__store *store, uint64_t job, uint32_t packs,
                      uint32_t most, sherd_diag *d)
{
    int err = SHERD_OK;
    if (packs > p->taken && packs - p->taken > UNSEEN_MOST)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "%u packs were received at once",
                           packs - p->taken);
    for (; p->taken < packs && most > 0 && !err; most--) {
        err = take(p, store, job, d);
        if (!err) p->taken++;
    }
    return err;
}

void sherd__packs_drop(sherd__packs *p, const sherd__block *b)
{
    uint32_t from = sherd__allreduce_pack(0);
    if (b->number < from) return;
    uint32_t number = (b->number - from) / BLOCKS, which = (b->number - from) % BLOCKS;
    pack *k = place_of(p, number);
    if (!k || k->dropped || which == NUMBERS || k->block[which] != b) return;
    k->dropped = true;
    k->next = p->dropped;
    p->dropped = number + 1;
}

size_t sherd__packs_release(sherd__packs *p, size_t most)
{
    size_t n = 0;
    for (; p->dropped && n < most; n++) {
        uint32_t number = p->dropped - 1;
        sherd__pack_chunk **c = &p->chunks[number / CHUNK];
        p->dropped = (*c)->packs[number % CHUNK].next;
        release(&(*c)->packs[number % CHUNK]);
        if (--(*c)->live > 0) continue;
        sherd__pool_give(p->pool, (uint8_t *)*c, sizeof **c);
        *c = NULL;
    }
    return n;
}

size_t sherd__packs_reap(sherd__pack_chunk **old, size_t most)
{
    size_t n = 0;
    for (sherd__pack_chunk *c; n < most && (c = *old); n += CHUNK) {
        *old = c->next;
        for (uint32_t i = 0; i < CHUNK; i++) release(&c->packs[i]);
        sherd__pool_give(c->pool, (uint8_t *)c, sizeof *c);
    }
    return n < most ? n : most;
}

int sherd__packs_list(sherd__packs *p, const sherd__rows *list, sherd_diag *d)
{
    if (p->list.len && sherd__rows_equal(&p->list, list)) return SHERD_OK;
    if (p->list.len != list->len) {
        drop_list(p);
        p->numbers = (uint32_t *)(void *)sherd__pool_get(p->pool, 4 * (uint64_t)list->len);
    }
    if (!p->numbers) return sherd__fail_memory(d, "a list of %u rows", list->len);
    p->list = *list;
    p->listed = false;
    return SHERD_OK;
}

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

uint64_t sherd__packs_scratch(const sherd__packs *p, uint64_t rows, size_t inputs, size_t width)
{
    return aligned(rows * inputs * p->x_size) + rows * (p->values ? 8 * (uint64_t)width : 4);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int note(sherd__packs *p, uint32_t number, sherd_diag *d)
{
    const pack *k = place_of(p, number);
    if (!k) return SHERD_OK;
    const sherd__block *b = k->block[NUMBERS];
    const sherd__fragment_info *i = sherd__fragment_info_of(b->fragment);
    const uint8_t *bytes = sherd__fragment_bytes(b->fragment);
    if (i->dtype != SHERD_U32 || i->encoding != SHERD__DENSE || i->groups || i->rows != 1 || !bytes)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "block %u contains no numbers of rows",
                           b->number);
    if (i->cols > p->examples)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "block %u numbers more rows than there are",
                           b->number);
    for (uint32_t at = 0; at < i->cols; at++) {
        uint32_t row = sherd__get_u32(bytes + 4 * (size_t)at);
        if (row >= p->examples)
            return sherd__fail(d, SHERD_EFORMAT, NULL, "row %u of %u", row, p->examples);
        p->rows[row] = (sherd__packed){ number + 1, at };
    }
    return SHERD_OK;
}

int sherd__packs_note(sherd__packs *p, sherd_diag *d)
{
    int err = SHERD_OK;
    if (!p->cleared) memset(p->rows, 0, sizeof *p->rows * p->examples);
    p->cleared = true;
    while (p->noted < p->taken && !err) {
        err = note(p, p->noted, d);
        if (!err) p->noted++;
    }
    if (err || p->listed || !p->numbers) return err;
    sherd__rows_list(&p->list, p->numbers);
    p->listed = true;
    return SHERD_OK;
}

/* ---- shards ---------------------------------------------------------------------------------- */

/* Returns the pack of a row, and its position there in *at; NULL where it is not on this node. */
static const pack *row_at(const sherd__packs *p, uint32_t row, uint64_t *at)
{
    const sherd__packed *r = &p->rows[row];
    *at = r->at;
    return r->pack ? place_of(p, r->pack - 1) : NULL;
}

/* Finds the longest run of rows from index `i` on that are adjacent in one pack. Returns NULL where
 * the first is not on this node. */
static const pack *run_at(const sherd__packs *p, const sherd__step_plan_shard *what, uint64_t i,
                          uint64_t *first, uint64_t *rows)
{
    const uint32_t *numbers = p->numbers + what->first;
    const pack *k = row_at(p, numbers[i], first);
    *rows = 1;
    for (uint64_t at; k && i + *rows < what->rows; ++*rows)
        if (row_at(p, numbers[i + *rows], &at) != k || at != *first + *rows) break;
    return k;
}

static uint8_t kind_of(const sherd__block *b)
{
    return sherd__fragment_info_of(b->fragment)->dtype;
}

int sherd__packs_find(const sherd__packs *p, const sherd__step_plan_shard *what, size_t inputs,
                      size_t width, bool *apart, sherd_diag *d)
{
    const pack *one = NULL;
    *apart = false;
    for (uint64_t i = 0, first, rows; i < what->rows; i += rows) {
        const pack *k = run_at(p, what, i, &first, &rows);
        if (!k)
            return sherd__fail(d, SHERD_EINVAL, NULL, "row %u is not here",
                               p->numbers[what->first + i]);
        const sherd__examples_rows of = { first, rows, inputs, width };
        int err = sherd__examples_fit(k->block[INPUTS], k->block[TARGETS], &of, d);
        if (err) return err;
        if (i == 0) one = k;
        else *apart = true;
        for (uint32_t b = INPUTS; b < BLOCKS; b++)
            if (kind_of(k->block[b]) != kind_of(one->block[b]))
                return sherd__fail(d, SHERD_ESHAPE, NULL,
                                   "blocks %u and %u hold numbers of two types",
                                   one->block[b]->number, k->block[b]->number);
    }
    return SHERD_OK;
}

/* Returns the rows of a block from `first` on, and in *size the bytes of a row. */
static const uint8_t *at_row(const sherd__block *b, uint64_t first, uint64_t *size)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(b->fragment);
    *size = i->cols * sherd_dtype_size((sherd_dtype)i->dtype);
    return sherd__fragment_bytes(b->fragment) + first * *size;
}

sherd__shard sherd__packs_shard(const sherd__packs *p, const sherd__step_plan_shard *what,
                                uint8_t *scratch)
{
    uint64_t first, rows, x_size, t_size;
    const pack *k = run_at(p, what, 0, &first, &rows);
    const sherd__fragment_info *x = sherd__fragment_info_of(k->block[INPUTS]->fragment);
    bool labels = kind_of(k->block[TARGETS]) == SHERD_U32;
    const uint8_t *from = at_row(k->block[INPUTS], first, &x_size);
    const uint8_t *targets = at_row(k->block[TARGETS], first, &t_size);
    if (rows < what->rows) {
        uint8_t *to = scratch, *t_to = scratch + aligned(what->rows * x_size);
        for (uint64_t i = 0; i < what->rows; i += rows) {
            k = run_at(p, what, i, &first, &rows);
            memcpy(to + i * x_size, at_row(k->block[INPUTS], first, &x_size), rows * x_size);
            memcpy(t_to + i * t_size, at_row(k->block[TARGETS], first, &t_size), rows * t_size);
        }
        from = to;
        targets = t_to;
    }
    sherd__shard out = { .x = sherd_view_c(from, (sherd_dtype)x->dtype, (size_t)what->rows,
                                           (size_t)x->cols),
                         .targets = { .labels = NULL } };
    if (labels) out.targets.labels = (const uint32_t *)(const void *)targets;
    else out.targets.values = (const double *)(const void *)targets;
    return out;
}
