/*
 * A handle's id is the address of a record that counts the calls that use it. A dropped record is
 * freed with the last of them. Only the loop's thread uses records.
 */
#include "node/backends/hosted.h"

#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"

typedef struct hosted {
    const sherd__fragment *fragment;
    uint64_t owner;
    uint32_t calls;
    bool dropped;
} hosted;

static hosted *hosted_of(const sherd__handle *h)
{
    return (hosted *)(uintptr_t)h->id;
}

int sherd__hosted_hold(void *ctx, uint32_t device, const sherd__fragment *f, uint64_t owner,
                       sherd__handle *out, sherd_diag *d)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(f);
    hosted *b = sherd__alloc(sizeof *b);
    (void)ctx;
    if (!b) return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    *b = (hosted){ .fragment = f, .owner = owner };
    *out = (sherd__handle){ (uintptr_t)b, owner, device, i->dtype, i->primes, i->encoding };
    return SHERD_OK;
}

static void release(hosted *b)
{
    if (b && b->dropped && b->calls == 0) sherd__free(b);
}

void sherd__hosted_drop(void *ctx, const sherd__handle *h)
{
    hosted *b = hosted_of(h);
    (void)ctx;
    b->dropped = true;
    release(b);
}

void sherd__hosted_cancel(void *ctx, sherd__call *c)
{
    (void)ctx;
    atomic_store(&c->cancelled, true);
}

static sherd__call *call_of(sherd__executor_item *work)
{
    return (sherd__call *)(void *)((char *)work - offsetof(sherd__call, work));
}

static void run(sherd__executor_item *work)
{
    sherd__call *c = call_of(work);
    const hosted *left = c->backend[1], *right = c->backend[2];
    sherd_diag d = { .code = 0 };
    if (atomic_load(&c->cancelled)) return; /* with the error that submit has set */
    double from = c->clock ? c->clock() : 0;
    c->err = c->compute(c->backend[0], c, left->fragment, right ? right->fragment : NULL, &d);
    c->took_us = c->clock ? 1e6 * (c->clock() - from) : 0;
    if (c->err) memcpy(c->text, d.message, strnlen(d.message, sizeof c->text - 1));
}

static void finish(sherd__executor_item *work)
{
    sherd__call *c = call_of(work);
    hosted *left = c->backend[1], *right = c->backend[2];
    left->calls--;
    if (right) right->calls--;
    release(left);
    if (right != left) release(right);
    c->done(c);
}

int sherd__hosted_submit(void *ctx, sherd__compute *compute, sherd__call *c, sherd_diag *d)
{
    hosted *left = hosted_of(&c->left), *right = hosted_of(&c->right);
    if (left->owner != c->owner || (right && right->owner != c->owner))
        return sherd__fail(d, SHERD_EINVAL, NULL, "a block belongs to another session");
    c->work = (sherd__executor_item){ .run = run, .done = finish };
    c->err = SHERD_EINTERRUPTED; /* if it never runs */
    c->lost = false;
    c->took_us = 0;
    memset(c->text, 0, sizeof c->text);
    atomic_init(&c->cancelled, false);
    c->compute = compute;
    c->backend[0] = ctx;
    c->backend[1] = left;
    c->backend[2] = right;
    int err = sherd__executor_submit(c->executor, &c->work);
    if (err) return sherd__fail(d, err, NULL, "too many calls under way");
    left->calls++;
    if (right) right->calls++;
    return SHERD_OK;
}

int sherd__hosted_multiplier(void *ctx, unsigned bits, sherd_multiplier *out, sherd_diag *d)
{
    (void)ctx;
    return sherd_multiplier_local(out, bits, d);
}
