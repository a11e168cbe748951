/*
 * Nodes that are absent when the work is to start: stopped or killed before they listen, late, or
 * mute after they were connected to. If the scheme does not need them, it starts soon and the
 * result is the same; otherwise one sentence names the node. Processes misbehave by themselves
 * (prog_misbehave), so that a slow machine has the same cases.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "tests/support/send_signal.h"

#define NODES 3
#define OLD "an earlier result\n"
#define LATE_MS 30000 /* less than the sleep of a late node */

static char top[128], mine[160], a[160], b[160], out[160], nodes_file[160];
static command node[NODES];
static char line[NODES][1024], mute_key[64];

static int begin(void **s)
{
    (void)s;
    char allow[160], fingerprint[64], name[8];
    folder_new(top);
    snprintf(mine, sizeof mine, "%s/me.key", top);
    snprintf(allow, sizeof allow, "%s/allow", top);
    snprintf(nodes_file, sizeof nodes_file, "%s/nodes", top);
    snprintf(a, sizeof a, "%s/A.npy", top);
    snprintf(b, sizeof b, "%s/B.npy", top);
    snprintf(out, sizeof out, "%s/C.npy", top);
    matrix_file(a, 120, 90, 1);
    matrix_file(b, 90, 70, 2);
    key_file(nodes_file, mute_key); /* its private half is deleted */
    key_file(mine, fingerprint);
    allow_file(allow, fingerprint);
    for (unsigned i = 0; i < NODES; i++) {
        static const char *const more[] = { "--memory", "256M", NULL };
        snprintf(name, sizeof name, "n%u", i);
        node_start(&node[i], top, name, allow, more, line[i]);
    }
    return 0;
}

static int end(void **s)
{
    (void)s;
    for (unsigned i = 0; i < NODES; i++) {
        send_signal(node[i].pid, SIGTERM);
        (void)command_wait(&node[i], 10000 * patience());
        command_free(&node[i]);
    }
    folder_remove(top);
    return 0;
}

/* Starts a product with these options (ending with NULL); how: the mode of node-3, or NULL. */
static void start(command *c, const char *how, const char *const *options)
{
    char text[64];
    const char *env[] = { text, NULL },
               *argv[32] = { "sherd",  "multiply",   a,     b, "-o", out, "--check",
                             "--json", "--progress", "none" };
    for (unsigned i = 0, at = 10; options[i]; i++) argv[at++] = options[i];
    snprintf(text, sizeof text, "SHERD_TEST_MISBEHAVE=%s@node-3", how ? how : "none");
    file_put(out, OLD, sizeof OLD - 1);
    command_start(c, liar_path(), argv, env);
}

/* Waits for its end with this exit code and returns its stderr, which the caller frees. */
static char *finish(command *c, int code)
{
    if (!command_wait(c, LATE_MS)) fail_msg("it hangs: %s", command_said(c->err));
    char *said = command_said(c->err), *result = command_said(c->out);
    if (c->status != code) fail_msg("exit %d, expected %d: %s%s", c->status, code, said, result);
    if (code) assert_true(file_holds(out, OLD));
    free(result);
    return said;
}

static void must_say(const char *said, const char *words)
{
    if (!strstr(said, words)) fail_msg("\"%s\" is not in: %s", words, said);
}

/* Returns the seconds that follow these words. */
static double told_seconds(const char *said, const char *words)
{
    const char *p = strstr(said, words);
    return p ? strtod(p + strlen(words), NULL) : 0;
}

/* Checks the state of the third node in the result. */
static void third_is(const command *c, const char *state)
{
    json_t *root = command_json(c);
    assert_non_null(root);
    assert_true(json_is_true(json_object_get(json_object_get(root, "check"), "equal")));
    json_t *n = json_array_get(json_object_get(root, "nodes"), 2);
    assert_string_equal(json_string_value(json_object_get(n, "state")), state);
    json_decref(root);
}

/* The mode of a node, and the expected message. */
static const struct {
    const char *how, *told, *state;
} ways[] = {
    { "stopped", "node-3: its process, ", "lost" },
    { "killed", "node-3: it was killed by signal 9", "lost" },
    { "late", "node-3: it did not listen within ", "lost" },
    { "mute", "is stopped", "connecting" },
};

/* Returns the seconds of a product with all nodes present. */
static double undisturbed(const char *const *options)
{
    command c;
    start(&c, NULL, options);
    free(finish(&c, 0));
    double took = (double)(c.ended_ms - c.began_ms) / 1e3;
    command_free(&c);
    return took;
}

static const char *const four_one_spare[] = {
    "-n", "4", "--scheme", "share", "--spare", "1", NULL
};

/* Returns how long the command waited for the third node of four. */
static double without_the_third(size_t way)
{
    command c;
    start(&c, ways[way].how, four_one_spare);
    char *said = finish(&c, 0);
    must_say(said, "continuing with 3 of 4 nodes; node-3");
    must_say(said, ways[way].told);
    double late = told_seconds(said, "listen within ");
    third_is(&c, ways[way].state);
    free(said);
    command_free(&c);
    return late;
}

static void with_a_spare_node_the_others_do_the_work(void **s)
{
    (void)s;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) (void)without_the_third(i);
}

/* The usual time is that of nodes that are needed, measured on this machine before and after. If
 * other work kept the machine busy meanwhile, it is measured again. */
static void a_late_spare_node_gets_a_second_and_twice_the_time_of_the_others(void **s)
{
    (void)s;
    double late = 0, usual = 0;
    for (unsigned tries = 0; tries < 5; tries++) {
        double before = undisturbed(four_one_spare), after;
        late = without_the_third(2);
        after = undisturbed(four_one_spare);
        usual = before > after ? before : after;
        assert_true(late >= 1);
        if (late <= 2 * (1 + 3 * usual)) return;
    }
    fail_msg("late %g s, usual %g s", late, usual);
}

static void clear_schemes_continue_without_a_stopped_or_killed_node(void **s)
{
    (void)s;
    static const char *const schemes[] = { "plain", "permute" };
    for (size_t i = 0; i < 4; i++) {
        const char *const clear[] = {
            "-n", "4", "--mode", "exact", "--scheme", schemes[i % 2], NULL
        };
        command c;
        start(&c, ways[i / 2].how, clear);
        char *said = finish(&c, 0);
        must_say(said, "continuing with 3 of 4 nodes; ");
        must_say(said, ways[i / 2].told);
        third_is(&c, "lost");
        free(said);
        command_free(&c);
    }
}

static void without_a_spare_node_one_sentence_names_the_absent_node(void **s)
{
    (void)s;
    static const char *const share[] = { "-n", "3", "--scheme", "share", NULL };
    static const struct {
        const char *how, *told;
    } none[] = {
        { "stopped", "2 of 3 local nodes are up, and 3 are needed; node-3: its process, " },
        { "killed", "3 are needed; node-3: it was killed by signal 9" },
        { "mute", "2 of 3 nodes are up; node-3 (127.0.0.1:" },
    };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        command c;
        start(&c, none[i].how, share);
        free(finish(&c, 7));
        char *said = command_said(c.out);
        must_say(said, none[i].told);
        free(said);
        command_free(&c);
    }
}

static void a_late_node_without_a_spare_causes_a_timeout_that_names_it(void **s)
{
    (void)s;
    static const char *const plain[] = { "-n", "3", "--scheme", "plain", "--timeout", "6", NULL };
    command c;
    start(&c, "late", plain);
    free(finish(&c, 124));
    char *said = command_said(c.out);
    must_say(said, "1 of 3 local nodes do not listen after 6");
    must_say(said, "node-3 among them");
    free(said);
    command_free(&c);
}

/* One attempt: returns true if the node took part, false if it was continued too late. */
static bool goes_on(void)
{
    static const char *const plain[] = { "-n", "3", "--scheme", "plain", NULL };
    command c;
    pid_t pid = 0;
    start(&c, "stopped", plain);
    while ((pid == 0 || !is_stopped(pid)) && !command_over(&c)) {
        pause_ms(1);
        pid = child_named(c.pid, "node-3");
    }
    (void)send_signal(pid, SIGCONT);
    int64_t held = clock_now_ms() - c.began_ms;
    char *said = finish(&c, 0);
    bool without = strstr(said, "continuing") != NULL;
    if (without && held < 500) fail_msg("continued after %d ms: %s", (int)held, said);
    if (!without) third_is(&c, "up");
    free(said);
    command_free(&c);
    return !without;
}

static void a_node_that_continues_within_the_second_takes_part(void **s)
{
    (void)s;
    for (int tries = 0; tries < 5; tries++)
        if (goes_on()) return;
    skip(); /* this machine is too busy for the timing of this test */
}

/* In a process group of its own, which an error would end. */
static void send_signal_refuses_process_ids_that_were_never_set(void **s)
{
    (void)s;
    int status;
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        close(2);
        _exit(send_signal(0, SIGKILL) == -1 && send_signal(1, 0) == -1 ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- a node file of real nodes and of one that accepts connections and is silent ------------- */

static int mute_listener(uint16_t *port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&at, len) || listen(fd, 8) ||
        getsockname(fd, (struct sockaddr *)&at, &len))
        fail_msg("no socket");
    *port = ntohs(at.sin_port);
    return fd;
}

static void list(unsigned real, uint16_t mute_port)
{
    char text[(NODES + 1) * 1200] = "";
    for (unsigned i = 0; i < real; i++) {
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%s domain=d%u\n", line[i], i);
    }
    size_t at = strlen(text);
    snprintf(text + at, sizeof text - at, "127.0.0.1:%u key=%s name=mute domain=mute\n", mute_port,
             mute_key);
    file_put(nodes_file, text, strlen(text));
}

static void a_remote_node_that_never_sends_anything_is_left_out(void **s)
{
    (void)s;
    const char *const spare[] = { "--nodes",   nodes_file, "--key",
                                  mine,        "--scheme", "share",
                                  "--spare",   "1",        "--same-host-domains",
                                  "--timeout", "25",       NULL };
    uint16_t port;
    int fd = mute_listener(&port);
    command c;
    list(3, port);
    start(&c, NULL, spare);
    char *said = finish(&c, 0);
    must_say(said, "continuing with 3 of 4 nodes; mute (127.0.0.1:");
    must_say(said, "it has not answered within ");
    free(said);
    command_free(&c);
    close(fd);
}

static void without_a_spare_it_is_named_and_the_exit_code_is_right(void **s)
{
    (void)s;
    static const struct {
        const char *timeout;
        int code;
        const char *told;
    } runs[] = {
        { "4", 124, "the time limit expired; 2 of 3 nodes are up, mute (127.0.0.1:" },
        { "25", 7, "2 of 3 nodes are up; mute (127.0.0.1:" },
    };
    uint16_t port;
    int fd = mute_listener(&port);
    list(2, port);
    for (size_t i = 0; i < 2; i++) {
        const char *const none[] = {
            "--nodes",   nodes_file,      "--key", mine, "--scheme", "share", "--same-host-domains",
            "--timeout", runs[i].timeout, NULL
        };
        command c;
        start(&c, NULL, none);
        free(finish(&c, runs[i].code));
        char *said = command_said(c.out);
        must_say(said, runs[i].told);
        free(said);
        command_free(&c);
    }
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_a_spare_node_the_others_do_the_work),
        cmocka_unit_test(a_late_spare_node_gets_a_second_and_twice_the_time_of_the_others),
        cmocka_unit_test(clear_schemes_continue_without_a_stopped_or_killed_node),
        cmocka_unit_test(without_a_spare_node_one_sentence_names_the_absent_node),
        cmocka_unit_test(a_late_node_without_a_spare_causes_a_timeout_that_names_it),
        cmocka_unit_test(a_node_that_continues_within_the_second_takes_part),
        cmocka_unit_test(send_signal_refuses_process_ids_that_were_never_set),
        cmocka_unit_test(a_remote_node_that_never_sends_anything_is_left_out),
        cmocka_unit_test(without_a_spare_it_is_named_and_the_exit_code_is_right),
    };
    return cmocka_run_group_tests_name("scheduler/absent", tests, begin, end);
}
