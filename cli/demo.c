/*
 * `sherd demo`: the main use on data that need no download. Layer 1 of a 784-128-10 network over
 * seven local nodes, once in floats and once exactly, each compared with the same product computed
 * locally. This process multiplies only for that comparison; its BLAS calls are counted.
 *
 * Results are printed on stdout, since they are the command's output. The progress line goes to
 * stderr.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/audit.h"
#include "cli/fields.h"
#include "cli/nodes.h"
#include "cli/work.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/rand.h"
#include "sherd/array.h"
#include "sherd/machine.h"
#include "sherd/multiplier.h"
#include "sherd/profile.h"

#define HIDDEN 128u
#define WEIGHTS_SEED UINT64_C(1)

typedef struct demo {
    sherd__cli *cli;
    sherd_array *images, *labels; /* --data */
    uint8_t *pixels;              /* or generated, without --data */
    double *weights;
    sherd_view x, w;
    sherd_cluster *cluster;
    sherd__progress_line progress;
    double began;         /* sherd__clock_s */
    uint64_t local_calls; /* BLAS calls of the comparisons */
    json_t *out;
} demo;

/* ---- data ------------------------------------------------------------------------------------ */

static int load_images(demo *m, const char *folder, sherd_diag *d)
{
    int err = sherd_array_open_idx(&m->images, &m->labels, folder, "train", d);
    if (!err) m->x = sherd_array_view(m->images);
    return err;
}

static int draw_images(demo *m, size_t rows, sherd_diag *d)
{
    m->pixels = sherd__alloc(rows * SHERD_DIGIT_PIXELS);
    if (!m->pixels) return sherd__fail_memory_hint(d, "give fewer --samples", "the digits");
    sherd_digits_draw(0, 0, rows, m->pixels, NULL);
    m->x = sherd_view_c(m->pixels, SHERD_U8, rows, SHERD_DIGIT_PIXELS);
    return 0;
}

/* Fills the weights with uniform values in +-1/sqrt(inputs), the usual initialisation of a layer;
 * the same on every machine. */
static int draw_weights(demo *m, sherd_diag *d)
{
    size_t inputs = m->x.cols;
    m->weights = sherd__calloc(inputs * HIDDEN, sizeof *m->weights);
    if (!m->weights) return sherd__fail_memory(d, "the weights");
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, WEIGHTS_SEED);
    for (size_t i = 0; i < inputs * HIDDEN; i++) {
        double unit = (double)(sherd__entropy_u64(&e) >> 11) * 0x1p-52 - 1;
        m->weights[i] = unit / sqrt((double)inputs);
    }
    m->w = sherd_view_c(m->weights, SHERD_F64, inputs, HIDDEN);
    return 0;
}

static int prepare(demo *m, sherd_diag *d)
{
    const char *folder = sherd__opt_text(m->cli, "data");
    size_t rows = (size_t)sherd__opt_int(m->cli, "samples");
    int err = folder ? load_images(m, folder, d) : draw_images(m, rows, d);
    if (!err && folder && rows < m->x.rows && sherd__opt_given(m->cli, "samples"))
        m->x = sherd_view_sub(m->x, 0, rows, 0, m->x.cols);
    return err ? err : draw_weights(m, d);
}

/* ---- output ---------------------------------------------------------------------------------- */

/* Returns the fraction of entries that are zero. */
static int find_zeros(demo *m, double *zeros, sherd_diag *d)
{
    sherd_profile *p;
    sherd_profile_info info = { .size = sizeof info };
    int err = sherd_profile_new(&p, m->x, d);
    if (!err) err = sherd_profile_get(p, &info, d);
    *zeros = 1 - (double)info.nonzeros / ((double)m->x.rows * (double)m->x.cols);
    sherd_profile_free(p);
    return err;
}

static int show_task(demo *m, sherd_diag *d)
{
    double zeros;
    int err = find_zeros(m, &zeros, d);
    const char *folder = sherd__opt_text(m->cli, "data");
    if (err) return err;
    if (m->out) {
        json_object_set_new(m->out, "samples", json_integer((json_int_t)m->x.rows));
        json_object_set_new(m->out, "zeros", json_real(zeros));
        json_object_set_new(m->out, "data", json_string(folder ? "idx" : "generated"));
        return 0;
    }
    sherd__cli_print_prose(
        2,
        "Layer 1 of a %zu-%u-10 network: %zu %s images, %zu x %zu (%.0f %% zeros), times "
        "%zu x %u weights",
        m->x.cols, HIDDEN, m->x.rows, folder ? "IDX" : "generated", m->x.rows, m->x.cols,
        100 * zeros, m->x.cols, HIDDEN);
    return 0;
}

/* Seven nodes fit a line of 80 columns. */
static void begin_cell(uint32_t node)
{
    if (node % 7 == 0) printf("\n   ");
}

static void show_nodes(demo *m)
{
    static const char *const names[] = { "name", "pid", "address", NULL };
    uint32_t n = sherd_cluster_size(m->cluster);
    json_t *nodes = m->out ? json_array() : NULL;
    if (!nodes)
        printf("%" PRIu32 " node%s%s, pids:", n, n == 1 ? "" : "s",
               sherd_cluster_simulated(m->cluster) ? " (domains: simulated on one host)" : "");
    for (uint32_t i = 0; i < n; i++) {
        sherd_node_info info = { .size = sizeof info };
        if (sherd_cluster_node_at(m->cluster, i, &info, NULL)) continue;
        if (nodes) {
            json_t *o = json_object();
            sherd__fields_json_of(o, &info, sherd_node_info_fields, names);
            json_array_append_new(nodes, o);
        } else {
            begin_cell(i);
            if (info.pid > 0) printf(" %ld", (long)info.pid);
            else printf(" -"); /* its pid is unknown */
        }
    }
    if (!nodes) putchar('\n');
    else json_object_set_new(m->out, "nodes", nodes);
    fflush(stdout);
}

static void show_exposures(const sherd_report *r)
{
    printf("  exposures, columns per node:");
    for (uint32_t i = 0; i < r->nodes; i++) {
        begin_cell(i);
        printf(" %" PRIu32 " (%.0f %%)", r->planned[i], 100 * r->exposed_a[i]);
    }
    putchar('\n');
}

static void show_check(const sherd_check *x)
{
    if (x->judged == SHERD_JUDGED_BITS) {
        printf("  equal: %s\n", x->equal ? "yes, bit for bit" : "NO");
        return;
    }
    sherd__cli_print_prose(4,
                           "  differences from the local product: at most %.2g; %.1f %% of the "
                           "entries equal in every bit, numpy.isclose %.1f %%",
                           x->max_abs, sherd__work_percent(x->bit_equal, x->entries),
                           sherd__work_percent(x->isclose, x->entries));
    sherd__cli_print_prose(
        4, "  each within the bound of float64, gamma_k |X||W|: %s, the largest %.2g of it",
        x->equal ? "yes" : "NO", x->worst);
}

static json_t *run_object(const sherd_operation_info *x, double local)
{
    static const char *const of_report[] = { "encoding", "planned", "exposed_a",
                                             "tasks",    "seconds", NULL };
    static const char *const of_check[] = { "equal",   "max_abs",   "max_ulp",
                                            "entries", "bit_equal", NULL };
    const sherd_report *r = x->report;
    json_t *o = json_object();
    json_object_set_new(o, "bytes_out", sherd__json_whole(sherd__work_total(r->bytes_out, r)));
    json_object_set_new(o, "bytes_in", sherd__json_whole(sherd__work_total(r->bytes_in, r)));
    json_object_set_new(o, "local_seconds", json_real(local));
    sherd__fields_json_of(o, r, sherd_report_fields, of_report);
    sherd__fields_json_of(o, x->check, sherd_check_fields, of_check);
    return o;
}

/* ---- one of the two products ----------------------------------------------------------------- */

/* Measures the time of the same product on this machine. The exact comparison computed exactly
 * that. The float one computed more, so the product is computed once again, into `c`, which has
 * been compared by now. */
static int time_local(demo *m, const sherd_operation_info *x, double *c, double *seconds,
                      sherd_diag *d)
{
    sherd_multiplier local;
    *seconds = x->check->seconds;
    if (x->options->exact) return 0;
    int err = sherd_multiplier_local(&local, 0, d);
    double began = sherd__clock_s();
    uint64_t calls = sherd_blas_calls();
    if (!err) err = sherd_multiplier_multiply(local, m->x, m->w, c, HIDDEN, d);
    *seconds = sherd__clock_s() - began;
    m->local_calls += sherd_blas_calls() - calls;
    sherd_multiplier_free(local);
    return err;
}

static void show_run(const sherd_operation_info *x, double local)
{
    const sherd_report *r = x->report;
    char t[24], l[24], out[24], in[24];
    printf("\n%s, one permutation per node (--group all):\n",
           x->options->exact ? "Exactly, in fixed point of 17 bits" : "In floats");
    show_exposures(r);
    printf("  %s over the nodes, %s locally; %s out, %s in, %" PRIu64 " task%s\n",
           sherd__cli_seconds(r->seconds, t), sherd__cli_seconds(local, l),
           sherd__cli_bytes(sherd__work_total(r->bytes_out, r), out),
           sherd__cli_bytes(sherd__work_total(r->bytes_in, r), in), r->tasks,
           r->tasks == 1 ? "" : "s");
    show_check(x->check);
    fflush(stdout);
}

static void on_log(void *ctx, sherd_log_level level, const char *text)
{
    sherd__nodes_log(((demo *)ctx)->cli, level, text);
}

static void on_progress(void *ctx, const sherd_progress *p)
{
    sherd__product_progress(&((demo *)ctx)->progress, p);
}

static int run_once(demo *m, bool exact, sherd_diag *d)
{
    const char *label = exact ? "exact" : "float";
    sherd__progress_mode mode = (sherd__progress_mode)sherd__opt_choice(m->cli, "progress");
    const sherd_product_options opt = {
        .size = sizeof opt, .exact = exact, .name_a = "X", .name_b = "W"
    };
    double local = 0, *c = sherd__calloc(m->x.rows * HIDDEN + 1, sizeof *c);
    const sherd_operation_options o = { .size = sizeof o,
                                        .a = m->x,
                                        .b = m->w,
                                        .product = &opt,
                                        .cluster = m->cluster,
                                        .result = c,
                                        .check = true,
                                        .timeout_ms = sherd__opt_time_ms(m->cli, "timeout"),
                                        .hooks = { sherd__cli_stops, on_log, on_progress, m } };
    sherd_operation_info x = { .size = sizeof x };
    sherd_operation *product = NULL;
    int err = c ? sherd_operation_new(&product, &o, d) : sherd__fail_memory(d, "the result");
    sherd__progress_init(&m->progress, stderr, m->cli->quiet ? SHERD__PROGRESS_NONE : mode, label,
                         "tasks", 0);
    if (!err) err = sherd_operation_run(product, d);
    sherd__progress_fini(&m->progress);
    if (product) (void)!sherd_operation_get(product, &x, NULL);
    m->local_calls += x.check_calls;
    if (!err) err = time_local(m, &x, c, &local, d);
    if (x.check && m->out) json_object_set_new(m->out, label, run_object(&x, local));
    if (x.check && !m->out) show_run(&x, local);
    sherd_operation_free(product);
    sherd__free(c);
    return err;
}

static void show_end(demo *m, double seconds)
{
    char t[24];
    uint64_t besides = sherd_blas_calls() - m->local_calls;
    if (m->out) {
        json_object_set_new(m->out, "local_products", json_integer((json_int_t)besides));
        json_object_set_new(m->out, "seconds_total", json_real(seconds));
        return;
    }
    printf("\nBLAS calls of this process besides the comparisons: %" PRIu64 "; all in %s\n"
           "\nTry next:\n"
           "  sherd demo -n 3\n"
           "      the same with fewer nodes\n"
           "  sherd multiply A.npy B.npy -o C.npy -n 7 --check\n"
           "      multiplies your own matrices\n"
           "  sherd multiply A.npy B.npy -o C.npy -n 7 --scheme share --colluding 1\n"
           "      hides them from each node\n"
           "  sherd multiply A.npy B.npy -n 7 --dry-run\n"
           "      predicts what each scheme costs\n"
           "  sherd help\n"
           "      lists all verbs\n",
           besides, sherd__cli_seconds(seconds, t));
}

static int run_demo(sherd__cli *cli, sherd_diag *d)
{
    demo m = { .cli = cli,
               .began = sherd__clock_s(),
               .out = cli->json ? sherd__cli_json_new(cli) : NULL };
    int err = prepare(&m, d);
    if (!err) err = show_task(&m, d);
    if (!err) err = sherd__nodes_open(&m.cluster, cli, NULL, d);
    if (!err) show_nodes(&m);
    if (!err) err = run_once(&m, false, d);
    if (!err) err = run_once(&m, true, d);
    uint32_t nodes = m.cluster ? sherd_cluster_size(m.cluster) : 0;
    if (!err) err = sherd_cluster_end(m.cluster, d);
    sherd_cluster_close(m.cluster);
    uint64_t calls = sherd_blas_calls();
    if (!err) err = sherd__audit_summary(nodes, m.images != NULL, m.out, d);
    m.local_calls += sherd_blas_calls() - calls; /* made by the audit */
    if (!err) show_end(&m, sherd__clock_s() - m.began);
    sherd_array_close(m.images);
    sherd_array_close(m.labels);
    sherd__free(m.pixels);
    sherd__free(m.weights);
    if (!m.out) return err;
    return err ? sherd__cli_json_fail(cli, m.out, err, d) : sherd__cli_json_end(cli, m.out, d);
}

static const sherd__example examples[] = {
    { "sherd demo", "seven local nodes, 60000 generated digits" },
    { "sherd demo -n 3 --samples 5000", "fewer nodes, fewer digits" },
    { "sherd demo --data ~/mnist", "MNIST, from a folder with its IDX files" },
    { 0 },
};

/* clang-format off */
static const sherd__option options[] = {
    { .name = "local", .letter = 'n', .type = SHERD__INT, .arg = "N", .min = 1, .max = 1000,
      .excludes = "nodes", .preset = "7", .help = "start N nodes on this machine" },
    SHERD__OPT_NODES,
    SHERD__OPT_KEY,
    SHERD__OPT_NODE_MEMORY,
    SHERD__OPT_BIND_TO,
    SHERD__OPTS_DEVICES,
    SHERD__OPT_RECORD,
    SHERD__OPT_TIMEOUT,
    SHERD__OPT_PROGRESS,
    SHERD__OPT_SAME_HOST,
    { .name = "samples", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1000000,
      .preset = "60000", .help = "number of images" },
    { .name = "data", .type = SHERD__DIR, .arg = "DIR",
      .help = "read the images from IDX files (MNIST, Fashion-MNIST) in DIR, .gz or not" },
    { 0 },
};
/* clang-format on */

const sherd__verb sherd__verb_demo = {
    .name = "demo",
    .summary = "show the main use on 7 local nodes, with generated data",
    .details = "Computes layer 1 of a 784-128-10 network over local nodes, for 60000 generated "
               "digits, once in floats and once exactly. Prints the process ids of the nodes, the "
               "number of columns that each was given, bytes and time, and compares both results "
               "with the product computed locally.",
    .examples = examples,
    .options = options,
    .run = run_demo,
};
