/*
 * A node process that accepts two coordinators, `bad` and `good`, and measurements of how long the
 * good one's requests wait while the other is active. Waiting is measured in processor time of the
 * node's loop between request and answer, so that a busy machine does not matter; wall time is
 * printed.
 */
#ifndef TESTS_SYSTEM_NODE_CANARY_H
#define TESTS_SYSTEM_NODE_CANARY_H

#include "tests/support/send_signal.h"
#include "tests/support/loop_thread.h"
#include "tests/system/node/proc.h"

enum { MOST_MS = 100 };

static char folder[64], key_path[96], allow_path[96];
static hub bad, good;
static proc node;
static uint32_t asked;
static double worst_ms;

static inline void write_files(void)
{
    sherd_identity *id;
    char text[2][SHERD__FINGERPRINT_TEXT], lines[400];
    strcpy(folder, "/tmp/sherd-canary-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(key_path, sizeof key_path, "%s/node.key", folder);
    snprintf(allow_path, sizeof allow_path, "%s/allow.txt", folder);
    assert_int_equal(sherd_identity_new(&id, NULL), SHERD_OK);
    assert_int_equal(sherd_identity_save(id, key_path, NULL), SHERD_OK);
    sherd_identity_free(id);
    sherd__fingerprint_text(sherd__identity_fingerprint(bad.me), text[0]);
    sherd__fingerprint_text(sherd__identity_fingerprint(good.me), text[1]);
    snprintf(lines, sizeof lines, "* key=%s role=coordinator\n* key=%s role=coordinator\n", text[0],
             text[1]);
    write_text(allow_path, lines);
}

static inline int canary_begin(void **s)
{
    (void)s;
    const char *argv[] = { "sherd",    "node",    "--listen", "127.0.0.1:0", "--key",
                           key_path,   "--allow", allow_path, "--selftest",  "quick",
                           "--memory", "3G",      NULL };
    bool found;
    sherd_diag d = { .code = 0 };
    hub_open(&bad);
    hub_open(&good);
    write_files();
    proc_spawn(&node, command_under_test(), argv, NULL);
    if (!proc_line(&node, 20000)) return -1;
    return sherd__peer_parse(&node.peer, &found, node.line, "line", &d);
}

static inline int canary_end(void **s)
{
    (void)s;
    char line[128];
    send_signal(node.pid, SIGKILL);
    proc_wait(&node, 10000);
    hub_close(&bad);
    hub_close(&good);
    snprintf(line, sizeof line, "rm -rf %s", folder);
    return system(line);
}

/* Ends what a failed case has left: a stopped node and open links. */
static inline int canary_after(void **s)
{
    (void)s;
    send_signal(node.pid, SIGCONT);
    hub_cut(&bad);
    hub_cut(&good);
    return 0;
}

/* Returns the processor time of the thread that runs the node's loop. */
static inline double loop_ms(void)
{
    char path[80];
    unsigned long long ns = 0;
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/schedstat", (long)node.pid,
             loop_thread(node.pid));
    FILE *f = fopen(path, "re");
    if (!f || fscanf(f, "%llu", &ns) != 1) skip();
    fclose(f);
    return 1e-6 * (double)ns;
}

/* Sends a request whose answer is a refusal. */
static inline void probe(tie *t, const char *beside)
{
    double from = loop_ms();
    int64_t began = clock_ms();
    uint32_t before = t->refused;
    tie_ask(t, 7, ++asked, 1, 1);
    hub_wait(&good, t->refused, before + 1, 60000);
    double ms = loop_ms() - from;
    if (ms > worst_ms) worst_ms = ms;
    if (ms > MOST_MS) fail_msg("%s: the canary waited for %.0f ms of the loop", beside, ms);
    if (ms > 20)
        print_message("# %s: %.1f ms of the loop, %d ms in total\n", beside, ms,
                      (int)(clock_ms() - began));
}

/* Records of many connections that arrive in the kernel while the node is stopped are available at
 * once afterwards. Returns how long the canary waited, in ms of the loop. */
static inline double crowd_waits(tie *canary, const char *what, int crowd)
{
    uint32_t before = canary->refused;
    for (int64_t until = clock_ms() + 1000; clock_ms() < until;) uv_run(&bad.loop, UV_RUN_NOWAIT);
    tie_ask(canary, 7, ++asked, 1, 1);
    for (int i = 0; i < 10; i++) uv_run(&good.loop, UV_RUN_NOWAIT);
    double from = loop_ms();
    send_signal(node.pid, SIGCONT);
    hub_wait(&good, canary->closed ? before + 1 : canary->refused, before + 1, 60000);
    double ms = loop_ms() - from;
    if (canary->closed) fail_msg("%s: the canary's session has ended: %s", what, canary->text);
    print_message("# %s of %d connections: %.1f ms\n", what, crowd, ms);
    return ms;
}

/* Returns whether the canary waited too long and the attack is to be repeated; fails the test after
 * three attempts. Where other processes evict the loop's caches, or a hypervisor takes the
 * processor, one attempt may take several times as long; a defect takes too long each time. */
static inline bool crowd_again(const char *what, double ms, int *attempts)
{
    if (ms <= MOST_MS) return false;
    if (++*attempts == 3) fail_msg("%s: the canary waited for %.0f ms of the loop", what, ms);
    return true;
}

/* Both loops must run, since a session whose loop does not run counts as lost. */
static inline void crowd_is_served(tie *a, int crowd, uint32_t refusals)
{
    int64_t until = clock_ms() + 60000;
    for (int i = 0; i < crowd; i++) {
        while (a[i].refused < refusals && !a[i].closed && clock_ms() < until) {
            uv_run(&good.loop, UV_RUN_NOWAIT);
            uv_run(&bad.loop, UV_RUN_NOWAIT);
            uv_sleep(1);
        }
        if (a[i].refused < refusals) fail_msg("connection %d has no answer: %s", i, a[i].text);
    }
}

#endif
