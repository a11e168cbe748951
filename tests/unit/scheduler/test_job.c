/*
 * The job's state machine between a scheme that only counts and real sessions in memory, whose other
 * ends do what each test wants: what the simulation's random schedules meet rarely or never.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "crypto/fragment_make.h"
#include "scheduler/job.h"
#include "scheduler/job_internal.h"

#define NODES_MAX 4u
#define CELLS_MAX 64u
#define JOB 0x77u

/* --- a scheme that counts -------------------------------------------------------------------- */

typedef struct fake {
    sherd__scheme_shape shape;
    unsigned hidden[CELLS_MAX], folded[CELLS_MAX], finished;
    uint64_t resident_rows;
    unsigned residents, live; /* resident sources made, and not yet freed */
    int hide_err;
    bool empty;               /* every cell is */
} fake;

static size_t at(const fake *f, sherd__cell c)
{
    return ((size_t)c.tile * f->shape.panels + c.panel) * f->shape.slots + c.slot;
}

static void fake_shape(const void *ctx, sherd__scheme_shape *out)
{
    *out = ((const fake *)ctx)->shape;
}

static int fake_hide(void *ctx, sherd__cell c, sherd__cell_work *out)
{
    fake *f = ctx;
    *out = (sherd__cell_work){ .empty = f->empty };
    f->hidden[at(f, c)]++;
    if (f->hide_err) return f->hide_err;
    if (f->empty) return SHERD_OK;
    sherd__fragment_info left = { .origin = SHERD__HIDDEN, .dtype = 1, .groups = 1, .rows = 1,
                                  .cols = 1, .len = 16 };
    uint8_t *body = sherd__calloc(1, 16);
    if (!body) return SHERD_ENOMEM;
    sherd__put_u32(body, 1);
    sherd__put_u32(body + 4, 1);
    out->result = (sherd__fragment_info){ .origin = SHERD__RESULT, .dtype = 1, .rows = 1, .cols = 1,
                                          .len = 8 };
    int err = sherd__fragment_take(&out->left, &left, body, NULL, NULL);
    if (err) sherd__free(body);
    return err;
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

static int fake_resident(void *ctx, uint32_t slot, uint32_t tile, sherd_fragment **out)
{
    fake *f = ctx;
    (void)slot;
    (void)tile;
    sherd__fragment_info info = { .origin = SHERD__HIDDEN, .dtype = 1, .groups = 1,
                                  .rows = f->resident_rows, .cols = 1,
                                  .len = 8 + 8 * f->resident_rows };
    int err = sherd__fragment_new_source(out, &info,
                                         (sherd__fragment_source){ fill_row, free_row, f });
    if (!err) f->residents++, f->live++;
    return err;
}

static int fake_check(void *ctx, sherd__cell c, const uint8_t *body)
{
    double x;
    memcpy(&x, body, 8);
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
    ((fake *)ctx)->finished++;
    return SHERD_OK;
}

static void fake_free(void *ctx)
{
    (void)ctx;
}

static const sherd__scheme fake_ops = {
    .abi = SHERD__SCHEME_ABI, .name = "fake", .shape = fake_shape, .hide = fake_hide,
    .resident = fake_resident, .check = fake_check, .fold = fake_fold, .entries = fake_entries,
    .finish = fake_finish, .free = fake_free,
};

/* --- nodes ----------------------------------------------------------------------------------- */

typedef struct end {
    sherd_session *here, *there;
    uint64_t sessions;
    sherd__task tasks[CELLS_MAX]; /* asked and not answered */
    size_t asked;
    unsigned blocks, drops;
    int expelled;
} end;

typedef struct world {
    fake scheme;
    sherd__hiding hiding;
    sherd_ledger *ledger;
    sherd_executor *executor;
    sherd_job *job;
    end ends[NODES_MAX];
    uint32_t nodes;
    uint64_t now;
    bool behind; /* the executor is: several answers come before one is judged */
    char said[4096];
} world;

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

static void hear(void *ctx, sherd_log_level level, const char *text)
{
    world *w = ctx;
    size_t len = strlen(w->said);
    (void)level;
    snprintf(w->said + len, sizeof w->said - len, "%s\n", text);
}

static const char *name(void *ctx, uint32_t node)
{
    static const char *const names[] = { "node-1", "node-2", "node-3", "node-4" };
    (void)ctx;
    return names[node];
}

static void there_event(end *e, sherd__event *ev)
{
    switch (ev->kind) {
    case SHERD__EV_BLOCK:
        e->blocks++;
        assert_true(ev->block != 0);
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
    if (ev->kind == SHERD__EV_READY)
        sherd__job_node_up(w->job, i, e->here, ++e->sessions, w->now);
    else if (ev->kind == SHERD__EV_RESULT || ev->kind == SHERD__EV_REFUSED)
        sherd__job_event(w->job, i, ev, w->now);
    if (!w->behind) sherd__job_pump(w->job, w->now);
}

/* Moves one offer; `to_node`: towards the node. */
static size_t move(world *w, uint32_t i, bool to_node)
{
    end *e = &w->ends[i];
    sherd_session *from = to_node ? e->here : e->there, *to = to_node ? e->there : e->here;
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

static void settle(world *w)
{
    size_t moved;
    do {
        moved = 0;
        sherd__job_pump(w->job, w->now);
        for (uint32_t i = 0; i < w->nodes; i++) moved += move(w, i, true) + move(w, i, false);
    } while (moved);
}

static void join(world *w, uint32_t i)
{
    end *e = &w->ends[i];
    sherd__session_options o = { .role = SHERD__COORDINATOR, .now_ms = w->now };
    assert_int_equal(sherd__session_new(&e->here, &o), SHERD_OK);
    o.role = SHERD__NODE;
    assert_int_equal(sherd__session_new(&e->there, &o), SHERD_OK);
    e->asked = 0;
}

static void part(world *w, uint32_t i, bool tell, bool back)
{
    end *e = &w->ends[i];
    sherd_session *here = e->here;
    e->here = NULL;
    if (tell) sherd__job_node_down(w->job, i, back, "gone", w->now);
    sherd__session_free(here);
    sherd__session_free(e->there);
    e->there = NULL;
    e->asked = 0;
}

/* The node answers its oldest task; `value` 0: rightly. */
static void answer(world *w, uint32_t i, double value)
{
    end *e = &w->ends[i];
    assert_true(e->asked > 0);
    sherd__task t = e->tasks[0];
    memmove(e->tasks, e->tasks + 1, --e->asked * sizeof t);
    if (value == 0) value = t.task;
    uint8_t *body = sherd__alloc(8);
    sherd_fragment *f;
    memcpy(body, &value, 8);
    assert_int_equal(sherd__fragment_take(&f, &t.result, body, NULL, NULL), SHERD_OK);
    assert_int_equal(sherd__session_result(e->there, &t, f), SHERD_OK);
}

static void refuse_all(world *w, uint32_t i)
{
    end *e = &w->ends[i];
    for (; e->asked; e->asked--) {
        const sherd__task *t = &e->tasks[e->asked - 1];
        sherd__refusal r = { .job = t->job, .task = t->task, .attempt = t->attempt,
                             .code = SHERD_EREFUSED, .text = "no room" };
        assert_int_equal(sherd__session_refuse(e->there, &r), SHERD_OK);
    }
}

/* Answers everything until nothing moves any more; node `but` stays silent. */
static void work(world *w, uint32_t but)
{
    bool more = true;
    settle(w);
    while (more) {
        more = false;
        for (uint32_t i = 0; i < w->nodes; i++) {
            for (; i != but && w->ends[i].asked; more = true) answer(w, i, 0);
        }
        settle(w);
    }
}

static void start(world *w, uint32_t nodes, uint32_t tiles, uint32_t panels, uint32_t depth,
                  double exposure, bool strict)
{
    static uint32_t domain[NODES_MAX] = { 0, 1, 2, 3 };
    w->nodes = nodes;
    w->now = 1000;
    w->scheme.shape.slots = nodes;
    w->scheme.shape.tiles = tiles;
    w->scheme.shape.panels = panels;
    w->scheme.shape.resident = true;
    if (!w->scheme.resident_rows) w->scheme.resident_rows = 1;
    w->hiding = (sherd__hiding){ &fake_ops, &w->scheme };
    sherd__ledger_options lo = { .hiding = &w->hiding, .domains = NODES_MAX, .domain_of_slot = domain,
                                 .max_fraction = exposure };
    assert_int_equal(sherd__ledger_new(&w->ledger, &lo), SHERD_OK);
    assert_int_equal(sherd__executor_new_inline(&w->executor), SHERD_OK);
    sherd__job_options jo = { .hiding = &w->hiding, .ledger = w->ledger, .executor = w->executor,
                              .op = SHERD__OP_MULTIPLY, .id = JOB, .nodes = nodes, .domain = domain,
                              .depth = depth, .return_ms = 1500, .strict = strict,
                              .owner = { touch, expel, hear, name, w } };
    assert_int_equal(sherd__job_new(&w->job, &jo), SHERD_OK);
    for (uint32_t i = 0; i < nodes; i++) join(w, i);
}

static void stop(world *w)
{
    sherd__job_end(w->job);
    assert_int_equal(w->scheme.live, 0); /* whatever happened: nothing can read the scheme now */
    for (uint32_t i = 0; i < w->nodes; i++) {
        while (w->ends[i].here && move(w, i, true)) {}
        part(w, i, false, false);
    }
    sherd__job_free(w->job);
    sherd__executor_free(w->executor);
    sherd__ledger_free(w->ledger);
}

static void must_be_done(world *w, int want)
{
    int err = 1;
    sherd_diag d = { 0 };
    if (!sherd__job_done(w->job, &err, &d)) fail_msg("not done");
    if (err != want) fail_msg("%s: %s", sherd_err_name(err), d.message);
    if (want) return;
    for (size_t i = 0; i < (size_t)w->nodes * w->scheme.shape.tiles * w->scheme.shape.panels; i++)
        assert_int_equal(w->scheme.folded[i], 1);
    assert_int_equal(w->scheme.finished, 1);
}

static bool is_done(world *w)
{
    int err;
    return sherd__job_done(w->job, &err, NULL);
}

/* --- tests ----------------------------------------------------------------------------------- */

static void every_cell_is_folded_once_and_a_resident_block_is_sent_once(void **state)
{
    (void)state;
    for (int ordered = 0; ordered < 2; ordered++) {
        world w = { .scheme.shape.ordered = ordered };
        start(&w, 3, 2, 4, 2, 0, false);
        work(&w, NOBODY);
        must_be_done(&w, SHERD_OK);
        assert_int_equal(w.scheme.residents, 3 * 2);
        assert_int_equal(sherd__job_node_tasks(w.job, 0), 2 * 4);
        stop(&w);
    }
}

static void a_job_without_work_is_done_at_once(void **state)
{
    (void)state;
    world none = { 0 }, empty = { .scheme.empty = true };
    start(&none, 2, 1, 0, 2, 0, false);
    settle(&none);
    must_be_done(&none, SHERD_OK);
    stop(&none);
    start(&empty, 2, 2, 3, 2, 0, false);
    settle(&empty);
    must_be_done(&empty, SHERD_OK);
    assert_int_equal(empty.scheme.residents, 0); /* nothing travels for nothing */
    stop(&empty);
}

static void again(world *w)
{
    sherd__job_rest(w->job);
    memset(w->scheme.folded, 0, sizeof w->scheme.folded);
    w->scheme.finished = 0;
    assert_int_equal(sherd__job_again(w->job), SHERD_OK);
}

static void resident_blocks_serve_the_next_run_of_the_same_session_only(void **state)
{
    (void)state;
    world w = { 0 };
    start(&w, 3, 1, 3, 2, 0, false);
    work(&w, NOBODY);
    must_be_done(&w, SHERD_OK);
    assert_int_equal(w.scheme.residents, 3);

    again(&w); /* all sessions live on */
    for (uint32_t i = 0; i < 3; i++)
        sherd__job_node_up(w.job, i, w.ends[i].here, w.ends[i].sessions, w.now);
    work(&w, NOBODY);
    must_be_done(&w, SHERD_OK);
    assert_int_equal(w.scheme.residents, 3);

    sherd__job_rest(w.job);
    part(&w, 1, false, true); /* a session ends between two runs, and the job is not told */
    join(&w, 1);
    again(&w);
    sherd__job_node_up(w.job, 0, w.ends[0].here, w.ends[0].sessions, w.now);
    sherd__job_node_up(w.job, 2, w.ends[2].here, w.ends[2].sessions, w.now);
    work(&w, NOBODY);
    must_be_done(&w, SHERD_OK);
    assert_int_equal(w.scheme.residents, 4);
    assert_int_equal(sherd__job_node_tasks(w.job, 1), 3); /* its own work, by itself */
    stop(&w);
}

static void a_run_that_failed_is_not_run_again(void **state)
{
    (void)state;
    world w = { 0 };
    start(&w, 2, 1, 2, 2, 0, false);
    settle(&w);
    assert_int_equal(sherd__job_again(w.job), SHERD_EINVAL); /* under way */
    sherd__job_fail(w.job, SHERD_EINTERRUPTED, NULL, "interrupted");
    must_be_done(&w, SHERD_EINTERRUPTED);
    assert_int_equal(sherd__job_again(w.job), SHERD_EINVAL);
    stop(&w);
}

static void a_job_that_ends_in_the_middle_of_a_block_lets_go_of_its_source(void **state)
{
    (void)state;
    for (unsigned moves = 0; moves < 4; moves++) {
        world w = { .scheme.resident_rows = 200000 };
        start(&w, 2, 1, 2, 2, 0, false);
        for (unsigned i = 0; i < 2; i++) {
            move(&w, i, true);
            move(&w, i, false);
        }
        for (unsigned i = 0; i < moves; i++) move(&w, 0, true);
        assert_true(w.scheme.live > 0);
        sherd__job_fail(w.job, SHERD_ETIMEOUT, NULL, "the time given is over");
        stop(&w);
    }
}

static void answers_and_refusals_of_another_job_change_nothing(void **state)
{
    (void)state;
    world w = { 0 };
    start(&w, 2, 1, 2, 2, 0, false);
    settle(&w);
    sherd__event e = { .kind = SHERD__EV_REFUSED, .job = JOB + 1,
                       .refusal = { .job = JOB + 1, .task = 1, .attempt = w.ends[0].tasks[0].attempt } };
    for (unsigned i = 0; i < 20; i++) sherd__job_event(w.job, 0, &e, w.now);
    e = (sherd__event){ .kind = SHERD__EV_RESULT, .job = JOB + 1, .task = w.ends[0].tasks[0] };
    sherd__fragment_info info = e.task.result;
    uint8_t *body = sherd__calloc(1, 8);
    assert_int_equal(sherd__fragment_take(&e.fragment, &info, body, NULL, NULL), SHERD_OK);
    sherd__job_event(w.job, 0, &e, w.now);
    assert_null(e.fragment);
    work(&w, NOBODY);
    must_be_done(&w, SHERD_OK);
    assert_string_equal(w.said, "");
    sherd__job_stats stats;
    sherd__job_count(w.job, &stats);
    assert_int_equal(stats.repeated, 0);
    stop(&w);
}

static void a_burst_of_refusals_makes_a_node_slower_and_does_not_expel_it(void **state)
{
    (void)state;
    world w = { 0 };
    start(&w, 1, 1, 32, 16, 1, false);
    settle(&w);
    assert_int_equal(w.ends[0].asked, 16);
    for (size_t most = 8; most >= 1; most /= 2) {
        refuse_all(&w, 0);
        settle(&w);
        assert_int_equal(w.ends[0].asked, most);
    }
    work(&w, NOBODY); /* it has room for one at a time */
    must_be_done(&w, SHERD_OK);
    stop(&w);
}

static void a_node_that_refuses_everything_is_left_and_its_blocks_are_taken_back(void **state)
{
    (void)state;
    world w = { 0 };
    start(&w, 2, 1, 3, 4, 1, false);
    settle(&w);
    for (unsigned i = 0; i < 12 && !strstr(w.said, "refuses its work"); i++) {
        refuse_all(&w, 0);
        settle(&w);
    }
    assert_non_null(strstr(w.said, "node-1 refuses its work (no room)"));
    assert_true(w.ends[0].drops > 0);
    work(&w, 0);
    must_be_done(&w, SHERD_OK);
    assert_int_equal(sherd__job_node_tasks(w.job, 1), 6);
    stop(&w);
}

static void a_refused_resident_block_is_sent_again(void **state)
{
    (void)state;
    world w = { 0 };
    start(&w, 1, 1, 2, 1, 1, false);
    settle(&w);
    sherd__event e = { .kind = SHERD__EV_REFUSED, .job = JOB,
                       .refusal = { .job = JOB, .block = 1, .code = SHERD_EREFUSED } };
    sherd__job_event(w.job, 0, &e, w.now);
    refuse_all(&w, 0); /* what needed it */
    settle(&w);
    assert_int_equal(w.scheme.residents, 2);
    work(&w, NOBODY);
    must_be_done(&w, SHERD_OK);
    stop(&w);
}

static void a_node_that_comes_back_in_time_keeps_its_work(void **state)
{
    (void)state;
    world w = { 0 };
    start(&w, 3, 1, 3, 1, 0, false);
    settle(&w);
    part(&w, 2, true, true);
    work(&w, NOBODY);
    assert_false(is_done(&w));
    w.now += 1400;
    sherd__job_tick(w.job, w.now);
    join(&w, 2);
    work(&w, NOBODY);
    must_be_done(&w, SHERD_OK);
    assert_int_equal(sherd__job_node_tasks(w.job, 2), 3);
    assert_null(strstr(w.said, "takes over"));
    stop(&w);
}

static void a_node_that_does_not_come_back_is_replaced_as_far_as_the_ledger_allows(void **state)
{
    (void)state;
    for (int allowed = 0; allowed < 2; allowed++) {
        world w = { 0 };
        start(&w, 3, 1, 3, 1, allowed ? 0.67 : 0.34, false);
        settle(&w);
        part(&w, 2, true, true);
        work(&w, NOBODY);
        w.now += 1600;
        sherd__job_tick(w.job, w.now);
        work(&w, NOBODY);
        must_be_done(&w, allowed ? SHERD_OK : SHERD_EEXPOSURE);
        assert_true(!!strstr(w.said, "takes over from node-3") == allowed);
        stop(&w);
    }
}

static void what_would_break_the_bound_is_not_sent_whatever_the_plan(void **state)
{
    (void)state;
    world w = { 0 };
    start(&w, 3, 1, 1, 1, 0.2, false); /* a third each is planned */
    settle(&w);
    must_be_done(&w, SHERD_EEXPOSURE);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(w.ends[i].blocks + w.ends[i].asked, 0);
    stop(&w);
}

static void without_any_node_the_job_ends(void **state)
{
    (void)state;
    world w = { 0 };
    start(&w, 2, 1, 2, 1, 1, false);
    settle(&w);
    part(&w, 0, true, false);
    part(&w, 1, true, false);
    must_be_done(&w, SHERD_EFEWNODES);
    stop(&w);
}

static void a_node_that_answers_no_task_is_expelled(void **state)
{
    (void)state;
    world w = { 0 };
    char text[200];
    start(&w, 2, 1, 2, 1, 1, false);
    work(&w, 1);
    w.now += 9000;
    sherd__job_tick(w.job, w.now);
    sherd__job_waiting(w.job, w.now, text, sizeof text);
    assert_non_null(strstr(text, "waiting 9 s for node-2"));
    assert_int_equal(w.ends[1].expelled, 0);
    w.now += 1100;
    sherd__job_tick(w.job, w.now);
    assert_int_equal(w.ends[1].expelled, SHERD_ESILENT);
    work(&w, 1);
    must_be_done(&w, SHERD_OK);
    stop(&w);
}

static void slow_answers_buy_a_silent_node_a_minute_at_most(void **state)
{
    (void)state;
    world w = { 0 };
    start(&w, 2, 1, 2, 1, 1, false);
    settle(&w);
    w.now += 9000; /* 30 times what node-1 took would be four and a half minutes */
    work(&w, 1);
    w.now += 50900;
    sherd__job_tick(w.job, w.now);
    assert_int_equal(w.ends[1].expelled, 0);
    w.now += 200;
    sherd__job_tick(w.job, w.now);
    assert_int_equal(w.ends[1].expelled, SHERD_ESILENT);
    work(&w, 1);
    must_be_done(&w, SHERD_OK);
    stop(&w);
}

static void a_wrong_answer_bans_its_node_or_ends_a_strict_job(void **state)
{
    (void)state;
    for (int strict = 0; strict < 2; strict++) {
        world w = { 0 };
        sherd__job_stats stats;
        start(&w, 2, 1, 2, 1, 1, strict);
        settle(&w);
        answer(&w, 1, -1);
        settle(&w);
        sherd__job_count(w.job, &stats);
        assert_int_equal(stats.banned, 1);
        if (!strict) {
            assert_int_equal(w.ends[1].expelled, SHERD_EWRONG);
            work(&w, 1);
        }
        must_be_done(&w, strict ? SHERD_EWRONG : SHERD_OK);
        stop(&w);
    }
}

static void a_node_whose_answers_are_all_wrong_is_one_liar(void **state)
{
    (void)state;
    world w = { 0 };
    sherd__job_stats stats;
    start(&w, 2, 1, 3, 3, 1, false);
    settle(&w);
    w.behind = true;
    assert_int_equal(w.ends[1].asked, 3);
    while (w.ends[1].asked) answer(&w, 1, -1);
    while (move(&w, 1, false)) continue;
    w.behind = false;
    work(&w, 1);
    sherd__job_count(w.job, &stats);
    assert_int_equal(stats.banned, 1);
    must_be_done(&w, SHERD_OK);
    stop(&w);
}

static void a_cell_that_cannot_be_hidden_fails_the_job(void **state)
{
    (void)state;
    world w = { .scheme.hide_err = SHERD_ENOMEM };
    start(&w, 2, 1, 2, 1, 1, false);
    settle(&w);
    must_be_done(&w, SHERD_ENOMEM);
    stop(&w);
}

static void numbers_that_come_round_stay_clear_of_those_in_use(void **state)
{
    (void)state;
    world w = { 0 };
    start(&w, 2, 2, 4, 2, 0, false);
    w.job->blocks = UINT32_MAX - 3;
    w.job->attempts = UINT32_MAX - 3;
    work(&w, NOBODY);
    must_be_done(&w, SHERD_OK);
    for (uint32_t i = 0; i < w.job->cells_len; i++) assert_true(w.job->cells[i].attempt != 0);
    stop(&w);
}

static void more_slots_than_nodes_or_too_many_cells_are_no_job(void **state)
{
    (void)state;
    fake f = { .shape = { .slots = 3, .tiles = 1, .panels = 1 } };
    sherd__hiding h = { &fake_ops, &f };
    uint32_t domain[2] = { 0, 1 };
    sherd_job *j;
    sherd__job_options o = { .hiding = &h, .nodes = 2, .domain = domain, .depth = 1 };
    assert_int_equal(sherd__job_new(&j, &o), SHERD_EINVAL);
    assert_null(j);
    f.shape = (sherd__scheme_shape){ .slots = 2, .tiles = 65536, .panels = 65536 };
    assert_int_equal(sherd__job_new(&j, &o), SHERD_ENOMEM);
}

static void every_failed_allocation_of_a_new_job_is_survived(void **state)
{
    (void)state;
    fake f = { .shape = { .slots = 2, .tiles = 2, .panels = 2 } };
    sherd__hiding h = { &fake_ops, &f };
    uint32_t domain[2] = { 0, 1 };
    sherd__job_options o = { .hiding = &h, .nodes = 2, .domain = domain, .depth = 1 };
    int err = SHERD_ENOMEM;
    for (size_t n = 1; err; n++) {
        sherd_job *j;
        (void)sherd__alloc_fail_nth(n);
        err = sherd__job_new(&j, &o);
        (void)sherd__alloc_fail_nth(0);
        if (err) assert_int_equal(err, SHERD_ENOMEM);
        sherd__job_free(j);
        assert_true(n < 50);
    }
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(every_cell_is_folded_once_and_a_resident_block_is_sent_once),
        T(a_job_without_work_is_done_at_once),
        T(resident_blocks_serve_the_next_run_of_the_same_session_only),
        T(a_run_that_failed_is_not_run_again),
        T(a_job_that_ends_in_the_middle_of_a_block_lets_go_of_its_source),
        T(answers_and_refusals_of_another_job_change_nothing),
        T(a_burst_of_refusals_makes_a_node_slower_and_does_not_expel_it),
        T(a_node_that_refuses_everything_is_left_and_its_blocks_are_taken_back),
        T(a_refused_resident_block_is_sent_again),
        T(a_node_that_comes_back_in_time_keeps_its_work),
        T(a_node_that_does_not_come_back_is_replaced_as_far_as_the_ledger_allows),
        T(what_would_break_the_bound_is_not_sent_whatever_the_plan),
        T(without_any_node_the_job_ends),
        T(a_node_that_answers_no_task_is_expelled),
        T(slow_answers_buy_a_silent_node_a_minute_at_most),
        T(a_wrong_answer_bans_its_node_or_ends_a_strict_job),
        T(a_node_whose_answers_are_all_wrong_is_one_liar),
        cmocka_unit_test(a_node_whose_answers_are_all_wrong_is_one_liar),
        T(a_cell_that_cannot_be_hidden_fails_the_job),
        T(numbers_that_come_round_stay_clear_of_those_in_use),
        T(more_slots_than_nodes_or_too_many_cells_are_no_job),
        T(every_failed_allocation_of_a_new_job_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
