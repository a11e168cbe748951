/*
 * A product over seven local nodes, from C:
 *
 *     cc product.c $(pkg-config --cflags --libs sherd) -o product && ./product
 *
 * The nodes are processes that run the `sherd` command: the argument says where it is ("sherd" is
 * looked up on the PATH otherwise). The product is exact (fixed point), so that the comparison at
 * the end is bit for bit: these operands are integers, for which fixed point loses nothing.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <sherd/sherd.h>

enum { N = 50, K = 70, M = 30, NODES = 7 };

static int failed(const sherd_diag *d)
{
    fprintf(stderr, "product: %s\n", d->message);
    if (d->hint[0]) fprintf(stderr, "hint: %s\n", d->hint);
    return sherd_err_exit(d->code);
}

int main(int argc, char **argv)
{
    static double a[N * K], b[K * M], c[N * M];
    for (int i = 0; i < N * K; i++) a[i] = rand() % 200 - 100;
    for (int i = 0; i < K * M; i++) b[i] = rand() % 200 - 100;
    signal(SIGPIPE, SIG_IGN); /* a lost connection must not end the program */

    sherd_cluster *cluster;
    sherd_cluster_options where = { .size = sizeof where,
                                    .local_nodes = NODES,
                                    .program = argc > 1 ? argv[1] : "sherd" };
    sherd_diag d = { 0 };
    if (sherd_cluster_open(&cluster, &where, &d) != SHERD_OK) return failed(&d);

    sherd_product_options how = { .size = sizeof how };
    sherd_report report = { .size = sizeof report };
    how.scheme = SHERD_PERMUTE;
    how.exact = true;
    int err = sherd_multiply(cluster, sherd_view_c(a, SHERD_F64, N, K),
                             sherd_view_c(b, SHERD_F64, K, M), c, M, &how, &report, &d);
    sherd_cluster_close(cluster);
    if (err) return failed(&d);

    for (unsigned i = 0; i < report.nodes; i++)
        printf("node %u: %u columns, %.1f %% of B\n", i, report.planned[i],
               100 * report.exposed_b[i]);
    sherd_report_fini(&report);

    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) {
            double sum = 0; /* integers far below 2^53: exact in any order */
            for (int l = 0; l < K; l++) sum += a[i * K + l] * b[l * M + j];
            if (sum != c[i * M + j]) {
                fprintf(stderr, "product: entry (%d, %d) is %g, not %g\n", i, j, c[i * M + j], sum);
                return 1;
            }
        }
    printf("equal: yes, bit for bit\n");
    return 0;
}
