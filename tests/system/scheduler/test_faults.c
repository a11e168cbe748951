/*
 * Faults, with real processes: nodes that are killed and stopped, connections that a proxy cuts,
 * stalls and half closes, nodes that lie in every mode of prog_misbehave; each at seeded instants
 * (fault_case.c). A quarter of the cases are in shares, where a node may be missing without any
 * recomputation. FAULTS_EACH=n runs more instants of each kind.
 *
 * All cases run in processes of their own, a dozen at a time, since most of their time is waiting;
 * the tests then judge each kind. FAULTS_SEED=n draws other instants, FAULTS_ONLY=word selects
 * cases.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/rand.h"
#include "fault_case.h"
#include "tests/support/send_signal.h"

#define N 560
#define K 420
#define M 390
#define AT_ONCE 12u
#define SET_UP_MS 120000 /* of one undisturbed product, even on a busy machine */

static uint64_t seed = 20260;
static fault_case *cases;
static unsigned cases_len;
static command shared[FAULT_FEW]; /* real nodes for the cases with a proxy */

/* ---- all cases ------------------------------------------------------------------------------- */

static void add_cases(const sherd__entropy *e)
{
    /* Multiples of 4, since i % 4 chooses the way of a product; of strict 2 for each mode. */
    static const unsigned how_many[KINDS] = {
        [KILL] = 12,   [STOP] = 12,    [RESET] = 12,  [HALF] = 12, [STALL] = 12,
        [GARBAGE] = 8, [WRONGLEN] = 8, [WRONG] = 8,   [TWICE] = 8, [UNASKED] = 8,
        [SLOW] = 8,    [SILENT] = 8,   [STRICT] = 10, [BOUND] = 2, [ALL] = 2,
    };
    const char *only = getenv("FAULTS_ONLY"), *each = getenv("FAULTS_EACH");
    unsigned most = each ? (unsigned)atoi(each) : 0;
    for (fault_kind k = 0; k < KINDS; k++)
        if (how_many[k] > most) most = how_many[k];
    cases = mmap(NULL, KINDS * most * sizeof *cases, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(cases != MAP_FAILED);
    for (fault_kind k = 0; k < KINDS; k++)
        for (unsigned i = 0; i < (each ? most : how_many[k]); i++) {
            fault_case f = { .kind = k, .index = i };
            for (int d = 0; d < 4; d++) f.draw[d] = sherd__entropy_u64(e) >> 1;
            if (!only || strcmp(only, fault_names[k]) == 0) cases[cases_len++] = f;
        }
    for (unsigned i = cases_len; i > 1; i--) { /* mixes kinds that wait and kinds that compute */
        unsigned j = (unsigned)sherd__entropy_below(e, i);
        fault_case t = cases[i - 1];
        cases[i - 1] = cases[j];
        cases[j] = t;
    }
}

/* Waits for the end of one case; the shared nodes are children, too. */
static void collect_one(void)
{
    for (;;) {
        int status;
        pid_t pid = wait(&status);
        assert_true(pid > 0);
        for (unsigned i = 0; i < cases_len; i++) {
            fault_case *f = &cases[i];
            if (f->pid != pid) continue;
            if (!WIFEXITED(status) || WEXITSTATUS(status)) fault_say(f, "the case itself failed");
            if (getenv("FAULTS_VERBOSE"))
                printf("# %-8s %2u %5lld ms%s%s %s\n", fault_names[f->kind], f->index,
                       (long long)f->took_ms, f->struck ? " struck" : "", f->ok ? "" : " FAILED",
                       f->text);
            return;
        }
    }
}

static void run_cases(void)
{
    unsigned under_way = 0;
    fflush(stdout);
    for (unsigned i = 0; i < cases_len; i++) {
        if (under_way == AT_ONCE) collect_one(), under_way--;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            signal(SIGABRT, SIG_DFL); /* the test runner catches it, and would continue in this
                                       * process */
            signal(SIGSEGV, SIG_DFL);
            alarm(170);
            fault_run(&cases[i]);
            _exit(0);
        }
        cases[i].pid = pid; /* set by the parent only: the child shares the table */
        under_way++;
    }
    while (under_way--) collect_one();
}

/* ---- references ------------------------------------------------------------------------------ */

static void undisturbed(int way, calm *out)
{
    fault_case f = { .kind = KINDS - 1, .index = 100 + (unsigned)way };
    fault_command r;
    fault_begin(&r, &f, sherd_path(), way, FAULT_FEW, NULL, false, NULL);
    bool ended = command_wait(&r.c, SET_UP_MS);
    json_t *root = command_json(&r.c);
    if (!ended || r.c.status) fault_say_end(&f, &r);
    if (!ended || r.c.status) fail_msg("an undisturbed product failed: %s", f.text);
    snprintf(out->file, sizeof out->file, "%s", r.out);
    out->panels = (uint32_t)fault_count(root, "panels");
    json_t *node = fault_node(root, "node-1");
    out->sent = (uint64_t)fault_count(node, "bytes_out");
    out->received = (uint64_t)fault_count(node, "bytes_in");
    assert_true(out->panels >= 6 && out->sent > 0 && out->received > 0);
    json_decref(root);
    command_free(&r.c);
}

/* The exact reference itself is compared with the product of one machine. */
static void check_reference(void)
{
    char a[200], b[200], c[200], s[200];
    command k;
    snprintf(a, sizeof a, "%s/A.npy", fault_top);
    snprintf(b, sizeof b, "%s/B.npy", fault_top);
    snprintf(c, sizeof c, "%s/checked.npy", fault_top);
    snprintf(s, sizeof s, "%s/seed", fault_top);
    const char *argv[] = { "sherd", "multiply", a,       b,         "-o",     c, "-n",
                           "2",     "--mode",   "exact", "--check", "--seed", s, NULL };
    command_start(&k, sherd_path(), argv, NULL);
    if (!command_wait(&k, SET_UP_MS) || k.status)
        fail_msg("exit %d: %s", k.status, command_said(k.err));
    command_free(&k);
    assert_true(files_equal(c, fault_calm[EXACT].file));
    assert_true(files_equal(c, fault_calm[PLAIN].file));
    assert_true(files_equal(c, fault_calm[SHARE].file));
}

static void start_shared_nodes(void)
{
    static const char *const more[] = { "--memory", "1G", NULL };
    char mine[160], allow[160], fingerprint[64], name[8];
    snprintf(mine, sizeof mine, "%s/me.key", fault_top);
    snprintf(allow, sizeof allow, "%s/allow", fault_top);
    key_file(mine, fingerprint);
    allow_file(allow, fingerprint);
    for (unsigned i = 0; i < FAULT_FEW; i++) {
        snprintf(name, sizeof name, "n%u", i);
        node_start(&shared[i], fault_top, name, allow, more, fault_shared[i]);
    }
}

static int begin(void **state)
{
    (void)state;
    sherd__seeded drawn;
    char path[200];
    uint8_t bytes[32];
    if (getenv("FAULTS_SEED")) seed = strtoull(getenv("FAULTS_SEED"), NULL, 10);
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("# FAULTS_SEED=%" PRIu64 "\n", seed);
    sherd__entropy e = sherd__entropy_seeded(&drawn, seed);
    folder_new(fault_top);
    snprintf(path, sizeof path, "%s/A.npy", fault_top);
    matrix_file(path, N, K, seed + 1);
    snprintf(path, sizeof path, "%s/B.npy", fault_top);
    matrix_file(path, K, M, seed + 2);
    snprintf(path, sizeof path, "%s/seed", fault_top);
    e.fill(e.ctx, bytes, sizeof bytes);
    file_put(path, bytes, sizeof bytes);
    for (int way = 0; way < WAYS; way++) undisturbed(way, &fault_calm[way]);
    check_reference();
    start_shared_nodes();
    add_cases(&e);
    int64_t began = clock_now_ms();
    run_cases();
    printf("# %u cases in %lld ms\n", cases_len, (long long)(clock_now_ms() - began));
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FAULT_FEW; i++) {
        if (shared[i].pid) send_signal(shared[i].pid, SIGTERM);
        if (shared[i].pid) (void)command_wait(&shared[i], 10000);
    }
    folder_remove(fault_top);
    return 0;
}

/* ---- kind by kind ---------------------------------------------------------------------------- */

/* Every case of the kind is right, and at least this many got their fault during the work. */
static void kind_holds(fault_kind k, unsigned struck_min)
{
    unsigned struck = 0, bad = 0, ran = 0;
    int64_t longest = 0;
    for (unsigned i = 0; i < cases_len; i++) {
        const fault_case *f = &cases[i];
        if (f->kind != k) continue;
        ran++;
        struck += f->struck;
        bad += !f->ok;
        if (f->took_ms > longest) longest = f->took_ms;
        if (!f->ok) print_message("# %s %u: %s\n", fault_names[k], f->index, f->text);
    }
    print_message("# %s: %u cases, %u struck, at most %lld ms\n", fault_names[k], ran, struck,
                  (long long)longest);
    if (ran == 0) skip();
    if (bad) fail_msg("%u of %u cases are wrong (FAULTS_SEED=%" PRIu64 ")", bad, ran, seed);
    if (struck < struck_min) fail_msg("only %u of %u faults occurred during the work", struck, ran);
}

#define HOLDS(name, kind, struck)                                                                  \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        kind_holds(kind, struck);                                                                  \
    }

HOLDS(a_node_killed_at_any_time_does_not_change_the_product, KILL, 4)
HOLDS(a_node_stopped_at_any_time_does_not_change_the_product, STOP, 4)
HOLDS(a_connection_reset_at_any_byte_does_not_change_the_product, RESET, 6)
HOLDS(a_connection_half_closed_at_any_byte_does_not_change_the_product, HALF, 6)
HOLDS(a_connection_that_stalls_at_any_byte_does_not_change_the_product, STALL, 6)
HOLDS(garbage_is_rejected_and_its_node_named, GARBAGE, 4)
HOLDS(an_answer_of_wrong_length_is_rejected_and_its_node_named, WRONGLEN, 4)
HOLDS(wrong_numbers_are_rejected_and_their_node_named, WRONG, 4)
HOLDS(a_repeated_answer_is_rejected_and_its_node_named, TWICE, 3)
HOLDS(an_unrequested_answer_is_rejected_and_its_node_named, UNASKED, 4)
HOLDS(a_slow_node_is_not_given_up, SLOW, 4)
HOLDS(a_silent_node_is_given_up, SILENT, 4)
HOLDS(strict_ends_at_the_first_wrong_answer_with_exit_8, STRICT, 6)
HOLDS(a_job_that_would_exceed_the_exposure_bound_ends_with_exit_10, BOUND, 0)
HOLDS(a_job_without_nodes_ends_with_exit_7, ALL, 0)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_killed_at_any_time_does_not_change_the_product),
        cmocka_unit_test(a_node_stopped_at_any_time_does_not_change_the_product),
        cmocka_unit_test(a_connection_reset_at_any_byte_does_not_change_the_product),
        cmocka_unit_test(a_connection_half_closed_at_any_byte_does_not_change_the_product),
        cmocka_unit_test(a_connection_that_stalls_at_any_byte_does_not_change_the_product),
        cmocka_unit_test(garbage_is_rejected_and_its_node_named),
        cmocka_unit_test(an_answer_of_wrong_length_is_rejected_and_its_node_named),
        cmocka_unit_test(wrong_numbers_are_rejected_and_their_node_named),
        cmocka_unit_test(a_repeated_answer_is_rejected_and_its_node_named),
        cmocka_unit_test(an_unrequested_answer_is_rejected_and_its_node_named),
        cmocka_unit_test(a_slow_node_is_not_given_up),
        cmocka_unit_test(a_silent_node_is_given_up),
        cmocka_unit_test(strict_ends_at_the_first_wrong_answer_with_exit_8),
        cmocka_unit_test(a_job_that_would_exceed_the_exposure_bound_ends_with_exit_10),
        cmocka_unit_test(a_job_without_nodes_ends_with_exit_7),
    };
    return cmocka_run_group_tests_name("scheduler/faults", tests, begin, end);
}
