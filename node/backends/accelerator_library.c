/*
 * Products by a library of the driver's, which multiplies float64, and signed bytes into sums of 32
 * bits. Kernels convert operands that are not in that form, and sums into results
 * (kernels/convert.h):
 *
 *   float64   what is float64 is used where it lies
 *   residues  of 23 bits: centred float64, for at most 512 terms at a time; the sums are reduced
 *             modulo the prime before the next terms are added
 *   bytes     centred bytes, with all terms of a line beside each other and zeros up to a multiple
 *             of 16 lines and 64 terms, as tensor cores read them
 *
 * All of this is exact but for products in float64 that are rounded. What is converted takes memory
 * of the device's budget: a product is computed by ranges of rows for which there is room.
 */
#include <math.h>

#include "core/diag.h"
#include "node/backends/accelerator_internal.h"

#define LAUNCH_S 0.02 /* else */
#define ROWS_MIN 256u /* fewer at a time are slow */
#define ROWS_MAX ((uint64_t)KERNEL_TILE * 4096)
#define LINES_MAX ((uint64_t)KERNEL_TILE * 65535) /* CUDA has at most 65,535 groups in y */
#define SHARE 8u /* the part of the device's memory that a call may take beside its result */

/* A product of which `rows` rows and `terms` terms are computed at a time. */
typedef struct product {
    accelerator_run *run;
    accelerator_kind kind;
    const sherd__kernel_job *job;
    uint64_t rows, terms;
    double limit; /* operations of a launch */
    /* Bytes of what is converted, one after the other in the run's scratch; 0: used in place. */
    uint64_t left, right, sums;
} product;

static uint64_t up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void set_sizes(product *p)
{
    const sherd__kernel_job *j = p->job;
    uint64_t left = 8 * p->rows * p->terms, right = 8 * p->terms * j->m, sums = 8 * p->rows * j->m;
    if (p->kind == KIND_F64) {
        if (j->left_type == KERNEL_F64) left = 0;
        if (j->right_type == KERNEL_F64) right = 0;
        if (j->out_type == KERNEL_F64) sums = 0;
    } else if (p->kind == KIND_BYTES) {
        left = up(p->rows, 16) * up(j->k, 64);
        right = up(j->m, 16) * up(j->k, 64);
        sums = 4 * up(p->rows, 16) * up(j->m, 16);
    }
    p->left = up(left, 256);
    p->right = up(right, 256);
    p->sums = up(sums, 256);
}

void sherd__accelerator_library_end(accelerator_run *r)
{
    if (!r->scratch) return;
    sherd__accelerator_forget(r->lane, r->scratch, r->scratch_len);
    sherd__accelerator_unreserve(r->lane->on, r->scratch_len);
    r->scratch = NULL;
    r->scratch_len = 0;
}

static int take(accelerator_run *r, uint64_t len, sherd_diag *d)
{
    accelerator_lane *l = r->lane;
    sherd_diag mine = { .code = 0 };
    if (len <= r->scratch_len) return SHERD_OK;
    sherd__accelerator_library_end(r);
    int err = len > l->on->driver.memory / SHARE ? SHERD_ENOMEM
                                                 : sherd__accelerator_reserve(l->on, len, &mine);
    if (err) return err;
    err = sherd__lane_memory(l, len, &r->scratch, &mine);
    if (err && err != SHERD_ENOMEM) (void)sherd__fail(d, err, NULL, "%s", mine.message);
    if (err) sherd__accelerator_unreserve(l->on, len);
    else r->scratch_len = len;
    return err;
}

/* Chooses how many rows are computed at a time, and takes memory for them. */
static int set_rows(product *p, sherd_diag *d)
{
    const double row = 2 * (double)p->terms * (double)p->job->m;
    uint64_t rows = row * ROWS_MAX > p->limit ? (uint64_t)(p->limit / row) : ROWS_MAX;
    int err;
    do {
        rows = rows < ROWS_MIN ? ROWS_MIN : rows / KERNEL_TILE * KERNEL_TILE;
        p->rows = rows < p->job->n ? rows : p->job->n;
        set_sizes(p);
        err = take(p->run, p->left + p->right + p->sums, d);
        rows = p->rows / 2;
    } while (err == SHERD_ENOMEM && p->rows > ROWS_MIN);
    return err;
}

/* ---- conversions ----------------------------------------------------------------------------- */

static int launch(const product *p, sherd__kernel kernel, sherd__kernel_memory m,
                  const sherd__kernel_job *job, const uint64_t groups[2], sherd_diag *d)
{
    const uint32_t xy[2] = { (uint32_t)groups[0], (uint32_t)groups[1] };
    m.bad = p->run->lane->bad;
    return sherd__lane_launch(p->run->lane, kernel, &m, job, xy, d);
}

static int convert(const product *p, const accelerator_block *from, const sherd__kernel_job *job,
                   sherd_diag *d)
{
    const sherd__kernel_memory m = { .left = from->memory, .out = p->run->scratch };
    const uint64_t groups[2] = { (job->cols + KERNEL_TILE - 1) / KERNEL_TILE,
                                 (job->rows + KERNEL_TILE - 1) / KERNEL_TILE };
    return launch(p, SHERD__KERNEL_CONVERT, m, job, groups, d);
}

static int convert_left(const product *p, uint64_t row, uint64_t rows, uint64_t term,
                        uint64_t terms, sherd_diag *d)
{
    sherd__kernel_job j = *p->job;
    j.out_at = 0;
    j.m = j.transposed ? j.n : j.k;
    j.row = j.transposed ? term : row;
    j.rows = j.transposed ? terms : rows;
    j.col = j.transposed ? row : term;
    j.cols = j.transposed ? rows : terms;
    return convert(p, p->run->left, &j, d);
}

static int convert_right(const product *p, uint64_t term, uint64_t terms, sherd_diag *d)
{
    sherd__kernel_job j = *p->job;
    j.left_at = j.right_at;
    j.left_type = j.right_type;
    j.out_at = p->left;
    j.window = 0;
    j.row = term;
    j.rows = terms;
    j.col = 0;
    j.cols = j.m;
    return convert(p, p->run->right, &j, d);
}

/* Stores `rows` rows of sums from `row` on: as the result, or reduced in their place. */
static int store(const product *p, uint64_t row, uint64_t rows, bool in_place, sherd_diag *d)
{
    accelerator_run *r = p->run;
    const uint64_t width = p->job->out_type == KERNEL_RESIDUES ? 3 : 4;
    sherd__kernel_job j = *p->job;
    j.left_at = p->left + p->right;
    j.out_at = in_place ? j.left_at : j.out_at + width * row * j.m;
    if (in_place) j.out_type = KERNEL_F64;
    j.n = rows * j.m;
    const sherd__kernel_memory m = { .left = r->scratch, .out = in_place ? r->scratch : r->out };
    uint32_t groups[2];
    sherd__accelerator_grid(&j, groups);
    return launch(p, SHERD__KERNEL_STORE, m, &j, (const uint64_t[2]){ groups[0], groups[1] }, d);
}

/* Converts lines of bytes: of the left operand, or of the right one. */
static int centre(const product *p, bool right, uint64_t row, uint64_t lines, sherd_diag *d)
{
    accelerator_run *r = p->run;
    sherd__kernel_job j = *p->job;
    j.op = right;
    j.out_at = right ? p->left : 0;
    j.row = row;
    j.cols = up(j.k, 64);
    const sherd__kernel_memory m = { .left = r->left->memory,
                                     .right = r->right->memory,
                                     .out = r->scratch };
    return launch(p, SHERD__KERNEL_CENTRE, m, &j,
                  (const uint64_t[2]){ (lines + 15) / 16, j.cols / 64 }, d);
}

static int reduce(const product *p, uint64_t row, uint64_t rows, sherd_diag *d)
{
    sherd__kernel_job j = *p->job;
    j.left_at = p->left + p->right;
    j.row = row;
    j.rows = rows;
    j.cols = up(j.m, 16);
    const sherd__kernel_memory m = { .left = p->run->scratch, .out = p->run->out };
    return launch(p, SHERD__KERNEL_REDUCE, m, &j,
                  (const uint64_t[2]){ (j.m + KERNEL_TILE - 1) / KERNEL_TILE,
                                       (rows + KERNEL_TILE - 1) / KERNEL_TILE },
                  d);
}

/* ---- products -------------------------------------------------------------------------------- */

/* Multiplies what was converted, and what is used in place. */
static int multiply(const product *p, uint64_t row, uint64_t rows, uint64_t terms, bool add,
                    sherd_diag *d)
{
    const accelerator_run *r = p->run;
    const sherd__kernel_job *j = p->job;
    sherd__library_product x = { .kind = SHERD__LIBRARY_F64,
                                 .add = add,
                                 .left_turned = j->transposed,
                                 .n = rows,
                                 .k = terms,
                                 .m = j->m,
                                 .left = r->scratch,
                                 .right = r->scratch,
                                 .out = r->scratch,
                                 .right_at = p->left,
                                 .out_at = p->left + p->right,
                                 .left_ld = j->transposed ? rows : terms,
                                 .right_ld = j->m,
                                 .out_ld = j->m };
    if (!p->left) {
        x.left = r->left->memory;
        x.left_ld = j->transposed ? j->n : j->k;
        x.left_at = j->left_at + 8 * row * (j->transposed ? 1 : j->k);
    }
    if (!p->right) {
        x.right = r->right->memory;
        x.right_at = j->right_at;
    }
    if (!p->sums) {
        x.out = r->out;
        x.out_at = j->out_at + 8 * row * j->m;
    }
    return sherd__lane_product(r->lane, &x, d);
}

static double load_of(const product *p, uint64_t rows, uint64_t terms)
{
    return 2 * (double)rows * (double)terms * (double)p->job->m / p->limit;
}

static int multiply_f64(const product *p, sherd_diag *d)
{
    const sherd__kernel_job *j = p->job;
    int err = p->right ? convert_right(p, 0, j->k, d) : SHERD_OK;
    for (uint64_t row = 0; row < j->n && !err; row += p->rows) {
        const uint64_t rows = j->n - row < p->rows ? j->n - row : p->rows;
        err = sherd__accelerator_pace(p->run, load_of(p, rows, j->k), d);
        if (!err && p->left) err = convert_left(p, row, rows, 0, j->k, d);
        if (!err) err = multiply(p, row, rows, j->k, false, d);
        if (!err && p->sums) err = store(p, row, rows, false, d);
    }
    return err;
}

static int multiply_residues(const product *p, sherd_diag *d)
{
    const sherd__kernel_job *j = p->job;
    int err = SHERD_OK;
    for (uint64_t row = 0; row < j->n && !err; row += p->rows) {
        const uint64_t rows = j->n - row < p->rows ? j->n - row : p->rows;
        for (uint64_t term = 0; term < j->k && !err; term += p->terms) {
            const uint64_t terms = j->k - term < p->terms ? j->k - term : p->terms;
            err = sherd__accelerator_pace(p->run, load_of(p, rows, terms), d);
            if (!err) err = convert_left(p, row, rows, term, terms, d);
            if (!err) err = convert_right(p, term, terms, d);
            if (!err) err = multiply(p, row, rows, terms, term > 0, d);
            if (!err) err = store(p, row, rows, term + terms < j->k, d);
        }
    }
    return err;
}

static int multiply_bytes(const product *p, sherd_diag *d)
{
    const sherd__kernel_job *j = p->job;
    sherd__library_product x = { .kind = SHERD__LIBRARY_INT8,
                                 .right_turned = true,
                                 .k = up(j->k, 64),
                                 .m = up(j->m, 16),
                                 .left = p->run->scratch,
                                 .right = p->run->scratch,
                                 .out = p->run->scratch,
                                 .right_at = p->left,
                                 .out_at = p->left + p->right,
                                 .left_ld = up(j->k, 64),
                                 .right_ld = up(j->k, 64),
                                 .out_ld = up(j->m, 16) };
    int err = centre(p, true, 0, j->m, d);
    for (uint64_t row = 0; row < j->n && !err; row += p->rows) {
        const uint64_t rows = j->n - row < p->rows ? j->n - row : p->rows;
        x.n = up(rows, 16);
        err = sherd__accelerator_pace(p->run, load_of(p, rows, j->k), d);
        if (!err) err = centre(p, false, row, rows, d);
        if (!err) err = sherd__lane_product(p->run->lane, &x, d);
        if (!err) err = reduce(p, row, rows, d);
    }
    return err;
}

int sherd__accelerator_library_multiply(accelerator_run *r, accelerator_kind kind,
                                        const sherd__kernel_job *job, sherd_diag *d)
{
    const double rate = r->lane->on->library.rate[kind];
    product p = { .run = r,
                  .kind = kind,
                  .job = job,
                  .terms = kind == KIND_RESIDUES && job->k > KERNEL_RANGE ? KERNEL_RANGE : job->k,
                  .limit = fmax(ACCELERATOR_FLOPS, LAUNCH_S * rate) };
    if (job->n > LINES_MAX || job->k > LINES_MAX || job->m > LINES_MAX)
        return sherd__fail(d, SHERD_EUNSUPPORTED, NULL, "a matrix has too many lines");
    int err = set_rows(&p, d);
    if (err) return err;
    switch (kind) {
    case KIND_F64: return multiply_f64(&p, d);
    case KIND_RESIDUES: return multiply_residues(&p, d);
    default: return multiply_bytes(&p, d);
    }
}
