/*
 * Products over local nodes: beside one local dgemm, their forecast, and numpy; the
 * coordinator's memory; products with an operand that stays at the nodes; and while a node fails.
 *
 * The measured time is from operands in memory to the result in memory, with the nodes running. The
 * first rows of each kind of result are compared with the product computed locally, since a figure
 * of a wrong product means nothing.
 */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/verbs.h"
#include "core/alloc.h"
#include "matrix/compare.h"
#include "matrix/gemm.h"
#include "matrix/reference.h"
#include "matrix/residue_bytes.h"
#include "matrix/residue_limbs.h"
#include "sherd/forecast.h"
#include "sherd/npy.h"

#define JUDGED_ROWS 128u
#define SETTLE_NS 50000000 /* for BLAS threads to go to sleep after their last product */

static void log_line(void *ctx, sherd_log_level level, const char *text)
{
    const sherd__bench *b = ctx;
    if (level == SHERD_LOG_WARN) sherd__cli_warn(b->cli, "%s", text);
}

int sherd__bench_cluster(sherd_cluster **out, sherd__bench *b, uint32_t nodes, const char *verb,
                         sherd_diag *d)
{
    const char *file = verb ? NULL : sherd__opt_text(b->cli, "nodes");
    const sherd_cluster_options opt = { .size = sizeof opt,
                                        .local_nodes = file ? 0 : nodes,
                                        .nodes_file = file,
                                        .key_file = file ? sherd__opt_text(b->cli, "key") : NULL,
                                        .same_host_domains = file != NULL,
                                        .program = SHERD__SELF,
                                        .program_verb = verb,
                                        .hooks = { sherd__bench_interrupted, verb ? NULL : log_line,
                                                   NULL, b } };
    return sherd_cluster_open(out, &opt, d);
}

void sherd__bench_traffic(sherd_cluster *c, double *up, double *down)
{
    *up = *down = 0;
    for (uint32_t i = 0; i < sherd_cluster_size(c); i++) {
        sherd_node_info info = { .size = sizeof info };
        if (sherd_cluster_node_at(c, i, &info, NULL)) continue;
        *up += 1e-6 * (double)info.bytes_out;
        *down += 1e-6 * (double)info.bytes_in;
    }
}

void sherd__bench_rest(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = SETTLE_NS }, NULL);
}

/* ---- results --------------------------------------------------------------------------------- */

/* Exact products must be equal bit for bit, others within the bound of float64. */
static int judge(const sherd__bench_pair *p, const sherd_product_options *opt, sherd_diag *d)
{
    size_t rows = p->a.rows < JUDGED_ROWS ? p->a.rows : JUDGED_ROWS, len = rows * p->b.cols;
    sherd_view a = sherd_view_sub(p->a, 0, rows, 0, p->a.cols);
    unsigned bits = opt->bits ? opt->bits : SHERD__FIXED_BITS;
    sherd__fixed fa, fb;
    sherd__compare found = { .beyond = 0 };
    double *ref = sherd__calloc(len, sizeof *ref);
    int err = ref ? 0 : sherd__bench_no_memory(d);
    if (!err && !opt->exact) err = sherd__compare_product(a, p->b, p->c, p->b.cols, &found, d);
    if (!err && opt->exact) err = sherd__fixed_choose(p->a, bits, "A", &fa, d);
    if (!err && opt->exact)
        err = sherd__fixed_choose(p->b, opt->bits_b ? opt->bits_b : bits, "B", &fb, d);
    if (!err && opt->exact)
        err = sherd__reference_exact(&(sherd__matrices){ a, p->b, ref, p->b.cols }, &fa, &fb, d);
    if (!err && (opt->exact ? memcmp(ref, p->c, len * sizeof *ref) != 0 : found.beyond > 0))
        err = sherd__fail(d, SHERD_EDIFFERS, "please report this",
                          "the product differs from the one computed locally");
    sherd__free(ref);
    return err;
}

/* One dgemm of the pair on all cores. */
static int multiply_here(sherd__bench *b, const sherd__bench_pair *p, sherd_diag *d)
{
    size_t n = p->a.rows, k = p->a.cols, m = p->b.cols;
    double began = sherd__clock_s();
    int err = sherd__gemm_f64(n, k, m, p->a_values, k, p->b_values, m, 0, p->c, m);
    sherd__bench_put(b, "local", sherd__clock_s() - began);
    sherd__bench_rest();
    return err ? sherd__fail(d, err, NULL, "cannot multiply here") : 0;
}

/* ---- a product ------------------------------------------------------------------------------- */

typedef struct product {
    const sherd__product_spec *spec;
    sherd__bench_pair pair;
    sherd_product_options opt;
    sherd_cluster *cluster;
    sherd_multiplier multiplier; /* if A stays at the nodes */
    sherd_kept *kept;
    char a[PATH_MAX], w[PATH_MAX];
} product;

/* Makes options and operands. */
static int open_operands(sherd__bench *b, product *p, const sherd__product_spec *s, sherd_diag *d)
{
    static const uint8_t seed[32] = { 1 }; /* so that forecast and run partition alike */
    const sherd_scheme_info *scheme = sherd_scheme_get(s->scheme);
    p->spec = s;
    p->opt = (sherd_product_options){ .size = sizeof p->opt,
                                      .scheme = s->scheme,
                                      .exact = scheme->exact_only,
                                      .group = s->group,
                                      .bits = s->bits,
                                      .bits_b = s->bits_b,
                                      .spare = s->spare };
    if (s->forecast && scheme->takes & SHERD_TAKES_SHUFFLES) p->opt.seed = seed;
    return sherd__bench_pair_open(&p->pair, b, b->quick ? s->dim_quick : s->dim, d);
}

static int open_product(sherd__bench *b, void *state, const void *spec, sherd_diag *d)
{
    product *p = state;
    const sherd__product_spec *s = spec;
    uint32_t nodes = s->nodes ? s->nodes : SHERD__BENCH_NODES;
    int err = open_operands(b, p, s, d);
    if (!err && s->command) err = sherd__bench_path(b, "A.npy", p->a, d);
    if (!err && s->command) err = sherd__bench_path(b, "B.npy", p->w, d);
    if (!err && s->command) err = sherd_npy_save(p->a, p->pair.a, d);
    if (!err && s->command) err = sherd_npy_save(p->w, p->pair.b, d);
    if (!err) err = sherd__bench_cluster(&p->cluster, b, nodes, NULL, d);
    sherd__bench_set(b, "dim", (double)p->pair.a.rows);
    if (!err) sherd__bench_set(b, "count", sherd_cluster_size(p->cluster));
    if (err || !s->stays) return err;
    err = sherd_multiplier_cluster(&p->multiplier, p->cluster, &p->opt, d);
    const sherd_keep_options how = { .size = sizeof how, .one_way = true };
    return err ? err : sherd_multiplier_keep(&p->kept, p->multiplier, p->pair.a, &how, d);
}

static void close_product(void *state)
{
    product *p = state;
    if (p->kept) sherd_multiplier_release(p->multiplier, p->kept);
    sherd_multiplier_free(p->multiplier);
    sherd_cluster_close(p->cluster);
    sherd__bench_pair_close(&p->pair);
    p->cluster = NULL;
}

static int multiply(sherd_cluster *cluster, const sherd__bench_pair *x,
                    const sherd_product_options *opt, sherd_report *r, double *seconds,
                    sherd_diag *d)
{
    double began = sherd__clock_s();
    int err = sherd_multiply(cluster, x->a, x->b, x->c, x->b.cols, opt, r, d);
    *seconds = sherd__clock_s() - began;
    return err;
}

/* Says how the nodes multiply: they choose as this process would. */
static void note_path(sherd__bench *b, const sherd_report *r)
{
    char of[40] = "float64";
    const bool bytes = r->prime_bits == 8, packed = r->primes && sherd__limbs_here();
    if (r->primes)
        snprintf(of, sizeof of, "%s modulo %u prime%s", bytes ? "bytes" : "residues", r->primes,
                 r->primes == 1 ? "" : "s");
    if (sherd__opt_text(b->cli, "nodes")) /* which may differ from this machine */
        snprintf(b->path, sizeof b->path, "%s", of);
    else if (bytes)
        snprintf(b->path, sizeof b->path, "%s by %s", of,
                 sherd__bytes_path_name(sherd__bytes_path_here()));
    else
        snprintf(b->path, sizeof b->path, "%s by %s%s", of, packed ? "AMX" : "dgemm, kernels ",
                 packed ? "" : sherd__blas_core());
}

/* Multiplies by the A that stays at the nodes; the first product sends it. */
static int multiply_kept(sherd__bench *b, product *p, sherd_diag *d)
{
    const sherd__bench_pair *x = &p->pair;
    double up, down, up_then, down_then;
    sherd__busy before, after;
    sherd_report r = { .size = sizeof r };
    int err = sherd_multiplier_report_set(p->multiplier, &r, d);
    if (err) return err;
    sherd__bench_traffic(p->cluster, &up, &down);
    sherd__bench_busy(p->cluster, &before);
    double began = sherd__clock_s();
    err = sherd_multiplier_multiply_kept(p->multiplier, p->kept, false, x->b, x->c, x->b.cols, d);
    double seconds = sherd__clock_s() - began;
    sherd__bench_busy(p->cluster, &after);
    sherd__bench_traffic(p->cluster, &up_then, &down_then);
    sherd__bench_put_busy(b, &before, &after, seconds);
    note_path(b, &r);
    const size_t len = strlen(b->path); /* the code is that with the least predicted time */
    snprintf(b->path + len, sizeof b->path - len, ", code %s",
             r.code == SHERD_CODE_INNER ? "inner" : "lagrange");
    (void)!sherd_multiplier_report_set(p->multiplier, NULL, NULL); /* r ends here */
    sherd_report_fini(&r);
    if (b->warming) sherd__bench_set(b, "first", seconds);
    sherd__bench_put(b, "nodes", seconds);
    sherd__bench_put(b, "up", up_then - up);
    sherd__bench_put(b, "down", down_then - down);
    return err;
}

/* A forecast must have the bytes of its run, or be a bound for them. */
static int check_forecast(const sherd_forecast *f, const sherd_report *r, sherd_diag *d)
{
    bool right = f->at_most ? r->work_out <= f->bytes_out && r->work_in <= f->bytes_in
                            : r->work_out == f->bytes_out && r->work_in == f->bytes_in;
    if (right) return 0;
    return sherd__fail(d, SHERD_EINTERNAL, "please report this",
                       "%llu bytes out and %llu in were forecast, and the run had %llu and %llu",
                       (unsigned long long)f->bytes_out, (unsigned long long)f->bytes_in,
                       (unsigned long long)r->work_out, (unsigned long long)r->work_in);
}

static int multiply_once(sherd__bench *b, product *p, sherd_diag *d)
{
    const sherd_forecast_options with = { .size = sizeof with,
                                          .cluster = p->cluster,
                                          .result = p->pair.c };
    sherd_forecast f = { .size = sizeof f };
    sherd_report r = { .size = sizeof r };
    bool forecast = p->spec->forecast;
    sherd__busy before, after;
    double seconds = 0;
    int err = forecast ? sherd_forecast_multiply(p->pair.a, p->pair.b, &p->opt, &with, &f, d) : 0;
    sherd__bench_busy(p->cluster, &before);
    if (!err) err = multiply(p->cluster, &p->pair, &p->opt, &r, &seconds, d);
    sherd__bench_busy(p->cluster, &after);
    if (!err && r.nodes_lost + r.nodes_banned > 0)
        err = sherd__fail(d, SHERD_EFEWNODES, NULL, "a node was lost while it was measured");
    if (!err && forecast) err = check_forecast(&f, &r, d);
    sherd__bench_put_busy(b, &before, &after, seconds);
    note_path(b, &r);
    sherd__bench_put(b, "bytes", (double)(r.work_out + r.work_in));
    sherd__bench_put(b, "square", (double)p->pair.a.rows * (double)p->pair.b.cols);
    sherd__bench_put(b, "nodes", seconds);
    sherd__bench_put(b, "foretold", f.seconds);
    sherd__bench_put(b, "off", fabs(f.seconds / seconds - 1));
    sherd__bench_put(b, "fragments", (double)r.fragments);
    sherd__bench_put(b, "rate", (double)r.fragments / seconds);
    if (r.blocks) sherd__bench_put(b, "flops", (double)r.primes * r.domains / r.blocks);
    sherd_report_fini(&r);
    return err;
}

static int turn_product(sherd__bench *b, void *state, sherd_diag *d)
{
    product *p = state;
    static const char *const names[] = { "numpy", "hoisted", NULL };
    const char *args[] = { p->a, p->w, b->quick ? "2000" : "200000", NULL };
    int err = p->spec->local ? multiply_here(b, &p->pair, d) : 0;
    if (!err) err = p->spec->stays ? multiply_kept(b, p, d) : multiply_once(b, p, d);
    if (!err && b->warming) err = judge(&p->pair, &p->opt, d);
    if (err || !p->spec->numpy) return err;
    return sherd__bench_numpy(b, sherd__bench_fragments_py, args, 0, names, d);
}

/* Times `sherd multiply` on files, with starting and ending the nodes and writing the result. */
static int end_product(sherd__bench *b, void *state, sherd_diag *d)
{
    product *p = state;
    char c[PATH_MAX];
    double seconds;
    const char *argv[] = { "multiply", p->a,      p->w,
                           "-o",       c,         "-n",
                           "7",        "--group", p->spec->group == 1 ? "1" : "all",
                           "--quiet",  NULL };
    if (!p->spec->command) return 0;
    close_product(p); /* so that its nodes do not compete */
    int err = sherd__bench_path(b, "C.npy", c, d);
    if (!err) err = sherd__bench_command(b, argv, &seconds, NULL, 0, d);
    if (!err) sherd__bench_set(b, "command", seconds);
    return err;
}

const sherd__kind sherd__bench_product = { sizeof(product), open_product, turn_product, end_product,
                                           close_product,   false,        false };

/* ---- the coordinator's memory ---------------------------------------------------------------- */

/* Its peak resident size (VmHWM), libraries and program included, less the bytes of operands and
 * result: in a new process, because VmHWM includes what a process has measured before. */
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

int sherd__bench_memory_child(sherd__bench *b, const char *which, sherd_diag *d)
{
    const sherd__memory_spec *spec = NULL;
    static product p;
    double peak = 0;
    for (size_t i = 0; i < sherd__measurements_len; i++) {
        const sherd__measurement *m = &sherd__measurements[i];
        if (m->kind == &sherd__bench_memory &&
            strcmp(((const sherd__memory_spec *)m->spec)->which, which) == 0)
            spec = m->spec;
    }
    if (!spec) return sherd__fail(d, SHERD_EINVAL, NULL, "there is no product '%s'", which);
    int err = open_product(b, &p, &spec->product, d);
    if (!err) err = turn_product(b, &p, d);
    if (!err) err = peak_bytes(&peak, d);
    if (!err) printf("%.0f %.0f\n", peak - (double)p.pair.bytes, (double)p.pair.bytes);
    close_product(&p);
    return err;
}

static int open_memory(sherd__bench *b, void *state, const void *spec, sherd_diag *d)
{
    (void)b;
    (void)d;
    *(const sherd__memory_spec **)state = spec;
    return 0;
}

static int turn_memory(sherd__bench *b, void *state, sherd_diag *d)
{
    const char *argv[] = { "bench",
                           "--memory-of",
                           (*(const sherd__memory_spec **)state)->which,
                           "--keep-env",
                           b->quick ? "--quick" : NULL,
                           NULL };
    char out[100];
    double beyond = 0, operands = 0, seconds;
    int err = sherd__bench_command(b, argv, &seconds, out, sizeof out, d);
    if (!err && sscanf(out, "%lf %lf", &beyond, &operands) != 2)
        err = sherd__fail(d, SHERD_EINTERNAL, NULL, "the measured process printed '%.60s'", out);
    sherd__bench_put(b, "beyond", beyond);
    sherd__bench_put(b, "operands", operands);
    return err;
}

const sherd__kind sherd__bench_memory = {
    sizeof(const sherd__memory_spec *), open_memory, turn_memory, NULL, NULL, true, false
};

/* ---- the start of nodes ---------------------------------------------------------------------- */

typedef struct starting {
    uint32_t nodes;
} starting;

static int open_start(sherd__bench *b, void *state, const void *spec, sherd_diag *d)
{
    (void)spec;
    (void)d;
    ((starting *)state)->nodes = b->quick ? 3 : 63;
    return 0;
}

/* Times from nothing to all nodes connected. Earlier starts have left a passed self-test. */
static int turn_start(sherd__bench *b, void *state, sherd_diag *d)
{
    uint32_t nodes = ((starting *)state)->nodes;
    sherd_cluster *cluster = NULL;
    sherd__busy busy = { 0 };
    double began = sherd__clock_s();
    int err = sherd__bench_cluster(&cluster, b, nodes, NULL, d);
    double seconds = sherd__clock_s() - began;
    if (err) return err;
    sherd__bench_busy(cluster, &busy);
    double closing = sherd__clock_s();
    sherd_cluster_close(cluster);
    sherd__bench_put(b, "start", seconds);
    sherd__bench_put(b, "close", sherd__clock_s() - closing);
    sherd__bench_put(b, "each", (busy.products + busy.links) / nodes);
    return 0;
}

const sherd__kind sherd__bench_start = {
    sizeof(starting), open_start, turn_start, NULL, NULL, false, false
};

/* ---- a node that is killed, stopped or wrong ------------------------------------------------- */

static const struct {
    const char *series;
    int signal; /* sent to one of the nodes; 0: none */
} harms[] = { { "calm", 0 }, { "killed", SIGKILL }, { "stopped", SIGSTOP }, { "lying", SIGUSR2 } };
static const double strike_at[] = { 0.2, 0.5, 0.8 };
enum {
    HARMS = sizeof harms / sizeof *harms,
    STRIKES = sizeof strike_at / sizeof *strike_at,
    STRIKE_TRIES = 5,
    DISTURBED_NODES = 8
};

/* A fault that is injected into a node some seconds after a product began, when the call asks
 * whether to continue, ten times a second or more. Progress is reported per position, and the last
 * positions come together. */
typedef struct strike {
    sherd_cluster *cluster;
    pid_t pid;
    int signal; /* 0: none */
    double at;  /* sherd__clock_s */
    bool done;
} strike;

static bool strike_in_time(void *ctx)
{
    strike *s = ctx;
    if (s->signal && !s->done && sherd__clock_s() >= s->at) s->done = kill(s->pid, s->signal) == 0;
    return sherd__bench_interrupted(NULL);
}

/* One product on new nodes, of which node 2 fails after some seconds. The result must be right
 * without any work done again. */
static int disturb(sherd__bench *b, const product *p, strike *s, double after, double *seconds,
                   sherd_diag *d)
{
    sherd_product_options opt = p->opt;
    sherd_node_info info = { .size = sizeof info };
    sherd_report r = { .size = sizeof r };
    int err = sherd__bench_cluster(&s->cluster, b, DISTURBED_NODES, SHERD__BENCH_NODE, d);
    if (!err) err = multiply(s->cluster, &p->pair, &opt, &r, seconds, d);
    if (!err) {
        sherd_report_fini(&r);
        err = sherd_cluster_node_at(s->cluster, 2, &info, d);
    }
    if (!err) {
        s->pid = (pid_t)info.pid;
        s->at = sherd__clock_s() + after;
        opt.hooks = (sherd_hooks){ .interrupted = strike_in_time, .ctx = s };
        err = multiply(s->cluster, &p->pair, &opt, &r, seconds, d);
    }
    if (!err && r.encodings != 1)
        err = sherd__fail(d, SHERD_EINTERNAL, "please report this",
                          "the spare node was not enough");
    sherd_report_fini(&r);
    if (s->done && s->signal == SIGSTOP) (void)kill(s->pid, SIGKILL);
    sherd_cluster_close(s->cluster);
    return err ? err : judge(&p->pair, &p->opt, d);
}

/* Injects the fault after a part of *seconds, which is the time of an undisturbed product on entry
 * and that of this product on return. If the product finishes before the fault, it was undisturbed;
 * the next try uses its time, which reflects the current load. */
static int disturb_at(sherd__bench *b, const product *p, int signal, double part, double *seconds,
                      sherd_diag *d)
{
    for (int try = 0; try < STRIKE_TRIES; try++) {
        strike s = { .signal = b->quick ? 0 : signal };
        int err = disturb(b, p, &s, part * *seconds, seconds, d);
        if (err || s.done || s.signal == 0) return err;
    }
    return sherd__fail(d, SHERD_EINTERNAL, "measure on an idle machine",
                       "%d products ended before the fault was injected: this machine's speed "
                       "changes too much",
                       STRIKE_TRIES);
}

static int open_disturbed(sherd__bench *b, void *state, const void *spec, sherd_diag *d)
{
    return open_operands(b, state, spec, d);
}

/* The undisturbed product and each fault in turn, so that all of them meet the same load. */
static int turn_disturbed(sherd__bench *b, void *state, sherd_diag *d)
{
    int err = 0;
    for (size_t i = 0; i < (b->quick ? 1 : STRIKES) && !err; i++) {
        double calm = 0;
        for (size_t k = 0; k < HARMS && !err; k++) {
            double seconds = calm;
            err = disturb_at(b, state, harms[k].signal, strike_at[i], &seconds, d);
            if (k == 0) calm = seconds;
            if (!err) sherd__bench_put(b, harms[k].series, seconds);
        }
    }
    return err;
}

const sherd__kind sherd__bench_disturbed = { sizeof(product), open_disturbed, turn_disturbed, NULL,
                                             close_product,   true,           false };
