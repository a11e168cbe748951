/*
 * The discrete Gaussian: integers x with probability proportional to exp(-x^2 / (2 variance)), the
 * noise of differential privacy (crypto/privacy.h). Samples are exact, by algorithms 1 to 3 of
 * Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (arXiv 2004.00010):
 * every decision compares a uniform integer with a rational number, so that no floating-point
 * rounding can distort the tails (Mironov, CCS 2012).
 *
 * The time of one sample depends on its value. A draw therefore continues until it has used a
 * number of random digits that depends on n and variance only, so that its time does not depend on
 * the samples, except for the time of divisions.
 */
#ifndef CRYPTO_GAUSSIAN_H
#define CRYPTO_GAUSSIAN_H

#include <stddef.h>
#include <stdint.h>

#include "core/rand.h"
#include "sherd/err.h"

/** Largest variance of one sample. */
#define SHERD__GAUSSIAN_VARIANCE (UINT64_C(1) << 55)

/**
 * Draws n independent samples of mean 0 into out. They are secret; the caller wipes them. variance:
 * 1 to SHERD__GAUSSIAN_VARIANCE, the variance of the continuous Gaussian that is discretised (that
 * of the samples is at most as large). The random bytes are one ChaCha20 stream under a fresh key
 * from `e`. Values beyond 256 standard deviations do not occur (in exact arithmetic their
 * probability is below 2^-46000). Errors: SHERD_EINVAL for the variance; SHERD_ENOMEM,
 * SHERD_EINTERNAL from the cipher. out is then undefined.
 */
int sherd__gaussian_draw(int64_t *out, size_t n, uint64_t variance,
                         const sherd__entropy *e) SHERD_MUST;

#endif
