/* Local nodes: they start, serve only their coordinator, and never outlive the process that started
 * them. */
#include <dirent.h>
#include <sched.h>

#include "tests/support/send_signal.h"
#include "tests/system/node/proc.h"

static hub mine, other;

static int begin(void **s)
{
    (void)s;
    hub_open(&mine);
    hub_open(&other);
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
    hub_close(&mine);
    hub_close(&other);
    return 0;
}

static void local_nodes_serve_only_the_coordinator_that_started_them(void **s)
{
    (void)s;
    enum { N = 7 };
    sherd__launch *l = hub_launch(&mine, N, 64 << 20);
    pid_t pids[N];
    tie t;
    assert_int_equal(sherd__launch_len(l), N);
    for (uint32_t i = 0; i < N; i++) {
        const sherd__launched *n = sherd__launch_node(l, i);
        char name[32];
        snprintf(name, sizeof name, "node-%u", i + 1);
        assert_string_equal(n->peer.name, name);
        assert_int_equal(sherd__launch_check(l, i, NULL), SHERD_OK);
        pids[i] = n->pid;
        assert_true(n->started != 0 && n->started == sherd__process_started(n->pid));
        tie_up(&mine, &t, &n->peer);
        assert_int_equal(t.hello.memory, 64 << 20);
        tie_down(&mine, &t);
    }
    tie_begin(&other, &t, &sherd__launch_node(l, 0)->peer);
    hub_wait(&other, t.gone, 1, 10000);
    assert_int_equal(t.err, SHERD_EAUTH);
    sherd__launch_stop(l, 0);
    for (uint32_t i = 0; i < N; i++) assert_false(process_lives(pids[i]));
}

static void no_secret_is_in_a_nodes_command_line_or_environment(void **s)
{
    (void)s;
    static const char *const files[] = { "cmdline", "environ" };
    sherd__launch *l = hub_launch(&mine, 1, 64 << 20);
    for (int k = 0; k < 2; k++) {
        char path[64], text[65536];
        snprintf(path, sizeof path, "/proc/%ld/%s", (long)sherd__launch_node(l, 0)->pid, files[k]);
        FILE *f = fopen(path, "re");
        if (!f) continue; /* not readable, which is even better */
        size_t n = fread(text, 1, sizeof text - 1, f);
        fclose(f);
        for (size_t i = 0; i < n; i++) text[i] = text[i] ? text[i] : ' ';
        text[n] = '\0';
        assert_null(strstr(text, "PRIVATE"));
        assert_null(strstr(text, "sha256:"));
    }
    sherd__launch_stop(l, 0);
}

static void the_death_of_a_node_is_reported_with_its_status(void **s)
{
    (void)s;
    sherd__launch *l = hub_launch(&mine, 2, 64 << 20);
    sherd_diag d = { .code = 0 };
    send_signal(sherd__launch_node(l, 1)->pid, SIGKILL);
    for (int i = 0; i < 500 && sherd__launch_check(l, 1, &d) == 0; i++) {
        struct timespec pause = { .tv_nsec = 10000000 };
        nanosleep(&pause, NULL);
    }
    assert_int_equal(d.code, SHERD_ECLOSED);
    assert_non_null(strstr(d.message, "node-2"));
    assert_non_null(strstr(d.message, "signal 9"));
    assert_int_equal(sherd__launch_check(l, 0, NULL), SHERD_OK);
    sherd__launch_stop(l, 0);
}

#define GRACE_MS 20000 /* much longer than anything else takes on a busy machine */

static void a_stopped_node_is_killed_without_the_grace_period(void **s)
{
    (void)s;
    sherd__launch *l = hub_launch(&mine, 2, 64 << 20);
    pid_t pid = sherd__launch_node(l, 0)->pid;
    send_signal(pid, SIGSTOP);
    int64_t began = clock_ms();
    sherd__launch_stop(l, GRACE_MS);
    assert_true(clock_ms() - began < GRACE_MS);
    assert_false(process_lives(pid));
}

static void a_stopped_node_does_not_count_as_ended(void **s)
{
    (void)s;
    sherd__launch *l = hub_launch(&mine, 1, 64 << 20);
    sherd_diag d = { .code = 0 };
    pid_t pid = sherd__launch_node(l, 0)->pid;
    send_signal(pid, SIGSTOP);
    assert_int_equal(sherd__launch_check(l, 0, &d), SHERD_OK);
    send_signal(pid, SIGCONT);
    assert_int_equal(sherd__launch_check(l, 0, &d), SHERD_OK);
    sherd__launch_stop(l, GRACE_MS);
    assert_false(process_lives(pid));
}

static int start_program(const char *program, uint32_t deadline_ms, sherd_diag *d)
{
    sherd__launch *l;
    sherd__launch_options o = { .nodes = 2,
                                .program = program,
                                .deadline_ms = deadline_ms,
                                .allow = *sherd__identity_fingerprint(mine.me) };
    int err = sherd__launch_start(&l, &o, d);
    assert_null(l);
    return err;
}

static void programs_that_are_not_nodes_are_reported_with_the_reason(void **s)
{
    (void)s;
    char script[] = "/tmp/sherd-launch-XXXXXX";
    sherd_diag d = { .code = 0 };
    assert_int_equal(start_program("/nonexistent/sherd", 0, &d), SHERD_EOPEN);
    assert_non_null(strstr(d.message, "/nonexistent/sherd"));

    d = (sherd_diag){ .code = 0 };
    assert_int_equal(start_program("/bin/false", 0, &d), SHERD_EFEWNODES);
    assert_non_null(strstr(d.message, "exit status 1"));

    int fd = mkstemp(script);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, 0700), 0);
    close(fd);
    write_text(script, "#!/bin/sh\necho cannot find my shoes >&2\nexit 3\n");
    d = (sherd_diag){ .code = 0 };
    assert_int_equal(start_program(script, 0, &d), SHERD_EFEWNODES);
    assert_non_null(strstr(d.message, "cannot find my shoes"));

    write_text(script, "#!/bin/sh\nexec sleep 60\n");
    d = (sherd_diag){ .code = 0 };
    assert_int_equal(start_program(script, 300, &d), SHERD_ETIMEOUT);
    assert_non_null(strstr(d.message, "2 of 2"));

    write_text(script, "#!/bin/sh\nexec >&- sleep 60\n"); /* it runs, and prints nothing */
    d = (sherd_diag){ .code = 0 };
    assert_int_equal(start_program(script, 0, &d), SHERD_EFRAME);
    assert_non_null(strstr(d.message, "closed its standard output"));

    write_text(script, "#!/bin/sh\necho hello world\nexec sleep 60\n");
    d = (sherd_diag){ .code = 0 };
    assert_int_not_equal(start_program(script, 5000, &d), SHERD_OK);
    assert_int_not_equal(d.code, SHERD_ETIMEOUT);

    write_text(script, "#!/bin/sh\necho 127.0.0.1:9 key=sha256:"
                       "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\nexec sleep 60\n");
    d = (sherd_diag){ .code = 0 };
    assert_int_equal(start_program(script, 5000, &d), SHERD_EAUTH);
    unlink(script);
}

/* A program that acts as the command and opens its cluster for any arguments. */
static int starter_of_itself(void)
{
    const char *depth = getenv("SHERD_TEST_DEPTH");
    sherd_diag d = { .code = 0 };
    if (depth && strlen(depth) > 2) return 7; /* without the rule, the recursion ends here */
    char more[8];
    snprintf(more, sizeof more, "%s+", depth ? depth : "");
    setenv("SHERD_TEST_DEPTH", more, 1);
    hub_open(&mine);
    (void)start_program("/proc/self/exe", 5000, &d);
    fprintf(stderr, "%s: %s\n", d.message, d.hint);
    return 3;
}

static void a_program_that_starts_itself_as_a_node_does_not_recurse(void **s)
{
    (void)s;
    sherd_diag d = { .code = 0 };
    assert_int_equal(start_program("/proc/self/exe", 20000, &d), SHERD_EFEWNODES);
    assert_non_null(strstr(d.message, "would start nodes itself"));
    assert_non_null(strstr(d.message, "exit status 3"));
}

static void a_program_without_a_slash_is_searched_in_path(void **s)
{
    (void)s;
    char dir[] = "/tmp/sherd-path-XXXXXX", link[64], *path = strdup(getenv("PATH"));
    char *command = realpath(command_under_test(), NULL);
    assert_non_null(path);
    assert_non_null(command);
    assert_non_null(mkdtemp(dir));
    snprintf(link, sizeof link, "%s/sherd-by-name", dir);
    assert_int_equal(symlink(command, link), 0);
    sherd_diag d = { .code = 0 };
    assert_int_equal(start_program("sherd-by-name", 0, &d), SHERD_EOPEN);
    assert_non_null(strstr(d.message, "sherd-by-name"));
    assert_true(d.hint[0] != '\0');

    setenv("PATH", dir, 1);
    sherd__launch *l;
    sherd__launch_options o = { .nodes = 1,
                                .program = "sherd-by-name",
                                .allow = *sherd__identity_fingerprint(mine.me) };
    int err = sherd__launch_start(&l, &o, &d);
    setenv("PATH", path, 1);
    sherd__launch_stop(l, 0);
    unlink(link);
    rmdir(dir);
    free(command);
    free(path);
    if (err) fail_msg("%s", d.message);
}

/* Otherwise a program that does not name the command would start itself, recursively. */
static void a_program_that_does_not_name_the_command_never_starts_itself(void **s)
{
    (void)s;
    char *path = strdup(getenv("PATH"));
    sherd_diag d = { .code = 0 };
    assert_non_null(path);
    setenv("PATH", "/nowhere", 1);
    int err = start_program(NULL, 0, &d);
    setenv("PATH", path, 1);
    free(path);
    assert_int_equal(err, SHERD_EOPEN);
    assert_non_null(strstr(d.message, "cannot start sherd as "));
}

static bool yes(void *ctx)
{
    (void)ctx;
    return true;
}

static void an_interrupt_ends_the_start_and_leaves_nothing_behind(void **s)
{
    (void)s;
    sherd__launch *l;
    sherd_diag d = { .code = 0 };
    sherd__launch_options o = { .nodes = 3,
                                .program = command_under_test(),
                                .hooks = { .interrupted = yes },
                                .allow = *sherd__identity_fingerprint(mine.me) };
    assert_int_equal(sherd__launch_start(&l, &o, &d), SHERD_EINTERRUPTED);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child and no zombie */
    assert_int_equal(errno, ECHILD);
}

/* Runs as a child: starts nodes, prints their pids, and waits to be ended. */
static _Noreturn void launcher(void)
{
    hub h;
    hub_open(&h);
    sherd__launch *l = hub_launch(&h, 5, 64 << 20);
    for (uint32_t i = 0; i < 5; i++) printf("%ld ", (long)sherd__launch_node(l, i)->pid);
    printf("\n");
    fflush(stdout);
    for (;;) pause();
}

static void killing_the_parent_ends_its_nodes(void **s)
{
    (void)s;
    static const int signals[] = { SIGKILL, SIGTERM, SIGHUP };
    const char *const argv[] = { "test_launch", "launcher", NULL };
    for (size_t k = 0; k < 3; k++) {
        proc p;
        long pids[5];
        proc_spawn(&p, "/proc/self/exe", argv, NULL);
        assert_true(proc_line(&p, 30000));
        assert_int_equal(sscanf(p.line, "%ld %ld %ld %ld %ld", &pids[0], &pids[1], &pids[2],
                                &pids[3], &pids[4]),
                         5);
        for (int i = 0; i < 5; i++) assert_true(process_lives((pid_t)pids[i]));
        send_signal(p.pid, signals[k]);
        proc_wait(&p, 5000);
        int64_t deadline = clock_ms() + 5000;
        for (int i = 0; i < 5; i++) {
            while (process_lives((pid_t)pids[i]) && clock_ms() < deadline) {
                struct timespec pause = { .tv_nsec = 10000000 };
                nanosleep(&pause, NULL);
            }
            assert_false(process_lives((pid_t)pids[i]));
        }
    }
}

/* Reads the affinity of all threads of a process; returns false if they differ. */
static bool cores_of(pid_t pid, cpu_set_t *out)
{
    char path[64];
    bool first = true, same = true;
    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));) {
        cpu_set_t one;
        if (e->d_name[0] == '.') continue;
        if (sched_getaffinity((pid_t)atol(e->d_name), sizeof one, &one))
            continue; /* the thread has ended */
        if (first) *out = one;
        same = same && CPU_EQUAL(out, &one);
        first = false;
    }
    closedir(dir);
    return same && !first;
}

static sherd__launch *launch_threads(uint32_t nodes, uint32_t threads, bool unbound)
{
    sherd__launch *l;
    sherd_diag d = { .code = 0 };
    sherd__launch_options o = { .nodes = nodes,
                                .program = getenv("SHERD"),
                                .memory = 16 << 20,
                                .threads = threads,
                                .unbound = unbound,
                                .allow = *sherd__identity_fingerprint(mine.me) };
    if (sherd__launch_start(&l, &o, &d)) fail_msg("%s", d.message);
    return l;
}

static void nodes_that_use_all_cores_are_bound_to_cores_of_their_own(void **s)
{
    (void)s;
    cpu_set_t all, of, before;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    uint32_t cores = (uint32_t)CPU_COUNT(&all), nodes = cores % 2 == 0 ? 2 : cores;
    if (cores < 2 || access("/proc/self/schedstat", R_OK)) skip();
    sherd__launch *l = launch_threads(nodes, cores / nodes, false);
    CPU_ZERO(&before);
    for (uint32_t i = 0; i < nodes; i++) {
        cpu_set_t both;
        assert_true(cores_of(sherd__launch_node(l, i)->pid, &of));
        assert_int_equal(CPU_COUNT(&of), cores / nodes);
        CPU_AND(&both, &of, &before);
        assert_int_equal(CPU_COUNT(&both), 0);
        CPU_OR(&before, &before, &of);
    }
    assert_true(CPU_EQUAL(&before, &all));
    sherd__launch_stop(l, 0);
}

static void other_nodes_are_not_bound(void **s)
{
    (void)s;
    cpu_set_t all, of;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    uint32_t cores = (uint32_t)CPU_COUNT(&all);
    struct {
        uint32_t nodes, threads;
        bool unbound;
    } cases[] = {
        { cores, 1, true }, { cores + 1, 1, false }, { 1, cores, false }, { 2, cores, false }
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        if (cases[k].nodes > 16) continue;
        sherd__launch *l = launch_threads(cases[k].nodes, cases[k].threads, cases[k].unbound);
        for (uint32_t i = 0; i < cases[k].nodes; i++) {
            assert_true(cores_of(sherd__launch_node(l, i)->pid, &of));
            assert_true(CPU_EQUAL(&of, &all));
        }
        sherd__launch_stop(l, 0);
    }
}

static void twenty_nodes_listen_within_the_deadline(void **s)
{
    (void)s;
    int64_t began = clock_ms();
    sherd__launch *l = hub_launch(&mine, 20, 16 << 20);
    int64_t took = clock_ms() - began;
    sherd__launch_stop(l, 0);
    print_message("# 20 nodes in %lld ms\n", (long long)took);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "launcher") == 0) launcher();
    if (argc > 1 && strcmp(argv[1], "node") == 0) return starter_of_itself();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(local_nodes_serve_only_the_coordinator_that_started_them, cut),
        cmocka_unit_test_teardown(no_secret_is_in_a_nodes_command_line_or_environment, cut),
        cmocka_unit_test_teardown(the_death_of_a_node_is_reported_with_its_status, cut),
        cmocka_unit_test_teardown(a_stopped_node_is_killed_without_the_grace_period, cut),
        cmocka_unit_test_teardown(a_stopped_node_does_not_count_as_ended, cut),
        cmocka_unit_test_teardown(programs_that_are_not_nodes_are_reported_with_the_reason, cut),
        cmocka_unit_test_teardown(a_program_that_starts_itself_as_a_node_does_not_recurse, cut),
        cmocka_unit_test_teardown(a_program_without_a_slash_is_searched_in_path, cut),
        cmocka_unit_test_teardown(a_program_that_does_not_name_the_command_never_starts_itself,
                                  cut),
        cmocka_unit_test_teardown(an_interrupt_ends_the_start_and_leaves_nothing_behind, cut),
        cmocka_unit_test_teardown(killing_the_parent_ends_its_nodes, cut),
        cmocka_unit_test_teardown(nodes_that_use_all_cores_are_bound_to_cores_of_their_own, cut),
        cmocka_unit_test_teardown(other_nodes_are_not_bound, cut),
        cmocka_unit_test_teardown(twenty_nodes_listen_within_the_deadline, cut),
    };
    return cmocka_run_group_tests_name("node/launch", tests, begin, end);
}
