/*
 * Each thread has its own operands. They are random, because multiplying zeros generates less heat.
 * Each product uses other operands than the one before: in a node, operands have just arrived or
 * were evicted from the cache by those of another node. The first product of a thread does not
 * count, because its pages are not yet mapped. Processor time is measured, so other processes on
 * this machine affect the result only as far as they slow down a running thread. BLAS must be set
 * to one thread during the measurement.
 */
#include "scheduler/plan/contention.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/pieces.h"
#include "core/signals.h"
#include "matrix/gemm.h"
#include "matrix/residue.h"
#include "matrix/residue_bytes.h"
#include "matrix/residue_limbs.h"

#define ENOUGH_S 0.05
#define SIDE_MOST 640u  /* for doubles */
#define ROWS_MOST 1024u /* for residues */
#define BYTES_MOST 4096u
#define COLS_MOST 2048u /* large enough for rows of the right operand to be pages apart */
#define MEMORY (SHERD__CONTENTION_MEMBER / 2) /* for operands: more than a core's caches hold */
#define LINE 64u

typedef struct member {
    sherd__contention *shared;
    uint8_t *memory, *first, *scratch[2];
    size_t set, sets; /* index of the next operands; number of sets of operands */
    double flops, busy_s;
    pthread_t thread;
} member;

struct sherd__contention {
    sherd__contention_work work;
    atomic_bool over;
    unsigned others;
    member members[]; /* [0]: the caller's */
};

static size_t lines(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

/* Fills with numbers from -2^20 to 2^20; with `residues`, with bytes below 64: any three of them
 * are a packed residue below every prime in use. bytes: a multiple of 8. */
static void scatter(uint8_t *out, size_t bytes, bool residues)
{
    uint64_t z = bytes;
    for (size_t i = 0; i < bytes; i += sizeof z) {
        z = z * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        double x = (double)(int64_t)(z >> 43) - 0x1p20;
        uint64_t packed = (z ^ z >> 32) & UINT64_C(0x3f3f3f3f3f3f3f3f);
        memcpy(out + i, residues ? (const void *)&packed : (const void *)&x, sizeof z);
    }
}

/* Offsets of the parts of a set of operands. */
typedef struct parts {
    size_t right, out, all;
} parts;

static parts parts_of(const sherd__contention_work *w)
{
    if (w->in == SHERD__IN_BYTES) {
        size_t next = sherd__bytes_laid(w->rows, w->inner);
        size_t last = next + sherd__bytes_laid(w->cols, w->inner);
        return (parts){ next, last, last + lines(w->rows * w->cols) };
    }
    size_t each = w->in ? SHERD__RESIDUE_BYTES : sizeof(double);
    size_t right = lines(w->rows * w->inner * each);
    size_t out = right + lines(w->inner * w->cols * each);
    return (parts){ right, out, out + lines(w->rows * w->cols * each) };
}

static bool settle(member *m)
{
    const sherd__contention_work *w = &m->shared->work;
    size_t left = 0, sorted = 0, each = parts_of(w).all;
    sherd__limbs x = { .n = w->rows, .k = w->inner, .m = w->cols };
    m->sets = MEMORY / each + 1;
    if (w->in == SHERD__IN_RESIDUES) sherd__limbs_room(&x, &left, &sorted);
    size_t all = m->sets * each;
    uint8_t *at = m->memory = sherd__alloc_large(LINE + all + lines(left) + lines(sorted));
    if (!at) return false;
    m->first = at + (LINE - (uintptr_t)at % LINE) % LINE;
    m->scratch[0] = m->first + all;
    m->scratch[1] = m->scratch[0] + lines(left);
    scatter(m->first, all, w->in != SHERD__IN_F64);
    return true;
}

static bool multiply(member *m)
{
    const sherd__contention_work *w = &m->shared->work;
    parts p = parts_of(w);
    uint8_t *set = m->first + m->set++ % m->sets * p.all;
    if (w->in == SHERD__IN_BYTES) {
        const sherd__bytes_product x = { .p = sherd__byte_primes[0],
                                         .n = w->rows,
                                         .k = w->inner,
                                         .m = w->cols,
                                         .a = set,
                                         .b = set + p.right,
                                         .out = set + p.out,
                                         .ld = w->cols };
        return sherd__bytes_multiply(&x, NULL) == SHERD_OK;
    }
    if (w->in == SHERD__IN_RESIDUES) {
        sherd__limbs x = { .p = sherd__primes_default.p[0],
                           .n = w->rows,
                           .k = w->inner,
                           .m = w->cols,
                           .a = set,
                           .b = set + p.right,
                           .out = set + p.out };
        return sherd__limbs_multiply(&x, NULL, m->scratch[0], m->scratch[1]) == SHERD_OK;
    }
    return sherd__gemm_f64(w->rows, w->inner, w->cols, (const double *)(const void *)set, w->inner,
                           (const double *)(const void *)(set + p.right), w->cols, 0,
                           (double *)(void *)(set + p.out), w->cols) == SHERD_OK;
}

/* Computes and counts one more product. */
static bool step(member *m)
{
    const sherd__contention_work *w = &m->shared->work;
    double began = sherd__clock_busy_s();
    if (!multiply(m)) return false;
    m->busy_s += sherd__clock_busy_s() - began;
    m->flops += 2 * (double)w->rows * (double)w->inner * (double)w->cols;
    return true;
}

static void *keep_on(void *arg)
{
    member *m = arg;
    bool ok = settle(m) && multiply(m);
    while (ok && !atomic_load(&m->shared->over)) ok = step(m);
    return NULL;
}

static sherd__contention_work part_of(const sherd__contention_work *w)
{
    size_t inner = w->in == SHERD__IN_BYTES ? BYTES_MOST : w->in ? SHERD__LIMBS_DEPTH : SIDE_MOST;
    size_t rows = w->in ? ROWS_MOST : SIDE_MOST, cols = w->in ? COLS_MOST : SIDE_MOST;
    return (sherd__contention_work){ sherd__least(w->rows, rows), sherd__least(w->inner, inner),
                                     sherd__least(w->cols, cols), w->in };
}

static void start_others(sherd__contention *c, unsigned others)
{
    sigset_t before;
    sherd__signals_hold(&before);
    for (unsigned i = 1; i <= others; i++) {
        c->members[i].shared = c;
        if (pthread_create(&c->members[i].thread, NULL, keep_on, &c->members[i])) break;
        c->others++;
    }
    sherd__signals_restore(&before);
}

sherd__contention *sherd__contention_begin(unsigned others, const sherd__contention_work *w)
{
    sherd__contention *c = sherd__calloc(1, sizeof *c + (1 + (size_t)others) * sizeof(member));
    if (!c || w->rows == 0 || w->inner == 0 || w->cols == 0) return c;
    c->work = part_of(w);
    start_others(c, others);
    member *me = &c->members[0];
    me->shared = c;
    bool ok = settle(me) && multiply(me);
    for (double began = sherd__clock_s(); ok && sherd__clock_s() - began < ENOUGH_S;) ok = step(me);
    return c;
}

double sherd__contention_end(sherd__contention *c)
{
    double flops = 0, busy_s = 0;
    if (!c) return 0;
    atomic_store(&c->over, true);
    for (unsigned i = 0; i <= c->others; i++) {
        if (i > 0) pthread_join(c->members[i].thread, NULL);
        flops += c->members[i].flops;
        busy_s += c->members[i].busy_s;
        sherd__free(c->members[i].memory);
    }
    sherd__free(c);
    return busy_s > 0 ? 1e-9 * flops / busy_s : 0;
}
