/*
 * A node reads its examples before any coordinator has asked for them. Their interpretation (which
 * columns are targets, labels or values) is therefore left to learn/local_data.c. Here they are
 * rows of numbers, from the files that lib/data.c reads.
 */
#include "lib/local_data.h"

#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "lib/data.h"
#include "sherd/npy.h"
#include "store/csv.h"
#include "store/idx.h"

static int load_idx(sherd__own_data *x, const char *folder, sherd_diag *d)
{
    sherd__idx_set set = { 0 };
    int err = sherd__idx_set_load(&set, folder, "train", d);
    if (err) return err;
    x->own.x = sherd__idx_view(&set.images);
    x->own.y = sherd__idx_view(&set.labels);
    x->members[0] = set.images.values; /* ownership moves */
    x->members[1] = set.labels.values;
    set.images.values = set.labels.values = NULL;
    sherd__idx_set_fini(&set);
    return SHERD_OK;
}

static int take_pair(sherd__own_data *x, sherd__npz *z, const char *const names[2], bool *there,
                     sherd_diag *d)
{
    bool has_y = false;
    int err = sherd__data_member(z, names[0], &x->own.x, &x->members[0], there, d);
    if (err || !*there) return err;
    err = sherd__data_member(z, names[1], &x->own.y, &x->members[1], &has_y, d);
    if (!err && !has_y)
        err = sherd__fail(d, SHERD_EFORMAT, "numpy.savez(FILE, x=inputs, y=labels)",
                          "%s: has %s but not %s", sherd__npz_where(z), names[0], names[1]);
    if (!err && x->own.x.rows != x->own.y.rows)
        err = sherd__fail(d, SHERD_ESHAPE, NULL, "%s: %s has %zu rows and %s has %zu",
                          sherd__npz_where(z), names[0], x->own.x.rows, names[1], x->own.y.rows);
    return err;
}

static int load_npz(sherd__own_data *x, const char *path, sherd_diag *d)
{
    static const char *const pairs[][2] = { { "x_train", "y_train" }, { "x", "y" } };
    sherd__npz *z = NULL;
    bool there = false;
    int err = sherd__npz_open(&z, path, SHERD__DATA_UNPACKED, SHERD__DATA_RATIO, d);
    if (err) return err;
    for (size_t i = 0; i < 2 && !err && !there; i++) err = take_pair(x, z, pairs[i], &there, d);
    if (!err && !there)
        err = sherd__fail(d, SHERD_EFORMAT, "numpy.savez(FILE, x=inputs, y=labels)",
                          "%s: expected members x and y, or x_train and y_train", path);
    sherd__npz_close(z);
    return err;
}

/* Copies the examples into memory. Reading them from a mapped file during a round would take a time
 * that reveals where they end. They would change with the file, and truncating it would end the
 * process. */
static int load_npy(sherd__own_data *x, const char *path, sherd_diag *d)
{
    sherd_npy *npy = NULL;
    int err = sherd_npy_open(&npy, path, d);
    if (err) return err;
    x->own.x = sherd_npy_view(npy);
    size_t len = x->own.x.rows * x->own.x.cols * sherd_dtype_size(x->own.x.dtype);
    x->members[0] = sherd__alloc_large(len);
    if (x->members[0]) {
        memcpy(x->members[0], x->own.x.data, len);
        x->own.x.data = x->members[0];
        err = sherd_npy_check(npy, d);
    } else {
        err = sherd__fail_memory_hint(d,
                                      "serve a part of the examples, or use a machine with more "
                                      "memory",
                                      "the examples of %s: %zu bytes", path, len);
    }
    sherd_npy_close(npy);
    return err;
}

/* Reads "a, b, c"; text NULL: an empty list. */
static int read_list(sherd__namelist *out, const char *text, const char *option, sherd_diag *d)
{
    if (!text) return SHERD_OK;
    int err = sherd__namelist_split(out, text, strlen(text), ',');
    if (!err) err = sherd__namelist_check(out, NULL);
    if (err == SHERD_ENOMEM) return sherd__fail_memory(d, "--%s", option);
    return !err ? SHERD_OK
                : sherd__fail(d, SHERD_EINVAL, "separate different names by commas",
                              "--%s: expected names, found '%.60s'", option, text);
}

static int take_csv(sherd__own_data *x, const char *path, const sherd__csv_want *want,
                    sherd_diag *d)
{
    sherd__csv csv;
    int err = sherd__csv_load(&csv, path, want, d);
    if (err) return err;
    x->own.x = sherd_view_c(csv.x, SHERD_F64, csv.rows, csv.inputs);
    if (csv.values) x->own.y = sherd_view_c(csv.values, SHERD_F64, csv.rows, 1);
    if (csv.labels) x->own.y = sherd_view_c(csv.labels, SHERD_U32, csv.rows, 1);
    x->members[0] = csv.x;
    x->members[1] = csv.labels ? (void *)csv.labels : csv.values;
    csv.x = csv.values = NULL; /* ownership moves */
    csv.labels = NULL;
    sherd__csv_fini(&csv);
    return SHERD_OK;
}

static int load_csv(sherd__own_data *x, const char *path, const sherd__own_columns *of,
                    sherd_diag *d)
{
    sherd__namelist columns = { 0 }, classes = { 0 };
    int err = read_list(&columns, of->columns, "columns", d);
    if (!err) err = read_list(&classes, of->classes, "classes", d);
    const sherd__csv_want want = { .targets = of->label || of->columns || of->classes ? 1 : 0,
                                   .labels = of->classes,
                                   .classes = of->classes ? &classes : NULL,
                                   .label = of->label,
                                   .columns = of->columns ? &columns : NULL };
    if (!err) err = take_csv(x, path, &want, d);
    sherd__namelist_fini(&columns);
    sherd__namelist_fini(&classes);
    return err;
}

int sherd__own_load(sherd__own_data *out, const char *path, const sherd__own_columns *of,
                    sherd_diag *d)
{
    struct stat st;
    bool csv = sherd__data_ends_in(path, ".csv");
    *out = (sherd__own_data){ 0 };
    if (stat(path, &st) != 0) return sherd__data_missing(path, d);
    const char *idle = csv           ? NULL
                       : of->label   ? "label"
                       : of->columns ? "columns"
                       : of->classes ? "classes"
                                     : NULL;
    if (idle)
        return sherd__fail(d, SHERD_EINVAL, "leave it out", "%s: --%s is for a .csv", path, idle);
    int err = S_ISDIR(st.st_mode)                 ? load_idx(out, path, d)
              : csv                               ? load_csv(out, path, of, d)
              : sherd__data_ends_in(path, ".npz") ? load_npz(out, path, d)
              : sherd__data_ends_in(path, ".npy")
                  ? load_npy(out, path, d)
                  : sherd__fail(d, SHERD_EFORMAT,
                                "give a folder of IDX files, a .npy, a .npz or a .csv",
                                "%s: unknown kind of data file", path);
    if (!err && out->own.x.rows == 0)
        err = sherd__fail(d, SHERD_ESHAPE, NULL, "%s: there are no examples", path);
    return err;
}

void sherd__own_close(sherd__own_data *x)
{
    sherd__free(x->members[0]);
    sherd__free(x->members[1]);
    *x = (sherd__own_data){ 0 };
}
