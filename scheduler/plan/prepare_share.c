/*
 * Prepares `share` and `share1`: chooses the number of blocks of A, the number of primes that hold
 * the product, and the size of a cell. The sizes and the number of all messages depend on shapes,
 * element types and --bits only, never on values. They therefore reveal nothing about the contents
 * of an operand.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "matrix/exact.h"
#include "crypto/byte_code.h"
#include "matrix/residue_bytes.h"
#include "matrix/windows.h"
#include "scheduler/plan/prepare_internal.h"
#include "scheduler/plan/share_code.h"
#include "schemes/partition/partition.h"
#include "schemes/share/share.h"
#include "wire/session.h"

#define PANELS_MIN 4u /* fewer than in other schemes: a node converts all of B for each panel */
#define DEPTH 2u
#define KEPT 0.3         /* of the memory, for checks of a kept operand's panels */
#define KEPT_COLS 512u   /* of a tile, while the right operands are unknown */
#define GROUPED_MIN 512u /* rows of a panel of a kept operand: fewer is too many answers */

#define U8_BITS 9u /* including the sign */

/* An operand for messages: its name, and the remedy where bytes need more bits. */
typedef struct named {
    const char *name, *hint;
} named;

/* Sets the width that the range proof uses: that of the element type if it is narrow, otherwise the
 * width that the caller allows. known: v's profile, or NULL. */
static int bound(sherd__fixed *f, sherd_view v, sherd_profile *known, unsigned bits, named of,
                 sherd_diag *d)
{
    const char *name = of.name;
    sherd_diag mine = { 0 };
    int err = known ? sherd__profile_fixed(known, bits, name, f, d)
                    : sherd__fixed_choose(v, bits, name, f, d);
    if (err || !f->integers) return err;
    if (v.dtype == SHERD_U8 && bits < U8_BITS)
        return sherd__fail(d, SHERD_EINVAL, of.hint,
                           "%s: contains bytes (u8), which take %u bits with their sign, and %u "
                           "were requested",
                           name, U8_BITS, bits);
    if (v.dtype == SHERD_U8) {
        f->bits = U8_BITS;
        f->bound = 255;
        return SHERD_OK;
    }
    err = sherd__fixed_hold(f, v, bits, name, &mine);
    if (err && f->largest >> (SHERD__PRIVATE_BITS - 1))
        return sherd__fail(d, err, "scale the data: private schemes hold 26 bits at most", "%s",
                           mine.message);
    if (err)
        return sherd__fail(d, err,
                           "give more bits, 26 at most: they are not chosen by the values of an "
                           "operand, since nodes see their number",
                           "%s", mine.message);
    f->bits = bits;
    f->bound = (UINT64_C(1) << (bits - 1)) - 1;
    return SHERD_OK;
}

static int bound_a(sherd__prepared *p, sherd_view a, const sherd_product_options *opt,
                   sherd_diag *d)
{
    const named of = { sherd__name_a(opt),
                       "give --bits 9 or more; --bits-b is for the right operand only" };
    return bound(&p->fixed_a, a, opt->profile_a, opt->bits, of, d);
}

static int bound_b(sherd__fixed *f, sherd_view b, const sherd_product_options *opt, sherd_diag *d)
{
    const named of = { sherd__name_b(opt), "give --bits-b 9 or more" };
    return bound(f, b, opt->profile_b, opt->bits_b ? opt->bits_b : opt->bits, of, d);
}

/* Sets the primes: the first ones of a table. */
static void take_primes(sherd__prepared *p, const uint32_t *table, uint32_t len, bool bytes)
{
    p->bytes = bytes;
    p->primes_len = len;
    memcpy(p->primes, table, len * sizeof *table);
}

/* Chooses primes of 23 bits, or below 256 (`bytes`), that hold sums of `inner` products.
 * SHERD_ERANGE. */
static int choose_primes(sherd__prepared *p, size_t inner, bool bytes, sherd_diag *d)
{
    size_t primes = bytes ? sherd__bytes_primes_needed(inner, p->fixed_a.bound, p->fixed_b.bound)
                          : 0;
    int err = bytes ? (primes ? SHERD_OK : SHERD_ERANGE)
                    : sherd__exact_primes_needed(inner, p->fixed_a.bound, p->fixed_b.bound,
                                                 &sherd__primes_default, &primes);
    if (err)
        return sherd__fail(d, err, "use fewer --bits",
                           "sums of %zu products of %u and %u bits do not fit %s primes", inner,
                           p->fixed_a.bits, p->fixed_b.bits, bytes ? "eight" : "four");
    take_primes(p, bytes ? sherd__byte_primes : sherd__primes_default.p, (uint32_t)primes, bytes);
    return SHERD_OK;
}

/* Returns whether all nodes multiply byte residues, with sums of so many terms. */
static bool does_bytes(const sherd__nodes *nodes, size_t terms)
{
    return nodes->byte_gops > 0 && terms <= SHERD__SHARE_TERMS;
}

/* Determines the fixed point of both operands, and 23-bit primes that hold sums of `inner`
 * products, from shapes, types and bits only. SHERD_ERANGE; SHERD_EINVAL: a type is wider than the
 * bits requested. */
static int bounds(sherd__prepared *p, sherd_view a, sherd_view b, size_t inner,
                  const sherd_product_options *opt, sherd_diag *d)
{
    int err = bound_a(p, a, opt, d);
    if (!err) err = bound_b(&p->fixed_b, b, opt, d);
    return err ? err : choose_primes(p, inner, false, d);
}

/* Returns the bytes that an element takes on the wire. */
static double wire_bytes(const sherd__prepared *p)
{
    return (double)p->primes_len * (p->bytes ? 1 : SHERD__RESIDUE_BYTES);
}

/* Returns the nodes that can take part: older ones cannot process windows of images. */
static sherd__nodes able(const sherd__nodes *nodes, bool windows)
{
    sherd__nodes out = *nodes;
    if (!windows || out.older > out.usable) out.older = 0;
    out.usable -= out.older;
    return out;
}

/* The dimensions of a product. A share of A has `rows` rows of `left` numbers. Each of them makes
 * `each` rows of the product (windows of an image, or 1) with `right` columns; every entry is a sum
 * of `inner` products. transposed_too: A^T is multiplied as well. */
typedef struct work {
    size_t rows, left, each, right, inner;
    size_t line; /* windows: number across an image, laid out at a time; else 0 */
    bool transposed_too;
} work;

/* Bytes of the data about terms that are needed to check answers: residues as doubles, two trials
 * for each prime. each: for a position; in a product with A: for one panel of A and one tile of B.
 * row: for each row of A's share; in a product with the transpose: of A and of D, rows of windows
 * if there are any. once: for all positions together. */
typedef struct checks {
    double each, row, once;
} checks;

static checks checks_of(const sherd__prepared *p, const work *k)
{
    double blocks = p->code.blocks, masks = p->code.masks, terms = blocks + masks;
    double trials = 2, number = trials * sizeof(double) * p->primes_len;
    double right = sherd__code_right_blocks(p->coded_by, &p->code) + masks;
    checks c = { .each = number * (terms + right) * (double)k->inner };
    if (p->bytes) { /* tables of all products of check vectors */
        const double vectors = SHERD__BYTE_CHECKS;
        c.each += vectors * vectors * p->primes_len * terms * right;
    }
    if (k->transposed_too) c.row = number * 2 * terms * (double)k->each;
    if (k->line) { /* r for each position in an image; images, until windows are made of them */
        c.row += trials * sizeof(double) * (double)k->each;
        c.once = number * (terms * (double)k->left + (double)k->each) +
                 2 * sizeof(double) * (double)k->line * (double)k->inner;
    }
    return c;
}

/* Memory for the work here and at each node, and the name of the node that has least, or NULL. */
typedef struct room {
    uint64_t here, node;
    const char *smallest;
} room;

/* Returns n rounded down to whole tiles of byte residues, if it has any: rows beyond the last strip
 * are sent as zeros. */
static size_t strips(const sherd__prepared *p, size_t n)
{
    return p->bytes && n > SHERD__BYTES_STEP ? n / SHERD__BYTES_STEP * SHERD__BYTES_STEP : n;
}

/*
 * Plans panels and tiles. DEPTH positions are in memory at a time, each with all shares, enough
 * answers to decode, and the data to check them.
 *
 * sherd__plan_make does not fit here: it counts cells in progress of each node, which hold no data
 * for other nodes. A position of shares consists of all nodes' cells, and of checks whose size
 * depends on the code. The code depends on which nodes count. The rule for panels is the same.
 */
static int plan(sherd__prepared *p, const work *k, const room *in, const sherd__nodes *nodes,
                sherd_diag *d)
{
    const uint64_t memory = in->here, node_memory = in->node;
    sherd__plan *out = &p->plan;
    const size_t inner = k->inner, rows = k->rows, right = k->right;
    const checks check = checks_of(p, k);
    const double wire = wire_bytes(p), budget = 0.6 * (double)memory - check.once;
    double window = (budget / DEPTH - check.each - check.row) / p->code.shares;
    double by_node = 0.35 * (double)node_memory / (DEPTH + 1);
    double cell = window < by_node ? window : by_node;
    if (cell > (double)SHERD__CELL_MAX) cell = (double)SHERD__CELL_MAX;
    double tile = 0.3 * (double)node_memory / (wire * (double)(inner ? inner : 1));
    double tile_row = (cell / wire - (double)k->left) / (double)k->each;
    if (tile_row < tile) tile = tile_row;
    if (tile < 1) {
        char own[16], there[16];
        return sherd__fail(d, SHERD_EFEWNODES, "raise --node-memory or --memory",
                           "the work does not fit: one row and one column of %zu entries modulo %u "
                           "primes, and what checks them, are more than what %s here and %s at %s "
                           "hold",
                           inner, p->primes_len, sherd__bytes_text((double)memory, own),
                           sherd__bytes_text((double)node_memory, there),
                           in->smallest ? in->smallest : "a node");
    }
    if (p->bytes) tile = fmin(tile, SHERD__SHARE_TERMS);
    out->tile_cols = tile >= (double)right ? (right ? right : 1) : strips(p, (size_t)tile);
    double row = wire * ((double)k->left + (double)k->each * (double)out->tile_cols);
    double here = (budget / DEPTH - check.each) / (p->code.shares * row + check.row);
    double most = fmin(cell / row, here);
    if (p->bytes) most = fmin(most, SHERD__SHARE_TERMS);
    out->panel_rows = strips(p, sherd__plan_panel(most, row, rows, PANELS_MIN, nodes->cell));
    if (p->bytes && out->panel_rows < SHERD__BYTES_TILE && most >= SHERD__BYTES_TILE)
        out->panel_rows = rows < SHERD__BYTES_TILE ? rows
                                                   : SHERD__BYTES_TILE; /* as many are sent */
    out->cell_bytes = (uint64_t)((double)out->panel_rows * row);
    double position = (double)(out->cell_bytes + 1) * p->code.shares + check.each +
                      check.row * (double)out->panel_rows;
    uint64_t depth = (uint64_t)(budget / position);
    uint64_t there = (uint64_t)(0.6 * (double)node_memory / ((double)out->cell_bytes + 1));
    if (depth >= there) depth = there ? there - 1 : 0; /* one more cell is being made */
    out->depth = depth < DEPTH ? DEPTH : depth > 8 ? 8 : (uint32_t)depth;
    uint64_t busy = nodes->depth < 2 ? 3 : (uint64_t)nodes->depth + 1; /* those of large cells */
    if (out->cell_bytes > sherd__plan_enough(0) && out->depth > busy) out->depth = (uint32_t)busy;
    assert(out->depth >= DEPTH);
    out->perm_cache = 0;
    out->node_bytes = (uint64_t)(wire * (double)inner * (double)out->tile_cols) +
                      out->cell_bytes * (out->depth + 1);
    return SHERD_OK;
}

static double tasks_of(const sherd__plan *plan, const work *k)
{
    return ceil((double)k->right / (double)plan->tile_cols) *
           ceil((double)k->rows / (double)plan->panel_rows);
}

static int keeps_too_little(uint64_t node, double kept, sherd_diag *d)
{
    return sherd__fail(d, SHERD_EFEWNODES,
                       "give the nodes more memory (--node-memory, sherd node --memory), use "
                       "more of them, or send it with each product: in a recipe, order = "
                       "shuffled",
                       "a share of the operand that is kept is %.0f MB, and a node has %.0f MB",
                       kept * 1e-6, (double)node * 1e-6);
}

/* Plans for these nodes, all of which are counted on. kept: bytes of an A that is kept at each
 * node. */
static int fit(sherd__prepared *p, const work *k, double kept, const sherd__nodes *nodes,
               const sherd_product_options *opt, sherd_diag *d)
{
    uint64_t node = nodes->budgets ? nodes->budgets[0] : nodes->memory;
    const char *smallest = node == nodes->memory ? nodes->smallest : NULL;
    if (kept > 0.6 * (double)node) return keeps_too_little(node, kept, d);
    p->node_memory = node;
    return plan(p, k, &(room){ opt->memory, node - (uint64_t)kept, smallest }, nodes, d);
}

/* Chooses a code and plans for these nodes; *tasks is the number of tasks. */
typedef int attempt(void *ctx, const sherd__nodes *nodes, double *tasks, sherd_diag *d);

/*
 * Runs `try` for most of the nodes. Tasks are sized by what nodes declare, and a node may declare a
 * wrong figure: domains with the least memory are left out while the others are enough, if the work
 * fits only without them, or if they would more than double the number of tasks. With fewer nodes
 * the shares are larger, so work that does not fit in the fewest nodes may fit in more.
 */
static int for_most(const sherd__nodes *all, const sherd_product_options *opt, attempt *try,
                    void *ctx, sherd_diag *d)
{
    uint64_t needed = sherd__share_least(opt) - opt->spare;
    uint32_t most = all->budgets && all->usable > needed ? all->usable - (uint32_t)needed : 0;
    uint32_t chosen = most, tried = most;
    double fewest = INFINITY, tasks = 0;
    sherd_diag first = { 0 }; /* of the fewest nodes: a node that declares little memory does not
                                 determine the error */
    for (uint32_t i = most + 1; i-- > 0;) {
        sherd__nodes fewer = *all;
        sherd_diag why = { 0 };
        fewer.usable -= i;
        if (i) fewer.budgets += i;
        tried = i;
        int err = try(ctx, &fewer, &tasks, &why);
        if (i == most) first = why;
        bool found = fewest < INFINITY;
        if (err == SHERD_EFEWNODES && !found && i > 0) continue;
        if (err && (!found || err != SHERD_EFEWNODES)) {
            if (d) *d = err == SHERD_EFEWNODES ? first : why;
            return err;
        }
        if (err || tasks > 2 * fewest) break;
        fewest = fmin(fewest, tasks);
        chosen = i;
    }
    if (tried == chosen) return SHERD_OK;
    sherd__nodes fewer = *all;
    fewer.usable -= chosen;
    fewer.budgets += chosen;
    return try(ctx, &fewer, &tasks, d);
}

/* part: number of rows of A that are coded together, if A is kept; otherwise 0. */
static int open_scheme(sherd__prepared *p, const sherd__matrices *m, size_t part,
                       const sherd_windows *windows, const sherd__nodes *nodes,
                       const sherd_product_options *opt)
{
    uint32_t *slots = sherd__calloc(p->code.shares, sizeof *slots);
    if (!slots) return SHERD_ENOMEM;
    sherd__share_params sp = {
        .a = m->a,
        .b = m->b,
        .c = m->out,
        .ldc = m->ld,
        .by = p->coded_by,
        .code = p->code,
        .public_b = !sherd__share_codes_b(opt),
        .left_stays = part > 0,
        .part_rows = part,
        .panel_rows = p->plan.panel_rows,
        .tile_cols = p->plan.tile_cols,
        .fixed_a = p->fixed_a,
        .fixed_b = p->fixed_b,
        .bytes = p->bytes,
        .primes_len = p->primes_len,
        .seed_slots = slots,
        .seed_slots_len = sherd__share_code_seeds(p, nodes, slots),
        .entropy = p->entropy,
    };
    uint64_t memory = opt->memory;
    if (windows) sp.windows = *windows;
    if (part) sp.check_bytes = (size_t)(KEPT * (double)memory);
    memcpy(sp.primes, p->primes, sizeof sp.primes);
    int err = sherd__share_open(&p->hiding, &sp);
    sherd__free(slots);
    if (err) return err;
    p->coded_rows = m->a.rows;
    p->coded_cols = m->a.cols;
    p->coded_part = part ? part : m->a.rows;
    size_t rows = sherd__share_code_rows(p, m->a.rows);
    for (uint32_t i = 0; i < p->slots; i++) p->planned[i] = (uint32_t)rows;
    return SHERD_OK;
}

/* Returns the probability that a check misses a wrong answer: two trials of degree two, or three
 * with windows (schemes/share/windows.c), for the smallest prime: (2/p)^2, (3/p)^2. Of bytes: see
 * schemes/share/bytes_check.c. A wrong answer is wrong modulo at least one prime. */
static double check_error(const sherd__prepared *p, bool windows)
{
    if (p->bytes) return 2 * pow(p->primes[p->primes_len - 1], -(double)SHERD__BYTE_CHECKS);
    double e = (windows ? 3.0 : 2.0) / (double)sherd__primes_default.p[p->primes_len - 1];
    return e * e;
}

/* An operand that is kept in parts of `part` rows. */
typedef struct kept {
    sherd_view a;
    const sherd_keep_options *how;
    size_t part;
    work k;
} kept;

/* A product, or (kept) one of a part of an operand that stays, with a right operand of typical
 * width. */
typedef struct share_attempt {
    sherd__prepared *p;
    const sherd__matrices *m;
    const sherd_product_options *opt;
    const kept *kept; /* NULL: nothing stays */
    const sherd__code *by;
} share_attempt;

/*
 * Chooses primes and sizes of the code for an A that is kept in parts. The primes hold sums over
 * columns. They also hold sums over the rows of a part (A^T*B), if there will be such products; if
 * that would take a third prime, which would increase the cost of everything by half, they hold
 * those over one panel instead, of at most *panel_rows rows, unless such a panel is too small. Rows
 * are those of the product (windows if there are any), except for `part` and *panel_rows.
 */
static int kept_code(const share_attempt *t, const sherd__nodes *nodes, bool bytes,
                     size_t *panel_rows, sherd_diag *d)
{
    sherd__prepared *p = t->p;
    const sherd_product_options *opt = t->opt;
    const work *k = &t->kept->k;
    const size_t part = t->kept->part, sums = k->transposed_too ? part * k->each : 0;
    *panel_rows = SIZE_MAX;
    const size_t both = sums > k->inner ? sums : k->inner;
    if (bytes && !does_bytes(nodes, k->inner)) return SHERD_EUNSUPPORTED;
    int err = choose_primes(p, bytes ? both : k->inner, bytes, d);
    if (!err) err = sherd__share_code_fit(p, t->by, part, nodes, opt, d);
    if (err || bytes || sums <= k->inner) return err;
    uint32_t few = p->primes_len;
    size_t most = sherd__share_sum_max(sherd__primes_default.p, few, p->fixed_a.bound,
                                       p->fixed_b.bound);
    if (most >= sums) return SHERD_OK;
    size_t panel = most / p->code.blocks;
    if (few <= SHERD__SHARE_GROUPED && panel >= GROUPED_MIN && panel >= k->each) {
        *panel_rows = panel / k->each;
        return SHERD_OK;
    }
    err = choose_primes(p, sums, false, d);
    return err ? err : sherd__share_code_fit(p, t->by, part, nodes, opt, d);
}

/* Returns whether the code that is asked for cuts A by columns. */
static bool by_columns(const sherd_product_options *opt)
{
    const sherd__code *asked = sherd__share_code_asked(opt);
    return asked && asked->cut == SHERD__CUT_INNER;
}

static work work_of(sherd_view a, const sherd_keep_options *how, const sherd_product_options *opt)
{
    work k = { .left = a.cols,
               .each = 1,
               .inner = a.cols,
               .transposed_too = sherd__share_codes_b(opt) && !how->one_way };
    sherd__windows w;
    if (how->windows && sherd__windows_fit(how->windows, &w)) {
        k.each = w.count;
        k.inner = w.row;
        k.line = w.wide;
    }
    k.right = how->cols ? how->cols : KEPT_COLS;
    return k;
}

/* Checked here because nodes would otherwise refuse one task after another until the job ends. */
static int check_window(const sherd_keep_options *how, const work *k,
                        const sherd_product_options *opt, sherd_diag *d)
{
    if (how->windows && by_columns(opt))
        return sherd__fail(d, SHERD_EUNSUPPORTED, "use --code lagrange, or keep their matrix",
                           "--code %s cannot multiply windows of images that are kept",
                           sherd__share_code_asked(opt)->name);
    if (!how->windows || k->inner <= SHERD__WINDOW_MAX) return SHERD_OK;
    return sherd__fail(d, SHERD_EFEWNODES, "keep the matrix of windows, or use smaller ones",
                       "a window has %zu numbers, and nodes accept windows of up to %zu", k->inner,
                       SHERD__WINDOW_MAX);
}

static int code_kept_by(const share_attempt *t, const sherd__nodes *nodes, bool bytes,
                        double *tasks, sherd_diag *d)
{
    sherd__prepared *p = t->p;
    work k = t->kept->k;
    size_t panel_rows, part = t->kept->part, rows = t->kept->a.rows;
    int err = kept_code(t, nodes, bytes, &panel_rows, d);
    if (err) return err;
    k.rows = sherd__share_code_rows(p, part);
    size_t all = rows / part * k.rows + sherd__share_code_rows(p, rows % part);
    all = sherd__share_code_tiled(p, all, SHERD__BYTES_TILE);
    k.left = sherd__share_code_tiled(p, sherd__share_code_depth(p, k.left), SHERD__BYTES_STEP);
    k.inner = sherd__share_code_tiled(p, sherd__share_code_depth(p, k.inner), SHERD__BYTES_STEP);
    double share = wire_bytes(p) * (double)all * (double)k.left;
    err = fit(p, &k, share, nodes, t->opt, d);
    if (err) return err;
    p->kept_bytes = (uint64_t)share;
    *tasks = tasks_of(&p->plan, &k);
    if (p->plan.panel_rows > panel_rows) p->plan.panel_rows = panel_rows;
    return SHERD_OK;
}

/* Plans with primes below 256 (`bytes`), or of 23 bits. */
static int code_product_by(const share_attempt *t, const sherd__nodes *nodes, bool bytes,
                           double *tasks, sherd_diag *d)
{
    sherd__prepared *p = t->p;
    if (bytes && !does_bytes(nodes, t->m->a.cols)) return SHERD_EUNSUPPORTED;
    int err = choose_primes(p, t->m->a.cols, bytes, d);
    if (!err) err = sherd__share_code_fit(p, t->by, t->m->a.rows, nodes, t->opt, d);
    if (err) return err;
    size_t depth = sherd__share_code_depth(p, t->m->a.cols);
    depth = sherd__share_code_tiled(p, depth, SHERD__BYTES_STEP);
    const work k = { .rows = sherd__share_code_rows(p, t->m->a.rows),
                     .left = depth,
                     .each = 1,
                     .right = t->m->b.cols,
                     .inner = depth };
    err = fit(p, &k, 0, nodes, t->opt, d);
    if (!err) *tasks = tasks_of(&p->plan, &k);
    return err;
}

/*
 * Takes the primes with which the product takes less time. Bytes may be impossible: the smallest
 * prime has too few points for the nodes, or the memory does not hold what checks them. Small
 * operands are mostly edges of tiles.
 */
static int code_share(void *ctx, const sherd__nodes *nodes, double *tasks, sherd_diag *d)
{
    const share_attempt *t = ctx;
    int (*by)(const share_attempt *, const sherd__nodes *, bool, double *,
              sherd_diag *) = t->kept ? code_kept_by : code_product_by;
    bool windows = t->kept && t->kept->how->windows;
    double seconds[2] = { INFINITY, INFINITY };
    for (int bytes = 0; bytes < 2; bytes++) {
        if (bytes && (!sherd__share_codes_b(t->opt) || windows)) continue;
        if (by(t, nodes, bytes, tasks, NULL)) continue;
        seconds[bytes] = sherd__share_code_seconds(t->p, t->m, t->kept, nodes, t->opt);
    }
    return by(t, nodes, seconds[true] < seconds[false], tasks, d);
}

/* Plans by one code. */
static int plan_code(const share_attempt *t, const sherd__nodes *nodes, sherd_diag *d)
{
    share_attempt own = *t;
    double tasks;
    return own.by->complete ? code_share(&own, nodes, &tasks, d)
                            : for_most(nodes, own.opt, code_share, &own, d);
}

/* Plans by the code that is asked for, or by the one with the least predicted time of those that
 * are possible. Only Lagrange's code multiplies a kept operand from both sides, and windows. */
static int plan_best(share_attempt *t, const sherd__nodes *nodes, sherd_diag *d)
{
    const sherd__code *asked = sherd__share_code_asked(t->opt);
    const sherd__code *best = sherd__codes[0];
    double least = INFINITY;
    if (!asked && t->kept && (t->kept->how->windows || !t->kept->how->one_way)) asked = best;
    for (size_t i = 0; sherd__codes[i] && !asked; i++) {
        sherd_diag own = { 0 };
        t->by = sherd__codes[i];
        if (plan_code(t, nodes, &own)) continue;
        double seconds = sherd__share_code_seconds(t->p, t->m, t->kept, nodes, t->opt);
        if (seconds >= least) continue;
        least = seconds;
        best = t->by;
    }
    t->by = asked ? asked : best;
    return plan_code(t, nodes, d);
}

/*
 * Plans and opens an A that is kept, while the right operands are unknown. These have opt->bits_b
 * bits (or opt->bits) and any number of columns. A may be multiplied from either side, unless `how`
 * or the code that is asked for excludes it.
 */
static int share_keep(sherd__prepared *p, sherd_view a, const sherd_keep_options *how,
                      const sherd__nodes *all_nodes, const sherd_product_options *opt,
                      sherd_diag *d)
{
    double widest = 1;
    const sherd_view b = sherd_view_c(&widest, SHERD_F64, 1, 1);
    const sherd__nodes some = able(all_nodes, how->windows != NULL), *nodes = &some;
    kept of = { a, how, how->part, work_of(a, how, opt) };
    const work *k = &of.k;
    if (of.part > a.rows) of.part = a.rows ? a.rows : 1;
    const size_t part = of.part;
    const sherd__matrices typical = { .a = sherd_view_sub(a, 0, part, 0, a.cols),
                                      .b = { .rows = k->inner, .cols = k->right } };
    share_attempt t = { .p = p, .m = &typical, .opt = opt, .kept = &of };
    int err = check_window(how, k, opt, d);
    if (!err) err = bounds(p, a, b, k->inner, opt, d);
    if (!err) err = plan_best(&t, nodes, d);
    if (err) return err;
    p->slots = p->code.shares;
    p->check_error = check_error(p, how->windows != NULL);
    const sherd__matrices m = { .a = a, .b = b, .ld = 1 };
    return open_scheme(p, &m, part, how->windows, nodes, opt);
}

static int share_right(sherd__prepared *p, const sherd__kept_product *m,
                       const sherd_product_options *opt, sherd_diag *d)
{
    sherd__fixed fixed;
    int err = bound_b(&fixed, m->b, opt, d);
    if (err) return err;
    p->fixed_b = fixed;
    err = sherd__share_next(&p->hiding, m, &fixed);
    if (err == SHERD_ERANGE)
        return sherd__fail(d, err, "keep it in larger parts, or use fewer bits",
                           "sums over %zu rows exceed what the kept operand was encoded for: its "
                           "parts are smaller",
                           m->b.rows);
    return err ? sherd__fail(d, err, NULL, "the kept operand cannot be used: %s",
                             sherd_strerror(err))
               : SHERD_OK;
}

static int share_prepare(sherd__prepared *p, const sherd__matrices *m, const sherd__nodes *nodes,
                         const sherd_product_options *opt, sherd_diag *d)
{
    const sherd__nodes some = able(nodes, false);
    p->exact = true;
    share_attempt t = { .p = p, .m = m, .opt = opt };
    int err = bounds(p, m->a, m->b, m->a.cols, opt, d);
    if (!err) err = plan_best(&t, &some, d);
    if (err) return err;
    p->slots = p->code.shares;
    p->size_b = sherd_dtype_size((sherd_dtype)sherd__partition_dtype(m->b, true, &p->fixed_b));
    p->check_error = check_error(p, false);
    return open_scheme(p, m, 0, NULL, &some, opt);
}

static int share_range(sherd_view a, sherd_view b, const sherd_product_options *opt, sherd_diag *d)
{
    sherd__prepared p = { .exact = true };
    int err = sherd__share_code_check(sherd__share_code_asked(opt), opt, d);
    return err ? err : bounds(&p, a, b, a.cols, opt, d);
}

static void share_report(const sherd__prepared *p, sherd_report *r)
{
    r->blocks = p->code.blocks;
    r->code = sherd__share_code_number(p->coded_by);
}

const sherd__planner sherd__share_planner = {
    .range = share_range,
    .least = sherd__share_least,
    .prepare = share_prepare,
    .keep = share_keep,
    .right = share_right,
    .report = share_report,
};
