/*
 * `sherd multiply A.npy B.npy -o C.npy`: a product on nodes. With --dry-run nothing is sent: a
 * table shows what each choice of scheme and group would cost for these operands.
 */
#include "cli/plan.h"
#include "cli/work.h"

static int print_choices(const sherd__product_run *w, const sherd_choices *choices, sherd_diag *d)
{
    sherd_forecast first = { .size = sizeof first };
    if (!w->cli->json) {
        printf("%zu x %zu times %zu x %zu\n", w->info.a.rows, w->info.a.cols, w->info.b.rows,
               w->info.b.cols);
        sherd__plan_print(choices, true, "");
        return 0;
    }
    int err = sherd_choices_at(choices, 0, &first, d);
    if (err) return err;
    json_t *obj = sherd__cli_json_new(w->cli);
    json_object_set_new(obj, "dry_run", json_true());
    json_object_set_new(obj, "nodes", json_integer(first.nodes));
    json_object_set_new(obj, "choices", sherd__plan_array(choices, true));
    return sherd__cli_json_end(w->cli, obj, d);
}

static int dry_run(sherd__product_run *w, sherd_diag *d)
{
    sherd_choices *choices;
    sherd__plan_progress_init(&w->progress, w->cli, "forecast", "parts");
    int err = sherd_operation_choices_new(&choices, w->work, d);
    sherd__progress_fini(&w->progress);
    if (!err) err = print_choices(w, choices, d);
    sherd_choices_free(choices);
    return err;
}

static int run_multiply(sherd__cli *cli, sherd_diag *d)
{
    sherd__product_run w;
    int err = sherd__product_run_begin(&w, cli, 0, 2, d);
    if (!err && w.o.forecast_only) err = dry_run(&w, d);
    else if (!err) err = sherd__product_run_run(&w, d);
    sherd__product_run_fini(&w);
    return err;
}

static const sherd__example examples[] = {
    { "sherd multiply A.npy B.npy -o C.npy -n 7",
      "A times B over seven nodes on this machine, columns permuted, in floats" },
    { "sherd multiply A.npy B.npy -o C.npy -n 7 --mode exact --check",
      "in fixed point, and compared bit for bit with the product computed locally" },
    { "sherd multiply A.npy B.npy --nodes nodes.txt --key me.key --dry-run",
      "what each choice would cost over the nodes that a file lists; nothing is sent" },
    { 0 },
};

static const sherd__option options[] = {
    SHERD__OPT_OUTPUT_STREAM("C.npy"),
    SHERD__OPTS_CLUSTER,
    SHERD__OPTS_SCHEME,
    SHERD__OPTS_ARITHMETIC,
    SHERD__OPT_SEED(SHERD_TAKES_SHUFFLES),
    SHERD__OPT_META(SHERD_TAKES_SHUFFLES),
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
    .summary = "multiply two matrices over nodes, under any scheme",
    .details =
        "Computes C = A B over nodes that are not trusted with A and B as a whole, checks every "
        "answer, and writes C as float64. A one-dimensional A is a row, a one-dimensional B a "
        "column, and C has no such dimension, as in numpy. A and B may also be .csv files of "
        "numbers, IDX files, or arrays of an .npz (FILE.npz:NAME); C is written as .csv if its "
        "name ends so. In .csv files nan and inf are numbers, and a header is ignored.\n\n"
        "--mode float computes in float64 as BLAS does. --mode exact (or --bits B) computes in "
        "fixed point, so that the result has the same bits on any nodes: floats are rounded to B "
        "bits; integers are used unchanged, and refused if --bits is given and too small for them. "
        "With --check the product is also computed locally: exact results must agree in every bit, "
        "float results within gamma_k |A||B| in every entry. Otherwise the exit code is 9, and "
        "nothing is written.\n\n"
        "permute assigns A's columns to the nodes and shuffles; it does not encrypt. plain hides "
        "nothing. blind hides A from all nodes together, with masks that sherd prepare made for "
        "this B; the nodes see B. Each product uses as many rows of masks as A has.",
    .examples = examples,
    .options = options,
    .args_min = 2,
    .args_max = 2,
    .run = run_multiply,
};
