/*
 * Asynchronous steps. A piece is one shard of one step under parameters of one version, or several
 * shards if moving parameters and gradients for each would cost too much compared with computing.
 * Pieces are sent while a worker is free, and are applied as they come back, each with its part of
 * the rate. A bound on staleness holds back a piece if its update would make another piece, still
 * in progress, too old. Pieces held back are applied together, as one update, once that other piece
 * has come back.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "learn/gradients_state.h"

typedef struct piece {
    sherd__part part;          /* first: the engine returns a pointer to it */
    struct piece *next, *also; /* also: links all pieces */
    uint32_t *rows;
    size_t room;  /* allocated rows */
    size_t *cuts; /* by shard of the piece, one entry more than shards; the next three arrays are by
                     shard too */
    sherd__local_steps *local;
    double *costs;
    uint64_t *hits;
    int32_t *scales;
    sherd__sums sums;
    double rate, weight; /* weight: examples, or the weight of local steps */
    double share;        /* fraction of the step, and so of the rate */
    size_t examples;
    unsigned tries;
} piece;

static void free_piece(piece *p)
{
    if (!p) return;
    sherd__version_release(p->part.params);
    sherd__sums_fini(&p->sums);
    sherd__free(p->rows);
    sherd__free(p->cuts);
    sherd__free(p->local);
    sherd__free(p->costs);
    sherd__free(p->hits);
    sherd__free(p->scales);
    sherd__free(p);
}

static piece *new_piece(gradients *g)
{
    piece *p = sherd__calloc(1, sizeof *p);
    if (!p) return NULL;
    p->cuts = sherd__calloc((size_t)g->o.shards + 1, sizeof *p->cuts);
    p->local = sherd__calloc(g->o.shards, sizeof *p->local);
    p->costs = sherd__calloc(g->o.shards, sizeof *p->costs);
    p->hits = sherd__calloc(g->o.shards, sizeof *p->hits);
    p->scales = sherd__calloc(g->tiers, sizeof *p->scales);
    bool fits = p->cuts && p->local && p->costs && p->hits && p->scales;
    if (!fits || sherd__sums_init(&p->sums, g->tiers, g->counts, g->o.bits > 0)) {
        free_piece(p);
        return NULL;
    }
    p->also = g->pieces;
    g->pieces = p;
    return p;
}

/* Returns an idle piece, or a new one, with room for `rows` rows. */
static piece *take_piece(gradients *g, size_t rows)
{
    piece *p = g->idle ? g->idle : new_piece(g);
    if (!p) return NULL;
    if (p->room < rows) {
        uint32_t *more = sherd__realloc(p->rows, rows * sizeof *more);
        if (!more) return NULL; /* the piece stays idle, or is freed with all pieces at the end */
        p->rows = more;
        p->room = rows;
    }
    if (p == g->idle) g->idle = p->next;
    return p;
}

static void give_piece(gradients *g, piece *p)
{
    sherd__version_release(p->part.params);
    p->part.params = NULL;
    p->next = g->idle;
    g->idle = p;
}

/* ---- applying -------------------------------------------------------------------------------- */

static uint64_t staleness(const gradients *g, const piece *p)
{
    return g->updates - p->part.params->number;
}

/* Applies all pieces held back, as one update. */
static void apply_held(gradients *g)
{
    sherd__gradients_update u = { .version = g->updates };
    double weight = 0, rate = 0;
    for (piece *p = g->held; p; p = p->next) weight += p->weight;
    sherd__gradients_sum last = { 0 };
    for (piece *p = g->held; p; p = p->next) {
        uint64_t stale = staleness(g, p);
        last = (sherd__gradients_sum){ &p->sums, p->scales,
                                       g->o.local_steps ? weight * p->rate : weight, p != g->held };
        if (p->next) sherd__gradients_take(g, &last);
        rate += p->rate * p->share;
        if (stale >= u.staleness) {
            u.staleness = stale;
            u.by = p->part.by;
        }
        u.parts++;
        u.examples += p->examples;
        g->stats.staleness_sum += stale;
        if (stale > g->stats.staleness_most) g->stats.staleness_most = stale;
        for (uint32_t i = 0; i < p->part.shards; i++) {
            g->applied_cost += p->costs[i];
            g->applied_hits += p->hits[i];
        }
        g->applied += p->examples;
    }
    sherd__gradients_apply(g, rate, &u, &last);
    for (piece *p = g->held, *next; p; p = next) {
        next = p->next;
        give_piece(g, p);
    }
    g->held = NULL;
}

/* Returns whether one more update would leave every piece in progress within the staleness
   bound. */
static bool may_apply(const gradients *g)
{
    for (uint32_t i = 0; i < g->under_way; i++)
        if (g->updates - g->versions[i] >= g->o.staleness_max) return false;
    return true;
}

/* ---- sending and collecting ------------------------------------------------------------------ */

static int post(gradients *g, piece *p, sherd_diag *d)
{
    uint64_t version = p->part.params->number;
    int err = g->o.engine.ops->post(g->o.engine.ctx, &p->part, d);
    if (err) return err;
    g->versions[g->under_way++] = version;
    return SHERD_OK;
}

static void forget_version(gradients *g, uint64_t version)
{
    for (uint32_t i = 0; i < g->under_way; i++) {
        if (g->versions[i] != version) continue;
        g->versions[i] = g->versions[--g->under_way];
        return;
    }
}

/* Sends a piece again with coarser scales, from the same parameters. */
static int again(gradients *g, piece *p, sherd_diag *d)
{
    sherd_diag why = p->part.why;
    int err = p->part.err;
    if (err != SHERD_EBUSY || ++p->tries >= GRADIENTS_TRIES) {
        give_piece(g, p);
        return sherd__fail(d, err, why.hint[0] ? why.hint : NULL, "%s", why.message);
    }
    g->stats.rescaled++;
    sherd__gradients_scales(g, p->rate, p->weight, p->part.room, p->tries, p->scales);
    sherd__sums_clear(&p->sums);
    err = post(g, p, d);
    if (err) give_piece(g, p);
    return err;
}

/* Takes back one piece and applies what may be applied. */
static int collect(gradients *g, sherd_diag *d)
{
    sherd__part *back;
    int err = g->o.engine.ops->next(g->o.engine.ctx, &back, d);
    if (err) {
        g->broken = true;
        return err;
    }
    piece *p = (piece *)back;
    forget_version(g, p->part.params->number);
    if (back->err) return again(g, p, d);
    if (back->dropped) {
        g->stats.dropped++;
        give_piece(g, p);
    } else {
        piece **end = &g->held;
        while (*end) end = &(*end)->next;
        p->next = NULL;
        *end = p;
    }
    if (g->held && (g->under_way == 0 || may_apply(g))) apply_held(g);
    return SHERD_OK;
}

/* Sends shards [first, first + n) of this step as one part. `all` is the weight of the whole
   step. */
/* Shards [first, first + n) of a step that has so many, and the weight of all of them. */
typedef struct sending {
    uint32_t first, n, shards;
    double all;
} sending;

static int send_shards(gradients *g, const sherd__step *s, const sending *which, sherd_diag *d)
{
    const uint32_t first = which->first, n = which->n;
    size_t from = g->cuts[first], len = g->cuts[first + n] - from;
    piece *p = take_piece(g, len);
    if (!p) return sherd__fail_memory(d, "a gradient");
    memcpy(p->rows, s->rows + from, len * sizeof *p->rows);
    for (uint32_t i = 0; i <= n; i++) p->cuts[i] = g->cuts[first + i] - from;
    p->rate = s->rate;
    p->tries = 0;
    p->examples = len;
    p->weight = g->o.local_steps ? 0 : (double)len;
    for (uint32_t i = 0; g->o.local_steps && i < n; i++) {
        p->local[i] = g->local[first + i]; /* weights were computed over all shards of the step */
        p->weight += p->local[i].weight;
    }
    p->share = p->weight / which->all;
    unsigned room = sherd__gradients_room(which->shards);
    sherd__gradients_scales(g, s->rate, p->weight, room, 0, p->scales);
    sherd__sums_clear(&p->sums);
    p->part = (sherd__part){ .params = sherd__gradients_version(g, d),
                             .shards = n,
                             .rows = p->rows,
                             .at = p->cuts,
                             .scales = p->scales,
                             .room = room,
                             .local = g->o.local_steps ? p->local : NULL,
                             .sums = &p->sums,
                             .costs = p->costs,
                             .hits = p->hits };
    int err = p->part.params ? post(g, p, d) : SHERD_ENOMEM;
    if (err) give_piece(g, p);
    return err;
}

static uint32_t most_under_way(const gradients *g)
{
    uint32_t workers = g->o.engine.ops->workers(g->o.engine.ctx);
    return workers < SHERD__SHARDS_MAX ? workers : SHERD__SHARDS_MAX;
}

/* Returns the shards of the next part: the engine's choice, limited so that every worker has a part
   of the step. */
static uint32_t shards_per_task(const gradients *g, uint32_t shards)
{
    uint32_t most = shards / most_under_way(g);
    return most > 1 && g->o.engine.ops->shards_per_task
               ? g->o.engine.ops->shards_per_task(g->o.engine.ctx, most)
               : 1;
}

/* Sends every shard once and waits until at least one part is back. */
static int all_shards(gradients *g, const sherd__step *s, uint32_t shards, double all,
                      sherd_diag *d)
{
    int err = SHERD_OK;
    for (uint32_t i = 0, n; i < shards && !err; i += n) {
        n = shards_per_task(g, shards);
        if (n > shards - i) n = shards - i;
        /* Workers too fast for the staleness bound wait, too. */
        while (!err && g->under_way && (g->held || g->under_way >= most_under_way(g)))
            err = collect(g, d);
        if (!err) err = send_shards(g, s, &(sending){ i, n, shards, all }, d);
    }
    while (!err && g->applied == 0 && g->under_way) err = collect(g, d);
    return err;
}

int sherd__gradients_async_step(gradients *g, const sherd__step *s, sherd__step_result *out,
                                sherd_diag *d)
{
    uint32_t shards = sherd__gradients_cut(g, s->len);
    double all = (double)s->len;
    int err;
    if (!g->versions && !(g->versions = sherd__calloc(SHERD__SHARDS_MAX, sizeof *g->versions)))
        return sherd__fail_memory(d, "gradients");
    if (g->o.local_steps) all = sherd__gradients_local(g, s->rate, g->cuts, shards, g->local);
    g->applied = g->applied_hits = 0;
    g->applied_cost = 0;
    do err = all_shards(g, s, shards, all, d);
    while (!err && g->applied == 0 && sherd__gradients_others(g));
    if (err) return err;
    if (g->applied == 0)
        return sherd__fail(d, SHERD_EFEWNODES, NULL, "no shard of step %llu was graded",
                           (unsigned long long)s->number);
    double share = (double)s->len / (double)g->applied;
    out->cost = g->applied_cost / (double)g->applied + sherd__gradients_l2(g);
    out->hits = (uint64_t)llround((double)g->applied_hits * share);
    return SHERD_OK;
}

int sherd__gradients_async_settle(gradients *g, sherd_diag *d)
{
    int err = SHERD_OK;
    while (!err && g->under_way) err = collect(g, d);
    return err;
}

void sherd__gradients_async_fini(gradients *g)
{
    for (piece *p = g->pieces, *next; p; p = next) {
        next = p->also;
        free_piece(p);
    }
}
