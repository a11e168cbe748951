/*
 * Schemas. In a file every part is an optional member, so that models of data without names are as
 * before. The file is not trusted: lengths are compared with the network before memory
 * is allocated, and names are those that a data file may have.
 */
#include "lib/schema.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "matrix/view.h"

static int no_memory(sherd_diag *d)
{
    return sherd__fail_memory(d, "the names of columns and classes");
}

/* ---- in memory ------------------------------------------------------------------------------- */

static int copy_numbers(double **out, const double *x, size_t len)
{
    if (!x) return SHERD_OK;
    *out = sherd__alloc((len + 1) * sizeof **out);
    if (!*out) return SHERD_ENOMEM;
    memcpy(*out, x, len * sizeof **out);
    return SHERD_OK;
}

int sherd__schema_copy(sherd__schema *out, const sherd__schema *x, sherd_diag *d)
{
    *out = (sherd__schema){ .inputs = x->inputs };
    int err = sherd__namelist_copy(&out->columns, &x->columns);
    if (!err) err = sherd__namelist_copy(&out->target, &x->target);
    if (!err) err = sherd__namelist_copy(&out->classes, &x->classes);
    if (!err) err = copy_numbers(&out->mean, x->mean, x->inputs);
    if (!err) err = copy_numbers(&out->deviation, x->deviation, x->inputs);
    if (!err) return SHERD_OK;
    sherd__schema_fini(out);
    return no_memory(d);
}

void sherd__schema_fini(sherd__schema *x)
{
    sherd__namelist_fini(&x->columns);
    sherd__namelist_fini(&x->target);
    sherd__namelist_fini(&x->classes);
    sherd__free(x->mean);
    sherd__free(x->deviation);
    *x = (sherd__schema){ 0 };
}

int sherd__schema_prune(sherd__schema *x, sherd_diag *d)
{
    int err = sherd__namelist_check(&x->columns, NULL);
    if (err == SHERD_EFORMAT) sherd__namelist_fini(&x->columns);
    if (err == SHERD_ENOMEM) return no_memory(d);
    err = x->target.len > 1 ? SHERD_EFORMAT : sherd__namelist_check(&x->target, NULL);
    if (err == SHERD_EFORMAT) sherd__namelist_fini(&x->target);
    return err == SHERD_ENOMEM ? no_memory(d) : SHERD_OK;
}

int sherd__schema_measure(sherd__schema *x, const sherd__dataset *s, const char *name,
                          double divide, sherd_diag *d)
{
    x->inputs = s->x.cols;
    x->mean = sherd__calloc(x->inputs + 1, sizeof *x->mean);
    x->deviation = sherd__calloc(x->inputs + 1, sizeof *x->deviation);
    if (!x->mean || !x->deviation) return sherd__fail_memory(d, "means of %zu inputs", x->inputs);
    return sherd__dataset_measure(s, name, divide, x->mean, x->deviation, d);
}

int sherd__schema_scale(const sherd__schema *x, sherd__dataset *s, const char *name, double divide,
                        sherd_diag *d)
{
    const sherd__input_scale by = { divide, x->mean, x->deviation };
    sherd__dataset scaled;
    sherd__scan scan;
    if ((divide == 1 && !x->mean) || s->x.rows == 0) return SHERD_OK;
    int err = sherd__dataset_copy(&scaled, s, NULL, s->x.rows, &by, d);
    if (err) return err;
    sherd__dataset_fini(s);
    *s = scaled;
    if (!x->mean) return SHERD_OK;
    sherd__view_scan(s->x, &scan);
    if (scan.nonfinite == 0) return SHERD_OK;
    return sherd__fail(d, SHERD_ERANGE, "it is far from the numbers of the training data",
                       "%s: row %zu, column %zu is %g when it is standardised", name, scan.bad_row,
                       scan.bad_col, scan.bad_value);
}

/* ---- members --------------------------------------------------------------------------------- */

static int add_text(sherd__schema_members *m, const char *name, const sherd__namelist *x,
                    size_t slot)
{
    size_t len = 0;
    if (x->len == 0) return SHERD_OK;
    char *text = m->texts[slot] = sherd__namelist_text(x, '\n', &len);
    if (!text) return SHERD_ENOMEM;
    m->values[m->len] = text;
    m->arrays[m->len++] = (sherd__npz_array){ name, SHERD_U8, 1, 1, len };
    return SHERD_OK;
}

static void add_numbers(sherd__schema_members *m, const char *name, const double *x, size_t len)
{
    if (!x) return;
    m->values[m->len] = x;
    m->arrays[m->len++] = (sherd__npz_array){ name, SHERD_F64, 1, 1, len };
}

int sherd__schema_list(const sherd__schema *x, sherd__schema_members *out, sherd_diag *d)
{
    *out = (sherd__schema_members){ 0 };
    int err = add_text(out, "columns", &x->columns, 0);
    if (!err) err = add_text(out, "target", &x->target, 1);
    if (!err) err = add_text(out, "classes", &x->classes, 2);
    if (err) {
        sherd__schema_members_fini(out);
        return no_memory(d);
    }
    add_numbers(out, "input_mean", x->mean, x->inputs);
    add_numbers(out, "input_deviation", x->deviation, x->inputs);
    return SHERD_OK;
}

void sherd__schema_members_fini(sherd__schema_members *x)
{
    for (size_t i = 0; i < sizeof x->texts / sizeof *x->texts; i++) sherd__free(x->texts[i]);
    *x = (sherd__schema_members){ 0 };
}

static uint64_t text_bytes(const sherd__namelist *x)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < x->len; i++) bytes += strlen(x->at[i]) + 1;
    return bytes;
}

uint64_t sherd__schema_bytes(const sherd__schema *x)
{
    uint64_t numbers = x->mean ? 2 * sizeof(double) * x->inputs : 0;
    return numbers + text_bytes(&x->columns) + text_bytes(&x->target) + text_bytes(&x->classes) +
           (uint64_t)SHERD__SCHEMA_MEMBERS * 1024;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Reads member `name`, a text of `len` lines, if it is there. */
static int read_names(sherd__namelist *out, sherd__npz *z, const char *name, size_t len,
                      sherd_diag *d)
{
    const char *where = sherd__npz_where(z);
    int64_t i = sherd__npz_find(z, name);
    if (i < 0) return SHERD_OK;
    const sherd__npy_header *h = &sherd__npz_member_at(z, (size_t)i)->head;
    if (h->dtype != SHERD_U8 || h->data_len / (SHERD__NAME_MAX + 1) > len)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "%s: %s: expected a text of %zu lines", where,
                           name, len);
    char *text = sherd__alloc(h->data_len + 1);
    if (!text) return no_memory(d);
    int err = sherd__npz_read(z, (size_t)i, text, h->data_len, d);
    if (!err && sherd__namelist_split(out, text, h->data_len, '\n') != 0) err = no_memory(d);
    sherd__free(text);
    if (err) return err;
    err = out->len == len ? sherd__namelist_check(out, NULL) : SHERD_EFORMAT;
    if (err == SHERD_ENOMEM) return no_memory(d);
    return !err ? SHERD_OK
                : sherd__fail(d, SHERD_EFORMAT, NULL,
                              "%s: %s: expected %zu different name%s, found %zu", where, name, len,
                              len == 1 ? "" : "s", out->len);
}

static int read_numbers(double **out, sherd__npz *z, const char *name, size_t len, sherd_diag *d)
{
    int64_t at = sherd__npz_find(z, name);
    size_t found = at < 0 ? 0 : (size_t)sherd__npz_member_at(z, (size_t)at)->head.data_len;
    if (at < 0 || found / sizeof **out != len)
        return sherd__fail(d, SHERD_EFORMAT, "`sherd train -o MODEL.npz` writes models",
                           "%s: expected a member %s of %zu numbers, found %s", sherd__npz_where(z),
                           name, len, at < 0 ? "none" : "another length");
    double *x = *out = sherd__calloc(len + 1, sizeof *x);
    if (!x) return sherd__fail_memory(d, "%s of %s", name, sherd__npz_where(z));
    int err = sherd__npz_take(z, name, SHERD_F64, x, len * sizeof *x, d);
    for (size_t i = 0; i < len && !err; i++)
        if (!isfinite(x[i]))
            err = sherd__fail(d, SHERD_ERANGE, NULL, "%s: %s, entry %zu is %g", sherd__npz_where(z),
                              name, i, x[i]);
    return err;
}

/* Reads means and deviations, none of which is below 0. */
static int read_scaling(sherd__schema *x, sherd__npz *z, size_t inputs, sherd_diag *d)
{
    x->inputs = inputs;
    int err = read_numbers(&x->mean, z, "input_mean", inputs, d);
    if (!err) err = read_numbers(&x->deviation, z, "input_deviation", inputs, d);
    for (size_t i = 0; i < inputs && !err; i++)
        if (!(x->deviation[i] > 0))
            err = sherd__fail(d, SHERD_ERANGE, NULL,
                              "%s: input_deviation, entry %zu is %g: expected a number above 0",
                              sherd__npz_where(z), i, x->deviation[i]);
    return err;
}

int sherd__schema_read(sherd__schema *out, sherd__npz *z, const sherd__recipe *r, size_t outputs,
                       bool needed, sherd_diag *d)
{
    size_t inputs = 0;
    *out = (sherd__schema){ 0 };
    if (!sherd__form_size(r->in, &inputs))
        return sherd__fail(d, SHERD_ESHAPE, NULL, "%s: too many inputs", sherd__npz_where(z));
    int err = read_names(&out->columns, z, "columns", inputs, d);
    if (!err) err = read_names(&out->target, z, "target", 1, d);
    if (!err) err = read_names(&out->classes, z, "classes", outputs, d);
    if (!err && r->standardise && (needed || sherd__npz_find(z, "input_mean") >= 0))
        err = read_scaling(out, z, inputs, d);
    if (err) sherd__schema_fini(out);
    return err;
}
