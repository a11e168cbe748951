#include "tests/unit/node/device_tasks.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "crypto/fragment_make.h"
#include "matrix/residue_bytes.h"
#include "node/check.h"
#include "sherd/mat.h"
#include "sherd/op.h"
#include "tests/support/draw.h"

#define F64 SHERD_F64
#define PACKED SHERD__RESIDUES
#define LEFT SHERD__BYTES_LEFT
#define RIGHT SHERD__BYTES_RIGHT

const task_kind task_kinds[TASK_KINDS] = {
    { "float64", SHERD__OP_MULTIPLY, F64, F64, F64, .n = 250, .k = 200, .m = 220 },
    { "rows", SHERD__OP_MULTIPLY, F64, SHERD_F32, F64, .n = 1500, .k = 60, .m = 3 },
    { "columns", SHERD__OP_MULTIPLY, SHERD_U8, F64, F64, .n = 3, .k = 60, .m = 1500 },
    { "square", SHERD__OP_MULTIPLY, F64, F64, F64, .n = 220, .k = 220, .m = 220, .same = true },
    { "transposed", SHERD__OP_MULTIPLY_T, F64, F64, F64, .n = 210, .k = 200, .m = 190 },
    { "groups", SHERD__OP_MULTIPLY, F64, F64, F64, .n = 240, .k = 210, .m = 250, .groups = 5 },
    { "residues", SHERD__OP_MULTIPLY, PACKED, PACKED, PACKED, .n = 200, .k = 180, .m = 210,
      .primes = 3 },
    { "residues, transposed", SHERD__OP_MULTIPLY_T, PACKED, PACKED, PACKED, .n = 200, .k = 180,
      .m = 210, .primes = 2 },
    { "bytes", SHERD__OP_MULTIPLY, LEFT, RIGHT, SHERD__BYTES, .n = 310, .k = 200, .m = 330,
      .primes = 3 },
    { "bytes, transposed", SHERD__OP_MULTIPLY_T, LEFT, RIGHT, SHERD__BYTES, .n = 130, .k = 200,
      .m = 1000, .primes = 3 },
    { "windows", SHERD__OP_MULTIPLY, PACKED, PACKED, PACKED, .n = 60, .k = 12 * 12 * 4, .m = 20,
      .primes = 2, .windows = { 12, 12, 4, 3, 1, 1 } },
    { "windows, transposed", SHERD__OP_MULTIPLY_T, PACKED, PACKED, PACKED, .n = 60,
      .k = 12 * 12 * 4, .m = 20, .primes = 2, .windows = { 12, 12, 4, 3, 1, 1 } },
    { "map", SHERD_OP_TANH, F64, 0, F64, .n = 250, .k = 301, .m = 301 },
    { "map of two", SHERD_OP_MINUS, F64, F64, F64, .n = 250, .k = 301, .m = 301 },
};

static void give(void *ctx, uint8_t *bytes, uint64_t len)
{
    (void)ctx, (void)len;
    free(bytes);
}

static void put_value(uint8_t *at, uint8_t dtype, uint64_t x)
{
    const double number = (double)(x % 2001) / 8 - 125;
    const float narrow = (float)number;
    const uint32_t residue = (uint32_t)(x % 4000000);
    if (dtype == SHERD_F64) memcpy(at, &number, sizeof number);
    else if (dtype == SHERD_F32) memcpy(at, &narrow, sizeof narrow);
    else if (dtype == SHERD__RESIDUES) memcpy(at, &residue, 3);
    else *at = (uint8_t)x;
}

/* Returns how many of the lines are in group q: each has more than the one before. */
static uint64_t lines_of(uint64_t lines, uint32_t groups, uint32_t q)
{
    const uint64_t all = (uint64_t)groups * (groups + 1);
    return lines * (q + 1) * (q + 2) / all - lines * q * (q + 1) / all;
}

/* Sets length and width of an operand, and its table; a left group has as many columns as the right
 * one has rows. table NULL: it is not written. */
static void lay_groups(const task_kind *k, bool right, sherd__fragment_info *i, uint8_t *table)
{
    i->cols = 0;
    i->len = 8 * (uint64_t)k->groups;
    for (uint32_t q = 0; q < k->groups; q++) {
        const uint64_t terms = lines_of(k->k, k->groups, q);
        const uint64_t rows = right ? terms : lines_of(k->n, k->groups, q);
        const uint64_t cols = right ? k->m : terms;
        i->len += rows * cols * sherd__wire_size(i->dtype);
        i->cols = cols > i->cols ? cols : i->cols;
        if (!table) continue;
        sherd__put_u32(table + 8 * (size_t)q, (uint32_t)rows);
        sherd__put_u32(table + 8 * (size_t)q + 4, (uint32_t)cols);
    }
}

static sherd__fragment *operand_new(const task_kind *k, bool right, uint64_t rows, uint64_t cols)
{
    const uint8_t dtype = right ? k->right : k->left;
    const uint64_t size = sherd__wire_size(dtype), table = 8 * (uint64_t)k->groups;
    sherd__fragment_info i = { .origin = SHERD__HIDDEN,
                               .dtype = dtype,
                               .primes = (uint8_t)k->primes,
                               .groups = k->groups,
                               .rows = rows,
                               .cols = cols,
                               .len = (k->primes ? k->primes : 1) * rows * cols * size };
    if (sherd__fragment_is_bytes(dtype))
        i.len = k->primes * sherd__bytes_laid(right ? cols : rows, right ? rows : cols);
    if (k->groups) lay_groups(k, right, &i, NULL);
    uint8_t *body = malloc(i.len);
    if (k->groups) lay_groups(k, right, &i, body);
    for (uint64_t at = table; at < i.len; at += size) put_value(body + at, dtype, draw());
    sherd__fragment *f;
    sherd_diag d = { .code = 0 };
    if (sherd__fragment_info_check(&i, &d) || sherd__fragment_table_check(&i, body, &d))
        fail_msg("%s: %s", k->name, d.message);
    assert_int_equal(sherd__fragment_take(&f, &i, body, give, NULL), SHERD_OK);
    return f;
}

void device_task_init(device_task *t, const task_kind *k)
{
    static const uint32_t residues[] = { 8388593, 8388587, 8388571 }, bytes[] = { 251, 241, 239 };
    const bool turned = k->op == SHERD__OP_MULTIPLY_T,
               product = turned || k->op == SHERD__OP_MULTIPLY;
    const bool lies = turned && !k->windows.window;
    uint64_t rows = k->n, terms = product ? k->k : k->n;
    *t = (device_task){ .kind = k,
                        .task = { .op = k->op,
                                  .left = 1,
                                  .right = k->same    ? 1
                                           : k->right ? 2
                                                      : 0,
                                  .primes_len = k->primes,
                                  .windows = k->windows } };
    memcpy(t->task.primes, k->left == LEFT ? bytes : residues, k->primes * sizeof *residues);
    t->left = operand_new(k, false, lies ? k->k : k->n, lies ? k->n : k->k);
    if (k->windows.window) {
        const sherd__windows w = sherd__task_windows(&t->task);
        rows = turned ? w.row : k->n * w.count;
        terms = turned ? k->n * w.count : w.row;
    }
    if (k->same) t->right = t->left;
    else if (k->right) t->right = operand_new(k, true, terms, k->m);
    t->task.result = (sherd__fragment_info){ .origin = SHERD__RESULT,
                                             .dtype = k->result,
                                             .primes = (uint8_t)k->primes,
                                             .rows = rows,
                                             .cols = k->m,
                                             .len = (k->primes ? k->primes : 1) * rows * k->m *
                                                    sherd__wire_size(k->result) };
    t->out = malloc(t->task.result.len);
    t->whole = malloc(t->task.result.len);
}

void device_task_fini(device_task *t)
{
    if (!t->kind->same) sherd__fragment_free(t->right);
    sherd__fragment_free(t->left);
    free(t->out);
    free(t->whole);
}
