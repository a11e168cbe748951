/*
 * Counts the messages of a product cell by cell, in the way scheduler/job/send.c sends them: a
 * resident block if a node needs it, and for each cell that is not empty a left block, a task and
 * its result. Numbers in message headers take more bytes the larger they are, so blocks, tasks and
 * attempts are numbered here as in the job. The order of cells does not change the sum. Cells that
 * differ in their numbers only are counted together as long as these take as many bytes.
 */
#include "scheduler/plan/forecast.h"

#include "core/alloc.h"
#include "core/hooks.h"
#include "matrix/residue.h"
#include "scheduler/plan/cost.h"
#include "sherd/mat.h"
#include "wire/size.h"

#define NODE_PANEL 1024u /* rows and columns that a node converts at a time (node/backends/cpu.c) */
#define NODE_NARROW                                                                                \
    512u /* for tasks of more rows it does not keep the converted right block, and
                            for others from the second task on (node/backends/cpu_forms.c) */

typedef struct count {
    sherd__traffic *t;
    const sherd__prepared *p;
    sherd__hooked hooks;
    uint64_t counted; /* slots of tiles */
    sherd__scheme_shape shape;
    uint32_t attempt, passing; /* last numbers used */
    uint64_t *weight;          /* by slot: bytes of its bodies */
    uint32_t *cells;           /* by slot: number of cells of the tile that are not empty */
    double *panels;            /* by slot: the node's panels in these cells */
    double *products;          /* by slot: number of BLAS calls that use all of a right block of
                                  doubles */
} count;

/* Returns the left blocks that stay at nodes: one for each (slot, panel). Their numbers come
 * first. */
static uint32_t lefts(const count *c)
{
    return c->shape.left_stays ? c->shape.slots * c->shape.panels : 0;
}

static uint32_t right_number(const count *c, sherd__cell cell)
{
    return 1 + lefts(c) + (c->shape.shared ? 0 : cell.slot) * c->shape.tiles + cell.tile;
}

/* Returns the count of numbers in a left block, which is also the number of multiply-adds for one
 * column. */
static double values_of(const sherd__fragment_info *i)
{
    double len = (double)(i->len - 8 * (uint64_t)i->groups), rows = (double)i->rows;
    if (i->dtype == SHERD__RESIDUES) return len / 3; /* of all primes together */
    if (sherd__fragment_is_bytes(i->dtype)) return rows * (double)i->cols * i->primes;
    double each = (double)sherd_dtype_size((sherd_dtype)i->dtype),
           width = sherd__csr_width(i->cols);
    return i->encoding == SHERD__CSR ? (len - rows * width) / (each + width) : len / each;
}

/* Counts the conversions of a block that a node makes `times` times in a task: unpacking residues,
 * converting narrower types to doubles, and making residues of other types. */
static void count_converted(count *c, const sherd__fragment_info *i, bool right, double times)
{
    double entries = values_of(i) * times;
    if (sherd__fragment_is_bytes(i->dtype)) return;
    unsigned primes = c->shape.primes_len;
    if (i->dtype == SHERD__RESIDUES) {
        c->t->unpacked += (double)i->len * times;
    } else if (primes || i->dtype != SHERD_F64 || i->encoding != SHERD__DENSE) {
        double widened = sizeof(float) * entries * (primes ? primes : 1);
        /* As many bytes are reduced before they are packed. */
        double packed = (double)SHERD__RESIDUE_BYTES * entries * primes;
        c->t->widened += widened;
        c->t->packed += packed;
        c->t->right.widened += right ? widened : 0;
        c->t->right.packed += right ? packed : 0;
    }
    if (i->dtype != SHERD__RESIDUES && (!right || !primes)) c->t->residues = false;
}

/* Counts the conversions of a resident block that `times` panels use. If it is kept, integers are
 * packed residues for the others. */
static void count_resident_converted(count *c, const sherd__fragment_info *i, double times)
{
    if (sherd__fragment_is_bytes(i->dtype)) return;
    bool kept = i->dtype != SHERD__RESIDUES && c->p->plan.panel_rows <= NODE_NARROW;
    double converted = kept && times > 2 ? 2 : times;
    count_converted(c, i, true, converted);
    c->t->unpacked += SHERD__RESIDUE_BYTES * values_of(i) * c->shape.primes_len *
                      (times - converted);
}

/* Returns how many of a node's panels n rows or columns take. Each panel is multiplied with all of
 * the other operand again. */
static double node_panels(uint64_t n)
{
    return n ? (double)((n - 1) / NODE_PANEL + 1) : 0;
}

/* Returns whether the answer is an outer product, which is computed while it is sent. */
static bool streams(const count *c, const sherd__cell_sizes *s)
{
    return !c->shape.primes_len && s->left.encoding == SHERD__DENSE && s->left.cols <= 1;
}

static void count_answers(count *c, uint32_t slot, const sherd__cell_sizes *s, uint32_t n)
{
    double bytes = (double)s->result.len * n;
    bool real = !c->shape.primes_len;
    if (s->result.dtype == SHERD__RESIDUES) c->t->packed += bytes;
    else if (streams(c, s)) c->t->streamed += bytes;
    else if (real)
        c->products[slot] += n * (s->left.dtype == SHERD_F64 ? 1 : node_panels(s->left.rows));
    count_converted(c, &s->left, false, n * node_panels(s->result.cols));
    bool residues = s->right.dtype == SHERD__RESIDUES || sherd__fragment_is_bytes(s->right.dtype);
    if (s->right.len && !residues) c->t->residues = false;
}

/* Returns how many of the numbers from, from + step, ... have as many digits to the base 128 as
 * `from`, at most n. */
static uint32_t alike_from(uint64_t from, uint32_t step, uint32_t n)
{
    uint64_t end = 128;
    while (end <= from) end *= 128;
    uint64_t fit = (end - 1 - from) / step + 1;
    return fit < n ? (uint32_t)fit : n;
}

/* Returns the number of the next block that a task drops: those of resident blocks come first. */
static uint32_t next_passing(const count *c)
{
    return 1 + lefts(c) + c->shape.slots * c->shape.tiles + c->passing;
}

static uint32_t left_number(const count *c, sherd__cell cell)
{
    return c->shape.left_stays ? 1 + cell.slot * c->shape.panels + cell.panel : next_passing(c);
}

/* Returns the number of a slot's cells from `cell` on, at most n, whose messages have the sizes of
 * the first: numbers are encoded to the base 128. */
static uint32_t alike_cells(const count *c, sherd__cell cell, const sherd__cell_sizes *s,
                            uint32_t n)
{
    uint32_t left = left_number(c, cell);
    n = alike_from(c->attempt + 1, 1, n);
    if (s->empty) return n;
    if (!s->right.len) return alike_from(left, 1, n);
    n = alike_from(left, 2, n);
    return alike_from((uint64_t)left + 1, 2, n);
}

static void count_expanded(sherd__traffic *t, const sherd__fragment_info *i, double times)
{
    if (i->encoding == SHERD__SEED) t->expanded += (double)sherd__fragment_whole(i).len * times;
}

/* Counts n cells of a slot that begin with `cell` and are alike. */
static void count_cells(count *c, sherd__cell cell, const sherd__cell_sizes *s, uint32_t n)
{
    sherd__traffic *t = c->t;
    uint32_t attempt = c->attempt + 1;
    const bool stays = c->shape.left_stays, sent = !stays || cell.tile == 0;
    c->attempt += n;
    if (s->empty) return;
    sherd__task task = { .op = c->p->op,
                         .flags = stays ? 0 : SHERD__DROP_LEFT,
                         .left = left_number(c, cell),
                         .right = c->shape.resident ? right_number(c, cell) : 0,
                         .primes_len = c->shape.primes_len,
                         .result = s->result };
    for (uint32_t i = 0; i < task.primes_len; i++) task.primes[i] = c->shape.primes[i];
    uint64_t out = sent ? sherd__size_put(&s->left) : 0;
    const uint64_t left_bytes = sent ? s->left.len : 0;
    if (sent) count_expanded(t, &s->left, n);
    count_expanded(t, &s->right, n);
    t->left += n * left_bytes;
    if (s->right.len) {
        task.flags |= SHERD__DROP_RIGHT;
        task.right = stays ? next_passing(c) : task.left + 1;
        out += sherd__size_put(&s->right);
    }
    c->passing += (stays ? 0 : n) + (s->right.len ? n : 0);
    t->out += n * (out + sherd__size_task(&task));
    t->in += n * sherd__size_result(&s->result, attempt);
    t->answer += n * s->result.len;
    double each = values_of(&s->left) * (double)s->result.cols;
    bool residues = s->left.dtype == SHERD__RESIDUES || sherd__fragment_is_bytes(s->left.dtype);
    t->bytes = t->bytes || sherd__fragment_is_bytes(s->left.dtype);
    double flops = 2 * each * (task.primes_len && !residues ? task.primes_len : 1) * n;
    t->flops += flops;
    if (!streams(c, s)) t->multiplied += flops;
    t->tasks += n;
    t->tasks_csr += s->left.encoding == SHERD__CSR ? n : 0;
    c->cells[cell.slot] += n;
    c->panels[cell.slot] += n * node_panels(s->left.rows);
    count_answers(c, cell.slot, s, n);
    c->weight[cell.slot] += n * (left_bytes + s->result.len);
}

/* Counts the resident blocks of a tile, for the nodes whose slots have work in that tile. */
static int count_resident(count *c, uint32_t tile)
{
    const sherd__hiding *h = &c->p->hiding;
    for (uint32_t slot = 0; slot < c->shape.slots; slot++) {
        sherd__fragment *f;
        if (!c->cells[slot]) {
            c->t->at_most = c->t->at_most || c->shape.shared;
            continue;
        }
        int err = h->ops->resident(h->ctx, c->shape.shared ? 0 : slot, tile, &f);
        if (err) return err;
        const sherd__fragment_info *info = sherd__fragment_info_of(f);
        uint64_t bytes = sherd__size_put(info);
        count_resident_converted(c, info, c->panels[slot]);
        count_expanded(c->t, info, 1);
        if (info->dtype == SHERD_F64) c->t->laid += (double)info->len * c->products[slot];
        c->t->first += bytes;
        c->t->out += bytes;
        sherd__fragment_free(f);
    }
    return SHERD_OK;
}

/* Returns whether the slot has whole panels up to the one before the last, so that these are alike:
 * a slot of fewer rows than others ends earlier. */
static bool is_whole(const count *c, uint32_t tile, uint32_t slot)
{
    const sherd__hiding *h = &c->p->hiding;
    sherd__cell_sizes first, late;
    uint32_t last = c->shape.panels - 1;
    if (last < 2 || h->ops->sizes(h->ctx, (sherd__cell){ slot, tile, 0 }, &first) ||
        h->ops->sizes(h->ctx, (sherd__cell){ slot, tile, last - 1 }, &late))
        return false;
    return first.empty == late.empty && (first.empty || first.left.rows == late.left.rows);
}

static uint64_t all_cells(const count *c)
{
    return (uint64_t)c->shape.tiles * c->shape.slots * c->shape.panels;
}

/* alike: whole panels have the same sizes. */
static int count_slot(count *c, uint32_t tile, uint32_t slot, bool alike)
{
    const sherd__hiding *h = &c->p->hiding;
    sherd__cell_sizes s = { .empty = true };
    uint32_t n, last = c->shape.panels - 1;
    alike = alike && is_whole(c, tile, slot);
    for (uint32_t panel = 0; panel <= last; panel += n) {
        sherd__cell cell = { slot, tile, panel };
        bool known = alike && panel > 0 && panel < last;
        int err = sherd__hooks_step(&c->hooks, c->counted * c->shape.panels + panel, all_cells(c),
                                    NULL);
        if (!err && !known) err = h->ops->sizes(h->ctx, cell, &s);
        if (err) return err;
        n = known ? alike_cells(c, cell, &s, last - panel) : 1;
        count_cells(c, cell, &s, n);
    }
    return SHERD_OK;
}

/* A coded share is the same for all nodes of its domain, and no other node can take it over. */
static void find_busiest(count *c)
{
    const sherd__prepared *p = c->p;
    double all = 0, *shares = c->products; /* which are counted */
    bool coded = c->shape.threshold > 0;
    for (uint32_t slot = 0; slot < c->shape.slots; slot++) all += (double)c->weight[slot];
    for (uint32_t slot = 0; slot < c->shape.slots; slot++)
        shares[slot] = all > 0 ? (double)c->weight[slot] / all : 1;
    c->t->moves = c->shape.shared && !coded;
    c->t->busiest = sherd__cost_uneven(shares, coded ? NULL : p->rates, c->shape.slots,
                                       c->t->moves);
    c->t->busiest_link = sherd__cost_uneven(shares, coded ? NULL : p->paces, c->shape.slots,
                                            c->t->moves);
}

int sherd__traffic_count(sherd__traffic *out, const sherd__prepared *p, bool alike,
                         const sherd_hooks *hooks)
{
    count c = { .t = out, .p = p, .hooks = sherd__hooks_begin(hooks) };
    int err = SHERD_OK;
    *out = (sherd__traffic){ .residues = true };
    if (!p->hiding.ops->sizes) return SHERD_EUNSUPPORTED;
    p->hiding.ops->shape(p->hiding.ctx, &c.shape);
    c.weight = sherd__calloc(c.shape.slots, sizeof *c.weight);
    c.cells = sherd__calloc(c.shape.slots, sizeof *c.cells);
    c.panels = sherd__calloc(c.shape.slots, sizeof *c.panels);
    c.products = sherd__calloc(c.shape.slots, sizeof *c.products);
    if (!c.weight || !c.cells || !c.panels || !c.products) err = SHERD_ENOMEM;
    out->at_most = (c.shape.threshold && c.shape.threshold < c.shape.slots) ||
                   (c.shape.shared && !c.shape.threshold && c.shape.tiles > 1);
    for (uint32_t tile = 0; tile < c.shape.tiles && !err; tile++) {
        for (uint32_t slot = 0; slot < c.shape.slots && !err; slot++) {
            c.cells[slot] = 0;
            c.panels[slot] = c.products[slot] = 0;
            err = count_slot(&c, tile, slot, alike);
            c.counted++;
        }
        if (!err && c.shape.resident) err = count_resident(&c, tile);
    }
    if (!err)
        sherd__hooks_progress(&c.hooks,
                              (sherd_progress){ .done = all_cells(&c), .total = all_cells(&c) });
    if (!err) find_busiest(&c);
    sherd__free(c.weight);
    sherd__free(c.cells);
    sherd__free(c.panels);
    sherd__free(c.products);
    return err;
}
