/* Random numbers drawn from an entropy source, with the same bits on every machine. */
#ifndef LEARN_DRAW_H
#define LEARN_DRAW_H

#include <stddef.h>
#include <stdint.h>

#include "core/rand.h"

/** Draws two independent numbers from the standard normal distribution (polar method: Marsaglia and
 *  Bray 1964). */
void sherd__draw_normal(const sherd__entropy *e, double out[2]);
/** Draws a uniform permutation of 0..n-1 (Fisher and Yates; Durstenfeld 1964). */
void sherd__draw_shuffle(const sherd__entropy *e, uint32_t *out, uint32_t n);
/** Draws `len` numbers, each uniform below n > 0. */
void sherd__draw_below(const sherd__entropy *e, uint32_t n, uint32_t *out, size_t len);

#endif
