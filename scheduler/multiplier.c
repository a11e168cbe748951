/*
 * The multiplier interface over a cluster. Every product and every kept operand has its own
 * operation number under one seed, so that no two of them share permutations; a kept operand keeps
 * its number, so that sending it again shows no node anything new.
 */
#include "sherd/multiplier.h"

#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/rand.h"
#include "core/wipe.h"
#include "matrix/view.h"
#include "sherd/product.h"

typedef struct remote {
    sherd_cluster *cluster;
    sherd_product_options opt;
    uint8_t seed[32];
    uint64_t operation; /* of the next product or kept operand */
} remote;

/* One direction of a kept operand: K^T for K*B, or K for K^T*B. */
typedef struct direction {
    sherd_resident *resident; /* NULL: not sent */
    size_t n_max;
} direction;

struct sherd_kept {
    sherd_view view; /* of data: row-major, the caller's dtype */
    uint8_t *data;
    uint64_t operation;
    direction plain, transposed;
};

static sherd_product_options options(remote *m, uint64_t operation)
{
    sherd_product_options opt = m->opt;
    opt.seed = m->seed;
    opt.operation = operation;
    return opt;
}

static int remote_multiply(void *ctx, sherd_view a, sherd_view b, double *c, size_t ldc,
                           sherd_diag *d)
{
    remote *m = ctx;
    sherd_product_options opt = options(m, m->operation++);
    return sherd_multiply(m->cluster, a, b, c, ldc, &opt, NULL, d);
}

static int remote_keep(void *ctx, sherd_view a, sherd_kept **out, sherd_diag *d)
{
    remote *m = ctx;
    size_t size = sherd_dtype_size(a.dtype), len;
    sherd_kept *k = sherd__calloc(1, sizeof *k);
    if (!k || !sherd__mul(a.rows, a.cols, &len) || !sherd__mul(len, size, &len) ||
        !(k->data = sherd__alloc(len))) {
        sherd__free(k);
        return sherd__fail(d, SHERD_ENOMEM, NULL, "no memory to keep an operand of %zu x %zu",
                           a.rows, a.cols);
    }
    for (size_t r = 0; r < a.rows; r++) {
        for (size_t c = 0; c < a.cols; c++) {
            ptrdiff_t at = (ptrdiff_t)r * a.row_stride + (ptrdiff_t)c * a.col_stride;
            memcpy(k->data + (r * a.cols + c) * size,
                   (const uint8_t *)a.data + at * (ptrdiff_t)size, size);
        }
    }
    k->view = sherd_view_c(k->data, a.dtype, a.rows, a.cols);
    k->operation = m->operation;
    m->operation += 2; /* one a direction */
    *out = k;
    return SHERD_OK;
}

static void forget(direction *dir)
{
    sherd_resident_free(dir->resident);
    *dir = (direction){ 0 };
}

/* Has the operand at the nodes, for products of n rows. */
static int send(remote *m, direction *dir, sherd_view right, uint64_t operation, size_t n,
                sherd_diag *d)
{
    if (dir->resident && n <= dir->n_max) return SHERD_OK;
    size_t room = n > 2 * dir->n_max ? n : 2 * dir->n_max; /* growing widths are sent seldom */
    sherd_product_options opt = options(m, operation);
    forget(dir);
    int err = sherd_resident_new(&dir->resident, m->cluster, right, room, &opt, d);
    if (!err) dir->n_max = room;
    return err;
}

/* c = t^T; t is rows x cols, row-major. By blocks, so that neither side strides through memory. */
static void transpose(const double *t, size_t rows, size_t cols, double *c, size_t ldc)
{
    enum { BLOCK = 32 };
    for (size_t r0 = 0; r0 < rows; r0 += BLOCK)
        for (size_t c0 = 0; c0 < cols; c0 += BLOCK)
            for (size_t i = c0; i < cols && i < c0 + BLOCK; i++)
                for (size_t r = r0; r < rows && r < r0 + BLOCK; r++)
                    c[i * ldc + r] = t[r * cols + i];
}

static int remote_multiply_kept(void *ctx, sherd_kept *k, bool transposed, sherd_view b, double *c,
                                size_t ldc, sherd_diag *d)
{
    remote *m = ctx;
    direction *dir = transposed ? &k->transposed : &k->plain;
    sherd_view right = transposed ? k->view : sherd_view_t(k->view);
    size_t rows = b.cols, cols = right.cols, len;
    double *t = NULL;
    if (!sherd__mul(rows, cols, &len) || !sherd__mul(len, sizeof *t, &len) ||
        !(t = sherd__alloc(len)))
        return sherd__fail(d, SHERD_ENOMEM, NULL, "no memory for a result of %zu x %zu", cols,
                           rows);
    int err = send(m, dir, right, k->operation + transposed, rows, d);
    if (!err) err = sherd_resident_multiply(dir->resident, sherd_view_t(b), t, cols, NULL, d);
    if (err) forget(dir); /* what failed midway is sent anew */
    else transpose(t, rows, cols, c, ldc);
    sherd__free(t);
    return err;
}

static void remote_kept_shape(const sherd_kept *k, size_t *rows, size_t *cols)
{
    *rows = k->view.rows;
    *cols = k->view.cols;
}

static void remote_release(void *ctx, sherd_kept *k)
{
    (void)ctx;
    forget(&k->plain);
    forget(&k->transposed);
    sherd__free(k->data);
    sherd__free(k);
}

static int remote_map(void *ctx, sherd_op op, sherd_view a, const sherd_view *b, double *out,
                      size_t ld, sherd_diag *d)
{
    remote *m = ctx;
    sherd_product_options opt = options(m, m->operation++);
    opt.exact = false;
    return sherd_apply(m->cluster, (sherd_elementwise)op, a, b ? *b : a, out, ld, &opt, NULL, d);
}

static void remote_free(void *ctx)
{
    remote *m = ctx;
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
    *out = (sherd_multiplier){ 0 };
    if (opt->shuffles)
        return sherd__fail(d, SHERD_EINVAL, "give the seed that they derive from",
                           "stored shuffles serve one operation, not all of a multiplier");
    if (opt->shuffle_rows)
        return sherd__fail(d, SHERD_EUNSUPPORTED, "leave --shuffle-rows out",
                           "rows cannot be shuffled with kept operands");
    remote *m = sherd__calloc(1, sizeof *m);
    if (!m) return sherd__fail(d, SHERD_ENOMEM, NULL, "no memory for a multiplier");
    sherd_entropy os = sherd__entropy_os();
    m->cluster = c;
    m->opt = *opt;
    m->operation = opt->operation;
    if (opt->seed) memcpy(m->seed, opt->seed, sizeof m->seed);
    else os.fill(os.ctx, m->seed, sizeof m->seed);
    m->opt.seed = NULL;
    *out = (sherd_multiplier){ &remote_ops, m };
    return SHERD_OK;
}
