/*
 * Optimisers and schedules. Adam's bias corrections use running products of the betas. A resumed
 * run recomputes them step by step, so it has the bits of an uninterrupted one. Once both products
 * have reached the smallest double they no longer change, and the loop ends.
 */
#include "learn/optimiser.h"

#include <assert.h>
#include <math.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "matrix/clones.h"

#define PIECE 16384u /* parameters that a thread takes at a time */

const char *sherd__method_name(sherd__method method)
{
    switch (method) {
    case SHERD__SGD: return "sgd";
    case SHERD__MOMENTUM: return "momentum";
    case SHERD__ADAM: return "adam";
    }
    return NULL;
}

static double or_else(double x, double otherwise)
{
    return x == 0 ? otherwise : x;
}

int sherd__optimiser_init(sherd__optimiser *out, const sherd__optimiser_spec *spec, size_t count,
                          sherd_diag *d)
{
    sherd__optimiser o = { .spec = *spec, .count = count };
    *out = (sherd__optimiser){ 0 };
    if (!sherd__method_name(spec->method))
        return sherd__fail(d, SHERD_EINVAL, NULL, "%d is not an optimiser", (int)spec->method);
    o.spec.beta1 = or_else(spec->beta1, 0.9);
    o.spec.beta2 = or_else(spec->beta2, 0.999);
    o.spec.epsilon = or_else(spec->epsilon, 1e-8);
    if (spec->dtype == 0) o.spec.dtype = SHERD_F64;
    if (o.spec.dtype != SHERD_F64 && o.spec.dtype != SHERD_F32)
        return sherd__fail(d, SHERD_EINVAL, NULL, "parameters of dtype %d: expected f64 or f32",
                           (int)spec->dtype);
    if (!(o.spec.beta1 > 0 && o.spec.beta1 < 1) || !(o.spec.beta2 > 0 && o.spec.beta2 < 1) ||
        !(o.spec.epsilon > 0) || isinf(o.spec.epsilon))
        return sherd__fail(d, SHERD_EINVAL, "betas must be between 0 and 1, epsilon above 0",
                           "%s with beta1 %g, beta2 %g, epsilon %g",
                           sherd__method_name(spec->method), o.spec.beta1, o.spec.beta2,
                           o.spec.epsilon);
    size_t vectors = spec->method == SHERD__ADAM ? 2 : spec->method == SHERD__MOMENTUM ? 1 : 0;
    if (!sherd__mul(count, vectors, &o.state_len) ||
        !(o.state = sherd__calloc(o.state_len, sherd_dtype_size(o.spec.dtype))))
        return sherd__fail_memory(d, "the state of %zu parameters", count);
    o.power1 = o.power2 = 1;
    *out = o;
    return SHERD_OK;
}

void sherd__optimiser_fini(sherd__optimiser *o)
{
    sherd__free(o->state);
    *o = (sherd__optimiser){ 0 };
}

void sherd__optimiser_begin(sherd__optimiser *o)
{
    o->steps++;
    o->power1 *= o->spec.beta1;
    o->power2 *= o->spec.beta2;
}

void sherd__optimiser_resume(sherd__optimiser *o, uint64_t steps)
{
    o->power1 = o->power2 = 1;
    for (o->steps = 0; o->steps < steps; o->steps++) {
        double was1 = o->power1, was2 = o->power2;
        o->power1 *= o->spec.beta1;
        o->power2 *= o->spec.beta2;
        if (o->power1 == was1 && o->power2 == was2) break;
    }
    o->steps = steps;
}

#define REAL double
#define R_SQRT sqrt
#define R(name) name
#include "learn/optimiser.inc"
#undef REAL
#undef R_SQRT
#undef R

#define REAL float
#define R_SQRT sqrtf
#define R(name) name##32
#include "learn/optimiser.inc"

void sherd__optimiser_apply(sherd__optimiser *o, double rate, size_t from, size_t n, double *params,
                            const double *gradient)
{
    apply(o, rate, from, n, params + from, gradient + from);
}

typedef struct passing {
    sherd__optimiser *o;
    double rate;
    size_t from, n;
    void *params;
    const void *gradient;
} passing;

static void apply_piece(void *ctx, size_t i, unsigned thread)
{
    const passing *p = ctx;
    size_t at = i * PIECE, n = p->n - at < PIECE ? p->n - at : PIECE;
    (void)thread;
    if (p->o->spec.dtype == SHERD_F32)
        apply32(p->o, p->rate, p->from + at, n, (float *)p->params + at,
                (const float *)p->gradient + at);
    else
        apply(p->o, p->rate, p->from + at, n, (double *)p->params + at,
              (const double *)p->gradient + at);
}

void sherd__optimiser_apply_here(sherd__optimiser *o, double rate, size_t from, size_t n,
                                 void *params, const void *gradient, sherd__team *team)
{
    assert(from <= o->count && n <= o->count - from);
    sherd__team_run(team, (n + PIECE - 1) / PIECE, apply_piece,
                    &(passing){ o, rate, from, n, params, gradient });
}

/* ---- the rate over time ---------------------------------------------------------------------- */

static int no_schedule(const sherd__schedule *s, const char *what, sherd_diag *d)
{
    return sherd__fail(d, SHERD_EINVAL, what, "a schedule of rate %g, factor %g, period %llu",
                       s->rate, s->factor, (unsigned long long)s->period);
}

int sherd__schedule_check(const sherd__schedule *s, sherd_diag *d)
{
    if ((unsigned)s->kind > SHERD__LINEAR)
        return sherd__fail(d, SHERD_EINVAL, NULL, "%d is not a schedule", (int)s->kind);
    if (!(s->rate > 0) || isinf(s->rate)) return no_schedule(s, "the rate is above 0", d);
    if (s->kind == SHERD__CONSTANT) return SHERD_OK;
    if (s->period == 0) return no_schedule(s, "the period is at least 1 step", d);
    if (!(s->factor >= 0) || isinf(s->factor) || (s->kind == SHERD__STEPWISE && s->factor == 0))
        return no_schedule(s, "the factor is 0 or more, stepwise above 0", d);
    return SHERD_OK;
}

/* Returns x^n by squaring, in a fixed order, unlike pow. */
static double power(double x, uint64_t n)
{
    double p = 1;
    for (; n > 0; n >>= 1, x *= x)
        if (n & 1) p *= x;
    return p;
}

double sherd__schedule_rate(const sherd__schedule *s, uint64_t step)
{
    double rate = s->rate, part;
    switch (s->kind) {
    case SHERD__CONSTANT: break;
    case SHERD__STEPWISE: rate *= power(s->factor, step / s->period); break;
    case SHERD__INVERSE: rate /= 1 + s->factor * ((double)step / (double)s->period); break;
    case SHERD__LINEAR:
        part = step < s->period ? (double)step / (double)s->period : 1;
        rate *= (1 - part) + s->factor * part;
        break;
    }
    if (step < s->warmup) rate *= ((double)step + 1) / (double)s->warmup;
    return rate;
}
