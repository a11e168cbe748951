/*
 * Predictions. Rows are processed in pieces of one size, because in fixed point each piece has one
 * exponent. With equal pieces, the result from nodes equals the one computed locally bit for bit.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/clock.h"
#include "core/diag.h"
#include "core/field.h"
#include "core/hooks.h"
#include "core/memory.h"
#include "core/options.h"
#include "learn/dataset.h"
#include "learn/loss.h"
#include "lib/data.h"
#include "lib/model.h"
#include "lib/network_products.h"
#include "scheduler/cluster/internal.h"

#define PIECE 1000u

typedef struct predict {
    sherd_predict_options o;
    sherd__network_products products;
    sherd__network *network; /* the model's parameters, with memory for passes of a piece */
    sherd__dataset data;     /* x, divided */
    double *y;
    size_t width, ldy;
} predict;

/* ---- preparation ----------------------------------------------------------------------------- */

/* nodes: there is, or will be, a cluster. */
static int read_options(predict *p, const sherd_predict_options *opt, bool nodes,
                        const sherd_model *m, sherd_diag *d)
{
    sherd_predict_options *o = &p->o;
    int err = sherd__options_read(o, sizeof *o, opt, "sherd_predict_options", d);
    if (err) return err;
    if (!o->name) o->name = "x";
    nodes = nodes || o->cluster;
    if (o->by && (nodes || o->products))
        return sherd__fail(d, SHERD_EINVAL, "give one of them",
                           "predictions by a multiplier take neither a cluster nor its options");
    err = sherd__network_products_read(&p->products, o->products, nodes || o->by, d);
    if (err) return err;
    p->products.maps = o->elementwise_at_nodes;
    if (o->cluster && !sherd__hooks_any(&o->hooks)) o->hooks = *sherd__cluster_hooks(o->cluster);
    if (!sherd__hooks_any(&p->products.opt.hooks)) {
        p->products.opt.hooks = o->hooks;
        p->products.opt.hooks.progress = NULL; /* it counts rows, not tasks */
    }
    if (o->check && (!nodes || p->products.bits == 0))
        return sherd__fail(d, SHERD_EINVAL, "-n N --mode exact, or leave --check out",
                           "--check compares fixed point over nodes with fixed point computed "
                           "locally");
    return sherd__network_products_check(&p->products, sherd__network_dtype(m->network), d);
}

/* A model of few parameters may need much memory: windows of images are laid out for each pass. */
static int check_memory(const sherd_model *m, size_t piece, sherd_diag *d)
{
    sherd__network_size size;
    char takes[16], has[16];
    uint64_t there = sherd__memory_available();
    int err = sherd__recipe_size(m->recipe, piece, &size, d);
    if (err || size.bytes <= there) return err;
    return sherd__fail(d, SHERD_ENOMEM, "predict fewer rows at a time",
                       "%s: a pass of %zu rows takes %s of memory, and %s are available",
                       m->recipe->name, piece, sherd__bytes_text((double)size.bytes, takes),
                       sherd__bytes_text((double)there, has));
}

/* Makes a network for passes of up to a piece, which reads the model's parameters. */
static int make_network(predict *p, const sherd_model *m, size_t rows, sherd_diag *d)
{
    sherd__network *from = m->network;
    size_t piece = rows < PIECE ? rows : PIECE;
    int err = check_memory(m, piece, d);
    if (!err) err = sherd__recipe_network_unset(&m->recipe->recipe, piece, &p->network, d);
    if (err) return err;
    if (sherd__network_dtype(from) == SHERD_F32) { /* cannot be lent */
        memcpy(sherd__network_params(p->network), sherd__network_params(from),
               sherd__network_count(from) * sizeof(float));
        return SHERD_OK;
    }
    for (size_t i = 0; i < sherd__network_len(from); i++) {
        const sherd__layer *l = sherd__network_layer(from, i);
        if (l->cols > 0) sherd__network_lend(p->network, i, l->weights);
    }
    return SHERD_OK;
}

/* Checks x and divides it, unless that was done before. */
static int take_inputs(predict *p, const sherd_model *m, sherd_view x, sherd_diag *d)
{
    const sherd__recipe *r = &m->recipe->recipe;
    if (x.rows == 0) return sherd__fail(d, SHERD_ESHAPE, NULL, "%s: has no rows", p->o.name);
    p->data = (sherd__dataset){ .x = x, .width = p->width };
    int err = sherd__dataset_check(&p->data, p->o.name, sherd_model_inputs(m), p->width, d);
    if (!err) err = sherd__data_standardised(m, d);
    if (err || p->o.divided || (r->divide_inputs == 1 && !m->schema.mean)) return err;
    uint32_t *labels = sherd__calloc(x.rows, sizeof *labels); /* which a copy has */
    if (!labels) return sherd__fail_memory(d, "%zu rows", x.rows);
    p->data.targets.labels = labels;
    err = sherd__schema_scale(&m->schema, &p->data, p->o.name, r->divide_inputs, d);
    sherd__free(labels);
    return err;
}

/* ---- passes ---------------------------------------------------------------------------------- */

static int forward(const predict *p, sherd__engine e, double *y, size_t ldy, sherd_hooks hooks,
                   sherd_diag *d)
{
    size_t rows = p->data.x.rows;
    sherd__hooked h = sherd__hooks_begin(&hooks);
    for (size_t at = 0; at < rows; at += PIECE) {
        size_t len = rows - at < PIECE ? rows - at : PIECE;
        sherd__batch b = { .x = sherd_view_sub(p->data.x, at, len, 0, p->data.x.cols) };
        const double *out;
        int err = sherd__hooks_step(&h, at, rows, d);
        if (!err) err = sherd__network_forward(p->network, e, &b, false, &out, d);
        if (err) return err;
        for (size_t i = 0; i < len; i++)
            memcpy(y + (at + i) * ldy, out + i * p->width, p->width * sizeof *y);
    }
    return sherd__hooks_step(&h, rows, rows, d);
}

static int compare(const predict *p, const double *here, sherd_diag *d)
{
    size_t rows = p->data.x.rows, width = p->width, first = 0, differ = 0;
    for (size_t i = 0; i < rows * width; i++)
        if (memcmp(&here[i], &p->y[i / width * p->ldy + i % width], sizeof *here) != 0 &&
            differ++ == 0)
            first = i;
    if (differ == 0) return SHERD_OK;
    return sherd__fail(d, SHERD_EDIFFERS, "the outputs cannot be used; please report this",
                       "%zu of %zu outputs differ from those computed locally, the first in row "
                       "%zu, column %zu: %.17g, locally %.17g",
                       differ, rows * width, first / width, first % width,
                       p->y[first / width * p->ldy + first % width], here[first]);
}

static int check(const predict *p, sherd_diag *d)
{
    sherd__engine here = { .maps = false };
    sherd_hooks quiet = p->o.hooks;
    size_t count;
    quiet.progress = NULL;
    bool fits = sherd__mul(p->data.x.rows, p->width, &count);
    double *y = fits ? sherd__calloc(count, sizeof *y) : NULL;
    int err = !y ? sherd__fail_memory(d, "the comparison of %zu rows", p->data.x.rows)
                 : sherd_multiplier_local(&here.products, p->products.bits, d);
    if (!err) err = sherd__network_products_round(&p->products, &here.products, d);
    if (!err) err = forward(p, here, y, p->width, quiet, d);
    if (!err) err = compare(p, y, d);
    sherd_multiplier_free(here.products);
    sherd__free(y);
    return err;
}

static double accuracy(const predict *p)
{
    size_t hits = 0, rows = p->data.x.rows;
    if (!p->o.labels) return NAN;
    for (size_t i = 0; i < rows; i++)
        hits += sherd__labels_hit(p->y + i * p->ldy, 1, p->width, p->o.labels + i);
    return (double)hits / (double)rows;
}

static int run(predict *p, sherd_predict_report *r, sherd_diag *d)
{
    const sherd_predict_options *o = &p->o;
    sherd__network_traffic before = sherd__network_traffic_of(o->cluster), after;
    sherd__engine e = { .maps = o->elementwise_at_nodes };
    double began = sherd__clock_s();
    int err = o->by ? SHERD_OK : sherd__network_products_open(&p->products, o->cluster, NULL, d);
    if (o->by) e.products = *o->by;
    else e = p->products.engine;
    if (!err) err = forward(p, e, p->y, p->ldy, o->hooks, d);
    r->seconds = sherd__clock_s() - began;
    sherd__network_products_close(&p->products);
    after = sherd__network_traffic_of(o->cluster);
    r->nodes = after.nodes;
    r->bytes_out = after.bytes_out - before.bytes_out;
    r->bytes_in = after.bytes_in - before.bytes_in;
    if (o->cluster) sherd__cluster_call(o->cluster, NULL); /* its own hooks again */
    if (!err && o->check) err = check(p, d);
    r->checked = !err && o->check;
    if (!err) r->accuracy = accuracy(p);
    return err;
}

int sherd_model_predict(sherd_model *m, sherd_view x, double *y, size_t ldy,
                        const sherd_predict_options *opt, sherd_predict_report *r, sherd_diag *d)
{
    predict p = { .y = y, .width = sherd_model_outputs(m), .ldy = ldy };
    int err = r ? sherd__result_check(r, "sherd_predict_report", d) : SHERD_OK;
    if (!err) err = read_options(&p, opt, false, m, d);
    if (!err && ldy < p.width)
        err = sherd__fail(d, SHERD_EINVAL, NULL, "ldy is %zu, below the %zu outputs of a row", ldy,
                          p.width);
    if (!err) err = take_inputs(&p, m, x, d);
    if (!err) err = make_network(&p, m, x.rows, d);
    sherd_predict_report mine = { .rows = x.rows,
                                  .outputs = p.width,
                                  .bits = p.products.bits,
                                  .sees = p.o.by ? "by a multiplier of the caller"
                                                 : sherd__network_products_sees(&p.products) };
    if (p.o.cluster) mine.scheme = sherd_scheme_get(p.products.opt.scheme)->name;
    if (!err) err = run(&p, &mine, d);
    if (!err && r) sherd__result_write(r, &mine, sizeof mine);
    sherd__network_free(p.network);
    sherd__dataset_fini(&p.data);
    return err;
}

void sherd_predict_labels(const double *y, size_t ldy, size_t rows, size_t outputs,
                          uint32_t *labels)
{
    bool sound;
    for (size_t i = 0; i < rows; i++)
        labels[i] = outputs > 0 ? sherd__label_of(y + i * ldy, outputs, &sound) : 0;
}

int sherd_model_predict_check(const sherd_model *m, const sherd_predict_options *opt, sherd_diag *d)
{
    predict p;
    return read_options(&p, opt, true, m, d);
}

static const sherd_field predict_report_fields[] = {
    SHERD__FIELD(sherd_predict_report, rows, U64, "", "rows of the input"),
    SHERD__FIELD(sherd_predict_report, outputs, U64, "", "numbers of one output"),
    SHERD__FIELD(sherd_predict_report, nodes, U32, "", "nodes; 0: computed here"),
    SHERD__FIELD(sherd_predict_report, scheme, NAME, "", "scheme, with nodes"),
    SHERD__FIELD(sherd_predict_report, bits, U32, "bits", "width of fixed point; 0: floats"),
    SHERD__FIELD(sherd_predict_report, seconds, F64, "s", "duration"),
    SHERD__FIELD(sherd_predict_report, bytes_out, U64, "bytes", "sent to nodes"),
    SHERD__FIELD(sherd_predict_report, bytes_in, U64, "bytes", "received from nodes"),
    SHERD__FIELD(sherd_predict_report, checked, BOOL, "", "equal to the prediction here"),
    SHERD__FIELD(sherd_predict_report, sees, NAME, "", "what nodes see"),
    SHERD__FIELD(sherd_predict_report, accuracy, F64, "", "fraction of correct labels"),
};
SHERD__FIELDS(sherd_predict_report, predict_report_fields)
