/*
 * The reports of earlier runs. A checkpoint contains a table of them, so that a resumed run has the
 * whole curve. The table has only figures that a repetition of the run would have too: a resumed
 * run then writes the same checkpoints as an uninterrupted one. Since a training may write a
 * checkpoint for each report, its steps are divided into HISTORY_ROWS parts, and the table has the
 * first report of each part, and the newest report.
 */
#include <assert.h>
#include <math.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "lib/train/training.h"

#define HISTORY_ROWS 500u

enum { EPOCH, STEP, LOSS, ACCURACY, VALIDATION_LOSS, VALIDATION_ACCURACY, RATE, COLS };

static_assert(COLS == SHERD__HISTORY_COLS, "the columns of docs/TRAINING.md");

int sherd__training_history(const sherd_training *t, double **out, size_t *len, sherd_diag *d)
{
    uint64_t width = (sherd__trainer_steps(t->trainer) - 1) / HISTORY_ROWS + 1, next = 1;
    double *rows = sherd__calloc(t->epochs_len, SHERD__HISTORY_COLS * sizeof *rows);
    *out = NULL;
    *len = 0;
    if (!rows) return sherd__fail_memory(d, "checkpoints");
    for (size_t i = 0; i < t->epochs_len; i++) {
        const sherd_epoch *e = &t->epochs[i];
        double *row = rows + *len * SHERD__HISTORY_COLS;
        if (e->step < next && i + 1 < t->epochs_len) continue;
        next = ((e->step - 1) / width + 1) * width + 1;
        row[EPOCH] = (double)e->epoch;
        row[STEP] = (double)e->step;
        row[LOSS] = e->loss;
        row[ACCURACY] = e->accuracy;
        row[VALIDATION_LOSS] = e->validation_loss;
        row[VALIDATION_ACCURACY] = e->validation_accuracy;
        row[RATE] = e->rate;
        ++*len;
    }
    *out = rows;
    return SHERD_OK;
}

/* Returns whether a row can be one of a report, and comes after the step `after`. */
static bool valid(const sherd_training *t, const double *row, double after)
{
    double last = (double)sherd__trainer_state(t->trainer)->step;
    return row[STEP] > after && row[STEP] <= last && row[STEP] == floor(row[STEP]) &&
           row[EPOCH] >= 1 && row[EPOCH] <= row[STEP] && row[EPOCH] == floor(row[EPOCH]) &&
           !isnan(row[LOSS]);
}

static int take_rows(sherd_training *t, const double *rows, size_t len, const char *where,
                     sherd_diag *d)
{
    t->epochs = sherd__calloc(len, sizeof *t->epochs);
    if (!t->epochs) return sherd__fail_memory(d, "%zu epochs", len);
    t->epochs_cap = len;
    for (size_t i = 0; i < len; i++) {
        const double *row = rows + i * SHERD__HISTORY_COLS;
        if (!valid(t, row, i > 0 ? rows[(i - 1) * SHERD__HISTORY_COLS + STEP] : 0))
            return sherd__fail(d, SHERD_EFORMAT, NULL, "%s: history: row %zu is no report", where,
                               i);
        t->epochs[i] = (sherd_epoch){ .epoch = (uint64_t)row[EPOCH],
                                      .step = (uint64_t)row[STEP],
                                      .loss = row[LOSS],
                                      .accuracy = row[ACCURACY],
                                      .validation_loss = row[VALIDATION_LOSS],
                                      .validation_accuracy = row[VALIDATION_ACCURACY],
                                      .float64_accuracy = NAN,
                                      .float64_validation_accuracy = NAN,
                                      .rate = row[RATE],
                                      .epsilon = NAN,
                                      .delta = NAN,
                                      .seconds = NAN,
                                      .examples_per_second = NAN };
    }
    t->epochs_len = len;
    return SHERD_OK;
}

int sherd__training_history_take(sherd_training *t, sherd__npz *z, sherd_diag *d)
{
    int64_t i = sherd__npz_find(z, "history");
    if (i < 0) return SHERD_OK; /* before the first report, or written by sherd 0.1 */
    const sherd__npy_header *h = &sherd__npz_member_at(z, (size_t)i)->head;
    if (h->ndim != 2 || h->cols != SHERD__HISTORY_COLS || h->fortran || h->rows == 0 ||
        h->rows > HISTORY_ROWS + 1)
        return sherd__fail(d, SHERD_EFORMAT, NULL,
                           "%s: history: expected up to %u rows of %u numbers", sherd__npz_where(z),
                           HISTORY_ROWS + 1, SHERD__HISTORY_COLS);
    size_t len = h->rows, bytes = len * SHERD__HISTORY_COLS * sizeof(double);
    double *rows = sherd__alloc(bytes);
    if (!rows) return sherd__fail_memory(d, "checkpoints");
    int err = sherd__npz_take(z, "history", SHERD_F64, rows, bytes, d);
    if (!err) err = take_rows(t, rows, len, sherd__npz_where(z), d);
    sherd__free(rows);
    return err;
}
