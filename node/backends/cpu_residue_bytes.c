/*
 * Products of residues of one byte, which arrive in the order in which they are multiplied. Nothing
 * is converted or compared: every byte has a defined product. A strip of a block has the tiles of
 * all primes, so the matrix of one prime is strips with gaps.
 *
 * A transposed left block is turned, into strips again: into the form that is kept of it, or a few
 * strips at a time into the scratch.
 */
#include <assert.h>

#include "matrix/residue_bytes.h"
#include "node/backends/cpu.h"

enum { ALIGN = 64 };

/* The matrix of one prime in a left block, strips of which are turned. */
typedef struct turning {
    const uint8_t *in;
    size_t rows, strip;
    size_t first; /* strip of the result */
    uint8_t *out;
    size_t laid; /* bytes of a strip of the result */
    const atomic_bool *stop;
} turning;

static void turn_one(void *ctx, size_t i, unsigned thread)
{
    const turning *t = ctx;
    (void)thread;
    if (!atomic_load_explicit(t->stop, memory_order_relaxed))
        sherd__bytes_turn(t->in, t->rows, t->strip, t->first + i, t->out + i * t->laid);
}

int sherd__cpu_turn(cpu *c, uint32_t q, const sherd__fragment *left, cpu_range strips, uint8_t *out,
                    sherd_diag *d)
{
    const sherd__fragment_info *a = sherd__fragment_info_of(left);
    const size_t laid = sherd__bytes_laid(1, a->cols);
    turning t = { .in = sherd__fragment_bytes(left) + q * laid,
                  .rows = a->rows,
                  .strip = a->primes * laid,
                  .first = strips.from,
                  .out = out,
                  .laid = sherd__bytes_laid(1, a->rows),
                  .stop = &c->call->cancelled };
    sherd__team_run(c->team, strips.len, turn_one, &t);
    return sherd__cpu_check_cancelled(c, d);
}

static int multiply(cpu *c, const sherd__bytes_product *x, sherd_diag *d)
{
    assert((uintptr_t)x->a % ALIGN == 0 && (uintptr_t)x->b % ALIGN == 0 && "bodies are aligned");
    int err = sherd__bytes_multiply(x, c->team);
    return err ? sherd__cpu_check_cancelled(c, d) : SHERD_OK;
}

/* Turns as many strips at a time as there is room for. */
static int multiply_turned(cpu *c, const sherd__bytes_product *all, uint32_t q,
                           const sherd__fragment *left, sherd_diag *d)
{
    const size_t laid = sherd__bytes_laid(1, all->k), tile = SHERD__BYTES_TILE;
    const size_t strips = (all->n + tile - 1) / tile;
    const size_t most = laid ? (CPU_AREA * sizeof(double) - CPU_LINE) / laid : strips;
    int err = SHERD_OK;
    assert((most || !strips) && "a strip fits into the scratch");
    for (cpu_range s = { 0, most }; s.from < strips && !err; s.from += most) {
        const size_t row = s.from * tile;
        if (s.len > strips - s.from) s.len = strips - s.from;
        uint8_t *turned = sherd__cpu_bytes(c, c->left, s.len * laid);
        sherd__bytes_product x = *all;
        x.a = turned;
        x.n = s.len * tile < all->n - row ? s.len * tile : all->n - row;
        x.out += row * all->ld;
        err = sherd__cpu_turn(c, q, left, s, turned, d);
        if (!err) err = multiply(c, &x, d);
    }
    return err;
}

int sherd__cpu_residue_bytes(cpu *c, uint32_t q, const sherd__fragment *left,
                             const sherd__fragment *right, uint8_t *out, sherd_diag *d)
{
    const sherd__task *t = c->call->task;
    const cpu_form *kept = &c->forms[0];
    const sherd__fragment_info *b = sherd__fragment_info_of(right);
    const size_t laid = sherd__bytes_laid(1, b->rows);
    sherd__bytes_product x = { .p = t->primes[q],
                               .n = t->result.rows,
                               .k = b->rows,
                               .m = b->cols,
                               .b = sherd__fragment_bytes(right) + q * laid,
                               .b_strip = t->primes_len * laid,
                               .out = out,
                               .ld = b->cols,
                               .stop = &c->call->cancelled };
    if (t->op == SHERD__OP_MULTIPLY) {
        x.a = sherd__fragment_bytes(left) + q * laid;
        x.a_strip = t->primes_len * laid;
    } else if (kept->bytes) {
        x.a = kept->bytes + q * kept->len;
    } else {
        return multiply_turned(c, &x, q, left, d);
    }
    return multiply(c, &x, d);
}
