/*
 * Reads data sets from files and arrays. Each source fills a sherd__dataset that owns its memory,
 * except for arrays that are borrowed. Files are checked as a whole before training begins, so that
 * a label out of range is found in the first second, not during an epoch.
 */
#include "lib/data.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "matrix/view.h"
#include "sherd/npy.h"
#include "store/csv.h"
#include "store/idx.h"

/* ---- targets --------------------------------------------------------------------------------- */

/* Uses column `col` of v as labels; column_name begins "row 3" in messages. */
static int labels_of(sherd__dataset *s, sherd_view v, size_t col, const char *where, sherd_diag *d)
{
    uint32_t *labels = s->owned[1] = sherd__calloc(v.rows, sizeof *labels);
    if (!labels) return sherd__data_no_memory(where, d);
    for (size_t i = 0; i < v.rows; i++) {
        double x = sherd__view_at(v, i, col);
        if (!(x >= 0 && x < 4294967295.0) || x != (double)(uint32_t)x)
            return sherd__fail(d, SHERD_EFORMAT,
                               "labels are whole numbers from 0; use `targets = values` for other "
                               "targets",
                               "%s: row %zu: expected a label, found %g", where, i, x);
        labels[i] = (uint32_t)x;
    }
    s->targets.labels = labels;
    return 0;
}

static int values_of(sherd__dataset *s, sherd_view v, size_t first, size_t width, const char *where,
                     sherd_diag *d)
{
    double *values = s->owned[1] = sherd__calloc(v.rows, width * sizeof *values);
    if (!values) return sherd__data_no_memory(where, d);
    for (size_t i = 0; i < v.rows; i++) sherd__view_row_f64(v, i, first, width, values + i * width);
    s->targets.values = values;
    return 0;
}

/* The columns of v from `first` on. */
typedef struct columns {
    sherd_view v;
    size_t first;
} columns;

static int targets_of(sherd__dataset *s, const sherd__recipe *r, columns of, size_t width,
                      const char *where, sherd_diag *d)
{
    s->width = width;
    s->classes = r->target_values ? 0 : width;
    return r->target_values ? values_of(s, of.v, of.first, width, where, d)
                            : labels_of(s, of.v, of.first, where, d);
}

/* ---- IDX ------------------------------------------------------------------------------------- */

static int take_idx(sherd__dataset *out, const char *folder, const char *prefix, size_t width,
                    sherd_diag *d)
{
    sherd__idx_set set = { 0 };
    memset(out, 0, sizeof *out);
    int err = sherd__idx_set_load(&set, folder, prefix, d);
    if (err) return err;
    err = labels_of(out, sherd__idx_view(&set.labels), 0, folder, d);
    out->x = sherd__idx_view(&set.images);
    out->classes = out->width = width;
    out->owned[0] = set.images.values; /* ownership moves */
    set.images.values = NULL;
    sherd__idx_set_fini(&set);
    if (err) sherd__dataset_fini(out);
    return err;
}

static int load_idx(sherd_data *x, const char *folder, size_t width, sherd_diag *d)
{
    int err = take_idx(&x->train, folder, "train", width, d);
    if (err || !sherd__idx_set_any(folder, "t10k")) return err;
    return take_idx(&x->validation, folder, "t10k", width, d);
}

/* ---- .npy and .npz --------------------------------------------------------------------------- */

/* Copies v's rows up to column cols as the data set's inputs, in their own dtype. */
static int inputs_of(sherd__dataset *s, sherd_view v, size_t cols, const char *where, sherd_diag *d)
{
    sherd__dataset as = { .x = sherd_view_sub(v, 0, v.rows, 0, cols), .width = 1 }, copy;
    as.targets.labels = sherd__calloc(v.rows + 1, sizeof *as.targets.labels);
    if (!as.targets.labels) return sherd__data_no_memory(where, d);
    int err = sherd__dataset_copy(&copy, &as, NULL, v.rows, NULL, d);
    sherd__free((void *)(uintptr_t)as.targets.labels);
    if (err) return err;
    s->x = copy.x;
    s->owned[0] = copy.owned[0];
    copy.owned[0] = NULL;
    sherd__dataset_fini(&copy);
    return 0;
}

static int load_npy(sherd_data *x, const sherd__recipe *r, const char *path, size_t width,
                    sherd_diag *d)
{
    sherd_npy *f = NULL;
    size_t targets = r->target_values ? width : 1;
    int err = sherd_npy_open(&f, path, d);
    if (err) return err;
    sherd_view v = sherd_npy_view(f);
    if (v.cols <= targets)
        err = sherd__fail(d, SHERD_ESHAPE, "an .npz can contain x and y separately",
                          "%s: expected inputs and %zu target column%s, found %zu column%s", path,
                          targets, targets == 1 ? "" : "s", v.cols, v.cols == 1 ? "" : "s");
    if (!err) err = targets_of(&x->train, r, (columns){ v, v.cols - targets }, width, path, d);
    if (!err) err = inputs_of(&x->train, v, v.cols - targets, path, d);
    if (!err) err = sherd_npy_check(f, d);
    sherd_npy_close(f);
    return err;
}

int sherd__data_member(sherd__npz *z, const char *name, sherd_view *v, void **bytes, bool *there,
                       sherd_diag *d)
{
    int64_t i = sherd__npz_find(z, name);
    *bytes = NULL;
    *there = i >= 0;
    if (i < 0) return 0;
    const sherd__npy_header *h = &sherd__npz_member_at(z, (size_t)i)->head;
    if (!(*bytes = sherd__alloc(h->data_len))) return sherd__data_no_memory(sherd__npz_where(z), d);
    *v = h->fortran ? sherd_view_t(sherd_view_c(*bytes, h->dtype, h->cols, h->rows))
                    : sherd_view_c(*bytes, h->dtype, h->rows, h->cols);
    if (h->ndim == 1) *v = sherd_view_t(*v); /* examples of one number each */
    return sherd__npz_read(z, (size_t)i, *bytes, h->data_len, d);
}

int sherd__data_take_pair(sherd__dataset *out, const sherd__recipe *r, const sherd__data_pair *p,
                          size_t width, sherd_diag *d)
{
    char where[400];
    size_t cols = r->target_values ? width : 1;
    if (!p->x.data || !p->y.data)
        return sherd__fail(d, SHERD_EFORMAT, "numpy.savez(FILE, x=inputs, y=targets) keeps both",
                           "%s: has %s but not %s", p->where, p->names[!p->x.data],
                           p->names[!p->y.data]);
    if (p->x.rows != p->y.rows)
        return sherd__fail(d, SHERD_ESHAPE, "each row of inputs needs a target, in the same order",
                           "%s: %s has %zu rows and %s has %zu", p->where, p->names[0], p->x.rows,
                           p->names[1], p->y.rows);
    snprintf(where, sizeof where, "%.380s: %s", p->where, p->names[1]);
    if (p->y.cols != cols)
        return sherd__fail(d, SHERD_ESHAPE,
                           r->target_values ? "the last layer must have as many outputs as a "
                                              "target has columns"
                           : p->y.cols == width
                               ? "y.argmax(axis=1) turns a column for each class into labels"
                               : "labels are one number per row; use `targets = values` for other "
                                 "targets",
                           "%s: expected %zu column%s, found %zu", where, cols,
                           cols == 1 ? "" : "s", p->y.cols);
    int err = targets_of(out, r, (columns){ p->y, 0 }, width, where, d);
    if (err) return err;
    if (p->x.row_stride != (ptrdiff_t)p->x.cols || p->x.col_stride != 1)
        return inputs_of(out, p->x, p->x.cols, where, d);
    out->x = p->x;
    return 0;
}

/* An archive, and the network's recipe and outputs. */
typedef struct archive {
    sherd__npz *z;
    const sherd__recipe *r;
    size_t width;
} archive;

/* Reads the members `inputs` and `targets`; *there is false if both are missing. */
static int take_pair(sherd__dataset *out, const archive *a, const char *inputs, const char *targets,
                     bool *there, sherd_diag *d)
{
    sherd__npz *z = a->z;
    sherd__data_pair p = { .where = sherd__npz_where(z), .names = { inputs, targets } };
    void *x = NULL, *y = NULL;
    bool has_x, has_y = false;
    int err = sherd__data_member(z, inputs, &p.x, &x, &has_x, d);
    if (!err) err = sherd__data_member(z, targets, &p.y, &y, &has_y, d);
    *there = has_x || has_y;
    if (!err && *there) err = sherd__data_take_pair(out, a->r, &p, a->width, d);
    if (!err && out->x.data == x) { /* ownership moves */
        out->owned[0] = x;
        x = NULL;
    }
    sherd__free(x);
    sherd__free(y);
    return err;
}

static int load_npz(sherd_data *x, const sherd__recipe *r, const char *path, size_t width,
                    sherd_diag *d)
{
    sherd__npz *z = NULL;
    bool there = false, test;
    int err = sherd__npz_open(&z, path, SHERD__DATA_UNPACKED, SHERD__DATA_RATIO, d);
    if (err) return err;
    const archive a = { z, r, width };
    err = take_pair(&x->train, &a, "x_train", "y_train", &there, d);
    if (!err && there) err = take_pair(&x->validation, &a, "x_test", "y_test", &test, d);
    else if (!err) err = take_pair(&x->train, &a, "x", "y", &there, d);
    if (!err && !there)
        err = sherd__fail(d, SHERD_EFORMAT, "numpy.savez(FILE, x=inputs, y=labels)",
                          "%s: expected members x and y, or x_train and y_train", path);
    sherd__npz_close(z);
    return err;
}

/* ---- .csv ------------------------------------------------------------------------------------ */

/* Returns the name of the target's column, or NULL. */
static const char *target_of(const sherd_data *x, const sherd__recipe *r)
{
    if (r->label[0] != '\0') return r->label;
    return x->schema.target.len == 1 ? x->schema.target.at[0] : NULL;
}

/* Moves the names that were found in a file, unless others were given. */
static int keep_names(sherd__schema *s, sherd__csv *csv, sherd_diag *d)
{
    const struct {
        sherd__namelist *to, *from;
    } lists[] = { { &s->columns, &csv->columns },
                  { &s->target, &csv->target },
                  { &s->classes, &csv->classes } };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (lists[i].to->len > 0) continue;
        *lists[i].to = *lists[i].from;
        *lists[i].from = (sherd__namelist){ 0 };
    }
    return sherd__schema_prune(s, d);
}

/* predict: targets may be missing, and what names there are is in the schema. */
static int take_csv(sherd_data *x, const sherd__recipe *r, const char *path, bool predict,
                    sherd_diag *d)
{
    sherd__dataset *out = &x->train;
    size_t width = x->outputs;
    const sherd__schema *s = &x->schema;
    sherd__csv_want want = { .targets = r->target_values ? width : 1,
                             .labels = !r->target_values,
                             .names = !predict,
                             .classes = s->classes.len > 0 ? &s->classes : NULL,
                             .label = target_of(x, r),
                             .label_optional = r->label[0] == '\0',
                             .inputs = predict ? x->inputs : 0,
                             .columns = s->columns.len > 0 ? &s->columns : NULL };
    sherd__csv csv;
    if (want.label && want.targets != 1)
        return sherd__fail(d, SHERD_EINVAL,
                           "put the targets in the last columns, and leave "
                           "`label` out",
                           "label = %s: one column, but targets are %zu", want.label, want.targets);
    int err = sherd__csv_load(&csv, path, &want, d);
    if (err) return err;
    out->x = sherd_view_c(csv.x, SHERD_F64, csv.rows, csv.inputs);
    out->targets = (sherd__targets){ .labels = csv.labels, .values = csv.values };
    out->width = width;
    out->classes = r->target_values ? 0 : width;
    out->owned[0] = csv.x;
    out->owned[1] = csv.labels ? (void *)csv.labels : csv.values;
    csv.x = csv.values = NULL; /* ownership moves */
    csv.labels = NULL;
    if (!predict) err = keep_names(&x->schema, &csv, d);
    sherd__csv_fini(&csv);
    return err ? err : sherd__data_check_classes(x, path, d);
}

/* ---- sources --------------------------------------------------------------------------------- */

bool sherd__data_ends_in(const char *path, const char *tail)
{
    size_t n = strlen(path), m = strlen(tail);
    return n >= m && strcmp(path + n - m, tail) == 0;
}

int sherd__data_missing(const char *path, sherd_diag *d)
{
    static const char *const sets[] = { "mnist", "fashion-mnist" };
    size_t len = strlen(path), at;
    char hint[64] = "";
    while (len > 0 && path[len - 1] == '/') len--;
    for (at = len; at > 0 && path[at - 1] != '/';) at--;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (strlen(sets[i]) == len - at && memcmp(path + at, sets[i], len - at) == 0)
            snprintf(hint, sizeof hint, "`sherd fetch %s` downloads it", sets[i]);
    return sherd__fail(d, SHERD_EOPEN, hint, "%s: there is no such file or folder", path);
}

int sherd__data_has_columns(const sherd__recipe *r, const char *where, bool has, sherd_diag *d)
{
    if (!has && r->label[0] != '\0')
        return sherd__fail(d, SHERD_EINVAL, "leave `label` out of the recipe",
                           "%s: label = %s is a column of a .csv", where, r->label);
    if (!has && r->columns[0] != '\0')
        return sherd__fail(d, SHERD_EINVAL, "leave `columns` out of the recipe",
                           "%s: columns are those of a .csv", where);
    return SHERD_OK;
}

int sherd__data_read(sherd_data *x, const sherd__recipe *r, const char *path, size_t width,
                     sherd_diag *d)
{
    struct stat st;
    int err = sherd__data_has_columns(r, path, sherd__data_ends_in(path, ".csv"), d);
    if (err) return err;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) return load_idx(x, path, width, d);
    if (sherd__data_ends_in(path, ".npz")) return load_npz(x, r, path, width, d);
    if (sherd__data_ends_in(path, ".npy")) return load_npy(x, r, path, width, d);
    if (sherd__data_ends_in(path, ".csv")) return take_csv(x, r, path, false, d);
    if (stat(path, &st) != 0) return sherd__data_missing(path, d);
    return sherd__fail(d, SHERD_EFORMAT, "give a folder of IDX files, a .npy, a .npz or a .csv",
                       "%s: unknown kind of data file", path);
}

/* ---- inputs for prediction ------------------------------------------------------------------- */

static int inputs_idx(sherd__dataset *out, const char *path, sherd_diag *d)
{
    sherd__idx idx;
    int err = sherd__idx_load(&idx, path, d);
    if (err) return err;
    out->x = sherd__idx_view(&idx);
    out->owned[0] = idx.values;
    return 0;
}

static int inputs_npz(sherd__dataset *out, const sherd__recipe *r, const char *path, size_t width,
                      sherd_diag *d)
{
    static const char *const pairs[][2] = { { "x_test", "y_test" }, { "x", "y" } };
    sherd__npz *z = NULL;
    sherd_view v;
    void *bytes = NULL;
    bool there = false;
    int err = sherd__npz_open(&z, path, SHERD__DATA_UNPACKED, SHERD__DATA_RATIO, d);
    for (size_t i = 0; i < 2 && !err && !there; i++)
        if (sherd__npz_find(z, pairs[i][0]) >= 0 && sherd__npz_find(z, pairs[i][1]) >= 0)
            err = take_pair(out, &(archive){ z, r, width }, pairs[i][0], pairs[i][1], &there, d);
    if (!err && !there) {
        err = sherd__data_member(z, "x", &v, &bytes, &there, d);
        if (!err && !there)
            err = sherd__fail(d, SHERD_EFORMAT, "numpy.savez(FILE, x=inputs)",
                              "%s: expected a member x", path);
        if (!err) err = inputs_of(out, v, v.cols, path, d);
        sherd__free(bytes);
    }
    sherd__npz_close(z);
    return err;
}

static int inputs_npy(sherd__dataset *out, const sherd__recipe *r, const char *path, size_t inputs,
                      size_t width, sherd_diag *d)
{
    sherd_npy *f = NULL;
    size_t targets = r->target_values ? width : 1;
    int err = sherd_npy_open(&f, path, d);
    if (err) return err;
    sherd_view v = sherd_npy_view(f);
    if (sherd_npy_ndim(f) == 1 && inputs == 1) v = sherd_view_t(v);
    bool both = v.cols == inputs + targets;
    if (both) err = targets_of(out, r, (columns){ v, inputs }, width, path, d);
    if (!err) err = inputs_of(out, v, both ? inputs : v.cols, path, d);
    if (!err) err = sherd_npy_check(f, d);
    sherd_npy_close(f);
    return err;
}

int sherd__data_read_inputs(sherd_data *x, const sherd__recipe *r, const char *path, sherd_diag *d)
{
    struct stat st;
    sherd__dataset *out = &x->train;
    size_t width = x->outputs;
    bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    return folder                              ? take_idx(out, path, "t10k", width, d)
           : sherd__data_ends_in(path, ".npz") ? inputs_npz(out, r, path, width, d)
           : sherd__data_ends_in(path, ".npy") ? inputs_npy(out, r, path, x->inputs, width, d)
           : sherd__data_ends_in(path, ".csv") ? take_csv(x, r, path, true, d)
                                               : inputs_idx(out, path, d);
}
