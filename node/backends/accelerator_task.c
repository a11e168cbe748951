/*
 * One task on a device: its blocks are copied there, kernels are started for each group and each
 * prime, and the result is copied back. A long product is several launches over ranges of rows, so
 * that a call can be cancelled between them, and no launch runs into the limit that a display's
 * driver sets.
 */
#include <stdio.h>

#include "core/diag.h"
#include "matrix/residue_bytes.h"
#include "node/backends/accelerator_internal.h"
#include "node/check.h"
#include "sherd/mat.h"
#include "sherd/op.h"

/* Groups side by side of an operation on values, unless more are needed: no more than load_kernels
 * starts. */
#define FEW_GROUPS 128u
#define LAUNCH_ROWS ((uint64_t)64 * 4096) /* CUDA has at most 65,535 groups in y */

/* The kernels name kinds of values and operations by numbers of their own. */
#define SAME(kernel, host) _Static_assert((int)(kernel) == (int)(host), "one number each")
SAME(KERNEL_F64, SHERD_F64);
SAME(KERNEL_F32, SHERD_F32);
SAME(KERNEL_U8, SHERD_U8);
SAME(KERNEL_U16, SHERD_U16);
SAME(KERNEL_U32, SHERD_U32);
SAME(KERNEL_I8, SHERD_I8);
SAME(KERNEL_I16, SHERD_I16);
SAME(KERNEL_I32, SHERD_I32);
SAME(KERNEL_I64, SHERD_I64);
SAME(KERNEL_RESIDUES, SHERD__RESIDUES);

static int launch(accelerator_run *r, sherd__kernel kernel, const sherd__kernel_job *job,
                  uint64_t x, uint64_t y, sherd_diag *d)
{
    const sherd__kernel_memory memory = { r->left->memory, r->right ? r->right->memory : NULL,
                                          r->out, r->lane->bad };
    const uint32_t groups[2] = { (uint32_t)x, (uint32_t)y };
    return sherd__lane_launch(r->lane, kernel, &memory, job, groups, d);
}

void sherd__accelerator_grid(sherd__kernel_job *job, uint32_t groups[2])
{
    const uint64_t all = (job->n + SHERD__GROUP - 1) / SHERD__GROUP;
    const uint64_t most = all / FEW_GROUPS < 65535 ? FEW_GROUPS : (uint64_t)1 << 20;
    job->row = all < most ? all : most;
    groups[0] = (uint32_t)job->row;
    groups[1] = all ? (uint32_t)((all + job->row - 1) / job->row) : 0;
}

int sherd__accelerator_each(accelerator_run *r, sherd__kernel kernel, const sherd__kernel_job *job,
                            sherd_diag *d)
{
    sherd__kernel_job each = *job;
    uint32_t groups[2];
    sherd__accelerator_grid(&each, groups);
    return launch(r, kernel, &each, groups[0], groups[1], d);
}

int sherd__accelerator_pace(accelerator_run *r, double load, sherd_diag *d)
{
    int err = sherd__lane_check_cancelled(r->lane, d);
    if (!err && r->load > 0 && r->load + load > 1) {
        err = sherd__lane_finish(r->lane, d);
        r->load = 0;
    }
    r->load += load;
    return err;
}

/* Computes all rows of a product by kernels, a range at a time. */
static int multiply_rows(accelerator_run *r, sherd__kernel kernel, sherd__kernel_job *job,
                         sherd_diag *d)
{
    const uint64_t tile = KERNEL_TILE;
    const double row = 2 * (double)(job->k + 1) * (double)job->m;
    uint64_t most = row * LAUNCH_ROWS > ACCELERATOR_FLOPS ? (uint64_t)(ACCELERATOR_FLOPS / row)
                                                          : LAUNCH_ROWS;
    most = most < tile ? tile : most / tile * tile;
    for (job->row = 0; job->row < job->n; job->row += most) {
        const uint64_t rows = job->n - job->row < most ? job->n - job->row : most;
        int err = sherd__accelerator_pace(r, row * (double)rows / ACCELERATOR_FLOPS, d);
        if (!err)
            err = launch(r, kernel, job, (job->m + tile - 1) / tile, (rows + tile - 1) / tile, d);
        if (err) return err;
    }
    return SHERD_OK;
}

int sherd__accelerator_multiply(accelerator_run *r, accelerator_kind kind, sherd__kernel_job *job,
                                sherd_diag *d)
{
    static const sherd__kernel kernels[KINDS] = { SHERD__KERNEL_F64, SHERD__KERNEL_RESIDUES,
                                                  SHERD__KERNEL_BYTES };
    const accelerator_library *l = &r->lane->on->library;
    const double flops = 2 * (double)job->n * (double)job->k * (double)job->m;
    sherd_diag why = { .code = 0 };
    if (l->used && flops > 0 && flops >= l->from[kind]) {
        int err = sherd__accelerator_library_multiply(r, kind, job, &why);
        if (!err) return SHERD_OK;
        if (err != SHERD_EUNSUPPORTED && err != SHERD_ENOMEM)
            return sherd__fail(d, err, why.hint[0] ? why.hint : NULL, "%s", why.message);
        snprintf(r->lane->refused, sizeof r->lane->refused, "%.180s",
                 why.message[0] ? why.message : "the device has too little memory");
    }
    return multiply_rows(r, kernels[kind], job, d);
}

/* Sets the windows of the left operand; its rows and columns are those of the matrix of windows. */
static void set_windows(const sherd__task *t, sherd__kernel_job *job)
{
    if (!t->windows.window) return;
    const sherd__windows w = sherd__task_windows(t);
    job->height = (uint32_t)t->windows.height;
    job->width = (uint32_t)t->windows.width;
    job->channels = (uint32_t)t->windows.channels;
    job->window = (uint32_t)t->windows.window;
    job->stride = (uint32_t)t->windows.stride;
    job->padding = (uint32_t)t->windows.padding;
    job->wide = (uint32_t)w.wide;
    job->count = (uint32_t)w.count;
}

/* Multiplies all groups; with primes, modulo prime number q of the task. */
static int multiply_groups(accelerator_run *r, uint32_t q, sherd_diag *d)
{
    const sherd__task *t = r->task;
    const sherd__fragment *left = r->left->from, *right = r->right->from;
    const sherd__fragment_info *a = sherd__fragment_info_of(left);
    const sherd__fragment_info *b = sherd__fragment_info_of(right);
    const uint64_t wa = sherd__wire_size(a->dtype), wb = sherd__wire_size(b->dtype);
    const uint64_t wc = sherd__wire_size(t->result.dtype);
    const bool transposed = t->op == SHERD__OP_MULTIPLY_T;
    sherd__kernel_job job = { .left_at = 8 * (uint64_t)a->groups,
                              .right_at = 8 * (uint64_t)b->groups,
                              .out_at = q * t->result.rows * t->result.cols * wc,
                              .m = b->cols,
                              .left_type = a->dtype,
                              .right_type = b->dtype,
                              .out_type = t->result.dtype,
                              .prime = t->primes_len ? t->primes[q] : 0,
                              .transposed = transposed };
    if (a->primes) job.left_at += q * a->rows * a->cols * wa;
    if (b->primes) job.right_at += q * b->rows * b->cols * wb;
    set_windows(t, &job);
    for (uint32_t g = 0; g < sherd__groups_of(a); g++) {
        const sherd__group u = sherd__group_at(left, g, NULL), v = sherd__group_at(right, g, NULL);
        job.n = job.window ? t->result.rows : transposed ? u.cols : u.rows;
        job.k = v.rows;
        int err = sherd__accelerator_multiply(r, t->primes_len ? KIND_RESIDUES : KIND_F64, &job, d);
        if (err) return err;
        job.left_at += u.rows * u.cols * wa;
        job.right_at += v.rows * v.cols * wb;
        job.out_at += u.rows * v.cols * wc;
    }
    return SHERD_OK;
}

/* Multiplies residues of one byte, whose strips have tiles of all primes. */
static int multiply_bytes(accelerator_run *r, uint32_t q, sherd_diag *d)
{
    const sherd__task *t = r->task;
    const sherd__fragment_info *a = sherd__fragment_info_of(r->left->from);
    const sherd__fragment_info *b = sherd__fragment_info_of(r->right->from);
    const uint64_t left = sherd__bytes_laid(1, a->cols), right = sherd__bytes_laid(1, b->rows);
    sherd__kernel_job job = { .left_at = q * left,
                              .right_at = q * right,
                              .out_at = q * t->result.rows * t->result.cols,
                              .n = t->result.rows,
                              .k = b->rows,
                              .m = b->cols,
                              .left_strip = t->primes_len * left,
                              .right_strip = t->primes_len * right,
                              .prime = t->primes[q],
                              .transposed = t->op == SHERD__OP_MULTIPLY_T };
    return sherd__accelerator_multiply(r, KIND_BYTES, &job, d);
}

static int map(accelerator_run *r, sherd_diag *d)
{
    const sherd__task *t = r->task;
    const sherd__fragment_info *a = sherd__fragment_info_of(r->left->from);
    const sherd__fragment_info *b = r->right ? sherd__fragment_info_of(r->right->from) : NULL;
    const sherd__kernel_job job = { .left_at = 8 * (uint64_t)a->groups,
                                    .right_at = b ? 8 * (uint64_t)b->groups : 0,
                                    .n = a->rows * a->cols,
                                    .left_type = a->dtype,
                                    .right_type = b ? b->dtype : 0,
                                    .out_type = t->result.dtype,
                                    .op = t->op };
    return sherd__accelerator_each(r, SHERD__KERNEL_MAP, &job, d);
}

static int run(accelerator_run *r, sherd_diag *d)
{
    const sherd__task *t = r->task;
    const uint32_t primes = t->primes_len ? t->primes_len : 1;
    int err = SHERD_OK;
    if (t->op != SHERD__OP_MULTIPLY && t->op != SHERD__OP_MULTIPLY_T) return map(r, d);
    for (uint32_t q = 0; q < primes && !err; q++)
        err = t->result.dtype == SHERD__BYTES ? multiply_bytes(r, q, d) : multiply_groups(r, q, d);
    return err;
}

int sherd__accelerator_checked(accelerator_run *r, const char *why, sherd_diag *d)
{
    uint32_t bad = 0;
    int err = sherd__lane_read(r->lane, r->lane->bad, 0, (uint8_t *)&bad, sizeof bad, d);
    return !err && bad ? sherd__fail(d, SHERD_ERANGE, NULL, "%s", why) : err;
}

/* Copies the result to the caller's memory, if there is any (a measurement has none). */
static int fetch(accelerator_run *r, sherd_diag *d)
{
    int err =
        sherd__accelerator_checked(r,
                                   "a value is not below its prime, or is an integer beyond 2^53",
                                   d);
    return err || !r->result
               ? err
               : sherd__lane_read(r->lane, r->out, 0, r->result, r->task->result.len, d);
}

int sherd__accelerator_whole(accelerator_run *r, sherd_diag *d)
{
    accelerator_lane *l = r->lane;
    const uint64_t len = r->task->result.len;
    int err = sherd__accelerator_copy(l, r->left, d);
    if (!err && r->right) err = sherd__accelerator_copy(l, r->right, d);
    if (!err) err = sherd__lane_check_cancelled(r->lane, d);
    if (!err) err = sherd__accelerator_reserve(l->on, len, d);
    if (err) return err;
    err = sherd__lane_memory(l, len, &r->out, d);
    if (!err) err = sherd__lane_zero(l, l->bad, sizeof(uint32_t), d);
    if (!err) err = run(r, d);
    if (!err) err = fetch(r, d);
    else if (r->out) (void)sherd__lane_finish(l, NULL); /* before its memory is freed */
    sherd__accelerator_library_end(r);
    if (r->out) sherd__accelerator_forget(l, r->out, len);
    sherd__accelerator_unreserve(l->on, len);
    return err;
}

int sherd__accelerator_compute(accelerator_lane *l, sherd__call *c, accelerator_block *left,
                               accelerator_block *right, sherd_diag *d)
{
    const sherd__task *t = c->task;
    const sherd__fragment *u = left->from, *v = right ? right->from : NULL;
    accelerator_run r = {
        .lane = l, .call = c, .task = t, .left = left, .right = right, .result = c->out
    };
    int err = sherd__task_check(t, u, v, d);
    if (!err) err = sherd__task_check_groups(t, u, v, d);
    if (err || t->result.len == 0) return err;
    const uint32_t needs = sherd__task_needs(t, u);
    if ((l->on->what->does & needs) != needs)
        return sherd__fail(d, SHERD_EUNSUPPORTED, NULL, "the device does not compute this");
    err = c->in_parts ? sherd__accelerator_in_parts(&r, d) : sherd__accelerator_whole(&r, d);
    sherd__lane_wipe(l);
    return err;
}
