/*
 * Products of packed residues on tiles of bytes, where the processor supports them. Shares are
 * multiplied in the block, or in the form of it that is kept. Integers on the right (B of `share1`
 * and `blind`) are first converted to packed residues, in an area that nothing else of this product
 * needs. Values out of range are left to the general way, which reports them.
 */
#include "matrix/residue.h"
#include "matrix/residue_limbs.h"
#include "node/backends/cpu.h"

static int multiply_packed(cpu *c, const sherd__limbs *x)
{
    size_t left, right;
    sherd__limbs_room(x, &left, &right);
    return sherd__limbs_multiply(x, c->team,
                                 x->sorted_a ? NULL : sherd__cpu_bytes(c, c->left, left),
                                 x->sorted_b ? NULL : sherd__cpu_bytes(c, c->right, right));
}

/* Converts integers to packed residues, a few rows at a time. */
static int pack(cpu *c, const cpu_operand *o, cpu_range cols, uint8_t *out, sherd_diag *d)
{
    const size_t rows = o->rows, most = CPU_AREA / 16 / cols.len;
    int err = SHERD_OK;
    for (size_t r = 0; r < rows && !err; r += most) {
        cpu_range some = { r, rows - r < most ? rows - r : most };
        err = sherd__cpu_convert(c, o, (cpu_part){ some, cols }, c->left, d);
        if (!err)
            sherd__residue_pack(c->left, some.len * cols.len, o->prime,
                                out + SHERD__RESIDUE_BYTES * r * cols.len);
    }
    return err;
}

/* Returns for how many columns of integers with k rows there is room as packed residues: a multiple
 * of 64, or all. */
static size_t columns_of(size_t k, size_t all)
{
    const size_t room = (CPU_AREA * sizeof(double) - CPU_LINE) / SHERD__RESIDUE_BYTES;
    size_t most = k ? room / k : CPU_PANEL;
    if (most > CPU_PANEL) most = CPU_PANEL;
    return most >= all ? all : most / 64 * 64;
}

bool sherd__cpu_sorts_integers(size_t k, size_t m)
{
    return columns_of(k, m) > 0;
}

/* Multiplies packed residues by integers, which are converted for as many columns at a time as
 * there is room for. */
static int multiply_integers(cpu *c, sherd__limbs x, const cpu_operand *b, sherd_diag *d)
{
    size_t m = x.m, most = columns_of(x.k, m);
    uint8_t *out = x.out;
    int err = SHERD_OK;
    if (m && most == 0) return SHERD_EUNSUPPORTED;
    x.ld = m;
    for (size_t j = 0; j < m && !err; j += most) {
        cpu_range cols = { j, m - j < most ? m - j : most };
        uint8_t *packed = sherd__cpu_bytes(c, c->acc, SHERD__RESIDUE_BYTES * x.k * cols.len);
        err = pack(c, b, cols, packed, d);
        x.b = packed;
        x.m = cols.len;
        x.out = out + SHERD__RESIDUE_BYTES * j;
        if (!err) err = multiply_packed(c, &x);
    }
    return err;
}

int sherd__cpu_sort_right(cpu *c, const sherd__limbs *x, const cpu_operand *b, uint8_t *out,
                          sherd_diag *d)
{
    if (b->dtype == SHERD__RESIDUES) return sherd__limbs_sort_right(x, 0, x->m, c->team, out);
    sherd__limbs some = *x;
    size_t most = columns_of(x->k, x->m);
    int err = SHERD_OK;
    for (size_t j = 0; j < x->m && !err; j += most) {
        cpu_range cols = { j, x->m - j < most ? x->m - j : most };
        uint8_t *packed = sherd__cpu_bytes(c, c->acc, SHERD__RESIDUE_BYTES * x->k * cols.len);
        err = pack(c, b, cols, packed, d);
        some.b = packed;
        if (!err) err = sherd__limbs_sort_right(&some, j, cols.len, c->team, out);
    }
    return err;
}

bool sherd__cpu_limbs(cpu *c, const cpu_operand *a, const cpu_operand *b, uint8_t *out, bool add,
                      sherd_diag *d)
{
    const sherd__limbs x = { .p = a->prime,
                             .transposed = a->transposed,
                             .n = (size_t)cpu_height(a),
                             .k = (size_t)cpu_depth(a),
                             .m = (size_t)b->cols,
                             .a = a->values,
                             .b = b->values,
                             .out = out,
                             .add = add,
                             .sorted_a = a->sorted,
                             .sorted_b = b->sorted,
                             .stop = &c->call->cancelled };
    if (!sherd__limbs_here() || a->dtype != SHERD__RESIDUES || b->fill) return false;
    if (b->dtype == SHERD__RESIDUES || b->sorted) return multiply_packed(c, &x) == SHERD_OK;
    return multiply_integers(c, x, b, d) == SHERD_OK;
}
