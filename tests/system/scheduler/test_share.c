/*
 * `share` and `share1` with real node processes: as many nodes as are spare may be missing; with
 * more missing nodes there is another encoding, with too many exit 7; odd shapes; no byte of a
 * share is sent twice; late answers are cancelled soon.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/send_signal.h"
#include "tests/system/scheduler/local_nodes.h"
#include "tests/system/scheduler/share_world.h"
#include "wire/record.h"

#define WITHIN_MS 15000
#define CANCEL_MS 200
#define OLD "an earlier result\n"

/* ---- missing nodes --------------------------------------------------------------------------- */

/* Returns the time of a product in which two of five nodes are silent, and not yet known to be. */
static int64_t without_two(const double *a, const double *b)
{
    sherd_product_options o = share_options(SHERD_SHARE, 2);
    sherd_report r = { .size = sizeof r };
    int64_t began = clock_now_ms();
    send_signal(local_pid(share_cluster, 1), SIGSTOP);
    send_signal(local_pid(share_cluster, 4), SIGSTOP);
    share_multiply(share_cluster, &o, share_view(a, 120, 70), share_view(b, 70, 40), &r);
    int64_t took = clock_now_ms() - began;
    send_signal(local_pid(share_cluster, 1), SIGCONT);
    send_signal(local_pid(share_cluster, 4), SIGCONT);
    assert_int_equal(r.encodings, 1);
    assert_int_equal(r.blocks, 1);
    assert_int_equal(r.threshold, 3);
    assert_int_equal(r.domains, NODES);
    assert_int_equal(r.nodes_lost + r.nodes_banned, 0);
    assert_true(r.tasks_cancelled >= 2 * r.panels * r.tiles);
    sherd_report_fini(&r);
    return took;
}

static void one_encoding_is_enough_if_only_spare_nodes_are_missing(void **s)
{
    (void)s;
    double *a = share_matrix(120, 70), *b = share_matrix(70, 40);
    int64_t took = INT64_MAX; /* the nodes' timeouts must not pass, even if the machine is busy */
    for (unsigned tries = 0; tries < 3 && took >= 3000 * patience(); tries++)
        took = without_two(a, b);
    assert_true(took < 3000 * patience());
    free(a);
    free(b);
}

static void a_node_that_reports_no_memory_is_named_and_left_out(void **s)
{
    (void)s;
    double *a = share_matrix(120, 70), *b = share_matrix(70, 40);
    sherd_view va = share_view(a, 120, 70), vb = share_view(b, 70, 40);
    sherd_cluster *c = local_open(NODES, "poor@node-2", 0);
    sherd_product_options o = share_options(SHERD_SHARE, 1);
    share_multiply(c, &o, va, vb, NULL);
    share_multiply(c, &o, va, vb, NULL);
    char *told = strstr(local_warned, "reports memory for 64 bytes");
    assert_non_null(told);
    assert_non_null(strstr(local_warned, "node-2"));
    assert_null(strstr(told + 1, "reports memory for")); /* only once */
    for (int scheme = 0; scheme < 2; scheme++) { /* no node is spare: the others are enough */
        sherd_report r = { .size = sizeof r };
        o = scheme ? share_options(SHERD_PERMUTE, 0) : share_options(SHERD_SHARE, 0);
        o.exact = true;
        share_multiply(c, &o, va, vb, &r);
        assert_int_equal(r.nodes_lost, 1);
        sherd_report_fini(&r);
    }
    sherd_cluster_close(c);
    free(a);
    free(b);
}

/* Five nodes, none spare: five answers decode. One node ends at its third answer, and four
 * remain. */
static void with_more_missing_than_spare_nodes_all_shares_are_made_again(void **s)
{
    (void)s;
    const char *const more[] = { "-n", "5", "--memory", "2M", "--check", "--json", NULL };
    command c;
    share_start(&c, "crash:2@node-2", "A.npy", "B.npy", more);
    json_t *root = share_finish(&c, 0);
    assert_int_equal(share_count(root, "encodings"), 2);
    assert_int_equal(share_count(root, "shares"), 5); /* four shares each, over five domains */
    assert_int_equal(share_count(root, "blocks"), 1);
    assert_int_equal(share_count(root, "threshold"), 3);
    assert_int_equal(share_count(root, "nodes_lost"), 1);
    assert_true(json_is_true(json_object_get(json_object_get(root, "check"), "equal")));
    if (!strstr(share_said, "all shares are made again for the 4 domains that are left"))
        fail_msg("%s", share_said);
    json_decref(root);
}

/* It stays connected, but does not help: only nodes that can still answer count. */
static void if_a_node_refuses_all_shares_are_made_again_without_it(void **s)
{
    (void)s;
    const char *const more[] = { "-n", "5", "--memory", "2M", "--check", "--json", NULL };
    command c;
    share_start(&c, "refuse:2@node-2", "A.npy", "B.npy", more);
    json_t *root = share_finish(&c, 0);
    assert_int_equal(share_count(root, "encodings"), 2);
    assert_int_equal(share_count(root, "blocks"), 1);
    assert_true(json_is_true(json_object_get(json_object_get(root, "check"), "equal")));
    if (!strstr(share_said, "all shares are made again for the 4 domains that are left"))
        fail_msg("%s", share_said);
    json_decref(root);
}

static void with_too_few_remaining_nodes_the_exit_code_is_7_with_a_reason(void **s)
{
    (void)s;
    const char *const more[] = { "-n", "3", "--memory", "2M", NULL };
    char out[200];
    command c;
    share_path(out, "C.npy");
    file_put(out, OLD, sizeof OLD - 1);
    share_start(&c, "crash:2@node-2", "A.npy", "B.npy", more);
    int64_t began = clock_now_ms();
    (void)share_finish(&c, 7);
    assert_true(clock_now_ms() - began < WITHIN_MS * patience());
    if (!strstr(share_said, "2 of 3 domains can still answer, and 3 must"))
        fail_msg("%s", share_said);
    assert_true(file_holds(out, OLD));
}

/* One residue is off by one; all five answers are needed, so that it is read. */
static void a_liar_is_named_and_its_share_left_out(void **s)
{
    (void)s;
    const char *const more[] = { "-n", "5", "--memory", "2M", "--check", "--json", NULL };
    const char *const strict[] = { "-n", "5", "--memory", "2M", "--strict", NULL };
    char out[200];
    command c;
    share_start(&c, "wrong:1@node-3", "A.npy", "B.npy", more);
    json_t *root = share_finish(&c, 0);
    assert_int_equal(share_count(root, "encodings"), 2);
    assert_int_equal(share_count(root, "nodes_banned"), 1);
    assert_true(json_is_true(json_object_get(json_object_get(root, "check"), "equal")));
    const char *named = strstr(share_said, "node-3 (127.0.0.1:");
    if (!named || !strstr(named, ") answered wrongly: banned")) fail_msg("%s", share_said);
    json_decref(root);
    share_path(out, "C.npy");
    file_put(out, OLD, sizeof OLD - 1);
    share_start(&c, "wrong:1@node-3", "A.npy", "B.npy", strict);
    (void)share_finish(&c, 8);
    if (!strstr(share_said, "node-3 (127.0.0.1:")) fail_msg("%s", share_said);
    assert_true(file_holds(out, OLD));
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static void shapes_that_do_not_divide_are_correct(void **s)
{
    (void)s;
    static const size_t shapes[][3] = {
        { 1, 1, 1 }, { 2, 1, 1 }, { 3, 1, 7 }, { 7, 9, 1 }, { 1, 40, 5 },    { 11, 13, 17 },
        { 0, 5, 4 }, { 5, 4, 0 }, { 5, 0, 4 }, { 0, 0, 0 }, { 64, 33, 129 },
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        size_t n = shapes[i][0], k = shapes[i][1], m = shapes[i][2];
        double *a = share_matrix(n, k), *b = share_matrix(k, m);
        for (unsigned zero = 0; zero < 3; zero++) {
            if (zero == 1) memset(b, 0, k * m * sizeof *b);
            if (zero == 2) memset(a, 0, n * k * sizeof *a);
            for (sherd_scheme scheme = SHERD_SHARE; scheme <= SHERD_SHARE1; scheme++) {
                sherd_product_options o = share_options(scheme, i % 2);
                if (scheme == SHERD_SHARE && i % 4 == 0) o.code = SHERD_CODE_INNER;
                share_multiply(share_cluster, &o, share_view(a, n, k), share_view(b, k, m), NULL);
                if (i % 3 == 0) /* the same matrix with exchanged strides */
                    share_multiply(share_cluster, &o, sherd_view_t(share_view(a, k, n)),
                                   share_view(b, k, m), NULL);
            }
        }
        free(a);
        free(b);
    }
}

static void panels_and_tiles_fit_into_memory(void **s)
{
    (void)s;
    sherd_cluster *small = local_open(NODES, NULL, UINT64_C(1) << 20);
    double *a = share_matrix(203, 500), *b = share_matrix(500, 301);
    for (unsigned i = 0; i < 3; i++) {
        sherd_product_options o = share_options(i < 2 ? SHERD_SHARE : SHERD_SHARE1, 0);
        sherd_report r = { .size = sizeof r };
        o.memory = UINT64_C(1) << 20;
        if (i < 2) o.code = i ? SHERD_CODE_INNER : SHERD_CODE_LAGRANGE;
        share_multiply(small, &o, share_view(a, 203, 500), share_view(b, 500, 301), &r);
        assert_int_equal(r.code, i == 1 ? SHERD_CODE_INNER : SHERD_CODE_LAGRANGE);
        assert_true(r.panels > 1 && (r.tiles > 1 || i == 1));
        assert_int_equal(r.encodings, 1);
        assert_int_equal(r.tasks_repeated, 0);
        sherd_report_fini(&r);
    }
    sherd_cluster_close(small);
    free(a);
    free(b);
}

/* ---- the bytes that nodes receive ------------------------------------------------------------ */

#define WINDOW 12u /* four residues: two are equal by chance with probability 2^-90 */

typedef struct windows {
    uint8_t (*w)[WINDOW];
    size_t len, room;
} windows;

/* Adds every four residues of 23 bits, or twelve of bytes, of the blocks in a record of sent bytes.
 * Those with a zero are left out: tiles of bytes are filled with zeros. */
static void add_windows(windows *all, const char *file)
{
    uint8_t header[SHERD__RECORD_BYTES], body[1 << 16];
    FILE *f = fopen(file, "rb");
    if (!f) fail_msg("%s is missing", file);
    while (fread(header, 1, sizeof header, f) == sizeof header) {
        sherd__record r;
        assert_int_equal(sherd__record_parse(&r, header, NULL), 0);
        assert_true(r.body_len <= sizeof body);
        assert_int_equal(fread(body, 1, r.body_len, f), r.body_len);
        if (r.type != SHERD__REC_PUT || r.part == 0) continue;
        for (size_t at = 0; at + WINDOW <= r.body_len; at += WINDOW) {
            if (all->len == all->room) {
                all->room = 2 * all->room + 1024;
                all->w = realloc(all->w, all->room * WINDOW);
                assert_non_null(all->w);
            }
            if (!memchr(body + at, 0, WINDOW)) memcpy(all->w[all->len++], body + at, WINDOW);
        }
    }
    fclose(f);
}

static int by_bytes(const void *x, const void *y)
{
    return memcmp(x, y, WINDOW);
}

/* Matrices of zeros, so that every byte of a share comes from a mask. */
static void two_runs_share_no_bytes_of_shares(void **s)
{
    (void)s;
    windows all = { 0 };
    for (unsigned run = 0; run < 2; run++) {
        char name[16], record[200], file[240];
        command c;
        snprintf(name, sizeof name, "record-%u", run);
        share_path(record, name);
        const char *const more[] = { "-n", "3", "--record", record, NULL };
        share_start(&c, NULL, "Z.npy", "Y.npy", more);
        (void)share_finish(&c, 0);
        for (unsigned i = 1; i <= 3; i++) {
            snprintf(file, sizeof file, "%s/node-%u.sent", record, i);
            add_windows(&all, file);
        }
    }
    assert_true(all.len > 2 * 3 * (40 * 30 + 30 * 20) * 4 / WINDOW / 4);
    qsort(all.w, all.len, WINDOW, by_bytes);
    for (size_t i = 1; i < all.len; i++)
        if (by_bytes(all.w[i - 1], all.w[i]) == 0) fail_msg("residues were sent twice");
    free(all.w);
}

/* ---- late answers ---------------------------------------------------------------------------- */

#define EVENTS 4000u

typedef struct event {
    uint32_t task;
    int64_t after_ms, by_ms; /* between two samples */
} event;

/* A growing record, read as far as it was written. */
typedef struct tail {
    char file[240];
    uint16_t type; /* of the records that are counted */
    int64_t offset, looked_ms;
    size_t len;
    event e[EVENTS]; /* the last record of that type counts for a task */
} tail;

static void tail_read(tail *t)
{
    uint8_t header[SHERD__RECORD_BYTES];
    int64_t before = t->looked_ms;
    t->looked_ms = clock_now_ms();
    int64_t size = file_size(t->file), now = clock_now_ms();
    int fd = size > t->offset ? open(t->file, O_RDONLY | O_CLOEXEC) : -1;
    while (fd >= 0 && t->offset + (int64_t)sizeof header <= size) {
        sherd__record r;
        assert_int_equal(pread(fd, header, sizeof header, t->offset), sizeof header);
        assert_int_equal(sherd__record_parse(&r, header, NULL), 0);
        if (t->offset + (int64_t)(sizeof header + r.body_len) > size) break;
        t->offset += (int64_t)(sizeof header + r.body_len);
        if (r.type != t->type) continue;
        if (t->len && t->e[t->len - 1].task == r.number) t->len--;
        assert_true(t->len < EVENTS);
        t->e[t->len++] = (event){ r.number, before, now };
    }
    if (fd >= 0) close(fd);
}

static int64_t tail_time(const tail *t, uint32_t task)
{
    for (size_t i = 0; i < t->len; i++)
        if (t->e[i].task == task) return t->e[i].by_ms;
    return -1;
}

/* Returns the time by which enough answers for this position had arrived: the last one of the other
 * nodes, since four nodes with one spare decode from three answers. */
static int64_t enough_at(const tail *answers, uint32_t position)
{
    int64_t last = -1;
    for (uint32_t i = 0; i < 4; i++) {
        int64_t at = -1;
        for (uint32_t slot = 0; slot < 4 && at < 0; slot++)
            at = tail_time(&answers[i], position * 4 + slot + 1);
        if (i != 1 && at < 0) return -1;
        if (i != 1 && at > last) last = at;
    }
    return last;
}

/* node-2 takes a second for each product. The delay of a cancel is counted from the sample that
 * found enough answers to the last sample that did not find it: samples that are far apart because
 * this process got no processor are not the command's fault. */
static int64_t longest_after(unsigned run)
{
    static tail answers[4], cancels, tasks;
    char record[200], name[24];
    command c;
    snprintf(name, sizeof name, "record-late-%u", run);
    share_path(record, name);
    memset(answers, 0, sizeof answers);
    memset(&cancels, 0, sizeof cancels);
    const char *const more[] = { "-n", "4",        "--spare", "1",      "--memory",
                                 "2M", "--record", record,    "--json", NULL };
    share_start(&c, "slow@node-2", "A.npy", "B.npy", more);
    for (unsigned i = 0; i < 4; i++) {
        snprintf(answers[i].file, sizeof answers[i].file, "%s/node-%u.received", record, i + 1);
        answers[i].type = SHERD__REC_RESULT;
    }
    snprintf(cancels.file, sizeof cancels.file, "%s/node-2.sent", record);
    cancels.type = SHERD__REC_CANCEL;
    tasks = cancels;
    tasks.type = SHERD__REC_TASK;
    for (bool over = false; !over;) {
        over = command_over(&c);
        for (unsigned i = 0; i < 4; i++) tail_read(&answers[i]);
        tail_read(&cancels);
        tail_read(&tasks);
        pause_ms(1);
    }
    json_t *root = share_finish(&c, 0);
    json_int_t positions = share_count(root, "panels") * share_count(root, "tiles"), seen = 0;
    int64_t longest = 0;
    for (size_t i = 0; i < cancels.len; i++) {
        if (cancels.e[i].task == 0) continue; /* at the end, of the whole job */
        uint32_t position = (cancels.e[i].task - 1) / 4;
        int64_t enough = enough_at(answers, position);
        if (enough < 0) fail_msg("position %u was cancelled before three answers", position);
        int64_t after = cancels.e[i].after_ms - enough;
        if (after > longest) longest = after;
        seen++;
    }
    size_t left = 0; /* still running, although they are not needed any more */
    for (size_t i = 0; i < tasks.len; i++)
        left += tail_time(&cancels, tasks.e[i].task) < 0 &&
                tail_time(&answers[1], tasks.e[i].task) < 0;
    print_message("# %lld of %zu tasks cancelled, at most %lld ms late; %zu left\n",
                  (long long)seen, tasks.len, (long long)longest, left);
    assert_true(seen >= 3 && seen <= positions);
    assert_true(left <= 1); /* one task that tests whether the node is alive */
    json_decref(root);
    return longest;
}

static void late_answers_are_cancelled_within_200_ms(void **s)
{
    (void)s;
    for (unsigned run = 0; run < 5; run++) /* succeeds if the command gets a processor in time
                                            * once */
        if (longest_after(run) <= CANCEL_MS * patience()) return;
    fail_msg("never within %d ms", CANCEL_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_that_do_not_divide_are_correct),
        cmocka_unit_test(panels_and_tiles_fit_into_memory),
        cmocka_unit_test(one_encoding_is_enough_if_only_spare_nodes_are_missing),
        cmocka_unit_test(a_node_that_reports_no_memory_is_named_and_left_out),
        cmocka_unit_test(with_more_missing_than_spare_nodes_all_shares_are_made_again),
        cmocka_unit_test(if_a_node_refuses_all_shares_are_made_again_without_it),
        cmocka_unit_test(with_too_few_remaining_nodes_the_exit_code_is_7_with_a_reason),
        cmocka_unit_test(a_liar_is_named_and_its_share_left_out),
        cmocka_unit_test(two_runs_share_no_bytes_of_shares),
        cmocka_unit_test(late_answers_are_cancelled_within_200_ms),
    };
    return cmocka_run_group_tests_name("scheduler/share", tests, share_begin, share_end);
}
