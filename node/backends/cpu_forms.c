/*
 * Forms of blocks that are kept with their handles (hosted.h), so that a block which stays is not
 * converted again for every task. Which one depends on what the task computes with:
 *
 * - Products in float64: the numbers as float64, where they are narrower.
 * - Products modulo primes: integers as packed residues.
 * - Products on tiles of bytes: residues, or integers, sorted for them.
 * - Products of residues of one byte: the transpose of a left block, where it is used transposed.
 *
 * Packed residues for dgemm have no other form: as float64 they take 8/3 of the memory, and to read
 * that takes as long as to convert them, within 5 to 10 % of a task of a hundred rows.
 *
 * A conversion costs as much as some multiplications of each number. So a form of one operand pays
 * only if the other one is narrow: B for panels of a hundred rows, A for as many columns. The call
 * that makes a form puts each panel there as it converts it for its product, which reads all of
 * them; it costs no more than the memory.
 */
#include "node/backends/cpu.h"

#include <stdatomic.h>

#include "matrix/residue.h"
#include "matrix/residue_bytes.h"
#include "node/backends/outer.h"
#include "node/check.h"
#include "sherd/mat.h"

/* sherd__form_key.kind */
enum { WIDE = 1, PACKED, SORTED_LEFT, SORTED_LEFT_T, SORTED_RIGHT, TURNED };

#define LEAST 4096u        /* numbers; smaller blocks are converted in microseconds */
#define NARROW 512u        /* rows or columns of the other operand */
#define NARROW_TILES 4096u /* the same where products are faster */

/* ---- which forms ----------------------------------------------------------------------------- */

/* Returns the numbers of a dense block, of one prime. */
static size_t numbers_of(const sherd__fragment_info *i)
{
    uint64_t bytes = i->len - 8 * (uint64_t)i->groups;
    return (size_t)(bytes / sherd__wire_size(i->dtype) / (i->primes ? i->primes : 1));
}

static uint32_t matrices_of(const sherd__task *t)
{
    return t->primes_len ? t->primes_len : 1;
}

/* Describes a product on tiles of bytes, without operands. */
static sherd__limbs limbs_of(const sherd__task *t, uint32_t q, const sherd__fragment_info *left,
                             const sherd__fragment_info *right)
{
    return (sherd__limbs){ .p = t->primes[q],
                           .transposed = t->op == SHERD__OP_MULTIPLY_T,
                           .n = t->op == SHERD__OP_MULTIPLY_T ? left->cols : left->rows,
                           .k = right->rows,
                           .m = right->cols };
}

static bool on_tiles(const sherd__task *t, const sherd__fragment_info *left,
                     const sherd__fragment_info *right)
{
    return t->primes_len && left->dtype == SHERD__RESIDUES && sherd__limbs_here() &&
           (right->dtype == SHERD__RESIDUES ||
            sherd__cpu_sorts_integers((size_t)right->rows, (size_t)right->cols));
}

static void want(sherd__form_wish *w, uint32_t kind, const sherd__task *t, size_t each)
{
    w->key.kind = kind;
    w->key.primes_len = t->primes_len;
    for (uint32_t q = 0; q < t->primes_len; q++) w->key.primes[q] = t->primes[q];
    w->len = (uint64_t)each * matrices_of(t);
}

static atomic_bool always;

void sherd__cpu_forms_always(bool on)
{
    atomic_store(&always, on);
}

/* Returns whether a form of so many numbers saves time, where the other operand has so many rows or
 * columns. */
static bool pays(size_t numbers, uint64_t other, uint64_t narrow)
{
    return atomic_load_explicit(&always, memory_order_relaxed)
               ? numbers > 0
               : numbers >= LEAST && other <= narrow;
}

/* Wishes for a converted form of a block, where the other one has so many rows or columns. */
static void want_converted(sherd__form_wish *w, const sherd__task *t, const sherd__fragment_info *i,
                           uint64_t other)
{
    const bool residues = t->primes_len > 0;
    const uint8_t needed = residues ? SHERD__RESIDUES : SHERD_F64;
    if (i->encoding != SHERD__DENSE || i->dtype == needed) return;
    size_t n = numbers_of(i);
    if (pays(n, other, NARROW))
        want(w, residues ? PACKED : WIDE, t,
             n * (residues ? SHERD__RESIDUE_BYTES : sizeof(double)));
}

/* A product that does not read all of a block's numbers once, in panels, has no converted forms:
 * with a left block in CSR, or windows, which are laid out for each task. A block whose rows are
 * taken some at a time has none on tiles. */
void sherd__cpu_wishes(const sherd__task *t, const sherd__fragment *left,
                       const sherd__fragment *right, sherd__form_wish wish[2])
{
    bool transposed = t->op == SHERD__OP_MULTIPLY_T, windows = t->windows.window != 0;
    if ((t->op != SHERD__OP_MULTIPLY && !transposed) || !right || sherd__outer_fits(t, left))
        return;
    const sherd__fragment_info *a = sherd__fragment_info_of(left);
    const sherd__fragment_info *b = sherd__fragment_info_of(right);
    uint64_t rows = t->result.rows, cols = t->result.cols;
    if (a->encoding != SHERD__DENSE || t->primes_len > SHERD__PRIMES_MAX) return;
    if (sherd__fragment_is_bytes(a->dtype)) {
        if (transposed && pays(a->rows * a->cols, cols, NARROW_TILES))
            want(&wish[0], TURNED, t, sherd__bytes_laid(a->cols, a->rows));
        return;
    }
    if (!on_tiles(t, a, b)) {
        if (windows) return;
        want_converted(&wish[0], t, a, cols);
        want_converted(&wish[1], t, b, rows);
        return;
    }
    const sherd__limbs x = limbs_of(t, 0, a, b);
    if (!windows && pays(numbers_of(a), cols, NARROW_TILES))
        want(&wish[0], transposed ? SORTED_LEFT_T : SORTED_LEFT, t, sherd__limbs_sorted_left(&x));
    if (!(windows && transposed) && pays(numbers_of(b), rows, NARROW_TILES))
        want(&wish[1], SORTED_RIGHT, t, sherd__limbs_sorted_right(&x));
}

/* ---- making them ----------------------------------------------------------------------------- */

/* Returns the block's matrix for prime number q. */
static cpu_operand matrix_of(const cpu *c, int side, uint32_t q, const sherd__fragment *f)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(f);
    sherd__group g = { .rows = i->rows, .cols = i->cols, .values = sherd__group_first(f) };
    if (i->primes) g.values += q * numbers_of(i) * SHERD__RESIDUE_BYTES;
    return sherd__cpu_operand(c, side, q, f, g, 0);
}

static int sort(cpu *c, int side, uint32_t q, const sherd__fragment *left,
                const sherd__fragment *right, uint8_t *out)
{
    sherd_diag quiet = { .code = 0 };
    const cpu_operand o = matrix_of(c, side, q, side ? right : left);
    sherd__limbs x = limbs_of(c->call->task, q, sherd__fragment_info_of(left),
                              sherd__fragment_info_of(right));
    int err = sherd__cpu_check_cancelled(c, &quiet);
    if (err) return err;
    x.a = x.b = o.values;
    x.stop = &c->call->cancelled;
    return side ? sherd__cpu_sort_right(c, &x, &o, out, &quiet)
                : sherd__limbs_sort_left(&x, c->team, out);
}

/* Makes the form of a left block of residues of one byte. */
static int turn(cpu *c, uint32_t q, const sherd__fragment *left, uint8_t *out)
{
    sherd_diag quiet = { .code = 0 };
    const size_t tile = SHERD__BYTES_TILE, cols = sherd__fragment_info_of(left)->cols;
    return sherd__cpu_turn(c, q, left, (cpu_range){ 0, (cols + tile - 1) / tile }, out, &quiet);
}

/* Makes the form of the block on one side. */
static int make_sorted(cpu *c, int side, const sherd__form_wish *what, const sherd__fragment *left,
                       const sherd__fragment *right, uint8_t *out)
{
    const uint32_t matrices = matrices_of(c->call->task);
    int err = SHERD_OK;
    for (uint32_t q = 0; q < matrices && !err; q++, out += what->len / matrices)
        err = what->key.kind == TURNED ? turn(c, q, left, out) : sort(c, side, q, left, right, out);
    return err;
}

/* Sets c->forms[side] to the form that the current call has of a block, if it has one. */
static int begin(cpu *c, int side, const sherd__fragment *left, const sherd__fragment *right,
                 sherd_diag *d)
{
    sherd__form *f = sherd__hosted_form(c->call, side);
    cpu_form *form = &c->forms[side];
    *form = (cpu_form){ .bytes = NULL };
    if (!f) return SHERD_OK;
    const sherd__form_wish *what = sherd__form_what(f);
    form->len = (size_t)(what->len / matrices_of(c->call->task));
    form->dtype = what->key.kind == WIDE     ? SHERD_F64
                  : what->key.kind == PACKED ? SHERD__RESIDUES
                                             : 0;
    uint8_t *to_make = sherd__form_begin(f);
    if (to_make && form->dtype) {
        form->fill = to_make;
        form->making = f;
    } else if (to_make) {
        int err = make_sorted(c, side, what, left, right, to_make);
        sherd__form_end(f, err);
        if (err == SHERD_EINTERRUPTED) return sherd__cpu_check_cancelled(c, d);
    }
    form->bytes = sherd__form_bytes(f);
    return SHERD_OK;
}

int sherd__cpu_forms_begin(cpu *c, const sherd__fragment *left, const sherd__fragment *right,
                           sherd_diag *d)
{
    c->forms[1] = (cpu_form){ .bytes = NULL };
    int err = begin(c, 0, left, right, d);
    return err ? err : begin(c, 1, left, right, d);
}

void sherd__cpu_forms_end(cpu *c, int err)
{
    for (int side = 0; side < 2; side++)
        if (c->forms[side].making) sherd__form_end(c->forms[side].making, err);
}

int sherd__cpu_fill(cpu *c, const cpu_operand *b, sherd_diag *d)
{
    int err = SHERD_OK;
    for (size_t r = 0; r < b->rows && b->fill && !err; r += CPU_PANEL)
        for (size_t j = 0; j < b->cols && !err; j += CPU_PANEL) {
            cpu_numbers made;
            const cpu_part part = { cpu_panel(b->rows, r), cpu_panel(b->cols, j) };
            err = sherd__cpu_fetch(c, b, part, c->right, &made, d);
        }
    return err;
}
