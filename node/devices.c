/*
 * A residence is one block on one device. It is in a list of the block, and where it takes memory,
 * in one of the device in order of last use: on a device with memory of its own a copy of the
 * block, otherwise the forms that the backend derived from it. With forms it is also in a list of
 * the key whose memory they use, so that making room in this memory takes no time for blocks of
 * other keys. Dropping a handle that a call uses
 * is legal and frees nothing yet, so only idle blocks are dropped to make room.
 *
 * One lock guards all residences of the process: a block does not say whose devices hold it. It is
 * never held while a call is waited for.
 *
 * A pass that runs on its own thread drops blocks of tasks, too: to make room, or with a device
 * that is lost. That may free copies on a device, but no derived form: these use memory of the
 * loop's pool, which only the loop's thread may return. A backend that passes use (it has `wait`)
 * therefore gets no such memory.
 */
#include "node/devices.h"

#include <assert.h>
#include <pthread.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "node/backends/program.h"
#include "node/check.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ran = PTHREAD_COND_INITIALIZER; /* a call of sherd__devices_run has ended */

struct sherd__residence {
    sherd__handle handle;
    sherd__devices *devices;
    sherd__device_state *on;
    sherd__block *block;
    uint64_t bytes;         /* of memory, which dropping it frees */
    uint32_t calls;         /* calls in progress that use it */
    sherd__residence *next; /* next residence of the block */
    struct {
        sherd__residence *older, *newer;
    } by[2]; /* in the two lists by last use; where bytes > 0 */
};

enum { ON_DEVICE, IN_LENDING }; /* the lists */

void sherd__devices_init(sherd__devices *ds, const sherd__backend *backend, void *ctx,
                         const sherd__device *list, uint32_t count)
{
    *ds = (sherd__devices){ .backend = backend, .ctx = ctx };
    ds->count = count < SHERD__DEVICES_MAX ? count : SHERD__DEVICES_MAX;
    for (uint32_t i = 0; i < ds->count; i++)
        ds->list[i] = (sherd__device_state){ .what = list[i], .number = i };
}

uint32_t sherd__devices_depth(const sherd__devices *ds)
{
    uint32_t depth = 0;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < ds->count; i++)
        if (!ds->list[i].lost) depth += ds->list[i].what.depth;
    pthread_mutex_unlock(&lock);
    return depth;
}

bool sherd__devices_busy(const sherd__devices *ds)
{
    uint32_t calls = 0;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < ds->count; i++) calls += ds->list[i].under_way + ds->list[i].running;
    pthread_mutex_unlock(&lock);
    return calls > 0;
}

void sherd__devices_without_programs(sherd__devices *ds, const sherd__device_state *on)
{
    pthread_mutex_lock(&lock);
    ds->list[on->number].what.does &= ~SHERD__DOES_PROGRAMS;
    pthread_mutex_unlock(&lock);
}

bool sherd__devices_run_programs(const sherd__devices *ds, const sherd__device_state *on)
{
    bool any = false;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < ds->count; i++) {
        const sherd__device_state *s = &ds->list[i];
        any = any || ((!on || on == s) && !s->lost && s->what.does & SHERD__DOES_PROGRAMS);
    }
    pthread_mutex_unlock(&lock);
    return any;
}

bool sherd__devices_lost(const sherd__devices *ds)
{
    uint32_t lost = 0;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < ds->count; i++) lost += ds->list[i].lost;
    pthread_mutex_unlock(&lock);
    return lost == ds->count;
}

/* ---- blocks on a device ---------------------------------------------------------------------- */

static sherd__residence *find(const sherd__block *b, const sherd__device_state *on)
{
    sherd__residence *r = b ? b->held : NULL;
    while (r && r->on != on) r = r->next;
    return r;
}

/* Returns the list, or NULL where the residence is not in such a list. */
static sherd__uses *uses_of(const sherd__residence *r, int list)
{
    if (list == ON_DEVICE) return &r->on->uses;
    return r->on->what.memory || !r->block->lending ? NULL : &r->block->lending->uses;
}

static void unlink_use(sherd__residence *r)
{
    for (int i = 0; i < 2; i++) {
        sherd__uses *l = uses_of(r, i);
        sherd__residence *older = r->by[i].older, *newer = r->by[i].newer;
        if (!l) continue;
        *(older ? &older->by[i].newer : &l->oldest) = newer;
        *(newer ? &newer->by[i].older : &l->newest) = older;
    }
}

static void link_use(sherd__residence *r)
{
    for (int i = 0; i < 2; i++) {
        sherd__uses *l = uses_of(r, i);
        if (!l) continue;
        r->by[i].older = l->newest;
        r->by[i].newer = NULL;
        *(l->newest ? &l->newest->by[i].newer : &l->oldest) = r;
        l->newest = r;
    }
}

static uint64_t bytes_of(const sherd__block *b)
{
    return sherd__fragment_info_of(b->fragment)->len;
}

/* Counts memory that the residence takes in addition. */
static void grow(sherd__residence *r, uint64_t bytes)
{
    if (bytes == 0) return;
    if (r->bytes == 0) link_use(r);
    r->bytes += bytes;
    r->on->held += bytes;
}

static void drop(sherd__residence *r)
{
    sherd__residence **at = &r->block->held;
    while (*at != r) at = &(*at)->next;
    *at = r->next;
    if (r->bytes) unlink_use(r);
    assert(r->bytes <= r->on->held);
    assert((r->bytes == 0 || r->on->what.memory || !r->devices->backend->wait) &&
           "forms only where passes wait for no call");
    r->on->held -= r->bytes;
    r->devices->backend->drop(r->devices->ctx, &r->handle);
    sherd__free(r);
}

void sherd__devices_drop(sherd__block *b)
{
    pthread_mutex_lock(&lock);
    while (b->held) drop(b->held);
    pthread_mutex_unlock(&lock);
}

/* Drops the least recently used block of a list, of those that no call uses. */
static bool evict_from(const sherd__uses *l, int list, const sherd__block *left,
                       const sherd__block *right)
{
    sherd__residence *r = l->oldest;
    while (r && (r->calls || r->block == left || r->block == right)) r = r->by[list].newer;
    if (r) drop(r);
    return r != NULL;
}

static bool evict(const sherd__device_state *s, const sherd__block *left, const sherd__block *right)
{
    return evict_from(&s->uses, ON_DEVICE, left, right);
}

bool sherd__devices_relieve(sherd__devices *ds)
{
    bool freed = false;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < ds->count && !freed; i++)
        freed = !ds->list[i].what.memory && evict(&ds->list[i], NULL, NULL);
    pthread_mutex_unlock(&lock);
    return freed;
}

bool sherd__lending_relieve(sherd__lending *l)
{
    pthread_mutex_lock(&lock);
    bool freed = evict_from(&l->uses, IN_LENDING, NULL, NULL);
    pthread_mutex_unlock(&lock);
    return freed;
}

/* Drops blocks until there is room for `len` bytes more, as far as that is known: a device may copy
   blocks and allocate results when it is too late to drop others. */
static void make_room(const sherd__device_state *s, uint64_t len, const sherd__block *left,
                      const sherd__block *right)
{
    while (s->what.memory && s->held + len > s->what.memory && evict(s, left, right)) {}
}

/* The operands of a call; right NULL: there is one. */
typedef struct operands {
    sherd__block *left, *right;
} operands;

/* Makes an operand (side 1: the right one) usable on the device and sets its handle in the call. */
static int hold(sherd__devices *ds, sherd__device_state *s, sherd__call *c, operands in, int side,
                sherd_diag *d)
{
    sherd__block *b = side ? in.right : in.left;
    sherd__handle *out = side ? &c->right : &c->left;
    sherd__residence *r = find(b, s);
    if (r) {
        if (r->bytes) {
            unlink_use(r);
            link_use(r);
        }
        *out = r->handle;
        return SHERD_OK;
    }
    r = sherd__calloc(1, sizeof *r);
    if (!r) return sherd__fail_memory(d, "a block");
    make_room(s, bytes_of(b), in.left, in.right);
    int err;
    do err = ds->backend->hold(ds->ctx, s->number, b->fragment, c->owner, &r->handle, d);
    while (err == SHERD_ENOMEM && evict(s, in.left, in.right));
    if (err) {
        sherd__free(r);
        return err;
    }
    r->devices = ds;
    r->on = s;
    r->block = b;
    r->next = b->held;
    b->held = r;
    grow(r, s->what.memory ? bytes_of(b) : 0);
    *out = r->handle;
    return SHERD_OK;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Returns the rate of products of this kind, at least 1. */
static double rate_of(const sherd__device *v, uint32_t needs)
{
    bool packed = needs & SHERD__DOES_RESIDUES && v->residue_gflops > 0;
    double gflops = needs & SHERD__DOES_BYTES ? v->byte_gops
                    : packed                  ? v->residue_gflops
                                              : v->gflops;
    return gflops > 1 ? gflops : 1;
}

double sherd__devices_gflops(const sherd__devices *ds, uint32_t needs)
{
    double most = 1;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < ds->count; i++) {
        const sherd__device *v = &ds->list[i].what;
        bool runs = !ds->list[i].lost && (v->does & needs) == needs;
        if (runs && rate_of(v, needs) > most) most = rate_of(v, needs);
    }
    pthread_mutex_unlock(&lock);
    return most;
}

/* Returns the estimated time until the task would be done, in tasks of equal size; an operand that
 * the device already holds saves a quarter of a task. */
static double wait_of(const sherd__device_state *s, uint32_t needs, const sherd__block *left,
                      const sherd__block *right)
{
    double tasks = 1 + (double)s->under_way + (double)s->running;
    tasks -= 0.25 * ((find(left, s) != NULL) + (!right || find(right, s)));
    return tasks / rate_of(&s->what, needs);
}

/* What a call needs of a device, and its operands. run: the caller waits for it, and a device that
 * is full takes it, too. */
typedef struct asked {
    uint32_t needs;
    bool run;
    operands in;                     /* left NULL: a program */
    const sherd__device_state *only; /* NULL: any device */
} asked;

/* Returns the device that fits best. A program takes as long as many tasks, which wait behind it:
 * a device gets no more of them than keep it busy. */
static sherd__device_state *pick(sherd__devices *ds, const asked *what, sherd_diag *d)
{
    const sherd__block *left = what->in.left, *right = what->in.right;
    const uint32_t needs = what->needs;
    sherd__device_state *best = NULL;
    int why = SHERD_EUNSUPPORTED;
    for (uint32_t i = 0; i < ds->count; i++) {
        sherd__device_state *s = &ds->list[i];
        if ((s->what.does & needs) != needs || (what->only && what->only != s)) continue;
        bool full = !s->lost && (what->run ? !left && s->running >= s->what.depth
                                           : s->under_way >= s->what.depth);
        if (why != SHERD_EBUSY) why = full ? SHERD_EBUSY : SHERD_EDEVICE;
        if (s->lost || full) continue;
        if (!best || wait_of(s, needs, left, right) < wait_of(best, needs, left, right)) best = s;
    }
    if (!best)
        (void)sherd__fail(d, why, NULL, "%s",
                          why == SHERD_EBUSY     ? "all devices are busy"
                          : why == SHERD_EDEVICE ? "the device that computes this is lost"
                                                 : "no device of this node computes this");
    return best;
}

/* Data that are still held there take no memory, and are dropped with their blocks. */
static void lose(sherd__device_state *s)
{
    s->lost = true;
    while (s->uses.oldest) drop(s->uses.oldest);
}

/* Adds `by` to the calls that use the block by this handle, which may have been dropped since. */
static void count_use(sherd__block *b, const sherd__device_state *on, const sherd__handle *h,
                      int by)
{
    sherd__residence *r = find(b, on);
    if (!b) return;
    b->calls = (uint32_t)((int)b->calls + by);
    if (r && r->handle.id == h->id) r->calls = (uint32_t)((int)r->calls + by);
}

/* Submits the call to the device that fits best. */
static int submit(sherd__devices *ds, sherd__call *c, const asked *what, sherd__device_state **on,
                  sherd_diag *d)
{
    sherd__block *left = what->in.left, *right = what->in.right;
    const bool run = what->run;
    for (;;) {
        sherd__device_state *s = pick(ds, what, d);
        if (!s) return d->code;
        c->left = c->right = (sherd__handle){ .device = s->number };
        c->memory = left && !ds->backend->wait && left->lending ? &left->lending->from : NULL;
        c->derived[0] = c->derived[1] = 0;
        if (!left && s->what.memory && c->program->memory > s->what.memory)
            return sherd__fail(d, SHERD_EUNSUPPORTED, NULL,
                               "a program of %llu bytes for a device "
                               "of %llu",
                               (unsigned long long)c->program->memory,
                               (unsigned long long)s->what.memory);
        int err = left ? hold(ds, s, c, what->in, 0, d) : SHERD_OK;
        if (!err && right) err = hold(ds, s, c, what->in, 1, d);
        if (!err) make_room(s, left ? c->task->result.len : c->program->memory, left, right);
        if (!err) {
            err = ds->backend->submit(ds->ctx, c, d);
            for (int i = 0; i < 2; i++)
                if (c->derived[i]) grow(find(i ? right : left, s), c->derived[i]);
        }
        if (!err) {
            if (run) s->running++;
            else s->under_way++;
            count_use(left, s, &c->left, 1);
            count_use(right, s, &c->right, 1);
            *on = s;
            return SHERD_OK;
        }
        if (err == SHERD_EDEVICE) {
            lose(s);
            continue;
        }
        return err == SHERD_EBUSY && s->under_way + s->running == 0 ? SHERD_ENOMEM : err;
    }
}

static bool ended(const sherd__call *c, sherd__block *left, sherd__block *right,
                  sherd__device_state *on)
{
    count_use(left, on, &c->left, -1);
    count_use(right, on, &c->right, -1);
    if (c->err == SHERD_EDEVICE && c->lost && !on->lost) lose(on);
    if (c->err == SHERD_ENOMEM)
        while (evict(on, left, right)) {}
    return c->err == SHERD_ENOMEM || c->err == SHERD_EDEVICE;
}

int sherd__devices_submit(sherd__devices *ds, sherd__call *c, sherd__block *left,
                          sherd__block *right, sherd__device_state **on, sherd_diag *d)
{
    pthread_mutex_lock(&lock);
    const asked what = { sherd__task_needs(c->task, left->fragment), false, { left, right }, NULL };
    int err = submit(ds, c, &what, on, d);
    pthread_mutex_unlock(&lock);
    return err;
}

bool sherd__devices_done(const sherd__call *c, sherd__block *left, sherd__block *right,
                         sherd__device_state *on)
{
    pthread_mutex_lock(&lock);
    on->under_way--;
    bool again = ended(c, left, right, on);
    pthread_mutex_unlock(&lock);
    return again;
}

/* ---- calls that are waited for --------------------------------------------------------------- */

typedef struct running {
    sherd__call call; /* must be first */
    bool done;
} running;

static void on_ran(sherd__call *c)
{
    ((running *)(void *)c)->done = true;
}

static bool any_running(const sherd__devices *ds)
{
    uint32_t calls = 0;
    for (uint32_t i = 0; i < ds->count; i++) calls += ds->list[i].running;
    return calls > 0;
}

/* Waits until this call may start: no other one is to run alone, and if this one is, none is in
 * progress. The caller holds the lock. */
static void enter(sherd__devices *ds, const sherd__device_run *r)
{
    while (ds->alone && (ds->alone != r || any_running(ds))) pthread_cond_wait(&ran, &lock);
}

/* How an attempt ended: another one may succeed; its device is lost; it found no memory beside
 * others, and is to run alone. */
typedef struct outcome {
    bool again, lost, cramped;
} outcome;

/* Makes one attempt. cramped: an earlier one found no memory. */
static int run(sherd__devices *ds, const sherd__device_run *r, operands in, bool cramped,
               outcome *how, sherd_diag *d)
{
    running u = { .call = { .task = r->task,
                            .program = r->program,
                            .owner = r->owner,
                            .in_parts = cramped,
                            .out = r->out,
                            .executor = r->executor,
                            .done = on_ran } };
    sherd__device_state *on;
    const uint32_t needs = r->program ? SHERD__DOES_PROGRAMS | SHERD__DOES_F64 | SHERD__DOES_MAPS
                                      : sherd__task_needs(r->task, r->left);
    const asked what = { needs | (r->steady ? SHERD__DOES_STEADY : 0), true, in, r->only };
    *how = (outcome){ .again = false };
    pthread_mutex_lock(&lock);
    enter(ds, r);
    const bool beside = any_running(ds);
    int err = submit(ds, &u.call, &what, &on, d);
    if (err == SHERD_ENOMEM && beside) how->cramped = true;
    if (how->cramped && !ds->alone) ds->alone = r;
    pthread_mutex_unlock(&lock);
    if (err == SHERD_EBUSY) ds->backend->wait(ds->ctx, NULL);
    if (err) return err;
    while (!u.done) {
        ds->backend->wait(ds->ctx, &u.call);
        (void)sherd__executor_drain(r->executor);
    }
    pthread_mutex_lock(&lock);
    on->running--;
    how->again = ended(&u.call, in.left, in.right, on);
    how->lost = on->lost;
    how->cramped = u.call.err == SHERD_ENOMEM && ds->alone != r && (beside || any_running(ds));
    if (how->cramped && !ds->alone) ds->alone = r;
    pthread_cond_broadcast(&ran);
    pthread_mutex_unlock(&lock);
    return u.call.err ? sherd__fail(d, u.call.err, NULL, "%s", u.call.text) : SHERD_OK;
}

/* Lets others start, too. */
static void leave(sherd__devices *ds, const sherd__device_run *r)
{
    pthread_mutex_lock(&lock);
    if (ds->alone == r) {
        ds->alone = NULL;
        pthread_cond_broadcast(&ran);
    }
    pthread_mutex_unlock(&lock);
}

int sherd__devices_run(sherd__devices *ds, const sherd__device_run *r, sherd_diag *d)
{
    sherd__block left = { .fragment = r->left }, right = { .fragment = r->right };
    outcome how;
    uint32_t failures = 0;
    bool cramped = false;
    int err;
    assert(ds->backend->wait);
    do {
        if (d) *d = (sherd_diag){ .code = 0 }; /* an attempt's error is not that of the next one */
        err = run(ds, r, (operands){ r->left ? &left : NULL, r->right ? &right : NULL }, cramped,
                  &how, d);
        cramped |= err == SHERD_ENOMEM;
        failures += how.again && !how.lost && !how.cramped;
    } while (err == SHERD_EBUSY || how.cramped ||
             (err && how.again && failures <= SHERD__DEVICES_FAILURES));
    leave(ds, r);
    sherd__devices_drop(&left);
    sherd__devices_drop(&right);
    return err;
}
