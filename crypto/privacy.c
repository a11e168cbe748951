/*
 * The accountant of crypto/privacy.h. libm's functions have errors of a few units in the last
 * place; costs are rounded up and budgets down by far more than that.
 */
#include "crypto/privacy.h"

#include <math.h>

#define SLACK 1e-9 /* relative */

uint64_t sherd__privacy_gradient_bound(uint64_t gradient)
{
    double norm = (double)SHERD__PRIVACY_UNITS + sqrt((double)gradient) / 2;
    return (uint64_t)ceil(norm * norm * (1 + SLACK));
}

/* Returns B^2, of the gradient and three figures. */
static double bound(const sherd__privacy_round *r)
{
    return (double)sherd__privacy_gradient_bound(r->gradient) +
           3.0 * (double)(SHERD__PRIVACY_FIGURE * SHERD__PRIVACY_FIGURE);
}

uint64_t sherd__privacy_variance(const sherd__privacy_round *r)
{
    double honest = (double)(r->threshold - r->colluding);
    double least = r->noise * r->noise * bound(r) / honest * (1 + SLACK);
    return least > 1 ? (uint64_t)ceil(least) : 1;
}

/* Returns the distance of a sum of n discrete Gaussians of this variance from a discrete Gaussian:
 * theorem 1. */
static double tau_of(uint32_t n, double variance)
{
    double sum = 0;
    for (uint32_t k = 1; k < n; k++) sum += exp(-2 * M_PI * M_PI * variance * k / (k + 1.0));
    return 10 * sum;
}

double sherd__privacy_cost(const sherd__privacy_round *r)
{
    uint32_t honest = r->threshold - r->colluding;
    if (!(r->noise > 0)) return INFINITY;
    double variance = (double)sherd__privacy_variance(r);
    double scale = sqrt(bound(r) / ((double)honest * variance));
    double all = scale + sqrt((double)r->gradient + 3) * tau_of(honest, variance);
    return all * all / 2 * (1 + SLACK);
}

static double epsilon_at(double alpha, double rho, double delta)
{
    return alpha * rho + (-log(delta) + (alpha - 1) * log1p(-1 / alpha) - log(alpha)) / (alpha - 1);
}

/* As a function of log(alpha - 1) this has one minimum, which golden-section search finds. Any
 * order is valid, so that an inexact minimum errs on the safe side. */
double sherd__privacy_epsilon(double rho, double delta)
{
    const double golden = 0.6180339887498949;
    double from = log(1e-6), to = log(1e9);
    if (isinf(rho)) return INFINITY;
    if (!(rho > 0)) return 0;
    for (int i = 0; i < 100; i++) {
        double width = (to - from) * golden, a = to - width, b = from + width;
        if (epsilon_at(1 + exp(a), rho, delta) < epsilon_at(1 + exp(b), rho, delta)) to = b;
        else from = a;
    }
    double epsilon = epsilon_at(1 + exp((from + to) / 2), rho, delta);
    return epsilon > 0 ? epsilon * (1 + SLACK) : 0;
}

double sherd__privacy_rho(double epsilon, double delta)
{
    double least = 0, most = 4 * epsilon + 1;
    if (isinf(epsilon)) return INFINITY;
    for (int i = 0; i < 200; i++) {
        double middle = least + (most - least) / 2;
        if (sherd__privacy_epsilon(middle, delta) <= epsilon) least = middle;
        else most = middle;
    }
    return least;
}
