/* What the files of the backend on processors share: its scratch and how panels get there
 * (cpu.c), products whose left block lies in CSR (cpu_csr.c) and those on tiles of bytes
 * (cpu_limbs.c). */
#ifndef NODE_BACKENDS_CPU_H
#define NODE_BACKENDS_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/team.h"
#include "node/backend.h"
#include "node/csr.h"

#define CPU_PANEL 1024u /* rows, inner and columns of a panel */
#define CPU_AREA ((size_t)CPU_PANEL * CPU_PANEL)
#define CPU_LINE 64u

typedef struct cpu {
    double *left, *right, *acc, *sum; /* CPU_AREA each: the operands' panels, and the result's */
    double *all;
    size_t used[4]; /* doubles written in each of them since the last wipe */
    sherd__device device;
    uint32_t threads;
    sherd__team *team;       /* for sherd__limbs_multiply; NULL: one thread, or it is not here */
    sherd__csr_rows csr;     /* of the left block, where it is sparse */
    const sherd__call *call; /* that is computed */
} cpu;

/* Part of a matrix as it lies in a block: an operand's group, or a residue block of one prime. */
typedef struct cpu_operand {
    const uint8_t *values;
    uint64_t rows, cols;
    uint8_t dtype;
    uint32_t prime;  /* 0: plain arithmetic */
    bool transposed; /* a left factor of which the transpose is meant */
} cpu_operand;

typedef struct cpu_range {
    size_t from, len;
} cpu_range;

static inline cpu_range cpu_panel(uint64_t total, size_t from)
{
    return (cpu_range){ from, total - from < CPU_PANEL ? (size_t)(total - from) : CPU_PANEL };
}

static inline uint64_t cpu_height(const cpu_operand *a)
{
    return a->transposed ? a->cols : a->rows;
}

static inline uint64_t cpu_depth(const cpu_operand *a)
{
    return a->transposed ? a->rows : a->cols;
}

static inline void cpu_narrow(const double *x, size_t n, uint8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        float f = (float)x[i];
        memcpy(out + i * sizeof f, &f, sizeof f);
    }
}

/** SHERD_EINTERRUPTED where the call was cancelled: asked between panels. */
int sherd__cpu_go_on(const cpu *c, sherd_diag *d);
/** An area of the scratch, of which n doubles will be written: they are wiped after the task. */
double *sherd__cpu_use(cpu *c, double *area, size_t n);
/** Likewise of n bytes, which begin on a line of 64. */
uint8_t *sherd__cpu_bytes(cpu *c, double *area, size_t n);
/** A panel of o as f64 (canonical residues where it has a prime), into `area`. SHERD_ERANGE: a
 *  residue that is none, an integer beyond 2^53. SHERD_EINTERRUPTED as sherd__cpu_go_on. */
int sherd__cpu_convert(cpu *c, const cpu_operand *o, cpu_range rows, cpu_range cols, double *area,
                       sherd_diag *d);
/** The panel where it lies, if it is f64, else converted into `area`. */
int sherd__cpu_fetch(cpu *c, const cpu_operand *o, cpu_range rows, cpu_range cols, double *area,
                     const double **at, size_t *ld, sherd_diag *d);
/** SHERD_ERANGE where one of n int64 is beyond 2^53. */
int sherd__cpu_too_large(const uint8_t *bytes, size_t n, sherd_diag *d);
/** out = a * b modulo a's prime, or on top of what it holds, packed. False where there are no tiles
 *  of bytes, a is not of residues or something is out of range: nothing was done that counts. */
bool sherd__cpu_limbs(cpu *c, const cpu_operand *a, const cpu_operand *b, uint8_t *out, bool add,
                      sherd_diag *d);
/** All groups of a left block in CSR; with primes, for prime number q of the task. */
int sherd__cpu_csr(cpu *c, const sherd__task *t, uint32_t q, const sherd__fragment *left,
                   const sherd__fragment *right, uint8_t *out, sherd_diag *d);

#endif
