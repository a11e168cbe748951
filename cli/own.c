/*
 * A node reads its examples before anybody has asked for them, so what they mean (which columns are
 * targets, labels or values) is left to learn/own.c; here they are numbers in rows.
 */
#include "cli/own.h"

#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "store/npz.h"

/* What a member may unpack to: as for data that train reads. */
#define UNPACKED_BASE ((uint64_t)16 << 30)
#define UNPACKED_RATIO 1100u

static int read_member(sherd__own_data *x, sherd__npz *z, unsigned which, sherd_view *out,
                       sherd_diag *d)
{
    const char *name = which ? "y" : "x";
    int64_t i = sherd__npz_find(z, name);
    if (i < 0)
        return sherd__fail(d, SHERD_EFORMAT, "numpy.savez(FILE, x=inputs, y=labels)",
                           "%s: has no member %s", sherd__npz_where(z), name);
    const sherd__npy_header *h = &sherd__npz_member_at(z, (size_t)i)->head;
    void *bytes = x->members[which] = sherd__alloc_large(h->data_len);
    if (!bytes) return sherd__fail(d, SHERD_ENOMEM, NULL, "%s: no memory", sherd__npz_where(z));
    *out = h->fortran ? sherd_view_t(sherd_view_c(bytes, h->dtype, h->cols, h->rows))
                      : sherd_view_c(bytes, h->dtype, h->rows, h->cols);
    if (h->ndim == 1) *out = sherd_view_t(*out); /* so many examples of one number */
    return sherd__npz_read(z, (size_t)i, bytes, h->data_len, d);
}

static int load_npz(sherd__own_data *x, const char *path, sherd_diag *d)
{
    sherd__npz *z = NULL;
    int err = sherd__npz_open(&z, path, UNPACKED_BASE, UNPACKED_RATIO, d);
    if (err) return err;
    err = read_member(x, z, 0, &x->own.x, d);
    if (!err) err = read_member(x, z, 1, &x->own.y, d);
    if (!err && x->own.x.rows != x->own.y.rows)
        err = sherd__fail(d, SHERD_ESHAPE, NULL, "%s: x has %zu rows and y has %zu",
                          sherd__npz_where(z), x->own.x.rows, x->own.y.rows);
    sherd__npz_close(z);
    return err;
}

static int load_npy(sherd__own_data *x, const char *path, sherd_diag *d)
{
    int err = sherd_npy_open(&x->npy, path, d);
    if (!err) err = sherd_npy_check(x->npy, d);
    if (!err) x->own.x = sherd_npy_view(x->npy);
    return err;
}

int sherd__own_load(sherd__own_data *out, const char *path, sherd_diag *d)
{
    size_t len = strlen(path);
    *out = (sherd__own_data){ 0 };
    bool npz = len >= 4 && strcmp(path + len - 4, ".npz") == 0;
    int err = npz ? load_npz(out, path, d) : load_npy(out, path, d);
    if (!err && out->own.x.rows == 0)
        err = sherd__fail(d, SHERD_ESHAPE, NULL, "%s: there are no examples", path);
    return err;
}

void sherd__own_close(sherd__own_data *x)
{
    sherd_npy_close(x->npy);
    sherd__free(x->members[0]);
    sherd__free(x->members[1]);
    *x = (sherd__own_data){ 0 };
}
