/*
 * The rows of a step. A shuffle is drawn from (seed, purpose, epoch) when another epoch is
 * requested, so a resumed run needs only the step's number. Under "batches" the rows are shuffled
 * once and only the order of whole batches changes: data sent to nodes in that order serve every
 * epoch.
 */
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "learn/draw.h"
#include "learn/train.h"

sherd__entropy sherd__train_entropy(sherd__seeded *state, const uint8_t seed[32], const char *what,
                                    uint64_t number)
{
    return sherd__entropy_derived(state, seed, what, number);
}

static sherd__rows list_of(const sherd__train_order *o, sherd__rows_kind kind, size_t examples,
                           size_t len, const char *what, uint64_t number)
{
    sherd__seeded state;
    sherd__rows r = { .kind = kind, .examples = (uint32_t)examples, .len = (uint32_t)len };
    (void)sherd__train_entropy(&state, o->seed, what, number);
    memcpy(r.key, state.key, sizeof r.key);
    sherd__wipe(&state, sizeof state);
    return r;
}

static void shuffle(const sherd__train_order *o, const char *what, uint64_t number, uint32_t *out,
                    size_t n)
{
    sherd__rows r = list_of(o, SHERD__ROWS_SHUFFLED, n, n, what, number);
    sherd__rows_list(&r, out);
}

int sherd__train_order_init(sherd__train_order *o, sherd__order order, size_t examples,
                            size_t batch, const uint8_t seed[32], sherd_diag *d)
{
    memset(o, 0, sizeof *o);
    if (examples == 0 || examples >= UINT32_MAX)
        return sherd__fail(d, SHERD_EINVAL, NULL, "%zu examples to train on", examples);
    if (batch > examples)
        return sherd__fail(d, SHERD_EINVAL, "a smaller batch, or more data",
                           "a batch of %zu is larger than the data: there are %zu examples", batch,
                           examples);
    o->order = order;
    o->examples = examples;
    o->batch = batch > 0 ? batch : examples;
    o->per_epoch = (examples + o->batch - 1) / o->batch;
    o->epoch = UINT64_MAX;
    memcpy(o->seed, seed, sizeof o->seed);
    if (order == SHERD__ORDER_SHUFFLED || order == SHERD__ORDER_BATCHES)
        o->rows = sherd__calloc(examples, sizeof *o->rows);
    if (order == SHERD__ORDER_BATCHES) o->batches = sherd__calloc(o->per_epoch, sizeof *o->batches);
    if ((order == SHERD__ORDER_SHUFFLED && !o->rows) ||
        (order == SHERD__ORDER_BATCHES && (!o->rows || !o->batches))) {
        sherd__train_order_fini(o);
        return sherd__fail_memory(d, "the order of %zu examples", examples);
    }
    if (order == SHERD__ORDER_BATCHES) shuffle(o, "rows", 0, o->rows, examples);
    return SHERD_OK;
}

void sherd__train_order_fini(sherd__train_order *o)
{
    sherd__free(o->rows);
    sherd__free(o->batches);
    sherd__wipe(o, sizeof *o);
}

/* Fills the scratch for one epoch. */
static void turn_to(sherd__train_order *o, uint64_t epoch)
{
    if (o->epoch == epoch) return;
    o->epoch = epoch;
    if (o->order == SHERD__ORDER_SHUFFLED) shuffle(o, "shuffle", epoch, o->rows, o->examples);
    if (o->order == SHERD__ORDER_BATCHES)
        shuffle(o, "batches", epoch, o->batches, (size_t)o->per_epoch);
}

uint64_t sherd__train_order_batch(sherd__train_order *o, uint64_t number)
{
    uint64_t within = number % o->per_epoch;
    if (o->order != SHERD__ORDER_BATCHES) return within;
    turn_to(o, number / o->per_epoch);
    return o->batches[within];
}

const uint32_t *sherd__train_order_fixed(const sherd__train_order *o)
{
    return o->order == SHERD__ORDER_BATCHES ? o->rows : NULL;
}

sherd__rows sherd__train_order_list(sherd__train_order *o, uint64_t number, size_t *first)
{
    bool drawn = o->order == SHERD__ORDER_DRAWN;
    size_t n = o->examples;
    uint64_t epoch = number / o->per_epoch;
    *first = drawn ? 0 : (size_t)sherd__train_order_batch(o, number) * o->batch;
    switch (o->order) {
    case SHERD__ORDER_DRAWN:
        return list_of(o, SHERD__ROWS_DRAWN, n, o->batch, "drawn rows", number);
    case SHERD__ORDER_SHUFFLED: return list_of(o, SHERD__ROWS_SHUFFLED, n, n, "shuffle", epoch);
    case SHERD__ORDER_BATCHES: return list_of(o, SHERD__ROWS_SHUFFLED, n, n, "rows", 0);
    case SHERD__ORDER_GIVEN: break;
    }
    return (sherd__rows){ SHERD__ROWS_GIVEN, (uint32_t)n, (uint32_t)n, { 0 } };
}

size_t sherd__train_order_rows(sherd__train_order *o, uint64_t number, uint32_t *rows)
{
    if (o->order == SHERD__ORDER_DRAWN) {
        size_t none;
        sherd__rows r = sherd__train_order_list(o, number, &none);
        sherd__rows_list(&r, rows);
        return r.len;
    }
    if (o->order == SHERD__ORDER_SHUFFLED) turn_to(o, number / o->per_epoch);
    size_t first = (size_t)sherd__train_order_batch(o, number) * o->batch;
    size_t len = o->examples - first < o->batch ? o->examples - first : o->batch;
    for (size_t i = 0; i < len; i++) rows[i] = o->rows ? o->rows[first + i] : (uint32_t)(first + i);
    return len;
}
