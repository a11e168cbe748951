/*
 * Products with a left block in CSR. A panel of its rows is read at a time, and either written as a
 * dense panel for BLAS or, where it has few entries, multiplied entry by entry. The parser has
 * checked everything about the block except its values, which are compared with 2^53 here.
 */
#include <assert.h>
#include <string.h>

#include "matrix/gemm.h"
#include "matrix/residue.h"
#include "matrix/sparse.h"
#include "node/backends/cpu.h"
#include "node/check.h"
#include "sherd/mat.h"

/* Computes out = (or +=) the current range of columns of c->csr times those rows of b. */
static int csr_panel(cpu *c, const sherd__csr_block *a, const cpu_operand *b, cpu_part part,
                     const cpu_sum *out, sherd_diag *d)
{
    const cpu_range inner = part.rows, cols = part.cols;
    sherd__csr_rows *r = &c->csr;
    cpu_numbers v;
    int err = sherd__cpu_fetch(c, b, part, c->right, &v, d);
    if (err) return err;
    if (!sherd__sparse_pays(r->taken, r->n, inner.len, c->threads)) {
        sherd__csr_dense(r, a, inner.from, inner.len, sherd__cpu_use(c, c->left, r->n * inner.len));
        return sherd__gemm_f64(r->n, inner.len, cols.len, c->left, inner.len, v.at, v.ld,
                               out->add ? 1.0 : 0.0, out->at, out->ld);
    }
    /* Entry by entry pays below a third of the area only: 12 bytes an entry fit. */
    double *value = sherd__cpu_use(c, c->left, r->taken + (r->taken + 1) / 2);
    uint32_t *column = (uint32_t *)(void *)(value + r->taken);
    sherd__csr_lists(r, a, inner.from, column, value);
    sherd__sparse_f64(r->n, inner.len, cols.len, r->count, column, value, v.at, v.ld, out->add,
                      out->at, out->ld, sherd__cpu_use(c, c->sum, SHERD__SPARSE_ROOM(inner.len)));
    return SHERD_OK;
}

/* Computes acc = the rows of c->csr times b modulo b's prime, canonical. */
static int csr_residues(cpu *c, const sherd__csr_block *a, const cpu_operand *b, cpu_range cols,
                        sherd_diag *d)
{
    sherd__csr_rows *r = &c->csr;
    size_t n = r->n * cols.len;
    cpu_numbers v;
    cpu_range inner;
    if (a->dtype == SHERD_I64) {
        uint64_t from = r->next[0], stop = r->end[r->n - 1]; /* the rows are consecutive */
        int err = sherd__cpu_too_large(a->body + a->at.values + from * sizeof(int64_t),
                                       (size_t)(stop - from), d);
        if (err) return err;
    }
    memset(sherd__cpu_use(c, c->acc, n), 0, n * sizeof *c->acc);
    while (sherd__csr_range(r, a, b->rows, CPU_PANEL, &inner.from, &inner.len)) {
        size_t area = r->n * inner.len;
        sherd__csr_dense(r, a, inner.from, inner.len, sherd__cpu_use(c, c->left, area));
        sherd__residue_from_f64(c->left, area, b->prime, c->left);
        int err = sherd__cpu_fetch(c, b, (cpu_part){ inner, cols }, c->right, &v, d);
        if (!err)
            err = sherd__residue_gemm(b->prime, r->n, inner.len, cols.len, c->left, inner.len, v.at,
                                      v.ld, sherd__cpu_use(c, c->sum, n), cols.len);
        if (err) return err;
        for (size_t i = 0; i < n; i++) c->acc[i] += c->sum[i];
        sherd__residue_from_f64(c->acc, n, b->prime, c->acc);
    }
    return SHERD_OK;
}

/* Multiplies the rows of c->csr by columns `cols` of b into out, which is rows x b->cols. */
static int csr_rows(cpu *c, const sherd__csr_block *a, const cpu_operand *b, cpu_range cols,
                    uint8_t *out, sherd_diag *d)
{
    size_t n = c->csr.n, m = (size_t)b->cols;
    bool wide = c->call->task->result.dtype == SHERD_F64;
    double *acc = wide ? NULL : sherd__cpu_use(c, c->acc, n * cols.len);
    cpu_sum to = { wide ? (double *)(void *)out + cols.from : acc, wide ? m : cols.len, false };
    cpu_range inner;
    int err = SHERD_OK;
    if (b->prime) err = csr_residues(c, a, b, cols, d);
    for (; !b->prime && !err &&
           sherd__csr_range(&c->csr, a, b->rows, CPU_PANEL, &inner.from, &inner.len);
         to.add = true)
        err = csr_panel(c, a, b, (cpu_part){ inner, cols }, &to, d);
    for (size_t i = 0; i < n && !err; i++) {
        if (!b->prime && !to.add) memset(to.at + i * to.ld, 0, cols.len * sizeof *to.at);
        if (b->prime)
            sherd__residue_pack(c->acc + i * cols.len, cols.len, b->prime,
                                out + SHERD__RESIDUE_BYTES * (i * m + cols.from));
        else if (!wide) cpu_narrow(c->acc + i * cols.len, cols.len, out + 4 * (i * m + cols.from));
    }
    return err;
}

int sherd__cpu_csr(cpu *c, uint32_t q, const sherd__fragment *left, const sherd__fragment *right,
                   uint8_t *out, sherd_diag *d)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(right);
    size_t wb = sherd__wire_size(i->dtype), wc = sherd__wire_size(c->call->task->result.dtype);
    const uint8_t *v = sherd__group_first(right);
    uint64_t row = 0, at = 0, next = 0;
    size_t first = 0; /* numbers of the right block before the group */
    sherd__csr_block a;
    if (i->primes) v += q * i->rows * i->cols * wb;
    sherd__csr_open(&a, left);
    for (uint32_t g = 0; g < sherd__groups_of(sherd__fragment_info_of(left)); g++) {
        sherd__group ga = sherd__group_at(left, g, NULL), gb = sherd__group_at(right, g, v);
        cpu_operand b = sherd__cpu_operand(c, 1, q, right, gb, first);
        assert(ga.cols == gb.rows && "sherd__task_check_groups compared them");
        first += gb.rows * gb.cols;
        for (size_t r = 0; r < ga.rows; r += CPU_PANEL, at = next) {
            size_t n = cpu_panel(ga.rows, r).len;
            for (size_t j = 0; j < b.cols; j += CPU_PANEL) {
                next = sherd__csr_begin(&c->csr, &a, row, n, at);
                cpu_range cols = cpu_panel(b.cols, j);
                int err = csr_rows(c, &a, &b, cols, out, d);
                if (err) return err;
            }
            row += n;
            out += n * b.cols * wc;
        }
        v += gb.rows * gb.cols * wb;
    }
    return SHERD_OK;
}
