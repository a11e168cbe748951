/*
 * Deadlines from measured times. A minority of nodes cannot move a median far, even if they are
 * slow on purpose. A node that is slower than the others without fault is measured by its own
 * times, up to SHERD__DELIVERY_SLOWER times the median. Answers that each arrive just in time add
 * up in excess_ms. One eighth of the time passed is subtracted from it, so that rare pauses during
 * long work do not count against a node.
 */
#include "scheduler/cluster/deadline.h"

#include <math.h>

#include "core/median.h"

#define KEPT 0.9 /* weight of the old value in a moving average */
#define FORGIVEN 0.125

void sherd__delivery_peers_of(sherd__delivery_peers *out, const sherd__delivery *first,
                              size_t stride, uint32_t len, double *room)
{
    for (int rates = 0; rates < 2; rates++) {
        size_t known = 0;
        for (uint32_t i = 0; i < len; i++) {
            const sherd__delivery *d = (const sherd__delivery *)(const void *)((const char *)first +
                                                                               i * stride);
            double x = rates ? d->rate : d->usual_ms;
            if (d->up && x > 0) room[known++] = x;
        }
        *(rates ? &out->rate : &out->usual_ms) = sherd__median(room, known, false);
    }
}

void sherd__delivery_begin(sherd__delivery *d, uint64_t moved, uint64_t now_ms)
{
    *d = (sherd__delivery){
        .up = true, .at_ms = now_ms, .moved = moved, .rate = d->rate, .excess_ms = d->excess_ms
    };
}

void sherd__delivery_end(sherd__delivery *d)
{
    *d = (sherd__delivery){ .rate = d->rate, .excess_ms = d->excess_ms };
}

void sherd__delivery_expelled(sherd__delivery *d)
{
    d->excess_ms = fmin(d->excess_ms, SHERD__DELIVERY_EXCESS_MS / 2);
}

static double least_rate(const sherd__delivery_peers *peers)
{
    double rate = peers->rate / SHERD__DELIVERY_RATE_PART;
    return fmin(fmax(rate, SHERD__DELIVERY_RATE_MIN), SHERD__DELIVERY_RATE_MAX);
}

void sherd__delivery_charge(sherd__delivery *d, const sherd__delivery_peers *peers, uint64_t moved,
                            uint64_t now_ms)
{
    double passed = (double)(now_ms - d->at_ms);
    double bytes = moved > d->moved ? (double)(moved - d->moved) : 0;
    d->at_ms = now_ms;
    if (bytes > 0) d->moved = moved;
    if (!d->owes) return;
    if (passed > SHERD__DELIVERY_STEP_MS) passed = SHERD__DELIVERY_STEP_MS;
    d->took_ms += passed;
    d->charge_ms = fmax(0, d->charge_ms + passed - bytes / least_rate(peers));
    d->excess_ms = fmax(0, d->excess_ms - FORGIVEN * passed);
    if (passed <= 0) return;
    double rate = bytes / passed, kept = d->rate > 0 ? pow(KEPT, passed / 100) : 0;
    d->rate = kept * d->rate + (1 - kept) * rate;
}

void sherd__delivery_owes(sherd__delivery *d, bool owes, uint64_t moved, uint64_t now_ms)
{
    if (d->owes == owes) return;
    d->owes = owes;
    d->at_ms = now_ms;
    d->moved = moved;
    d->charge_ms = d->took_ms = 0;
}

double sherd__delivery_usual(const sherd__delivery *d, const sherd__delivery_peers *peers)
{
    if (peers->usual_ms <= 0) return d->usual_ms;
    return fmax(peers->usual_ms, fmin(d->usual_ms, SHERD__DELIVERY_SLOWER * peers->usual_ms));
}

static double beyond(const sherd__delivery *d, const sherd__delivery_peers *peers)
{
    return fmax(0, d->charge_ms - SHERD__DELIVERY_EXCESS_TIMES * sherd__delivery_usual(d, peers));
}

void sherd__delivery_made(sherd__delivery *d, const sherd__delivery_peers *peers, uint64_t moved,
                          uint64_t now_ms)
{
    sherd__delivery_charge(d, peers, moved, now_ms);
    if (!d->owes) return;
    if (sherd__delivery_usual(d, peers) > 0) d->excess_ms += beyond(d, peers);
    /* The clock has a resolution of 1 ms: a shorter time must not count as zero. */
    double took = fmax(d->took_ms, 0.5);
    d->usual_ms = d->usual_ms > 0 ? KEPT * d->usual_ms + (1 - KEPT) * took : took;
    d->charge_ms = d->took_ms = 0;
}

double sherd__delivery_allowed(const sherd__delivery *d, const sherd__delivery_peers *peers)
{
    return SHERD__DELIVERY_FLOOR_MS + SHERD__DELIVERY_TIMES * sherd__delivery_usual(d, peers);
}

bool sherd__delivery_late(const sherd__delivery *d, const sherd__delivery_peers *peers,
                          double allowed_ms)
{
    if (!d->owes) return false;
    return d->charge_ms > allowed_ms ||
           d->excess_ms + beyond(d, peers) > fmax(SHERD__DELIVERY_EXCESS_MS, allowed_ms);
}

bool sherd__delivery_slow(const sherd__delivery *d, double allowed_ms)
{
    return d->charge_ms <= allowed_ms || d->charge_ms < 0.9 * d->took_ms;
}
