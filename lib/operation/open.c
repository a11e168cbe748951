/*
 * What is done before there are nodes. The order matters: everything that can fail without harm
 * comes first, and metadata last, since taking it records a use.
 */
#include <stdio.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/clock.h"
#include "core/diag.h"
#include "core/field.h"
#include "core/memory.h"
#include "core/options.h"
#include "core/rand.h"
#include "core/wipe.h"
#include "lib/data.h"
#include "lib/operation/operation.h"
#include "scheduler/plan/prepare.h"
#include "sherd/masks.h"
#include "store/csv_write.h"
#include "store/npy_writer.h"

bool sherd__operation_is_product(const sherd_operation *w)
{
    return w->op == SHERD_OP_PRODUCT;
}

sherd_view sherd__operation_result(const sherd_operation *w)
{
    return sherd_view_c(w->c, SHERD_F64, w->rows, w->cols);
}

/* ---- options and operands -------------------------------------------------------------------- */

static const sherd_scheme_info *scheme_of(const sherd_operation *w)
{
    return sherd_scheme_get(w->opt.scheme);
}

static int read_options(sherd_operation *w, const sherd_operation_options *opt, sherd_diag *d)
{
    int err = sherd__options_read(&w->o, sizeof w->o, opt, "sherd_operation_options", d);
    if (!err) err = sherd__product_options_read(&w->opt, w->o.product, d);
    if (!err && w->o.nodes)
        err = sherd__options_read(&w->nodes, sizeof w->nodes, w->o.nodes, "sherd_cluster_options",
                                  d);
    if (err) return err;
    w->op = w->o.op ? w->o.op : SHERD_OP_PRODUCT;
    w->in_len = sherd_op_operands(w->op);
    if (w->in_len == 0)
        return sherd__fail(d, SHERD_EINVAL, "sherd/op.h lists them: SHERD_OP_PRODUCT, ...",
                           "unknown operation %d", (int)w->op);
    if (!w->o.cluster == !w->o.nodes)
        return sherd__fail(d, SHERD_EINVAL, "give an open cluster, or options to open one",
                           "expected either `cluster` or `nodes`");
    if (sherd__operation_is_product(w) && scheme_of(w)->exact_only) w->opt.exact = true;
    w->quiet = w->o.hooks;
    w->quiet.progress = NULL;
    w->opt.hooks = w->quiet; /* until the product begins */
    return SHERD_OK;
}

static const char *key_file(const sherd_operation *w)
{
    return w->o.key_file ? w->o.key_file : w->nodes.key_file;
}

static int check_files(const sherd_operation *w, sherd_diag *d)
{
    const sherd__path_use all[] = {
        { "the output", w->o.output, true },  { "the certificate", w->o.certificate, true },
        { "an operand", w->o.file_a, false }, { "an operand", w->o.file_b, false },
        { "the metadata", w->o.meta, false }, { "the file of masks", w->opt.masks, false },
        { "the key", key_file(w), false }
    };
    return sherd__paths_apart(all, sizeof all / sizeof *all, d);
}

/* Masks are made for certain widths, which are the default. The product refuses other widths. */
static int read_masks(sherd_operation *w, sherd_diag *d)
{
    sherd_masks_info info = { .size = sizeof info };
    if (!(scheme_of(w)->takes & SHERD_TAKES_MASKS) || !w->opt.masks) return SHERD_OK;
    int err = sherd_masks_get(w->opt.masks, w->opt.masks_state, &info, d);
    if (err) return err;
    if (!w->opt.bits) w->opt.bits = info.bits_a;
    if (!w->opt.bits_b) w->opt.bits_b = info.bits_b;
    return SHERD_OK;
}

static bool is_vector(const sherd__operand *in)
{
    return in->file && sherd_array_ndim(in->file) == 1;
}

static int open_operand(sherd_operation *w, unsigned i, sherd_diag *d)
{
    const char *file = i ? w->o.file_b : w->o.file_a;
    const char **name = i ? &w->opt.name_b : &w->opt.name_a;
    sherd_profile **profile = i ? &w->opt.profile_b : &w->opt.profile_a;
    sherd__operand *in = &w->in[i];
    if (!*name) *name = file ? file : i ? "B" : "A";
    in->name = *name;
    in->view = i ? w->o.b : w->o.a;
    int err = file ? sherd_array_open(&in->file, file, NULL, d) : SHERD_OK;
    if (err) return err;
    if (in->file)
        in->view = sherd_array_operand(in->file, i == 1 && sherd__operation_is_product(w));
    if (*profile) return SHERD_OK; /* the product checks that it is of this operand */
    err = sherd_profile_new(&in->profile, in->view, d);
    *profile = in->profile;
    return err;
}

/* sherd_apply would find it when the nodes are open, sherd_product_range when there is memory. */
static int check_shapes(const sherd_operation *w, sherd_diag *d)
{
    sherd_view a = w->in[0].view, b = w->in[1].view;
    if (sherd__operation_is_product(w)) return sherd__prepare_shapes(a, b, &w->opt, d);
    return w->in_len == 2 ? sherd__prepare_apply_shapes(a, b, &w->opt, d) : SHERD_OK;
}

/* As in numpy: a product lacks the dimension of each vector, and an element-wise result of vectors
 * alone is a vector. */
static unsigned ndim_of_result(const sherd_operation *w)
{
    bool a = is_vector(&w->in[0]), b = is_vector(&w->in[1]);
    if (sherd__operation_is_product(w)) return 2u - a - b;
    return a && (b || w->in_len == 1) ? 1 : 2;
}

static int open_operands(sherd_operation *w, sherd_diag *d)
{
    int err = SHERD_OK;
    for (unsigned i = 0; i < w->in_len && !err; i++) err = open_operand(w, i, d);
    if (!err) err = check_shapes(w, d);
    w->rows = w->in[0].view.rows;
    w->cols = w->in[sherd__operation_is_product(w)].view.cols;
    w->ndim = ndim_of_result(w);
    return err;
}

/* ---- outputs --------------------------------------------------------------------------------- */

/* Begins the file of the result: text if its name ends in .csv. */
static int begin_result(sherd_operation *w, sherd_diag *d)
{
    const sherd__npy_header shape = {
        .dtype = SHERD_F64, .ndim = w->ndim, .rows = w->rows, .cols = w->cols
    };
    if (!sherd__data_ends_in(w->o.output, ".csv"))
        return sherd__npy_writer_begin(&w->writer, w->o.output, &shape, d);
    int err = sherd__file_begin(&w->text, w->o.output, SHERD__FILE_PUBLIC, d);
    return err ? err : sherd__csv_reserve(w->text, w->rows, w->cols, d);
}

static int make_room(sherd_operation *w, sherd_diag *d)
{
    size_t bytes;
    char takes[16], left[16];
    if (!sherd__mul(w->rows, w->cols, &bytes) || !sherd__mul(bytes, sizeof *w->c, &bytes))
        return sherd__fail(d, SHERD_ESHAPE, NULL, "a result of %zu x %zu is too large", w->rows,
                           w->cols);
    uint64_t available = sherd__memory_available();
    w->c = w->o.result;
    if (!w->c && bytes <= available) w->c = w->own = sherd__alloc(bytes);
    if (!w->c)
        return sherd__fail_memory_hint(d, "free memory, or compute the product in parts",
                                       "the result: %zu x %zu are %s, and %s are available",
                                       w->rows, w->cols, sherd__bytes_text((double)bytes, takes),
                                       sherd__bytes_text((double)available, left));
    return w->o.output ? begin_result(w, d) : SHERD_OK;
}

static void warn(const sherd_operation *w, const char *path)
{
    char text[512];
    if (!w->o.hooks.log) return;
    snprintf(text, sizeof text,
             "%s will be signed with a new key, which does not identify the signer: a key file "
             "(--key) signs it with yours",
             sherd__path_tail(path));
    w->o.hooks.log(w->o.hooks.ctx, SHERD_LOG_WARN, text);
}

/* Detects that the certificate cannot be written, or the key not be used. */
static int begin_certificate(sherd_operation *w, sherd_diag *d)
{
    const char *path = w->o.certificate;
    const char *key = key_file(w);
    sherd_certificate *c = NULL;
    int err = key || path ? sherd_certificate_new(&c, key, d) : SHERD_OK;
    if (err || !path) {
        sherd_certificate_free(c);
        return err;
    }
    w->certificate = c;
    if (!key) warn(w, path);
    return sherd__file_check(path, SHERD__FILE_PRIVATE, d);
}

/* ---- nodes, seed and metadata ---------------------------------------------------------------- */

/* A product can run on fewer nodes if its scheme can; an element-wise operation on one. A forecast
 * does not check the number: it reports which choices need more nodes. */
static int check_nodes(sherd_operation *w, sherd_diag *d)
{
    if (w->o.cluster) w->nodes_count = sherd_cluster_size(w->o.cluster);
    else if (!w->o.forecast_only && sherd__operation_is_product(w)) w->nodes.work = &w->opt;
    else if (!w->o.forecast_only && !w->nodes.nodes_min) w->nodes.nodes_min = 1;
    return w->o.cluster ? SHERD_OK
                        : sherd_cluster_check(&w->nodes_count, &w->loopback, &w->nodes, d);
}

void sherd__operation_settle_seed(sherd_operation *w)
{
    if (w->opt.seed || w->opt.shuffles) return;
    sherd__entropy os = sherd__entropy_os();
    os.fill(os.ctx, w->seed, sizeof w->seed);
    w->opt.seed = w->seed;
    w->opt.seed_drawn = true;
}

/* With look_only, its use is not recorded. */
static int take_metadata(sherd_operation *w, bool look_only, sherd_diag *d)
{
    sherd_meta_request what = { .size = sizeof what,
                                .nodes = w->nodes_count,
                                .op = w->op,
                                .a = w->in[0].view,
                                .b = w->in[1].view,
                                .operation = w->o.meta_operation,
                                .settings = w->o.meta_settings,
                                .reuse = w->o.meta_reuse,
                                .look_only = look_only,
                                .hooks = w->quiet };
    return w->o.meta ? sherd_meta_take(&w->meta, w->o.meta, &what, &w->opt, &w->usage, d)
                     : SHERD_OK;
}

/* Metadata is only looked at here: its exposures may be refused. */
static int check_exposures(sherd_operation *w, sherd_diag *d)
{
    int err = SHERD_OK;
    if (w->opt.exposure_max <= 0) return SHERD_OK;
    sherd_product_options given = w->opt;
    if (w->o.meta) err = take_metadata(w, true, d);
    else sherd__operation_settle_seed(w);
    if (!err) err = sherd_product_exposures(w->in[0].view.cols, w->nodes_count, &w->opt, d);
    if (!w->o.meta) return err;
    sherd_meta_free(w->meta);
    w->meta = NULL;
    w->opt = given;
    return err;
}

/* The use of metadata is not recorded. */
static int check_forecast(sherd_operation *w, sherd_diag *d)
{
    int err = check_nodes(w, d);
    return err ? err : take_metadata(w, true, d);
}

static int check_all(sherd_operation *w, sherd_diag *d)
{
    int err = make_room(w, d);
    if (!err) err = begin_certificate(w, d);
    if (!err && sherd__operation_is_product(w))
        err = sherd_product_range(w->in[0].view, w->in[1].view, &w->opt, d);
    if (!err) err = check_nodes(w, d);
    if (!err) err = check_exposures(w, d);
    if (!err) err = take_metadata(w, false, d);
    return err;
}

/* ---- the object ------------------------------------------------------------------------------ */

int sherd_operation_new(sherd_operation **out, const sherd_operation_options *opt, sherd_diag *d)
{
    *out = NULL;
    sherd_operation *w = sherd__calloc(1, sizeof *w);
    if (!w) return sherd__fail_memory(d, "an operation");
    w->began = sherd__clock_s();
    int err = read_options(w, opt, d);
    if (!err) err = check_files(w, d);
    if (!err) err = read_masks(w, d);
    if (!err) err = open_operands(w, d);
    if (!err) err = w->o.forecast_only ? check_forecast(w, d) : check_all(w, d);
    if (err) sherd_operation_free(w);
    else *out = w;
    return err;
}

int sherd_operation_get(const sherd_operation *w, sherd_operation_info *out, sherd_diag *d)
{
    const sherd_operation_info info = { .written = w->written,
                                        .certified = w->certified,
                                        .seconds = w->seconds,
                                        .check_calls = w->check_calls,
                                        .cluster = w->cluster,
                                        .a = w->in[0].view,
                                        .b = w->in[1].view,
                                        .result = sherd__operation_result(w),
                                        .options = &w->opt,
                                        .report = &w->report,
                                        .check = w->checked ? &w->check : NULL,
                                        .distance = w->measured ? &w->distance : NULL,
                                        .forecast = w->forecast ? &w->forecasted : NULL,
                                        .result_ndim = w->ndim };
    int err = sherd__result_check(out, "sherd_operation_info", d);
    if (!err) sherd__result_write(out, &info, sizeof info);
    return err;
}

#define FIELD(member, TYPE, unit, text) SHERD__FIELD(sherd_operation_info, member, TYPE, unit, text)

static const sherd_field operation_info_fields[] = {
    FIELD(written, BOOL, "", "the result file exists"),
    FIELD(certified, BOOL, "", "its certificate exists"),
    FIELD(seconds, F64, "s", "until the result was here, without the forecast"),
    FIELD(check_calls, U64, "", "calls of BLAS in this process for comparisons"),
};
SHERD__FIELDS(sherd_operation_info, operation_info_fields)

void sherd_operation_free(sherd_operation *w)
{
    if (!w) return;
    if (!w->o.cluster) sherd_cluster_close(w->cluster);
    sherd_npy_writer_abort(w->writer);
    sherd__file_abort(w->text);
    sherd_certificate_free(w->certificate);
    sherd_report_fini(&w->report);
    sherd_meta_free(w->meta);
    for (unsigned i = 0; i < 2; i++) {
        sherd_profile_free(w->in[i].profile);
        sherd_array_close(w->in[i].file);
    }
    sherd__free(w->own);
    sherd__wipe(w, sizeof *w);
    sherd__free(w);
}
