/*
 * Tasks and blocks both arrive over the network, and a node serves several coordinators. So
 * everything that the backends' loops rely on is established here: equal numbers of groups, inner
 * sizes, one width of the right operand, and a result of exactly the size that the blocks give.
 */
#include "node/check.h"

#include "core/bytes.h"
#include "core/diag.h"
#include "crypto/fragment_make.h"
#include "matrix/sparse.h"
#include "sherd/mat.h"
#include "sherd/op.h"

typedef unsigned long long ull;

/* Coordinators send a sherd_op as the operation of a task. */
#define SAME(wire, op) _Static_assert((int)(wire) == (int)(op), "an operation has one number")
SAME(SHERD__OP_MULTIPLY, SHERD_OP_PRODUCT);
SAME(SHERD__OP_SIGMOID, SHERD_OP_SIGMOID);
SAME(SHERD__OP_MINUS, SHERD_OP_MINUS);
SAME(SHERD__OP_SQUARE, SHERD_OP_SQUARE);
SAME(SHERD__OP_TIMES, SHERD_OP_TIMES);
SAME(SHERD__OP_RELU, SHERD_OP_RELU);
SAME(SHERD__OP_TANH, SHERD_OP_TANH);
SAME(SHERD__OP_EXP, SHERD_OP_EXP);

size_t sherd__wire_size(uint8_t dtype)
{
    if (sherd__fragment_is_bytes(dtype)) return 1;
    return dtype == SHERD__RESIDUES ? 3 : sherd_dtype_size((sherd_dtype)dtype);
}

uint32_t sherd__groups_of(const sherd__fragment_info *info)
{
    return info->groups ? info->groups : 1;
}

const uint8_t *sherd__group_first(const sherd__fragment *f)
{
    return sherd__fragment_bytes(f) + 8 * (size_t)sherd__fragment_info_of(f)->groups;
}

sherd__group sherd__group_at(const sherd__fragment *f, uint32_t q, const uint8_t *values)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(f);
    if (i->groups == 0) return (sherd__group){ values, i->rows, i->cols };
    const uint8_t *entry = sherd__fragment_bytes(f) + 8 * (size_t)q;
    return (sherd__group){ values, sherd__get_u32(entry), sherd__get_u32(entry + 4) };
}

int sherd__task_settle(const sherd__fragment *left, const sherd__fragment *right, sherd_diag *d)
{
    int err = sherd__fragment_settle(left);
    if (!err && right) err = sherd__fragment_settle(right);
    return err ? sherd__fail_to(d, err, "expand a seed") : SHERD_OK;
}

static bool is_float(uint8_t dtype)
{
    return dtype == SHERD_F64 || dtype == SHERD_F32;
}

static int check_arithmetic(const sherd__task *t, const sherd__fragment_info *f, const char *which,
                            sherd_diag *d)
{
    if (t->primes_len == 0 && f->dtype == SHERD__RESIDUES)
        return sherd__fail(d, SHERD_EINVAL, NULL, "%s holds residues, but the task has no primes",
                           which);
    if (t->primes_len && is_float(f->dtype))
        return sherd__fail(d, SHERD_EINVAL, NULL, "%s holds floats, but the task has primes",
                           which);
    if (f->dtype == SHERD__RESIDUES && f->primes != t->primes_len)
        return sherd__fail(d, SHERD_EINVAL, NULL, "%s is modulo %u primes, the task modulo %u",
                           which, f->primes, t->primes_len);
    return SHERD_OK;
}

/* Only the left operand of a product may be in CSR. */
static int check_encoding(const sherd__task *t, const sherd__fragment *left,
                          const sherd__fragment *right, sherd_diag *d)
{
    bool dense = sherd__fragment_info_of(left)->encoding == SHERD__DENSE;
    if ((!dense && t->op != SHERD__OP_MULTIPLY) ||
        (right && sherd__fragment_info_of(right)->encoding != SHERD__DENSE))
        return sherd__fail(d, SHERD_EUNSUPPORTED, NULL, "operation %u with %s in CSR", t->op,
                           dense ? "right" : "left");
    return SHERD_OK;
}

static int check_primes(const sherd__task *t, bool bytes, sherd_diag *d)
{
    const uint32_t most = bytes ? SHERD__BYTES_PRIMES_MAX : SHERD__RESIDUES_PRIMES_MAX;
    const uint32_t from = bytes ? SHERD__BYTES_PRIME_MIN : SHERD__PRIME_MIN;
    const uint32_t to = bytes ? SHERD__BYTES_PRIME_MAX : SHERD__PRIME_MAX;
    if (t->primes_len > most)
        return sherd__fail(d, SHERD_EUNSUPPORTED, NULL, "%u primes, at most %u are computed with",
                           t->primes_len, most);
    for (uint32_t i = 0; i < t->primes_len; i++) {
        if (t->primes[i] < from || t->primes[i] > to || t->primes[i] % 2 == 0)
            return sherd__fail(d, SHERD_EUNSUPPORTED, NULL,
                               "modulus %u, expected an odd one from %u to %u", t->primes[i], from,
                               to);
    }
    return SHERD_OK;
}

/* Returns whether the task computes values of this kind from the other blocks. */
static bool result_fits(const sherd__task *t, uint8_t dtype, bool bytes)
{
    return bytes           ? dtype == SHERD__BYTES
           : t->primes_len ? dtype == SHERD__RESIDUES
                           : is_float(dtype);
}

static int check_result(const sherd__task *t, uint64_t rows, uint64_t cols, bool bytes,
                        sherd_diag *d)
{
    const sherd__fragment_info *r = &t->result;
    if (r->rows != rows || r->cols != cols)
        return sherd__fail(d, SHERD_ESHAPE, NULL,
                           "the blocks give %llu x %llu, the task announces %llu x %llu", (ull)rows,
                           (ull)cols, (ull)r->rows, (ull)r->cols);
    if (r->origin != SHERD__RESULT || r->groups != 0 || r->primes != t->primes_len ||
        !result_fits(t, r->dtype, bytes))
        return sherd__fail(d, SHERD_EUNSUPPORTED, NULL,
                           "a result of dtype %u with %u primes and %u groups is not computed",
                           r->dtype, r->primes, r->groups);
    if (sherd__fragment_info_check(r, d)) return SHERD_ESHAPE;
    return SHERD_OK;
}

static int compare_groups(const sherd__fragment *left, const sherd__fragment *right, sherd_diag *d)
{
    const sherd__fragment_info *b = sherd__fragment_info_of(right);
    for (uint32_t q = 0; q < sherd__groups_of(b); q++) {
        sherd__group u = sherd__group_at(left, q, NULL), v = sherd__group_at(right, q, NULL);
        if (u.cols != v.rows || v.cols != b->cols)
            return sherd__fail(d, SHERD_ESHAPE, NULL,
                               "group %u: left is %llu x %llu, right %llu x %llu of width %llu", q,
                               (ull)u.rows, (ull)u.cols, (ull)v.rows, (ull)v.cols, (ull)b->cols);
    }
    return SHERD_OK;
}

static int check_multiply(const sherd__task *t, const sherd__fragment *left,
                          const sherd__fragment *right, sherd_diag *d)
{
    const sherd__fragment_info *a = sherd__fragment_info_of(left);
    const sherd__fragment_info *b = sherd__fragment_info_of(right);
    if (sherd__groups_of(a) != sherd__groups_of(b))
        return sherd__fail(d, SHERD_ESHAPE, NULL, "left has %u groups, right %u",
                           sherd__groups_of(a), sherd__groups_of(b));
    int err = sherd__task_defers_groups(t, left) ? SHERD_OK : compare_groups(left, right, d);
    return err ? err : check_result(t, a->rows, b->cols, false, d);
}

bool sherd__task_defers_groups(const sherd__task *t, const sherd__fragment *left)
{
    return t->op == SHERD__OP_MULTIPLY &&
           sherd__groups_of(sherd__fragment_info_of(left)) > SHERD__GROUPS_AT_ONCE;
}

int sherd__task_check_groups(const sherd__task *t, const sherd__fragment *left,
                             const sherd__fragment *right, sherd_diag *d)
{
    return sherd__task_defers_groups(t, left) ? compare_groups(left, right, d) : SHERD_OK;
}

static int check_multiply_t(const sherd__task *t, const sherd__fragment *left,
                            const sherd__fragment *right, sherd_diag *d)
{
    const sherd__fragment_info *a = sherd__fragment_info_of(left);
    const sherd__fragment_info *b = sherd__fragment_info_of(right);
    if (a->groups > 1 || b->groups > 1)
        return sherd__fail(d, SHERD_ESHAPE, NULL, "operation %u on more than one group", t->op);
    if (a->rows != b->rows)
        return sherd__fail(d, SHERD_ESHAPE, NULL,
                           "left is %llu x %llu before it is transposed, right %llu x %llu",
                           (ull)a->rows, (ull)a->cols, (ull)b->rows, (ull)b->cols);
    return check_result(t, a->cols, b->cols, false, d);
}

sherd__windows sherd__task_windows(const sherd__task *t)
{
    sherd__windows w = { .count = 0 };
    (void)sherd__windows_fit(&t->windows, &w);
    return w;
}

/* As check_multiply and check_multiply_t, for the matrix of windows of the left block's rows. */
static int check_windows(const sherd__task *t, const sherd__fragment *left,
                         const sherd__fragment *right, sherd_diag *d)
{
    const sherd__fragment_info *a = sherd__fragment_info_of(left);
    const sherd__fragment_info *b = sherd__fragment_info_of(right);
    sherd__windows w = sherd__task_windows(t);
    bool transposed = t->op == SHERD__OP_MULTIPLY_T;
    size_t rows;
    if ((!transposed && t->op != SHERD__OP_MULTIPLY) || a->dtype != SHERD__RESIDUES ||
        b->groups > 1)
        return sherd__fail(d, SHERD_EUNSUPPORTED, NULL,
                           "operation %u with windows of a block of dtype %u, on %u groups", t->op,
                           a->dtype, sherd__groups_of(b));
    if (w.count == 0 || w.row > SHERD__WINDOW_MAX)
        return sherd__fail(d, SHERD_EUNSUPPORTED, NULL,
                           "windows of %u every %u with padding %u of images of %u x %u x %u",
                           t->windows.window, t->windows.stride, t->windows.padding,
                           t->windows.height, t->windows.width, t->windows.channels);
    if (a->cols != w.image || !sherd__mul(a->rows, w.count, &rows) ||
        b->rows != (transposed ? rows : w.row))
        return sherd__fail(d, SHERD_ESHAPE, NULL,
                           "left is %llu x %llu, images of %zu with %zu windows of %zu; right is "
                           "%llu x %llu",
                           (ull)a->rows, (ull)a->cols, w.image, w.count, w.row, (ull)b->rows,
                           (ull)b->cols);
    return check_result(t, transposed ? w.row : rows, b->cols, false, d);
}

static int check_map(const sherd__task *t, const sherd__fragment *left,
                     const sherd__fragment *right, sherd_diag *d)
{
    const sherd__fragment_info *a = sherd__fragment_info_of(left);
    if (t->primes_len)
        return sherd__fail(d, SHERD_EUNSUPPORTED, NULL, "operation %u modulo primes", t->op);
    if (a->groups > 1 || (right && sherd__fragment_info_of(right)->groups > 1))
        return sherd__fail(d, SHERD_ESHAPE, NULL, "operation %u on more than one group", t->op);
    if (right) {
        const sherd__fragment_info *b = sherd__fragment_info_of(right);
        if (a->rows != b->rows || a->cols != b->cols)
            return sherd__fail(d, SHERD_ESHAPE, NULL, "left is %llu x %llu, right %llu x %llu",
                               (ull)a->rows, (ull)a->cols, (ull)b->rows, (ull)b->cols);
    }
    return check_result(t, a->rows, a->cols, false, d);
}

static bool is_product(const sherd__task *t)
{
    return t->op == SHERD__OP_MULTIPLY || t->op == SHERD__OP_MULTIPLY_T;
}

/* Residues of one byte: products of a left by a right operand, which are laid out for that. */
static int check_bytes(const sherd__task *t, const sherd__fragment_info *a,
                       const sherd__fragment_info *b, sherd_diag *d)
{
    bool transposed = t->op == SHERD__OP_MULTIPLY_T;
    if (!is_product(t) || t->windows.window || a->dtype != SHERD__BYTES_LEFT ||
        b->dtype != SHERD__BYTES_RIGHT)
        return sherd__fail(d, SHERD_EUNSUPPORTED, NULL,
                           "operation %u%s on a left block of dtype %u and a right one of %u",
                           t->op, t->windows.window ? " with windows" : "", a->dtype,
                           b ? b->dtype : 0);
    if (a->primes != t->primes_len || b->primes != t->primes_len)
        return sherd__fail(d, SHERD_EINVAL, NULL,
                           "left is modulo %u primes, right modulo %u, the task modulo %u",
                           a->primes, b->primes, t->primes_len);
    int err = check_primes(t, true, d);
    if (err) return err;
    if ((transposed ? a->rows : a->cols) != b->rows)
        return sherd__fail(d, SHERD_ESHAPE, NULL, "left is %llu x %llu%s, right %llu x %llu",
                           (ull)a->rows, (ull)a->cols, transposed ? " before it is transposed" : "",
                           (ull)b->rows, (ull)b->cols);
    if (b->rows > SHERD__BYTES_TERMS_MAX)
        return sherd__fail(d, SHERD_EUNSUPPORTED, NULL,
                           "sums of %llu terms of one byte, at most %u are added up", (ull)b->rows,
                           SHERD__BYTES_TERMS_MAX);
    return check_result(t, transposed ? a->cols : a->rows, b->cols, true, d);
}

int sherd__task_check(const sherd__task *t, const sherd__fragment *left,
                      const sherd__fragment *right, sherd_diag *d)
{
    bool two;
    switch (t->op) {
    case SHERD__OP_MULTIPLY:
    case SHERD__OP_MULTIPLY_T:
    case SHERD__OP_MINUS:
    case SHERD__OP_TIMES: two = true; break;
    case SHERD__OP_SIGMOID:
    case SHERD__OP_SQUARE:
    case SHERD__OP_RELU:
    case SHERD__OP_TANH:
    case SHERD__OP_EXP: two = false; break;
    default: return sherd__fail(d, SHERD_EUNSUPPORTED, NULL, "unknown operation %u", t->op);
    }
    if (t->windows.window && !two)
        return sherd__fail(d, SHERD_EUNSUPPORTED, NULL, "operation %u of windows", t->op);
    if (!left || two != (right != NULL))
        return sherd__fail(d, SHERD_EINVAL, NULL, "operation %u takes %d operand%s", t->op, 1 + two,
                           two ? "s" : "");
    const sherd__fragment_info *a = sherd__fragment_info_of(left);
    const sherd__fragment_info *b = right ? sherd__fragment_info_of(right) : NULL;
    if (sherd__fragment_is_bytes(a->dtype) || (b && sherd__fragment_is_bytes(b->dtype)))
        return check_bytes(t, a, b, d);
    int err = check_primes(t, false, d);
    if (!err) err = check_encoding(t, left, right, d);
    if (!err) err = check_arithmetic(t, a, "left", d);
    if (!err && b) err = check_arithmetic(t, b, "right", d);
    if (err) return err;
    if (t->windows.window) return check_windows(t, left, right, d);
    if (t->op == SHERD__OP_MULTIPLY) return check_multiply(t, left, right, d);
    if (t->op == SHERD__OP_MULTIPLY_T) return check_multiply_t(t, left, right, d);
    return check_map(t, left, right, d);
}

uint32_t sherd__task_needs(const sherd__task *t, const sherd__fragment *left)
{
    const sherd__fragment_info *a = sherd__fragment_info_of(left);
    uint32_t csr = a->encoding == SHERD__CSR ? SHERD__DOES_CSR : 0;
    if (!is_product(t)) return SHERD__DOES_MAPS | csr;
    if (sherd__fragment_is_bytes(a->dtype)) return SHERD__DOES_BYTES;
    return (t->primes_len ? SHERD__DOES_RESIDUES : SHERD__DOES_F64) | csr;
}

/* Returns how many numbers are multiplied for each number in the left block. */
static double spread_of(const sherd__task *t)
{
    sherd__windows w = sherd__task_windows(t);
    return t->windows.window ? (double)w.count * (double)w.row / (double)w.image : 1;
}

double sherd__task_flops(const sherd__task *t, const sherd__fragment *left)
{
    const sherd__fragment_info *a = sherd__fragment_info_of(left);
    double values = (double)(a->len - 8 * (uint64_t)a->groups) / (double)sherd__wire_size(a->dtype);
    sherd__csr csr;
    if (sherd__csr_layout(a, &csr)) {
        double dense = (double)a->rows * (double)a->cols;
        values = (double)csr.entries / SHERD__SPARSE_SPEED;
        if (values > dense) values = dense;
    }
    if (a->primes) values /= a->primes;
    if (sherd__fragment_is_bytes(a->dtype)) values = (double)a->rows * (double)a->cols;
    values *= spread_of(t);
    if (!is_product(t)) return 16 * values;
    return 2 * values * (double)t->result.cols * (t->primes_len ? t->primes_len : 1);
}

double sherd__task_bytes(const sherd__task *t, const sherd__fragment *left,
                         const sherd__fragment *right)
{
    double bytes = (double)sherd__fragment_info_of(left)->len * spread_of(t) +
                   (double)t->result.len;
    return right ? bytes + (double)sherd__fragment_info_of(right)->len : bytes;
}
