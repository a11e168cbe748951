/*
 * What is made of predictions: files of them, and counts. A .csv is written a row at a time, with
 * numbers that strtod reads as the same bits.
 */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buf.h"
#include "core/diag.h"
#include "lib/data.h"
#include "matrix/view.h"
#include "sherd/npy.h"
#include "store/csv_write.h"

#define ROW_MAX ((size_t)64 << 20)

/* ---- .csv ------------------------------------------------------------------------------------ */

static int add_text(sherd__buf *row, const char *text)
{
    char quoted[SHERD__NAME_QUOTED];
    return sherd__buf_append(row, quoted, sherd__name_quoted(text, quoted));
}

/* Ends a field, or with the last one the line. */
static int end_field(sherd__buf *row, bool last)
{
    return sherd__buf_append(row, last ? "\n" : ",", 1);
}

/* Outputs of a network for classes are not classes: with cross-entropy they are logits, the inputs
 * of the softmax. The output for one value has the name of the target. */
static int add_output_name(sherd__buf *row, const sherd_model *m, size_t i, size_t width)
{
    const sherd__namelist *target = &m->schema.target;
    const sherd__recipe *r = &m->recipe->recipe;
    const char *what = r->loss == SHERD__LOSS_CROSS_ENTROPY ? "logit" : "output",
               *class = sherd_model_class_name(m, i);
    char name[SHERD__NAME_MAX + 32];
    if (r->target_values && target->len == width) return add_text(row, target->at[i]);
    if (class) snprintf(name, sizeof name, "%s_%s", what, class);
    else snprintf(name, sizeof name, "%s%zu", what, i);
    return add_text(row, name);
}

static int add_header(sherd__buf *row, const sherd_model *m, size_t width, bool labels)
{
    const sherd__namelist *target = &m->schema.target;
    int err = 0;
    if (labels) {
        err = add_text(row, target->len > 0 ? target->at[0] : "label");
        return err ? err : end_field(row, true);
    }
    for (size_t i = 0; i < width && !err; i++) {
        err = add_output_name(row, m, i, width);
        if (!err) err = end_field(row, i + 1 == width);
    }
    return err;
}

static int add_row(sherd__buf *row, const sherd_model *m, const double *y, size_t width,
                   bool labels)
{
    char number[32];
    uint32_t label;
    if (labels) {
        sherd_predict_labels(y, width, 1, width, &label);
        const char *name = sherd_model_class_name(m, label);
        snprintf(number, sizeof number, "%u", (unsigned)label);
        int err = add_text(row, name ? name : number);
        return err ? err : end_field(row, true);
    }
    return sherd__csv_append(row, y, width, '\n');
}

static int write_csv(sherd__file *f, const sherd_model *m, sherd_view y, bool labels, sherd_diag *d)
{
    double *values = sherd__alloc((y.cols + 1) * sizeof *values);
    sherd__buf row;
    sherd__buf_init(&row, ROW_MAX, 0);
    int err = values ? add_header(&row, m, y.cols, labels) : SHERD_ENOMEM;
    if (err) err = sherd__fail_memory(d, "a row of %zu outputs", y.cols);
    else err = sherd__file_write(f, row.data, row.len, d);
    for (size_t i = 0; i < y.rows && !err; i++) {
        row.len = 0;
        sherd__view_row_f64(y, i, 0, y.cols, values);
        if (add_row(&row, m, values, y.cols, labels) != 0)
            err = sherd__fail_memory(d, "a row of %zu outputs", y.cols);
        else err = sherd__file_write(f, row.data, row.len, d);
    }
    sherd__buf_fini(&row);
    sherd__free(values);
    return err;
}

static int save_csv(const char *path, const sherd_model *m, sherd_view y, bool labels,
                    sherd_diag *d)
{
    sherd__file *f = NULL;
    int err = sherd__file_begin(&f, path, SHERD__FILE_PUBLIC, d);
    if (err) return err;
    err = write_csv(f, m, y, labels, d);
    if (!err) return sherd__file_commit(f, d);
    sherd__file_abort(f);
    return err;
}

/* ---- public calls ---------------------------------------------------------------------------- */

static int save_labels(const char *path, sherd_view y, sherd_diag *d)
{
    uint32_t *labels = sherd__calloc(y.rows + 1, sizeof *labels);
    double *row = sherd__alloc((y.cols + 1) * sizeof *row);
    int err = labels && row ? 0 : sherd__fail_memory(d, "%zu labels", y.rows);
    for (size_t i = 0; i < y.rows && !err; i++) {
        sherd__view_row_f64(y, i, 0, y.cols, row);
        sherd_predict_labels(row, y.cols, 1, y.cols, &labels[i]);
    }
    if (!err) err = sherd_npy_save(path, sherd_view_c(labels, SHERD_U32, y.rows, 1), d);
    sherd__free(labels);
    sherd__free(row);
    return err;
}

int sherd_model_predictions_save(const sherd_model *m, const char *path, sherd_view y, bool labels,
                                 sherd_diag *d)
{
    int err = sherd__view_check(y, "predictions", d);
    if (err) return err;
    if (y.cols != sherd_model_outputs(m))
        return sherd__fail(d, SHERD_ESHAPE, NULL,
                           "predictions have %zu columns: the network gives %zu", y.cols,
                           sherd_model_outputs(m));
    if (sherd__data_ends_in(path, ".csv")) return save_csv(path, m, y, labels, d);
    return labels ? save_labels(path, y, d) : sherd_npy_save(path, y, d);
}

void sherd_predict_confusion(const uint32_t *labels, const uint32_t *predicted, size_t rows,
                             size_t outputs, uint64_t *counts)
{
    memset(counts, 0, outputs * outputs * sizeof *counts);
    for (size_t i = 0; i < rows; i++)
        if (labels[i] < outputs && predicted[i] < outputs)
            counts[labels[i] * outputs + predicted[i]]++;
}
