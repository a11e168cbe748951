/*
 * Logarithms of tail probabilities. The incomplete gamma function is computed by its series below
 * the mean and by its continued fraction (modified Lentz) above it. The density factor of both is
 * that of Loader (2000), which has no cancellation where x is near a. Binomial tails are summed
 * from the term nearest the mean outwards, so that every term is smaller than the one before.
 */
#include "audit/tail.h"

#include <float.h>
#include <math.h>

enum { TERMS = 1000000 };
static const double half_log_2pi = 0.91893853320467274178;

double sherd__tail_not(double a)
{
    if (a >= 0) return -INFINITY;
    return a > -0.5 ? log(-expm1(a)) : log1p(-exp(a));
}

/* ln a! - ((a + 1/2) ln a - a + ln(2 pi)/2), a > 0. */
static double stirling_error(double a)
{
    int sign;
    if (a < 16) return lgamma_r(a + 1, &sign) - ((a + 0.5) * log(a) - a + half_log_2pi);
    double s = 1 / (a * a);
    return (1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s * (1.0 / 1680 - s / 1188)))) / a;
}

/* x ln(x/m) + m - x, without cancellation where x is near m. */
static double deviance(double x, double m)
{
    double d = (x - m) / m;
    if (x == 0) return m;
    if (fabs(d) > 0.1) return x * log(x / m) + m - x;
    /* (1+d) ln(1+d) - d = sum (-d)^j / (j (j-1)), j >= 2 */
    double sum = 0, power = d * d;
    for (int j = 2; j < 40; j++, power *= -d) sum += power / (j * (j - 1.0));
    return m * sum;
}

/* ln of x^a e^-x / Gamma(a+1). */
static double log_density(double a, double x)
{
    return -stirling_error(a) - deviance(a, x) - half_log_2pi - 0.5 * log(a);
}

/* P(a, x) = density * sum x^j / ((a+1) ... (a+j)). */
static double series(double a, double x)
{
    double term = 1, sum = 1;
    for (int j = 1; j < TERMS && term > sum * DBL_EPSILON / 4; j++) {
        term *= x / (a + j);
        sum += term;
    }
    return log_density(a, x) + log(sum);
}

/* Q(a, x) = density * a * (1/(x+1-a-) 1(1-a)/(x+3-a-) 2(2-a)/(x+5-a-) ...). */
static double fraction(double a, double x)
{
    double b = x + 1 - a, c = 1 / DBL_MIN, d = 1 / b, h = d;
    for (int j = 1; j < TERMS; j++) {
        double n = -j * (j - a);
        b += 2;
        d = n * d + b;
        if (fabs(d) < DBL_MIN) d = DBL_MIN;
        c = b + n / c;
        if (fabs(c) < DBL_MIN) c = DBL_MIN;
        d = 1 / d;
        double step = d * c;
        h *= step;
        if (fabs(step - 1) <= DBL_EPSILON) break;
    }
    return log_density(a, x) + log(a) + log(h);
}

double sherd__tail_gamma_above(double a, double x)
{
    if (!(x > 0)) return 0;
    if (isinf(x)) return -INFINITY;
    return x < a + 1 ? sherd__tail_not(series(a, x)) : fraction(a, x);
}

double sherd__tail_gamma_below(double a, double x)
{
    if (!(x > 0)) return -INFINITY;
    if (isinf(x)) return 0;
    return x < a + 1 ? series(a, x) : sherd__tail_not(fraction(a, x));
}

double sherd__tail_chi2_above(double df, double x)
{
    return sherd__tail_gamma_above(df / 2, x / 2);
}

double sherd__tail_chi2_below(double df, double x)
{
    return sherd__tail_gamma_below(df / 2, x / 2);
}

double sherd__tail_poisson(uint64_t k, double mu)
{
    return k == 0 ? 0 : sherd__tail_gamma_below((double)k, mu);
}

/* ln of the probability of exactly k hits, 0 < p < 1. */
static double log_hits(double k, double n, double p)
{
    if (k == 0) return n * log1p(-p);
    if (k == n) return n * log(p);
    return stirling_error(n) - stirling_error(k) - stirling_error(n - k) - deviance(k, n * p) -
           deviance(n - k, n * (1 - p)) - half_log_2pi + 0.5 * log(n / (k * (n - k)));
}

/* ln P(X >= k), k above the mean. */
static double outwards(double k, double n, double p)
{
    double term = 1, sum = 1, odds = p / (1 - p);
    for (double j = k; j < n && term > sum * DBL_EPSILON / 4; j++) {
        term *= (n - j) / (j + 1) * odds;
        sum += term;
    }
    return log_hits(k, n, p) + log(sum);
}

double sherd__tail_binomial(uint64_t k, uint64_t n, double p)
{
    double h = (double)k, all = (double)n, r;
    if (k == 0 || p >= 1) return k > n ? -INFINITY : 0;
    if (k > n || p <= 0) return -INFINITY;
    if (h > all * p) r = outwards(h, all, p);
    else r = sherd__tail_not(outwards(all - h + 1, all, 1 - p));
    return r < 0 ? r : 0;
}

double sherd__tail_subgaussian(double z)
{
    double r = log(2) - z * z / 2;
    return r < 0 ? r : 0;
}

double sherd__tail_both(double above, double below)
{
    double r = log(2) + (above < below ? above : below);
    return r < 0 ? r : 0;
}

void sherd__tail_interval(uint64_t k, uint64_t n, double level, double *low, double *high)
{
    double edge = log((1 - level) / 2), from = 0, to = 1;
    for (int i = 0; i < 60 && k > 0; i++) { /* P(X >= k) increases with the probability of a hit */
        double p = (from + to) / 2;
        if (sherd__tail_binomial(k, n, p) < edge) from = p;
        else to = p;
    }
    *low = k > 0 ? from : 0;
    for (from = 0, to = 1; to - from > 1e-15 && k < n;) { /* P(X <= k) decreases */
        double p = (from + to) / 2;
        if (p == from || p == to) break;
        if (sherd__tail_binomial(n - k, n, 1 - p) < edge) to = p;
        else from = p;
    }
    *high = k < n ? to : 1;
}
