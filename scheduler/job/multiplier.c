/*
 * The multiplier interface over a cluster. Every product and every kept operand has its own
 * operation number under one seed, so that no two of them use the same permutations. A kept operand
 * keeps its number, so that sending it again shows no node new entries. In clear schemes every
 * range of rows that a product uses is a separate block, sent when it is first used: a node cannot
 * extract part of a block whose rows are shuffled.
 *
 * With the tables of a step (scheduler/job/step_tables.h) exposures and permutations are those of
 * metadata. A product of a pass uses the permutations of the pass's number. Rows of a kept operand
 * use those of the number of their part, and keep them.
 */
#include "sherd/multiplier.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/options.h"
#include "core/rand.h"
#include "core/wipe.h"
#include "crypto/perm.h"
#include "matrix/exact.h"
#include "matrix/view.h"
#include "matrix/windows.h"
#include "scheduler/job/kept_share.h"
#include "scheduler/job/step_tables.h"
#include "scheduler/plan/weights.h"

#define HELD 0.4 /* maximum fraction of a node's memory for kept operands between products */

typedef struct remote {
    sherd_cluster *cluster;
    sherd_product_options opt;
    uint8_t seed[32];
    uint64_t operation;         /* of the next product or kept operand */
    uint64_t held;              /* clear schemes: bytes of kept operands at a node */
    uint64_t uses;              /* number of uses of kept operands so far */
    sherd_multiplier local;     /* private schemes: element-wise operations are computed here */
    sherd__step_tables *tables; /* NULL: exposures and permutations are drawn from the seed */
    sherd_report *report;       /* the caller's, or NULL */
} remote;

/* The meaning of each property is defined in sherd/scheme.h. */
static bool hides(const remote *m)
{
    return sherd_scheme_private(m->opt.scheme);
}

static bool keeps_shares(const remote *m)
{
    return sherd_scheme_get(m->opt.scheme)->keeps == SHERD_KEEPS_LEFT;
}

static bool takes_shuffles(const remote *m)
{
    return sherd_scheme_get(m->opt.scheme)->takes & SHERD_TAKES_SHUFFLES;
}

typedef struct direction direction;

struct sherd_kept {
    sherd_view view; /* of data: row-major, in the caller's dtype; if windows are kept, of the
                        images */
    uint8_t *data;
    size_t part;
    sherd__windows windows; /* count 0: none */
    sherd__fixed fixed;     /* exact mode, clear schemes: of all rows */
    uint64_t operation;     /* one per direction */
    sherd__exposure_account *account;
    direction *sent;
    sherd__kept_share *share; /* private schemes; then the four members above are not used */
};

static sherd_product_options options(remote *m, uint64_t operation)
{
    sherd_product_options opt = m->opt;
    opt.seed = m->seed;
    opt.seed_drawn = false;
    opt.operation = operation;
    return opt;
}

/* Returns where the report of an operation that starts now is written, without that of an earlier
 * one; NULL: none is wanted. */
static sherd_report *begin_report(const remote *m)
{
    if (m->report) sherd_report_fini(m->report);
    return m->report;
}

/* Permutations of one product, with exposures that outlive it. */
typedef struct shuffles {
    sherd_shuffles s;
    uint8_t key[32]; /* secret */
    uint32_t cols;
    uint32_t *exposures;
} shuffles;

static int shuffles_row(void *ctx, size_t row, uint32_t *out)
{
    const shuffles *h = ctx;
    return sherd__perm_row(h->key, row, h->cols, out);
}

static void shuffles_fini(shuffles *h, size_t len)
{
    if (h->exposures) sherd__wipe(h->exposures, len * sizeof *h->exposures);
    sherd__free(h->exposures);
    sherd__wipe(h, sizeof *h);
}

/* What is drawn for an operation: permutations of `cols` columns, and exposures, under a number of
 * their own, of `len` columns in parts of `part`. With a table both come from it; `operation` is
 * then the number t of METADATA.md. */
typedef struct drawing {
    uint64_t operation, exposed;
    size_t len, part, cols;
    const sherd__step_table *table;
} drawing;

/* Sets up the permutations of rows of `cols` columns for `operation`, and `len` exposures of
 * another operation, which the operand keeps. Exposures are assigned to each part separately, so
 * that every part is balanced if the whole must be. Weights of the list apply, measured speeds do
 * not: they change, and a node would see more columns each time. */
static int shuffles_init(shuffles *h, const remote *m, const drawing *of)
{
    const size_t len = of->len, part = of->part;
    uint8_t key[32];
    sherd__nodes nodes;
    int err = SHERD_OK;
    sherd__cluster_nodes(m->cluster, &nodes);
    *h = (shuffles){ .cols = (uint32_t)of->cols };
    if (!(h->exposures = sherd__calloc(len, sizeof *h->exposures))) return SHERD_ENOMEM;
    for (size_t c = 0; c < len && of->table; c++) h->exposures[c] = of->table->exposures[c % part];
    for (size_t at = 0, i = 0; at < len && !err && !of->table; at += part, i++) {
        sherd__perm_key(key, m->seed, SHERD__EXPO_LABEL, of->exposed, i);
        err = sherd__weights_exposures(key, len - at < part ? len - at : part, nodes.count,
                                       nodes.weights, m->opt.balanced, h->exposures + at);
    }
    sherd__wipe(key, sizeof key);
    if (of->table) sherd__step_table_key(m->tables, of->table, of->operation, h->key);
    else sherd__perm_key(h->key, m->seed, SHERD__PERM_LABEL, of->operation, 0);
    h->s = (sherd_shuffles){
        .size = sizeof h->s, .exposures = h->exposures, .perm = shuffles_row, .ctx = h
    };
    if (err) shuffles_fini(h, len);
    return err;
}

/* One call with the tables of a step: its permutations, and what it shows to nodes. */
typedef struct by_table {
    sherd__step_table *table;
    shuffles shuffles;
    size_t len; /* exposures */
    sherd_report shown;
} by_table;

/* Takes the next table for `len` exposures and permutations of `cols` entries. */
static int by_table_begin(by_table *t, remote *m, sherd_op kind, size_t len, size_t cols,
                          sherd_diag *d)
{
    *t = (by_table){ .len = len, .shown = { .size = sizeof t->shown } };
    int err = sherd__step_tables_next(m->tables, kind, len, cols, &t->table, d);
    if (err) return err;
    err = shuffles_init(&t->shuffles, m,
                        &(drawing){ .operation = m->tables->pass,
                                    .len = len,
                                    .part = len,
                                    .cols = cols,
                                    .table = t->table });
    return err ? sherd__fail_to(d, err, "draw permutations") : SHERD_OK;
}

static void by_table_end(by_table *t)
{
    sherd__step_table_show(t->table, &t->shown);
    sherd_report_fini(&t->shown);
    shuffles_fini(&t->shuffles, t->len);
}

static int multiply_by_table(remote *m, sherd_view a, sherd_view b, double *c, size_t ldc,
                             sherd_diag *d)
{
    by_table t;
    sherd_product_options opt = options(m, 0);
    int err = by_table_begin(&t, m, SHERD_OP_PRODUCT, a.cols, b.cols, d);
    if (err) return err;
    opt.shuffles = &t.shuffles.s;
    err = sherd_multiply(m->cluster, a, b, c, ldc, &opt, &t.shown, d);
    by_table_end(&t);
    return err;
}

static int remote_multiply(void *ctx, sherd_view a, sherd_view b, double *c, size_t ldc,
                           sherd_diag *d)
{
    remote *m = ctx;
    if (m->tables) return multiply_by_table(m, a, b, c, ldc, d);
    shuffles h;
    sherd_product_options opt = options(m, m->operation++);
    if (!takes_shuffles(m) || a.cols > UINT32_MAX || b.cols > UINT32_MAX)
        return sherd_multiply(m->cluster, a, b, c, ldc, &opt, begin_report(m), d);
    int err = shuffles_init(&h, m,
                            &(drawing){ opt.operation, m->opt.operation, a.cols, a.cols, b.cols,
                                        NULL });
    if (err) return sherd__fail_to(d, err, "draw exposures");
    opt.shuffles = &h.s;
    err = sherd_multiply(m->cluster, a, b, c, ldc, &opt, begin_report(m), d);
    shuffles_fini(&h, a.cols);
    return err;
}

/* Some rows of a kept operand in one direction: transposed for K*B, as they are for K^T*B. */
struct direction {
    direction *next;
    sherd_rows rows;
    bool transposed;
    uint64_t operation;
    sherd__step_table *table; /* NULL: permutations are drawn from the seed */
    shuffles shuffles;        /* permute: of an operand that has parts, or a table */
    size_t exposures;         /* number of exposures in these */
    sherd_resident *resident; /* NULL: not sent */
    size_t n_max;
    uint64_t used; /* number of its last use */
};

static void forget(remote *m, direction *dir)
{
    if (!dir->resident) return;
    m->held -= sherd__resident_bytes(dir->resident);
    sherd_resident_free(dir->resident);
    dir->resident = NULL;
    dir->n_max = 0;
}

/* Drops the blocks of the operand that were used least recently, until the nodes have room for the
 * next ones. Sending a block again shows the nodes no new entries. */
static void make_room(remote *m, sherd_kept *k, const direction *now)
{
    sherd__nodes nodes;
    sherd__cluster_nodes(m->cluster, &nodes);
    while ((double)m->held > HELD * (double)nodes.memory) {
        direction *oldest = NULL;
        for (direction *dir = k->sent; dir; dir = dir->next)
            if (dir != now && dir->resident && (!oldest || dir->used < oldest->used)) oldest = dir;
        if (!oldest) return;
        forget(m, oldest);
    }
}

static void remote_release(void *ctx, sherd_kept *k)
{
    remote *m = ctx;
    sherd__kept_share_free(k->share);
    for (direction *dir; (dir = k->sent);) {
        k->sent = dir->next;
        forget(m, dir);
        shuffles_fini(&dir->shuffles, dir->exposures);
        sherd__free(dir);
    }
    sherd__exposure_account_free(k->account);
    if (k->data)
        sherd__wipe(k->data, k->view.rows * k->view.cols * sherd_dtype_size(k->view.dtype));
    sherd__free(k->data);
    sherd__free(k);
}

static void copy(sherd_view a, uint8_t *to)
{
    size_t size = sherd_dtype_size(a.dtype);
    for (size_t r = 0; r < a.rows && a.cols; r++) {
        const uint8_t *row = (const uint8_t *)a.data +
                             (ptrdiff_t)r * a.row_stride * (ptrdiff_t)size;
        if (a.col_stride == 1) {
            memcpy(to + r * a.cols * size, row, a.cols * size);
            continue;
        }
        for (size_t c = 0; c < a.cols; c++) {
            ptrdiff_t at = (ptrdiff_t)c * a.col_stride * (ptrdiff_t)size;
            memcpy(to + (r * a.cols + c) * size, row + at, size);
        }
    }
}

/* Rounds the images to their common exponent. The windows of some of the images will have an
 * exponent of their own, which is not larger, so values rounded now are not rounded again. */
static int round_images(sherd_kept *k, sherd_diag *d)
{
    bool real = k->view.dtype == SHERD_F64 || k->view.dtype == SHERD_F32;
    size_t cols = k->view.cols, len;
    if (!real) return SHERD_OK;
    double *to = sherd__mul(k->view.rows, cols * sizeof *to, &len) ? sherd__alloc(len) : NULL;
    if (!to) return sherd__fail_memory(d, "kept images in fixed point");
    for (size_t r = 0; r < k->view.rows; r++)
        sherd__fixed_row(&k->fixed, k->view, r, 0, cols, to + r * cols);
    sherd__exact_unscale(to, k->view.rows * cols, k->fixed.scale);
    sherd__wipe(k->data, k->view.rows * cols * sherd_dtype_size(k->view.dtype));
    sherd__free(k->data);
    k->data = (uint8_t *)to;
    k->view = sherd_view_c(to, SHERD_F64, k->view.rows, cols);
    return SHERD_OK;
}

static int remote_keep(void *ctx, sherd_view a, const sherd_keep_options *how, sherd_kept **out,
                       sherd_diag *d)
{
    remote *m = ctx;
    size_t len;
    uint32_t nodes = sherd_cluster_size(m->cluster);
    sherd_kept *k = sherd__calloc(1, sizeof *k);
    if (!k || !sherd__mul(a.rows, a.cols, &len) ||
        !sherd__mul(len, sherd_dtype_size(a.dtype), &len) || !(k->data = sherd__alloc(len)) ||
        sherd__exposure_account_new(&k->account, nodes, nodes)) {
        if (k) sherd__free(k->data);
        sherd__free(k);
        return sherd__fail_memory(d, "a kept operand of %zu x %zu", a.rows, a.cols);
    }
    copy(a, k->data);
    k->view = sherd_view_c(k->data, a.dtype, a.rows, a.cols);
    k->part = how->part;
    if (how->windows) (void)sherd__windows_fit(how->windows, &k->windows); /* they fit */
    k->operation = m->operation;
    m->operation += 2;
    int err = SHERD_OK;
    bool shares = keeps_shares(m);
    if (shares) err = sherd__kept_share_new(&k->share, m->cluster, k->view, how, &m->opt, d);
    else if (m->opt.exact)
        err = sherd__fixed_choose(k->view, m->opt.bits, "the operand to keep", &k->fixed, d);
    if (!err && !shares && m->opt.exact && how->windows) err = round_images(k, d);
    if (err) remote_release(ctx, k);
    else *out = k;
    return err;
}

/* Returns whether these are all rows of an operand without parts. */
static bool whole(const sherd_kept *k, sherd_rows rows)
{
    return rows.count == k->view.rows && k->part >= k->view.rows;
}

/* Returns the entry for these rows in this direction; creates it if there is none. An operand
 * without parts uses its own operation number. Returns NULL if there is no memory. */
static direction *direction_of(remote *m, sherd_kept *k, sherd_rows rows, bool transposed)
{
    direction *dir = k->sent;
    while (dir && (dir->rows.first != rows.first || dir->rows.count != rows.count ||
                   dir->transposed != transposed))
        dir = dir->next;
    if (dir || !(dir = sherd__calloc(1, sizeof *dir))) return dir;
    dir->rows = rows;
    dir->transposed = transposed;
    dir->operation = whole(k, rows) ? k->operation + transposed : m->operation++;
    dir->next = k->sent;
    k->sent = dir;
    return dir;
}

/* Returns the number of these rows among the parts of the data, or of the validation data. */
static uint64_t number_of_part(const remote *m, const sherd_kept *k, const direction *dir)
{
    return (m->tables->pass & SHERD__PASS_VALIDATION) | dir->rows.first / k->part;
}

/* Draws the permutations of some rows. The exposures are those of the whole operand in this
 * direction; with a table, the same for each part. */
static int draw_part(const remote *m, const sherd_kept *k, direction *dir)
{
    bool t = dir->transposed;
    size_t len = t ? k->view.rows : k->view.cols;
    if (!takes_shuffles(m) || dir->exposures || (whole(k, dir->rows) && !dir->table))
        return SHERD_OK;
    int err = shuffles_init(&dir->shuffles, m,
                            &(drawing){ dir->table ? number_of_part(m, k, dir) : dir->operation,
                                        k->operation + t, len, t ? k->part : len,
                                        t ? k->view.cols : dir->rows.count, dir->table });
    if (err) return err;
    dir->exposures = len;
    if (t) dir->shuffles.s.exposures += dir->rows.first;
    return SHERD_OK;
}

/* Counts, by slot, the entries of the whole operand, and those of the rows before these. */
static int count_part(const remote *m, const sherd_kept *k, const direction *dir, uint64_t **before,
                      uint64_t **all)
{
    uint32_t slots = sherd_cluster_size(m->cluster);
    const sherd_view *v = &k->view;
    *before = sherd__calloc(2 * (size_t)slots, sizeof **before);
    if (!*before) return SHERD_ENOMEM;
    *all = *before + slots;
    if (!takes_shuffles(m)) { /* every slot shows all entries */
        for (uint32_t s = 0; s < slots; s++) {
            (*before)[s] = (uint64_t)dir->rows.first * v->cols;
            (*all)[s] = (uint64_t)v->rows * v->cols;
        }
        return SHERD_OK;
    }
    for (size_t i = 0; i < dir->exposures; i++) {
        uint32_t s = dir->shuffles.exposures[i];
        bool earlier = i < dir->rows.first;
        (*all)[s] += dir->transposed ? v->cols : v->rows;
        (*before)[s] += !dir->transposed ? dir->rows.first : earlier ? v->cols : 0;
    }
    return SHERD_OK;
}

/* Sends these rows to the nodes as a right operand. */
static int send_rows(remote *m, sherd_kept *k, direction *dir, sherd_view right, size_t room,
                     sherd_diag *d)
{
    sherd_product_options opt = options(m, dir->operation);
    uint64_t *before = NULL, *all = NULL;
    sherd__resident_kept of = { .n_max = room, .account = k->account, .side = dir->transposed };
    int err = draw_part(m, k, dir);
    if (!err && !whole(k, dir->rows)) err = count_part(m, k, dir, &before, &all);
    if (err) return sherd__fail_to(d, err, "draw exposures");
    if (dir->exposures) opt.shuffles = &dir->shuffles.s;
    if (whole(k, dir->rows))
        return sherd__resident_of(&dir->resident, m->cluster, right, &opt, &of, d);
    of.part = &(sherd__resident_part){ m->opt.exact ? &k->fixed : NULL, { before, all, 0 } };
    err = sherd__resident_of(&dir->resident, m->cluster, right, &opt, &of, d);
    sherd__free(before);
    return err;
}

/* Sends the operand's rows to the nodes if necessary, for products of n rows. */
static int send(remote *m, sherd_kept *k, direction *dir, sherd_view right, size_t n, sherd_diag *d)
{
    if (dir->resident && n <= dir->n_max) return SHERD_OK;
    size_t room = n > 2 * dir->n_max ? n : 2 * dir->n_max; /* growing widths are sent rarely */
    forget(m, dir);
    int err = send_rows(m, k, dir, right, room, d);
    if (err) return err;
    dir->n_max = room;
    m->held += sherd__resident_bytes(dir->resident);
    make_room(m, k, dir);
    return SHERD_OK;
}

/* Sets c = t^T; t is rows x cols, row-major. Works block by block, so that neither matrix is
 * accessed with a large stride throughout. */
static void transpose(const double *t, size_t rows, size_t cols, double *c, size_t ldc)
{
    enum { BLOCK = 32 };
    for (size_t r0 = 0; r0 < rows; r0 += BLOCK)
        for (size_t c0 = 0; c0 < cols; c0 += BLOCK)
            for (size_t i = c0; i < cols && i < c0 + BLOCK; i++)
                for (size_t r = r0; r < rows && r < r0 + BLOCK; r++)
                    c[i * ldc + r] = t[r * cols + i];
}

/* Clear schemes send windows with each product, as a matrix of its own. */
static int multiply_windows(remote *m, const sherd_kept *k, const sherd__kept_product *p,
                            sherd_diag *d)
{
    void *laid;
    int err = sherd__windows_lay(&k->windows, k->data, sherd_dtype_size(k->view.dtype),
                                 (sherd_rows){ p->rows.first, p->rows.count }, &laid, d);
    if (err) return err;
    sherd_view a = sherd_view_c(laid, k->view.dtype, p->rows.count, k->windows.row);
    err = remote_multiply(m, p->transposed ? sherd_view_t(a) : a, p->b, p->out, p->ld, d);
    sherd__free(laid);
    return err;
}

/* The report is made in this version's struct, as in every call of a user. */
static int multiply_shares(remote *m, const sherd_kept *k, const sherd__kept_product *p,
                           sherd_diag *d)
{
    sherd_report made = { 0 }, *into = begin_report(m);
    int err = sherd__kept_share_multiply(k->share, p, into ? &made : NULL, d);
    if (made.nodes) sherd__result_write(into, &made, sizeof made);
    sherd__wipe(&made, sizeof made); /* it contains the seed */
    return err;
}

static int remote_multiply_kept(void *ctx, sherd_kept *k, sherd_rows which, bool transposed,
                                sherd_view b, double *c, size_t ldc, sherd_diag *d)
{
    remote *m = ctx;
    const sherd__kept_product product = { which, transposed, b, c, ldc };
    if (k->share) return multiply_shares(m, k, &product, d);
    if (k->windows.count) return multiply_windows(m, k, &product, d);
    sherd_view some = sherd_view_sub(k->view, which.first, which.count, 0, k->view.cols);
    if (m->tables && !sherd__step_tables_keep(m->tables)) /* as in a validation of shuffled data */
        return remote_multiply(m, transposed ? sherd_view_t(some) : some, b, c, ldc, d);
    sherd_view right = transposed ? some : sherd_view_t(some);
    size_t rows = b.cols, cols = right.cols, len;
    double *t = NULL;
    direction *dir = direction_of(m, k, which, transposed);
    if (!dir || !sherd__mul(rows, cols, &len) || !sherd__mul(len, sizeof *t, &len) ||
        !(t = sherd__alloc(len)))
        return sherd__fail_memory(d, "a result of %zu x %zu", cols, rows);
    dir->used = ++m->uses;
    sherd_report shown = { .size = sizeof shown };
    int err = m->tables ? sherd__step_tables_next(m->tables, SHERD_OP_PRODUCT, right.rows,
                                                  right.cols, &dir->table, d)
                        : SHERD_OK;
    if (!err) err = send(m, k, dir, right, rows, d);
    if (!err)
        err = sherd_resident_multiply(dir->resident, sherd_view_t(b), t, cols,
                                      m->tables ? &shown : begin_report(m), d);
    if (dir->table) sherd__step_table_show(dir->table, &shown);
    sherd_report_fini(&shown);
    if (err) forget(m, dir); /* after a failure it is sent again */
    else transpose(t, rows, cols, c, ldc);
    sherd__free(t);
    return err;
}

static void remote_kept_shape(const sherd_kept *k, size_t *rows, size_t *cols, size_t *part)
{
    *rows = k->view.rows;
    *cols = k->view.cols;
    *part = k->part;
    sherd__windows_shape(&k->windows, rows, cols, part);
}

static int remote_map(void *ctx, sherd_op op, sherd_view a, sherd_view b, double *out, size_t ld,
                      sherd_diag *d)
{
    remote *m = ctx;
    by_table t;
    if (hides(m)) return sherd_multiplier_map(m->local, op, a, b, out, ld, d);
    int err = m->tables ? by_table_begin(&t, m, op, a.cols, a.cols, d) : SHERD_OK;
    if (err) return err;
    sherd_product_options opt = options(m, m->operation++);
    opt.exact = false;
    if (m->tables) opt.shuffles = &t.shuffles.s;
    err = sherd_apply(m->cluster, op, a, b, out, ld, &opt, m->tables ? &t.shown : begin_report(m),
                      d);
    if (m->tables) by_table_end(&t);
    return err;
}

static void remote_free(void *ctx)
{
    remote *m = ctx;
    sherd_multiplier_free(m->local);
    sherd__wipe(m, sizeof *m);
    sherd__free(m);
}

static const sherd_multiplier_ops remote_ops = {
    .abi = SHERD_MULTIPLIER_ABI,
    .name = "cluster",
    .multiply = remote_multiply,
    .keep = remote_keep,
    .multiply_kept = remote_multiply_kept,
    .kept_shape = remote_kept_shape,
    .release = remote_release,
    .map = remote_map,
    .free = remote_free,
};

int sherd_multiplier_cluster(sherd_multiplier *out, sherd_cluster *c,
                             const sherd_product_options *opt, sherd_diag *d)
{
    sherd_product_options own;
    *out = (sherd_multiplier){ 0 };
    int err = sherd__product_options_read(&own, opt, d);
    if (err) return err;
    opt = &own;
    if (opt->shuffles)
        return sherd__fail(d, SHERD_EINVAL, "give the seed from which they derive",
                           "stored shuffles are for one operation, not for all operations of a "
                           "multiplier");
    if (opt->shuffle_rows)
        return sherd__fail(d, SHERD_EUNSUPPORTED, "omit --shuffle-rows",
                           "rows cannot be shuffled with kept operands");
    const sherd_scheme_info *scheme = sherd_scheme_get(opt->scheme);
    if (scheme->takes & SHERD_TAKES_MASKS)
        return sherd__fail(d, SHERD_EUNSUPPORTED, "use another scheme, or sherd_multiply",
                           "masks are for one B, not for all products of a multiplier");
    if (scheme->keeps == SHERD_KEEPS_NOTHING)
        return sherd__fail(d, SHERD_EUNSUPPORTED, "use another scheme, or sherd_multiply",
                           "under --scheme %s no operand stays at the nodes", scheme->name);
    remote *m = sherd__calloc(1, sizeof *m);
    if (!m) return sherd__fail_memory(d, "a multiplier");
    sherd__entropy os = sherd__entropy_os();
    m->cluster = c;
    m->opt = *opt;
    m->operation = opt->operation;
    if (opt->seed) memcpy(m->seed, opt->seed, sizeof m->seed);
    else os.fill(os.ctx, m->seed, sizeof m->seed);
    m->opt.seed = NULL;
    m->opt.profile_a = m->opt.profile_b = NULL;
    err = sherd_multiplier_local(&m->local, 0, d);
    if (err) {
        remote_free(m);
        return err;
    }
    *out = (sherd_multiplier){ &remote_ops, m };
    return SHERD_OK;
}

int sherd_multiplier_report_set(sherd_multiplier m, sherd_report *r, sherd_diag *d)
{
    if (m.ops != &remote_ops)
        return sherd__fail(d, SHERD_EINVAL, "sherd_multiplier_cluster makes one",
                           "only a multiplier over a cluster has reports");
    int err = r ? sherd__result_check(r, "sherd_report", d) : SHERD_OK;
    if (!err) ((remote *)m.ctx)->report = r;
    return err;
}

void sherd__multiplier_use_tables(sherd_multiplier m, sherd__step_tables *tables)
{
    assert(m.ops == &remote_ops && takes_shuffles(m.ctx));
    ((remote *)m.ctx)->tables = tables;
    sherd__cluster_weights_unused(((remote *)m.ctx)->cluster, SHERD__WEIGHTS_OF_METADATA);
}
