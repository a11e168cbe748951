/* A backend for nodes of which no product is asked: whatever asks is told SHERD_EINTERNAL. */
#ifndef TESTS_SUPPORT_NO_BACKEND_H
#define TESTS_SUPPORT_NO_BACKEND_H

#include "node/backend.h"

static int never_run(void *ctx, const sherd__task *t, const sherd_fragment *left,
                     const sherd_fragment *right, uint8_t *out, sherd_diag *d)
{
    (void)ctx, (void)t, (void)left, (void)right, (void)out, (void)d;
    return SHERD_EINTERNAL;
}

static const sherd__backend none = { .abi = SHERD__BACKEND_ABI, .name = "none", .run = never_run };

#endif
