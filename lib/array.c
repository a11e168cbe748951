/*
 * A matrix is either in a mapped .npy or in memory of its own. Formats are identified by their
 * first bytes, since IDX files have no common extension, and .csv by its name; readers report all
 * else that is wrong.
 */
#include "sherd/array.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "learn/digits.h"
#include "lib/data.h"
#include "sherd/npy.h"
#include "store/csv.h"
#include "store/file.h"
#include "store/idx.h"
#include "store/npz.h"

_Static_assert(SHERD_DIGIT_PIXELS == SHERD__DIGIT_PIXELS, "digits of both headers have one size");

struct sherd_array {
    sherd_npy *npy; /* or: */
    void *values;
    sherd_view view;
    unsigned ndim;
};

typedef enum format { NPY, NPZ, IDX, CSV, UNKNOWN } format;

/* Nothing is read from a pipe, since its reader needs all bytes. */
static format format_of(const char *path)
{
    static const struct {
        const char *bytes;
        size_t len;
        format format;
    } magics[] = {
        { "\x93NUMPY", 6, NPY }, { "PK\x03\x04", 4, NPZ }, { "PK\x05\x06", 4, NPZ },
        { "\x1f\x8b", 2, IDX },  { "\0\0", 2, IDX },
    };
    char first[6] = { 0 };
    struct stat st;
    bool there = stat(path, &st) == 0, file = there && S_ISREG(st.st_mode);
    bool named_idx = sherd__data_ends_in(path, "-ubyte") || sherd__data_ends_in(path, ".gz");
    FILE *f = file ? fopen(path, "rbe") : NULL;
    size_t got = f ? fread(first, 1, sizeof first, f) : 0;
    if (f) fclose(f);
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (got >= magics[i].len && memcmp(first, magics[i].bytes, magics[i].len) == 0)
            return magics[i].format;
    if (sherd__data_ends_in(path, ".csv")) return CSV;
    if (sherd__data_ends_in(path, ".npy")) return NPY;
    if (!file) return named_idx ? IDX : NPY;
    return got >= 2 ? UNKNOWN : IDX;
}

static int no_memory(const char *path, sherd_diag *d)
{
    return sherd__fail_memory(d, "reading %s", path);
}

static int open_npy(sherd_array *a, const char *path, sherd_diag *d)
{
    int err = sherd_npy_open(&a->npy, path, d);
    if (err) return err;
    a->view = sherd_npy_view(a->npy);
    a->ndim = sherd_npy_ndim(a->npy);
    return SHERD_OK;
}

static int find_member(int64_t *at, const sherd__npz *z, const char *path, const char *member,
                       sherd_diag *d)
{
    size_t count = sherd__npz_count(z);
    *at = member ? sherd__npz_find(z, member) : count == 1 ? 0 : -1;
    if (*at >= 0) return SHERD_OK;
    if (!member && count > 0)
        return sherd__fail(d, SHERD_EINVAL, "name one of them as FILE.npz:NAME",
                           "%s: has %zu members, the first is %s", path, count,
                           sherd__npz_member_at(z, 0)->name);
    return sherd__fail(d, SHERD_EFORMAT, "numpy.load(FILE).files lists them",
                       "%s: has no member%s%s", path, member ? " " : "", member ? member : "");
}

static int open_npz(sherd_array *a, const char *path, const char *member, sherd_diag *d)
{
    sherd__npz *z = NULL;
    int64_t at;
    int err = sherd__npz_open(&z, path, SHERD__DATA_UNPACKED, SHERD__DATA_RATIO, d);
    if (!err) err = find_member(&at, z, path, member, d);
    if (!err) {
        const sherd__npy_header *h = &sherd__npz_member_at(z, (size_t)at)->head;
        a->ndim = h->ndim;
        a->values = sherd__alloc(h->data_len);
        a->view = h->fortran ? sherd_view_t(sherd_view_c(a->values, h->dtype, h->cols, h->rows))
                             : sherd_view_c(a->values, h->dtype, h->rows, h->cols);
        err = a->values ? sherd__npz_read(z, (size_t)at, a->values, h->data_len, d)
                        : no_memory(path, d);
    }
    sherd__npz_close(z);
    return err;
}

static void take_idx(sherd_array *a, sherd__idx *x)
{
    *a = (sherd_array){ .values = x->values, .view = sherd__idx_view(x), .ndim = x->ndim };
    *x = (sherd__idx){ 0 };
}

static int open_idx(sherd_array *a, const char *path, sherd_diag *d)
{
    sherd__idx x;
    int err = sherd__idx_load(&x, path, d);
    if (!err) take_idx(a, &x);
    return err;
}

static int open_csv(sherd_array *a, const char *path, sherd_diag *d)
{
    const sherd__csv_want numbers = { .operand = true };
    sherd__csv csv;
    int err = sherd__csv_load(&csv, path, &numbers, d);
    if (err) return err;
    a->values = csv.x;
    a->view = sherd_view_c(csv.x, SHERD_F64, csv.rows, csv.inputs);
    a->ndim = 2;
    csv.x = NULL; /* ownership moves */
    sherd__csv_fini(&csv);
    return SHERD_OK;
}

int sherd_array_open(sherd_array **out, const char *path, const char *member, sherd_diag *d)
{
    char file[PATH_MAX];
    const char *named = member ? NULL : sherd__path_member(path, file, sizeof file);
    *out = NULL;
    if (named) return sherd_array_open(out, file, named, d);
    format is = format_of(path);
    if (is == UNKNOWN)
        return sherd__fail(d, SHERD_EFORMAT, "save it with numpy.save",
                           "%s: is not a .npy, .npz, .csv or IDX file", path);
    if (member && is != NPZ && access(path, F_OK) == 0)
        return sherd__fail(d, SHERD_EINVAL, "give no member", "%s: only an .npz has members", path);
    sherd_array *a = sherd__calloc(1, sizeof *a);
    if (!a) return no_memory(path, d);
    int err = is == NPY   ? open_npy(a, path, d)
              : is == NPZ ? open_npz(a, path, member, d)
              : is == CSV ? open_csv(a, path, d)
                          : open_idx(a, path, d);
    if (err) sherd_array_close(a);
    else *out = a;
    return err;
}

int sherd_array_open_idx(sherd_array **images, sherd_array **labels, const char *folder,
                         const char *prefix, sherd_diag *d)
{
    sherd__idx_set set;
    *images = *labels = NULL;
    int err = sherd__idx_set_load(&set, folder, prefix, d);
    if (err) return err;
    *images = sherd__calloc(1, sizeof **images);
    *labels = sherd__calloc(1, sizeof **labels);
    if (*images && *labels) {
        take_idx(*images, &set.images);
        take_idx(*labels, &set.labels);
        return SHERD_OK;
    }
    sherd__idx_set_fini(&set);
    sherd_array_close(*images);
    sherd_array_close(*labels);
    *images = *labels = NULL;
    return no_memory(folder, d);
}

sherd_view sherd_array_view(const sherd_array *a)
{
    return a->view;
}

sherd_view sherd_array_operand(const sherd_array *a, bool column)
{
    bool turned = column ? a->view.rows == 1 : a->view.cols == 1;
    return a->ndim == 1 && turned ? sherd_view_t(a->view) : a->view;
}

unsigned sherd_array_ndim(const sherd_array *a)
{
    return a->ndim;
}

int sherd_array_check(const sherd_array *a, sherd_diag *d)
{
    return a->npy ? sherd_npy_check(a->npy, d) : SHERD_OK;
}

void sherd_array_close(sherd_array *a)
{
    if (!a) return;
    sherd_npy_close(a->npy);
    sherd__free(a->values);
    sherd__free(a);
}

void sherd_digits_draw(uint64_t seed, uint64_t first, size_t rows, uint8_t *pixels, uint8_t *labels)
{
    sherd__digits_draw(seed ? seed : SHERD__DIGITS_SEED, first, rows, pixels, labels);
}
