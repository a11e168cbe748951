/* A backend for nodes that compute no products: every call fails with SHERD_EINTERNAL. */
#ifndef TESTS_SUPPORT_NO_BACKEND_H
#define TESTS_SUPPORT_NO_BACKEND_H

#include "node/backends/hosted.h"

static int never_compute(void *ctx, const sherd__call *c, const sherd__fragment *left,
                         const sherd__fragment *right, sherd_diag *d)
{
    (void)ctx, (void)c, (void)left, (void)right, (void)d;
    return SHERD_EINTERNAL;
}

static int never_submit(void *ctx, sherd__call *c, sherd_diag *d)
{
    return sherd__hosted_submit(ctx, never_compute, c, d);
}

static const sherd__device *no_devices(void *ctx, uint32_t *count)
{
    static const sherd__device device = { .name = "none", .does = SHERD__DOES_ALL, .depth = 2 };
    (void)ctx;
    *count = 1;
    return &device;
}

static const sherd__backend none = { .abi = SHERD__BACKEND_ABI,
                                     .name = "none",
                                     .devices = no_devices,
                                     .hold = sherd__hosted_hold,
                                     .drop = sherd__hosted_drop,
                                     .submit = never_submit,
                                     .cancel = sherd__hosted_cancel,
                                     .multiplier = sherd__hosted_multiplier,
                                     .compute = never_compute };

#endif
