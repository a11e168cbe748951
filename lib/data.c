/*
 * Data sets: limiting, holding out and scaling are the same for all sources (lib/data_files.c,
 * learn/generate.c).
 */
#include "lib/data.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/field.h"
#include "core/options.h"
#include "core/rand.h"
#include "core/wipe.h"
#include "learn/digits.h"
#include "learn/draw.h"
#include "learn/train.h"
#include "matrix/view.h"
#include "store/file.h"

#define EMBEDDED_TRAIN 60000u
#define EMBEDDED_VALIDATION 10000u

int sherd__data_no_memory(const char *what, sherd_diag *d)
{
    return sherd__fail_memory_hint(d, "use fewer: `examples` in the recipe", "the examples of %s",
                                   what);
}

/* ---- sources --------------------------------------------------------------------------------- */

static int load_embedded(sherd_data *x, const sherd__recipe *r, sherd_diag *d)
{
    size_t n = r->examples > 0 ? r->examples : EMBEDDED_TRAIN;
    size_t validation = n < EMBEDDED_VALIDATION ? n : EMBEDDED_VALIDATION;
    int err = sherd__generate_digits(&x->train, 0, n, d);
    x->embedded = true;
    if (!err && r->holdout == 0) err = sherd__generate_digits(&x->validation, n, validation, d);
    return err;
}

static int load_own(sherd_data *x, const sherd__recipe *r, size_t inputs, const uint8_t seed[32],
                    sherd_diag *d)
{
    switch (r->data) {
    case SHERD__DATA_IDX:
    case SHERD__DATA_DIGITS: return load_embedded(x, r, d);
    case SHERD__DATA_SPIRAL:
        return sherd__generate_spiral(&x->train, r->examples, r->classes, seed, d);
    case SHERD__DATA_PARABOLA: return sherd__generate_parabola(&x->train, r->examples, d);
    case SHERD__DATA_RANDOM:
        return sherd__generate_random(&x->train, r->examples, inputs, r->classes, seed, d);
    case SHERD__DATA_FILE: break;
    }
    return sherd__fail(d, SHERD_EINVAL, "--data FILE",
                       "data = file: neither a file nor arrays are given");
}

static int take_arrays(sherd__dataset *out, const sherd__recipe *r, const sherd__data_pair *p,
                       size_t width, sherd_diag *d)
{
    int err = sherd__view_check(p->x, p->where, d);
    if (!err) err = sherd__view_check(p->y, p->where, d);
    return err ? err : sherd__data_take_pair(out, r, p, width, d);
}

static int load_arrays(sherd_data *x, const sherd__recipe *r, const sherd_data_source *from,
                       const char *name, size_t width, sherd_diag *d)
{
    const sherd__data_pair train = { name, { "x", "y" }, from->x, from->y };
    const sherd__data_pair apart = { name, { "x", "y" }, from->validation_x, from->validation_y };
    int err = sherd__data_has_columns(r, name, false, d);
    if (!err) err = take_arrays(&x->train, r, &train, width, d);
    if (err || !from->validation_x.data) return err;
    return take_arrays(&x->validation, r, &apart, width, d);
}

/* ---- common to all sources ------------------------------------------------------------------- */

/* Keeps the first n rows; the rest stays allocated. */
static void limit(sherd__dataset *s, size_t n)
{
    if (n > 0 && s->x.rows > n) s->x = sherd_view_sub(s->x, 0, n, 0, s->x.cols);
}

static int compare_rows(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Draws the validation set from the rows; both parts keep the order of the rows. */
static int hold_out(sherd_data *x, double fraction, const uint8_t seed[32], sherd_diag *d)
{
    size_t n = x->train.x.rows, held = (size_t)(fraction * (double)n);
    sherd__seeded state;
    sherd__dataset train = { 0 }, validation = { 0 };
    if (fraction == 0) return 0;
    if (held == 0 || held == n || n > UINT32_MAX)
        return sherd__fail(d, SHERD_EINVAL, "use another fraction, or more data",
                           "a holdout of %g of %zu examples leaves nothing to %s", fraction, n,
                           held == 0 ? "validate with" : "train on");
    uint32_t *rows = sherd__calloc(n, sizeof *rows);
    if (!rows) return sherd__data_no_memory("`holdout`", d);
    sherd__entropy e = sherd__train_entropy(&state, seed, "holdout", 0);
    sherd__draw_shuffle(&e, rows, (uint32_t)n);
    sherd__wipe(&state, sizeof state);
    qsort(rows, held, sizeof *rows, compare_rows);
    qsort(rows + held, n - held, sizeof *rows, compare_rows);
    int err = sherd__dataset_copy(&validation, &x->train, rows, held, NULL, d);
    if (!err) err = sherd__dataset_copy(&train, &x->train, rows + held, n - held, NULL, d);
    if (err) {
        sherd__free(rows);
        sherd__dataset_fini(&validation);
        return err;
    }
    sherd__dataset_fini(&x->train);
    sherd__dataset_fini(&x->validation);
    x->train = train;
    x->validation = validation;
    memmove(rows, rows + held, (n - held) * sizeof *rows);
    x->from = rows;
    return 0;
}

/* Scales all inputs, by means and deviations of the training rows if the recipe asks for it. */
static int scale(sherd_data *x, const sherd__recipe *r, const char *name, sherd_diag *d)
{
    sherd__schema *s = &x->schema;
    double divide = r->divide_inputs;
    int err = r->standardise ? sherd__schema_measure(s, &x->train, name, divide, d) : 0;
    if (!err) err = sherd__schema_scale(s, &x->train, name, divide, d);
    return err ? err : sherd__schema_scale(s, &x->validation, name, divide, d);
}

static void describe(sherd_data *x, const sherd__recipe *r, const char *path)
{
    char held[48] = "";
    const char *kind = path          ? sherd__path_tail(path)
                       : x->embedded ? "embedded digits"
                                     : sherd__data_kind_name(r->data);
    if (x->validation.x.rows > 0)
        snprintf(held, sizeof held, " and %zu for validation", x->validation.x.rows);
    snprintf(x->text, sizeof x->text, "%.100s: %zu examples of %zu numbers%s", kind,
             x->train.x.rows, x->train.x.cols, held);
}

/* Loads from files or arrays, named `given`; given NULL: the recipe's own source. */
static int load(sherd_data *x, const sherd__recipe *r, const sherd_data_source *from,
                const char *given, const uint8_t seed[32], sherd_diag *d)
{
    const char *name = given ? given : sherd__data_kind_name(r->data);
    size_t inputs = x->inputs, width = x->outputs;
    int err = !given       ? load_own(x, r, inputs, seed, d)
              : from->path ? sherd__data_read(x, r, given, width, d)
                           : load_arrays(x, r, from, given, width, d);
    if (!err && x->train.x.rows == 0)
        err = sherd__fail(d, SHERD_EFORMAT, "give data with a row for each example",
                          "%s: holds no examples", name);
    if (!err && given) limit(&x->train, r->examples);
    if (!err && given) limit(&x->validation, r->examples);
    if (!err) err = sherd__dataset_check(&x->train, name, inputs, width, d);
    if (!err && x->validation.x.rows > 0)
        err = sherd__dataset_check(&x->validation, name, inputs, width, d);
    if (!err) err = hold_out(x, r->holdout, seed, d);
    if (!err) err = scale(x, r, name, d);
    if (!err) describe(x, r, given);
    return err;
}

static const char *name_of(const sherd_data_source *from)
{
    if (from->path) return from->path;
    if (!from->x.data && !from->y.data) return NULL;
    return from->name ? from->name : "arrays";
}

int sherd__data_load(sherd_data **out, const sherd_recipe *r, const sherd_data_source *from,
                     size_t width, const uint8_t seed[32], sherd_diag *d)
{
    int err = sherd__data_none(out, r, width, "", d);
    if (err) return err;
    err = from->path && from->x.data
              ? sherd__fail(d, SHERD_EINVAL, "leave one of them out",
                            "%s: data are given as a file and as arrays", from->path)
              : load(*out, &r->recipe, from, name_of(from), seed, d);
    if (!err) return SHERD_OK;
    sherd_data_free(*out);
    *out = NULL;
    return err;
}

int sherd__data_check_classes(const sherd_data *x, const char *name, sherd_diag *d)
{
    char names[160], hint[96];
    size_t len = x->schema.classes.len;
    if (len == 0 || len == x->outputs) return SHERD_OK;
    snprintf(hint, sizeof hint, "the last layer has an output for each class: dense %zu", len);
    return sherd__fail(d, SHERD_EFORMAT, hint,
                       "%s: there %s %zu class%s (%s): the network has %zu output%s", name,
                       len == 1 ? "is" : "are", len, len == 1 ? "" : "es",
                       sherd__namelist_shown(&x->schema.classes, names, sizeof names), x->outputs,
                       x->outputs == 1 ? "" : "s");
}

/* Takes the names that the recipe gives. */
static int take_names(sherd_data *x, const sherd_recipe *r, sherd_diag *d)
{
    const char *columns = r->recipe.columns, *classes = r->recipe.class_names;
    int err = columns[0] ? sherd__namelist_split(&x->schema.columns, columns, strlen(columns), ',')
                         : 0;
    if (!err && classes[0])
        err = sherd__namelist_split(&x->schema.classes, classes, strlen(classes), ',');
    if (err) return sherd__fail_memory(d, "names of columns and classes");
    if (columns[0] && x->schema.columns.len != x->inputs)
        return sherd__fail(d, SHERD_EFORMAT, "`input` is the number of columns",
                           "%s: there %s %zu column%s: the network takes %zu", r->name,
                           x->schema.columns.len == 1 ? "is" : "are", x->schema.columns.len,
                           x->schema.columns.len == 1 ? "" : "s", x->inputs);
    return sherd__data_check_classes(x, r->name, d);
}

int sherd__data_none(sherd_data **out, const sherd_recipe *r, size_t width, const char *text,
                     sherd_diag *d)
{
    sherd_data *x = *out = sherd__calloc(1, sizeof *x);
    if (!x) return sherd__fail_memory(d, "a data set");
    x->outputs = width;
    bool fits = sherd__form_size(r->recipe.in, &x->inputs);
    assert(fits && "the network of that width has such inputs");
    snprintf(x->text, sizeof x->text, "%s", text);
    int err = take_names(x, r, d);
    if (!err) return SHERD_OK;
    sherd_data_free(x);
    *out = NULL;
    return err;
}

int sherd_data_load(sherd_data **out, const sherd_recipe *r, const sherd_data_source *from,
                    const uint8_t *seed, sherd_diag *d)
{
    sherd__network_size w;
    sherd_data_source own;
    uint8_t fresh[32];
    *out = NULL;
    int err = sherd__options_read(&own, sizeof own, from, "sherd_data_source", d);
    if (!err) err = sherd__recipe_size(r, 1, &w, d);
    if (err) return err;
    sherd__entropy os = sherd__entropy_os();
    if (!seed) os.fill(os.ctx, fresh, sizeof fresh);
    err = sherd__data_load(out, r, &own, w.width, seed ? seed : fresh, d);
    if (!seed) sherd__wipe(fresh, sizeof fresh);
    return err;
}

/* ---- use ------------------------------------------------------------------------------------- */

static const sherd__dataset *part_of(const sherd_data *x, sherd_data_part part)
{
    return part == SHERD_DATA_VALIDATION ? &x->validation : &x->train;
}

sherd_view sherd_data_x(const sherd_data *x, sherd_data_part part)
{
    return part_of(x, part)->x;
}

static sherd_view targets(const sherd__dataset *s)
{
    if (s->targets.labels) return sherd_view_c(s->targets.labels, SHERD_U32, s->x.rows, 1);
    if (s->targets.values) return sherd_view_c(s->targets.values, SHERD_F64, s->x.rows, s->width);
    return (sherd_view){ .dtype = SHERD_F64 };
}

sherd_view sherd_data_y(const sherd_data *x, sherd_data_part part)
{
    return targets(part_of(x, part));
}

int sherd_data_get(const sherd_data *x, sherd_data_info *out, sherd_diag *d)
{
    int err = sherd__result_check(out, "sherd_data_info", d);
    if (err) return err;
    sherd_data_info info = { .examples = x->train.x.rows,
                             .validation = x->validation.x.rows,
                             .inputs = x->inputs,
                             .outputs = x->outputs,
                             .labels = x->train.targets.labels != NULL,
                             .embedded = x->embedded };
    snprintf(info.text, sizeof info.text, "%s", x->text);
    sherd__result_write(out, &info, sizeof info);
    return SHERD_OK;
}

static const sherd_field data_info_fields[] = {
    SHERD__FIELD(sherd_data_info, examples, U64, "", "examples for training"),
    SHERD__FIELD(sherd_data_info, validation, U64, "", "examples for validation"),
    SHERD__FIELD(sherd_data_info, inputs, U64, "", "numbers of one example"),
    SHERD__FIELD(sherd_data_info, outputs, U64, "", "outputs of the recipe's network"),
    SHERD__FIELD(sherd_data_info, labels, BOOL, "", "targets are labels"),
    SHERD__FIELD(sherd_data_info, embedded, BOOL, "", "generated digits replace images"),
    SHERD__FIELD(sherd_data_info, text, TEXT, "", "source and size"),
};
SHERD__FIELDS(sherd_data_info, data_info_fields)

/* Digests inputs and targets; zeros if there are none here, since nodes may have them. */
static int digest_of(uint8_t out[2 * SHERD__DIGEST_BYTES], const sherd__dataset *s, sherd_diag *d)
{
    sherd__digest x = { 0 }, y = { 0 };
    int err = 0;
    if (s->x.rows > 0) err = sherd__digest_view(&x, s->x, d);
    if (s->x.rows > 0 && !err) err = sherd__digest_view(&y, targets(s), d);
    memcpy(out, x.sha256, SHERD__DIGEST_BYTES);
    memcpy(out + SHERD__DIGEST_BYTES, y.sha256, SHERD__DIGEST_BYTES);
    return err;
}

int sherd_data_digest(const sherd_data *x, uint8_t *out, sherd_diag *d)
{
    uint8_t both[4 * SHERD__DIGEST_BYTES];
    sherd__digest all;
    int err = digest_of(both, &x->train, d);
    if (!err) err = digest_of(both + 2 * SHERD__DIGEST_BYTES, &x->validation, d);
    if (err) return err;
    if ((err = sherd__digest_labelled(&all, "sherd-data-v2", both, sizeof both)) != 0)
        return sherd__fail_to(d, err, "hash the data");
    memcpy(out, all.sha256, SHERD__DIGEST_BYTES);
    return SHERD_OK;
}

void sherd_data_free(sherd_data *x)
{
    if (!x) return;
    sherd__dataset_fini(&x->train);
    sherd__dataset_fini(&x->validation);
    sherd__schema_fini(&x->schema);
    sherd__free(x->from);
    sherd__free(x);
}

/* ---- inputs for prediction ------------------------------------------------------------------- */

static int load_inputs(sherd_data *x, const sherd__recipe *r, const char *path, sherd_diag *d)
{
    sherd__dataset *s = &x->train;
    s->width = x->outputs;
    int err = sherd__data_read_inputs(x, r, path, d);
    bool known = s->targets.labels || s->targets.values;
    if (!err && !known) { /* labels of zero, so that checks and copies find targets */
        if (!(s->owned[1] = sherd__calloc(s->x.rows + 1, sizeof(uint32_t))))
            err = sherd__data_no_memory(path, d);
        s->targets.labels = s->owned[1];
    }
    if (!err) err = sherd__dataset_check(s, path, x->inputs, x->outputs, d);
    if (!err) err = sherd__schema_scale(&x->schema, s, path, r->divide_inputs, d);
    if (!err && !known) s->targets = (sherd__targets){ 0 };
    if (!err) describe(x, r, path);
    return err;
}

/* schema NULL: there is the recipe only. */
static int inputs_for(sherd_data **out, const sherd_recipe *r, const sherd__schema *schema,
                      const char *path, sherd_diag *d)
{
    sherd__network_size w;
    int err = sherd__recipe_size(r, 1, &w, d);
    *out = NULL;
    if (!err) err = sherd__data_none(out, r, w.width, "", d);
    if (err) return err;
    if (schema) {
        sherd__schema_fini(&(*out)->schema);
        err = sherd__schema_copy(&(*out)->schema, schema, d);
    }
    if (!err) err = load_inputs(*out, &r->recipe, path, d);
    if (!err) return SHERD_OK;
    sherd_data_free(*out);
    *out = NULL;
    return err;
}

int sherd_data_inputs(sherd_data **out, const sherd_recipe *r, const char *path, sherd_diag *d)
{
    *out = NULL;
    if (r->recipe.standardise)
        return sherd__fail(d, SHERD_EINVAL, "sherd_model_inputs_load reads inputs for a model",
                           "%s: means and deviations of inputs are in the model, not in the recipe",
                           r->name);
    return inputs_for(out, r, NULL, path, d);
}

/* Fails for the model of a recipe that standardises, if its file had parameters only. */
int sherd__data_standardised(const sherd_model *m, sherd_diag *d)
{
    if (!m->recipe->recipe.standardise || m->schema.mean) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, "load a model that a training wrote",
                       "%s: the model has no means and deviations of inputs", m->recipe->name);
}

int sherd_model_inputs_load(sherd_data **out, const sherd_model *m, const char *path, sherd_diag *d)
{
    *out = NULL;
    int err = sherd__data_standardised(m, d);
    return err ? err : inputs_for(out, m->recipe, &m->schema, path, d);
}
