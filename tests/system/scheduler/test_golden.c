/*
 * An exact product has the same bits whatever computes it: over real nodes, with every BLAS core
 * that this machine supports and 1 and 2 threads a node, over 3, 7 and 16 nodes with its own core,
 * and under every scheme, the results have the committed hashes (tests/vectors/exact.txt, computed
 * by another program). BLAS reads its core from the environment when it is loaded, so this test
 * starts itself once for each.
 */
#include "tests/vectors/exact.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "matrix/gemm.h"
#include "scheduler/cluster/launch.h"
#include "sherd/masks.h"
#include "sherd/multiplier.h"
#include "sherd/product.h"

extern char **environ;

/* All ways to compute an exact product: add a scheme here. */
static const struct way {
    const char *name;
    sherd_scheme scheme;
    uint32_t group;
    bool shuffle_rows;
    uint32_t colluding, spare;
    sherd_code code;
    bool keeps; /* A */
} ways[] = {
    { "plain", SHERD_PLAIN, 0, false, 0, 0, 0, false },
    { "permute, all in one group", SHERD_PERMUTE, 0, false, 0, 0, 0, false },
    { "permute, groups of 1", SHERD_PERMUTE, 1, false, 0, 0, 0, false },
    { "permute, groups of 7, rows too", SHERD_PERMUTE, 7, true, 0, 0, 0, false },
    { "share", SHERD_SHARE, 0, false, 1, 0, SHERD_CODE_LAGRANGE, false },
    { "share, inner-product code", SHERD_SHARE, 0, false, 1, 0, SHERD_CODE_INNER, false },
    { "share, A kept by the inner-product code", SHERD_SHARE, 0, false, 1, 0, SHERD_CODE_INNER,
      true },
    { "share against 2, with a spare", SHERD_SHARE, 0, false, 2, 1, 0, false },
    { "share1", SHERD_SHARE1, 0, false, 1, 0, 0, false },
    { "blind", SHERD_BLIND, 0, false, 0, 0, 0, false },
};
#define WAYS (sizeof ways / sizeof *ways)

/* ---- in a process of its own: 0 if everything is correct, otherwise 1 and a message ---------- */

typedef struct site {
    sherd__launch *launch;
    sherd_identity *key;
    char dir[40], key_file[64], node_file[64];
} site;

static bool complain(const char *what, const char *have, const char *want)
{
    fprintf(stderr, "%s: %s, expected %s\n", what, have, want);
    return false;
}

static bool as_wanted(const char *name, const char *way, const double *c, size_t n, size_t m)
{
    char have[SHERD__DIGEST_TEXT], want[SHERD__DIGEST_TEXT], what[200];
    vector_digest(c, n, m, have);
    vector_wanted(name, want);
    snprintf(what, sizeof what, "%s, %s", name, way);
    return !strcmp(have, want) || complain(what, have, want);
}

static bool library_products(void)
{
    bool good = true;
    for (size_t i = 0; i < MODULAR_CASES; i++) {
        const modular_case *v = &modular_cases[i];
        double *a = modular_operand(v, 'A', v->n * v->k), *b = modular_operand(v, 'B', v->k * v->m);
        double *c = modular_product(v, a, b);
        good = as_wanted(v->name, "in the library", c, v->n, v->m) && good;
        free(a);
        free(b);
        free(c);
    }
    return good;
}

static bool open_site(site *s, uint32_t nodes, uint32_t threads, sherd_cluster **c)
{
    sherd_diag d = { 0 };
    snprintf(s->dir, sizeof s->dir, "/tmp/sherd-golden-XXXXXX");
    if (!mkdtemp(s->dir) || sherd_identity_new(&s->key, NULL)) return false;
    snprintf(s->key_file, sizeof s->key_file, "%s/key", s->dir);
    snprintf(s->node_file, sizeof s->node_file, "%s/nodes", s->dir);
    sherd__launch_options o = { .nodes = nodes,
                                .program = getenv("SHERD"),
                                .memory = 64 << 20,
                                .threads = threads,
                                .allow = *sherd__identity_fingerprint(s->key) };
    if (sherd_identity_save(s->key, s->key_file, &d) || sherd__launch_start(&s->launch, &o, &d))
        return complain("nodes", d.message, "started");
    FILE *f = fopen(s->node_file, "we");
    if (!f) return false;
    for (uint32_t i = 0; i < nodes; i++) {
        char line[1200];
        sherd__peer p = sherd__launch_node(s->launch, i)->peer;
        snprintf(p.domain, sizeof p.domain, "d%u", i);
        (void)sherd__peer_format(&p, line, sizeof line);
        fprintf(f, "%s\n", line);
    }
    sherd_cluster_options co = { .size = sizeof co,
                                 .nodes_file = s->node_file,
                                 .key_file = s->key_file,
                                 .same_host_domains = true };
    if (fclose(f) || sherd_cluster_open(c, &co, &d)) return complain("cluster", d.message, "open");
    return true;
}

static void close_site(site *s, sherd_cluster *c)
{
    sherd_cluster_close(c);
    sherd__launch_stop(s->launch, 0);
    sherd_identity_free(s->key);
    DIR *dir = opendir(s->dir);
    for (struct dirent *e; dir && (e = readdir(dir));) (void)unlinkat(dirfd(dir), e->d_name, 0);
    if (dir) closedir(dir);
    rmdir(s->dir);
}

/* Returns whether each node and this process compute with that core, and the nodes with so many
 * threads. */
static bool as_asked(sherd_cluster *c, uint32_t threads)
{
    const char *core = getenv("OPENBLAS_CORETYPE");
    if (core && strcmp(core, sherd__blas_core()))
        return complain("BLAS core", sherd__blas_core(), core);
    for (uint32_t i = 0; i < sherd_cluster_size(c); i++) {
        sherd_node_info n = { .size = sizeof n };
        assert_int_equal(sherd_cluster_node_at(c, i, &n, NULL), 0);
        if (strcmp(n.blas_core, sherd__blas_core()))
            return complain(n.name, n.blas_core, sherd__blas_core());
        if (n.threads != threads) return complain(n.name, "other threads", "as asked for");
    }
    return true;
}

static bool hides(const struct way *w)
{
    return w->colluding > 0 || w->scheme == SHERD_BLIND;
}

/* Returns whether the scheme supports this case with so few nodes. */
static bool fits(uint32_t nodes, const cluster_case *v, const struct way *w)
{
    if (w->scheme == SHERD_BLIND) return v->private_primes > 0;
    return w->colluding == 0 || (v->private_primes > 0 && nodes > 2 * w->colluding + w->spare);
}

/* Makes masks for B in the folder of the site, which also keeps their counter. */
static bool prepare(const site *s, const cluster_case *v, sherd_view b, char masks[64])
{
    sherd_masks_options o = { .size = sizeof o };
    sherd_diag d = { 0 };
    o.rows = v->n;
    o.bits_a = v->a == SHERD_U8 ? 9 : v->bits; /* sign included */
    o.bits_b = v->bits_b;
    o.state = s->dir;
    snprintf(masks, 64, "%s/masks", s->dir);
    return !sherd_masks_prepare(masks, b, &o, NULL, &d) || complain(v->name, d.message, "masks");
}

static int multiply_kept(sherd_cluster *cluster, sherd_view a, sherd_view b, double *c,
                         const sherd_product_options *o, sherd_report *r, sherd_diag *d)
{
    sherd_multiplier m;
    sherd_kept *kept;
    int err = sherd_multiplier_cluster(&m, cluster, o, d);
    if (err) return err;
    err = sherd_multiplier_report_set(m, r, d);
    if (!err) err = sherd_multiplier_keep(&kept, m, a, NULL, d);
    if (!err) {
        err = sherd_multiplier_multiply_kept(m, kept, false, b, c, b.cols, d);
        sherd_multiplier_release(m, kept);
    }
    sherd_multiplier_free(m);
    return err;
}

static bool product(const site *s, sherd_cluster *cluster, const cluster_case *v,
                    const struct way *w, sherd_view a, sherd_view b)
{
    uint32_t primes = hides(w) ? v->private_primes : v->primes;
    char masks[64];
    double *c = malloc(v->n * v->m * sizeof *c);
    sherd_product_options o = { .size = sizeof o };
    sherd_report r = { .size = sizeof r };
    sherd_diag d = { 0 };
    o.scheme = w->scheme;
    o.exact = true;
    o.bits = v->bits;
    o.bits_b = hides(w) ? v->bits_b : 0;
    if (w->scheme == SHERD_BLIND) {
        if (!prepare(s, v, b, masks)) return false;
        o.bits = o.bits_b = 0; /* the file has them */
        o.masks = masks;
        o.masks_state = s->dir;
    }
    o.colluding = w->colluding;
    o.spare = w->spare;
    o.code = w->code;
    o.group = w->group;
    o.shuffle_rows = w->shuffle_rows;
    bool good = !(w->keeps ? multiply_kept(cluster, a, b, c, &o, &r, &d)
                           : sherd_multiply(cluster, a, b, c, v->m, &o, &r, &d));
    if (!good) (void)complain(v->name, d.message, "a product");
    else good = as_wanted(v->name, w->name, c, v->n, v->m);
    /* How many primes below 256 there are is a matter of unit/scheduler/test_prepare_bytes. */
    if (good && r.prime_bits != 8 && r.primes != primes)
        good = complain(v->name, "another number of primes", "as in its line");
    sherd_report_fini(&r);
    free(c);
    return good;
}

static bool products(const site *s, sherd_cluster *c)
{
    uint32_t nodes = sherd_cluster_size(c);
    bool good = true;
    for (size_t i = 0; good && i < CLUSTER_CASES; i++) {
        const cluster_case *v = &cluster_cases[i];
        if (nodes > v->nodes_max) continue;
        sherd_view a = cluster_operand(v, 'A'), b = cluster_operand(v, 'B');
        for (size_t j = 0; good && j < WAYS; j++)
            good = !fits(nodes, v, &ways[j]) || product(s, c, v, &ways[j], a, b);
        free((void *)(uintptr_t)a.data);
        free((void *)(uintptr_t)b.data);
    }
    return good;
}

static int compute(uint32_t nodes, uint32_t threads)
{
    site s = { 0 };
    sherd_cluster *c = NULL;
    signal(SIGPIPE, SIG_IGN);
    sherd__blas_threads_set(threads);
    bool good = open_site(&s, nodes, threads, &c);
    good = good && as_asked(c, threads) && library_products() && products(&s, c);
    close_site(&s, c);
    return good ? 0 : 1;
}

/* --- the environments ------------------------------------------------------------------------- */

/* Starts this program with `core` (NULL: BLAS chooses) and waits for it. */
static int run(const char *core, uint32_t nodes, uint32_t threads)
{
    char number[2][12], setting[60];
    char *argv[] = { (char *)"test_golden", number[0], number[1], NULL }, **env;
    size_t len = 0, kept = 0;
    int status;
    pid_t pid;
    while (environ[len]) len++;
    env = calloc(len + 2, sizeof *env);
    for (size_t i = 0; i < len; i++)
        if (strncmp(environ[i], "OPENBLAS_CORETYPE=", 18)) env[kept++] = environ[i];
    snprintf(setting, sizeof setting, "OPENBLAS_CORETYPE=%s", core ? core : "");
    if (core) env[kept] = setting;
    snprintf(number[0], sizeof number[0], "%u", nodes);
    snprintf(number[1], sizeof number[1], "%u", threads);
    int err = posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, env);
    free(env);
    if (err) fail_msg("cannot start this program again: %s", strerror(err));
    while (waitpid(pid, &status, 0) < 0) assert_int_equal(errno, EINTR);
    return status;
}

static void under(const char *core, uint32_t nodes, uint32_t threads)
{
    if (run(core, nodes, threads))
        fail_msg("%u nodes of %u threads, BLAS core %s", nodes, threads,
                 core ? core : "of this machine");
}

static void products_with_the_native_core_have_the_committed_hashes(void **s)
{
    (void)s;
    for (uint32_t threads = 1; threads <= 2; threads++) {
        under(NULL, 3, threads);
        under(NULL, 7, threads);
        under(NULL, 16, threads);
    }
}

static void products_with_haswell_have_the_committed_hashes(void **s)
{
    (void)s;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) skip();
    under("Haswell", 3, 2);
    under("Haswell", 7, 1);
}

static void products_with_nehalem_have_the_committed_hashes(void **s)
{
    (void)s;
    if (!__builtin_cpu_supports("sse4.2")) skip();
    under("Nehalem", 3, 2);
    under("Nehalem", 7, 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_with_the_native_core_have_the_committed_hashes),
        cmocka_unit_test(products_with_haswell_have_the_committed_hashes),
        cmocka_unit_test(products_with_nehalem_have_the_committed_hashes),
    };
    if (argc == 3) return compute((uint32_t)atoi(argv[1]), (uint32_t)atoi(argv[2]));
    return cmocka_run_group_tests_name("scheduler/golden", tests, NULL, NULL);
}
