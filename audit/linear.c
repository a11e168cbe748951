/*
 * A linear attacker: ordinary least squares from a coalition's data to each block. It is fitted on
 * even entries and judged on odd ones, so that fitting noise gains nothing. The normal equations
 * are small (features squared) and are solved by Cholesky factorisation; features are first scaled
 * to variance 1.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "audit/stats_internal.h"
#include "audit/tail.h"
#include "core/alloc.h"

enum { ENTRIES_MIN = 4 }; /* per feature */

typedef struct fit {
    const double *const *feature;
    uint32_t features;
    size_t n;
    double *mean, *scale; /* of each feature, on even entries; scale 0: a constant feature, left
                             out */
    double *factor;       /* Cholesky, lower, features x features */
    double *weight;
} fit;

static void moments(const double *x, size_t n, size_t from, double *mean, double *deviation)
{
    double sum = 0, squares = 0;
    size_t count = 0;
    for (size_t i = from; i < n; i += 2, count++) sum += x[i];
    *mean = sum / (double)count;
    for (size_t i = from; i < n; i += 2) squares += (x[i] - *mean) * (x[i] - *mean);
    *deviation = sqrt(squares / (double)count);
}

static double at(const fit *f, uint32_t j, size_t i)
{
    return (f->feature[j][i] - f->mean[j]) * f->scale[j];
}

static void factorise(fit *f)
{
    uint32_t d = f->features;
    for (uint32_t j = 0; j < d; j++) {
        double deviation;
        moments(f->feature[j], f->n, 0, &f->mean[j], &deviation);
        f->scale[j] = deviation > 0 ? 1 / deviation : 0;
    }
    for (uint32_t j = 0; j < d; j++) {
        for (uint32_t k = 0; k <= j; k++) {
            double sum = 0;
            for (size_t i = 0; i < f->n; i += 2) sum += at(f, j, i) * at(f, k, i);
            /* A ridge far below the noise, because features may be multiples of each other. */
            if (j == k) sum += 1e-6 * (double)f->n + (f->scale[j] == 0 ? 1 : 0);
            for (uint32_t h = 0; h < k; h++) sum -= f->factor[j * d + h] * f->factor[k * d + h];
            f->factor[j * d + k] = j == k ? sqrt(sum) : sum / f->factor[k * d + k];
        }
    }
}

static void solve(fit *f, const double *y, double mean)
{
    uint32_t d = f->features;
    for (uint32_t j = 0; j < d; j++) {
        double sum = 0;
        for (size_t i = 0; i < f->n; i += 2) sum += at(f, j, i) * (y[i] - mean);
        for (uint32_t h = 0; h < j; h++) sum -= f->factor[j * d + h] * f->weight[h];
        f->weight[j] = sum / f->factor[j * d + j];
    }
    for (uint32_t j = d; j-- > 0;) {
        double sum = f->weight[j];
        for (uint32_t h = j + 1; h < d; h++) sum -= f->factor[h * d + j] * f->weight[h];
        f->weight[j] = sum / f->factor[j * d + j];
    }
}

/* Computes R^2 and the correlation of guesses with the truth, on odd entries. Returns false if the
   truth is constant. */
static bool score(fit *f, const double *y, double *r2, double *correlation)
{
    double fitted, mean, deviation, errors = 0, guesses = 0, squares = 0, with = 0, count = 0;
    moments(y, f->n, 0, &fitted, &deviation);
    if (!(deviation > 0)) return false;
    moments(y, f->n, 1, &mean, &deviation);
    if (!(deviation > 0)) return false;
    solve(f, y, fitted);
    for (size_t i = 1; i < f->n; i += 2, count++) {
        double guess = 0;
        for (uint32_t j = 0; j < f->features; j++) guess += f->weight[j] * at(f, j, i);
        errors += (y[i] - fitted - guess) * (y[i] - fitted - guess);
        guesses += guess;
        squares += guess * guess;
        with += guess * (y[i] - mean);
    }
    double variance = squares / count - guesses / count * (guesses / count);
    *r2 = 1 - errors / count / (deviation * deviation);
    *correlation = variance > 0 ? with / count / (deviation * sqrt(variance)) : 0;
    return true;
}

int sherd__audit_linear(sherd__findings *l, const sherd_audit_finding *about,
                        const sherd__linear *x)
{
    const uint32_t features = x->features;
    const size_t n = x->n;
    double best = -INFINITY, ln_p = 0;
    uint32_t tried = 0;
    if (features == 0 || n / 2 < (size_t)ENTRIES_MIN * features) return SHERD_OK;
    double *room = sherd__alloc(((size_t)features * features + 3 * (size_t)features) *
                                sizeof *room);
    if (!room) return SHERD_ENOMEM;
    fit f = { x->feature,
              features,
              n,
              room,
              room + features,
              room + 3 * (size_t)features,
              room + 2 * (size_t)features };
    factorise(&f);
    for (uint32_t j = 0; j < x->blocks; j++) {
        double r2, r;
        if (!score(&f, x->block[j], &r2, &r)) continue;
        /* Guesses are sums of uniform residues, so they are sub-Gaussian, whatever the truth. */
        double p = r > 0 ? sherd__tail_subgaussian(r * sqrt((double)(n / 2))) : 0;
        tried++;
        if (r2 > best) best = r2;
        if (p < ln_p) ln_p = p;
    }
    sherd__free(room);
    if (tried == 0) return SHERD_OK;
    sherd_audit_finding found = *about;
    found.statistic = "R^2 of a linear attacker";
    found.value = best;
    found.chance = 0;
    ln_p += log((double)tried);
    found.ln_p = ln_p < 0 ? ln_p : 0;
    snprintf(found.sentence, sizeof found.sentence,
             "%s: a linear attacker explains %.4g of the variance of its best block (chance: 0)",
             found.subject, best > 0 ? best : 0);
    return sherd__findings_add(l, &found);
}
