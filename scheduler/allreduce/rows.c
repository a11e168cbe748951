/*
 * Examples that a member has. It is sent, in packs, those examples of its shards that it does not
 * have, and afterwards they are identified by their numbers. So, whatever the order of a training,
 * a row is sent to a member once, and steps name rows by their index in the step's list. A member
 * that is assigned other shards is sent the missing rows.
 *
 * Examples beyond a quarter of a member's memory are not kept: their pack is dropped at the end of
 * the round, and its rows are sent again when they are needed.
 */
#include <string.h>

#include "core/alloc.h"
#include "learn/gradients.h"
#include "scheduler/allreduce/internal.h"
#include "scheduler/train/put.h"

static bool has(const member *m, uint32_t row)
{
    return m->has[row / 8] >> row % 8 & 1;
}

static void note(member *m, uint32_t row, bool here)
{
    uint8_t bit = (uint8_t)(1u << row % 8);
    m->has[row / 8] = (uint8_t)(here ? m->has[row / 8] | bit : m->has[row / 8] & ~bit);
}

/* Returns the rows that the member lacks, each once, and marks them as sent. NULL: out of
 * memory. */
static uint32_t *missing(member *m, const uint32_t *rows, size_t len, size_t *found)
{
    uint32_t *out = sherd__alloc((len ? len : 1) * sizeof *out);
    *found = 0;
    for (size_t i = 0; out && i < len; i++) {
        if (has(m, rows[i])) continue;
        note(m, rows[i], true);
        out[(*found)++] = rows[i];
    }
    return out;
}

static int put(sherd__allreduce_job *j, member *m, sherd__train_block block, void *bytes)
{
    return sherd__train_put(m->w.session, j->o.id, block, (sherd__train_bytes){ .bytes = bytes });
}

/* Sends the three blocks of a pack. */
static int put_pack(sherd__allreduce_job *j, member *m, const uint32_t *rows, size_t len,
                    uint64_t *bytes)
{
    const sherd__dataset *data = j->o.train.data;
    bool labels = data->targets.labels != NULL;
    uint32_t block = sherd__allreduce_pack(m->packs);
    size_t width = labels ? 1 : data->width, t_len = (labels ? 4 : 8 * width) * len;
    size_t x_len = sherd_dtype_size(data->x.dtype) * data->x.cols * len, n_len = 4 * len;
    void *x = sherd__alloc(x_len), *t = sherd__alloc(t_len), *n = sherd__alloc(n_len);
    if (!x || !t || !n) {
        sherd__free(x);
        sherd__free(t);
        sherd__free(n);
        return SHERD_ENOMEM;
    }
    memcpy(n, rows, n_len);
    sherd__shard_inputs(data, rows, len, x);
    sherd__shard_targets(data, rows, len, t);
    *bytes = (uint64_t)x_len + t_len + n_len;
    int err = put(j, m, (sherd__train_block){ block, SHERD_U32, 1, len }, n);
    int x_err = put(j, m,
                    (sherd__train_block){ block + 1, (uint8_t)data->x.dtype, len, data->x.cols },
                    x);
    int t_err = put(j, m,
                    (sherd__train_block){ block + 2, labels ? SHERD_U32 : SHERD_F64, len, width },
                    t);
    return err ? err : x_err ? x_err : t_err;
}

int sherd__allreduce_send_rows(sherd__allreduce_job *j, uint32_t node, const uint32_t *rows,
                               size_t len)
{
    member *m = &j->nodes[node];
    uint64_t bytes = 0, memory = sherd__session_peer(m->w.session)->memory / 4;
    size_t found;
    uint32_t *lacks = missing(m, rows, len, &found);
    if (!lacks) return SHERD_ENOMEM;
    int err = found ? put_pack(j, m, lacks, found, &bytes) : SHERD_OK;
    if (err || !found) {
        sherd__free(lacks);
        return err;
    }
    uint32_t pack = m->packs++;
    pthread_mutex_lock(&j->requests.lock);
    j->stats.examples_out += bytes;
    pthread_mutex_unlock(&j->requests.lock);
    if (bytes <= memory && m->kept <= memory - bytes) {
        m->kept += bytes;
        sherd__free(lacks);
    } else {
        m->spent[m->spent_len++] = (spent_pack){ pack, lacks, found };
    }
    return SHERD_OK;
}

void sherd__allreduce_send_drops(sherd__allreduce_job *j, uint32_t node)
{
    member *m = &j->nodes[node];
    for (uint32_t i = 0; i < m->spent_len; i++) {
        spent_pack *p = &m->spent[i];
        for (size_t k = 0; k < p->len; k++) note(m, p->rows[k], false);
        sherd__free(p->rows);
        for (uint32_t b = 0; b < 3 && m->w.session; b++)
            (void)!sherd__session_drop(m->w.session, j->o.id, sherd__allreduce_pack(p->pack) + b);
    }
    m->spent_len = 0;
}

void sherd__allreduce_forget_rows(sherd__allreduce_job *j, uint32_t node)
{
    member *m = &j->nodes[node];
    for (uint32_t i = 0; i < m->spent_len; i++) sherd__free(m->spent[i].rows);
    m->spent_len = m->packs = 0;
    m->kept = 0;
    memset(m->has, 0, (j->examples + 7) / 8);
}
