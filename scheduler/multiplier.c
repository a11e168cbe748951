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
#include "crypto/perm.h"
#include "matrix/view.h"
#include "scheduler/kept_share.h"

typedef struct remote {
    sherd_cluster *cluster;
    sherd_product_options opt;
    uint8_t seed[32];
    uint64_t operation; /* of the next product or kept operand */
    sherd_multiplier local; /* private schemes: element-wise operations stay here */
} remote;

static bool hides(const remote *m)
{
    return m->opt.scheme != SHERD_PERMUTE && m->opt.scheme != SHERD_PLAIN;
}

/* One direction of a kept operand: K^T for K*B, or K for K^T*B. */
typedef struct direction {
    sherd_resident *resident; /* NULL: not sent */
    size_t n_max;
} direction;

struct sherd_kept {
    sherd_view view; /* of data: row-major, the caller's dtype */
    uint8_t *data;
    uint64_t operation;
    sherd__account *account;
    direction plain, transposed;
    sherd__kept_share *share; /* private schemes; then none of the three above */
};

static sherd_product_options options(remote *m, uint64_t operation)
{
    sherd_product_options opt = m->opt;
    opt.seed = m->seed;
    opt.operation = operation;
    return opt;
}

/* Permutations of one product, under exposures that outlive it. */
typedef struct shuffles {
    sherd_shuffles s;
    uint8_t key[32]; /* a secret */
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

/* Exposures of `len` columns are those of the multiplier's first operation, whatever the
 * product's. */
static int shuffles_init(shuffles *h, const remote *m, uint64_t operation, size_t len, size_t cols)
{
    uint8_t key[32];
    *h = (shuffles){ .cols = (uint32_t)cols };
    if (!(h->exposures = sherd__calloc(len, sizeof *h->exposures))) return SHERD_ENOMEM;
    sherd__perm_key(key, m->seed, SHERD__EXPO_LABEL, m->opt.operation, 0);
    int err = sherd__exposures(key, len, sherd_cluster_size(m->cluster), m->opt.balanced,
                               h->exposures);
    sherd__wipe(key, sizeof key);
    sherd__perm_key(h->key, m->seed, SHERD__PERM_LABEL, operation, 0);
    h->s = (sherd_shuffles){ h->exposures, shuffles_row, h };
    if (err) shuffles_fini(h, len);
    return err;
}

static int remote_multiply(void *ctx, sherd_view a, sherd_view b, double *c, size_t ldc,
                           sherd_diag *d)
{
    remote *m = ctx;
    shuffles h;
    sherd_product_options opt = options(m, m->operation++);
    if (opt.scheme != SHERD_PERMUTE || a.cols > UINT32_MAX || b.cols > UINT32_MAX)
        return sherd_multiply(m->cluster, a, b, c, ldc, &opt, NULL, d);
    int err = shuffles_init(&h, m, opt.operation, a.cols, b.cols);
    if (err) return sherd__fail(d, err, NULL, "cannot draw exposures: %s", sherd_strerror(err));
    opt.shuffles = &h.s;
    err = sherd_multiply(m->cluster, a, b, c, ldc, &opt, NULL, d);
    shuffles_fini(&h, a.cols);
    return err;
}

static void forget(direction *dir)
{
    sherd_resident_free(dir->resident);
    *dir = (direction){ 0 };
}

static void remote_release(void *ctx, sherd_kept *k)
{
    (void)ctx;
    sherd__kept_share_free(k->share);
    forget(&k->plain);
    forget(&k->transposed);
    sherd__account_free(k->account);
    if (k->data)
        sherd__wipe(k->data, k->view.rows * k->view.cols * sherd_dtype_size(k->view.dtype));
    sherd__free(k->data);
    sherd__free(k);
}

static int remote_keep(void *ctx, sherd_view a, sherd_kept **out, sherd_diag *d)
{
    remote *m = ctx;
    size_t size = sherd_dtype_size(a.dtype), len;
    uint32_t nodes = sherd_cluster_size(m->cluster);
    sherd_kept *k = sherd__calloc(1, sizeof *k);
    if (!k || !sherd__mul(a.rows, a.cols, &len) || !sherd__mul(len, size, &len) ||
        !(k->data = sherd__alloc(len)) || sherd__account_new(&k->account, nodes, nodes)) {
        if (k) sherd__free(k->data);
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
    int err = hides(m) ? sherd__kept_share_new(&k->share, m->cluster, k->view, &m->opt, d) : 0;
    if (err) remote_release(ctx, k);
    else *out = k;
    return err;
}

/* Has the operand at the nodes, for products of n rows. */
static int send(remote *m, sherd_kept *k, bool transposed, sherd_view right, size_t n,
                sherd_diag *d)
{
    direction *dir = transposed ? &k->transposed : &k->plain;
    if (dir->resident && n <= dir->n_max) return SHERD_OK;
    size_t room = n > 2 * dir->n_max ? n : 2 * dir->n_max; /* growing widths are sent seldom */
    sherd_product_options opt = options(m, k->operation + transposed);
    forget(dir);
    int err = sherd__resident_of(&dir->resident, m->cluster, right, room, &opt, k->account,
                                 transposed, d);
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
    if (k->share) return sherd__kept_share_multiply(k->share, transposed, b, c, ldc, NULL, d);
    if (!sherd__mul(rows, cols, &len) || !sherd__mul(len, sizeof *t, &len) ||
        !(t = sherd__alloc(len)))
        return sherd__fail(d, SHERD_ENOMEM, NULL, "no memory for a result of %zu x %zu", cols,
                           rows);
    int err = send(m, k, transposed, right, rows, d);
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

static int remote_map(void *ctx, sherd_op op, sherd_view a, const sherd_view *b, double *out,
                      size_t ld, sherd_diag *d)
{
    remote *m = ctx;
    if (hides(m)) return sherd_multiplier_map(m->local, op, a, b, out, ld, d);
    sherd_product_options opt = options(m, m->operation++);
    opt.exact = false;
    return sherd_apply(m->cluster, (sherd_elementwise)op, a, b ? *b : a, out, ld, &opt, NULL, d);
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
    *out = (sherd_multiplier){ 0 };
    if (opt->shuffles)
        return sherd__fail(d, SHERD_EINVAL, "give the seed that they derive from",
                           "stored shuffles serve one operation, not all of a multiplier");
    if (opt->shuffle_rows)
        return sherd__fail(d, SHERD_EUNSUPPORTED, "leave --shuffle-rows out",
                           "rows cannot be shuffled with kept operands");
    if (opt->scheme == SHERD_BLIND)
        return sherd__fail(d, SHERD_EUNSUPPORTED, "use SHERD_SHARE, or sherd_multiply",
                           "masks serve one B, not all products of a multiplier");
    remote *m = sherd__calloc(1, sizeof *m);
    if (!m) return sherd__fail(d, SHERD_ENOMEM, NULL, "no memory for a multiplier");
    sherd_entropy os = sherd__entropy_os();
    m->cluster = c;
    m->opt = *opt;
    m->operation = opt->operation;
    if (opt->seed) memcpy(m->seed, opt->seed, sizeof m->seed);
    else os.fill(os.ctx, m->seed, sizeof m->seed);
    m->opt.seed = NULL;
    int err = sherd_multiplier_local(0, &m->local, d);
    if (err) {
        remote_free(m);
        return err;
    }
    *out = (sherd_multiplier){ &remote_ops, m };
    return SHERD_OK;
}
