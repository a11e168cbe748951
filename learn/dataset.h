/*
 * Examples in memory: inputs, targets and the generators of the built-in sets. Generated sets
 * depend on a 32-byte seed alone and have the same bits on every machine.
 */
#ifndef LEARN_DATASET_H
#define LEARN_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "learn/loss.h"
#include "learn/recipe.h"
#include "sherd/mat.h"

/** Rows of inputs with their targets. The memory is borrowed unless `owned` lists it. */
typedef struct sherd__dataset {
    sherd_view x;           /* examples x inputs, any dtype and strides */
    sherd__targets targets; /* of the same examples */
    size_t classes;         /* labels are below it; 0 if the targets are values */
    size_t width;           /* numbers in one target: classes, or columns of the values */
    void *owned[3];         /* released by sherd__dataset_fini; NULL if borrowed */
} sherd__dataset;

/** Releases owned memory; safe on a zeroed struct and when called twice. */
void sherd__dataset_fini(sherd__dataset *s);
/**
 * Checks once what training relies on: as many targets as rows, finite inputs and values, labels
 * below `classes`, and the network's `inputs` and `width`. Error messages start with `name`.
 * SHERD_ESHAPE, SHERD_EFORMAT (names the label or value and its row), SHERD_ERANGE (not finite).
 */
int sherd__dataset_check(const sherd__dataset *s, const char *name, size_t inputs, size_t width,
                         sherd_diag *d) SHERD_MUST;
/** Returns rows [first, first + rows) as a borrowed view of s. */
sherd__dataset sherd__dataset_part(const sherd__dataset *s, size_t first, size_t rows);
/** How inputs are scaled: (x / divide - mean) / deviation, with a mean and a deviation for each. */
typedef struct sherd__input_scale {
    double divide;
    const double *mean, *deviation; /* NULL: x / divide alone */
} sherd__input_scale;

/**
 * Copies rows[0..len) of s with each input scaled; if rows is NULL, the first len rows. by NULL:
 * inputs are unchanged. The copy is f32 if every quotient is exact in it (bytes divided by a power
 * of two, without means), else f64; with unchanged inputs it has their own dtype. The caller frees
 * *out with sherd__dataset_fini. SHERD_ENOMEM.
 */
int sherd__dataset_copy(sherd__dataset *out, const sherd__dataset *s, const uint32_t *rows,
                        size_t len, const sherd__input_scale *by, sherd_diag *d) SHERD_MUST;
/**
 * Computes mean and standard deviation (of the whole: divided by the number of rows) of each input
 * of s after division by `divide`. A column of equal numbers gets that number and 1. Sums are made
 * in the order of rows, so the bits are the same everywhere. Error messages start with `name`.
 * SHERD_ERANGE: the sum or the range of a column is too large. SHERD_ENOMEM.
 */
int sherd__dataset_measure(const sherd__dataset *s, const char *name, double divide, double *mean,
                           double *deviation, sherd_diag *d) SHERD_MUST;

/* ---- generators: the caller owns *out. SHERD_EINVAL (a number is 0), SHERD_ENOMEM. ----------- */

/**
 * Points of `classes` interleaved arms in the plane, examples/classes of each (the first arms take
 * the remainder), as f64, class by class. The i-th of n points of class j has radius i/(n-1), from
 * 0 to 1, and angle from 4j to 4(j+1) in equal steps plus 0.2 N(0,1); x is (radius sin angle,
 * radius cos angle).
 */
int sherd__generate_spiral(sherd__dataset *out, size_t examples, size_t classes,
                           const uint8_t seed[32], sherd_diag *d) SHERD_MUST;
/** y = x^2 at `examples` points from -2 to 2 in equal steps; the targets are values, 1 wide. */
int sherd__generate_parabola(sherd__dataset *out, size_t examples, sherd_diag *d) SHERD_MUST;
/** Inputs uniform in [0, 1) and labels uniform below `classes`: a load for benchmarks. */
int sherd__generate_random(sherd__dataset *out, size_t examples, size_t inputs, size_t classes,
                           const uint8_t seed[32], sherd_diag *d) SHERD_MUST;
/** Rows [first, first + examples) of the embedded digits (learn/digits.h), bytes 0..255. */
int sherd__generate_digits(sherd__dataset *out, size_t first, size_t examples,
                           sherd_diag *d) SHERD_MUST;

#endif
