/* Functions of the calling thread that are common to all training works. */
#include "scheduler/cluster/caller.h"

#include "core/diag.h"

void sherd__caller_changed(void *cluster)
{
    sherd_cluster *c = cluster;
    pthread_mutex_lock(&c->lock);
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static int why_over(sherd__work w, sherd_diag *d)
{
    sherd_diag why = { 0 };
    int err = SHERD_EINTERNAL;
    (void)w.ops->done(w.ctx, &err, &why);
    return sherd__fail(d, err ? err : SHERD_EINTERNAL, why.hint[0] ? why.hint : NULL, "%s",
                       why.message[0] ? why.message : "the training has ended");
}

void sherd__caller_wake(sherd_cluster *c)
{
    if (!c->ended) uv_async_send(&c->wake);
}

int sherd__caller_await(sherd_cluster *c, sherd__work w, sherd__caller_there *there, void *ctx,
                        sherd_diag *d)
{
    bool is_there;
    pthread_mutex_lock(&c->lock);
    while (!(is_there = there(ctx)) && !c->job_done) sherd__cluster_wait(c, CLUSTER_TICK_MS);
    sherd__cluster_hand_out(c);
    pthread_mutex_unlock(&c->lock);
    return is_there ? SHERD_OK : why_over(w, d);
}

int sherd__caller_begin(sherd_cluster *c, sherd__work w, sherd__caller_there *there, void *ctx,
                        sherd_diag *d)
{
    int err = sherd__cluster_over(c, d);
    if (err) return err;
    pthread_mutex_lock(&c->lock);
    sherd__cluster_post(c, w, true, false, 0);
    pthread_mutex_unlock(&c->lock);
    return sherd__caller_await(c, w, there, ctx, d);
}

void sherd__caller_finished(sherd_cluster *c)
{
    sherd__caller_wake(c);
    pthread_mutex_lock(&c->lock);
    while (!c->job_done) sherd__cluster_wait(c, CLUSTER_TICK_MS);
    sherd__cluster_hand_out(c);
    pthread_mutex_unlock(&c->lock);
}
