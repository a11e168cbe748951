/*
 * A handle's id is the address of a record that counts the calls that use it. A dropped record is
 * freed with the last of them, together with its forms. Only the loop's thread uses records and
 * lists of forms. The compute thread gets a call's forms in the call, and makes them; if several
 * calls are in progress, a form's state decides which of them makes it.
 */
#include "node/backends/hosted.h"

#include <stdatomic.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "node/check.h"

struct sherd__form {
    sherd__form_wish what;
    sherd__lender from;
    uint8_t *bytes;
    _Atomic enum { TO_MAKE, BEING_MADE, MADE, FAILED } state;
    sherd__form *next;
};

typedef struct hosted {
    const sherd__fragment *fragment;
    uint64_t owner;
    uint32_t calls;
    bool used; /* by a call, in progress or not */
    bool dropped;
    sherd__form *forms;
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
    if (!b) return sherd__fail_memory(d, "a block");
    *b = (hosted){ .fragment = f, .owner = owner };
    *out = (sherd__handle){ (uintptr_t)b, owner, device, i->dtype, i->primes, i->encoding };
    return SHERD_OK;
}

static void release(hosted *b)
{
    if (!b || !b->dropped || b->calls) return;
    for (sherd__form *f; (f = b->forms);) {
        b->forms = f->next;
        f->from.give(f->from.ctx, f->bytes, f->what.len);
        sherd__free(f);
    }
    sherd__free(b);
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

/* ---- forms ----------------------------------------------------------------------------------- */

static sherd__form *form_new(hosted *b, const sherd__form_wish *w, const sherd__lender *from)
{
    sherd__form *f = sherd__alloc(sizeof *f);
    uint8_t *bytes = f ? from->get(from->ctx, w->len) : NULL;
    if (!bytes) {
        sherd__free(f);
        return NULL;
    }
    *f = (sherd__form){ .what = *w, .from = *from, .bytes = bytes, .next = b->forms };
    b->forms = f;
    return f;
}

/* Returns the form that is wished for, if the block has it or if it is worth making. */
static sherd__form *form_for(hosted *b, const sherd__form_wish *w, const sherd__lender *from,
                             uint64_t *derived)
{
    uint32_t count = 0;
    if (!b || w->len == 0) return NULL;
    for (sherd__form *f = b->forms; f; f = f->next, count++)
        if (memcmp(&f->what.key, &w->key, sizeof w->key) == 0) return f;
    if (!b->used || count >= SHERD__FORMS_MAX) return NULL;
    sherd__form *f = form_new(b, w, from);
    if (f) *derived += w->len;
    return f;
}

sherd__form *sherd__hosted_form(const sherd__call *c, int side)
{
    return c->backend[3 + side];
}

const sherd__form_wish *sherd__form_what(const sherd__form *f)
{
    return &f->what;
}

const uint8_t *sherd__form_bytes(const sherd__form *f)
{
    return atomic_load_explicit(&f->state, memory_order_acquire) == MADE ? f->bytes : NULL;
}

uint8_t *sherd__form_begin(sherd__form *f)
{
    int expected = TO_MAKE;
    return atomic_compare_exchange_strong(&f->state, &expected, BEING_MADE) ? f->bytes : NULL;
}

void sherd__form_end(sherd__form *f, int err)
{
    int state = !err ? MADE : err == SHERD_EINTERRUPTED ? TO_MAKE : FAILED;
    atomic_store_explicit(&f->state, state, memory_order_release);
}

/* ---- calls ----------------------------------------------------------------------------------- */

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
    const sherd__fragment *other = right ? right->fragment : NULL;
    c->err = sherd__task_settle(left->fragment, other, &d);
    if (!c->err) c->err = c->compute(c->backend[0], c, left->fragment, other, &d);
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

static void get_forms(sherd__call *c, hosted *left, hosted *right, sherd__wishing *wishing)
{
    sherd__form_wish wish[2] = { { .len = 0 } };
    c->backend[3] = c->backend[4] = NULL;
    if (!wishing || !c->memory || !(left->used || (right && right->used))) return;
    wishing(c->task, left->fragment, right ? right->fragment : NULL, wish);
    c->backend[3] = form_for(left, &wish[0], c->memory, &c->derived[0]);
    c->backend[4] = form_for(right, &wish[1], c->memory, &c->derived[1]);
}

int sherd__hosted_submit_wishing(void *ctx, sherd__compute *compute, sherd__wishing *wishing,
                                 sherd__call *c, sherd_diag *d)
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
    get_forms(c, left, right, wishing);
    int err = sherd__executor_submit(c->executor, &c->work);
    if (err) return sherd__fail(d, err, NULL, "too many calls in progress");
    left->used = true;
    left->calls++;
    if (right) {
        right->used = true;
        right->calls++;
    }
    return SHERD_OK;
}

int sherd__hosted_submit(void *ctx, sherd__compute *compute, sherd__call *c, sherd_diag *d)
{
    return sherd__hosted_submit_wishing(ctx, compute, NULL, c, d);
}

int sherd__hosted_multiplier(void *ctx, unsigned bits, sherd_multiplier *out, sherd_diag *d)
{
    (void)ctx;
    return sherd_multiplier_local(out, bits, d);
}
