/*
 * Tail probabilities of distributions as natural logarithms, accurate even if the probability is
 * far below the smallest double. The relative error of ln p is below 1e-9
 * (tests/unit/audit/test_tail.c).
 */
#ifndef AUDIT_TAIL_H
#define AUDIT_TAIL_H

#include <stdint.h>

/** Returns ln(1 - exp(a)), a <= 0. */
double sherd__tail_not(double a);

/** Return ln P(X >= x) and ln P(X <= x), X of the gamma distribution of shape a > 0 and scale 1. */
double sherd__tail_gamma_above(double a, double x);
double sherd__tail_gamma_below(double a, double x);
/** As above for chi^2 with df degrees of freedom. */
double sherd__tail_chi2_above(double df, double x);
double sherd__tail_chi2_below(double df, double x);
/** Returns ln P(X >= k), X Poisson of mean mu > 0. */
double sherd__tail_poisson(uint64_t k, double mu);
/** Returns ln P(X >= k), X the number of hits in n trials of probability p. */
double sherd__tail_binomial(uint64_t k, uint64_t n, double p);
/** Returns ln of 2 exp(-z^2/2), at most 0: a bound on P(|Z| >= z) for every sub-Gaussian Z of
 *  variance proxy 1, such as sums of uniform variables. */
double sherd__tail_subgaussian(double z);
/** Returns ln of twice the smaller of two tails, at most 0. */
double sherd__tail_both(double above, double below);
/** Computes the confidence interval at `level` of the probability of a hit, from k hits in n trials
 *  (Clopper and Pearson). */
void sherd__tail_interval(uint64_t k, uint64_t n, double level, double *low, double *high);

#endif
