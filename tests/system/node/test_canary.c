/* How long an honest coordinator waits while another one attacks the same node, each with a key of
 * its own. */
#include "tests/system/node/canary.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum {
    LONG = 1800, /* rows of the products that keep the compute thread busy */
    LONGS = 60,
    TASKS = 130000,  /* queued behind them */
    RECORDS = 2900,  /* 93 KB of CANCELs */
    ABSENT_MS = 500, /* of the loop for all of these, if none walks through the tasks */
    FLOOD = 300,     /* connections that do not begin a handshake */
    CROWD = 40,      /* connections of one key */
    BLOCKS = 2,      /* sent by each of them */
    JOBS = 131000,   /* of a block and a task each */
    FREED = 1024,    /* records of an ended session freed in a turn */
    SIDE = 512       /* rows of these blocks: 2 MB, which are not cleared in huge pages */
};

/* Sends what the attacker has queued and a request of its own, with requests of the canary until
 * the last one is answered: by then everything before it was handled. Returns how long that took,
 * in ms of the loop. */
static double push(tie *a, tie *canary, const char *what)
{
    uint32_t before = a->refused;
    double from = loop_ms();
    worst_ms = 0;
    tie_ask(a, 7, ++asked, 1, 1);
    while (a->refused == before) {
        uv_run(&bad.loop, UV_RUN_NOWAIT);
        probe(canary, what);
        if (a->closed) fail_msg("%s: the attacker's session has ended: %s", what, a->text);
    }
    double all = loop_ms() - from;
    print_message("# %s: at most %.1f ms at once, %.1f ms of the loop in total\n", what, worst_ms,
                  all);
    return all;
}

/* Connects both, and keeps the compute thread busy with long products of the attacker, whose
 * session it returns. */
static sherd__session *keep_busy(tie *a, tie *canary)
{
    tie_up(&bad, a, &node.peer);
    tie_up(&good, canary, &node.peer);
    tie_put(a, 8, 1, LONG, LONG, 1);
    tie_put(a, 8, 2, LONG, LONG, 1);
    for (uint32_t k = 1; k <= LONGS; k++) tie_ask(a, 8, k, LONG, LONG);
    return sherd__link_session(a->link);
}

static void a_canary_is_served_while_another_coordinator_floods(void **s)
{
    (void)s;
    tie a, canary;
    sherd__session *session = keep_busy(&a, &canary);
    tie_put(&a, 9, 1, 1, 1, 1);
    tie_put(&a, 9, 2, 1, 1, 1);
    for (uint32_t k = 1; k <= TASKS; k++) {
        sherd__task t = tie_task(9, k, 1, 1);
        assert_int_equal(sherd__session_task(session, &t), SHERD_OK);
        if (k % 10000 == 0) push(&a, &canary, "tiny tasks");
    }
    for (uint32_t k = 0; k < RECORDS; k++)
        assert_int_equal(sherd__session_cancel(session, 1000 + k, 0, 0), SHERD_OK);
    assert_true(push(&a, &canary, "93 KB of CANCELs of absent jobs") < ABSENT_MS);
    for (uint32_t k = 0; k < RECORDS; k++)
        assert_int_equal(sherd__session_drop(session, 1000 + k, 0), SHERD_OK);
    assert_true(push(&a, &canary, "93 KB of DROPs of absent jobs") < ABSENT_MS);
    assert_int_equal(sherd__session_cancel(session, 9, 0, 0), SHERD_OK);
    push(&a, &canary, "a CANCEL of 130,000 tasks");
    assert_int_equal(sherd__session_drop(session, 9, 0), SHERD_OK);
    push(&a, &canary, "a DROP of their blocks");
    tie_down(&bad, &a);
    tie_down(&good, &canary);
}

static void send_blocks(tie *t, uint32_t round)
{
    uint32_t from = 1 + round * BLOCKS;
    for (uint32_t k = from; k < from + BLOCKS; k++) tie_put(t, 10, k, SIDE, SIDE, 1);
    tie_ask(t, 7, from, 1, 1);
}

static void send_cancels(tie *t, uint32_t round)
{
    for (uint32_t k = 0; k < RECORDS; k++)
        assert_int_equal(sherd__session_cancel(sherd__link_session(t->link), 1000 + k, 0, 0),
                         SHERD_OK);
    tie_ask(t, 7, 1 + round * BLOCKS, 1, 1);
}

/* *served counts the rounds that all connections have been served. */
static void crowd_attacks(tie *a, tie *canary, const char *what,
                          void (*send)(tie *t, uint32_t round), uint32_t *served)
{
    double ms;
    int attempts = 0;
    do {
        send_signal(node.pid, SIGSTOP);
        for (int i = 0; i < CROWD; i++) send(&a[i], *served);
        ms = crowd_waits(canary, what, CROWD);
        crowd_is_served(a, CROWD, ++*served);
    } while (crowd_again(what, ms, &attempts));
}

static void connections_of_one_key_share_a_turn(void **s)
{
    (void)s;
    tie a[CROWD], canary;
    for (int i = 0; i < CROWD; i++) tie_up(&bad, &a[i], &node.peer);
    tie_up(&good, &canary, &node.peer);
    for (int i = 0; i < CROWD; i++) send_blocks(&a[i], 0); /* lets the kernel's windows grow */
    crowd_is_served(a, CROWD, 1);
    uint32_t served = 1;
    crowd_attacks(a, &canary, "blocks", send_blocks, &served);
    crowd_attacks(a, &canary, "CANCELs", send_cancels, &served);
    for (int i = 0; i < CROWD; i++) tie_down(&bad, &a[i]);
    tie_down(&good, &canary);
}

/* Returns the number of read() calls of the loop: one in each turn that the previous turn
 * requested. */
static unsigned long long loop_reads(void)
{
    char path[80];
    unsigned long long bytes, n = 0;
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/io", (long)node.pid, loop_thread(node.pid));
    FILE *f = fopen(path, "re");
    if (!f || fscanf(f, "rchar: %llu wchar: %llu syscr: %llu", &bytes, &bytes, &n) != 3) skip();
    fclose(f);
    return n;
}

/* The canary's requests are read in each of these turns. Its waiting time would also depend on the
 * scheduling of this process, since the node continues to free meanwhile. */
static void an_ended_session_is_freed_in_many_turns(void **s)
{
    (void)s;
    tie a, canary;
    sherd__session *session = keep_busy(&a, &canary);
    tie_ask(&a, 7, ++asked, 1, 1);
    hub_wait(&bad, a.refused, 1, 60000); /* the compute thread is busy */
    for (uint32_t k = 1; k <= JOBS; k++) {
        sherd__task t = tie_task(100 + k, 1, 1, 1);
        tie_put(&a, 100 + k, 1, 1, 1, 1);
        t.right = 1;
        assert_int_equal(sherd__session_task(session, &t), SHERD_OK);
        if (k % 10000 == 0) push(&a, &canary, "tasks with jobs of their own");
    }
    push(&a, &canary, "tasks with jobs of their own");
    unsigned long long before = loop_reads();
    double from = loop_ms(), last;
    sherd__link_close(a.link, 0, "cut");
    hub_wait(&bad, a.gone, 1, 60000);
    do { /* until it is idle */
        last = loop_ms();
        for (int i = 0; i < 30; i++) {
            uv_run(&good.loop, UV_RUN_NOWAIT);
            uv_sleep(10);
        }
    } while (loop_ms() - last > 3);
    print_message("# a session's end: %.1f ms of the loop, %llu reads\n", loop_ms() - from,
                  loop_reads() - before);
    assert_true(loop_reads() - before > 2 * JOBS / FREED);
    probe(&canary, "a session's end");
    tie_down(&good, &canary);
}

/* From an address other than the good client's. */
static int stranger(void)
{
    struct sockaddr_in from = { .sin_family = AF_INET,
                                .sin_addr = { htonl(INADDR_LOOPBACK + 0x700) } };
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(node.peer.port),
                              .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    (void)!connect(fd, (struct sockaddr *)&to, sizeof to);
    return fd;
}

static void a_flood_of_handshakes_does_not_keep_out_a_good_client(void **s)
{
    (void)s;
    int fd[FLOOD];
    tie canary, late;
    tie_up(&good, &canary, &node.peer);
    for (int i = 0; i < FLOOD; i++) fd[i] = stranger();
    worst_ms = 0;
    for (unsigned i = 0; i < 20; i++) probe(&canary, "300 handshakes");
    double from = loop_ms();
    int64_t began = clock_ms();
    tie_up(&good, &late, &node.peer); /* fails if it is rejected */
    print_message(
        "# 300 handshakes: at most %.1f ms; a client was accepted after %.1f ms of the loop, "
        "%d ms in total\n",
        worst_ms, loop_ms() - from, (int)(clock_ms() - began));
    assert_true(loop_ms() - from < MOST_MS);
    for (int i = 0; i < FLOOD; i++) close(fd[i]);
    tie_down(&good, &late);
    tie_down(&good, &canary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_flood_of_handshakes_does_not_keep_out_a_good_client,
                                  canary_after),
        cmocka_unit_test_teardown(a_canary_is_served_while_another_coordinator_floods,
                                  canary_after),
        cmocka_unit_test_teardown(connections_of_one_key_share_a_turn, canary_after),
        cmocka_unit_test_teardown(an_ended_session_is_freed_in_many_turns, canary_after),
    };
    return cmocka_run_group_tests_name("node/canary", tests, canary_begin, canary_end);
}
