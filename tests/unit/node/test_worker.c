/*
 * The task loop with real sessions in memory and an inline executor: a submitted task has run, and
 * is answered when the test drains.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "crypto/seeded.h"
#include "tests/unit/node/worker_peer.h"
#include "wire/says.h"

/* --- with the CPU backend ------------------------------------------------------------------ */

static void *cpu;

static int open_cpu(void **s)
{
    (void)s;
    sherd__backend_options o = { .threads = 1, .quick = true };
    return sherd__backend_cpu.open(&cpu, &o, NULL);
}

static int close_cpu(void **s)
{
    (void)s;
    sherd__backend_cpu.close(cpu);
    return 0;
}

static void a_product_of_stored_blocks_is_returned(void **s)
{
    (void)s;
    peer p;
    worker_start(&sherd__backend_cpu, cpu, 50, 16 * MB);
    peer_join(&p);
    peer_put(&p, 9, 1, 3, 4, 2);
    peer_put(&p, 9, 2, 4, 5, 3);
    peer_ask(&p, 9, 1, 3, 5);
    peer_settle(&p);
    assert_int_equal(p.results_len, 1);
    assert_true(p.last[0] == 24 && p.last[3] == 24);
    const sherd__worker_stats *st = sherd__worker_stats_of(loop.worker);
    assert_int_equal(st->tasks[SHERD__OP_MULTIPLY], 1);
    assert_int_equal(st->inline_tasks, 1);
    assert_int_equal(st->blocks_in, 2);
    assert_int_equal(st->bytes_in, 8 * (12 + 20));
    assert_int_equal(st->bytes_out, 8 * 15);
    peer_cut(&p);
    worker_stop();
}

static void an_outer_product_is_sent_without_being_stored(void **s)
{
    (void)s;
    peer p;
    worker_start(&sherd__backend_cpu, cpu, 50, 12 * MB);
    peer_join(&p);
    peer_put(&p, 9, 1, 1000, 1, 2);
    peer_put(&p, 9, 2, 1, 1000, 3);
    for (uint32_t k = 1; k <= 20; k++) peer_ask(&p, 9, k, 1000, 1000); /* 160 MB of results */
    p.j.paused = true;
    joined_exchange(&p.j);
    assert_true(sherd__worker_memory(loop.worker)->used < MB);
    p.j.paused = false;
    peer_settle(&p);
    assert_int_equal(p.results_len, 20);
    assert_true(p.last[0] == 6);
    assert_int_equal(sherd__worker_stats_of(loop.worker)->streamed_tasks, 20);
    assert_int_equal(sherd__worker_stats_of(loop.worker)->tasks[SHERD__OP_MULTIPLY], 20);
    peer_cut(&p);
    worker_stop();
}

static void a_cut_connection_frees_what_was_being_streamed(void **s)
{
    (void)s;
    peer p;
    worker_start(&sherd__backend_cpu, cpu, 50, 12 * MB);
    peer_join(&p);
    peer_put(&p, 9, 1, 1000, 1, 2);
    peer_put(&p, 9, 2, 1, 1000, 3);
    peer_ask(&p, 9, 1, 1000, 1000);
    p.j.paused = true;
    joined_exchange(&p.j);
    (void)joined_move(&p.j, false); /* part of it */
    peer_cut(&p);
    worker_stop();
}

/* B of SIDE x SIDE small numbers in f32, and its products with rows of A in float64. */
enum { SIDE = 1000, ROWS = 10 };

static void put_f32(peer *p, uint64_t job, uint32_t block)
{
    float *v = malloc(SIDE * SIDE * sizeof *v);
    for (size_t i = 0; i < SIDE * SIDE; i++) v[i] = (float)(i % 7);
    joined_put(&p->j, job, block, SHERD_F32, SIDE, SIDE, v);
    free(v);
}

static void ask_and_check(peer *p, uint64_t job, uint32_t number)
{
    double want = 0;
    for (size_t i = 0; i < SIDE; i++) want += 2 * (double)(i * SIDE % 7);
    peer_ask(p, job, number, ROWS, SIDE);
    peer_settle(p);
    assert_int_equal(p->results[(p->results_len - 1) % HEARD_MAX], number);
    assert_true(p->last[0] == want);
}

static void derived_forms_of_blocks_are_freed_when_a_block_needs_the_memory(void **s)
{
    (void)s;
    peer p, q;
    worker_start(&sherd__backend_cpu, cpu, SLOW, 16 * MB);
    const sherd__pool_stats *m = sherd__worker_memory(loop.worker);
    peer_join(&p);
    peer_join(&q);
    peer_put(&p, 9, 1, ROWS, SIDE, 2);
    put_f32(&p, 9, 2);
    for (uint32_t k = 1; k <= 3; k++) {
        ask_and_check(&p, 9, k);
        assert_true((m->lent > 0) == (k > 1));
    }
    assert_in_range(m->lent, 8 * SIDE * SIDE, 10 * SIDE * SIDE);
    assert_in_range(m->used, m->lent + 4 * SIDE * SIDE, 14 * SIDE * SIDE);
    peer_put(&q, 9, 1, ROWS, SIDE, 2);
    put_f32(&q, 9, 2); /* another key's block needs the room */
    peer_settle(&q);
    assert_int_equal(q.refusals_len, 0);
    assert_int_equal(m->lent, 0);
    for (uint32_t k = 4; k <= 6; k++) ask_and_check(&p, 9, k), ask_and_check(&q, 9, k);
    assert_int_equal(m->lent, 0); /* less than an eighth would be left */
    assert_int_equal(sherd__session_drop(q.j.co, 9, 2), SHERD_OK);
    peer_settle(&q);
    for (uint32_t k = 7; k <= 9; k++) ask_and_check(&p, 9, k);
    assert_true(m->lent > 0);
    assert_int_equal(sherd__session_drop(p.j.co, 9, 2), SHERD_OK);
    peer_settle(&p);
    assert_int_equal(m->lent, 0);
    peer_cut(&p);
    peer_cut(&q);
    worker_stop();
}

/* One key always has calls under way, whose form cannot be taken back, and fills its part. */
static void derived_forms_count_in_the_part_of_their_key(void **s)
{
    (void)s;
    peer p, q;
    worker_start(&sherd__backend_cpu, cpu, SLOW, 32 * MB);
    const sherd__pool_stats *m = sherd__worker_memory(loop.worker);
    peer_join_as(&p, 1, 24 * MB);
    peer_join_as(&q, 2, 24 * MB);
    peer_put(&p, 9, 1, ROWS, SIDE, 2);
    put_f32(&p, 9, 2);
    for (uint32_t k = 1; k <= 2; k++) ask_and_check(&p, 9, k);
    assert_in_range(m->lent, 8 * SIDE * SIDE, 10 * SIDE * SIDE);
    for (uint32_t k = 3; k <= 4; k++) peer_ask(&p, 9, k, ROWS, SIDE);
    for (uint32_t i = 3; i <= 20; i++) peer_put(&p, 9, i, 512, 256, 2); /* of 1 MB */
    joined_exchange(&p.j);
    assert_in_range(p.refusals_len, 1, 17);
    assert_in_range(m->lent, 8 * SIDE * SIDE, 10 * SIDE * SIDE);
    assert_in_range(m->used, 23 * MB, 24 * MB);
    for (uint32_t i = 1; i <= 7; i++) peer_put(&q, 9, i, 512, 256, 2);
    joined_exchange(&q.j);
    assert_int_equal(q.refusals_len, 0);
    peer_settle(&p);
    assert_true(m->lent > 0);
    uint32_t before = p.refusals_len;
    for (uint32_t i = 21; i <= 23; i++) peer_put(&p, 9, i, 512, 256, 2);
    peer_settle(&p);
    assert_int_equal(p.refusals_len, before);
    assert_int_equal(m->lent, 0); /* idle: taken back for a block of its key */
    peer_cut(&p);
    peer_cut(&q);
    worker_stop();
}

static void idle_forms_of_other_keys_are_not_taken_back_for_a_full_part(void **s)
{
    (void)s;
    peer p, q;
    worker_start(&sherd__backend_cpu, cpu, SLOW, 64 * MB);
    const sherd__pool_stats *m = sherd__worker_memory(loop.worker);
    peer_join_as(&p, 1, 24 * MB);
    peer_join_as(&q, 2, 24 * MB);
    for (uint32_t k = 1; k <= 2; k++) {
        peer *each = k == 1 ? &p : &q;
        peer_put(each, 9, 1, ROWS, SIDE, 2);
        put_f32(each, 9, 2);
        ask_and_check(each, 9, 1), ask_and_check(each, 9, 2);
    }
    const uint64_t both = m->lent;
    for (uint32_t i = 3; i <= 30; i++) peer_put(&q, 9, i, 512, 256, 2);
    peer_settle(&q);
    assert_true(q.refusals_len > 0);
    assert_int_equal(m->lent, both / 2);
    peer_cut(&q);
    for (uint32_t k = 3; k <= 4; k++) ask_and_check(&p, 9, k);
    assert_int_equal(m->lent, both / 2); /* that of p */
    peer_cut(&p);
    worker_stop();
}

/* ---- with a backend that only records calls -------------------------------------------------- */

static void unknown_blocks_and_wrong_shapes_are_refused(void **s)
{
    (void)s;
    peer p;
    worker_start(&worker_fake, NULL, SLOW, 16 * MB);
    peer_join(&p);
    peer_small_blocks(&p, 9);
    peer_ask(&p, 8, 1, 200, 200); /* another job */
    peer_ask(&p, 9, 2, 200, 199);
    peer_settle(&p);
    assert_int_equal(p.refusals_len, 2);
    assert_int_equal(p.refusals[0].code, SHERD_EINVAL);
    assert_int_equal(p.refusals[0].task, 1);
    assert_non_null(strstr(p.j.withheld, "200 x 200")); /* in the node's own log */
    assert_int_equal(p.refusals[1].code, SHERD_ESHAPE);
    assert_string_equal(p.refusals[1].text, sherd__says(SHERD_ESHAPE, p.j.withheld));
    assert_int_equal(loop.ran_len, 0);
    peer_cut(&p);
    worker_stop();
}

static void another_session_cannot_name_a_block(void **s)
{
    (void)s;
    peer p, q;
    worker_start(&worker_fake, NULL, SLOW, 16 * MB);
    peer_join(&p);
    peer_join(&q);
    peer_small_blocks(&p, 9);
    peer_settle(&p);
    peer_ask(&q, 9, 1, 200, 200);
    peer_settle(&q);
    assert_int_equal(q.refusals_len, 1);
    assert_int_equal(sherd__session_drop(q.j.co, 9, 1), SHERD_OK); /* it cannot drop it either */
    peer_settle(&q);
    peer_ask(&p, 9, 1, 200, 200);
    peer_settle(&p);
    assert_int_equal(p.results_len, 1);
    peer_cut(&q);
    peer_ask(&p, 9, 2, 200, 200); /* nor free it by disconnecting */
    peer_settle(&p);
    assert_int_equal(p.results_len, 2);
    peer_cut(&p);
    worker_stop();
}

static void a_second_block_with_the_same_number_is_refused(void **s)
{
    (void)s;
    peer p;
    worker_start(&worker_fake, NULL, SLOW, 16 * MB);
    peer_join(&p);
    peer_put(&p, 9, 1, 2, 2, 1);
    peer_put(&p, 9, 1, 2, 2, 1);
    peer_settle(&p);
    assert_int_equal(p.refusals_len, 1);
    assert_int_equal(p.refusals[0].block, 1);
    peer_cut(&p);
    worker_stop();
}

static void a_cancelled_task_is_not_run_and_is_answered_once(void **s)
{
    (void)s;
    peer p;
    worker_start(&worker_fake, NULL, SLOW, 64 * MB);
    peer_join(&p);
    peer_small_blocks(&p, 9);
    for (uint32_t k = 1; k <= 6; k++) peer_ask(&p, 9, k, 200, 200);
    joined_exchange(&p.j); /* two are with the executor, four wait */
    assert_int_equal(loop.ran_len, 2);
    assert_int_equal(sherd__session_cancel(p.j.co, 9, 1, 1), SHERD_OK);
    assert_int_equal(sherd__session_cancel(p.j.co, 9, 4, 1), SHERD_OK);
    assert_int_equal(sherd__session_cancel(p.j.co, 9, 6, 1), SHERD_OK);
    peer_settle(&p);
    assert_int_equal(p.results_len, 3);
    assert_int_equal(p.results[0], 2);
    assert_int_equal(p.results[1], 3);
    assert_int_equal(p.results[2], 5);
    assert_int_equal(loop.ran_len, 4);
    assert_int_equal(sherd__worker_stats_of(loop.worker)->cancelled, 3);
    peer_cut(&p);
    worker_stop();
}

static void blocks_of_a_dead_session_stay_until_the_compute_thread_has_finished(void **s)
{
    (void)s;
    peer p;
    worker_start(&worker_fake, NULL, SLOW, 64 * MB);
    peer_join(&p);
    peer_small_blocks(&p, 9);
    for (uint32_t k = 1; k <= 5; k++) peer_ask(&p, 9, k, 200, 200);
    joined_exchange(&p.j);
    peer_cut(&p);
    uint64_t held = sherd__worker_memory(loop.worker)->used;
    assert_true(held >= 2 * (8 * 200 * 200 + 8 * 400)); /* two results and both blocks */
    assert_true(held < 3 * 8 * 200 * 200 + 2 * 8 * 400);
    worker_stop(); /* drains, and checks that nothing is in use */
}

static void sessions_of_one_key_share_its_part_of_the_budget(void **s)
{
    (void)s;
    peer a, b, other;
    worker_start(&worker_fake, NULL, SLOW, 4 * MB);
    peer_join_as(&a, 1, 3 * MB);
    peer_put(&a, 9, 1, 400, 400, 1); /* each counts 1.25 MB */
    peer_settle(&a);
    peer_join_as(&b, 1, 3 * MB);
    peer_put(&b, 9, 1, 400, 400, 1);
    peer_put(&b, 9, 2, 400, 400, 1); /* the third exceeds the budget */
    peer_settle(&b);
    assert_int_equal(a.refusals_len, 0);
    assert_int_equal(b.refusals_len, 1);
    assert_int_equal(b.refusals[0].block, 2);
    assert_int_equal(b.refusals[0].code, SHERD_EREFUSED);
    peer_join_as(&other, 2, 3 * MB);
    peer_put(&other, 9, 1, 300, 300, 1);
    peer_settle(&other);
    assert_int_equal(other.refusals_len, 0);
    peer_cut(&a); /* its memory is available to the key again */
    peer_put(&b, 9, 2, 400, 400, 1);
    peer_settle(&b);
    assert_int_equal(b.refusals_len, 1);
    peer_cut(&b);
    peer_join_as(&a, 1, 2 * MB); /* and a smaller part applies to new blocks */
    peer_put(&a, 9, 1, 400, 400, 1);
    peer_put(&a, 9, 2, 400, 400, 1);
    peer_settle(&a);
    assert_int_equal(a.refusals_len, 1);
    peer_cut(&a);
    peer_cut(&other);
    worker_stop();
}

static void blocks_and_results_beyond_the_budget_are_refused_and_others_continue(void **s)
{
    (void)s;
    peer p;
    worker_start(&worker_fake, NULL, SLOW, MB);
    peer_join(&p);
    peer_small_blocks(&p, 9);
    peer_put(&p, 9, 3, 500, 500, 1); /* 2 MB: larger than the node accepts */
    peer_ask(&p, 9, 1, 200, 200);    /* 320 KB each: the fourth does not fit */
    peer_ask(&p, 9, 2, 200, 200);
    peer_ask(&p, 9, 3, 200, 200);
    peer_ask(&p, 9, 4, 200, 200);
    peer_settle(&p);
    assert_int_equal(p.refusals_len, 2);
    assert_int_equal(p.refusals[0].block, 3);
    assert_int_equal(p.refusals[1].code, SHERD_ENOMEM);
    assert_non_null(strstr(p.j.withheld, "out of memory for a result"));
    assert_int_equal(p.results_len, 3 - (p.refusals[1].task <= 3));
    assert_true(sherd__worker_memory(loop.worker)->peak <= MB);
    peer_ask(&p, 9, 5, 200, 200);
    peer_settle(&p);
    assert_int_equal(p.results[p.results_len - 1], 5);
    peer_cut(&p);
    worker_stop();
}

/* A node's record of a block uses memory, too, which a coordinator could exhaust. */
static void empty_blocks_count_in_the_budget(void **s)
{
    enum { MOST = 3000 };
    (void)s;
    peer p;
    worker_start(&worker_fake, NULL, SLOW, MB);
    peer_join(&p);
    for (uint32_t k = 1; k <= MOST; k++) {
        peer_put(&p, 9, k, 0, 4, 0);
        if (k % 256 == 0) peer_settle(&p); /* unread refusals would use memory, too */
    }
    peer_settle(&p);
    const sherd__pool_stats *m = sherd__worker_memory(loop.worker);
    uint64_t here = sherd__worker_stats_of(loop.worker)->blocks_in;
    assert_true(here > 0 && here < MOST);
    assert_int_equal(p.refusals_len, MOST - here);
    assert_true(m->used >= here * SHERD__POOL_OVERHEAD && m->peak <= MB);
    assert_int_equal(sherd__session_drop(p.j.co, 9, 1), SHERD_OK);
    peer_put(&p, 9, MOST + 1, 0, 4, 0);
    peer_settle(&p);
    assert_int_equal(sherd__worker_stats_of(loop.worker)->blocks_in, here + 1);
    peer_cut(&p);
    worker_stop();
}

/* ---- seeds ----------------------------------------------------------------------------------- */

enum { LINES = 40, INNER = 70, COLS = 20 };
static const uint32_t seed_primes[] = { 251, 241 };

/* Makes a seed for a left operand of LINES x INNER, or a right one of INNER x COLS. */
static sherd__fragment *seed_of(bool left)
{
    static const uint8_t seed[SHERD__SEED_BYTES] = { 5 };
    const sherd__fragment_info whole = { .origin = SHERD__HIDDEN,
                                         .dtype = left ? SHERD__BYTES_LEFT : SHERD__BYTES_RIGHT,
                                         .primes = 2,
                                         .rows = left ? LINES : INNER,
                                         .cols = left ? INNER : COLS };
    sherd__fragment *f;
    assert_int_equal(sherd__seeded_fragment(&f, &whole, seed, left ? 256 : 64, seed_primes), 0);
    return f;
}

static sherd__task product_of_bytes(uint32_t number)
{
    return (sherd__task){ .job = 9,
                          .task = number,
                          .attempt = 1,
                          .op = SHERD__OP_MULTIPLY,
                          .left = 1,
                          .right = 2,
                          .primes_len = 2,
                          .primes = { 251, 241 },
                          .result = { .origin = SHERD__RESULT,
                                      .dtype = SHERD__BYTES,
                                      .primes = 2,
                                      .rows = LINES,
                                      .cols = COLS,
                                      .len = 2 * LINES * COLS } };
}

static void put(peer *p, uint32_t block, sherd__fragment *f)
{
    assert_int_equal(sherd__session_put(p->j.co, 9, block, f), SHERD_OK);
}

/* Puts the share that the seed encodes. */
static void put_share(peer *p, uint32_t block, sherd__fragment *f)
{
    const sherd__fragment_info whole = sherd__fragment_whole(sherd__fragment_info_of(f));
    uint8_t *bytes = sherd__alloc(whole.len);
    sherd__fragment *share;
    assert_int_equal(sherd__seed_defer(&share, f, bytes, NULL, NULL), SHERD_OK);
    put(p, block, share);
}

/* first: the first task is computed on the compute thread's path (1) or at once (50 GF/s). */
static void a_seed_is_expanded_by_its_first_task(void **s)
{
    (void)s;
    static const double gflops[] = { SLOW, 50 };
    for (int i = 0; i < 2; i++) {
        peer p;
        double want[4];
        worker_start(&sherd__backend_cpu, cpu, gflops[i], 16 * MB);
        peer_join(&p);
        put_share(&p, 1, seed_of(true));
        put_share(&p, 2, seed_of(false));
        const sherd__task t = product_of_bytes(1), again = product_of_bytes(2);
        assert_int_equal(sherd__session_task(p.j.co, &t), SHERD_OK);
        peer_settle(&p);
        assert_int_equal(p.results_len, 1);
        memcpy(want, p.last, sizeof want);
        const uint64_t sent = sherd__worker_stats_of(loop.worker)->bytes_in;
        const uint64_t used = sherd__worker_memory(loop.worker)->used;
        assert_int_equal(sherd__session_drop(p.j.co, 9, 0), SHERD_OK);
        memset(p.last, 0, sizeof p.last);
        put(&p, 1, seed_of(true));
        put(&p, 2, seed_of(false));
        joined_exchange(&p.j);
        assert_int_equal(sherd__worker_stats_of(loop.worker)->bytes_in - sent, 2 * 36);
        assert_true(sherd__worker_memory(loop.worker)->used >= used); /* of shares, and of seeds */
        assert_int_equal(sherd__session_task(p.j.co, &t), SHERD_OK);
        peer_settle(&p);
        assert_int_equal(p.results_len, 2);
        assert_memory_equal(p.last, want, sizeof want);
        memset(p.last, 0, sizeof p.last);
        assert_int_equal(sherd__session_task(p.j.co, &again), SHERD_OK);
        peer_settle(&p);
        assert_int_equal(p.results_len, 3);
        assert_memory_equal(p.last, want, sizeof want);
        peer_cut(&p);
        worker_stop();
    }
}

static void a_seed_that_cannot_be_expanded_is_refused(void **s)
{
    (void)s;
    peer p;
    worker_start(&sherd__backend_cpu, cpu, 50, MB);
    peer_join(&p);
    sherd__fragment *bad = seed_of(true);
    ((uint8_t *)(uintptr_t)sherd__fragment_bytes(bad))[34] = 250;
    put(&p, 1, bad);
    peer_settle(&p);
    assert_int_equal(p.refusals_len, 1);
    assert_int_equal(p.refusals[0].block, 1);
    assert_int_equal(p.refusals[0].code, SHERD_EFRAME);
    /* Its share has more bytes than the node's memory, or than what is left of it. */
    static const uint8_t seed[SHERD__SEED_BYTES] = { 5 };
    sherd__fragment_info whole = {
        .origin = SHERD__HIDDEN, .dtype = SHERD__BYTES_LEFT, .primes = 2, .cols = 1024
    };
    for (uint32_t i = 0; i < 2; i++) {
        whole.rows = i ? 300 : 1024;
        sherd__fragment *f;
        assert_int_equal(sherd__seeded_fragment(&f, &whole, seed, 256, seed_primes), 0);
        put(&p, 2 + i, f);
        peer_settle(&p);
    }
    assert_int_equal(p.refusals_len, 2);
    assert_int_equal(p.refusals[1].block, 2);
    assert_int_equal(p.refusals[1].code, SHERD_EREFUSED);
    sherd__fragment *f;
    assert_int_equal(sherd__seeded_fragment(&f, &whole, seed, 256, seed_primes), 0);
    put(&p, 4, f);
    peer_settle(&p);
    assert_int_equal(p.refusals_len, 3);
    assert_int_equal(p.refusals[2].block, 4);
    assert_int_equal(p.refusals[2].code, SHERD_EREFUSED);
    assert_true(sherd__worker_memory(loop.worker)->peak <= MB);
    peer_cut(&p);
    worker_stop();
}

static void blocks_marked_to_be_dropped_are_freed_with_their_task(void **s)
{
    (void)s;
    peer p;
    worker_start(&worker_fake, NULL, SLOW, 16 * MB);
    peer_join(&p);
    peer_small_blocks(&p, 9);
    sherd__task t = peer_task(9, 1, 200, 200);
    t.flags = SHERD__DROP_LEFT;
    assert_int_equal(sherd__session_task(p.j.co, &t), SHERD_OK);
    peer_settle(&p);
    peer_put(&p, 9, 1, 200, 2, 1); /* its number can be used again */
    peer_ask(&p, 9, 2, 200, 200);  /* and the right block still exists */
    peer_settle(&p);
    assert_int_equal(p.results_len, 2);
    assert_int_equal(p.refusals_len, 0);
    peer_cut(&p);
    worker_stop();
}

static void a_failing_backend_causes_a_refusal(void **s)
{
    (void)s;
    peer p;
    worker_start(&worker_fake, NULL, SLOW, 16 * MB);
    peer_join(&p);
    peer_small_blocks(&p, 9);
    loop.fake_err = SHERD_EDEVICE;
    peer_ask(&p, 9, 1, 200, 200);
    peer_settle(&p);
    assert_int_equal(p.results_len, 0);
    assert_int_equal(p.refusals_len, 1);
    assert_int_equal(p.refusals[0].code, SHERD_EDEVICE);
    peer_cut(&p);
    worker_stop();
}

static void wake(void *ctx)
{
    (void)ctx; /* the test polls by itself */
}

static void a_compute_thread_works_while_sessions_start_and_end(void **s)
{
    (void)s;
    peer p, q;
    worker_start(&sherd__backend_cpu, cpu, SLOW, 64 * MB);
    sherd__executor_free(loop.executor);
    sherd__worker_free(loop.worker);
    assert_int_equal(sherd__executor_new(&loop.executor, 4, wake, NULL), SHERD_OK);
    sherd__worker_options o = { .backend = &sherd__backend_cpu,
                                .backend_ctx = cpu,
                                .memory = 64 * MB,
                                .executor = loop.executor };
    assert_int_equal(sherd__worker_new(&loop.worker, &o), SHERD_OK);
    peer_join(&p);
    peer_small_blocks(&p, 9);
    for (uint32_t k = 1; k <= 40; k++) peer_ask(&p, 9, k, 200, 200);
    joined_exchange(&p.j);
    for (uint32_t round = 0; round < 10; round++) {
        peer_join(&q);
        peer_small_blocks(&q, 9);
        for (uint32_t k = 1; k <= 5; k++) peer_ask(&q, 9, k, 200, 200);
        joined_exchange(&q.j);
        sherd__executor_drain(loop.executor);
        peer_cut(&q); /* while its tasks run */
    }
    while (p.results_len < 40) peer_settle(&p);
    assert_true(p.last[0] == 2);
    peer_cut(&p);
    while (sherd__executor_pending(loop.executor)) sherd__executor_drain(loop.executor);
    worker_stop();
}

/* Many tasks, two sessions, and every allocation fails once: nothing leaks and no task is left. */
static void every_failed_allocation_is_handled(void **s)
{
    (void)s;
    for (size_t nth = 1, seen = nth; seen >= nth; nth++) {
        peer p;
        worker_start(&sherd__backend_cpu, cpu, nth & 1 ? SLOW : 50, 16 * MB);
        peer_join(&p);
        peer_small_blocks(&p, 9);
        peer_ask(&p, 9, 1, 200, 200);
        peer_ask(&p, 9, 2, 200, 200);
        sherd__alloc_fail_nth(nth);
        peer_settle(&p);
        seen = sherd__alloc_fail_nth(0);
        if (seen < nth) assert_int_equal(p.results_len, 2);
        peer_cut(&p);
        worker_stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_of_stored_blocks_is_returned),
        cmocka_unit_test(an_outer_product_is_sent_without_being_stored),
        cmocka_unit_test(a_cut_connection_frees_what_was_being_streamed),
        cmocka_unit_test(derived_forms_of_blocks_are_freed_when_a_block_needs_the_memory),
        cmocka_unit_test(derived_forms_count_in_the_part_of_their_key),
        cmocka_unit_test(idle_forms_of_other_keys_are_not_taken_back_for_a_full_part),
        cmocka_unit_test(unknown_blocks_and_wrong_shapes_are_refused),
        cmocka_unit_test(another_session_cannot_name_a_block),
        cmocka_unit_test(a_second_block_with_the_same_number_is_refused),
        cmocka_unit_test(sessions_of_one_key_share_its_part_of_the_budget),
        cmocka_unit_test(a_cancelled_task_is_not_run_and_is_answered_once),
        cmocka_unit_test(blocks_of_a_dead_session_stay_until_the_compute_thread_has_finished),
        cmocka_unit_test(blocks_and_results_beyond_the_budget_are_refused_and_others_continue),
        cmocka_unit_test(empty_blocks_count_in_the_budget),
        cmocka_unit_test(a_seed_is_expanded_by_its_first_task),
        cmocka_unit_test(a_seed_that_cannot_be_expanded_is_refused),
        cmocka_unit_test(blocks_marked_to_be_dropped_are_freed_with_their_task),
        cmocka_unit_test(a_failing_backend_causes_a_refusal),
        cmocka_unit_test(a_compute_thread_works_while_sessions_start_and_end),
        cmocka_unit_test(every_failed_allocation_is_handled),
    };
    return cmocka_run_group_tests_name("node/worker", tests, open_cpu, close_cpu);
}
