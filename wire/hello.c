/* What a coordinator plans with, from what a node declares in its WELCOME. */
#include <assert.h>
#include <math.h>

#include "wire/session.h"

/* A node of minor 1, or one that declares no device. */
static sherd__hello_rates of_one(const sherd__hello *h)
{
    return (sherd__hello_rates){ .devices = 1,
                                 .does = SHERD__DOES_FIRST |
                                         (h->byte_gops > 0 ? SHERD__DOES_BYTES : 0),
                                 .gflops = h->gflops,
                                 .residue_gflops = h->residue_gflops,
                                 .byte_gops = h->byte_gops,
                                 .copy_rate = h->copy_rate,
                                 .resident_gflops = h->resident_gflops,
                                 .resident_residue_gflops = h->resident_residue_gflops,
                                 .resident_byte_gops = h->resident_byte_gops };
}

sherd__hello_rates sherd__hello_rates_of(const sherd__hello *h)
{
    sherd__hello_rates r = of_one(h);
    double residues = 0;
    bool packed = false;
    if (h->devices_len == 0) return r;
    r.devices = h->devices_len;
    r.does = 0;
    r.gflops = r.residue_gflops = r.byte_gops = 0;
    for (uint32_t i = 0; i < h->devices_len; i++) {
        const sherd__hello_device *v = &h->devices[i];
        r.does |= v->does;
        if (v->does & SHERD__DOES_F64) r.gflops += v->gflops;
        if (v->does & SHERD__DOES_RESIDUES) {
            packed = packed || v->residue_gflops > 0;
            residues += v->residue_gflops > 0 ? v->residue_gflops : v->gflops;
        }
        if (v->does & SHERD__DOES_BYTES) r.byte_gops += v->byte_gops;
        if (v->cell > r.cell) r.cell = v->cell;
        r.depth += v->depth;
    }
    if (packed) r.residue_gflops = residues;
    assert(isfinite(r.gflops) && isfinite(residues) && isfinite(r.byte_gops) &&
           r.depth <= SHERD__DEVICES_MAX * SHERD__HELLO_DEPTH_MAX && "read within limits");
    return r;
}
