/*
 * The end of a cluster, in two steps. First the connections are closed with a goodbye, local nodes
 * end, and the record is completed. Errors of writing the record are known only then, because
 * goodbyes are recorded, too. The state of the nodes can still be read after this step, and kept
 * jobs can still be freed. Their answers, and the compute thread that may work on one of them, are
 * freed in the second step.
 */
#include "core/alloc.h"
#include "core/diag.h"
#include "scheduler/cluster/state.h"

#define GRACE_MS 500u /* time for local nodes to end if one of them no longer answers */

/* Returns true if a node is not up: it will not answer a goodbye. */
static bool stop_loop(sherd_cluster *c)
{
    bool mute = false;
    if (c->thread_runs) {
        pthread_mutex_lock(&c->lock);
        for (uint32_t i = 0; i < c->count; i++)
            mute = mute || c->nodes[i].info.state != SHERD_NODE_UP;
        c->close_wanted = true;
        pthread_mutex_unlock(&c->lock);
        uv_async_send(&c->wake);
        uv_thread_join(&c->thread);
        c->thread_runs = false;
    } else if (c->loop_made) {
        uv_close((uv_handle_t *)&c->wake, NULL);
        uv_close((uv_handle_t *)&c->tick, NULL);
        uv_run(&c->loop, UV_RUN_DEFAULT);
    }
    return mute;
}

int sherd__cluster_over(const sherd_cluster *c, sherd_diag *d)
{
    if (!c->ended) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, "do it before sherd_cluster_end", "the cluster has ended");
}

int sherd_cluster_end(sherd_cluster *c, sherd_diag *d)
{
    if (!c || c->ended) return SHERD_OK;
    c->ended = true;
    bool mute = stop_loop(c);
    c->job_done = true; /* no thread waits for a job any more */
    sherd__launch_stop(c->launch, mute ? GRACE_MS : 0);
    c->launch = NULL;
    sherd__recording *record = c->record;
    c->record = NULL;
    return record ? sherd__record_end(record, d) : SHERD_OK;
}

void sherd_cluster_close(sherd_cluster *c)
{
    if (!c) return;
    (void)!sherd_cluster_end(c, NULL);
    sherd__executor_free(c->executor);
    if (c->loop_made) (void)uv_loop_close(&c->loop);
    sherd__buffers_free(c->answers);
    sherd_identity_free(c->identity);
    sherd__free(c->nodes);
    sherd__free(c->domain_of);
    sherd__free(c->budgets);
    sherd__free(c->seeds);
    sherd__free(c->rooms);
    sherd__free(c->weights);
    sherd__free(c->speeds);
    sherd__free(c->compared);
    sherd__free(c->scratch);
    sherd__free(c->each);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    sherd__free(c);
}
