/*
 * The embedded data set: synthetic handwritten digits of 28 x 28 pixels, drawn from strokes under
 * random jitter. They have the shape of MNIST (about 80 % of the pixels are zero), so that
 * examples, tests and benchmarks need no download. Only integer arithmetic is used, so the bits are
 * the same on every machine.
 */
#ifndef LEARN_DIGITS_H
#define LEARN_DIGITS_H

#include <stddef.h>
#include <stdint.h>

#define SHERD__DIGIT_SIDE 28u
#define SHERD__DIGIT_PIXELS (SHERD__DIGIT_SIDE * SHERD__DIGIT_SIDE)
/** The seed of `sherd demo` and of the tests. */
#define SHERD__DIGITS_SEED UINT64_C(0x7368657264)

/**
 * Draws rows [first, first + rows) of the data set of `seed`. pixels is rows x 784, row-major, 0
 * where there is no ink. labels, unless NULL, receives `rows` digits 0..9. Row i is a pure function
 * of (seed, i), so any split into calls or threads gives the same bytes. A row takes about 3
 * microseconds.
 */
void sherd__digits_draw(uint64_t seed, uint64_t first, size_t rows, uint8_t *pixels,
                        uint8_t *labels);

#endif
