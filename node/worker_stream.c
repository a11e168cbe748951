/*
 * Results that are produced while they are sent, where a backend supports this: the task is
 * answered at once with a fragment over the backend's source, which holds the blocks that it reads
 * until the last byte is sent.
 */
#include "core/alloc.h"
#include "core/diag.h"
#include "crypto/fragment_make.h"
#include "node/worker_state.h"

typedef struct stream {
    sherd__fragment_source source;
    sherd__block *left, *right;
    sherd__pool *pool;
    uint64_t counted;
} stream;

static int stream_fill(void *ctx, uint64_t offset, uint8_t *out, size_t len)
{
    stream *s = ctx;
    return s->source.fill(s->source.ctx, offset, out, len);
}

static void stream_free(void *ctx)
{
    stream *s = ctx;
    if (s->source.free) s->source.free(s->source.ctx);
    sherd__block_release(s->left);
    sherd__block_release(s->right);
    sherd__pool_unreserve(s->pool, s->counted);
    sherd__free(s);
}

/* Makes a fragment over the backend's source, which it takes. The fragment holds the blocks until
 * it is sent. */
static int stream_fragment(task *t, sherd__fragment_source source, uint64_t memory,
                           sherd__fragment **out)
{
    sherd__pool *pool = t->client->pool;
    uint64_t counted = memory + sizeof(stream) + SHERD__POOL_OVERHEAD;
    int err = SHERD_ENOMEM;
    stream *s = NULL;
    if (!sherd__pool_reserve(pool, counted)) return err;
    s = sherd__alloc(sizeof *s);
    if (!s) goto out;
    *s = (stream){ source, t->left, t->right, pool, counted };
    err = sherd__fragment_new_source(out, &t->what.result,
                                     (sherd__fragment_source){ stream_fill, stream_free, s });
    if (err) goto out;
    sherd__block_hold(t->left);
    if (t->right) sherd__block_hold(t->right);
    return SHERD_OK;
out:
    sherd__free(s);
    sherd__pool_unreserve(pool, counted);
    return err;
}

bool sherd__worker_stream(task *t)
{
    sherd__worker *w = t->client->worker;
    sherd__fragment_source source = { .fill = NULL };
    sherd__fragment *f;
    sherd_diag d = { .code = 0 };
    uint64_t memory = 0;
    if (!w->opt.backend->stream) return false;
    t->err = w->opt.backend->stream(w->opt.backend_ctx, &t->what, t->left->fragment,
                                    t->right ? t->right->fragment : NULL, &source, &memory, &d);
    if (!t->err && !source.fill) return false;
    if (!t->err && (t->err = stream_fragment(t, source, memory, &f)) && source.free)
        source.free(source.ctx);
    if (t->err) {
        sherd__worker_refuse(t->client, &t->what, t->err, d.message);
    } else {
        sherd__worker_count(w, &t->what);
        w->stats.streamed_tasks++;
        if (sherd__session_result(t->client->session, &t->what, f)) sherd__fragment_free(f);
    }
    sherd__worker_release(t);
    return true;
}
