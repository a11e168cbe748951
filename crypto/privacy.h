/*
 * Differential privacy of sums over examples that stay at nodes: the cost of one round, and the
 * total cost of several rounds.
 *
 * A round adds up integer vectors, one per example, of Euclidean norm at most B, and noise: each of
 * the U survivors adds discrete Gaussian noise (crypto/gaussian.h), and at least U - T of them keep
 * theirs secret. Neighbouring data differ by one example that is present or absent (add/remove
 * adjacency with a public number of places). For an example that is replaced by another one, costs
 * are four times as high.
 *
 * The cost of a round is rho of zero-concentrated differential privacy (Bun and Steinke, TCC 2016):
 * Renyi divergence of order alpha at most rho alpha, for every alpha > 1. For noise of variance s^2
 * at each of n nodes and dimension d it is
 *
 *     rho = (B / (sqrt(n) s) + sqrt(d) tau)^2 / 2,   tau = 10 sum_{k<n} exp(-2 pi^2 s^2 k / (k+1))
 *
 * (Kairouz, Liu, Steinke, ICML 2021, arXiv 2102.06387, theorem 1 and proposition 14), since a sum
 * of discrete Gaussians is not exactly a discrete Gaussian. The costs of the rounds that one
 * example takes part in add up, however later rounds depend on earlier ones. No amplification by
 * sampling is claimed: the coordinator chooses the examples of a round.
 */
#ifndef CRYPTO_PRIVACY_H
#define CRYPTO_PRIVACY_H

#include <stdint.h>

/** An example's gradient of norm C becomes integers of norm 2^18; each of its three figures (its
 *  presence, cost, hit) is at most a quarter of that. */
#define SHERD__PRIVACY_UNITS INT64_C(0x40000)
#define SHERD__PRIVACY_FIGURE (SHERD__PRIVACY_UNITS / 4)
/** Largest noise multiplier (see below). */
#define SHERD__PRIVACY_NOISE_MAX 500.0

/** Parameters of a round. */
typedef struct sherd__privacy_round {
    uint32_t threshold, colluding; /* U and T of crypto/aggregate.h */
    uint64_t gradient;             /* coordinates of the gradient, 1 or more; without figures */
    double noise;                  /* multiplier: standard deviation divided by B; 0: no noise */
} sherd__privacy_round;

/** Returns the largest squared norm of an example's gradient in integers, (2^18 + sqrt(d)/2)^2
 *  rounded up: rounding to nearest moves a vector of d numbers by at most sqrt(d)/2. */
uint64_t sherd__privacy_gradient_bound(uint64_t gradient);
/** Returns the variance of one node's noise, such that U - T nodes have (noise B)^2 together; at
 *  least 1. */
uint64_t sherd__privacy_variance(const sherd__privacy_round *r);
/** Returns rho of the round; infinite without noise. It is rounded up by more than its
 *  floating-point error. */
double sherd__privacy_cost(const sherd__privacy_round *r);

/**
 * Returns epsilon of (epsilon, delta) for a total cost rho, 0 < delta < 1: the minimum over orders
 * alpha of
 *
 *     alpha rho + (log(1/delta) + (alpha-1) log(1 - 1/alpha) - log(alpha)) / (alpha - 1)
 *
 * (Canonne, Kamath, Steinke, arXiv 2004.00010, proposition 12), never below 0; infinite for an
 * infinite rho.
 */
double sherd__privacy_epsilon(double rho, double delta);
/** Returns the largest rho with an epsilon of at most `epsilon`; infinite for an infinite
 *  epsilon. */
double sherd__privacy_rho(double epsilon, double delta);

#endif
