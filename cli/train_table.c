/*
 * The table of `sherd train`: a line for each report, printed when it is made. Figures that a
 * training does not have (accuracy of values, validation without data) have no column. After each
 * ROWS_EACH lines fewer reports are shown: every second, fifth, tenth and so on. The end of the
 * table then says how many are not shown.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/progress.h"
#include "cli/rows.h"
#include "cli/train.h"

#define ROWS_EACH 100u
#define WIDTH_MAX 79
#define GAP 2 /* between columns (cli/rows.h) */

static const char *loss_text(double x, char out[48])
{
    if (isnan(x)) snprintf(out, 48, "-");
    else snprintf(out, 48, fabs(x) < 10 ? "%.7f" : fabs(x) < 1e5 ? "%.3f" : "%.3e", x);
    return out;
}

static const char *accuracy_text(double x, char out[48])
{
    if (isnan(x)) snprintf(out, 48, "-");
    else snprintf(out, 48, "%.5f", x);
    return out;
}

#define EPOCH(x) ((const sherd_epoch *)(x))

static const char *loss(const void *x, char out[48])
{
    return loss_text(EPOCH(x)->loss, out);
}

static const char *accuracy(const void *x, char out[48])
{
    return accuracy_text(EPOCH(x)->accuracy, out);
}

static const char *validation_loss(const void *x, char out[48])
{
    return loss_text(EPOCH(x)->validation_loss, out);
}

static const char *validation_accuracy(const void *x, char out[48])
{
    return accuracy_text(EPOCH(x)->validation_accuracy, out);
}

static const char *float64(const void *x, char out[48])
{
    double validation = EPOCH(x)->float64_validation_accuracy;
    return accuracy_text(isnan(validation) ? EPOCH(x)->float64_accuracy : validation, out);
}

static const char *rate(const void *x, char out[48])
{
    snprintf(out, 48, "%.0f", EPOCH(x)->examples_per_second);
    return out;
}

static void add(sherd__train_table *a, bool present, sherd__column column)
{
    size_t len = 0;
    int width = column.width;
    for (; a->columns[len].head; len++) width += a->columns[len].width + GAP;
    if (present && width <= WIDTH_MAX) a->columns[len] = column;
}

/* Chooses the columns that this training has figures for, as its first report shows. */
static void choose_columns(const sherd__train *t, sherd__train_table *a, const sherd_epoch *e,
                           const sherd_train_report *r)
{
    bool steps = r->steps_per_report % r->steps_per_epoch != 0;
    add(a, true, (sherd__column){ "epoch", 5, "epoch", NULL });
    add(a, steps, (sherd__column){ "step", 7, "step", NULL });
    add(a, true, (sherd__column){ "loss", 9, NULL, loss });
    add(a, !isnan(e->accuracy), (sherd__column){ "accuracy", 8, NULL, accuracy });
    add(a, !isnan(e->validation_loss), (sherd__column){ "val. loss", 9, NULL, validation_loss });
    add(a, !isnan(e->validation_accuracy),
        (sherd__column){ "val. acc.", 9, NULL, validation_accuracy });
    add(a, t->o.check, (sherd__column){ "float64", 8, NULL, float64 });
    add(a, true, (sherd__column){ "time", 8, "seconds", NULL });
    add(a, true, (sherd__column){ "examples/s", 10, NULL, rate });
}

/* Returns the number after n in 1, 2, 5, 10, 20, ... */
static uint64_t next_stride(uint64_t n)
{
    uint64_t digit = n;
    while (digit >= 10) digit /= 10;
    return digit == 2 ? n / 2 * 5 : 2 * n;
}

static void print_row(sherd__train *t, const sherd_epoch *e)
{
    char line[256];
    FILE *out = t->cli->json ? stderr : stdout;
    sherd__progress_clear();
    fprintf(out, "%s\n",
            sherd__row_text(line, sizeof line, t->table.columns, e, sherd_epoch_fields));
    fflush(out);
}

void sherd__train_table_add(sherd__train *t, const sherd_epoch *e)
{
    sherd__train_table *a = &t->table;
    sherd_train_report r = { .size = sizeof r };
    if (t->cli->json && t->cli->verbose == 0) return;
    (void)!sherd_training_report_get(t->training, &r, NULL);
    if (a->reports++ == 0) {
        a->stride = 1;
        choose_columns(t, a, e, &r);
        print_row(t, NULL);
    }
    bool shown = a->reports == 1 || e->step == r.steps ||
                 e->step / r.steps_per_report % a->stride == 0;
    if (shown) print_row(t, e);
    if (shown && ++a->shown % ROWS_EACH == 0) a->stride = next_stride(a->stride);
    a->pending = !shown;
    if (a->pending) a->last = *e;
}

void sherd__train_table_end(sherd__train *t)
{
    sherd__train_table *a = &t->table;
    const char *log = sherd__opt_text(t->cli, "log");
    if (a->pending) print_row(t, &a->last);
    a->shown += a->pending;
    a->pending = false;
    if (a->shown == a->reports) return;
    sherd__progress_clear();
    fprintf(t->cli->json ? stderr : stdout,
            "... %" PRIu64 " of %" PRIu64 " reports are not shown; %s has them all\n",
            a->reports - a->shown, a->reports, log ? "the log" : "--log FILE");
}
