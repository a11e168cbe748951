/*
 * `sherd predict MODEL.npz DATA -o OUT.npy`: the outputs of a trained network for new inputs, which
 * sherd_model_predict computes.
 */
#include <math.h>
#include <string.h>

#include "cli/confusion.h"
#include "cli/fields.h"
#include "cli/paths.h"
#include "cli/progress.h"
#include "cli/remote_products.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "sherd/data.h"
#include "sherd/model.h"
#include "sherd/train.h"

typedef struct predict {
    sherd__cli *cli;
    sherd_model *model;
    sherd_data *data;
    sherd__remote_products over;
    sherd_cluster *cluster;
    sherd_predict_options o;
    sherd_predict_report report;
    double *y;                  /* rows x outputs */
    sherd__confusion confusion; /* if labels are known */
    sherd__progress_line progress;
} predict;

static void on_progress(void *ctx, const sherd_progress *x)
{
    predict *p = ctx;
    sherd__progress_update(&p->progress, x->done, x->total, NULL, sherd__clock_s());
}

static int prepare(predict *p, sherd_diag *d)
{
    sherd__cli *cli = p->cli;
    int err = sherd__paths_differ(cli, 2, d);
    const char *csv = strrchr(sherd__opt_text(cli, "output"), '.');
    bool text = csv && strcmp(csv, ".csv") == 0;
    if (!err) err = sherd__paths_output(cli, text ? NULL : ".npy", d);
    if (!err) err = sherd__remote_products_read(&p->over, cli, d);
    p->o = (sherd_predict_options){ .size = sizeof p->o,
                                    .hooks = { sherd__cli_stops, NULL, on_progress, p },
                                    .products = &p->over.opt,
                                    .elementwise_at_nodes = p->over.elementwise,
                                    .check = sherd__opt_flag(cli, "check"),
                                    .divided = true,
                                    .name = cli->args[1] };
    if (!err) err = sherd_model_load(&p->model, cli->args[0], d);
    if (!err && p->over.nodes) err = sherd_model_predict_check(p->model, &p->o, d);
    if (!err) err = sherd_model_inputs_load(&p->data, p->model, cli->args[1], d);
    if (err) return err;
    size_t rows = sherd_data_x(p->data, SHERD_DATA_TRAINING).rows;
    sherd_view y = sherd_data_y(p->data, SHERD_DATA_TRAINING);
    p->o.labels = y.dtype == SHERD_U32 ? y.data : NULL;
    p->confusion = (sherd__confusion){ .model = p->model, .of = "labelled" };
    p->y = sherd__calloc(rows, sherd_model_outputs(p->model) * sizeof *p->y);
    if (p->y) return 0;
    return sherd__fail_memory(d, "the outputs of %zu rows", rows);
}

static int save(const predict *p, sherd_diag *d)
{
    const char *path = sherd__opt_text(p->cli, "output");
    sherd_view y = sherd_view_c(p->y, SHERD_F64, p->report.rows, p->report.outputs);
    if (strcmp(path, "-") == 0) path = "/dev/stdout";
    return sherd_model_predictions_save(p->model, path, y, sherd__opt_flag(p->cli, "labels"), d);
}

static int count_confusion(predict *p, sherd_diag *d)
{
    size_t rows = p->report.rows, width = p->report.outputs;
    sherd__confusion *c = &p->confusion;
    if (!p->o.labels || width > SHERD_TRAIN_CONFUSION_MAX) return 0;
    uint32_t *predicted = sherd__calloc(rows, sizeof *predicted);
    c->counts = sherd__calloc(width * width, sizeof *c->counts);
    int err = predicted && c->counts ? 0 : sherd__fail_memory(d, "the confusion matrix");
    if (!err) {
        sherd_predict_labels(p->y, width, rows, width, predicted);
        sherd_predict_confusion(p->o.labels, predicted, rows, width, c->counts);
    }
    sherd__free(predicted);
    return err;
}

/* err: an error after the outputs were written. */
static int report_result(const predict *p, int err, sherd_diag *d)
{
    const sherd_predict_report *r = &p->report;
    const sherd__cli *cli = p->cli;
    const char *without[] = { "sees", isnan(r->accuracy) ? "accuracy" : "sees",
                              r->scheme ? "sees" : "scheme", NULL };
    char s[24];
    if (!cli->json) {
        sherd__cli_say(cli, "%zu rows in %s, %s", (size_t)r->rows,
                       sherd__cli_seconds(r->seconds, s), r->sees);
        if (r->checked)
            sherd__cli_say(cli, "equal: yes, bit for bit (%zu outputs, computed locally, too)",
                           (size_t)(r->rows * r->outputs));
        if (!cli->quiet) sherd__confusion_print(&p->confusion, stderr);
        if (!isnan(r->accuracy))
            sherd__cli_say(cli, "accuracy %.5f on the labels in the data", r->accuracy);
        sherd__cli_say(cli, "wrote %s", sherd__opt_text(cli, "output"));
        return err;
    }
    json_t *o = sherd__cli_json_new(cli);
    sherd__fields_json(o, r, sherd_predict_report_fields, without);
    if (p->confusion.counts)
        json_object_set_new(o, "confusion", sherd__confusion_json(&p->confusion));
    return err ? sherd__cli_json_fail(p->cli, o, err, d) : sherd__cli_json_end(cli, o, d);
}

static int run(predict *p, sherd_diag *d)
{
    sherd__cli *cli = p->cli;
    sherd__progress_mode mode = (sherd__progress_mode)sherd__opt_choice(cli, "progress");
    int err = sherd__remote_products_open(&p->cluster, &p->over, cli, d);
    if (err) return err;
    p->o.cluster = p->cluster;
    sherd__progress_init(&p->progress, stderr, cli->quiet ? SHERD__PROGRESS_NONE : mode, "predict",
                         "rows", sherd__clock_s());
    err = sherd_model_predict(p->model, sherd_data_x(p->data, SHERD_DATA_TRAINING), p->y,
                              sherd_model_outputs(p->model), &p->o, &p->report, d);
    sherd__progress_fini(&p->progress);
    if (!err) err = count_confusion(p, d);
    if (!err) err = save(p, d);
    return err ? err : report_result(p, sherd_cluster_end(p->cluster, d), d);
}

static int run_predict(sherd__cli *cli, sherd_diag *d)
{
    predict p = { .cli = cli, .report = { .size = sizeof p.report } };
    int err = prepare(&p, d);
    if (!err) err = run(&p, d);
    sherd_cluster_close(p.cluster);
    sherd_data_free(p.data);
    sherd_model_free(p.model);
    sherd__free(p.y);
    sherd__free(p.confusion.counts);
    return err;
}

static const sherd__example examples[] = {
    { "sherd predict model.npz images.npy -o out.npy", "outputs for each row, computed locally" },
    { "sherd predict model.npz ~/mnist -o out.npy --labels",
      "classes of MNIST's test images, and their accuracy" },
    { "sherd predict model.npz new.csv -o classes.csv --labels",
      "names of classes, with columns found by the names in the header" },
    { "sherd predict model.npz images.npy -o out.npy -n 3 --scheme share --check",
      "over nodes that learn neither images nor weights; compared with the local result" },
    { 0 },
};

/* clang-format off */
static const sherd__option options[] = {
    SHERD__OPT_OUTPUT_STREAM("OUT.npy|OUT.csv"),
    { .name = "labels", .type = SHERD__FLAG,
      .help = "write the class of each row instead of the outputs: the index of its largest "
              "output, or in a .csv the class's name" },
    SHERD__OPT_ELEMENTWISE,
    SHERD__OPTS_CLUSTER,
    SHERD__OPTS_OVER,
    SHERD__OPT_MODE,
    SHERD__OPT_BITS,
    SHERD__OPT_CHECK,
    SHERD__OPT_STRICT,
    SHERD__OPT_MEMORY,
    SHERD__OPT_THREADS,
    { 0 },
};
/* clang-format on */

const sherd__verb sherd__verb_predict = {
    .name = "predict",
    .usage = "MODEL.npz DATA -o OUT",
    .summary = "compute the outputs of a trained network, locally or over nodes",
    .details =
        "MODEL.npz is a file that sherd train wrote. DATA is a .npy with an example in each row, a "
        ".npz with a member x, a .csv, an IDX file, or a folder of IDX files, of which the test "
        "images are used. The outputs are those of the last layer, float64; with cross-entropy "
        "these are the inputs of the softmax. OUT is a .npy, or a .csv if its name ends so. The "
        "columns of a .csv with a header are found by the names that the model has, in any order; "
        "the labels may be missing. If the data have labels, accuracy and a confusion matrix are "
        "reported.",
    .examples = examples,
    .options = options,
    .args_min = 2,
    .args_max = 2,
    .run = run_predict,
};
