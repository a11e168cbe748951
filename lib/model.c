/*
 * Models and their files. Values are read into a separate buffer and copied to the network after
 * all of them have been checked. The archive may be written by numpy (--initial), so numpy's usual
 * forms are accepted: float32 or float64, Fortran order, biases as a row or a column.
 */
#include "lib/model.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "matrix/view.h"
#include "store/file.h"
#include "store/npz.h"

#define UNPACKED_BASE ((uint64_t)8 << 30)
#define UNPACKED_RATIO 1100u

/* ---- writing --------------------------------------------------------------------------------- */

static int add_layer(sherd__npz_writer *w, const sherd__network *n, size_t i, sherd_diag *d)
{
    const sherd__layer *l = sherd__network_layer(n, i);
    char name[16];
    if (!sherd__recipe_member(n, i, false, name)) return 0;
    int err = sherd__npz_writer_add_values(w,
                                           &(sherd__npz_array){ name, l->dtype, 2, l->rows,
                                                                l->cols },
                                           false, l->weights, d);
    if (err) return err;
    sherd__recipe_member(n, i, true, name);
    return sherd__npz_writer_add_values(w, &(sherd__npz_array){ name, l->dtype, 1, 1, l->cols },
                                        false, l->biases, d);
}

/* Writes the archive and frees w, on failure too. */
static int write_model(sherd__npz_writer *w, const sherd_model *m, sherd_diag *d)
{
    const sherd__network *n = m->network;
    const char *text = m->recipe->text;
    sherd__schema_members members = { 0 };
    int err = sherd__npz_writer_add_values(w,
                                           &(sherd__npz_array){ "recipe", SHERD_U8, 1, 1,
                                                                strlen(text) },
                                           false, text, d);
    if (!err) err = sherd__schema_list(&m->schema, &members, d);
    for (size_t i = 0; i < members.len && !err; i++)
        err = sherd__npz_writer_add_values(w, &members.arrays[i], false, members.values[i], d);
    for (size_t i = 0; i < sherd__network_len(n) && !err; i++) err = add_layer(w, n, i, d);
    if (err) sherd__npz_writer_abort(w);
    else err = sherd__npz_writer_commit(w, NULL, d);
    sherd__schema_members_fini(&members);
    return err;
}

int sherd_model_save(const sherd_model *m, const char *path, sherd_diag *d)
{
    sherd__npz_writer *w;
    int err = sherd__npz_writer_new(&w, path, d);
    return err ? err : write_model(w, m, d);
}

/* Returns the size of the values plus the archive's overhead for each: headers, and the name
 * twice. */
static uint64_t file_bytes(const sherd_model *m)
{
    const sherd__network *n = m->network;
    uint64_t bytes = 4096 + strlen(m->recipe->text) + sherd__schema_bytes(&m->schema);
    char name[16];
    for (size_t i = 0; i < sherd__network_len(n); i++) {
        const sherd__layer *l = sherd__network_layer(n, i);
        if (!sherd__recipe_member(n, i, false, name)) continue;
        bytes += (uint64_t)(l->rows + 1) * l->cols * sherd_dtype_size(l->dtype) + 1024;
    }
    return bytes;
}

struct sherd_model_file {
    sherd__npz_writer *writer; /* NULL: saved */
};

int sherd_model_file_open(sherd_model_file **out, const sherd_model *m, const char *path,
                          sherd_diag *d)
{
    *out = NULL;
    sherd_model_file *f = sherd__calloc(1, sizeof *f);
    if (!f) return sherd__fail_memory(d, "%s", path);
    int err = sherd__npz_writer_new(&f->writer, path, d);
    if (!err) err = sherd__npz_writer_reserve(f->writer, file_bytes(m), d);
    if (!err) *out = f;
    else sherd_model_file_close(f);
    return err;
}

int sherd_model_file_save(sherd_model_file *f, const sherd_model *m, sherd_diag *d)
{
    sherd__npz_writer *w = f->writer;
    f->writer = NULL;
    if (w) return write_model(w, m, d);
    return sherd__fail(d, SHERD_EINVAL, "open it again", "the model's file was written before");
}

void sherd_model_file_close(sherd_model_file *f)
{
    if (!f) return;
    sherd__npz_writer_abort(f->writer);
    sherd__free(f);
}

/* ---- reading --------------------------------------------------------------------------------- */

int sherd__model_recipe(sherd__recipe *out, const char *path, sherd_diag *d)
{
    char where[400];
    sherd__npz *z = NULL;
    char *text = NULL;
    int err = sherd__npz_open(&z, path, UNPACKED_BASE, UNPACKED_RATIO, d);
    if (err) return err;
    int64_t i = sherd__npz_find(z, "recipe");
    const sherd__npz_member *m = i < 0 ? NULL : sherd__npz_member_at(z, (size_t)i);
    snprintf(where, sizeof where, "%.380s: recipe", path);
    if (!m || m->head.dtype != SHERD_U8 || m->head.data_len > SHERD__RECIPE_BYTES_MAX)
        err = sherd__fail(d, SHERD_EFORMAT, "`sherd train -o MODEL.npz` writes models",
                          "%s: expected a model with its recipe, found %s", path,
                          !m ? "none" : "a `recipe` member of the wrong type or size");
    if (!err && !(text = sherd__alloc(m->head.data_len + 1)))
        err = sherd__fail_memory(d, "reading %s", path);
    if (!err) err = sherd__npz_read(z, (size_t)i, text, m->head.data_len, d);
    if (!err) err = sherd__recipe_parse(out, text, m->head.data_len, where, SHERD__RECIPE_ALL, d);
    sherd__free(text);
    sherd__npz_close(z);
    return err;
}

/* Finds member `name`, which must have this shape. */
static int find_member(const sherd__npz *z, const char *name, size_t rows, size_t cols, size_t *at,
                       sherd_diag *d)
{
    const char *where = sherd__npz_where(z);
    int64_t i = sherd__npz_find(z, name);
    const sherd__npz_member *m = i < 0 ? NULL : sherd__npz_member_at(z, (size_t)i);
    if (!m)
        return sherd__fail(d, SHERD_EFORMAT,
                           "layers with parameters are counted from 1: w1, b1, w2, b2, ...",
                           "%s: the member %s is missing", where, name);
    bool vector = rows == 1 && m->head.rows * m->head.cols == cols &&
                  (m->head.rows == 1 || m->head.cols == 1);
    if (!vector && (m->head.rows != rows || m->head.cols != cols))
        return sherd__fail(d, SHERD_ESHAPE, NULL,
                           "%s: %s is %zu x %zu: the network takes %zu x %zu", where, name,
                           m->head.rows, m->head.cols, rows, cols);
    *at = (size_t)i;
    return 0;
}

/* Reads member `name` as rows x cols doubles, row-major. */
static int read_member(sherd__npz *z, const char *name, size_t rows, size_t cols, double *out,
                       sherd_diag *d)
{
    size_t i;
    int err = find_member(z, name, rows, cols, &i, d);
    if (err) return err;
    const sherd__npz_member *m = sherd__npz_member_at(z, i);
    void *bytes = sherd__alloc(m->head.data_len);
    if (!bytes) return sherd__fail_memory(d, "%s of %s", name, sherd__npz_where(z));
    err = sherd__npz_read(z, i, bytes, m->head.data_len, d);
    if (!err) {
        sherd_view v = m->head.fortran
                           ? sherd_view_t(sherd_view_c(bytes, m->head.dtype, cols, rows))
                           : sherd_view_c(bytes, m->head.dtype, rows, cols);
        sherd__view_dense_f64(v, out, cols);
    }
    sherd__free(bytes);
    for (size_t k = 0; k < rows * cols && !err; k++)
        if (!isfinite(out[k]))
            err = sherd__fail(d, SHERD_ERANGE, NULL, "%s: %s, row %zu, column %zu is %g",
                              sherd__npz_where(z), name, k / cols, k % cols, out[k]);
    return err;
}

/* Compares the shapes of all parameters with the archive. A recipe of some bytes can describe a
 * network of any size, so this precedes every allocation that its shapes determine. */
static int check_shapes(const sherd__npz *z, const sherd__network *n, sherd_diag *d)
{
    char name[16];
    size_t at;
    int err = SHERD_OK;
    for (size_t i = 0; i < sherd__network_len(n) && !err; i++) {
        const sherd__layer *l = sherd__network_layer(n, i);
        if (!sherd__recipe_member(n, i, false, name)) continue;
        err = find_member(z, name, l->rows, l->cols, &at, d);
        sherd__recipe_member(n, i, true, name);
        if (!err) err = find_member(z, name, 1, l->cols, &at, d);
    }
    return err;
}

static int read_parameters(sherd__npz *z, sherd__network *n, sherd_diag *d)
{
    char name[16];
    size_t at = 0;
    int err = SHERD_OK;
    double *all = sherd__calloc(sherd__network_count(n), sizeof *all);
    if (!all) return sherd__fail_memory(d, "reading %s", sherd__npz_where(z));
    for (size_t i = 0; i < sherd__network_len(n) && !err; i++) {
        const sherd__layer *l = sherd__network_layer(n, i);
        if (!sherd__recipe_member(n, i, false, name)) continue;
        err = read_member(z, name, l->rows, l->cols, all + at, d);
        at += l->rows * l->cols;
        sherd__recipe_member(n, i, true, name);
        if (!err) err = read_member(z, name, 1, l->cols, all + at, d);
        at += l->cols;
    }
    if (!err) sherd__network_set(n, all);
    sherd__free(all);
    return err;
}

int sherd__model_params(sherd__network *n, const char *path, sherd_diag *d)
{
    sherd__npz *z = NULL;
    int err = sherd__npz_open(&z, path, UNPACKED_BASE, UNPACKED_RATIO, d);
    if (!err) err = check_shapes(z, n, d);
    if (!err) err = read_parameters(z, n, d);
    sherd__npz_close(z);
    return err;
}

/* ---- models ---------------------------------------------------------------------------------- */

int sherd__model_of(sherd_model **out, sherd_recipe *r, sherd__network *n,
                    const sherd__schema *schema, bool borrowed, sherd_diag *d)
{
    sherd_model *m = *out = sherd__calloc(1, sizeof *m);
    if (!m) return sherd__fail_memory(d, "the model %s", r->name);
    int err = sherd__schema_copy(&m->schema, schema, d);
    if (err) {
        sherd__free(m);
        *out = NULL;
        return err;
    }
    m->recipe = r;
    m->network = n;
    m->borrowed = borrowed;
    for (size_t i = 0; i < sherd__network_len(n); i++)
        for (int biases = 0; biases < 2; biases++)
            m->names_len += sherd__recipe_member(n, i, biases, m->names[m->names_len]);
    return SHERD_OK;
}

/* Makes a model with parameters from a file; takes r, also on failure. whole: the file must have
 * all that a prediction needs. */
static int load(sherd_model **out, sherd_recipe *r, const char *path, bool whole, sherd_diag *d)
{
    sherd__network *shapes = NULL, *n = NULL;
    sherd__schema schema = { 0 };
    sherd__npz *z = NULL;
    int err = sherd__recipe_shapes(&r->recipe, &shapes, d);
    if (!err) err = sherd__npz_open(&z, path, UNPACKED_BASE, UNPACKED_RATIO, d);
    if (!err) err = check_shapes(z, shapes, d);
    if (!err)
        err = sherd__schema_read(&schema, z, &r->recipe, sherd__network_width(shapes), whole, d);
    if (!err) err = sherd__recipe_network_unset(&r->recipe, 1, &n, d);
    if (!err) err = read_parameters(z, n, d);
    sherd__network_free(shapes);
    sherd__npz_close(z);
    if (!err) err = sherd__model_of(out, r, n, &schema, false, d);
    sherd__schema_fini(&schema);
    if (!err) return SHERD_OK;
    sherd__network_free(n);
    sherd_recipe_free(r);
    return err;
}

int sherd_model_load(sherd_model **out, const char *path, sherd_diag *d)
{
    sherd__recipe parsed;
    sherd_recipe *r = NULL;
    *out = NULL;
    int err = sherd__model_recipe(&parsed, path, d);
    if (!err) err = sherd__recipe_of(&r, &parsed, path, d);
    return err ? err : load(out, r, path, true, d);
}

int sherd_model_load_parameters(sherd_model **out, const sherd_recipe *r, const char *path,
                                sherd_diag *d)
{
    sherd_recipe *own = NULL;
    *out = NULL;
    int err = sherd__recipe_of(&own, &r->recipe, r->name, d);
    return err ? err : load(out, own, path, false, d);
}

void sherd_model_free(sherd_model *m)
{
    if (m && !m->borrowed) sherd__model_free(m);
}

void sherd__model_free(sherd_model *m)
{
    if (!m) return;
    if (!m->borrowed) {
        sherd__network_free(m->network);
        sherd_recipe_free(m->recipe);
    }
    sherd__schema_fini(&m->schema);
    sherd__free(m);
}

const sherd_recipe *sherd_model_recipe(const sherd_model *m)
{
    return m->recipe;
}

size_t sherd_model_inputs(const sherd_model *m)
{
    size_t inputs = 0;
    bool fits = sherd__form_size(m->recipe->recipe.in, &inputs);
    assert(fits && "the network has such inputs");
    return inputs;
}

size_t sherd_model_outputs(const sherd_model *m)
{
    return sherd__network_width(m->network);
}

const char *sherd_model_class_name(const sherd_model *m, size_t i)
{
    return i < m->schema.classes.len ? m->schema.classes.at[i] : NULL;
}

const char *sherd_model_input_name(const sherd_model *m, size_t i)
{
    return i < m->schema.columns.len ? m->schema.columns.at[i] : NULL;
}

const char *sherd_model_parameter_name(const sherd_model *m, size_t i)
{
    return i < m->names_len ? m->names[i] : NULL;
}

sherd_view sherd_model_parameter_find(const sherd_model *m, const char *name)
{
    char own[16];
    for (size_t i = 0; i < sherd__network_len(m->network); i++) {
        const sherd__layer *l = sherd__network_layer(m->network, i);
        if (sherd__recipe_member(m->network, i, false, own) && strcmp(own, name) == 0)
            return sherd_view_c(l->weights, l->dtype, l->rows, l->cols);
        if (sherd__recipe_member(m->network, i, true, own) && strcmp(own, name) == 0)
            return sherd_view_c(l->biases, l->dtype, 1, l->cols);
    }
    return (sherd_view){ .dtype = sherd__network_dtype(m->network) };
}
