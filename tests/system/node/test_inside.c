/* Nodes in threads of this process, and their coordinator beside them: sherd/node.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "lib/node.h"
#include "node/backends/hosted.h"
#include "sherd/sherd.h"
#include "wire/handoff.h"
#include "wire/identity.h"

enum { N = 40, K = 50, M = 30 };

static char dir[] = "/tmp/sherd-inside-XXXXXX";
static sherd_identity *me, *other;
static char allow_me[200], allow_other[200];

static const char *in_dir(const char *name)
{
    static char path[4][128];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

static int begin(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    if (!mkdtemp(dir) || sherd_identity_new(&me, NULL) || sherd_identity_new(&other, NULL))
        return -1;
    snprintf(allow_me, sizeof allow_me, "* key=%s role=coordinator\n", sherd_identity_key(me));
    snprintf(allow_other, sizeof allow_other, "* key=%s\n", sherd_identity_key(other));
    return 0;
}

static int end(void **state)
{
    (void)state;
    char line[128];
    sherd_identity_free(me);
    sherd_identity_free(other);
    snprintf(line, sizeof line, "rm -rf %s", dir);
    return system(line);
}

static sherd_node_options options(void)
{
    return (sherd_node_options){ .size = sizeof(sherd_node_options),
                                 .allow = allow_me,
                                 .quick_test = true };
}

static sherd_node *start(const sherd_node_options *o)
{
    sherd_node *n;
    sherd_diag d = { 0 };
    if (sherd_node_start(&n, o, &d)) fail_msg("%s", d.message);
    return n;
}

static int open_cluster(sherd_cluster **c, const char *nodes, sherd_diag *d)
{
    sherd_cluster_options o = { .size = sizeof o, .nodes = nodes, .identity = me };
    return sherd_cluster_open(c, &o, d);
}

static int multiply(sherd_cluster *c, sherd_scheme scheme)
{
    static double a[N * K], b[K * M], out[N * M];
    sherd_product_options how = { .size = sizeof how, .scheme = scheme, .exact = true };
    sherd_diag d = { 0 };
    for (int i = 0; i < N * K; i++) a[i] = i % 23 - 11;
    for (int i = 0; i < K * M; i++) b[i] = i % 19 - 9;
    int err = sherd_multiply(c, sherd_view_c(a, SHERD_F64, N, K), sherd_view_c(b, SHERD_F64, K, M),
                             out, M, &how, NULL, &d);
    for (int i = 0; i < N && !err; i++)
        for (int j = 0; j < M; j++) {
            double sum = 0;
            for (int l = 0; l < K; l++) sum += a[i * K + l] * b[l * M + j];
            assert_true(sum == out[i * M + j]);
        }
    return err;
}

static void nodes_and_their_coordinator_share_a_process(void **state)
{
    (void)state;
    enum { NODES = 3 };
    sherd_node *nodes[NODES];
    sherd_cluster *c;
    sherd_diag d = { 0 };
    char list[NODES * SHERD_PEER_LINE_SIZE] = "", domain[8];
    for (int i = 0; i < NODES; i++) {
        sherd_node_options o = options();
        snprintf(domain, sizeof domain, "d%d", i);
        o.name = "n";
        o.domain = domain;
        o.memory = 64 << 20;
        nodes[i] = start(&o);
        strcat(strcat(list, sherd_node_line(nodes[i])), "\n");
    }
    sherd_cluster_options where = {
        .size = sizeof where, .nodes = list, .identity = me, .same_host_domains = true
    };
    if (sherd_cluster_open(&c, &where, &d)) fail_msg("%s", d.message);
    assert_true(sherd_cluster_simulated(c));
    assert_int_equal(multiply(c, SHERD_SHARE), 0);
    assert_int_equal(multiply(c, SHERD_PERMUTE), 0);
    sherd_cluster_close(c);
    for (int i = 0; i < NODES; i++) {
        sherd_node_report r = { .size = sizeof r };
        sherd_node_tasks t = { .size = sizeof t };
        assert_int_equal(sherd_node_end(nodes[i], 0, NULL), 0);
        assert_int_equal(sherd_node_report_get(nodes[i], &r, NULL), 0);
        assert_int_equal(sherd_node_tasks_get(nodes[i], &t, NULL), 0);
        assert_true(t.multiply >= 2 && t.sigmoid == 0 && t.refused == 0);
        assert_true(r.sessions == 1 && r.blocks_in >= 4 && r.bytes_in > 0 && r.bytes_out > 0);
        assert_true(r.memory_budget == 64 << 20 && r.memory_peak > 0 && r.threads >= 1);
        assert_true(r.blas_core[0]);
        assert_int_equal(sherd_node_end(nodes[i], 0, NULL), 0);
        sherd_node_free(nodes[i]);
    }
    sherd_node_free(NULL);
}

/* Reads which signals a thread of this process blocks; false if it has ended. */
static bool blocked_by(const char *thread, unsigned long long *mask)
{
    char path[300], line[256];
    bool found = false;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", thread);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        found = sscanf(line, "SigBlk: %llx", mask) == 1 || found;
    if (f) fclose(f);
    return found;
}

/* Counts the threads that are not among `before`, and checks their masks; or lists all there. */
static size_t threads(char before[][16], size_t len, bool check)
{
    size_t n = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (const struct dirent *e; (e = readdir(tasks));) {
        unsigned long long mask = 0, wanted = 1ull << (SIGINT - 1) | 1ull << (SIGPIPE - 1);
        bool old = e->d_name[0] == '.';
        for (size_t i = 0; check && i < len; i++) old = old || strcmp(before[i], e->d_name) == 0;
        if (old) continue;
        if (!check) snprintf(before[n], 16, "%.15s", e->d_name);
        else if (blocked_by(e->d_name, &mask) && (mask & wanted) != wanted)
            fail_msg("a thread of the node blocks %llx", mask);
        n++;
        assert_true(n < 200);
    }
    closedir(tasks);
    return n;
}

static void threads_of_a_node_block_signals(void **state)
{
    (void)state;
    static char before[200][16];
    sherd_node_options o = options();
    size_t len = threads(before, 0, false);
    sherd_node_tasks t = { .size = sizeof t };
    sherd_node *n = start(&o);
    assert_int_equal(sherd_node_tasks_get(n, &t, NULL), 0); /* a new thread blocks all at first */
    assert_true(threads(before, len, true) >= 2);           /* its loop and its compute thread */
    sigset_t mine;
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &mine), 0);
    assert_false(sigismember(&mine, SIGINT));
    sherd_node_free(n);
    for (int i = 0; i < 1000 && threads(before, len, true); i++) /* a task ends after its join */
        nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    assert_int_equal(threads(before, len, true), 0);
}

static void the_line_of_a_node_has_address_key_name_and_domain(void **state)
{
    (void)state;
    sherd_node_options o = options();
    sherd_peers *list;
    sherd_peer p = { .size = sizeof p };
    o.listen = "[::1]:0";
    o.identity = other;
    o.name = "alpha";
    o.domain = "here";
    sherd_node *n = start(&o);
    assert_int_equal(sherd_peers_parse(&list, sherd_node_line(n), NULL, NULL), 0);
    assert_int_equal(sherd_peers_at(list, 0, &p, NULL), 0);
    assert_string_equal(p.host, "::1");
    assert_string_equal(p.key, sherd_identity_key(other));
    assert_string_equal(p.name, "alpha");
    assert_string_equal(p.domain, "here");
    assert_true(p.port > 0);
    sherd_peers_free(list);
    sherd_node_free(n);
}

static void refused(int expected, sherd_node_options o, const char *words)
{
    sherd_node *n = (sherd_node *)(uintptr_t)1;
    sherd_diag d = { 0 };
    int err = sherd_node_start(&n, &o, &d);
    if (err != expected || !strstr(d.message, words))
        fail_msg("%s: %d, \"%s\"", words, err, d.message);
    assert_null(n);
}

#define WITH(member, value, code, words)                                                           \
    do {                                                                                           \
        sherd_node_options o = options();                                                          \
        o.member = (value);                                                                        \
        refused(code, o, words);                                                                   \
    } while (0)

static void invalid_options_are_refused(void **state)
{
    (void)state;
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    char taken[32];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at) | listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    snprintf(taken, sizeof taken, "127.0.0.1:%u", ntohs(at.sin_port));
    WITH(size, 0, SHERD_EINVAL, "size");
    WITH(listen, "", SHERD_EINVAL, "ADDRESS:PORT");
    WITH(listen, "127.0.0.1", SHERD_EINVAL, "ADDRESS:PORT");
    WITH(listen, "::1:7001", SHERD_EINVAL, "ADDRESS:PORT");
    WITH(listen, "127.0.0.1:65536", SHERD_EINVAL, "ADDRESS:PORT");
    WITH(listen, "127.0.0.1:7x", SHERD_EINVAL, "ADDRESS:PORT");
    WITH(listen, "no.such.host.invalid:1", SHERD_ENET, "not resolved");
    WITH(listen, taken, SHERD_EADDRINUSE, taken);
    WITH(name, "a b", SHERD_EINVAL, "name \"a b\"");
    WITH(domain, "", SHERD_EINVAL, "domain \"\"");
    WITH(backend, "abacus", SHERD_EUNSUPPORTED, "abacus");
    assert_string_equal(sherd_backend_name(0), "cpu");
    assert_string_equal(sherd_backend_name(1), "cuda");
    assert_string_equal(sherd_backend_name(2), "opencl");
    assert_null(sherd_backend_name(3));
    WITH(devices, "0", SHERD_EINVAL, "this machine has no GPU");
    WITH(device_memory, 1 << 30, SHERD_EINVAL, "this machine has no GPU");
    WITH(devices, "one", SHERD_EINVAL, "found 'one'");
    WITH(allow, NULL, SHERD_EINVAL, "no allow-list");
    WITH(allow, "# no line\n", SHERD_EFORMAT, "lists no coordinator");
    WITH(allow, "x y", SHERD_EFORMAT, "allow-list:1");
    WITH(allow, "* role=coordinator\n", SHERD_EFORMAT, "allow-list:1: key=");
    WITH(key_file, in_dir("none.key"), SHERD_EOPEN, "none.key");
    WITH(peers_file, in_dir("none.txt"), SHERD_EOPEN, "none.txt");
    WITH(peers, "x", SHERD_EFORMAT, "list of peers:1");
    WITH(record_dir, "/proc/none", SHERD_EOPEN, "/proc/none");
    WITH(cores, "one", SHERD_EINVAL, "not a list of cores");
    close(fd);
}

/* Waits until the coordinator has lost its node. */
static void a_start_that_fails_leaves_no_record(void **state)
{
    (void)state;
    struct stat st;
    sherd_node_options o = options();
    o.record_dir = in_dir("none");
    o.listen = "127.0.0.1:1x";
    refused(SHERD_EINVAL, o, "1x");
    assert_int_not_equal(stat(o.record_dir, &st), 0);
    o = options();
    o.record_dir = in_dir("none");
    o.identity = NULL;
    o.key_file = "/nowhere/key";
    refused(SHERD_EOPEN, o, "/nowhere/key");
    assert_int_not_equal(stat(o.record_dir, &st), 0);
}

static void lose(sherd_cluster *c)
{
    sherd_node_info info = { .size = sizeof info };
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(sherd_cluster_node_at(c, 0, &info, NULL), 0);
        if (info.state != SHERD_NODE_UP) return;
        nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    }
    fail_msg("the node is still up");
}

static void an_allow_list_can_be_replaced(void **state)
{
    (void)state;
    sherd_node_options o = options();
    sherd_cluster *c;
    sherd_diag d = { 0 };
    const char *file = in_dir("allow.txt");
    FILE *f = fopen(file, "w");
    assert_true(f && fputs(allow_me, f) >= 0 && fclose(f) == 0);
    o.allow = NULL;
    o.allow_file = file;
    sherd_node *n = start(&o);
    assert_int_equal(open_cluster(&c, sherd_node_line(n), &d), 0);
    assert_int_equal(sherd_node_allow(n, "nonsense", &d), SHERD_EFORMAT);
    assert_int_equal(multiply(c, SHERD_PERMUTE), 0); /* the list stays */
    assert_int_equal(sherd_node_allow(n, allow_other, NULL), 0);
    lose(c);
    sherd_cluster_close(c);
    d = (sherd_diag){ 0 };
    assert_int_equal(open_cluster(&c, sherd_node_line(n), &d), SHERD_EAUTH);
    assert_int_equal(sherd_node_allow(n, NULL, NULL), 0); /* as the file has it */
    assert_int_equal(open_cluster(&c, sherd_node_line(n), &d), 0);
    char elsewhere[220]; /* the same key, from another address only */
    snprintf(elsewhere, sizeof elsewhere, "127.0.0.9:1%s", allow_me + 1);
    assert_int_equal(sherd_node_allow(n, elsewhere, NULL), 0);
    lose(c);
    sherd_cluster_close(c);
    sherd_node_free(n);

    o = options();
    n = start(&o);
    assert_int_equal(sherd_node_allow(n, NULL, NULL), SHERD_EINVAL); /* there is no file */
    sherd_node_free(n);
}

/* ---- ending ---------------------------------------------------------------------------------- */

/* A backend whose products wait until they are released. */
static atomic_int entered, released;

static int compute_late(void *ctx, const sherd__call *c, const sherd__fragment *left,
                        const sherd__fragment *right, sherd_diag *d)
{
    atomic_fetch_add(&entered, 1);
    while (!atomic_load(&released)) nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    return sherd__backend_cpu.compute(ctx, c, left, right, d);
}

static int submit_late(void *ctx, sherd__call *c, sherd_diag *d)
{
    return sherd__hosted_submit(ctx, compute_late, c, d);
}

static void *multiply_in_vain(void *cluster)
{
    return multiply(cluster, SHERD_PERMUTE) == 0 ? NULL : cluster;
}

static void a_running_product_is_waited_for_as_long_as_allowed(void **state)
{
    (void)state;
    sherd__backend late = sherd__backend_cpu;
    sherd_node_options o = options();
    sherd_node_report r = { .size = sizeof r };
    sherd_node *n;
    sherd_cluster *c;
    pthread_t thread;
    void *failed;
    sherd_diag d = { 0 };
    struct stat st;
    late.submit = submit_late;
    late.compute = NULL;
    o.record_dir = in_dir("late");
    assert_int_equal(sherd__node_start_with(&n, &o, &late, NULL), 0);
    assert_int_equal(open_cluster(&c, sherd_node_line(n), &d), 0);
    assert_int_equal(pthread_create(&thread, NULL, multiply_in_vain, c), 0);
    while (!atomic_load(&entered)) nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    assert_int_equal(sherd_node_end(n, 50, &d), SHERD_ETIMEOUT);
    assert_non_null(strstr(d.message, "a product is running"));
    assert_int_equal(stat(in_dir("late/index.json"), &st), 0); /* the record is complete */
    assert_int_equal(sherd_node_report_get(n, &r, NULL), 0);
    assert_int_equal(r.sessions, 1);
    assert_int_equal(sherd_node_end(n, 1, NULL), SHERD_ETIMEOUT);
    atomic_store(&released, 1);
    assert_int_equal(sherd_node_end(n, 0, NULL), 0);
    assert_int_equal(sherd_node_wait(n, NULL), 0); /* it has ended */
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_non_null(failed);
    sherd_cluster_close(c);
    sherd_node_free(n);
}

static bool yes(void *asked)
{
    atomic_fetch_add((atomic_int *)asked, 1);
    return true;
}

static bool no(void *asked)
{
    atomic_fetch_add((atomic_int *)asked, 1);
    return false;
}

static void *end_late(void *node)
{
    nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
    return sherd_node_end(node, 0, NULL) == 0 ? NULL : node;
}

static void waiting_for_a_node_ends_with_the_node(void **state)
{
    (void)state;
    atomic_int asked = 0;
    sherd_node_options o = options();
    pthread_t thread;
    void *failed;
    o.hooks = (sherd_hooks){ .interrupted = no, .ctx = &asked };
    sherd_node *n = start(&o);
    int while_starting = asked;
    assert_true(while_starting > 0);
    assert_int_equal(pthread_create(&thread, NULL, end_late, n), 0);
    assert_int_equal(sherd_node_wait(n, NULL), 0);
    assert_true(asked > while_starting);
    assert_false(sherd_node_orphaned(n));
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    sherd_node_free(n);
    o.hooks.interrupted = yes;
    refused(SHERD_EINTERRUPTED, o, "interrupted");
}

static atomic_bool interrupt;

static bool when_wanted(void *ctx)
{
    (void)ctx;
    return interrupt;
}

static void an_interrupted_wait_leaves_the_node_serving(void **state)
{
    (void)state;
    sherd_node_options o = options();
    sherd_cluster *c;
    sherd_diag d = { 0 };
    o.hooks.interrupted = when_wanted;
    sherd_node *n = start(&o);
    interrupt = true;
    assert_int_equal(sherd_node_wait(n, &d), SHERD_EINTERRUPTED);
    assert_int_equal(open_cluster(&c, sherd_node_line(n), &d), 0);
    assert_int_equal(multiply(c, SHERD_PERMUTE), 0);
    sherd_cluster_close(c);
    sherd_node_free(n);
}

static void a_node_ends_with_its_parents_pipe(void **state)
{
    (void)state;
    int ends[2];
    sherd__handoff h = { .allow = allow_me, .allow_len = strlen(allow_me) };
    sherd_node_options o = { .size = sizeof o, .quick_test = true };
    assert_int_equal(sherd__identity_pem(other, &h.key, &h.key_len), 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(sherd__handoff_write(ends[1], &h, NULL), 0);
    sherd__free(h.key);
    o.parent_pipe = ends[0];
    sherd_node *n = start(&o);
    assert_non_null(strstr(sherd_node_line(n), sherd_identity_key(other)));
    close(ends[1]);
    assert_int_equal(sherd_node_wait(n, NULL), 0);
    assert_true(sherd_node_orphaned(n));
    assert_int_equal(sherd_node_end(n, 0, NULL), 0);
    sherd_node_free(n);
}

/* ---- examples of its own --------------------------------------------------------------------- */

static char said[2000];

static void hear(void *ctx, sherd_log_level level, const char *text)
{
    (void)ctx;
    if (level == SHERD_LOG_WARN) strncat(said, text, sizeof said - strlen(said) - 1);
}

static void examples_in_memory_are_charged_to_a_ledger(void **state)
{
    (void)state;
    static const float x[6] = { 1, 2, 3, 4, 5, 6 };
    static const uint8_t y[3] = { 0, 1, 0 };
    sherd_node_data own = { .size = sizeof own,
                            .examples = sherd_view_c(x, SHERD_F32, 3, 2),
                            .targets = sherd_view_c(y, SHERD_U8, 3, 1),
                            .ledger = in_dir("own.ledger") };
    sherd_node_options o = options();
    sherd_node_privacy p = { .size = sizeof p };
    struct stat st;
    o.memory = 1 << 20;
    o.data = &own;
    o.hooks.log = hear;
    said[0] = '\0';
    sherd_node *n = start(&o);
    assert_non_null(strstr(said, "own.ledger: created an empty privacy ledger"));
    assert_non_null(strstr(said, "joins no sum"));
    assert_null(strstr(said, "without noise"));
    assert_int_equal(stat(own.ledger, &st), 0);
    assert_int_equal(sherd_node_privacy_get(n, &p, NULL), 0);
    assert_true(p.uploads == 0 && p.epsilon == 0 && p.epsilon_max == 8 && p.delta == 1e-6);
    refused(SHERD_EBUSY, o, "own.ledger"); /* one node at a time */
    sherd_node_free(n);

    own.epsilon = INFINITY;
    own.delta = 1e-3;
    own.require_ledger = true;
    own.any_peers = true;
    said[0] = '\0';
    n = start(&o);
    assert_null(strstr(said, "empty privacy ledger"));
    assert_null(strstr(said, "joins no sum"));
    assert_non_null(strstr(said, "without noise"));
    assert_int_equal(sherd_node_privacy_get(n, &p, NULL), 0);
    assert_true(isinf(p.epsilon_max) && p.delta == 1e-3);
    sherd_node_free(n);

    o.data = NULL;
    n = start(&o);
    assert_int_equal(sherd_node_privacy_get(n, &p, NULL), SHERD_EINVAL);
    sherd_node_free(n);
}

#define OWN(member, value, code, words)                                                            \
    do {                                                                                           \
        sherd_node_data own = good;                                                                \
        sherd_node_options o = options();                                                          \
        own.member = (value);                                                                      \
        o.data = &own;                                                                             \
        refused(code, o, words);                                                                   \
    } while (0)

static void invalid_examples_are_refused(void **state)
{
    (void)state;
    static const double x[6];
    const sherd_view three = sherd_view_c(x, SHERD_F64, 3, 2), none = { .data = NULL };
    const sherd_node_data good = { .size = sizeof good,
                                   .examples = three,
                                   .ledger = in_dir("bad.ledger") };
    OWN(size, 0, SHERD_EINVAL, "size");
    OWN(path, "also.npy", SHERD_EINVAL, "which examples");
    OWN(examples, none, SHERD_EINVAL, "which examples");
    OWN(examples, sherd_view_c(x, SHERD_F64, 0, 2), SHERD_ESHAPE, "no examples");
    OWN(targets, sherd_view_c(x, SHERD_F64, 2, 1), SHERD_ESHAPE, "3 examples and 2 targets");
    OWN(ledger, NULL, SHERD_EINVAL, "ledger");
    OWN(require_ledger, true, SHERD_EFORMAT, "bad.ledger");
    OWN(nodes_min, 2, SHERD_EINVAL, "nodes_min is 2");
    OWN(epsilon, -1, SHERD_EINVAL, "epsilon is -1");
    OWN(epsilon, NAN, SHERD_EINVAL, "epsilon is");
    OWN(delta, 1, SHERD_EINVAL, "delta 1");
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Every allocation fails once: the start reports it and leaves nothing behind. */
static void without_memory_no_node_starts(void **state)
{
    (void)state;
    static const double x[4] = { 1, 2, 3, 4 };
    sherd_node_data own = { .size = sizeof own,
                            .examples = sherd_view_c(x, SHERD_F64, 2, 2),
                            .ledger = in_dir("short.ledger") };
    sherd_node_options o = options();
    size_t n = 0;
    int err;
    o.identity = me;
    o.peers = allow_other;
    o.data = &own;
    do {
        sherd_node *node = NULL;
        sherd__alloc_fail_nth(++n);
        err = sherd_node_start(&node, &o, NULL);
        sherd__alloc_fail_nth(0);
        assert_true(err ? err == SHERD_ENOMEM && !node : node != NULL);
        sherd_node_free(node);
    } while (err && n < 500);
    assert_true(n > 10 && n < 500);
}

/* The library of OpenCL that tests use (preload_opencl.c). */
static sherd_node_options on_standin(char library[4096])
{
    sherd_node_options o = options();
    snprintf(library, 4096, "%s/tests/system/node/preload_opencl.so", getenv("BUILD"));
    o.opencl_library = library;
    o.program = getenv("SHERD");
    return o;
}

static void devices_are_found_with_their_rates(void **state)
{
    (void)state;
    char library[4096];
    sherd_devices *v;
    sherd_node_options o = on_standin(library);
    setenv("SHERD_TEST_OPENCL", "devices=2,nof64", 1);
    for (int rates = 0; rates < 2; rates++) {
        assert_int_equal(sherd_devices_find(&v, &o, rates, NULL), SHERD_OK);
        assert_int_equal(sherd_devices_count(v), 2);
        assert_null(sherd_devices_at(v, 2));
        assert_null(sherd_devices_missing(v));
        const sherd_device *x = sherd_devices_at(v, 1);
        assert_string_equal(x->backend, "opencl");
        assert_string_equal(x->model, "Stand-in GPU 1");
        assert_true(x->number == 1 && x->usable && !x->processor && x->gflops == 0);
        assert_int_equal(x->residue_gflops > 0 && x->byte_gops > 0, rates);
        sherd_devices_free(v);
    }
    setenv("SHERD_TEST_OPENCL", "abort", 1);
    assert_int_equal(sherd_devices_find(&v, &o, false, NULL), SHERD_OK);
    assert_int_equal(sherd_devices_count(v), 0);
    assert_non_null(strstr(sherd_devices_missing(v), "ends the process"));
    assert_int_equal(sherd_devices_fault_at(v, 0)->code, SHERD_EDEVICE);
    assert_non_null(strstr(sherd_devices_fault_at(v, 0)->message, "ends the process"));
    assert_null(sherd_devices_fault_at(v, 1));
    sherd_devices_free(v);
    setenv("SHERD_TEST_OPENCL", "none", 1);
    assert_int_equal(sherd_devices_find(&v, &o, false, NULL), SHERD_OK);
    assert_int_equal(sherd_devices_fault_at(v, 0)->code, SHERD_EUNSUPPORTED);
    sherd_devices_free(v);
    unsetenv("SHERD_TEST_OPENCL");
    o.backend = "cpu";
    assert_int_equal(sherd_devices_find(&v, &o, false, NULL), SHERD_EINVAL);
    assert_null(v);
    o.backend = "abacus";
    assert_int_equal(sherd_devices_find(&v, &o, false, NULL), SHERD_EUNSUPPORTED);
    o.backend = NULL;
    o.size = 1;
    assert_int_equal(sherd_devices_find(&v, &o, false, NULL), SHERD_EINVAL);
    assert_null(v);
}

/* Starts a node on the stand-in's device, and a cluster of it. */
static sherd_node *open_standin(sherd_cluster **c)
{
    char library[4096];
    sherd_diag d = { 0 };
    sherd_node_options o = on_standin(library);
    sherd_node *n = start(&o);
    assert_int_equal(open_cluster(c, sherd_node_line(n), &d), SHERD_OK);
    return n;
}

static void a_node_computes_on_a_device_that_the_library_chose(void **state)
{
    (void)state;
    sherd_cluster *c;
    sherd_node *n = open_standin(&c);
    sherd_node_info info = { .size = sizeof info };
    assert_int_equal(sherd_cluster_node_at(c, 0, &info, NULL), SHERD_OK);
    assert_string_equal(info.backend, "opencl");
    assert_string_equal(info.blas_core, "Stand-in GPU 0");
    assert_int_equal(multiply(c, SHERD_PLAIN), SHERD_OK);
    sherd_cluster_close(c);
    assert_int_equal(sherd_node_end(n, 0, NULL), SHERD_OK);
    sherd_node_free(n);
}

/* Each launch of the node's self-test works; a later one loses the device. */
static void a_node_whose_device_is_lost_ends_and_says_so(void **state)
{
    (void)state;
    sherd_cluster *c;
    sherd_diag d = { 0 };
    sherd_node *n = open_standin(&c);
    assert_int_equal(multiply(c, SHERD_PLAIN), SHERD_OK);
    setenv("SHERD_TEST_OPENCL", "gone", 1);
    (void)multiply(c, SHERD_PLAIN);
    assert_int_equal(sherd_node_wait(n, NULL), SHERD_OK);
    assert_int_equal(sherd_node_end(n, 0, &d), SHERD_EDEVICE);
    assert_non_null(strstr(d.message, "the node has no device left: "));
    sherd_cluster_close(c);
    sherd_node_free(n);
    unsetenv("SHERD_TEST_OPENCL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_found_with_their_rates),
        cmocka_unit_test(a_node_computes_on_a_device_that_the_library_chose),
        cmocka_unit_test(a_node_whose_device_is_lost_ends_and_says_so),
        cmocka_unit_test(nodes_and_their_coordinator_share_a_process),
        cmocka_unit_test(threads_of_a_node_block_signals),
        cmocka_unit_test(the_line_of_a_node_has_address_key_name_and_domain),
        cmocka_unit_test(invalid_options_are_refused),
        cmocka_unit_test(a_start_that_fails_leaves_no_record),
        cmocka_unit_test(an_allow_list_can_be_replaced),
        cmocka_unit_test(a_running_product_is_waited_for_as_long_as_allowed),
        cmocka_unit_test(waiting_for_a_node_ends_with_the_node),
        cmocka_unit_test(an_interrupted_wait_leaves_the_node_serving),
        cmocka_unit_test(a_node_ends_with_its_parents_pipe),
        cmocka_unit_test(examples_in_memory_are_charged_to_a_ledger),
        cmocka_unit_test(invalid_examples_are_refused),
        cmocka_unit_test(without_memory_no_node_starts),
    };
    return cmocka_run_group_tests_name("node/inside", tests, begin, end);
}
