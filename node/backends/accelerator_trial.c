/* See accelerator_trial.h. */
#include "node/backends/accelerator_trial.h"

#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "node/check.h"

static void free_body(void *ctx, uint8_t *bytes, uint64_t len)
{
    (void)ctx, (void)len;
    sherd__free(bytes);
}

sherd__fragment *sherd__trial_operand(uint8_t dtype, uint8_t primes, uint64_t rows, uint64_t cols,
                                      uint64_t len)
{
    const sherd__fragment_info i = { .origin = SHERD__HIDDEN,
                                     .dtype = dtype,
                                     .primes = primes,
                                     .rows = rows,
                                     .cols = cols,
                                     .len = len };
    uint8_t *body = sherd__calloc(1, len + 1);
    sherd__fragment *f = NULL;
    if (!body || sherd__fragment_take(&f, &i, body, free_body, NULL)) {
        sherd__free(body);
        return NULL;
    }
    return f;
}

uint8_t *sherd__trial_bytes(const sherd__fragment *f)
{
    return (uint8_t *)(uintptr_t)sherd__fragment_bytes(f); /* the test's own */
}

void sherd__trial_end(accelerator_trial *t)
{
    sherd__fragment_free(t->left);
    sherd__fragment_free(t->right);
    sherd__free(t->out);
    t->left = t->right = NULL;
    t->out = NULL;
}

void sherd__trial_product(accelerator_trial *t, const accelerator_shape *s)
{
    t->task = (sherd__task){ .job = 1,
                             .task = 1,
                             .attempt = 1,
                             .op = s->transposed ? SHERD__OP_MULTIPLY_T : SHERD__OP_MULTIPLY,
                             .left = 1,
                             .right = 2 };
}

int sherd__trial_result(accelerator_trial *t, uint8_t dtype, uint64_t rows, uint64_t cols,
                        sherd_diag *d)
{
    const uint64_t primes = t->task.primes_len;
    t->task.result = (sherd__fragment_info){ .origin = SHERD__RESULT,
                                             .dtype = dtype,
                                             .primes = (uint8_t)primes,
                                             .rows = rows,
                                             .cols = cols,
                                             .len = rows * cols * (primes ? primes : 1) *
                                                    sherd__wire_size(dtype) };
    t->out = sherd__alloc(t->resident ? 1 : t->task.result.len + 1);
    return t->out && t->left && (t->right || !t->task.right) ? SHERD_OK
                                                             : sherd__fail_memory(d, "a self-test");
}

static int hold(const accelerator_trial *t, accelerator_block *b, const sherd__fragment *f,
                sherd_diag *d)
{
    *b = (accelerator_block){ .from = f, .on = t->lane->on };
    if (!f) return SHERD_OK;
    b->len = sherd__fragment_info_of(f)->len;
    return sherd__accelerator_reserve(b->on, b->len, d);
}

static void drop(const accelerator_trial *t, accelerator_block *b)
{
    if (b->memory) sherd__accelerator_forget(t->lane, b->memory, b->len);
    sherd__accelerator_unreserve(b->on, b->len);
}

int sherd__trial_run(accelerator_trial *t, unsigned times, sherd_diag *d)
{
    accelerator_block left, right = { .on = t->lane->on };
    int err = hold(t, &left, t->left, d);
    if (err) return err;
    err = hold(t, &right, t->right, d);
    if (err) right.len = 0;
    if (!err && t->resident) err = sherd__accelerator_copy(t->lane, &left, d);
    if (!err && t->resident && t->right) err = sherd__accelerator_copy(t->lane, &right, d);
    for (unsigned i = 0; i < times && !err; i++) {
        sherd__call c = { .task = &t->task, .out = t->resident ? NULL : t->out };
        const double from = sherd__clock_s();
        err = sherd__accelerator_compute(t->lane, &c, &left, t->right ? &right : NULL, d);
        const double seconds = sherd__clock_s() - from;
        if (i == 0 || seconds < t->seconds) t->seconds = seconds;
    }
    drop(t, &left);
    drop(t, &right);
    return err;
}
