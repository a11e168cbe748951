/*
 * A node whose device has a memory of its own copies blocks to it and answers from it while it
 * computes other tasks, so the longer of the two determines its time. Copies and products of one
 * task follow each other, which scheduler/plan/cost.c adds.
 */
#include "scheduler/plan/pace.h"

#include <math.h>

#include "core/alloc.h"

uint32_t sherd__pace_devices(const sherd__nodes *n)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n->count && n->each; i++) count += n->each[i].device;
    return count;
}

static double declared(const sherd__hello_rates *r, sherd__node_arithmetic in)
{
    return in == SHERD__IN_BYTES      ? r->byte_gops
           : in == SHERD__IN_RESIDUES ? r->residue_gflops
                                      : r->gflops;
}

static double resident(const sherd__hello_rates *r, sherd__node_arithmetic in)
{
    return in == SHERD__IN_BYTES      ? r->resident_byte_gops
           : in == SHERD__IN_RESIDUES ? r->resident_residue_gflops
                                      : r->resident_gflops;
}

static sherd__pace pace_of(const sherd__nodes *n, uint32_t i, const sherd__pace_work *w)
{
    const sherd__node_speed *v = &n->each[i];
    const sherd__hello_rates *r = &v->declared;
    const double sharing = v->device && v->sharing ? v->sharing : 1;
    sherd__pace p = { .node = i, .gflops = declared(r, w->in) / sharing };
    if (!v->device && !n->remote && w->here_gflops > 0) p.gflops = w->here_gflops;
    if (!v->device || !(r->copy_rate > 0) || !(resident(r, w->in) > 0)) return p;
    p.gflops = resident(r, w->in) / sharing;
    p.copied = w->copied + w->copied_all * (r->devices - 1);
    p.copy_rate = r->copy_rate / sharing;
    return p;
}

/* Returns the time of all of the work at this node; 0: unknown. */
static double seconds_of(const sherd__pace *p, const sherd__pace_work *w)
{
    if (!(p->gflops > 0)) return 0;
    double copies = p->copy_rate > 0 ? p->copied / p->copy_rate : 0;
    return fmax(1e-9 * w->flops / p->gflops, copies);
}

static bool paces_known(const sherd__nodes *n)
{
    for (uint32_t i = 0; i < n->count && n->paces; i++)
        if (n->each[i].name && !(n->paces[i] > 0)) return false;
    return n->paces;
}

/* Sets the time of each domain, whose nodes share its work; 0: unknown. */
static void times_of(double *times, const sherd__nodes *n, const sherd__pace_work *w)
{
    const bool measured = paces_known(n);
    for (uint32_t i = 0; i < n->count; i++) {
        const sherd__pace p = pace_of(n, i, w);
        double seconds = n->each[i].name ? seconds_of(&p, w) : 0;
        if (measured && seconds > 0) seconds = 1 / n->paces[i];
        double *time = &times[n->domain[i]];
        if (seconds > 0) *time = *time > 0 ? 1 / (1 / *time + 1 / seconds) : seconds;
    }
}

/* Returns the domain that is waited for longest. Those of which nothing is known are spare.
 * Overwrites the times of others that are. */
static uint32_t slowest(double *times, uint32_t domains, uint32_t spare)
{
    uint32_t worst = 0;
    for (uint32_t d = 0; d < domains && spare > 0; d++) spare -= !(times[d] > 0);
    for (uint32_t left = spare;; left--) {
        for (uint32_t d = 0; d < domains; d++)
            if (times[d] > times[worst]) worst = d;
        if (left == 0) return worst;
        times[worst] = 0;
    }
}

#define UNEVEN 1.05 /* how many times the least time the longest is */

static bool are_uneven(const double *times, uint32_t len)
{
    double least = INFINITY, most = 0;
    for (uint32_t i = 0; i < len; i++) {
        most = fmax(most, times[i]);
        if (times[i] > 0) least = fmin(least, times[i]);
    }
    return most > UNEVEN * least;
}

int sherd__pace_find(sherd__pace *out, const sherd__nodes *n, const sherd__pace_work *w)
{
    double *times = sherd__calloc((size_t)n->domains + 1, sizeof *times), longest = 0;
    uint32_t domain = UINT32_MAX;
    bool uneven = false;
    *out = (sherd__pace){ .node = UINT32_MAX };
    if (!times) return SHERD_ENOMEM;
    if (w->coded && n->domains > 0) {
        times_of(times, n, w);
        uneven = are_uneven(times, n->domains);
        domain = slowest(times, n->domains, w->spare);
    }
    for (uint32_t i = 0; i < n->count; i++) {
        const sherd__pace p = pace_of(n, i, w);
        double seconds = n->each[i].name ? seconds_of(&p, w) : 0;
        if (seconds <= longest || (w->coded && n->domain[i] != domain)) continue;
        longest = seconds;
        *out = p;
    }
    out->uneven = uneven;
    sherd__free(times);
    return SHERD_OK;
}
