/*
 * Operands are copied and rounded. Let s be the exponent that rounding to nearest would choose: the
 * copy holds a * 2^-s, with integers |a| < 2^(bits-1), which doubles represent exactly. The inner
 * multiplier may choose any exponent of at least s; it then rounds nothing.
 */
#include "matrix/rounding.h"

#include <math.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "matrix/exact.h"
#include "matrix/fixed.h"
#include "matrix/scaling.h"
#include "matrix/view.h"

struct sherd_kept {
    sherd_multiplier multiplier;
    sherd_kept *inner;
};

typedef struct room {
    double *data;
    size_t len;
} room;

typedef struct rounding {
    sherd_multiplier inner;
    unsigned bits;
    uint64_t seed[4];
    uint64_t step, tensor; /* of the next operand */
    room left, right;
} rounding;

static void empty(room *r)
{
    if (r->data) sherd__wipe(r->data, r->len * sizeof *r->data);
    sherd__free(r->data);
    *r = (room){ NULL, 0 };
}

static int grow(room *r, size_t rows, size_t cols)
{
    size_t len, bytes;
    if (!sherd__mul(rows, cols, &len) || !sherd__mul(len, sizeof *r->data, &bytes))
        return SHERD_ENOMEM;
    if (len <= r->len && r->data) return SHERD_OK;
    empty(r);
    r->data = sherd__alloc_large(bytes);
    if (!r->data) return SHERD_ENOMEM;
    r->len = len;
    return SHERD_OK;
}

/* Applies the finaliser of SplitMix64 to the words in order. */
static uint64_t key_of(const rounding *r, uint64_t step, uint64_t tensor)
{
    const uint64_t words[] = { r->seed[0], r->seed[1], r->seed[2], r->seed[3], step, tensor };
    uint64_t z = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        z = (z ^ words[i]) + UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        z ^= z >> 31;
    }
    return z;
}

static bool has_integers(sherd_view v)
{
    return v.dtype != SHERD_F64 && v.dtype != SHERD_F32;
}

/* Replaces *v by its rounded copy, unless it holds integers. */
static int round_view(const rounding *r, uint64_t key, const char *name, room *to, sherd_view *v,
                      sherd_diag *d)
{
    sherd__fixed f;
    if (has_integers(*v)) return SHERD_OK;
    int err = sherd__fixed_choose(*v, r->bits, name, &f, d);
    if (err != 0) return err;
    if (grow(to, v->rows, v->cols) != 0)
        return sherd__fail_memory(d, "rounding an operand of %zu x %zu", v->rows, v->cols);
    size_t len = v->rows * v->cols;
    sherd__view_dense_f64(*v, to->data, v->cols);
    sherd__fixed_apply_stochastic(&f, key, 0, to->data, len);
    sherd__exact_unscale(to->data, len, f.scale);
    *v = sherd_view_c(to->data, SHERD_F64, v->rows, v->cols);
    return SHERD_OK;
}

static int rounding_multiply(void *ctx, sherd_view a, sherd_view b, double *c, size_t ldc,
                             sherd_diag *d)
{
    rounding *r = ctx;
    uint64_t tensor = r->tensor;
    r->tensor += 2;
    int err = round_view(r, key_of(r, r->step, tensor), "A", &r->left, &a, d);
    if (err == 0) err = round_view(r, key_of(r, r->step, tensor + 1), "B", &r->right, &b, d);
    return err == 0 ? sherd_multiplier_multiply(r->inner, a, b, c, ldc, d) : err;
}

static int rounding_keep(void *ctx, sherd_view a, const sherd_keep_options *how, sherd_kept **out,
                         sherd_diag *d)
{
    rounding *r = ctx;
    room copy = { NULL, 0 };
    sherd_kept *kept = sherd__calloc(1, sizeof *kept);
    if (!kept) return sherd__fail_memory(d, "a kept operand of %zu x %zu", a.rows, a.cols);
    kept->multiplier = r->inner;
    int err = round_view(r, key_of(r, SHERD__ROUNDING_KEPT, 0), "A", &copy, &a, d);
    if (err == 0) err = sherd_multiplier_keep(&kept->inner, r->inner, a, how, d);
    empty(&copy);
    if (err != 0) sherd__free(kept);
    else *out = kept;
    return err;
}

static int rounding_multiply_kept(void *ctx, sherd_kept *kept, sherd_rows rows, bool transposed,
                                  sherd_view b, double *c, size_t ldc, sherd_diag *d)
{
    rounding *r = ctx;
    int err = round_view(r, key_of(r, r->step, r->tensor++), "B", &r->right, &b, d);
    return err == 0 ? sherd_multiplier_multiply_rows(r->inner, kept->inner, rows, transposed, b, c,
                                                     ldc, d)
                    : err;
}

static void rounding_kept_shape(const sherd_kept *kept, size_t *rows, size_t *cols, size_t *part)
{
    kept->multiplier.ops->kept_shape(kept->inner, rows, cols, part);
}

static void rounding_release(void *ctx, sherd_kept *kept)
{
    (void)ctx;
    sherd_multiplier_release(kept->multiplier, kept->inner);
    sherd__free(kept);
}

static int rounding_map(void *ctx, sherd_op op, sherd_view a, sherd_view b, double *out, size_t ld,
                        sherd_diag *d)
{
    const rounding *r = ctx;
    return sherd_multiplier_map(r->inner, op, a, b, out, ld, d);
}

static void rounding_free(void *ctx)
{
    rounding *r = ctx;
    sherd_multiplier_free(r->inner);
    empty(&r->left);
    empty(&r->right);
    sherd__wipe(r, sizeof *r);
    sherd__free(r);
}

static const sherd_multiplier_ops rounding_ops = {
    .abi = SHERD_MULTIPLIER_ABI,
    .name = "rounding",
    .multiply = rounding_multiply,
    .keep = rounding_keep,
    .multiply_kept = rounding_multiply_kept,
    .kept_shape = rounding_kept_shape,
    .release = rounding_release,
    .map = rounding_map,
    .free = rounding_free,
};

int sherd__rounding_new(sherd_multiplier *out, sherd_multiplier inner, unsigned bits,
                        const uint8_t seed[32], sherd_diag *d)
{
    *out = (sherd_multiplier){ NULL, NULL };
    if (bits < SHERD__FIXED_BITS_MIN || bits > SHERD__FIXED_BITS_MAX)
        return sherd__fail(d, SHERD_EINVAL, "17 bits are usual",
                           "stochastic rounding to %u bits: expected %u to %u", bits,
                           SHERD__FIXED_BITS_MIN, SHERD__FIXED_BITS_MAX);
    rounding *r = sherd__calloc(1, sizeof *r);
    if (!r) return sherd__fail_memory(d, "a multiplier");
    r->inner = inner;
    r->bits = bits;
    for (unsigned i = 0; i < 4; i++) r->seed[i] = sherd__get_u64(seed + 8 * i);
    *out = (sherd_multiplier){ &rounding_ops, r };
    return SHERD_OK;
}

void sherd__rounding_step(sherd_multiplier m, uint64_t step)
{
    m = sherd__scaling_inner(m);
    rounding *r = m.ctx;
    if (m.ops != &rounding_ops) return;
    r->step = step;
    r->tensor = 0;
}
