/* Rows are compared by all their numbers and found by a hash of them. Data to send is gathered into
 * a buffer of its own, which the session frees. */
#include "scheduler/train/keep.h"

#include <string.h>

#include "core/alloc.h"
#include "learn/gradients.h"
#include "scheduler/train/put.h"

static uint64_t hash_of(const uint32_t *rows, size_t len)
{
    uint64_t h = len;
    for (size_t i = 0; i < len; i++) {
        h = (h ^ rows[i]) * UINT64_C(0x9E3779B97F4A7C15);
        h ^= h >> 32;
    }
    return h;
}

static const sherd__kept *find(const sherd__keep *n, const uint32_t *rows, size_t len,
                               uint64_t hash)
{
    for (size_t i = 0; i < n->len; i++) {
        const sherd__kept *k = &n->list[i];
        if (k->hash == hash && k->len == len && !memcmp(k->rows, rows, len * sizeof *rows))
            return k;
    }
    return NULL;
}

/* Records that the node keeps these examples, with a copy of their rows. Returns false if it must
 * not keep them. */
static bool note(sherd__keep *n, const sherd__keep_to *to, sherd__kept kept, uint64_t bytes)
{
    uint64_t memory = sherd__session_peer(to->session)->memory;
    if (!to->recurring || bytes > memory / 4 || n->bytes > memory / 4 - bytes) return false;
    if (n->len == n->room) {
        size_t room = n->room ? 2 * n->room : 16;
        sherd__kept *more = sherd__realloc(n->list, room * sizeof *more);
        if (!more) return false;
        n->list = more;
        n->room = room;
    }
    uint32_t *copy = sherd__alloc(kept.len * sizeof *copy);
    if (!copy) return false;
    memcpy(copy, kept.rows, kept.len * sizeof *copy);
    kept.rows = copy;
    n->list[n->len++] = kept;
    n->bytes += bytes;
    return true;
}

int sherd__keep_send(sherd__keep *n, const sherd__keep_to *to, const uint32_t *rows, size_t len,
                     sherd__step_plan_shard *out)
{
    const sherd__dataset *data = to->data;
    bool labels = data->targets.labels != NULL;
    uint64_t hash = to->recurring ? hash_of(rows, len) : 0;
    const sherd__kept *k = to->recurring ? find(n, rows, len, hash) : NULL;
    *out = (sherd__step_plan_shard){ .rows = len };
    if (k) {
        out->x = k->x;
        out->targets = k->targets;
        return SHERD_OK;
    }
    size_t x_len = sherd_dtype_size(data->x.dtype) * data->x.cols * len;
    size_t width = labels ? 1 : data->width, t_len = (labels ? 4 : 8 * width) * len;
    void *x = sherd__alloc(x_len), *t = sherd__alloc(t_len);
    if (!x || !t) {
        sherd__free(x);
        sherd__free(t);
        return SHERD_ENOMEM;
    }
    sherd__shard_inputs(data, rows, len, x);
    sherd__shard_targets(data, rows, len, t);
    out->x = n->next_block++;
    out->targets = n->next_block++;
    int err = sherd__train_put(to->session, to->job,
                               (sherd__train_block){ out->x, (uint8_t)data->x.dtype, len,
                                                     data->x.cols },
                               (sherd__train_bytes){ x, NULL, NULL });
    if (err) {
        sherd__free(t);
        return err;
    }
    err = sherd__train_put(to->session, to->job,
                           (sherd__train_block){ out->targets, labels ? SHERD_U32 : SHERD_F64, len,
                                                 width },
                           (sherd__train_bytes){ t, NULL, NULL });
    out->drop = !err &&
                !note(n, to,
                      (sherd__kept){ hash, (uint32_t *)(uintptr_t)rows, len, out->x, out->targets },
                      (uint64_t)x_len + t_len);
    return err;
}

void sherd__keep_forget(sherd__keep *n, uint32_t first_block)
{
    for (size_t i = 0; i < n->len; i++) sherd__free(n->list[i].rows);
    n->len = 0;
    n->bytes = 0;
    n->next_block = first_block;
}
