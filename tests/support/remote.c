/* See remote.h. */
#include "tests/support/remote.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/diag.h"
#include "core/rand.h"
#include "matrix/tiled.h"

#define LINE 64u
#define FREED 0xDD /* what overwritten memory holds */
#define CALLS_MAX 64u

/* A piece of a device's memory. */
typedef struct piece {
    size_t at, len;
    struct piece *next; /* in ascending order of `at` */
} piece;

typedef struct device {
    int file;
    uint8_t *host; /* the host's mapping: pages without access */
    uint8_t *own;  /* the device's mapping of the same pages; NULL: the device is lost */
    piece *pieces;
} device;

/* A block that is held, or that was dropped while a call still uses it. */
typedef struct block {
    const sherd__fragment *from;
    device *on;
    uint32_t number;
    piece *where;
    uint64_t id, owner;
    bool copied, dropped;
    uint32_t calls;
    struct block *next;
} block;

typedef struct under_way {
    sherd__call *call;
    block *left, *right;
    device *on;
    uint64_t due, nth;
} under_way;

typedef struct remote {
    remote_options o;
    sherd__seeded state;
    sherd__entropy rng;
    sherd__device list[4];
    device devices[4];
    block *blocks;
    under_way calls[CALLS_MAX];
    uint32_t calls_len;
    uint64_t turn, busy_turns, last_done;
    remote_stats stats;
} remote;

static uint64_t below(remote *r, uint64_t n)
{
    return sherd__entropy_below(&r->rng, n);
}

/* ---- a device's memory ----------------------------------------------------------------------- */

static size_t lines(size_t len)
{
    return (len + LINE) / LINE * LINE; /* one more line than needed, so that empty pieces have
                                        * distinct addresses, too */
}

static piece *take(remote *r, device *v, size_t len)
{
    piece **at = &v->pieces;
    size_t from = 0;
    for (; *at && (*at)->at - from < lines(len); at = &(*at)->next) from = (*at)->at + (*at)->len;
    if (r->o.memory - from < lines(len)) return NULL;
    piece *p = calloc(1, sizeof *p);
    if (!p) abort();
    *p = (piece){ from, lines(len), *at };
    *at = p;
    return p;
}

static void give(device *v, piece *p)
{
    piece **at = &v->pieces;
    while (*at != p) at = &(*at)->next;
    *at = p->next;
    if (v->own) memset(v->own + p->at, FREED, p->len);
    free(p);
}

bool remote_is_clean(const void *ctx)
{
    const remote *r = ctx;
    for (uint32_t i = 0; i < r->o.devices; i++) {
        const device *v = &r->devices[i];
        const piece *p = v->pieces;
        for (size_t at = 0; v->own && at < r->o.memory; at++) {
            if (p && at == p->at) {
                at += p->len - 1;
                p = p->next;
            } else if (v->own[at] != FREED) {
                return false;
            }
        }
    }
    return true;
}

static void map(const remote *r, device *v)
{
    v->file = memfd_create("device", 0);
    if (v->file < 0 || ftruncate(v->file, (off_t)r->o.memory)) abort();
    v->host = mmap(NULL, r->o.memory, PROT_NONE, MAP_SHARED, v->file, 0);
    v->own = mmap(NULL, r->o.memory, PROT_READ | PROT_WRITE, MAP_SHARED, v->file, 0);
    if (v->host == MAP_FAILED || v->own == MAP_FAILED) abort();
    memset(v->own, FREED, r->o.memory);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static block *find(const remote *r, const sherd__handle *h)
{
    block *b = r->blocks;
    while (b && (b->dropped || b->id != h->id || b->number != h->device)) b = b->next;
    return b;
}

static void release(remote *r, block *b)
{
    if (!b || !b->dropped || b->calls) return;
    block **at = &r->blocks;
    while (*at != b) at = &(*at)->next;
    *at = b->next;
    give(b->on, b->where);
    free(b);
}

static void copy(block *b)
{
    if (!b || b->copied || sherd__fragment_settle(b->from)) return;
    memcpy(b->on->own + b->where->at, sherd__fragment_bytes(b->from),
           sherd__fragment_info_of(b->from)->len);
    b->copied = true;
}

static int remote_hold(void *ctx, uint32_t number, const sherd__fragment *f, uint64_t owner,
                       sherd__handle *out, sherd_diag *d)
{
    remote *r = ctx;
    device *v = &r->devices[number];
    const sherd__fragment_info *i = sherd__fragment_info_of(f);
    if (!v->own) return sherd__fail(d, SHERD_EDEVICE, NULL, "device %u is lost", number);
    piece *where = r->o.full_in && below(r, r->o.full_in) == 0 ? NULL : take(r, v, i->len);
    if (!where) {
        r->stats.full++;
        return sherd__fail(d, SHERD_ENOMEM, NULL, "no room on device %u", number);
    }
    block *b = calloc(1, sizeof *b);
    if (!b) abort();
    *b = (block){ .from = f,
                  .on = v,
                  .number = number,
                  .where = where,
                  .owner = owner,
                  .id = (uintptr_t)(v->host + where->at),
                  .next = r->blocks };
    r->blocks = b;
    r->stats.holds++;
    if (below(r, 2)) copy(b); /* otherwise with the first call */
    *out = (sherd__handle){ b->id, owner, number, i->dtype, i->primes, i->encoding };
    return SHERD_OK;
}

static void remote_drop(void *ctx, const sherd__handle *h)
{
    remote *r = ctx;
    block *b = find(r, h);
    if (!b) abort();
    r->stats.drops++;
    r->stats.dropped_in_use += b->calls > 0;
    b->dropped = true;
    release(r, b);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int remote_submit(void *ctx, sherd__call *c, sherd_diag *d)
{
    remote *r = ctx;
    block *left = find(r, &c->left), *right = c->right.id ? find(r, &c->right) : NULL;
    uint32_t under_way_here = 0;
    if (!left || (c->right.id && !right) || left->owner != c->owner ||
        (right && (right->owner != c->owner || right->on != left->on)))
        return sherd__fail(d, SHERD_EINVAL, NULL, "a block of another session or device");
    if (!left->on->own) return sherd__fail(d, SHERD_EDEVICE, NULL, "the device is lost");
    for (uint32_t i = 0; i < r->calls_len; i++) under_way_here += r->calls[i].on == left->on;
    if (under_way_here >= r->o.depth)
        return sherd__fail(d, SHERD_EBUSY, NULL, "%u calls are under way", under_way_here);
    memset(c->out, 0xA5, c->task->result.len); /* the result must not be visible before done */
    r->stats.lent += c->memory != NULL;
    c->lost = false;
    c->took_us = 0;
    memset(c->text, 0, sizeof c->text);
    atomic_init(&c->cancelled, false);
    left->calls++;
    if (right) right->calls++;
    r->calls[r->calls_len++] = (under_way){
        c, left, right, left->on, r->turn + 1 + below(r, r->o.late), ++r->stats.calls
    };
    if (r->calls_len > r->stats.most) r->stats.most = r->calls_len;
    sherd__executor_expect(c->executor);
    return SHERD_OK;
}

static void remote_cancel(void *ctx, sherd__call *c)
{
    (void)ctx;
    atomic_store(&c->cancelled, true);
}

static void keep(void *ctx, uint8_t *bytes, uint64_t len)
{
    (void)ctx, (void)bytes, (void)len;
}

/* Returns NULL without memory. */
static sherd__fragment *view(const block *b)
{
    sherd__fragment *f = NULL;
    const sherd__fragment_info *i = sherd__fragment_info_of(b->from);
    return sherd__fragment_take(&f, i, b->on->own + b->where->at, keep, NULL) ? NULL : f;
}

/* Products in float64 are computed as the host computes them in passes of training: each number
 * independently of the others, as SHERD__DOES_STEADY requires. */
static bool is_plain(const sherd__task *t, const block *left, const block *right)
{
    const sherd__fragment_info *a = sherd__fragment_info_of(left->from);
    const sherd__fragment_info *b = right ? sherd__fragment_info_of(right->from) : NULL;
    return b && t->op == SHERD__OP_MULTIPLY && t->result.dtype == SHERD_F64 &&
           a->dtype == SHERD_F64 && b->dtype == SHERD_F64 && a->encoding == SHERD__DENSE &&
           !a->groups && !b->groups && a->cols && t->result.len;
}

static int compute_plain(const under_way *u, uint8_t *out)
{
    static sherd__tiled_room room;
    const sherd__fragment_info *a = sherd__fragment_info_of(u->left->from);
    const sherd__fragment_info *b = sherd__fragment_info_of(u->right->from);
    sherd__tiled p = { .type = SHERD_F64, .c = out, .ldc = b->cols };
    p.a = sherd_view_c(u->left->on->own + u->left->where->at, SHERD_F64, a->rows, a->cols);
    p.b = sherd_view_c(u->right->on->own + u->right->where->at, SHERD_F64, b->rows, b->cols);
    int err = sherd__tiled_multiply(&p, NULL, &room);
    sherd__tiled_room_fini(&room);
    return err;
}

/* Operands are in the device's memory; only the result is written to the caller's memory. */
static int compute(remote *r, const under_way *u, sherd_diag *d)
{
    const sherd__task *t = u->call->task;
    piece *out = r->o.full_in && below(r, r->o.full_in) == 0 ? NULL : take(r, u->on, t->result.len);
    if (!out) {
        r->stats.full++;
        return sherd__fail(d, SHERD_ENOMEM, NULL, "no room for the result");
    }
    copy(u->left);
    copy(u->right);
    sherd__fragment *left = view(u->left), *right = u->right ? view(u->right) : NULL;
    sherd__call inner = { .task = t, .out = u->on->own + out->at };
    int err = SHERD_ENOMEM;
    if (is_plain(t, u->left, u->right)) err = compute_plain(u, inner.out);
    else if (left && (right || !u->right))
        err = sherd__backend_cpu.compute(r->o.cpu, &inner, left, right, d);
    if (!err) memcpy(u->call->out, inner.out, t->result.len);
    sherd__fragment_free(left);
    sherd__fragment_free(right);
    give(u->on, out);
    return err;
}

static void end(sherd__executor_item *work)
{
    sherd__call *c = (sherd__call *)(void *)((char *)work - offsetof(sherd__call, work));
    c->done(c);
}

/* Ends the call; its done runs with the next drain. */
static void finish(remote *r, uint32_t i, int err, const char *text)
{
    under_way u = r->calls[i];
    r->calls[i] = r->calls[--r->calls_len];
    r->stats.overtaken += u.nth < r->last_done;
    r->last_done = u.nth;
    u.call->err = err;
    memcpy(u.call->text, text, strnlen(text, sizeof u.call->text - 1)); /* padded with zeros */
    u.call->lost = err == SHERD_EDEVICE && !u.on->own;
    r->stats.lost += u.call->lost;
    u.left->calls--;
    if (u.right) u.right->calls--;
    release(r, u.left);
    if (u.right != u.left) release(r, u.right);
    u.call->work = (sherd__executor_item){ .done = end };
    sherd__executor_finish(u.call->executor, &u.call->work);
}

static void answer(remote *r, uint32_t i)
{
    const under_way *u = &r->calls[i];
    sherd_diag d = { .code = 0 };
    int err;
    if (!u->on->own) {
        err = sherd__fail(&d, SHERD_EDEVICE, NULL, "the device is lost");
    } else if (atomic_load(&u->call->cancelled) && below(r, 4)) {
        r->stats.cancelled++;
        err = SHERD_EINTERRUPTED;
    } else if (r->o.fail_in && below(r, r->o.fail_in) == 0) {
        r->stats.failed++;
        err = sherd__fail(&d, SHERD_EDEVICE, NULL, "the device failed");
    } else {
        err = compute(r, u, &d);
    }
    r->stats.dones += !err;
    finish(r, i, err, d.message);
}

static void die(device *v, size_t memory)
{
    if (v->own && munmap(v->own, memory)) abort();
    v->own = NULL;
}

/* A result arrives in any order and at any time: until done, the caller's memory holds anything. */
static void arrive(remote *r, const sherd__call *c)
{
    uint64_t len = c->task->result.len;
    if (len) c->out[below(r, len)] = (uint8_t)r->turn;
}

bool remote_turn(void *ctx)
{
    remote *r = ctx;
    r->turn++;
    if (r->calls_len && ++r->busy_turns == r->o.dies_at)
        for (uint32_t i = 0; i < (r->o.all_die ? r->o.devices : 1); i++)
            die(&r->devices[i], r->o.memory);
    for (uint32_t i = 0; i < r->calls_len;) {
        const under_way *u = &r->calls[i];
        bool early = atomic_load(&u->call->cancelled) && below(r, 2);
        arrive(r, u->call);
        if (u->due <= r->turn || early) answer(r, i);
        else i++;
    }
    return r->calls_len > 0;
}

static bool is_under_way(const remote *r, const sherd__call *c)
{
    for (uint32_t i = 0; i < r->calls_len; i++)
        if (r->calls[i].call == c) return true;
    return false;
}

static void remote_wait(void *ctx, const sherd__call *c)
{
    remote *r = ctx;
    uint32_t at_first = r->calls_len;
    while (c ? is_under_way(r, c) : r->calls_len && r->calls_len == at_first) {
        r->stats.waits++;
        (void)remote_turn(r);
    }
}

/* ---- opening and closing --------------------------------------------------------------------- */

int remote_open(void **ctx, const remote_options *o)
{
    remote *r = *ctx = calloc(1, sizeof *r);
    if (!r) abort();
    r->o = *o;
    if (!r->o.devices) r->o.devices = 1;
    if (!r->o.memory) r->o.memory = (size_t)16 << 20;
    if (!r->o.depth) r->o.depth = 4;
    if (!r->o.late) r->o.late = 1;
    r->rng = sherd__entropy_seeded(&r->state, o->seed);
    for (uint32_t i = 0; i < r->o.devices; i++) {
        map(r, &r->devices[i]);
        r->list[i] = (sherd__device){ .name = "remote",
                                      .core = "test",
                                      .threads = 1,
                                      .does = SHERD__DOES_ALL | SHERD__DOES_STEADY,
                                      .gflops = 1,
                                      .cell = 1 << 16,
                                      .memory = o->stated ? o->stated : r->o.memory,
                                      .depth = r->o.depth };
    }
    return SHERD_OK;
}

static void *cpu_of_all; /* for open without options */

static int open_plain(void **ctx, const sherd__backend_options *opt, sherd_diag *d)
{
    int err = cpu_of_all ? SHERD_OK : sherd__backend_cpu.open(&cpu_of_all, opt, d);
    if (err) return err;
    return remote_open(ctx,
                       &(remote_options){
                           .seed = 1, .late = 5, .cpu = cpu_of_all, .memory = (size_t)64 << 20 });
}

static const sherd__device *remote_devices(void *ctx, uint32_t *count)
{
    const remote *r = ctx;
    *count = r->o.devices;
    return r->list;
}

static void remote_close(void *ctx)
{
    remote *r = ctx;
    if (r->blocks || r->calls_len) abort();
    for (uint32_t i = 0; i < r->o.devices; i++) {
        device *v = &r->devices[i];
        if (munmap(v->host, r->o.memory)) abort();
        die(v, r->o.memory);
        close(v->file);
    }
    if (cpu_of_all && r->o.cpu == cpu_of_all) {
        sherd__backend_cpu.close(cpu_of_all);
        cpu_of_all = NULL;
    }
    free(r);
}

const remote_stats *remote_stats_of(const void *ctx)
{
    return &((const remote *)ctx)->stats;
}

const sherd__backend remote_backend = {
    .abi = SHERD__BACKEND_ABI,
    .name = "remote",
    .open = open_plain,
    .devices = remote_devices,
    .hold = remote_hold,
    .drop = remote_drop,
    .submit = remote_submit,
    .cancel = remote_cancel,
    .wait = remote_wait,
    .close = remote_close,
};
