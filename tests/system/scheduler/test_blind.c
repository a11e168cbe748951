/*
 * `sherd prepare` and `multiply --scheme blind` with real nodes: the result is right with dying and
 * lying nodes, masks that must not be used are refused with the right code, and no mask is sent
 * twice, at whatever instant the coordinator is killed.
 *
 * How reuse is detected: nodes record the bytes that they receive. Every A here has equal rows, a
 * in the first run, b in the second and so on, so that a masked row minus that run's row is a row
 * of R; no row of R may occur in two runs. (Within one run a row may be sent twice, to a second
 * node.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "core/bytes.h"
#include "crypto/fragment.h"
#include "tests/support/send_signal.h"
#include "sherd/npy.h"
#include "wire/message.h"
#include "wire/record.h"

#define ROWS 40u
#define K 96u
#define M 24u
#define PRIME 5931641u
#define CALLS 150u /* of disk and network, from the use of masks on: a run is killed around each */
#define OLD "an earlier result\n"

static char top[128], masks[160], saved[160], a_file[160], b_file[160], c_file[160], kill_file[160];
static char nodes_file[160], key[160], record_of[3][160];
static command node[3];

/* ---- running the command --------------------------------------------------------------------- */

/* Runs `sherd WORDS...` and returns its exit code, or -signal; its output is in said. */
static char said[4096];

static int run(const char *program, const char *const *env, const char *const *words)
{
    const char *argv[40] = { "sherd" };
    command c;
    size_t n = 1;
    while (*words) argv[n++] = *words++;
    command_start(&c, program, argv, env);
    int status = command_wait(&c, 60000 * patience()) ? c.status : -SIGALRM;
    char *err = command_said(c.err), *out = command_said(c.out);
    snprintf(said, sizeof said, "%.2000s%.2000s", err, out);
    free(err);
    free(out);
    command_free(&c);
    return status;
}

#define RUN(...) run(sherd_path(), NULL, (const char *const[]){ __VA_ARGS__, NULL })
#define MULTIPLY "multiply", a_file, b_file, "-o", c_file, "--scheme", "blind", "--masks", masks

static void must_end(int status, int expected, const char *says)
{
    if (status != expected || !strstr(said, says))
        fail_msg("ended with %d, expected %d and \"%s\": %s", status, expected, says, said);
}

static int64_t left(void)
{
    command c;
    const char *argv[] = { "sherd", "prepare", "--show", masks, "--json", NULL };
    if (command_run(&c, argv, 20000 * patience()) != 0) fail_msg("%s", command_said(c.out));
    json_t *root = command_json(&c);
    int64_t n = json_integer_value(json_object_get(root, "left"));
    json_decref(root);
    command_free(&c);
    return n;
}

static void prepare(unsigned rows)
{
    char text[16];
    snprintf(text, sizeof text, "%u", rows);
    must_end(RUN("prepare", b_file, "--rows", text, "-o", masks), 0, "wrote");
    assert_int_equal(left(), rows);
}

/* ---- operands -------------------------------------------------------------------------------- */

static int32_t entry(unsigned number, unsigned col)
{
    return (int32_t)((number * 7919u + col * 104729u + number * col * 31u) % 60000u) - 30000;
}

/* Makes A of run `number`: all rows equal one row that is specific to the run. */
static void make_a(unsigned number)
{
    static int32_t values[ROWS * K];
    for (unsigned i = 0; i < ROWS * K; i++) values[i] = entry(number, i % K);
    assert_int_equal(sherd_npy_save(a_file, sherd_view_c(values, SHERD_I32, ROWS, K), NULL), 0);
}

static int begin(void **s)
{
    (void)s;
    char allow[160], fingerprint[64], line[1024], text[3 * 1100] = "", name[8], state[160];
    folder_new(top);
    snprintf(masks, sizeof masks, "%s/B.masks", top);
    snprintf(saved, sizeof saved, "%s/B.masks.saved", top);
    snprintf(a_file, sizeof a_file, "%s/A.npy", top);
    snprintf(b_file, sizeof b_file, "%s/B.npy", top);
    snprintf(c_file, sizeof c_file, "%s/C.npy", top);
    snprintf(kill_file, sizeof kill_file, "%s/calls", top);
    snprintf(nodes_file, sizeof nodes_file, "%s/nodes", top);
    snprintf(key, sizeof key, "%s/me.key", top);
    snprintf(allow, sizeof allow, "%s/allow", top);
    snprintf(state, sizeof state, "%s/state", top);
    setenv("XDG_STATE_HOME", state, 1);
    matrix_file(b_file, K, M, 2);
    make_a(0);
    key_file(key, fingerprint);
    allow_file(allow, fingerprint);
    for (unsigned i = 0; i < 3; i++) {
        const char *more[] = { "--record", record_of[i], "--memory", "64M", NULL };
        snprintf(record_of[i], sizeof record_of[i], "%s/seen-%u", top, i);
        snprintf(name, sizeof name, "n%u", i);
        node_start(&node[i], top, name, allow, more, line);
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%s domain=d%u\n", line, i);
    }
    file_put(nodes_file, text, strlen(text));
    return 0;
}

static int end(void **s)
{
    (void)s;
    for (unsigned i = 0; i < 3; i++) {
        send_signal(node[i].pid, SIGTERM);
        (void)command_wait(&node[i], 10000);
        command_free(&node[i]);
    }
    folder_remove(top);
    return 0;
}

/* ---- correct results ------------------------------------------------------------------------- */

static void one_node_is_enough(void **s)
{
    (void)s;
    prepare(2 * ROWS);
    must_end(RUN(MULTIPLY, "-n", "1", "--check"), 0, "equal: yes, bit for bit");
    assert_non_null(strstr(said, "all nodes together learn nothing of A; B is public"));
    assert_non_null(strstr(said, "40 rows of masks are left"));
    must_end(RUN(MULTIPLY, "--nodes", nodes_file, "--key", key, "--check"), 0,
             "equal: yes, bit for bit");
    assert_int_equal(left(), 0);
}

static int misbehaving(const char *how, const char *more)
{
    char env[64];
    snprintf(env, sizeof env, "SHERD_TEST_MISBEHAVE=%s", how);
    const char *const envs[] = { env, NULL };
    const char *const words[] = { MULTIPLY, "-n", "3", "--check", "--memory", "1M", more, NULL };
    return run(liar_path(), envs, words);
}

static void the_rows_of_a_dead_node_are_sent_to_another(void **s)
{
    (void)s;
    prepare(ROWS);
    must_end(misbehaving("crash@node-2", NULL), 0, "equal: yes, bit for bit");
    assert_non_null(strstr(said, "1 node was lost"));
}

static void a_liar_is_named_and_others_do_its_work(void **s)
{
    (void)s;
    prepare(2 * ROWS);
    must_end(misbehaving("wrong@node-2", NULL), 0, "equal: yes, bit for bit");
    assert_non_null(strstr(said, "node-2"));
    assert_non_null(strstr(said, "answered wrongly: banned"));
    file_put(c_file, OLD, sizeof OLD - 1);
    must_end(misbehaving("wrong@node-2", "--strict"), 8, "answered wrongly");
    assert_true(file_holds(c_file, OLD));
}

static void with_liars_only_there_is_no_result(void **s)
{
    (void)s;
    prepare(ROWS);
    file_put(c_file, OLD, sizeof OLD - 1);
    must_end(misbehaving("wrong", NULL), 7, "no node is left");
    assert_true(file_holds(c_file, OLD));
    assert_int_equal(left(), 0); /* they were sent */
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void copy_file(const char *from, const char *to)
{
    char bytes[65536];
    FILE *f = fopen(from, "rb");
    assert_non_null(f);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    assert_true(n < sizeof bytes);
    fclose(f);
    file_put(to, bytes, n);
    assert_int_equal(chmod(to, 0600), 0);
}

static void flip(const char *path, long at)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, at, SEEK_SET);
    int c = fgetc(f);
    fseek(f, at, SEEK_SET);
    fputc(c ^ 4, f);
    fclose(f);
}

static void masks_that_must_not_be_used_are_refused(void **s)
{
    (void)s;
    char other[160];
    snprintf(other, sizeof other, "%s/other.npy", top);
    prepare(ROWS + 5);
    copy_file(masks, saved);
    file_put(c_file, OLD, sizeof OLD - 1);
    matrix_file(other, K, M, 3);
    must_end(RUN("multiply", a_file, other, "-o", c_file, "--scheme", "blind", "--masks", masks,
                 "-n", "1"),
             10, "masks for another B: its digest differs");
    must_end(RUN("multiply", a_file, b_file, "-o", c_file, "--scheme", "blind", "-n", "1"), 2,
             "--masks");
    must_end(RUN("multiply", a_file, b_file, "-o", c_file, "--masks", masks, "-n", "1"), 2,
             "no effect under --scheme permute");
    must_end(RUN(MULTIPLY, "-n", "1", "--bits", "12"), 2, "requested 12 of A");
    must_end(RUN(MULTIPLY, "-n", "1", "--mode", "float"), 2, "is exact");
    must_end(RUN(MULTIPLY, "-n", "1", "--colluding", "2"), 2, "no effect under --scheme blind");
    must_end(RUN("multiply", a_file, b_file, "-o", masks, "--scheme", "blind", "--masks", masks,
                 "-n", "1"),
             2, "would replace");
    assert_int_equal(chmod(masks, 0640), 0);
    must_end(RUN(MULTIPLY, "-n", "1"), 6, "mode 0640 lets others read the masks");
    assert_int_equal(chmod(masks, 0600), 0);
    for (long at = 0; at < 300; at += 37) {
        flip(masks, at);
        int status = RUN(MULTIPLY, "-n", "1");
        if (status != 3 && !(status == 14 && at >= 8 && at < 12))
            fail_msg("byte %ld: %d %s", at, status, said);
        flip(masks, at);
    }
    int fd = open(masks, O_RDONLY);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    must_end(RUN(MULTIPLY, "-n", "1"), 1, "another run is using these masks");
    close(fd);
    assert_int_equal(left(), ROWS + 5); /* none of these used any */
    assert_true(file_holds(c_file, OLD));
    must_end(RUN(MULTIPLY, "-n", "1"), 0, "5 rows of masks are left");
    must_end(RUN(MULTIPLY, "-n", "1"), 10, "5 rows of masks are left, and A has 40");
    copy_file(saved, masks);
    must_end(RUN(MULTIPLY, "-n", "1"), 10,
             "an older copy: it records 0 used rows, and 40 were used");
}

static void a_dry_run_uses_no_masks(void **s)
{
    (void)s;
    prepare(ROWS);
    must_end(RUN(MULTIPLY, "-n", "3", "--dry-run"), 0, "scheme");
    assert_int_equal(left(), ROWS);
}

/* ---- no mask twice --------------------------------------------------------------------------- */

typedef struct mask_row {
    unsigned run;
    uint32_t r[K];
} mask_row;

static mask_row *seen;
static size_t seen_len, seen_room;

static void note_row(unsigned number, const uint8_t *packed)
{
    if (seen_len == seen_room)
        seen = realloc(seen, (seen_room = 2 * seen_room + 64) * sizeof *seen);
    mask_row *m = &seen[seen_len++];
    m->run = number;
    for (unsigned j = 0; j < K; j++) {
        uint32_t u = packed[3 * j] | (uint32_t)packed[3 * j + 1] << 8 |
                     (uint32_t)packed[3 * j + 2] << 16;
        m->r[j] = (uint32_t)((u + PRIME + (int64_t)PRIME - entry(number, j)) % PRIME);
    }
}

/* Extracts rows of R modulo the first prime from the bytes that a node received in one session,
 * including incomplete blocks. Returns their number. */
static size_t read_record(unsigned number, const char *path)
{
    static uint8_t bytes[1 << 20];
    FILE *f = fopen(path, "rb");
    if (!f) return 0;
    size_t len = fread(bytes, 1, sizeof bytes, f), at = 0, before = seen_len;
    fclose(f);
    sherd__fragment_info info = { .len = 0 };
    static uint8_t body[1 << 19];
    size_t have = 0;
    while (len - at >= SHERD__RECORD_BYTES) {
        sherd__record r;
        sherd_diag d = { .code = 0 };
        if (sherd__record_parse(&r, bytes + at, &d))
            fail_msg("%s, byte %zu: %s", path, at, d.message);
        at += SHERD__RECORD_BYTES;
        size_t n = r.body_len < len - at ? (size_t)r.body_len : len - at;
        if (r.type == SHERD__REC_PUT && r.part == 0 && n == r.body_len) {
            assert_int_equal(sherd__message_description_parse(&info, NULL, bytes + at, n, NULL), 0);
            have = 0;
        } else if (r.type == SHERD__REC_PUT && r.part > 0 && info.dtype == SHERD__RESIDUES) {
            size_t whole = have / (3 * K);
            memcpy(body + have, bytes + at, n);
            have += n;
            for (size_t row = whole; row < have / (3 * K) && row < info.rows; row++)
                note_row(number, body + 3 * K * row);
        }
        at += n;
    }
    return seen_len - before;
}

/* Reads everything that reached the nodes in session `number` (counted from 1). */
static size_t read_records(unsigned number)
{
    size_t rows = 0;
    for (unsigned i = 0; i < 3; i++) {
        char path[300];
        snprintf(path, sizeof path, "%.200s/session-%u.received", record_of[i], number);
        rows += read_record(number, path);
    }
    return rows;
}

static int by_mask(const void *x, const void *y)
{
    return memcmp(((const mask_row *)x)->r, ((const mask_row *)y)->r, sizeof seen->r);
}

static void no_mask_was_seen_in_two_runs(void)
{
    qsort(seen, seen_len, sizeof *seen, by_mask);
    for (size_t i = 1; i < seen_len; i++)
        if (by_mask(&seen[i - 1], &seen[i]) == 0 && seen[i - 1].run != seen[i].run)
            fail_msg("one mask was sent in run %u and in run %u", seen[i - 1].run, seen[i].run);
}

static unsigned sessions = 1; /* the nodes have had one session: one_node_is_enough */

/* Runs a product that dies at `at` (0: does not); returns how it ended. */
static int killed_at(unsigned at, size_t *rows)
{
    char preload[400], on[64], when[32], file[220], here[200];
    const char *build = getenv("B");
    if (!build) build = "build/plain";
    if (*build == '/' || !getcwd(here, sizeof here)) here[0] = '\0';
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s%s%s/tests/system/scheduler/preload_kill.so",
             here, *here ? "/" : "", build);
    snprintf(on, sizeof on, "KILL_ON=B.masks");
    snprintf(when, sizeof when, "KILL_AT=%u", at);
    snprintf(file, sizeof file, "KILL_FILE=%s", kill_file);
    const char *const env[] = { preload, on, file, at ? when : NULL, NULL };
    const char *const words[] = { MULTIPLY, "--nodes",  nodes_file, "--key",
                                  key,      "--memory", "1M",       NULL };
    make_a(++sessions);
    int status = run(sherd_path(), env, words);
    *rows = 0;
    for (int64_t until = clock_now_ms() + 100; clock_now_ms() < until;) pause_ms(5);
    *rows = read_records(sessions);
    return status;
}

static void masks_of_a_killed_coordinator_are_not_sent_again(void **s)
{
    (void)s;
    size_t rows;
    unsigned calls = 0, struck_unsent = 0, sent = 0, unstruck = 0;
    prepare(ROWS * 200);
    must_end(killed_at(0, &rows), 0, "rows of masks are left");
    assert_true(rows >= ROWS);
    FILE *f = fopen(kill_file, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%u", &calls), 1);
    fclose(f);
    assert_true(calls > 10);
    assert_true(calls <= CALLS); /* more would take too long: reduce the product, but keep every
                                  * instant */
    for (unsigned at = 2; at < 2 * calls + 2; at++) {
        int64_t before = left();
        int status = killed_at(at, &rows);
        int64_t after = left();
        if (status != -SIGKILL && status != 0) fail_msg("at %u: %d, %s", at, status, said);
        if (after != before && after != before - ROWS)
            fail_msg("at %u: %lld", at, (long long)after);
        if (rows > 0 && after == before) fail_msg("at %u: sent, but not marked as used", at);
        struck_unsent += rows == 0 && after != before;
        unstruck += after == before;
        sent += rows > 0;
    }
    must_end(killed_at(0, &rows), 0, "rows of masks are left");
    no_mask_was_seen_in_two_runs();
    print_message("%u calls; runs killed: %u before masks were marked, %u between that and "
                  "sending, %u later\n",
                  calls, unstruck, struck_unsent, sent);
    assert_true(unstruck > 2 && struck_unsent > 4 && sent > 2);
}

/* Two runs at once: the second is refused at once, and no mask is sent twice. */
static void two_runs_at_once_share_no_mask(void **s)
{
    (void)s;
    prepare(ROWS * 8);
    for (unsigned round = 0; round < 4; round++) {
        command c[2];
        char a[2][200], out[2][200];
        int64_t before = left();
        unsigned done = 0;
        for (unsigned i = 0; i < 2; i++) {
            snprintf(out[i], sizeof out[i], "%s/C%u.npy", top, i);
            snprintf(a[i], sizeof a[i], "%s", a_file);
            const char *argv[] = { "sherd", "multiply", a[i],  b_file, "-o", out[i], "--scheme",
                                   "blind", "--masks",  masks, "-n",   "1",  NULL };
            command_start(&c[i], sherd_path(), argv, NULL);
        }
        for (unsigned i = 0; i < 2; i++) {
            assert_true(command_wait(&c[i], 30000 * patience()));
            if (c[i].status != 0 && c[i].status != 1) fail_msg("%s", command_said(c[i].err));
            done += c[i].status == 0;
            command_free(&c[i]);
        }
        assert_true(done > 0);
        assert_int_equal(left(), before - (int64_t)done * ROWS);
    }
}

int main(void)
{
    const char *san = getenv("SAN");
    if (san && *san) {
        printf("TAP version 13\n1..1\nok 1 # SKIP nothing can be preloaded before a sanitizer\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_node_is_enough),
        cmocka_unit_test(the_rows_of_a_dead_node_are_sent_to_another),
        cmocka_unit_test(a_liar_is_named_and_others_do_its_work),
        cmocka_unit_test(with_liars_only_there_is_no_result),
        cmocka_unit_test(masks_that_must_not_be_used_are_refused),
        cmocka_unit_test(a_dry_run_uses_no_masks),
        cmocka_unit_test(masks_of_a_killed_coordinator_are_not_sent_again),
        cmocka_unit_test(two_runs_at_once_share_no_mask),
    };
    return cmocka_run_group_tests_name("scheduler/blind", tests, begin, end);
}
