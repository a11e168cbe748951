/*
 * Nodes that are not as expected from the start: unreachable ones are left out, as far as the
 * exposure bound permits; so is one that rejects the coordinator's key, which is named; with
 * --strict, the first lie ends the run.
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
#include <unistd.h>

#include "command.h"
#include "tests/support/send_signal.h"

#define NODES 4
#define OLD "an earlier result\n"

static char top[128], mine[160], other[160], a[160], b[160], out[160], nodes_file[160];
static command node[NODES];
static char line[NODES][1024];
static uint16_t dead_port; /* bound, but not listened on: connections are refused */
static int dead;

static int begin(void **s)
{
    (void)s;
    static const char *const more[] = { "--memory", "256M", NULL };
    char allow[160], fingerprint[64], unknown[64], name[8];
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    folder_new(top);
    snprintf(mine, sizeof mine, "%s/me.key", top);
    snprintf(other, sizeof other, "%s/other.key", top);
    snprintf(allow, sizeof allow, "%s/allow", top);
    snprintf(nodes_file, sizeof nodes_file, "%s/nodes", top);
    snprintf(a, sizeof a, "%s/A.npy", top);
    snprintf(b, sizeof b, "%s/B.npy", top);
    snprintf(out, sizeof out, "%s/C.npy", top);
    matrix_file(a, 200, 160, 1);
    matrix_file(b, 160, 90, 2);
    key_file(mine, fingerprint);
    key_file(other, unknown);
    for (unsigned i = 0; i < NODES; i++) { /* the last one allows another coordinator only */
        allow_file(allow, i == NODES - 1 ? unknown : fingerprint);
        snprintf(name, sizeof name, "n%u", i);
        node_start(&node[i], top, name, allow, more, line[i]);
    }
    dead = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(dead, (struct sockaddr *)&at, len) || getsockname(dead, (struct sockaddr *)&at, &len))
        return -1;
    dead_port = ntohs(at.sin_port);
    return 0;
}

static int end(void **s)
{
    (void)s;
    for (unsigned i = 0; i < NODES; i++) {
        send_signal(node[i].pid, SIGTERM);
        (void)command_wait(&node[i], 10000);
        command_free(&node[i]);
    }
    close(dead);
    folder_remove(top);
    return 0;
}

/* Writes a node file of the first `all` nodes, of which the first `unreachable` have the dead
 * port. */
static void list(unsigned all, unsigned unreachable)
{
    char text[NODES * 1200] = "";
    for (unsigned i = 0; i < all; i++) {
        size_t at = strlen(text);
        if (i < unreachable)
            snprintf(text + at, sizeof text - at, "127.0.0.1:%u%s domain=d%u\n", dead_port,
                     strchr(line[i], ' '), i);
        else snprintf(text + at, sizeof text - at, "%s domain=d%u\n", line[i], i);
    }
    file_put(nodes_file, text, strlen(text));
}

static command multiply(int code)
{
    command c;
    const char *argv[] = { "sherd",      "multiply", a,         b,        "-o",     out,
                           "--nodes",    nodes_file, "--key",   mine,     "--mode", "exact",
                           "--exposure", "balanced", "--check", "--json", NULL };
    file_put(out, OLD, sizeof OLD - 1);
    int found = command_run(&c, argv, 30000 * patience());
    if (found != code)
        fail_msg("exit %d, expected %d: %s%s", found, code, command_said(c.err),
                 command_said(c.out));
    if (code) assert_true(file_holds(out, OLD));
    return c;
}

static void must_mention(const command *c, int fd, const char *words)
{
    (void)c;
    char *said = command_said(fd);
    if (!strstr(said, words)) fail_msg("\"%s\" is not in: %s", words, said);
    free(said);
}

static void an_unreachable_node_is_named_and_left_out(void **s)
{
    (void)s;
    list(3, 1);
    command c = multiply(0);
    json_t *root = command_json(&c);
    assert_true(json_is_true(json_object_get(json_object_get(root, "check"), "equal")));
    const char *state = json_string_value(
        json_object_get(json_array_get(json_object_get(root, "nodes"), 0), "state"));
    assert_string_equal(state, "lost");
    must_mention(&c, c.err, "n0 (127.0.0.1:");
    must_mention(&c, c.err, "2 of 3 nodes");
    json_decref(root);
    command_free(&c);
}

static void if_the_bound_forbids_it_the_exit_code_is_10(void **s)
{
    (void)s;
    list(3, 2);
    command c = multiply(10);
    must_mention(&c, c.out, "exposure");
    command_free(&c);
}

static void if_no_node_can_be_reached_the_exit_code_is_5(void **s)
{
    (void)s;
    list(3, 3);
    command c = multiply(5);
    must_mention(&c, c.out, "0 of 3 nodes");
    command_free(&c);
}

static void a_node_that_rejects_the_key_is_named_and_left_out(void **s)
{
    (void)s;
    list(4, 0);
    command c = multiply(0);
    json_t *root = command_json(&c);
    assert_true(json_is_true(json_object_get(json_object_get(root, "check"), "equal")));
    for (size_t i = 0; i < 4; i++) {
        const json_t *n = json_array_get(json_object_get(root, "nodes"), i);
        assert_string_equal(json_string_value(json_object_get(n, "state")), i < 3 ? "up" : "lost");
    }
    must_mention(&c, c.err, "continuing with 3 of 4 nodes; n3 (127.0.0.1:");
    must_mention(&c, c.err, "it does not accept our key");
    json_decref(root);
    command_free(&c);
    list(4, 3); /* there is no other node */
    c = multiply(6);
    must_mention(&c, c.out, "n3 (127.0.0.1:");
    command_free(&c);
}

/* Four local nodes, the third of which lies from its first answer on. */
static command with_liar(const char *how, bool strict, int code)
{
    char env_how[64];
    const char *env[] = { env_how, NULL };
    const char *argv[] = { "sherd",
                           "multiply",
                           a,
                           b,
                           "-o",
                           out,
                           "-n",
                           "4",
                           "--mode",
                           "exact",
                           "--exposure",
                           "balanced",
                           "--memory",
                           "2M",
                           "--json",
                           strict ? "--strict" : NULL,
                           NULL };
    command c;
    snprintf(env_how, sizeof env_how, "SHERD_TEST_MISBEHAVE=%s@node-3", how);
    file_put(out, OLD, sizeof OLD - 1);
    command_start(&c, liar_path(), argv, env);
    assert_true(command_wait(&c, 30000 * patience()));
    if (c.status != code)
        fail_msg("%s: exit %d: %s%s", how, c.status, command_said(c.err), command_said(c.out));
    if (code) assert_true(file_holds(out, OLD));
    return c;
}

static void strict_ends_for_a_broken_protocol_as_for_a_wrong_number(void **s)
{
    (void)s;
    static const char *const ways[] = { "wrong", "garbage", "wronglen", "unasked" };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        command c = with_liar(ways[i], true, 8);
        must_mention(&c, c.out, "node-3 (");
        command_free(&c);
    }
}

static void a_liar_is_counted_once_and_named_once(void **s)
{
    (void)s;
    static const char *const ways[] = { "wrong", "garbage" };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        command c = with_liar(ways[i], false, 0);
        json_t *root = command_json(&c);
        assert_int_equal(json_integer_value(json_object_get(root, "nodes_banned")), 1);
        const char *state = json_string_value(
            json_object_get(json_array_get(json_object_get(root, "nodes"), 2), "state"));
        assert_string_equal(state, "banned");
        char *said = command_said(c.err), *first = strstr(said, ": banned");
        assert_true(first && !strstr(first + 1, ": banned"));
        free(said);
        json_decref(root);
        command_free(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unreachable_node_is_named_and_left_out),
        cmocka_unit_test(if_the_bound_forbids_it_the_exit_code_is_10),
        cmocka_unit_test(if_no_node_can_be_reached_the_exit_code_is_5),
        cmocka_unit_test(a_node_that_rejects_the_key_is_named_and_left_out),
        cmocka_unit_test(strict_ends_for_a_broken_protocol_as_for_a_wrong_number),
        cmocka_unit_test(a_liar_is_counted_once_and_named_once),
    };
    return cmocka_run_group_tests_name("scheduler/start", tests, begin, end);
}
