/*
 * The coordinator's peak memory, measured in a new process: its peak resident size (VmHWM),
 * libraries and program included, less the bytes of operands and result. In a process that has
 * measured something else before, VmHWM would include that.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

static int peak_bytes(double *out, sherd_diag *d)
{
    char line[256];
    unsigned long long kb = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmHWM:", 6) == 0) kb = strtoull(line + 6, NULL, 10);
    if (f) fclose(f);
    *out = 1024.0 * (double)kb;
    return kb > 0 ? 0 : sherd__fail(d, SHERD_EUNSUPPORTED, NULL, "/proc/self/status has no VmHWM");
}

static double held(const sherd__bench_pair *p)
{
    size_t n = p->a.rows, k = p->a.cols, m = p->b.cols;
    return 8.0 * ((double)n * (double)k + (double)k * (double)m + (double)n * (double)m);
}

int sherd__bench_memory_child(sherd__bench *b, const char *which, sherd_diag *d)
{
    bool one = strcmp(which, "1") == 0;
    sherd__bench_pair p;
    sherd_cluster *cluster = NULL;
    double peak = 0, seconds;
    int err = one ? sherd__bench_layer(&p, b->quick ? 600 : 60000, d)
                  : sherd__bench_square(&p, b->quick ? 256 : 4096, d);
    if (err) return err;
    err = sherd__bench_open(&cluster, b, SHERD__BENCH_NODES, d);
    if (!err) err = sherd__bench_multiply(cluster, &p, one ? 1 : 0, &seconds, NULL, d);
    sherd_cluster_close(cluster);
    if (!err) err = peak_bytes(&peak, d);
    if (!err) printf("%.0f %.0f\n", peak - held(&p), held(&p));
    sherd__bench_pair_fini(&p);
    return err;
}

static int measure(sherd__bench *b, const char *which, sherd__figure *f, sherd_diag *d)
{
    const char *argv[] = { "bench", "--memory-of", which, "--keep-env", b->quick ? "--quick" : NULL,
                           NULL };
    double beyond = 0, operands = 0;
    int runs = sherd__bench_runs(b, 3), err = 0;
    for (int i = 0; i < runs && !err; i++) {
        sherd__child c;
        err = sherd__child_self(&c, b, argv, d);
        if (!err && sscanf(c.out, "%lf %lf", &beyond, &operands) != 2)
            err = sherd__fail(d, SHERD_EINTERNAL, NULL, "the measured process printed '%.60s'",
                              c.out);
        sherd__figure_add(f, beyond * 1e-6);
    }
    if (err) return err;
    sherd__figure_beside(f, "operands_mb", "operands and result", operands * 1e-6, "MB");
    sherd__bench_tell(b, f);
    return 0;
}

int sherd__bench_memory(sherd__bench *b, sherd_diag *d)
{
    sherd__figure one = { .name = "memory-1",
                          .unit = "MB",
                          .target = 256,
                          .what = "peak memory beyond operands, result: --group 1" };
    sherd__figure all = { .name = "memory-all",
                          .unit = "MB",
                          .target = 256,
                          .what = "  --group all, 4096 x 4096 x 4096" };
    if (b->quick) all.what = "  --group all, 256 x 256 x 256 (quick)";
    int err = measure(b, "1", &one, d);
    return err ? err : measure(b, "all", &all, d);
}
