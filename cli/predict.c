/*
 * `sherd predict MODEL.npz DATA -o OUT.npy`: the outputs of a trained network for new inputs. Rows
 * are processed in pieces of one size, because in fixed point each piece has one exponent. With
 * equal pieces, the result from nodes equals the one computed here bit for bit.
 */
#include <math.h>
#include <string.h>

#include "cli/paths.h"
#include "cli/progress.h"
#include "cli/remote_products.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "core/clock.h"
#include "lib/data.h"
#include "lib/model.h"
#include "sherd/npy.h"

#define PIECE 1000u

typedef struct predict {
    sherd__cli *cli;
    sherd__recipe recipe;
    sherd__network *network;
    sherd__dataset data;
    sherd__remote_products over;
    size_t width;
    double *y; /* rows x width */
    double seconds;
    sherd__progress_line progress;
} predict;

static bool interrupted(void)
{
    return sherd__cli_interrupted() != 0;
}

static int forward(predict *p, sherd__engine e, double *y, bool show, sherd_diag *d)
{
    size_t rows = p->data.x.rows;
    for (size_t at = 0; at < rows; at += PIECE) {
        size_t len = rows - at < PIECE ? rows - at : PIECE;
        sherd__batch b = { .x = sherd_view_sub(p->data.x, at, len, 0, p->data.x.cols) };
        const double *out;
        if (interrupted())
            return sherd__fail(d, SHERD_EINTERRUPTED, NULL, "interrupted; nothing was written");
        int err = sherd__network_forward(p->network, e, &b, false, &out, d);
        if (err) return err;
        memcpy(y + at * p->width, out, len * p->width * sizeof *y);
        if (show) sherd__progress_update(&p->progress, at + len, rows, NULL, sherd__clock_s());
    }
    return 0;
}

static int check(predict *p, sherd_diag *d)
{
    sherd__engine here = { .maps = false };
    size_t count = p->data.x.rows * p->width, first = 0, differ = 0;
    double *y = sherd__calloc(count, sizeof *y);
    int err = !y ? sherd__fail(d, SHERD_ENOMEM, NULL, "no memory for --check")
                 : sherd_multiplier_local(&here.products, p->over.bits, d);
    if (!err) err = sherd__remote_products_round(&p->over, &here.products, d);
    if (!err) err = forward(p, here, y, false, d);
    for (size_t i = 0; i < count && !err; i++)
        if (memcmp(&y[i], &p->y[i], sizeof *y) != 0 && differ++ == 0) first = i;
    if (!err && differ > 0)
        err = sherd__fail(d, SHERD_EDIFFERS, "nothing was written; please report this",
                          "%zu of %zu outputs differ from those computed here, the first in row "
                          "%zu, column %zu: %.17g, here %.17g",
                          differ, count, first / p->width, first % p->width, p->y[first], y[first]);
    sherd_multiplier_free(here.products);
    sherd__free(y);
    return err;
}

static int save(const predict *p, sherd_diag *d)
{
    const char *path = sherd__opt_text(p->cli, "output");
    size_t rows = p->data.x.rows;
    if (strcmp(path, "-") == 0) path = "/dev/stdout";
    if (!sherd__opt_flag(p->cli, "labels"))
        return sherd_npy_save(path, sherd_view_c(p->y, SHERD_F64, rows, p->width), d);
    uint32_t *labels = sherd__calloc(rows, sizeof *labels);
    if (!labels) return sherd__fail(d, SHERD_ENOMEM, NULL, "no memory for the labels");
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 1; j < p->width; j++)
            if (p->y[i * p->width + j] > p->y[i * p->width + labels[i]]) labels[i] = (uint32_t)j;
    int err = sherd_npy_save(path, sherd_view_c(labels, SHERD_U32, rows, 1), d);
    sherd__free(labels);
    return err;
}

/* err: an error after the outputs were written. */
static int tell(const predict *p, int err, sherd_diag *d)
{
    sherd__remote_products_traffic x = sherd__remote_products_traffic_now(&p->over);
    bool known = p->data.targets.labels != NULL;
    double hits = known ? (double)sherd__labels_hit(p->y, p->data.x.rows, p->width,
                                                    p->data.targets.labels)
                        : 0;
    double accuracy = hits / (double)p->data.x.rows;
    char s[24];
    if (!p->cli->json) {
        sherd__cli_say(p->cli, "%zu rows in %s, %s", p->data.x.rows,
                       sherd__cli_seconds(p->seconds, s), sherd__remote_products_says(&p->over));
        if (sherd__opt_flag(p->cli, "check"))
            sherd__cli_say(p->cli, "equal: yes, bit for bit (%zu outputs, computed here too)",
                           p->data.x.rows * p->width);
        if (known) sherd__cli_say(p->cli, "accuracy %.5f of the labels that came along", accuracy);
        sherd__cli_say(p->cli, "wrote %s", sherd__opt_text(p->cli, "output"));
        return err;
    }
    json_t *o = sherd__cli_json_new(p->cli);
    json_object_set_new(o, "rows", json_integer((json_int_t)p->data.x.rows));
    json_object_set_new(o, "outputs", json_integer((json_int_t)p->width));
    json_object_set_new(o, "nodes", json_integer(x.nodes));
    if (x.nodes > 0)
        json_object_set_new(o, "scheme",
                            json_string(sherd_scheme_describe(p->over.opt.scheme)->name));
    json_object_set_new(o, "bits", json_integer(p->over.bits));
    json_object_set_new(o, "seconds", json_real(p->seconds));
    json_object_set_new(o, "bytes_out", json_integer((json_int_t)x.bytes_out));
    json_object_set_new(o, "bytes_in", json_integer((json_int_t)x.bytes_in));
    json_object_set_new(o, "checked", json_boolean(sherd__opt_flag(p->cli, "check")));
    if (known) json_object_set_new(o, "accuracy", json_real(accuracy));
    return err ? sherd__cli_json_fail(p->cli, o, err, d) : sherd__cli_json_end(p->cli, o, d);
}

static int prepare(predict *p, sherd_diag *d)
{
    sherd__cli *cli = p->cli;
    size_t count, bytes;
    int err = sherd__paths_differ(cli, 2, d);
    if (!err) err = sherd__paths_output(cli, d);
    if (!err) err = sherd__remote_products_read(&p->over, cli, d);
    if (!err && sherd__opt_flag(cli, "check") && (!p->over.nodes || p->over.bits == 0))
        err = sherd__fail(d, SHERD_EINVAL, "-n N --mode exact, or leave --check out",
                          "--check compares fixed point over nodes with fixed point here");
    if (!err) err = sherd__model_recipe(&p->recipe, cli->args[0], d);
    if (!err) err = sherd__remote_products_precision(&p->over, p->recipe.precision, d);
    if (!err) err = sherd__recipe_network(&p->recipe, PIECE, &p->network, d);
    if (!err) err = sherd__model_params(p->network, cli->args[0], d);
    if (err) return err;
    p->width = sherd__network_width(p->network);
    err = sherd__data_inputs(&p->data, &p->recipe, cli->args[1], p->width, d);
    if (err) return err;
    if (p->data.x.rows == 0)
        return sherd__fail(d, SHERD_ESHAPE, NULL, "%s: has no rows", cli->args[1]);
    if (!sherd__mul(p->data.x.rows, p->width, &count) || !sherd__mul(count, sizeof *p->y, &bytes) ||
        !(p->y = sherd__alloc(bytes)))
        return sherd__fail(d, SHERD_ENOMEM, NULL, "no memory for the outputs of %zu rows",
                           p->data.x.rows);
    return 0;
}

static int run_predict(sherd__cli *cli, sherd_diag *d)
{
    predict p = { .cli = cli };
    int err = prepare(&p, d);
    if (!err) err = sherd__remote_products_open(&p.over, cli, NULL, d);
    double began = sherd__clock_s();
    if (!err) {
        sherd__progress_mode mode = (sherd__progress_mode)sherd__opt_choice(cli, "progress");
        sherd__progress_init(&p.progress, stderr, cli->quiet ? SHERD__PROGRESS_NONE : mode,
                             "predict", "rows", began);
        err = forward(&p, p.over.engine, p.y, true, d);
        sherd__progress_fini(&p.progress);
    }
    p.seconds = sherd__clock_s() - began;
    if (!err && sherd__opt_flag(cli, "check")) err = check(&p, d);
    if (!err) err = save(&p, d);
    if (!err) err = tell(&p, sherd__remote_products_end(&p.over, d), d);
    sherd__remote_products_close(&p.over);
    sherd__network_free(p.network);
    sherd__dataset_fini(&p.data);
    sherd__free(p.y);
    return err;
}

static const sherd__example examples[] = {
    { "sherd predict model.npz images.npy -o out.npy", "outputs for each row, computed here" },
    { "sherd predict model.npz ~/mnist -o out.npy --labels",
      "classes of MNIST's test images, and how many are right" },
    { "sherd predict model.npz images.npy -o out.npy -n 3 --scheme share --check",
      "over nodes that learn neither images nor weights; compared with the result here" },
    { 0 },
};

/* clang-format off */
static const sherd__option options[] = {
    SHERD__OPT_OUTPUT_STREAM("OUT.npy"),
    { .name = "labels", .type = SHERD__FLAG,
      .help = "write the place of the largest output of each row instead of the outputs" },
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
    .usage = "MODEL.npz DATA -o OUT.npy",
    .summary = "what a trained network gives, here or over nodes",
    .details =
        "MODEL.npz is what sherd train wrote. DATA is a .npy with an example a row, a .npz with a "
        "member x, a .csv, an IDX file, or a folder of IDX files, whose test images are taken. The "
        "outputs are those of the last layer, <f8; with cross-entropy these are the numbers that "
        "softmax makes probabilities of.",
    .examples = examples,
    .options = options,
    .args_min = 2,
    .args_max = 2,
    .run = run_predict,
};
