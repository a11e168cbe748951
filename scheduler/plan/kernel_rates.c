/*
 * Runs the kernels on data of about a panel's size, and takes the median of a few rounds. Each
 * round reads its input from the next part of a memory that is larger than a core's caches. If the
 * same memory were read in every round, checking an answer would appear twice as fast as with an
 * answer just received. Data that one kernel writes for the next to read stays at the same address,
 * as in a job.
 */
#include "scheduler/plan/kernel_rates.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/fresh.h"
#include "core/rand.h"
#include "crypto/byte_code.h"
#include "crypto/freivalds.h"
#include "crypto/mask.h"
#include "crypto/seeded.h"
#include "matrix/residue.h"
#include "matrix/view.h"

enum { ROWS = 128, COLS = 1024, ENTRIES = ROWS * COLS, ROUNDS = 5 };

#define WINDOW                                                                                     \
    (3u << 20)            /* part of the memory that one round reads: ENTRIES of any type,
                             contiguous or as part of longer rows */
#define APART (12u << 20) /* distance from one window to the next */
#define MEMORY ((size_t)ROUNDS * APART)

#define UNKNOWN 1e9 /* result if there is no memory to measure with */

typedef struct bench {
    double *x, *y;       /* ENTRIES each, of zeros */
    uint8_t *memory;     /* zeros too */
    uint8_t *body;       /* the window of this round */
    double *rs;          /* check vectors, two of each */
    sherd__masks *masks; /* of a separate key; they hide nothing */
} bench;

static sherd__kernel_rates measured = { UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN,
                                        UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN };
static sherd__fresh fresh = SHERD__FRESH;

/* Unpacks ROWS columns of COLS rows, as nodes process a strip of the inner dimension. */
static void unpack(bench *b)
{
    size_t bad;
    for (size_t r = 0; r < COLS; r++)
        (void)!sherd__residue_unpack(b->body + r * COLS * SHERD__RESIDUE_BYTES, ROWS,
                                     sherd__primes_default.p[0], b->x + r * ROWS, &bad);
}

static void pack(bench *b)
{
    sherd__residue_from_f64(b->x, ENTRIES, sherd__primes_default.p[0], b->x);
    sherd__residue_pack(b->x, ENTRIES, sherd__primes_default.p[0], b->body);
}

static void widen(bench *b)
{
    sherd_view v = sherd_view_c(b->body, SHERD_F32, ROWS, COLS);
    for (size_t r = 0; r < ROWS; r++) sherd__view_row_f64(v, r, 0, COLS, b->x + r * COLS);
}

/* Copies as OpenBLAS lays out the larger operand: LAID columns per row, sixteen at a time. */
static void lay(bench *b)
{
    enum { LAID = 192, TOGETHER = 16 };
    const double *from = (const double *)(const void *)b->body;
    for (size_t c = 0; c < COLS; c += LAID)
        for (size_t r = 0; r < ROWS; r++)
            for (size_t i = c; i < c + LAID && i < COLS; i += TOGETHER)
                memcpy(b->x + i * ROWS + r * TOGETHER, from + r * COLS + i,
                       TOGETHER * sizeof *from);
}

static void stream(bench *b)
{
    for (size_t r = 0; r < ROWS; r++)
        for (size_t c = 0; c < COLS; c++) b->x[r * COLS + c] = b->rs[r] * b->y[c];
    memcpy(b->body, b->x, ENTRIES * sizeof *b->x);
}

static void mask(bench *b)
{
    const sherd__mask_id id = { .role = SHERD__MASK_LEFT,
                                .p = sherd__primes_default.p[0],
                                .width = COLS };
    (void)!sherd__masks_part(b->masks, &id, (sherd__mask_part){ 0, ROWS, 0, COLS }, b->x, COLS);
}

/* Draws blocks of a left operand. */
static void expand(bench *b)
{
    const sherd__drawn block = { true, SHERD__DRAWN_LEFT_ROWS, SHERD__DRAWN_LEFT_COLS };
    const sherd__mask_id id = { .role = SHERD__MASK_LEFT, .p = sherd__byte_primes[0] };
    const size_t area = sherd__drawn_area(&block);
    for (size_t at = 0; at + area <= ENTRIES; at += area)
        (void)!sherd__masks_block(b->masks, &id, NULL, at, &block, (uint8_t *)b->x + at);
}

static void judge_residues(bench *b)
{
    const double *r[] = { b->rs, b->rs + COLS }, *s[] = { b->rs + 2 * COLS, b->rs + 3 * COLS };
    uint32_t out[SHERD__FVP_TRIALS];
    (void)!sherd__fvp_answer(b->body, ROWS, COLS, r, s, sherd__primes_default.p[0], out);
}

/* The other vectors are multiplied by a product with as few columns. */
static void judge_bytes(bench *b)
{
    const sherd__bytes_product x = { .p = sherd__byte_primes[0],
                                     .n = ROWS,
                                     .k = COLS,
                                     .m = SHERD__BYTE_CHECKS,
                                     .a = b->body,
                                     .a_ld = COLS,
                                     .b = b->memory,
                                     .out = (uint8_t *)b->x,
                                     .ld = SHERD__BYTE_CHECKS };
    b->y[0] = sherd__bytes_below(b->body, ENTRIES, sherd__byte_primes[0]) ? 0 : -0.0;
    (void)!sherd__bytes_multiply(&x, NULL);
}

static void judge_f64(bench *b)
{
    const double *body = (const double *)(const void *)b->body;
    b->y[0] = 0 * sherd__fv_answer_f64(body, ROWS, COLS, COLS, b->rs, b->rs + COLS);
}

static int by_rate(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double rate_of(void (*work)(bench *), bench *b, size_t entry)
{
    double rates[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        b->body = b->memory + (size_t)round * APART;
        double took = sherd__clock_busy_s();
        work(b);
        took = sherd__clock_busy_s() - took;
        rates[round] = took > 0 ? (double)ENTRIES * (double)entry / took : UNKNOWN;
    }
    qsort(rates, ROUNDS, sizeof *rates, by_rate);
    return rates[ROUNDS / 2];
}

_Static_assert(WINDOW >= (size_t)COLS * COLS * SHERD__RESIDUE_BYTES &&
                   WINDOW >= ENTRIES * sizeof(double),
               "a round fits into its window");

static void measure(void)
{
    bench b = { .x = sherd__calloc(ENTRIES, sizeof *b.x),
                .y = sherd__calloc(ENTRIES, sizeof *b.y),
                .memory = sherd__alloc_pages(MEMORY),
                .rs = sherd__calloc(4 * COLS, sizeof *b.rs) };
    sherd__entropy os = sherd__entropy_os();
    if (b.x && b.y && b.memory && b.rs && sherd__masks_new(&b.masks, &os) == 0) {
        memset(b.memory, 0, MEMORY); /* maps separate pages instead of one shared zero page */
        b.body = b.memory;
        for (size_t i = 0; i < 4 * COLS; i++) b.rs[i] = 1;
        measured.pack = rate_of(pack, &b, SHERD__RESIDUE_BYTES);
        measured.unpack = rate_of(unpack, &b, SHERD__RESIDUE_BYTES);
        measured.judge_residues = rate_of(judge_residues, &b, SHERD__RESIDUE_BYTES);
        measured.judge_bytes = rate_of(judge_bytes, &b, 1);
        measured.widen = rate_of(widen, &b, sizeof(float));
        measured.mask = rate_of(mask, &b, SHERD__RESIDUE_BYTES);
        measured.expand = rate_of(expand, &b, 1);
        measured.judge_f64 = rate_of(judge_f64, &b, sizeof(double));
        measured.lay = rate_of(lay, &b, sizeof(double));
        measured.stream = rate_of(stream, &b, sizeof(double));
    }
    sherd__masks_free(b.masks);
    sherd__free(b.x);
    sherd__free(b.y);
    sherd__free(b.memory);
    sherd__free(b.rs);
}

/* Those of one core of a Zen 5, rounded. */
sherd__kernel_rates sherd__kernel_rates_typical(void)
{
    return (sherd__kernel_rates){ .unpack = 2.5e9,
                                  .pack = 6e9,
                                  .widen = 20e9,
                                  .lay = 10e9,
                                  .stream = 15e9,
                                  .mask = 3e9,
                                  .expand = 1.5e9,
                                  .judge_residues = 10e9,
                                  .judge_bytes = 10e9,
                                  .judge_f64 = 20e9 };
}

sherd__kernel_rates sherd__kernel_rates_here(void)
{
    bool again = sherd__fresh_lock(&fresh);
    if (again) measure();
    sherd__kernel_rates now = measured;
    sherd__fresh_unlock(&fresh, again);
    return now;
}
