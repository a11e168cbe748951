/* Shares read from records: the scheme, the order of panels, nodes that are left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "audit/shares.h"
#include "core/alloc.h"
#include "matrix/residue_bytes.h"
#include "schemes/share/share.h"
#include "tests/support/under_valgrind.h"
#include "tests/unit/audit/spool.h"

#define JOB 5
#define NODES 4
#define COLS 3

static const uint32_t primes[2] = { 5931641, 5931637 };
static uint8_t body[4096];

/* Returns a residue of a node's share of an operand. */
static uint32_t residue(unsigned node, unsigned prime, unsigned row, unsigned col, unsigned operand)
{
    return (1 + node * 100003 + prime * 7919 + row * 31 + col + operand * 1000003) % primes[prime];
}

static sherd__fragment_info residues(unsigned node, unsigned first, unsigned rows, unsigned operand)
{
    size_t at = 0;
    for (unsigned q = 0; q < 2; q++)
        for (unsigned r = first; r < first + rows; r++)
            for (unsigned c = 0; c < COLS; c++, at += 3) {
                uint32_t v = residue(node, q, r, c, operand);
                body[at] = (uint8_t)v;
                body[at + 1] = (uint8_t)(v >> 8);
                body[at + 2] = (uint8_t)(v >> 16);
            }
    return (sherd__fragment_info){ .origin = SHERD__HIDDEN,
                                   .dtype = SHERD__RESIDUES,
                                   .primes = 2,
                                   .rows = rows,
                                   .cols = COLS,
                                   .len = at };
}

/* Two rows of a product. */
static const sherd__fragment_info result = { .origin = SHERD__RESULT,
                                             .dtype = SHERD__RESIDUES,
                                             .primes = 2,
                                             .rows = 2,
                                             .cols = COLS,
                                             .len = 2 * 2 * COLS * 3 };

static void begin(spool *in, spool *out)
{
    in->len = out->len = 0;
    spool_hello(in);
    spool_welcome(out);
}

static void record(const char *dir, unsigned node, const spool *in, const spool *out)
{
    char name[32];
    snprintf(name, sizeof name, "node-%u.sent", node + 1);
    spool_file(dir, name, in->bytes, in->len);
    snprintf(name, sizeof name, "node-%u.received", node + 1);
    spool_file(dir, name, out->bytes, out->len);
}

/* Writes the record of a node that receives `panels` panels of two rows each, and the first one
 * twice, for two tiles. */
static void a_node(const char *dir, unsigned node, unsigned panels, bool public_b)
{
    static spool in, out;
    sherd__fragment_info info;
    begin(&in, &out);
    info = residues(public_b ? 0 : node, 0, COLS, 1);
    spool_put(&in, JOB, 1, &info, body);
    for (unsigned p = 0; p < panels; p++) {
        info = residues(node, 2 * p, 2, 0);
        spool_put(&in, JOB, 10 + p, &info, body);
        spool_task(&in, JOB, 10 + p, 10 + p, 1, primes, 2, &result);
    }
    info = residues(node, 0, 2, 0);
    spool_put(&in, JOB, 30, &info, body);
    spool_task(&in, JOB, 30, 30, 1, primes, 2, &result);
    record(dir, node, &in, &out);
}

static void open_record(sherd__views *v, unsigned short_one, bool public_b)
{
    const char *dir = spool_folder();
    memset(v, 0, sizeof *v);
    for (unsigned i = 0; i < NODES; i++) a_node(dir, i, i == short_one ? 2 : 3, public_b);
    assert_int_equal(sherd__views_add(v, dir, NULL), 0);
    assert_int_equal(v->len, NODES);
}

static void check_share(const sherd__seen *s, unsigned share, unsigned node, unsigned operand)
{
    for (unsigned q = 0; q < 2; q++)
        for (unsigned r = 0; r < s->rows; r++)
            for (unsigned c = 0; c < COLS; c++)
                assert_int_equal(s->residues[share * 2 + q][r * COLS + c],
                                 residue(node, q, r, c, operand));
}

/* Reads as the command does, with at most eight right operands. */
static int read_shares(sherd__shares *s, const sherd__views *v, uint64_t job, uint64_t n,
                       uint32_t masks, uint32_t spare, size_t rows, sherd_diag *d)
{
    const sherd__shares_want w = { n, masks, spare, rows, 8, 0, 0 };
    return sherd__shares_read(s, v, job, &w, d);
}

static void both_operands_of_share_are_read(void **state)
{
    (void)state;
    sherd__views v;
    sherd__shares s;
    uint64_t *jobs, job;
    size_t jobs_len;
    open_record(&v, NODES, false);
    assert_int_equal(sherd__shares_jobs(&v, &jobs, &jobs_len), SHERD_OK);
    assert_true(jobs_len == 1 && jobs[0] == JOB);
    job = jobs[0];
    sherd__free(jobs);
    assert_int_equal(read_shares(&s, &v, job, 6, 1, 0, 100, NULL), 0);
    assert_true(s.kind == SHERD__SHARES_BOTH && !s.apart && s.seen_len == 2 && s.share_rows == 6);
    assert_true(s.code.blocks == 1 && s.code.masks == 1 && s.code.shares == NODES);
    assert_true(s.code.primes_len == 2 && s.code.primes[1] == primes[1]);
    assert_true(s.seen[0].rows == 6 && s.seen[0].cols == COLS && s.seen[1].rows == COLS);
    for (unsigned i = 0; i < NODES; i++) {
        check_share(&s.seen[0], i, i, 0);
        check_share(&s.seen[1], i, i, 1);
    }
    assert_string_equal(s.note, "");
    sherd__shares_fini(&s);
    assert_int_equal(read_shares(&s, &v, job, 0, 1, 0, 4, NULL), 0);
    assert_true(s.seen[0].rows == 4 && s.share_rows == 6); /* as many as requested */
    sherd__shares_fini(&s);
    assert_int_equal(read_shares(&s, &v, job, 0, 3, 0, 100, NULL), SHERD_EINVAL);
    assert_int_equal(read_shares(&s, &v, job, 5, 1, 0, 100, NULL), SHERD_EINVAL);
    sherd__views_fini(&v);
}

static void a_public_b_is_distinguished_from_a_coded_one(void **state)
{
    (void)state;
    sherd__views v;
    sherd__shares s;
    open_record(&v, NODES, true);
    assert_int_equal(read_shares(&s, &v, JOB, 18, 1, 0, 100, NULL), 0); /* K = 3 */
    assert_true(s.kind == SHERD__SHARES_ONE && s.seen_len == 1 && s.code.blocks == 3);
    sherd__shares_fini(&s);
    assert_int_equal(read_shares(&s, &v, JOB, 24, 1, 0, 100, NULL), 0); /* all rows once */
    assert_true(s.kind == SHERD__SHARES_BLIND && s.apart && s.seen_len == NODES);
    assert_true(s.seen[0].code->one_time);
    for (unsigned i = 0; i < NODES; i++) {
        check_share(&s.seen[i], 0, i, 0);
        assert_int_equal(s.seen[i].domain[0], i);
    }
    sherd__shares_fini(&s);
    sherd__views_fini(&v);
}

static void an_incomplete_share_is_left_out_and_reported(void **state)
{
    (void)state;
    sherd__views v;
    sherd__shares s;
    open_record(&v, 2, false);
    assert_int_equal(read_shares(&s, &v, JOB, 6, 1, 0, 100, NULL), 0);
    assert_null(s.seen[0].residues[4]);
    check_share(&s.seen[0], 3, 3, 0);
    assert_non_null(strstr(s.note, "left out"));
    sherd__shares_fini(&s);
    sherd__views_fini(&v);
}

static void records_of_nodes_themselves_are_read_separately(void **state)
{
    (void)state;
    sherd__views v;
    sherd__shares s;
    open_record(&v, NODES, false);
    v.of_coordinator = false;
    assert_int_equal(read_shares(&s, &v, JOB, 0, 1, 0, 100, NULL), 0);
    assert_true(s.apart && s.seen_len == 2 * NODES && s.note[0]);
    check_share(&s.seen[2], 0, 1, 0);
    check_share(&s.seen[3], 0, 1, 1);
    sherd__shares_fini(&s);
    sherd__views_fini(&v);
}

/* Writes the record of a node that has panels [from, to) of share `share` and two tiles of B of it.
 * Tasks are numbered as a coordinator numbers them: by position, then by share. */
static void a_part(const char *dir, unsigned node, unsigned share, unsigned from, unsigned to)
{
    static spool in, out;
    sherd__fragment_info info;
    begin(&in, &out);
    for (unsigned tile = 0; tile < 2; tile++) {
        info = residues(share, 0, COLS, 1 + tile);
        spool_put(&in, JOB, 1 + tile, &info, body);
        for (unsigned p = from; p < to; p++) {
            unsigned task = (tile * 3 + p) * 3 + share + 1;
            info = residues(share, 2 * p, 2, 0);
            spool_put(&in, JOB, 10 + p, &info, body);
            spool_task(&in, JOB, task, 10 + p, 1 + tile, primes, 2, &result);
        }
    }
    record(dir, node, &in, &out);
}

/* Writes the records of five nodes in three domains; the three nodes of share 0 received its panels
 * out of order. */
static void open_domains(sherd__views *v)
{
    static const char index[] =
        "{\"schema\": \"sherd/record/2\", \"complete\": true, \"peers\": ["
        "{\"name\": \"node-1\", \"domain\": {\"number\": 0, \"name\": \"a\"}}, "
        "{\"name\": \"node-2\", \"domain\": {\"number\": 0, \"name\": \"a\"}}, "
        "{\"name\": \"node-3\", \"domain\": {\"number\": 1, \"name\": \"b\"}}, "
        "{\"name\": \"node-4\", \"domain\": {\"number\": 2, \"name\": \"c\"}}, "
        "{\"name\": \"node-5\", \"domain\": {\"number\": 0, \"name\": \"a\"}}]}";
    const char *dir = spool_folder();
    memset(v, 0, sizeof *v);
    a_part(dir, 0, 0, 2, 3);
    a_part(dir, 1, 0, 0, 1);
    a_part(dir, 2, 1, 0, 3);
    a_part(dir, 3, 2, 0, 3);
    a_part(dir, 4, 0, 0, 2); /* one of them twice */
    spool_file(dir, "index.json", index, sizeof index - 1);
    assert_int_equal(sherd__views_add(v, dir, NULL), 0);
    assert_true(v->len == 5 && v->domains_len == 3);
}

static void blocks_of_all_nodes_of_a_domain_form_one_share(void **state)
{
    (void)state;
    sherd__views v;
    sherd__shares s;
    open_domains(&v);
    assert_int_equal(read_shares(&s, &v, JOB, 6, 1, 0, 100, NULL), 0);
    assert_true(s.kind == SHERD__SHARES_BOTH && s.code.shares == 3 && s.share_rows == 6);
    for (unsigned i = 0; i < 3; i++) check_share(&s.seen[0], i, i, 0);
    assert_string_equal(s.note, "");
    sherd__shares_fini(&s);
    sherd__views_fini(&v);
}

/* In any order of the records, and with one of them missing. */
static void records_of_nodes_themselves_are_numbered_by_their_tasks(void **state)
{
    (void)state;
    for (unsigned nodes = 3; nodes >= 2; nodes--) {
        sherd__views v = { 0 };
        sherd__shares s;
        const char *dir = spool_folder();
        for (unsigned i = 0; i < nodes; i++) a_part(dir, i, (i + 2) % 3, 0, 3);
        assert_int_equal(sherd__views_add(&v, dir, NULL), 0);
        v.of_coordinator = false;
        assert_int_equal(read_shares(&s, &v, JOB, 6, 1, 0, 100, NULL), 0);
        assert_true(s.numbered && !s.apart && s.code.shares == 3 && s.seen_len == 3);
        if (!strstr(s.note, "shares are numbered by their tasks")) fail_msg("%s", s.note);
        for (unsigned i = 0; i < nodes; i++) {
            check_share(&s.seen[0], (i + 2) % 3, (i + 2) % 3, 0);
            check_share(&s.seen[2], (i + 2) % 3, (i + 2) % 3, 2);
            assert_int_equal(s.seen[0].domain[(i + 2) % 3], i);
        }
        if (nodes == 2) assert_null(s.seen[0].residues[2]);
        sherd__shares_fini(&s);
        sherd__views_fini(&v);
    }
}

/* If two nodes have the same number, or a step is irregular, numbers are not used. */
static void numbers_that_disagree_are_not_used(void **state)
{
    (void)state;
    for (unsigned same = 0; same < 2; same++) {
        sherd__views v = { 0 };
        sherd__shares s;
        const char *dir = spool_folder();
        for (unsigned i = 0; i < 3; i++) a_part(dir, i, same ? i % 2 : i, 0, 3);
        assert_int_equal(sherd__views_add(&v, dir, NULL), 0);
        v.of_coordinator = false;
        if (!same) v.nodes[1].tasks[2].number++;
        assert_int_equal(read_shares(&s, &v, JOB, 6, 1, 0, 100, NULL), 0);
        assert_true(s.apart && !s.numbered && s.note[0]);
        sherd__shares_fini(&s);
        sherd__views_fini(&v);
    }
}

static void further_products_are_numbered(void **state)
{
    (void)state;
    sherd__views v;
    sherd__shares s;
    open_domains(&v);
    assert_int_equal(read_shares(&s, &v, JOB, 6, 1, 0, 100, NULL), 0);
    assert_int_equal(sherd__shares_number(&s, 2), 0);
    assert_string_equal(s.seen[0].name, "A (2)");
    assert_string_equal(s.seen[2].name, "B, tile 2 (2)");
    sherd__shares_fini(&s);
    sherd__views_fini(&v);
}

static void every_tile_of_a_coded_b_is_attacked(void **state)
{
    (void)state;
    sherd__views v;
    sherd__shares s;
    open_domains(&v);
    assert_int_equal(read_shares(&s, &v, JOB, 6, 1, 0, 100, NULL), 0);
    assert_int_equal(s.seen_len, 3);
    assert_string_equal(s.seen[2].name, "B, tile 2");
    for (unsigned i = 0; i < 3; i++)
        for (unsigned t = 0; t < 2; t++) check_share(&s.seen[1 + t], i, i, 1 + t);
    sherd__shares_fini(&s);
    sherd__views_fini(&v);
}

static void tiles_beyond_the_limit_are_counted_and_reported(void **state)
{
    (void)state;
    sherd__views v;
    sherd__shares s;
    sherd__shares_want w = { 6, 1, 0, 100, 1, 0, 0 };
    open_domains(&v);
    assert_int_equal(sherd__shares_read(&s, &v, JOB, &w, NULL), 0);
    assert_int_equal(s.seen_len, 2);
    if (!strstr(s.left_out, "sent in 2 tiles: the first 1 are")) fail_msg("%s", s.left_out);
    sherd__shares_fini(&s);
    for (w.right_operands = 2; w.right_operands > 1;
         w.right_operands = w.right_operands == 2 ? UINT32_MAX : 0) {
        assert_int_equal(sherd__shares_read(&s, &v, JOB, &w, NULL), 0); /* room only for what
                                                                         * exists */
        assert_int_equal(s.seen_len, 3);
        assert_string_equal(s.left_out, "");
        sherd__shares_fini(&s);
    }
    sherd__views_fini(&v);
}

/* ---- partitions that the record describes ---------------------------------------------------- */

#define PANELS 5u
#define PAD SHERD__SEEN_PADDING

/* 11 rows in parts of 5, each in two blocks of 3, 3 and 1 rows, at most two of them at a time. */
static const unsigned cut_at[PANELS + 1] = { 0, 2, 3, 5, 6, 7 };

static void a_kept(const char *dir, unsigned node, unsigned without, bool stays)
{
    static spool in, out;
    static const unsigned turns[PANELS] = { 4, 1, 0, 3, 2 };
    begin(&in, &out);
    sherd__fragment_info info = residues(node, 0, COLS, 1);
    spool_put(&in, JOB, 100, &info, body);
    for (unsigned i = 0; i < PANELS; i++) {
        unsigned p = turns[i], block = 1 + node * PANELS + p;
        if (without >> p & 1) continue;
        info = residues(node, cut_at[p], cut_at[p + 1] - cut_at[p], 0);
        spool_put(&in, JOB, stays ? block : 200 + i, &info, body);
        spool_task(&in, JOB, stays ? node + 1 : p * NODES + node + 1, stays ? block : 200 + i, 100,
                   primes, 2, &result);
    }
    record(dir, node, &in, &out);
}

/* Writes the description of a partition; more: further members. */
static void say_cut(const char *dir, unsigned panel, bool stays, const char *more)
{
    char line[400];
    int len = snprintf(line, sizeof line,
                       "{\"job\": \"%016x\", \"scheme\": \"share\", \"blocks\": 2, \"masks\": 1, "
                       "\"shares\": %u, \"rows\": 11, \"cols\": %u, \"part\": 5, \"panel\": %u, "
                       "\"stays\": %s, \"largest\": 255%s}\n",
                       JOB, NODES, COLS, panel, stays ? "true" : "false", more);
    spool_file(dir, "coded.jsonl", line, (size_t)len);
}

static void open_kept(sherd__views *v, const unsigned without[NODES], unsigned panel, bool stays)
{
    const char *dir = spool_folder();
    *v = (sherd__views){ 0 };
    for (unsigned i = 0; i < NODES; i++) a_kept(dir, i, without[i], stays);
    say_cut(dir, panel, stays, "");
    assert_int_equal(sherd__views_add(v, dir, NULL), 0);
}

static const unsigned whole[NODES] = { 0, 0, 0, 0 };

static void check_rows(const sherd__seen *s, const uint32_t *want)
{
    for (size_t i = 0; i < 2 * s->rows; i++) assert_int_equal(s->row[i], want[i]);
}

static void rows_belong_to_their_part_in_any_order_of_arrival(void **state)
{
    (void)state;
    static const uint32_t want[14] = { 0, 1, 2, 5, 6, 7, 10, 3, 4, PAD, 8, 9, PAD, PAD };
    for (unsigned stays = 0; stays < 2; stays++) {
        sherd__views v;
        sherd__shares s;
        open_kept(&v, whole, 2, stays);
        /* T, S and n are ignored: the record states them */
        assert_int_equal(read_shares(&s, &v, JOB, 11, 7, 9, 100, NULL), 0);
        assert_true(s.kind == SHERD__SHARES_BOTH && s.code.blocks == 2 && s.code.masks == 1);
        assert_true(s.largest == 255 && s.seen[0].rows == 7 && s.share_rows == 7);
        for (unsigned i = 0; i < NODES; i++) check_share(&s.seen[0], i, i, 0);
        check_rows(&s.seen[0], want);
        assert_null(s.seen[1].row);
        assert_true(s.largest_b == 0 &&
                    sherd__shares_right(&s) == !stays); /* no figure for a kept operand */
        assert_string_equal(s.seen[1].name, stays ? "right 1" : "B");
        assert_string_equal(s.note, "");
        sherd__shares_fini(&s);
        assert_int_equal(read_shares(&s, &v, JOB, 11, 1, 0, 4, NULL), 0);
        assert_int_equal(s.seen[0].rows, 4);
        assert_true(s.seen[0].row[3] == 5 && s.seen[0].row[4] == 3 && s.seen[0].row[6] == PAD);
        sherd__shares_fini(&s);
        assert_int_equal(read_shares(&s, &v, JOB, 12, 1, 0, 100, NULL), SHERD_EINVAL);
        sherd__views_fini(&v);
    }
}

static void rows_are_named_by_the_order_of_the_training(void **state)
{
    (void)state;
    static const uint32_t want[14] = { 10, 9, 8, 5, 4, 3, 0, 7, 6, PAD, 2, 1, PAD, PAD };
    sherd__views v;
    sherd__shares s;
    sherd_diag d = { 0 };
    open_kept(&v, whole, 2, true);
    v.order = sherd__calloc(11, sizeof *v.order);
    v.order_len = 11;
    for (uint32_t i = 0; i < 11; i++) v.order[i] = 10 - i;
    assert_int_equal(read_shares(&s, &v, JOB, 40, 1, 0, 100, NULL), 0); /* some rows were held
                                                                         * out */
    check_rows(&s.seen[0], want);
    assert_true(s.order == v.order && s.order_len == 11);
    sherd__shares_fini(&s);
    assert_int_equal(read_shares(&s, &v, JOB, 10, 1, 0, 100, &d), SHERD_EINVAL);
    assert_non_null(strstr(d.message, "row 0 of the recorded operand is row 10"));
    sherd__views_fini(&v);
}

/* Writes two tiles of B; every other node received the second one first. */
static void a_tiled(const char *dir, unsigned node)
{
    static spool in, out;
    begin(&in, &out);
    for (unsigned i = 0; i < 2; i++) {
        unsigned tile = (i + node) % 2;
        sherd__fragment_info info = residues(node, 0, COLS, 1 + tile);
        spool_put(&in, JOB, 100 + tile, &info, body);
        for (unsigned p = 0; p < PANELS; p++) {
            info = residues(node, cut_at[p], cut_at[p + 1] - cut_at[p], 0);
            spool_put(&in, JOB, 200 + i * PANELS + p, &info, body);
            spool_task(&in, JOB, (tile * PANELS + p) * NODES + node + 1, 200 + i * PANELS + p,
                       100 + tile, primes, 2, &result);
        }
    }
    record(dir, node, &in, &out);
}

static void tiles_are_placed_by_the_numbers_of_their_tasks(void **state)
{
    (void)state;
    sherd__views v = { 0 };
    sherd__shares s;
    const char *dir = spool_folder();
    for (unsigned i = 0; i < NODES; i++) a_tiled(dir, i);
    say_cut(dir, 2, false, ", \"right\": 77");
    assert_int_equal(sherd__views_add(&v, dir, NULL), 0);
    assert_int_equal(read_shares(&s, &v, JOB, 11, 1, 0, 100, NULL), 0);
    assert_true(s.largest_b == 77 && s.seen_len == 3 && sherd__shares_right(&s));
    assert_false(s.seen[0].right);
    for (unsigned t = 0; t < 2; t++) {
        assert_true(s.seen[1 + t].right && s.seen[1 + t].col == t * COLS);
        for (unsigned i = 0; i < NODES; i++) check_share(&s.seen[1 + t], i, i, 1 + t);
    }
    sherd__shares_fini(&s);
    sherd__views_fini(&v);
}

/* The inner-product code: A's blocks are columns, and B's are rows, all of which are known. */
static void blocks_of_columns_are_placed_by_the_code(void **state)
{
    (void)state;
    sherd__views v = { 0 };
    sherd__shares s;
    const char *dir = spool_folder();
    char line[400];
    for (unsigned i = 0; i < NODES; i++) a_tiled(dir, i);
    int len = snprintf(line, sizeof line,
                       "{\"job\": \"%016x\", \"scheme\": \"share\", \"code\": \"inner\", "
                       "\"blocks\": 2, \"masks\": 1, \"shares\": 4, \"rows\": 7, \"cols\": %u, "
                       "\"part\": 3, \"panel\": 2, \"stays\": false, \"largest\": 255}\n",
                       JOB, 2 * COLS - 1);
    spool_file(dir, "coded.jsonl", line, (size_t)len);
    assert_int_equal(sherd__views_add(&v, dir, NULL), 0);
    assert_int_equal(read_shares(&s, &v, JOB, 7, 1, 0, 100, NULL), 0);
    assert_string_equal(s.note, "");
    assert_true(s.seen_len == 3 && s.code.blocks == 2 && s.seen[0].rows == 7);
    assert_int_equal(s.seen[0].code->form, SHERD__SEEN_INNER_LEFT);
    assert_int_equal(s.seen[0].block_cols, COLS);
    for (unsigned r = 0; r < 14; r++) assert_int_equal(s.seen[0].row[r], r % 7);
    for (unsigned t = 0; t < 2; t++) {
        const sherd__seen *b = &s.seen[1 + t];
        assert_int_equal(b->code->form, SHERD__SEEN_INNER_RIGHT);
        assert_true(b->right && b->block_cols == 0 && b->col == t * COLS);
        for (unsigned r = 0; r < 2 * COLS; r++)
            assert_int_equal(b->row[r], r < 2 * COLS - 1 ? r : PAD);
        for (unsigned i = 0; i < NODES; i++) check_share(b, i, i, 1 + t);
    }
    sherd__shares_fini(&s);
    sherd__views_fini(&v);
}

/* A position may have enough answers before a domain has its turn: the same rows are used of all
 * shares. */
static void panels_that_were_not_sent_to_all_shares_are_left_out(void **state)
{
    (void)state;
    static const unsigned without[NODES] = { 0, 1u << 1, 0, 1u << 0 | 1u << 2 | 1u << 3 };
    static const uint32_t want[12] = { 0, 1, 5, 6, 7, 10, 3, 4, 8, 9, PAD, PAD };
    static const unsigned share_row[6] = { 0, 1, 3, 4, 5, 6 };
    sherd__views v;
    sherd__shares s;
    open_kept(&v, without, 2, true);
    assert_int_equal(read_shares(&s, &v, JOB, 11, 1, 0, 100, NULL), 0);
    assert_int_equal(s.seen[0].rows, 6);
    check_rows(&s.seen[0], want);
    assert_null(s.seen[0].residues[2 * 3]);
    for (unsigned i = 0; i < 3; i++)
        for (unsigned r = 0; r < 6; r++)
            assert_int_equal(s.seen[0].residues[2 * i][r * COLS],
                             residue(i, 0, share_row[r], 0, 0));
    assert_string_equal(s.note, "4 of 5 panels of A are attacked, of 3 of 4 shares: not all were "
                                "sent");
    sherd__shares_fini(&s);
    sherd__views_fini(&v);
}

static void a_description_that_disagrees_with_the_bytes_is_not_used(void **state)
{
    (void)state;
    sherd__views v;
    sherd__shares s;
    open_kept(&v, whole, 3, true);
    assert_int_equal(read_shares(&s, &v, JOB, 0, 1, 0, 100, NULL), 0);
    assert_non_null(strstr(s.note, "coded.jsonl"));
    assert_true(!s.seen[0].row && s.largest == 0 && s.code.blocks == 1);
    sherd__shares_fini(&s);
    sherd__views_fini(&v);
}

/* Reads shares of a record with the n-th allocation failing, for every n. Frees the record. */
static void fail_in_turn(sherd__views *v, size_t rows)
{
    for (size_t n = 1; n < 1000; n++) {
        sherd__shares s;
        sherd__alloc_fail_nth(n);
        int err = read_shares(&s, v, JOB, rows, 1, 0, 100, NULL);
        bool reached = sherd__alloc_fail_nth(0) >= n;
        assert_int_equal(err, reached ? SHERD_ENOMEM : 0);
        if (err) continue;
        sherd__shares_fini(&s);
        sherd__views_fini(v);
        return;
    }
    fail();
}

static void failed_allocations_are_reported_for_a_described_partition(void **state)
{
    (void)state;
    sherd__views v;
    open_kept(&v, whole, 2, true);
    fail_in_turn(&v, 11);
}

static void failed_allocations_are_reported(void **state)
{
    (void)state;
    sherd__views v;
    open_domains(&v);
    fail_in_turn(&v, 6);
}

/* ---- residues of one byte -------------------------------------------------------------------- */

enum { R = 5, BYTE_ROWS = 37, BYTE_MORE = 16, BYTE_WIDE = 20, BYTE_MOST = 128 };
static unsigned byte_cols = 70; /* columns of A, at most BYTE_MOST */
static const uint32_t byte_primes[R] = { 251, 241, 239, 233, 211 };

/* Lays out what a node is sent of an operand, as a coordinator does: of A, a panel. Returns its
 * info. */
static sherd__fragment_info byte_block(unsigned node, bool right, unsigned panel, uint8_t *out)
{
    const unsigned rows = right   ? byte_cols
                          : panel ? BYTE_MORE
                                  : BYTE_ROWS,
                   cols = right ? BYTE_WIDE : byte_cols;
    const size_t strips = ((right ? cols : rows) + 15) / 16, strip = 2048;
    sherd__fragment_info i = { .origin = SHERD__HIDDEN,
                               .dtype = right ? SHERD__BYTES_RIGHT : SHERD__BYTES_LEFT,
                               .primes = R,
                               .rows = rows,
                               .cols = cols,
                               .len = strips * R * strip };
    for (unsigned q = 0; q < R; q++) {
        uint8_t plain[BYTE_MOST * BYTE_MOST], laid[3 * 2048];
        for (unsigned k = 0; k < rows * cols; k++) {
            uint32_t p = byte_primes[q], x = (k * 7919 + q * 31 + node * 17 + right + panel) % p;
            plain[k] = (uint8_t)(right && x > p / 2 ? x - p : x);
        }
        if (right) sherd__bytes_lay_columns((const int8_t *)plain, rows, cols, cols, laid);
        else sherd__bytes_lay_rows(plain, rows, cols, cols, laid);
        for (size_t s = 0; s < strips; s++)
            memcpy(out + (s * R + q) * strip, laid + s * strip, strip);
    }
    assert_int_equal(sherd__bytes_laid(16, byte_cols), strip);
    return i;
}

/* Sends a node a second panel of A, for the same B. */
static void more_bytes(spool *in, unsigned node, uint8_t *laid, sherd__fragment_info *out)
{
    sherd__fragment_info info = byte_block(node, false, 1, laid);
    spool_put(in, JOB, 3, &info, laid);
    out->rows = BYTE_MORE;
    out->len = R * BYTE_MORE * BYTE_WIDE;
    spool_task(in, JOB, NODES + 1 + node, 3, 2, byte_primes, R, out);
}

/* Records four nodes under share, and returns the folder. A byte of node 0's first blocks may be
 * another one. */
static const char *open_panels(sherd__views *v, unsigned panels, bool right, size_t at,
                               uint8_t value)
{
    static uint8_t laid[3 * R * 2048];
    const char *dir = spool_folder();
    sherd__fragment_info out = { .origin = SHERD__RESULT,
                                 .dtype = SHERD__BYTES,
                                 .primes = R,
                                 .rows = BYTE_ROWS,
                                 .cols = BYTE_WIDE,
                                 .len = R * BYTE_ROWS * BYTE_WIDE };
    memset(v, 0, sizeof *v);
    for (unsigned i = 0; i < NODES; i++) {
        static spool in, back;
        begin(&in, &back);
        for (int side = 0; side < 2; side++) {
            sherd__fragment_info info = byte_block(i, side, 0, laid);
            if (i == 0 && side == right && value) laid[at] = value;
            spool_put(&in, JOB, 1 + (uint32_t)side, &info, laid);
        }
        sherd__fragment_info of = out;
        spool_task(&in, JOB, 1 + i, 1, 2, byte_primes, R, &of);
        if (panels > 1) more_bytes(&in, i, laid, &of);
        record(dir, i, &in, &back);
    }
    assert_int_equal(sherd__views_add(v, dir, NULL), 0);
    return dir;
}

static const char *open_bytes(sherd__views *v, bool right, size_t at, uint8_t value)
{
    return open_panels(v, 1, right, at, value);
}

/* Returns whether an audit of the record finds bytes beyond the edges. It takes half a minute under
 * valgrind, where tests of a few rounds run its paths. */
static bool finds_edges(const char *dir)
{
    sherd_audit *a;
    const sherd_audit_options opt = { .size = sizeof opt };
    bool found = false;
    assert_int_equal(sherd_audit_records(&a, &dir, 1, &opt, NULL), 0);
    for (size_t i = 0; sherd_audit_finding_at(a, i); i++) {
        const sherd_audit_finding *f = sherd_audit_finding_at(a, i);
        found |= f->flagged && strcmp(f->test, "edges") == 0;
    }
    sherd_audit_free(a);
    return found;
}

static void residues_of_one_byte_are_read_in_rows(void **state)
{
    (void)state;
    sherd__views v;
    sherd__shares s;
    const char *dir = open_bytes(&v, false, 0, 0);
    if (!under_valgrind())
        assert_false(finds_edges(dir)); /* an audit that finds some is another test's */
    assert_int_equal(read_shares(&s, &v, JOB, BYTE_ROWS, 1, 0, 100, NULL), 0);
    assert_true(s.kind == SHERD__SHARES_BOTH && s.seen_len == 2 && s.stray == 0);
    assert_true(s.code.primes_len == R && s.code.primes[4] == 211);
    for (unsigned e = 0; e < 2; e++) {
        const sherd__seen *of = &s.seen[e];
        assert_true(of->rows == (e ? byte_cols : BYTE_ROWS));
        assert_true(of->cols == (e ? BYTE_WIDE : byte_cols));
        for (unsigned i = 0; i < NODES; i++)
            for (unsigned q = 0; q < R; q++)
                for (unsigned k = 0; k < of->rows * of->cols; k++)
                    assert_int_equal(of->residues[i * R + q][k],
                                     (k * 7919 + q * 31 + i * 17 + e) % byte_primes[q]);
    }
    sherd__shares_fini(&s);
    assert_int_equal(read_shares(&s, &v, JOB, BYTE_ROWS, 1, 0, 18, NULL), 0);
    assert_true(s.seen[0].rows == 18 && s.share_rows == BYTE_ROWS);
    sherd__shares_fini(&s);
    sherd__views_fini(&v);
}

/* Checks the order of a panel's masks within that of its operand. */
static void check_drawn(const uint32_t *order, bool left, size_t first, size_t rows, size_t kept)
{
    static uint32_t want[BYTE_MOST * BYTE_MOST];
    const size_t cols = left ? byte_cols : BYTE_WIDE;
    sherd__share_drawn(left, rows, cols, kept, want);
    for (size_t k = 0; k < kept * cols; k++)
        assert_int_equal(order[first * cols + k], first * cols + want[k]);
}

static void masks_of_bytes_are_read_in_the_order_of_each_panel(void **state)
{
    (void)state;
    sherd__views v;
    sherd__shares s;
    const size_t rows = BYTE_ROWS + BYTE_MORE;
    byte_cols = 128; /* so that blocks of A consist of complete tiles */
    open_panels(&v, 2, false, 0, 0);
    assert_int_equal(read_shares(&s, &v, JOB, rows, 1, 0, BYTE_MOST, NULL), 0);
    assert_true(s.seen_len == 2 && s.seen[0].rows == rows && s.seen[1].rows == byte_cols);
    check_drawn(s.seen[0].order, true, 0, BYTE_ROWS, BYTE_ROWS);
    check_drawn(s.seen[0].order, true, BYTE_ROWS, BYTE_MORE, BYTE_MORE);
    check_drawn(s.seen[1].order, false, 0, byte_cols, byte_cols);
    sherd__shares_fini(&s);
    assert_int_equal(read_shares(&s, &v, JOB, rows, 1, 0, BYTE_ROWS + 5, NULL), 0);
    check_drawn(s.seen[0].order, true, 0, BYTE_ROWS, BYTE_ROWS);
    check_drawn(s.seen[0].order, true, BYTE_ROWS, BYTE_MORE, 5);
    check_drawn(s.seen[1].order, false, 0, byte_cols, BYTE_ROWS + 5);
    sherd__shares_fini(&s);
    sherd__views_fini(&v);
    byte_cols = 70;
}

static void failed_allocations_are_reported_for_bytes(void **state)
{
    (void)state;
    sherd__views v;
    open_bytes(&v, false, 0, 0);
    fail_in_turn(&v, BYTE_ROWS);
}

/* In the left block, row 36 has 70 terms; in the right one, column 19 has 70. */
static void bytes_beyond_the_edges_are_counted(void **state)
{
    (void)state;
    static const struct {
        bool right;
        size_t at;
    } of[] = {
        { false, 1024 + 6 },              /* row 0, term 70 */
        { false, 2 * R * 2048 + 5 * 64 }, /* row 37 */
        { false, 3 * R * 2048 - 1 },      /* the last byte */
        { true, 1024 + 64 + 2 },          /* column 0, term 70 */
        { true, R * 2048 + 4 * 4 },       /* column 20 */
        { true, 2 * R * 2048 - 1 },       /* the last byte */
    };
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        sherd__views v;
        sherd__shares s;
        const char *dir = open_bytes(&v, of[k].right, of[k].at, 1);
        if (k == 0 && !under_valgrind()) assert_true(finds_edges(dir));
        assert_int_equal(read_shares(&s, &v, JOB, BYTE_ROWS, 1, 0, 100, NULL), 0);
        assert_int_equal(s.stray, 1);
        sherd__shares_fini(&s);
        sherd__views_fini(&v);
    }
}

/* Attacks refuse them. 252 is no residue modulo 251, and neither is 126 or -126 on the right. */
static void bytes_that_are_no_residues_are_not_below_their_prime(void **state)
{
    (void)state;
    static const uint8_t values[] = { 252, 126, 130 };
    for (size_t k = 0; k < 3; k++) {
        sherd__views v;
        sherd__shares s;
        open_bytes(&v, k > 0, 0, values[k]);
        assert_int_equal(read_shares(&s, &v, JOB, BYTE_ROWS, 1, 0, 100, NULL), 0);
        assert_true(s.seen[k > 0].residues[0][0] >= 251);
        assert_true(s.seen[k > 0].residues[0][1] < 251);
        sherd__shares_fini(&s);
        sherd__views_fini(&v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_operands_of_share_are_read),
        cmocka_unit_test(a_public_b_is_distinguished_from_a_coded_one),
        cmocka_unit_test(an_incomplete_share_is_left_out_and_reported),
        cmocka_unit_test(records_of_nodes_themselves_are_read_separately),
        cmocka_unit_test(blocks_of_all_nodes_of_a_domain_form_one_share),
        cmocka_unit_test(records_of_nodes_themselves_are_numbered_by_their_tasks),
        cmocka_unit_test(numbers_that_disagree_are_not_used),
        cmocka_unit_test(further_products_are_numbered),
        cmocka_unit_test(every_tile_of_a_coded_b_is_attacked),
        cmocka_unit_test(tiles_beyond_the_limit_are_counted_and_reported),
        cmocka_unit_test(rows_belong_to_their_part_in_any_order_of_arrival),
        cmocka_unit_test(rows_are_named_by_the_order_of_the_training),
        cmocka_unit_test(tiles_are_placed_by_the_numbers_of_their_tasks),
        cmocka_unit_test(blocks_of_columns_are_placed_by_the_code),
        cmocka_unit_test(panels_that_were_not_sent_to_all_shares_are_left_out),
        cmocka_unit_test(a_description_that_disagrees_with_the_bytes_is_not_used),
        cmocka_unit_test(failed_allocations_are_reported_for_a_described_partition),
        cmocka_unit_test(failed_allocations_are_reported),
        cmocka_unit_test(residues_of_one_byte_are_read_in_rows),
        cmocka_unit_test(masks_of_bytes_are_read_in_the_order_of_each_panel),
        cmocka_unit_test(failed_allocations_are_reported_for_bytes),
        cmocka_unit_test(bytes_beyond_the_edges_are_counted),
        cmocka_unit_test(bytes_that_are_no_residues_are_not_below_their_prime),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
