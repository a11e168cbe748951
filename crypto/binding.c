/*
 * The hash of crypto/binding.h. The two halves of a number are added to two words of the key and
 * multiplied with each other: one load, one sum and one product for each instance, in vectors. The
 * sums of a block enter the polynomial 32 bits at a time. Tags are set and compared atomically,
 * since the loop thread and the compute thread read the same operand.
 */
#include "crypto/binding.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "core/alloc.h"
#include "core/wipe.h"
#include "crypto/freivalds.h"
#include "matrix/clones.h"

#define BLOCK SHERD__BINDING_BLOCK
#define HELD (UINT64_C(1) << 63) /* bit of a tag: the run is bound */
#define HALF UINT64_C(0xffffffff)

struct sherd__binding {
    uint64_t key[BLOCK + 1], point;
    _Atomic uint64_t *tags;
    size_t runs;
    double bound;
    atomic_bool broken;
};

int sherd__binding_new(sherd__binding **out, size_t runs, double bound,
                       const sherd__entropy *entropy)
{
    *out = NULL;
    sherd__binding *b = sherd__calloc(1, sizeof *b);
    if (!b) return SHERD_ENOMEM;
    entropy->fill(entropy->ctx, b->key, sizeof b->key);
    sherd__f61_draw(entropy, 1, &b->point);
    int err = sherd__binding_reset(b, runs, bound);
    if (err) sherd__binding_free(b);
    else *out = b;
    return err;
}

int sherd__binding_reset(sherd__binding *b, size_t runs, double bound)
{
    _Atomic uint64_t *tags = sherd__calloc(runs ? runs : 1, sizeof *tags);
    if (!tags) return SHERD_ENOMEM;
    sherd__free((void *)b->tags);
    b->tags = tags;
    b->runs = runs;
    b->bound = bound;
    b->broken = false;
    return SHERD_OK;
}

void sherd__binding_free(sherd__binding *b)
{
    if (!b) return;
    if (b->tags) sherd__wipe((void *)b->tags, b->runs * sizeof *b->tags);
    sherd__free((void *)b->tags);
    sherd__wipe(b, sizeof *b);
    sherd__free(b);
}

SHERD__CLONES_DQ
static void add_block(const uint64_t *restrict key, const double *restrict x, size_t n,
                      uint64_t sum[restrict 2])
{
    uint64_t s0 = 0, s1 = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t v;
        memcpy(&v, x + i, sizeof v);
        s0 += ((v + key[i]) & HALF) * (((v >> 32) + (key[i] >> 32)) & HALF);
        s1 += ((v + key[i + 1]) & HALF) * (((v >> 32) + (key[i + 1] >> 32)) & HALF);
    }
    sum[0] += s0;
    sum[1] += s1;
}

static void fold(const sherd__binding *b, sherd__binding_hash *h)
{
    for (unsigned i = 0; i < 4; i++) {
        uint64_t part = h->sum[i / 2] >> 32 * (i % 2) & HALF;
        h->tag = sherd__f61_add(sherd__f61_mul(h->tag, b->point), part);
    }
    h->sum[0] = h->sum[1] = 0;
    h->at = 0;
}

/* Counts the numbers beyond the bound; NaN counts. Its time depends on n alone. */
SHERD__CLONES_DQ
static uint64_t beyond(const double *restrict x, size_t n, double bound)
{
    uint64_t count = 0;
    for (size_t i = 0; i < n; i++) count += !(fabs(x[i]) <= bound);
    return count;
}

int sherd__binding_add(sherd__binding *b, sherd__binding_hash *h, const double *x, size_t n)
{
    uint64_t wrong = 0;
    while (n) {
        size_t some = n < BLOCK - h->at ? n : BLOCK - h->at;
        add_block(b->key + h->at, x, some, h->sum);
        wrong += beyond(x, some, b->bound);
        h->at += some;
        x += some;
        n -= some;
        if (h->at == BLOCK) fold(b, h);
    }
    if (!wrong) return SHERD_OK;
    b->broken = true;
    return SHERD_EIO;
}

int sherd__binding_hold(sherd__binding *b, size_t run, sherd__binding_hash *h)
{
    uint64_t none = 0;
    fold(b, h);
    assert(run < b->runs);
    uint64_t tag = h->tag | HELD;
    *h = (sherd__binding_hash){ 0 };
    if (atomic_compare_exchange_strong(&b->tags[run], &none, tag) || none == tag) return SHERD_OK;
    b->broken = true;
    return SHERD_EIO;
}

bool sherd__binding_broken(const sherd__binding *b)
{
    return b && b->broken;
}
