/* See job_world.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "crypto/seeded.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "tests/unit/scheduler/job_world.h"

/* ---- a scheme that counts calls -------------------------------------------------------------- */

static size_t at(const fake *f, sherd__cell c)
{
    return ((size_t)c.tile * f->shape.panels + c.panel) * f->shape.slots + c.slot;
}

static void fake_shape(const void *ctx, sherd__scheme_shape *out)
{
    *out = ((const fake *)ctx)->shape;
}

static int seed_block(sherd__fragment **out, uint8_t dtype)
{
    static const uint8_t seed[SHERD__SEED_BYTES] = { 1 };
    static const uint32_t p = 251;
    const sherd__fragment_info whole = {
        .origin = SHERD__HIDDEN, .dtype = dtype, .primes = 1, .rows = 3, .cols = 3
    };
    return sherd__seeded_fragment(out, &whole, seed, dtype == SHERD__BYTES_LEFT ? 256 : 64, &p);
}

static int fake_hide(void *ctx, sherd__cell c, sherd__cell_work *out)
{
    fake *f = ctx;
    *out = (sherd__cell_work){ .empty = f->empty };
    f->hidden[at(f, c)]++;
    if (f->hide_err) return f->hide_err;
    if (f->empty) return SHERD_OK;
    sherd__fragment_info left = {
        .origin = SHERD__HIDDEN, .dtype = 1, .groups = 1, .rows = 1, .cols = 1, .len = 16
    };
    uint8_t *body = sherd__calloc(1, 16);
    if (!body) return SHERD_ENOMEM;
    sherd__put_u32(body, 1);
    sherd__put_u32(body + 4, 1);
    out->result = (sherd__fragment_info){
        .origin = SHERD__RESULT, .dtype = 1, .rows = 1, .cols = 1, .len = 8
    };
    if (f->shape.left_stays) { /* it exists */
        sherd__free(body);
        return SHERD_OK;
    }
    if (f->seeds) {
        sherd__free(body);
        return seed_block(&out->left, SHERD__BYTES_LEFT);
    }
    int err = sherd__fragment_take(&out->left, &left, body, NULL, NULL);
    if (err) sherd__free(body);
    return err;
}

static void fake_spare(void *ctx, const uint8_t *dead)
{
    ((fake *)ctx)->spared = *dead;
}

static int fill_row(void *ctx, uint64_t offset, uint8_t *out, size_t len)
{
    const fake *f = ctx;
    uint8_t table[8];
    assert_true(f->live > 0); /* no source is read after it was freed */
    sherd__put_u32(table, (uint32_t)f->resident_rows);
    sherd__put_u32(table + 4, 1);
    for (size_t i = 0; i < len; i++) out[i] = offset + i < 8 ? table[offset + i] : 0;
    return SHERD_OK;
}

static void free_row(void *ctx)
{
    ((fake *)ctx)->live--;
}

static int fake_resident(void *ctx, uint32_t slot, uint32_t tile, sherd__fragment **out)
{
    fake *f = ctx;
    (void)slot;
    (void)tile;
    sherd__fragment_info info = { .origin = SHERD__HIDDEN,
                                  .dtype = 1,
                                  .groups = 1,
                                  .rows = f->resident_rows,
                                  .cols = 1,
                                  .len = 8 + 8 * f->resident_rows };
    if (f->seeds) return seed_block(out, SHERD__BYTES_RIGHT);
    int err = sherd__fragment_new_source(out, &info,
                                         (sherd__fragment_source){ fill_row, free_row, f });
    if (!err) f->residents++, f->live++;
    return err;
}

static int fake_check(void *ctx, sherd__cell c, const uint8_t *body)
{
    double x;
    memcpy(&x, body, 8);
    if (x == UNREAD) return SHERD_EBUSY;
    return x == (double)at(ctx, c) + 1 ? SHERD_OK : SHERD_EWRONG;
}

static int fake_fold(void *ctx, sherd__cell c, const uint8_t *body)
{
    fake *f = ctx;
    size_t i = at(f, c);
    if (f->shape.ordered)
        for (size_t before = 0; before < i; before++) assert_int_equal(f->folded[before], 1);
    f->folded[i]++;
    (void)body;
    return SHERD_OK;
}

static void fake_entries(const void *ctx, sherd__cell c, uint64_t *a, uint64_t *b)
{
    (void)ctx;
    (void)c;
    *a = *b = 10;
}

static int fake_finish(void *ctx)
{
    fake *f = ctx;
    f->finished++;
    if (f->stops) sherd__job_fail(f->stops, SHERD_EINTERRUPTED, NULL, "interrupted");
    return SHERD_OK;
}

static void fake_free(void *ctx)
{
    (void)ctx;
}

static int fake_left(void *ctx, uint32_t slot, uint32_t panel, sherd__fragment **out)
{
    fake *f = ctx;
    sherd__cell_work work;
    bool stays = f->shape.left_stays;
    f->shape.left_stays = false;
    int err = fake_hide(ctx, (sherd__cell){ slot, 0, panel }, &work);
    f->shape.left_stays = stays;
    f->hidden[at(f, (sherd__cell){ slot, 0, panel })]--;
    *out = work.left;
    f->lefts++;
    return err;
}

static int fake_decode(void *ctx, uint32_t tile, uint32_t panel, const uint32_t *slots,
                       const uint8_t *const *bodies, uint32_t len)
{
    fake *f = ctx;
    assert_int_equal(len, f->shape.threshold);
    for (uint32_t i = 0; i < len; i++) {
        assert_int_equal(fake_check(ctx, (sherd__cell){ slots[i], tile, panel }, bodies[i]), 0);
        if (i > 0) assert_true(slots[i] > slots[i - 1]);
    }
    f->decoded[tile * f->shape.panels + panel]++;
    return SHERD_OK;
}

const sherd__hiding_ops fake_ops = {
    .shape = fake_shape,
    .hide = fake_hide,
    .spare = fake_spare,
    .resident = fake_resident,
    .check = fake_check,
    .fold = fake_fold,
    .entries = fake_entries,
    .finish = fake_finish,
    .free = fake_free,
    .left = fake_left,
    .decode = fake_decode,
};

/* --- nodes ----------------------------------------------------------------------------------- */

static void touch(void *ctx, uint32_t node)
{
    (void)ctx;
    (void)node;
}

static void expel(void *ctx, uint32_t node, int code, const char *why)
{
    world *w = ctx;
    w->ends[node].expelled = code;
    sherd__session_bye(w->ends[node].here, code, why);
}

static bool first_report(void *ctx, uint32_t node, uint32_t what, const char *reason)
{
    world *w = ctx;
    (void)node;
    snprintf(w->reason, sizeof w->reason, "%s", reason);
    return what & ~w->already_reported;
}

static void hear(void *ctx, sherd_log_level level, const char *text)
{
    world *w = ctx;
    size_t len = strlen(w->said);
    if (level == SHERD_LOG_DEBUG) return;
    snprintf(w->said + len, sizeof w->said - len, "%s\n", text);
}

static const char *name(void *ctx, uint32_t node)
{
    static const char *const names[] = { "node-1", "node-2", "node-3", "node-4",
                                         "node-5", "node-6", "node-7", "node-8" };
    (void)ctx;
    return names[node];
}

static void there_event(end *e, sherd__event *ev)
{
    switch (ev->kind) {
    case SHERD__EV_BLOCK:
        e->blocks++;
        assert_true(ev->block != 0);
        e->seeds += sherd__fragment_info_of(ev->fragment)->encoding == SHERD__SEED;
        sherd__fragment_free(ev->fragment);
        break;
    case SHERD__EV_DROP: e->drops++; break;
    case SHERD__EV_TASK: e->tasks[e->asked++] = ev->task; break;
    case SHERD__EV_CANCEL:
        for (size_t i = 0; i < e->asked; i++)
            if (ev->number == 0 || e->tasks[i].task == ev->number)
                e->tasks[i--] = e->tasks[--e->asked];
        break;
    default: break;
    }
}

static void here_event(world *w, uint32_t i, sherd__event *ev)
{
    end *e = &w->ends[i];
    if (ev->kind == SHERD__EV_READY) sherd__job_node_up(w->job, i, e->here, ++e->sessions, w->now);
    else if (ev->kind == SHERD__EV_RESULT || ev->kind == SHERD__EV_REFUSED)
        sherd__job_event(w->job, i, ev, w->now);
    if (!w->behind) sherd__job_pump(w->job, w->now);
}

/* Moves one offer; `to_node`: towards the node. */
size_t world_move(world *w, uint32_t i, bool to_node)
{
    end *e = &w->ends[i];
    sherd__session *from = to_node ? e->here : e->there, *to = to_node ? e->there : e->here;
    const uint8_t *out;
    size_t n = from ? sherd__session_pending(from, w->now, &out) : 0, used = 0;
    for (size_t off = 0; off < n; off += used) {
        sherd__event ev;
        (void)!sherd__session_feed(to, out + off, n - off, w->now, &used, &ev);
        if (to_node) there_event(e, &ev);
        else here_event(w, i, &ev);
    }
    if (n) sherd__session_sent(from, n);
    return n;
}

void world_settle(world *w)
{
    size_t moved;
    do {
        moved = 0;
        sherd__job_pump(w->job, w->now);
        for (uint32_t i = 0; i < w->nodes; i++)
            moved += world_move(w, i, true) + world_move(w, i, false);
    } while (moved);
}

void world_join(world *w, uint32_t i)
{
    end *e = &w->ends[i];
    sherd__session_options o = { .role = SHERD__COORDINATOR,
                                 .now_ms = w->now,
                                 .hello = { .minor_max = SHERD__MINOR } };
    assert_int_equal(sherd__session_new(&e->here, &o), SHERD_OK);
    o.role = SHERD__NODE;
    o.hello.devices_len = i < w->other ? 2 : 0;
    for (int k = 0; k < 2; k++) o.hello.devices[k].does = w->does[k];
    o.hello.features = i < w->older ? 0 : SHERD__FEATURE_WINDOWS | SHERD__FEATURE_SEEDS;
    assert_int_equal(sherd__session_new(&e->there, &o), SHERD_OK);
    e->asked = 0;
}

void world_part(world *w, uint32_t i, bool tell, bool back)
{
    end *e = &w->ends[i];
    sherd__session *here = e->here;
    e->here = NULL;
    if (tell) sherd__job_node_down(w->job, i, back, "gone", w->now);
    sherd__session_free(here);
    sherd__session_free(e->there);
    e->there = NULL;
    e->asked = 0;
}

/* Answers the oldest task of the node; `value` 0: correctly. */
void world_answer(world *w, uint32_t i, double value)
{
    end *e = &w->ends[i];
    assert_true(e->asked > 0);
    sherd__task t = e->tasks[0];
    memmove(e->tasks, e->tasks + 1, --e->asked * sizeof t);
    if (value == 0) value = t.task;
    uint8_t *body = sherd__alloc(8);
    sherd__fragment *f;
    memcpy(body, &value, 8);
    assert_int_equal(sherd__fragment_take(&f, &t.result, body, NULL, NULL), SHERD_OK);
    assert_int_equal(sherd__session_result(e->there, &t, f), SHERD_OK);
}

void world_refuse_all(world *w, uint32_t i)
{
    end *e = &w->ends[i];
    for (; e->asked; e->asked--) {
        const sherd__task *t = &e->tasks[e->asked - 1];
        sherd__refusal r = { .job = t->job,
                             .task = t->task,
                             .attempt = t->attempt,
                             .code = SHERD_EREFUSED,
                             .text = "no room" };
        assert_int_equal(sherd__session_refuse(e->there, &r), SHERD_OK);
    }
}

/* Answers everything until nothing moves any more; node `but` stays silent. */
void world_work(world *w, uint32_t but)
{
    bool more = true;
    world_settle(w);
    while (more) {
        more = false;
        for (uint32_t i = 0; i < w->nodes; i++) {
            for (; i != but && w->ends[i].asked; more = true) world_answer(w, i, 0);
        }
        world_settle(w);
    }
}

world world_of(uint32_t threshold)
{
    world w = { .scheme.shape.threshold = threshold };
    return w;
}

void world_start(world *w, uint32_t nodes, uint32_t tiles, uint32_t panels, uint32_t depth,
                 double exposure, bool strict)
{
    static const uint32_t each[NODES_MAX] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    const uint32_t *slots_domain = w->scheme.shape.threshold ? each : w->domain;
    uint32_t domains = 0;
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        if (!w->domains_set) w->domain[i] = i;
        if (w->domain[i] >= domains) domains = w->domain[i] + 1;
    }
    w->nodes = nodes;
    w->now = 1000;
    if (!w->scheme.shape.slots) w->scheme.shape.slots = nodes;
    w->scheme.shape.tiles = tiles;
    w->scheme.shape.panels = panels;
    w->scheme.shape.resident = true;
    if (!w->scheme.resident_rows) w->scheme.resident_rows = 1;
    w->hiding = (sherd__hiding){ &fake_ops, &w->scheme };
    sherd__ledger_options lo = { .hiding = &w->hiding,
                                 .domains = domains,
                                 .domain_of_slot = slots_domain,
                                 .max_fraction = exposure };
    assert_int_equal(sherd__ledger_new(&w->ledger, &lo), SHERD_OK);
    assert_int_equal(sherd__executor_new_inline(&w->executor), SHERD_OK);
    sherd__job_options jo = { .hiding = &w->hiding,
                              .ledger = w->ledger,
                              .executor = w->executor,
                              .op = SHERD__OP_MULTIPLY,
                              .needs = w->needs,
                              .id = JOB,
                              .nodes = nodes,
                              .domain = w->domain,
                              .deliveries = w->deliveries,
                              .deliveries_stride = sizeof *w->deliveries,
                              .depth = depth,
                              .return_ms = 1500,
                              .strict = strict,
                              .owner = { .touch = touch,
                                         .expel = expel,
                                         .log = hear,
                                         .name = name,
                                         .first_report = first_report,
                                         .ctx = w } };
    assert_int_equal(sherd__job_new(&w->job, &jo), SHERD_OK);
    for (uint32_t i = 0; i < nodes; i++) world_join(w, i);
}

void world_stop(world *w)
{
    sherd__job_end(w->job);
    assert_int_equal(w->scheme.live, 0); /* in all cases: nothing can read the scheme now */
    for (uint32_t i = 0; i < w->nodes; i++) {
        while (w->ends[i].here && world_move(w, i, true)) {}
        world_part(w, i, false, false);
    }
    sherd__job_free(w->job);
    sherd__executor_free(w->executor);
    sherd__ledger_free(w->ledger);
}

void world_must_be_done(world *w, int want)
{
    int err = 1;
    sherd_diag d = { 0 };
    if (!sherd__job_done(w->job, &err, &d)) fail_msg("not done");
    if (err != want) fail_msg("%s: %s", sherd_err_name(err), d.message);
    if (want) return;
    const sherd__scheme_shape *s = &w->scheme.shape;
    for (size_t i = 0; s->threshold && i < (size_t)s->tiles * s->panels; i++)
        assert_int_equal(w->scheme.decoded[i], 1);
    for (size_t i = 0;
         !s->threshold && i < (size_t)w->nodes * w->scheme.shape.tiles * w->scheme.shape.panels;
         i++)
        assert_int_equal(w->scheme.folded[i], 1);
    assert_int_equal(w->scheme.finished, 1);
}

bool world_is_done(world *w)
{
    int err;
    return sherd__job_done(w->job, &err, NULL);
}

size_t world_asked(const world *w)
{
    size_t n = 0;
    for (uint32_t i = 0; i < w->nodes; i++) n += w->ends[i].asked;
    return n;
}
