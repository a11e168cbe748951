/*
 * One side of the check of `permute` and `plain`: a secret vector s for a resident block, and V*s,
 * computed once for all cells hidden under it. These cells share a probe by counted references, and
 * the last release wipes it. After a wrong answer the current probes are released and new ones
 * drawn.
 */
#include <math.h>

#include "core/alloc.h"
#include "core/wipe.h"
#include "crypto/freivalds.h"
#include "schemes/partition/internal.h"

void sherd__partition_probe_drop(partition_probe *p)
{
    if (!p || --p->refs) return;
    if (p->s) sherd__wipe(p->s, p->width * sizeof *p->s);
    if (p->s61) sherd__wipe(p->s61, p->width * sizeof *p->s61);
    sherd__free(p->s);
    sherd__free(p->vs);
    sherd__free(p->abs_vs);
    sherd__free(p->taint);
    sherd__free(p->s61);
    sherd__free(p->vs61);
    sherd__free(p->vs127);
    sherd__free(p);
}

static partition_probe *probe_new(const partition *d, const partition_slot *s, size_t width)
{
    partition_probe *p = sherd__calloc(1, sizeof *p);
    bool wide = d->p.primes_len > 0, ok;
    if (!p) return NULL;
    p->refs = 1;
    p->width = width;
    if (d->p.exact) {
        p->s61 = sherd__calloc(width, sizeof *p->s61);
        if (wide) p->vs127 = sherd__calloc(s->ncols, sizeof *p->vs127);
        else p->vs61 = sherd__calloc(s->ncols, sizeof *p->vs61);
        ok = p->s61 && (p->vs61 || p->vs127);
    } else {
        p->s = sherd__calloc(width, sizeof *p->s);
        p->vs = sherd__calloc(s->ncols, sizeof *p->vs);
        p->abs_vs = sherd__calloc(s->ncols, sizeof *p->abs_vs);
        if (!d->p.finite) p->taint = sherd__calloc(s->ngroups, width);
        ok = p->s && p->vs && p->abs_vs && (d->p.finite || p->taint);
    }
    if (ok) return p;
    sherd__partition_probe_drop(p);
    return NULL;
}

/* Computes x*s over integers, modulo 2^127-1. */
static sherd__f127 wide_dot(const double *x, const uint64_t *s, size_t n)
{
    sherd__f127 sum = 0;
    for (size_t j = 0; j < n; j++) /* each product is below 2^114 */
        sum = sherd__f127_add(sum, sherd__f127_from((sherd__i128)(int64_t)x[j] * (int64_t)s[j]));
    return sum;
}

static partition_reader reader_of(const partition *d, uint32_t q, uint32_t tile)
{
    return (partition_reader){
        .tile = tile, .q = q, .line = d->line, .row = d->line + d->line_len, .scratch = d->colbuf
    };
}

/* Marks the columns of the group's rows of B that contain NaN or infinity: sums of a marked column
 * are not finite and say nothing about the others. */
static int taint_group(partition *d, const partition_slot *s, uint32_t q, uint32_t tile,
                       partition_probe *p)
{
    const partition_group *g = &s->groups[q];
    partition_reader read = reader_of(d, q, tile);
    const double *row;
    for (uint32_t at = g->first; at < g->first + g->len; at++) {
        int err = sherd__partition_shuffled_row(d, s, &read, at, &row);
        if (err) return err;
        for (size_t j = 0; j < p->width; j++)
            if (!isfinite(row[j])) p->taint[q * p->width + j] = 1;
    }
    return SHERD_OK;
}

static int probe_group(partition *d, const partition_slot *s, uint32_t q, uint32_t tile,
                       partition_probe *p)
{
    const partition_group *g = &s->groups[q];
    partition_reader read = reader_of(d, q, tile);
    double *masked = d->line + 2 * d->line_len;
    const double *row, *weights = p->s;
    int err = p->taint ? taint_group(d, s, q, tile, p) : SHERD_OK;
    if (p->taint) {
        for (size_t j = 0; j < p->width; j++) masked[j] = p->taint[q * p->width + j] ? 0 : p->s[j];
        weights = masked;
    }
    for (uint32_t at = g->first; at < g->first + g->len && !err; at++) {
        err = sherd__partition_shuffled_row(d, s, &read, at, &row);
        if (err) break;
        if (p->vs127) p->vs127[at] = wide_dot(row, p->s61, p->width);
        else if (p->vs61) err = sherd__f61_right(row, 1, p->width, p->width, p->s61, &p->vs61[at]);
        else sherd__fv_right_f64(row, 1, p->width, p->width, weights, &p->vs[at], &p->abs_vs[at]);
    }
    return err;
}

int sherd__partition_probe_make(partition *d, const partition_slot *s, uint32_t tile,
                                partition_probe **out)
{
    partition_probe *p = probe_new(d, s, partition_tile_width(d, tile));
    if (!p) return SHERD_ENOMEM;
    if (d->p.exact) sherd__f61_draw(&d->p.entropy, p->width, p->s61);
    else sherd__fv_weights(&d->p.entropy, p->width, p->s);
    int err = SHERD_OK;
    for (uint32_t q = 0; q < s->ngroups && !err; q++) err = probe_group(d, s, q, tile, p);
    if (err) sherd__partition_probe_drop(p);
    else *out = p;
    return err;
}
