/*
 * The discrete Gaussian: integers x with probability proportional to exp(-x^2 / (2 variance)), the
 * noise of differential privacy (crypto/privacy.h). Sampled exactly, by algorithms 1 to 3 of
 * Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (arXiv 2004.00010):
 * every decision compares a uniform integer with a rational number, so no rounding of floating
 * point can distort the tails (Mironov, CCS 2012).
 *
 * How long a sample takes depends on it. A draw goes on until it has used as many random digits as
 * follow from n and variance, so that its time does not, but for how long divisions take.
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
 * out[0..n): independent samples of mean 0. Secret; the caller wipes them. variance: 1 to
 * SHERD__GAUSSIAN_VARIANCE, of the continuous Gaussian that it discretises (the samples' own is at
 * most that). Random bytes are one ChaCha20 stream under a fresh key from `e`. Values beyond 256
 * standard deviations do not occur (in exact arithmetic their probability is below 2^-46000).
 * SHERD_EINVAL: the variance; SHERD_ENOMEM, SHERD_EINTERNAL: the cipher. out is undefined then.
 */
int sherd__gaussian_draw(int64_t *out, size_t n, uint64_t variance,
                         const sherd_entropy *e) SHERD_MUST;

#endif
