/* See node_devices.h. */
#include "tests/support/node_devices.h"

#include <stdlib.h>

#include "tests/support/no_backend.h"

node_devices_now node_devices;

static void *cpu; /* computes for all devices */

const sherd__backend *node_devices_open(uint32_t number, void **ctx)
{
    const sherd__backend_options quick = { .threads = 1, .quick = true };
    *ctx = NULL;
    if (!node_devices.options) return &none;
    if (!cpu && sherd__backend_cpu.open(&cpu, &quick, NULL)) abort();
    remote_options o = *node_devices.options;
    o.seed = o.seed * 100 + number;
    o.cpu = cpu;
    if (number >= node_devices.dying) o.dies_at = 0;
    if (remote_open(ctx, &o)) abort();
    return &remote_backend;
}

void node_devices_close(void *ctx)
{
    if (!ctx) return;
    const remote_stats *r = remote_stats_of(ctx);
    remote_stats *all = &node_devices.stats;
    if (!remote_is_clean(ctx) || r->holds != r->drops) abort();
    all->calls += r->calls;
    all->dones += r->dones;
    all->full += r->full;
    all->failed += r->failed;
    all->lost += r->lost;
    all->waits += r->waits;
    remote_backend.close(ctx);
}

int node_devices_end(void **unused)
{
    (void)unused;
    if (cpu) sherd__backend_cpu.close(cpu);
    cpu = NULL;
    return 0;
}
