/* Declarations shared by the files of the backend on processors: its scratch memory and how panels
 * are loaded into it (cpu.c), products with a left block in CSR (cpu_csr.c), those on tiles of
 * bytes (cpu_limbs.c), those of residues of one byte (cpu_residue_bytes.c), and forms of blocks
 * that are kept (cpu_forms.c). */
#ifndef NODE_BACKENDS_CPU_H
#define NODE_BACKENDS_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/team.h"
#include "matrix/residue_limbs.h"
#include "node/backend.h"
#include "node/backends/hosted.h"
#include "node/check.h"
#include "node/csr.h"

#define CPU_PANEL 1024u /* rows, inner size and columns of a panel */
#define CPU_AREA ((size_t)CPU_PANEL * CPU_PANEL)
#define CPU_LINE 64u

/* The form of a block that is kept: a matrix of `len` bytes for each prime of the task, or one if
 * it has none. */
typedef struct cpu_form {
    const uint8_t *bytes; /* NULL: none is kept */
    size_t len;
    uint8_t dtype; /* of its numbers, in the block's order; 0: in the order of tiles of bytes */
    uint8_t *fill; /* its memory, if the current call makes it as it converts the block */
    sherd__form *making;
} cpu_form;

typedef struct cpu {
    double *left, *right, *acc, *sum; /* CPU_AREA each: panels of operands and result */
    double *all;
    size_t used[4]; /* doubles written to each of them since the last wipe */
    sherd__device device;
    uint32_t threads;
    sherd__team *team;       /* for products on tiles of bytes; NULL: not used */
    sherd__csr_rows csr;     /* of the left block, where it is in CSR */
    const sherd__call *call; /* the current call */
    cpu_form forms[2];       /* of its left and right block */
} cpu;

/* Part of a matrix in a block: an operand's group, or its residues modulo one prime. */
typedef struct cpu_operand {
    const uint8_t *values;
    uint64_t rows, cols;
    uint8_t dtype;
    uint32_t prime;        /* 0: plain arithmetic */
    bool transposed;       /* a left operand that enters the product as its transpose */
    bool converted;        /* values are a form that is kept */
    const uint8_t *sorted; /* the same, sorted for tiles of bytes; NULL: not kept */
    uint8_t *fill;         /* where panels go as they are converted; NULL: nowhere */
} cpu_operand;

typedef struct cpu_range {
    size_t from, len;
} cpu_range;

/* A panel of an operand. */
typedef struct cpu_part {
    cpu_range rows, cols;
} cpu_part;

/* A panel in float64, whose rows are ld numbers apart. */
typedef struct cpu_numbers {
    const double *at;
    size_t ld;
} cpu_numbers;

/* Where the product of two panels is written; with `add`, it is added to what is there. */
typedef struct cpu_sum {
    double *at;
    size_t ld;
    bool add;
} cpu_sum;

/** Returns a group of the current call's left (side 0) or right block (1) as an operand, for prime
 *  number q of the task, from the form that is kept of it. `first`: how many numbers of the same
 *  prime precede it in the block. */
cpu_operand sherd__cpu_operand(const cpu *c, int side, uint32_t q, const sherd__fragment *f,
                               sherd__group g, size_t first);

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

/** Returns SHERD_EINTERRUPTED where the call was cancelled. Called between panels. */
int sherd__cpu_check_cancelled(const cpu *c, sherd_diag *d);
/** Returns an area of the scratch. The caller writes n doubles, which are wiped after the task. */
double *sherd__cpu_use(cpu *c, double *area, size_t n);
/** The same for n bytes, aligned to 64. */
uint8_t *sherd__cpu_bytes(cpu *c, double *area, size_t n);
/** Converts a panel of o to float64 in `area`, to canonical residues where it has a prime. Returns
 *  SHERD_ERANGE for a residue that is not below the prime or an integer beyond 2^53, and
 *  SHERD_EINTERRUPTED as sherd__cpu_check_cancelled. */
int sherd__cpu_convert(cpu *c, const cpu_operand *o, cpu_part part, double *area, sherd_diag *d);
/** Sets *out to the panel in the block if it is float64, else converts the panel into `area`, or
 *  into the form that is being filled. */
int sherd__cpu_fetch(cpu *c, const cpu_operand *o, cpu_part part, double *area, cpu_numbers *out,
                     sherd_diag *d);
/** Returns SHERD_ERANGE where one of n int64 values is beyond 2^53. */
int sherd__cpu_too_large(const uint8_t *bytes, size_t n, sherd_diag *d);
/** Computes out = a * b modulo a's prime, or adds this to out, packed. Returns false where the
 *  processor has no tiles of bytes, the operands do not suit them, the call was cancelled, or a
 *  value is out of range. In the last two cases out is undefined, and the caller's other way
 *  reports what happened. */
bool sherd__cpu_limbs(cpu *c, const cpu_operand *a, const cpu_operand *b, uint8_t *out, bool add,
                      sherd_diag *d);
/** Sorts a right operand of residues or integers for products with x's left one into `out`. Errors
 *  as sherd__cpu_convert, and SHERD_EFRAME for a residue out of range. */
int sherd__cpu_sort_right(cpu *c, const sherd__limbs *x, const cpu_operand *b, uint8_t *out,
                          sherd_diag *d);
/** Returns whether there is room to convert integers, k x m, to packed residues. */
bool sherd__cpu_sorts_integers(size_t k, size_t m);
/** Computes out = left * right, or left^T * right, modulo prime number q of the task, of blocks of
 *  residues of one byte. Returns SHERD_EINTERRUPTED as sherd__cpu_check_cancelled. */
int sherd__cpu_residue_bytes(cpu *c, uint32_t q, const sherd__fragment *left,
                             const sherd__fragment *right, uint8_t *out, sherd_diag *d);
/** Lays out strips of the transpose of such a left block, for prime number q of the task. Returns
 *  SHERD_EINTERRUPTED likewise. */
int sherd__cpu_turn(cpu *c, uint32_t q, const sherd__fragment *left, cpu_range strips, uint8_t *out,
                    sherd_diag *d);
/** Which forms of a task's blocks save time. */
sherd__wishing sherd__cpu_wishes;
/** Test hook: blocks of all sizes have forms. */
void sherd__cpu_forms_always(bool on);
/** Sets c->forms to those of the current call, and begins those that are still to be made. Returns
 *  SHERD_EINTERRUPTED. */
int sherd__cpu_forms_begin(cpu *c, const sherd__fragment *left, const sherd__fragment *right,
                           sherd_diag *d);
/** Ends them with the call's error. Values out of range are left to the product, which reports
 *  them. */
void sherd__cpu_forms_end(cpu *c, int err);
/** Converts a right operand that no row is multiplied with, if its form is being made. */
int sherd__cpu_fill(cpu *c, const cpu_operand *b, sherd_diag *d);
/** Multiplies all groups of a left block in CSR; with primes, modulo prime number q of the task. */
int sherd__cpu_csr(cpu *c, uint32_t q, const sherd__fragment *left, const sherd__fragment *right,
                   uint8_t *out, sherd_diag *d);

#endif
