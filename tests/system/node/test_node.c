/* The node process: what it prints, which peers it accepts, what it refuses, how it ends. */
#include "tests/support/send_signal.h"
#include "tests/system/node/proc.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

static char folder[64];
static char key_path[96], allow_path[96];
static hub mine, other; /* two coordinators */

static const char *in_folder(char out[96], const char *name)
{
    snprintf(out, 96, "%s/%s", folder, name);
    return out;
}

static void allow_line(const hub *h, char out[160], const char *host)
{
    char text[SHERD__FINGERPRINT_TEXT];
    sherd__fingerprint_text(sherd__identity_fingerprint(h->me), text);
    snprintf(out, 160, "%s key=%s role=coordinator\n", host, text);
}

static void allow(const hub *a, const hub *b)
{
    char text[400], one[160];
    allow_line(a, text, "*");
    if (b) {
        allow_line(b, one, "127.0.0.1:1");
        strcat(text, one);
    }
    write_text(allow_path, text);
}

static int begin(void **s)
{
    (void)s;
    sherd_identity *id;
    strcpy(folder, "/tmp/sherd-node-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    assert_int_equal(setenv("XDG_CACHE_HOME", folder, 1), 0);
    in_folder(key_path, "node.key");
    in_folder(allow_path, "allow.txt");
    hub_open(&mine);
    hub_open(&other);
    assert_int_equal(sherd_identity_new(&id, NULL), SHERD_OK);
    assert_int_equal(sherd_identity_save(id, key_path, NULL), SHERD_OK);
    sherd_identity_free(id);
    return 0;
}

static int cut(void **s)
{
    (void)s;
    hub_cut(&mine);
    hub_cut(&other);
    return 0;
}

static int end(void **s)
{
    (void)s;
    char line[128];
    hub_close(&mine);
    hub_close(&other);
    snprintf(line, sizeof line, "rm -rf %s", folder);
    return system(line);
}

/* The self-test is quick, unless the first of `more` is another one. */
static void start_with(proc *p, const char *const *more, const char *env)
{
    const char *argv[24] = { "sherd",  "node",    "--listen", "127.0.0.1:0", "--key",
                             key_path, "--allow", allow_path, "-v" };
    size_t n = 9;
    if (!more || !*more || strcmp(*more, "--selftest") != 0) {
        argv[n++] = "--selftest";
        argv[n++] = "quick";
    }
    while (more && *more) argv[n++] = *more++;
    proc_spawn(p, command_under_test(), argv, env);
}

static void start(proc *p, const char *const *more)
{
    bool found;
    sherd_diag d = { .code = 0 };
    start_with(p, more, NULL);
    if (!proc_line(p, 20000)) {
        proc_wait(p, 5000);
        fail_msg("the node did not start: %s", p->words);
    }
    if (sherd__peer_parse(&p->peer, &found, p->line, "line", &d)) fail_msg("%s", d.message);
    assert_true(found && p->peer.has_key && p->peer.port != 0);
}

static void a_node_prints_its_line_and_serves_allowed_coordinators(void **s)
{
    (void)s;
    static const char *const more[] = { "--name",   "alpha", "--domain", "here",
                                        "--memory", "64M",   NULL };
    proc p;
    tie t;
    allow(&mine, NULL);
    start(&p, more);
    assert_string_equal(p.peer.host, "127.0.0.1");
    assert_string_equal(p.peer.name, "alpha");
    assert_string_equal(p.peer.domain, "here");
    tie_up(&mine, &t, &p.peer);
    assert_int_equal(t.hello.memory, 64 << 20);
    assert_true(t.hello.threads >= 1 && t.hello.gflops > 0);
    assert_int_equal(t.hello.devices_len, 1);
    assert_int_equal(t.hello.devices[0].does, SHERD__DOES_ALL);
    assert_true(t.hello.devices[0].gflops == t.hello.gflops);
    assert_true(t.hello.devices[0].cell > 0 && t.hello.devices[0].depth > 0);
    assert_string_equal(t.hello.backend, "cpu");
    tie_put(&t, 9, 1, 20, 30, 2);
    tie_put(&t, 9, 2, 30, 10, 3);
    tie_ask(&t, 9, 1, 20, 10);
    hub_wait(&mine, t.results, 1, 10000);
    assert_true(t.first == 180 && t.last == 180);
    tie_down(&mine, &t);
    proc_stop(&p);
    assert_int_equal(p.status, 0);
    assert_non_null(strstr(p.words, "1 task done"));
}

static void an_unknown_key_is_rejected_and_both_sides_are_informed(void **s)
{
    (void)s;
    proc p;
    tie t;
    allow(&mine, NULL);
    start(&p, NULL);
    tie_begin(&other, &t, &p.peer);
    hub_wait(&other, t.gone, 1, 10000);
    assert_false(t.ready);
    assert_int_equal(t.err, SHERD_EAUTH);
    tie_up(&mine, &t, &p.peer);
    tie_down(&mine, &t);
    proc_stop(&p);
    assert_non_null(strstr(p.words, "refused 127.0.0.1"));
}

static void the_address_in_the_allow_list_is_compared(void **s)
{
    (void)s;
    char line[160];
    proc p;
    tie t;
    allow_line(&mine, line, "10.11.12.13:1");
    write_text(allow_path, line);
    start(&p, NULL);
    tie_begin(&mine, &t, &p.peer);
    hub_wait(&mine, t.gone, 1, 10000);
    assert_false(t.ready);
    proc_stop(&p);
    assert_non_null(strstr(p.words, "another address"));
}

static void two_coordinators_share_a_node_and_cannot_name_each_others_blocks(void **s)
{
    (void)s;
    proc p;
    tie a, b;
    allow(&mine, &other);
    start(&p, NULL);
    tie_up(&mine, &a, &p.peer);
    tie_up(&other, &b, &p.peer);
    tie_put(&a, 9, 1, 20, 30, 2);
    tie_put(&a, 9, 2, 30, 10, 3);
    tie_ask(&a, 9, 1, 20, 10);
    hub_wait(&mine, a.results, 1, 10000);
    tie_ask(&b, 9, 1, 20, 10); /* the other's job, with its own number */
    hub_wait(&other, b.refused, 1, 10000);
    assert_int_equal(b.refusal.code, SHERD_EINVAL);
    assert_int_equal(sherd__session_drop(sherd__link_session(b.link), 9, 0), SHERD_OK);
    tie_put(&b, 9, 1, 20, 30, 5);
    tie_put(&b, 9, 2, 30, 10, 7);
    tie_ask(&b, 9, 2, 20, 10);
    hub_wait(&other, b.results, 1, 10000);
    assert_true(b.first == 1050);
    tie_down(&other, &b);
    tie_ask(&a, 9, 2, 20, 10);
    hub_wait(&mine, a.results, 2, 10000);
    assert_true(a.first == 180);
    tie_down(&mine, &a);
    proc_stop(&p);
}

static void blocks_beyond_the_budget_are_refused_and_memory_stays_below_it(void **s)
{
    (void)s;
    enum { MB = 1 << 20, BUDGET = 96 * MB };
    sherd__launch *l = hub_launch(&mine, 1, BUDGET);
    pid_t pid = sherd__launch_node(l, 0)->pid;
    tie t;
    tie_up(&mine, &t, &sherd__launch_node(l, 0)->peer);
    uint64_t before = process_memory(pid, "VmRSS:");
    for (uint32_t round = 0; round < 3; round++) {
        uint32_t refused = t.refused;
        for (uint32_t k = 1; k <= 60; k++) tie_put(&t, 100 + round, k, 512, 512, 1); /* 2 MB each */
        sherd__task task = tie_task(100 + round, 1, 512, 512);
        assert_int_equal(sherd__session_task(sherd__link_session(t.link), &task), SHERD_OK);
        uint32_t answered = t.results + t.refused;
        sherd__link_flush(t.link);
        hub_wait(&mine, t.results + t.refused, answered + 60 - 48 + 1, 30000);
        assert_true(t.refused - refused >= 60 - 48);
        int err = sherd__session_drop(sherd__link_session(t.link), 100 + round, 0);
        assert_int_equal(err, SHERD_OK);
    }
    uint64_t peak = process_memory(pid, "VmHWM:");
    if (peak > before + BUDGET + 24 * MB)
        fail_msg("%llu MB resident, of which %llu at the start", (unsigned long long)peak / MB,
                 (unsigned long long)before / MB);
    tie_put(&t, 7, 1, 20, 30, 2); /* and it continues */
    tie_put(&t, 7, 2, 30, 10, 3);
    uint32_t results = t.results;
    tie_ask(&t, 7, 1, 20, 10);
    hub_wait(&mine, t.results, results + 1, 10000);
    tie_down(&mine, &t);
    sherd__launch_stop(l, 0);
}

static void sighup_reads_the_allow_list_again(void **s)
{
    (void)s;
    proc p;
    tie a, b;
    allow(&mine, NULL);
    start(&p, NULL);
    tie_up(&mine, &a, &p.peer);
    write_text(allow_path, "* key=nonsense\n"); /* an invalid list changes nothing */
    send_signal(p.pid, SIGHUP);
    allow(&other, NULL);
    struct timespec pause = { .tv_nsec = 300000000 };
    nanosleep(&pause, NULL);
    send_signal(p.pid, SIGHUP);
    hub_wait(&mine, a.gone, 1, 10000);
    assert_non_null(strstr(a.text, "no longer allowed"));
    tie_up(&other, &b, &p.peer);
    tie_down(&other, &b);
    proc_stop(&p);
}

static void sigterm_sends_a_goodbye(void **s)
{
    (void)s;
    proc p;
    tie t;
    allow(&mine, NULL);
    start(&p, NULL);
    tie_up(&mine, &t, &p.peer);
    send_signal(p.pid, SIGTERM);
    hub_wait(&mine, t.gone, 1, 10000);
    assert_non_null(strstr(t.text, "the node is ending"));
    proc_wait(&p, 10000);
    assert_int_equal(p.status, 0);
}

static void a_node_ends_while_it_computes(void **s)
{
    (void)s;
    proc p;
    tie t;
    allow(&mine, NULL);
    start(&p, NULL);
    tie_up(&mine, &t, &p.peer);
    tie_put(&t, 9, 1, 2000, 4000, 2); /* some seconds in total */
    tie_put(&t, 9, 2, 4000, 2000, 3);
    for (uint32_t k = 1; k <= 40; k++) tie_ask(&t, 9, k, 2000, 2000);
    hub_wait(&mine, t.results, 1, 60000);
    send_signal(p.pid, SIGTERM);
    hub_wait(&mine, t.gone, 1, 15000);
    proc_wait(&p, 15000);
    assert_int_equal(p.status, 0);
}

/* Starts a node with the preloaded BLAS. */
static void start_preloaded(proc *p, const char *const *more)
{
    char env[256];
    const char *build = getenv("B"), *san = getenv("SAN");
    if (san && *san) skip(); /* a sanitizer's runtime must be loaded first */
    snprintf(env, sizeof env, "LD_PRELOAD=%s/tests/system/node/preload_dgemm.so",
             build ? build : "build/plain");
    allow(&mine, NULL);
    start_with(p, more, env);
}

/* A node with the preloaded BLAS prints `words` and ends. */
static void must_not_start(const char *const *more, const char *words)
{
    proc p;
    start_preloaded(&p, more);
    assert_false(proc_line(&p, 20000));
    proc_wait(&p, 10000);
    assert_int_equal(p.status, 1);
    if (!strstr(p.words, words)) fail_msg("%s, expected %s", p.words, words);
}

static void a_wrong_dgemm_prevents_a_node_from_starting(void **s)
{
    (void)s;
    must_not_start(NULL, "product is"); /* not the later test of products modulo a prime */
}

static void a_dgemm_that_is_wrong_in_modular_products_only_does_so_too(void **s)
{
    (void)s;
    assert_int_equal(setenv("PRELOAD_DGEMM", "large", 1), 0);
    must_not_start(NULL, "of a product modulo");
    assert_int_equal(unsetenv("PRELOAD_DGEMM"), 0);
}

/* Returns the number of passed self-tests in the cache folder. */
static long passed_tests(void)
{
    char path[128];
    struct stat st;
    in_folder(path, "sherd/selftests");
    return stat(path, &st) == 0 ? (long)st.st_size / 65 : 0;
}

static void must_start_preloaded(void)
{
    proc p;
    start_preloaded(&p, NULL);
    assert_true(proc_line(&p, 20000));
    send_signal(p.pid, SIGTERM);
    proc_wait(&p, 15000);
    assert_int_equal(p.status, 0);
}

/* The BLAS becomes wrong after the test, which nothing but the test can notice. */
static void a_passed_self_test_is_not_repeated_by_a_quick_one(void **s)
{
    (void)s;
    static const char *const full[] = { "--selftest", "full", NULL };
    static const char *const threads[] = { "--threads", "3", NULL };
    assert_int_equal(setenv("PRELOAD_DGEMM", "right", 1), 0);
    long before = passed_tests();
    must_start_preloaded();
    assert_int_equal(passed_tests(), before + 1);
    must_start_preloaded();
    assert_int_equal(passed_tests(), before + 1);
    assert_int_equal(unsetenv("PRELOAD_DGEMM"), 0);
    must_start_preloaded();
    must_not_start(threads, "product is");
    assert_int_equal(passed_tests(), 0); /* after a failure nothing counts */
    must_not_start(NULL, "product is");
    assert_int_equal(setenv("PRELOAD_DGEMM", "right", 1), 0);
    must_start_preloaded();
    assert_int_equal(unsetenv("PRELOAD_DGEMM"), 0);
    must_not_start(full, "product is");
    assert_int_equal(passed_tests(), 0);
}

static void a_passed_self_test_says_nothing_of_another_variable(void **s)
{
    (void)s;
    assert_int_equal(setenv("PRELOAD_DGEMM", "right", 1), 0);
    must_start_preloaded();
    assert_int_equal(unsetenv("PRELOAD_DGEMM"), 0);
    assert_int_equal(setenv("OPENBLAS_CORETYPE", "Haswell", 1), 0);
    must_not_start(NULL, "product is");
    assert_int_equal(unsetenv("OPENBLAS_CORETYPE"), 0);
}

static void a_port_in_use_is_reported(void **s)
{
    (void)s;
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof a;
    char where[32];
    proc p;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    snprintf(where, sizeof where, "127.0.0.1:%u", ntohs(a.sin_port));
    const char *argv[] = { "sherd",   "node",     "--listen",   where,   "--key", key_path,
                           "--allow", allow_path, "--selftest", "quick", NULL };
    allow(&mine, NULL);
    proc_spawn(&p, command_under_test(), argv, NULL);
    assert_false(proc_line(&p, 20000));
    proc_wait(&p, 10000);
    assert_int_equal(p.status, 5);
    assert_non_null(strstr(p.words, where));
    close(fd);
}

static void missing_and_empty_keys_and_lists_are_reported(void **s)
{
    (void)s;
    char none[96];
    proc p;
    write_text(allow_path, "# no key\n");
    start_with(&p, NULL, NULL);
    assert_false(proc_line(&p, 20000));
    proc_wait(&p, 10000);
    assert_int_equal(p.status, 3);
    assert_non_null(strstr(p.words, "lists no coordinator"));
    const char *argv[] = { "sherd",   "node",     "--key", in_folder(none, "none.key"),
                           "--allow", allow_path, NULL };
    proc_spawn(&p, command_under_test(), argv, NULL);
    assert_false(proc_line(&p, 20000));
    proc_wait(&p, 10000);
    assert_int_equal(p.status, 4);
    argv[3] = NULL;
    argv[2] = NULL;
    proc_spawn(&p, command_under_test(), argv, NULL);
    assert_false(proc_line(&p, 20000));
    proc_wait(&p, 10000);
    assert_int_equal(p.status, 2);
    assert_non_null(strstr(p.words, "--key"));
}

static uint64_t file_size(const char *dir, const char *name)
{
    char path[256];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(stat(path, &st), 0);
    return (uint64_t)st.st_size;
}

static void a_record_contains_every_byte_that_the_session_counted(void **s)
{
    (void)s;
    char dir[96];
    proc p;
    tie t;
    const char *more[] = { "--record", in_folder(dir, "seen"), NULL };
    allow(&mine, NULL);
    start(&p, more);
    tie_up(&mine, &t, &p.peer);
    tie_put(&t, 9, 1, 200, 30, 2);
    tie_put(&t, 9, 2, 30, 100, 3);
    tie_ask(&t, 9, 1, 200, 100);
    hub_wait(&mine, t.results, 1, 10000);
    const sherd__session_stats st = *sherd__session_stats_of(sherd__link_session(t.link));
    proc_stop(&p);
    hub_wait(&mine, t.gone, 1, 10000);
    assert_int_equal(file_size(dir, "session-1.received"), st.bytes_out);
    assert_true(file_size(dir, "session-1.sent") >= st.bytes_in); /* and its BYE */
    assert_true(file_size(dir, "session-1.sent") <= st.bytes_in + 300);
    assert_true(file_size(dir, "index.json") > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_node_prints_its_line_and_serves_allowed_coordinators, cut),
        cmocka_unit_test_teardown(an_unknown_key_is_rejected_and_both_sides_are_informed, cut),
        cmocka_unit_test_teardown(the_address_in_the_allow_list_is_compared, cut),
        cmocka_unit_test_teardown(two_coordinators_share_a_node_and_cannot_name_each_others_blocks,
                                  cut),
        cmocka_unit_test_teardown(blocks_beyond_the_budget_are_refused_and_memory_stays_below_it,
                                  cut),
        cmocka_unit_test_teardown(sighup_reads_the_allow_list_again, cut),
        cmocka_unit_test_teardown(sigterm_sends_a_goodbye, cut),
        cmocka_unit_test_teardown(a_node_ends_while_it_computes, cut),
        cmocka_unit_test_teardown(a_wrong_dgemm_prevents_a_node_from_starting, cut),
        cmocka_unit_test_teardown(a_dgemm_that_is_wrong_in_modular_products_only_does_so_too, cut),
        cmocka_unit_test_teardown(a_passed_self_test_is_not_repeated_by_a_quick_one, cut),
        cmocka_unit_test_teardown(a_passed_self_test_says_nothing_of_another_variable, cut),
        cmocka_unit_test_teardown(a_port_in_use_is_reported, cut),
        cmocka_unit_test_teardown(missing_and_empty_keys_and_lists_are_reported, cut),
        cmocka_unit_test_teardown(a_record_contains_every_byte_that_the_session_counted, cut),
    };
    return cmocka_run_group_tests_name("node/node", tests, begin, end);
}
