/* Shared by the attacks: views are validated once, before any attack starts. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "audit/modular.h"
#include "audit/stats_internal.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "crypto/lagrange.h"

enum { SAMPLE = 1 << 18 };

size_t sherd__audit_sample(const sherd__audit_options *opt, const sherd__seen *s)
{
    size_t n = s->rows * s->cols, most = opt->sample > 0 ? opt->sample : SAMPLE;
    return n < most ? n : most;
}

uint32_t sherd__audit_rounds(const sherd__audit_options *opt)
{
    return opt->rounds > 0 ? opt->rounds : SHERD__AUDIT_ROUNDS;
}

uint32_t sherd__audit_coalitions_max(const sherd__audit_options *opt)
{
    return opt->coalitions > 0 ? opt->coalitions : SHERD__AUDIT_COALITIONS;
}

void sherd__audit_who(char out[SHERD__WHO], const sherd__audit_options *opt,
                      const uint32_t *domains, uint32_t len)
{
    size_t at = (size_t)snprintf(out, SHERD__WHO, "domain%s", len > 1 ? "s" : "");
    for (uint32_t i = 0; i < len; i++) {
        char name[SHERD__WHO];
        if (opt->domain_names) snprintf(name, sizeof name, "%s", opt->domain_names[domains[i]]);
        else snprintf(name, sizeof name, "%u", domains[i] + 1);
        if (at + strlen(name) + 8 > SHERD__WHO) {
            snprintf(out + at, SHERD__WHO - at, ", ...");
            return;
        }
        at += (size_t)snprintf(out + at, SHERD__WHO - at, "%s %s", i > 0 ? "," : "", name);
    }
}

uint32_t sherd__seen_domain(const sherd__seen *s, uint32_t share)
{
    return s->domain ? s->domain[share] : share;
}

const uint32_t *sherd__seen_residues(const sherd__seen *s, uint32_t share, uint32_t prime_index)
{
    return s->residues[(size_t)share * s->code->primes_len + prime_index];
}

bool sherd__seen_has(const sherd__seen *s, uint32_t share)
{
    for (uint32_t i = 0; i < s->code->primes_len; i++)
        if (!sherd__seen_residues(s, share, i)) return false;
    return true;
}

int sherd__seen_check(const sherd__seen *s, sherd_diag *d)
{
    size_t n;
    int err = sherd__modular_check(s->code, d);
    if (err != 0) return err;
    if (!sherd__mul(s->rows, s->cols, &n) || n == 0)
        return sherd__fail(d, SHERD_EINVAL, NULL, "%s: shares of %zu x %zu", s->name, s->rows,
                           s->cols);
    for (uint32_t i = 0; i < s->code->shares; i++) {
        for (uint32_t j = 0; j < s->code->primes_len; j++) {
            const uint32_t *x = sherd__seen_residues(s, i, j);
            for (size_t e = 0; x && e < n; e++)
                if (x[e] >= s->code->primes[j])
                    return sherd__fail(d, SHERD_EINVAL, NULL,
                                       "%s: share %u, element %zu is %u, not below %u", s->name, i,
                                       e, x[e], s->code->primes[j]);
        }
    }
    return SHERD_OK;
}

static bool same_points(const uint32_t *a, const uint32_t *b, uint32_t len)
{
    return a == b || (a && b && memcmp(a, b, len * sizeof *a) == 0);
}

bool sherd__code_same(const sherd__seen_code *a, const sherd__seen_code *b)
{
    return a->blocks == b->blocks && a->masks == b->masks && a->one_time == b->one_time &&
           a->form == b->form && a->shares == b->shares && a->primes_len == b->primes_len &&
           memcmp(a->primes, b->primes, a->primes_len * sizeof *a->primes) == 0 &&
           same_points(a->alpha, b->alpha, a->shares) &&
           same_points(a->beta, b->beta, a->blocks + a->masks);
}

sherd_audit_finding sherd__finding_of(const char *test, const char *statistic, bool control)
{
    return (sherd_audit_finding){ .test = test,
                                  .statistic = statistic,
                                  .control = control,
                                  .chance = (double)NAN,
                                  .low = (double)NAN,
                                  .high = (double)NAN,
                                  .ln_p = (double)NAN,
                                  .ln_threshold = (double)NAN };
}

bool sherd__weights_agree(const uint32_t *g, uint32_t p, const uint32_t *h, uint32_t q,
                          uint32_t len)
{
    for (uint32_t j = 0; j < len; j++)
        if (sherd__modular_centre(g[j], p) != sherd__modular_centre(h[j], q)) return false;
    return true;
}

void sherd__predicted(const double *const *blocks, const uint32_t *weight, uint32_t len, uint32_t p,
                      size_t n, uint64_t *out)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t sum = 0; /* at most 64 products below 2^46 */
        for (uint32_t j = 0; j < len; j++)
            sum += (uint64_t)weight[j] * sherd__audit_residue(blocks[j][i], p);
        out[i] = sum % p;
    }
}

void sherd__scaled(const uint32_t *x, size_t n, uint32_t scale, uint32_t p, uint64_t *out)
{
    for (size_t i = 0; i < n; i++) out[i] = (uint64_t)x[i] * scale % p;
}

void sherd__joined(const uint32_t *x, uint32_t scale, uint32_t p, const uint32_t *y,
                   uint32_t scale2, uint32_t q, size_t n, uint64_t *out)
{
    uint64_t inverse = sherd__modular_inverse(p % q, q);
    for (size_t i = 0; i < n; i++) {
        uint64_t a = (uint64_t)x[i] * scale % p, b = (uint64_t)y[i] * scale2 % q;
        out[i] = a + p * ((b + q - a % q) % q * inverse % q);
    }
}
