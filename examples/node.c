/*
 * A node in a program of one's own, and a coordinator that multiplies through it:
 *
 *     cc node.c $(pkg-config --cflags --libs sherd) -o node && ./node
 *
 * The two usually run on different machines. Each has a private key and knows the fingerprint of
 * the other's: the node's allow-list has that of the coordinator, and the coordinator's list has
 * the line that the node prints. Nothing else is shared, so a program that only serves needs no
 * more than serve() and sherd_node_wait().
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <sherd/sherd.h>

enum { N = 50, K = 70, M = 30 };

static int failed(const sherd_diag *d)
{
    fprintf(stderr, "node: %s\n", d->message);
    if (d->hint[0]) fprintf(stderr, "hint: %s\n", d->hint);
    return sherd_err_exit(d->code);
}

static void log_line(void *ctx, sherd_log_level level, const char *text)
{
    (void)ctx;
    if (level >= SHERD_LOG_INFO) fprintf(stderr, "node: %s\n", text);
}

/* Starts a node that accepts the holder of one key. */
static int serve(sherd_node **node, const char *coordinator, sherd_diag *d)
{
    char allow[128];
    snprintf(allow, sizeof allow, "* key=%s role=coordinator", coordinator);
    sherd_node_options how = { .size = sizeof how,
                               .listen = "127.0.0.1:0",
                               .name = "example",
                               .allow = allow,
                               .memory = 256 << 20,
                               .hooks = { .log = log_line } };
    return sherd_node_start(node, &how, d);
}

/* Multiplies over the nodes of a list; *equal: whether C is A*B. */
static int multiply(const char *nodes, const sherd_identity *key, int *equal, sherd_diag *d)
{
    static double a[N * K], b[K * M], c[N * M];
    for (int i = 0; i < N * K; i++) a[i] = rand() % 200 - 100;
    for (int i = 0; i < K * M; i++) b[i] = rand() % 200 - 100;
    sherd_cluster_options where = { .size = sizeof where, .nodes = nodes, .identity = key };
    sherd_product_options how = { .size = sizeof how, .scheme = SHERD_PERMUTE, .exact = 1 };
    sherd_cluster *cluster;
    int err = sherd_cluster_open(&cluster, &where, d);
    if (err) return err;
    err = sherd_multiply(cluster, sherd_view_c(a, SHERD_F64, N, K),
                         sherd_view_c(b, SHERD_F64, K, M), c, M, &how, NULL, d);
    sherd_cluster_close(cluster);
    *equal = 1;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) {
            double sum = 0; /* integers far below 2^53: exact in any order */
            for (int l = 0; l < K; l++) sum += a[i * K + l] * b[l * M + j];
            if (sum != c[i * M + j]) *equal = 0;
        }
    return err;
}

int main(void)
{
    sherd_identity *key;
    sherd_node *node;
    sherd_node_report report = { .size = sizeof report };
    sherd_node_tasks tasks = { .size = sizeof tasks };
    sherd_diag d = { 0 };
    int equal = 0;
    signal(SIGPIPE, SIG_IGN); /* a lost connection must not end the program */
    if (sherd_identity_new(&key, &d)) return failed(&d);
    if (serve(&node, sherd_identity_key(key), &d)) return failed(&d);
    printf("%s\n", sherd_node_line(node));

    int err = multiply(sherd_node_line(node), key, &equal, &d);
    if (!err) err = sherd_node_end(node, 0, &d);
    if (!err) err = sherd_node_report_get(node, &report, &d);
    if (!err) err = sherd_node_tasks_get(node, &tasks, &d);
    sherd_node_free(node);
    sherd_identity_free(key);
    if (err) return failed(&d);

    printf("the node computed %llu product%s from %llu bytes\n", (unsigned long long)tasks.multiply,
           tasks.multiply == 1 ? "" : "s", (unsigned long long)report.bytes_in);
    printf("equal: %s\n", equal ? "yes, bit for bit" : "no");
    return equal ? 0 : 1;
}
