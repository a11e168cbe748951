/*
 * Memory of the task loop, and how it is freed. One record of a peer, or the end of its connection,
 * may end very many tasks, blocks and results: they are set aside in constant time, still count in
 * the budget, and are freed some in each turn.
 */
#include "core/alloc.h"
#include "node/worker_state.h"

uint8_t *sherd__worker_place(void *ctx, uint64_t job, uint32_t number, uint64_t len)
{
    (void)job;
    (void)number;
    uint8_t *bytes = sherd__pool_get(ctx, len);
    while (!bytes && sherd__pool_relieve(ctx)) bytes = sherd__pool_get(ctx, len);
    return bytes;
}

void sherd__worker_unplace(void *ctx, uint8_t *bytes, uint64_t len)
{
    sherd__pool_give(ctx, bytes, len);
}

void sherd__worker_session(sherd__client *c, sherd__session_options *opt)
{
    opt->place = sherd__worker_place;
    opt->unplace = sherd__worker_unplace;
    opt->place_ctx = c->pool;
    opt->block_max = sherd__pool_stats_of(c->pool)->budget;
    sherd__table_key_draw(&opt->table_key, &c->worker->opt.entropy);
    opt->budget = sherd__pool_budget(c->pool);
}

void sherd__worker_member_session(sherd__worker *w, const sherd__account *a,
                                  sherd__session_options *opt)
{
    sherd__table_key_draw(&opt->table_key, &w->opt.entropy);
    opt->budget = sherd__pool_budget(a->pool);
}

/* Frees up to `most` records that the client gave up. Returns how many it freed. */
static size_t reap_client(sherd__client *c, size_t most)
{
    size_t n = 0;
    for (sherd__grouped_item *it; n < most && (it = sherd__grouped_given_up(&c->tasks)); n++) {
        c->worker->stats.cancelled += !c->closed;
        sherd__worker_release(sherd__worker_task_of(it));
    }
    n += sherd__store_reap(&c->store, most - n);
    n += c->allreduce ? sherd__allreduce_reap(c->allreduce, most - n) : 0;
    n += c->over ? sherd__session_reap(c->over, most - n) : 0;
    c->worker->stats.reaped += n;
    return n;
}

bool sherd__worker_to_reap(const sherd__client *c)
{
    return sherd__grouped_given_up(&c->tasks) || sherd__grouped_given_up(&c->store.table) ||
           (c->allreduce && sherd__allreduce_to_reap(c->allreduce)) ||
           (c->over && !sherd__session_reaped(c->over));
}

static size_t less(size_t most, size_t n)
{
    return most > n ? most - n : 0;
}

void sherd__worker_reap_now(sherd__client *c)
{
    sherd__worker *w = c->worker;
    w->reaped += reap_client(c, w->opt.wake ? less(REAP_AT_ONCE, w->reaped) : SIZE_MAX);
}

/* Frees records of one key's clients (its), or of all others, up to `turn` in a turn. Returns true
 * where it freed any. */
static bool relieve(sherd__worker *w, const sherd__pool *pool, bool its, size_t turn,
                    size_t *relieved)
{
    size_t most = w->opt.wake ? less(turn, *relieved) : SIZE_MAX, n = 0;
    for (sherd__client *c = w->clients; c && n < most; c = c->next)
        if ((c->pool == pool) == its) n += reap_client(c, most - n);
    *relieved += n;
    return n > 0;
}

bool sherd__worker_relieve(void *worker, const sherd__pool *asks)
{
    sherd__worker *w = worker;
    tenant *t = NULL;
    size_t keys = 0;
    for (sherd__account *a = w->accounts; a; a = a->next, keys++)
        if (a->pool == asks) t = (tenant *)a;
    return t && (relieve(w, asks, true, REAP_RELIEF / keys, &t->relieved) ||
                 relieve(w, asks, false, REAP_RELIEF, &w->relieved));
}

/* ---- ends on the compute thread -------------------------------------------------------------- */

typedef struct ending {
    sherd__executor_item work; /* must be first: the executor hands it back */
    sherd__worker *worker;
    struct ending *prev, *next;
    sherd__pool *pool;
    uint64_t reserved;
    void (*end)(void *what);
    void *what; /* NULL: already ended */
} ending;

static void run_ending(sherd__executor_item *work)
{
    ending *e = (ending *)work;
    sherd__free_in_slices(true); /* the loop allocates and frees memory meanwhile */
    e->end(e->what);
    sherd__free_in_slices(false);
    e->what = NULL;
}

static void on_ended(sherd__executor_item *work)
{
    ending *e = (ending *)work;
    if (e->what) e->end(e->what); /* the executor is shutting down */
    *(e->prev ? &e->prev->next : &e->worker->endings) = e->next;
    e->worker->endings_len--;
    if (e->next) e->next->prev = e->prev;
    sherd__pool_unreserve(e->pool, e->reserved);
    sherd__free(e);
}

static void end_later(void *client, void (*end)(void *what), void *what, uint64_t reserved)
{
    const sherd__client *c = client;
    sherd__worker *w = c->worker;
    bool room = w->opt.wake && w->endings_len < ENDINGS_MOST;
    ending *e = room ? sherd__alloc(sizeof *e) : NULL;
    if (e) {
        *e = (ending){ { .run = run_ending, .done = on_ended },
                       w,
                       NULL,
                       w->endings,
                       c->pool,
                       reserved,
                       end,
                       what };
        if (!sherd__executor_submit(w->opt.executor, &e->work)) {
            if (e->next) e->next->prev = e;
            w->endings = e;
            w->endings_len++;
            return;
        }
        sherd__free(e);
    }
    end(what);
    sherd__pool_unreserve(c->pool, reserved);
}

static uint64_t ending_bytes(void *client)
{
    const sherd__client *c = client;
    uint64_t bytes = 0;
    for (const ending *e = c->worker->endings; e; e = e->next)
        if (e->pool == c->pool) bytes += e->reserved;
    return bytes;
}

static void inherit(void *client, uint64_t bytes)
{
    const sherd__client *c = client;
    for (ending *e = c->worker->endings; e && bytes; e = e->next) {
        uint64_t n = e->pool != c->pool ? 0 : e->reserved < bytes ? e->reserved : bytes;
        e->reserved -= n;
        bytes -= n;
    }
}

sherd__later sherd__worker_later(sherd__client *c)
{
    return (sherd__later){ end_later, ending_bytes, inherit, c };
}

void sherd__worker_count_clients(sherd__worker *w)
{
    sherd__pool_sole(w->pool, w->clients && !w->clients->next);
}

static void free_client(sherd__client *c)
{
    sherd__worker *w = c->worker;
    sherd__worker_calm(c);
    sherd__gradient_fini(&c->site);
    sherd__secure_free(c->secure);
    sherd__allreduce_free(c->allreduce); /* before the store, which calls it */
    sherd__session_free(c->over);
    sherd__grouped_fini(&c->tasks);
    sherd__store_fini(&c->store);
    *(c->prev ? &c->prev->next : &w->clients) = c->next;
    if (c->next) c->next->prev = c->prev;
    sherd__free(c);
    sherd__worker_count_clients(w);
    if (!w->clients) sherd__pool_trim(w->pool);
}

void sherd__worker_over(sherd__client *c)
{
    if (c->closed && c->running == 0 && !sherd__worker_to_reap(c)) free_client(c);
}

void sherd__worker_reap(sherd__worker *w)
{
    size_t most = w->opt.wake ? REAP_TURN : SIZE_MAX;
    bool more = false;
    w->reaped = w->relieved = 0;
    for (sherd__account *a = w->accounts; a; a = a->next) ((tenant *)a)->relieved = 0;
    for (sherd__client *c = w->clients, *next; c; c = next) {
        next = c->next;
        most -= reap_client(c, most);
        if (sherd__worker_to_reap(c)) more = true;
        else sherd__worker_over(c);
    }
    if (w->opt.wake && sherd__pool_clean(w->pool, WIPE_TURN)) more = true;
    if (more) w->opt.wake(w->opt.wake_ctx);
}
