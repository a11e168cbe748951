/*
 * `sherd multiply A.npy B.npy -o C.npy`: a product on nodes. With --dry-run nothing is sent: a
 * table shows what each choice of scheme and group would cost for these operands.
 */
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "cli/nodes.h"
#include "cli/plan.h"
#include "cli/work.h"
#include "core/rand.h"
#include "scheduler/cluster/launch.h"

static int agree(const sherd__product_run *w, sherd_diag *d)
{
    sherd_view a = w->in[0].view, b = w->in[1].view;
    if (a.cols == b.rows) return 0;
    return sherd__fail(d, SHERD_ESHAPE, "A needs as many columns as B has rows",
                       "%s is %zu x %zu and %s is %zu x %zu: they cannot be multiplied",
                       w->in[0].path, a.rows, a.cols, w->in[1].path, b.rows, b.cols);
}

/* ---- --dry-run ------------------------------------------------------------------------------- */

static void print_heads(void)
{
    printf("  %-19s %9s %9s %9s %8s %8s %9s %8s %9s %6s %8s %7s\n", "scheme", "out", "in", "flops",
           "of A", "of B", "memory", "tasks", "answers", "A as", "time", "here=1");
}

static void print_row(const char *choice, bool chosen, const sherd_forecast *f)
{
    char out[24], in[24], memory[24], need[24], t[24] = "-", ratio[24] = "-";
    if (f->seconds > 0) sherd__cli_seconds(f->seconds, t);
    if (f->seconds > 0 && f->own_seconds > 0)
        snprintf(ratio, sizeof ratio, "%.2gx", f->seconds / f->own_seconds);
    printf("%s %-19s %9s %9s %9.3g %6.1f %% %6.1f %% %9s %8" PRIu64 " %9s %6s %8s %7s\n",
           chosen ? "*" : " ", choice, sherd__cli_bytes(f->bytes_out, out),
           sherd__cli_bytes(f->bytes_in, in), f->flops, 100 * f->exposure_a, 100 * f->exposure_b,
           sherd__cli_bytes(f->node_memory, memory), f->tasks, sherd__plan_answers(f, need),
           f->encoding == SHERD_ENCODING_AUTO ? "-" : sherd__choices_encoding[f->encoding], t,
           ratio);
}

/* Returns the node budget for a forecast: --node-memory, or what -n would give each node. */
static uint64_t node_memory(const sherd__product_run *w, uint32_t nodes)
{
    uint64_t given = sherd__opt_size(w->cli, "node-memory");
    return given > 0 ? given : sherd__launch_memory(nodes);
}

/* Hiding and folding are measured on a result of at most this size; bytes are forecast for any
 * size. */
#define REHEARSED_MAX (UINT64_C(1) << 27) /* entries */

/* Forecasts one row of the table. Only the chosen row may fail the run; others may be
 * impossible. */
static int foretell(sherd__product_run *w, sherd_forecast_options *with, sherd_product_options opt,
                    bool chosen, json_t *rows, sherd_diag *d)
{
    char choice[48];
    sherd_forecast f = { .size = sizeof f };
    sherd_diag mine = { 0 };
    int err = sherd_forecast_multiply(w->in[0].view, w->in[1].view, &opt, with, &f, &mine);
    if (err && chosen) return sherd__fail(d, err, mine.hint, "%s", mine.message);
    if (err) return 0;
    if (!with->no_time) with->rates.gflops = f.rates.gflops; /* measured once for all rows */
    sherd__plan_choice(&opt, choice);
    if (!rows) {
        if (chosen) print_heads();
        print_row(choice, chosen, &f);
        return 0;
    }
    json_t *o = sherd__plan_object(&f);
    json_object_set_new(o, "choice", json_string(choice));
    json_object_set_new(o, "chosen", json_boolean(chosen));
    json_array_append_new(rows, o);
    return 0;
}

/* Forecasts the rows of a scheme, except the chosen one. Schemes with masks are left out, since
 * masks are made for one product. */
static int foretell_scheme(sherd__product_run *w, sherd_forecast_options *with,
                           const sherd_scheme_info *s, json_t *rows, sherd_diag *d)
{
    static const uint32_t groups[] = { 1, 16, 0 };
    bool shuffles = s->takes & SHERD_TAKES_SHUFFLES;
    sherd_product_options opt = w->opt;
    opt.scheme = s->scheme;
    if (s->takes & SHERD_TAKES_MASKS) return 0;
    for (size_t i = shuffles ? 0 : sizeof groups / sizeof *groups - 1;
         i < sizeof groups / sizeof *groups; i++) {
        if (shuffles) opt.group = groups[i];
        if (w->opt.scheme == opt.scheme && w->opt.group == opt.group) continue;
        int err = foretell(w, with, opt, false, rows, d);
        if (err) return err;
    }
    return 0;
}

static int dry_run(sherd__product_run *w, sherd_diag *d)
{
    const sherd_scheme_info *s;
    uint32_t nodes = 0;
    char file[PATH_MAX] = "";
    bool here = true;
    json_t *rows = w->cli->json ? json_array() : NULL;
    w->dry = true;
    int err = sherd__product_run_seed(w, d);
    if (!err) err = sherd__nodes_count(&nodes, &here, w->cli, d);
    if (!err && !w->opt.seed) { /* one draw of exposures for all rows of the table */
        sherd__entropy os = sherd__entropy_os();
        os.fill(os.ctx, w->seed, sizeof w->seed);
        w->opt.seed = w->seed;
    }
    sherd_forecast_options with = { .size = sizeof with, .nodes = nodes, .remote = !here };
    if (!err) err = sherd__nodes_file(file, sizeof file, &with.same_host_domains, w->cli, d);
    if (file[0] != '\0') with.nodes_file = file;
    if (!err) with.node_memory = node_memory(w, nodes);
    with.no_time = w->rows > 0 && w->cols > REHEARSED_MAX / w->rows;
    if (!err) err = foretell(w, &with, w->opt, true, rows, d);
    for (size_t i = 0; !err && (s = sherd_scheme_at(i)); i++)
        err = foretell_scheme(w, &with, s, rows, d);
    if (!rows) return err;
    if (err) {
        json_decref(rows);
        return err;
    }
    json_t *obj = sherd__cli_json_new(w->cli);
    json_object_set_new(obj, "dry_run", json_true());
    json_object_set_new(obj, "nodes", json_integer(nodes));
    json_object_set_new(obj, "choices", rows);
    return sherd__cli_json_end(w->cli, obj, d);
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int run_multiply(sherd__cli *cli, sherd_diag *d)
{
    sherd__product_run w;
    int err = sherd__product_run_begin(&w, cli, 0, 2, d);
    if (!err) err = agree(&w, d);
    if (!err) {
        w.rows = w.in[0].view.rows;
        w.cols = w.in[1].view.cols;
        if (sherd__opt_flag(cli, "dry-run")) {
            err = dry_run(&w, d);
        } else {
            err = sherd__product_run_run(&w, d);
            err = sherd__product_run_tell(&w, err, d);
        }
    }
    sherd__product_run_fini(&w);
    return err;
}

static const sherd__example examples[] = {
    { "sherd multiply A.npy B.npy -o C.npy -n 7",
      "A times B over seven nodes on this machine, columns permuted, in floats" },
    { "sherd multiply A.npy B.npy -o C.npy -n 7 --mode exact --check",
      "in fixed point, and compared bit for bit with the product computed here" },
    { "sherd multiply A.npy B.npy --nodes nodes.txt --key me.key --dry-run",
      "what each choice would cost over the nodes of a file; nothing is sent" },
    { 0 },
};

static const sherd__option options[] = {
    SHERD__OPT_OUTPUT_STREAM("C.npy"),
    SHERD__OPTS_CLUSTER,
    SHERD__OPTS_SCHEME,
    SHERD__OPTS_ARITHMETIC,
    SHERD__OPT_SEED,
    SHERD__OPT_META,
    SHERD__OPT_OPERATION,
    SHERD__OPT_REUSE_METADATA,
    SHERD__OPT_CHECK,
    SHERD__OPT_STRICT,
    SHERD__OPT_DRY_RUN,
    SHERD__OPT_CERTIFICATE,
    SHERD__OPT_CERTIFICATE_PUBLIC,
    SHERD__OPT_MEMORY,
    SHERD__OPT_THREADS,
    { 0 },
};

const sherd__verb sherd__verb_multiply = {
    .name = "multiply",
    .usage = "A.npy B.npy -o C.npy",
    .summary = "a product over nodes, by any scheme",
    .details =
        "Computes C = A B over nodes that are not trusted with A and B as a whole, checks every "
        "answer, and writes C as <f8. A one-dimensional A is a row, a one-dimensional B a column.\n"
        "\n"
        "--mode float computes in float64 as BLAS does; --mode exact (or --bits B) in fixed point, "
        "where the result has the same bits whoever computed it: floats are rounded to B bits, "
        "integers taken as they are, and refused where B is given and too small. With --check the "
        "product is also computed here: exact results must agree in every bit, float results "
        "within gamma_k |A||B| in every entry; otherwise exit 9, and nothing is "
        "written.\n\npermute deals A's columns to the nodes and shuffles; it does not encrypt. "
        "plain hides nothing. blind hides A from all nodes together by masks that sherd prepare "
        "made ahead for this B, which is shown; each product uses up as many of them as A has "
        "rows.",
    .examples = examples,
    .options = options,
    .args_min = 2,
    .args_max = 2,
    .run = run_multiply,
};
