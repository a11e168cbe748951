/* One line at a time, so that the text of a large matrix takes no memory. */
#include "store/csv_write.h"

#include <math.h>
#include <stdio.h>

#include "core/alloc.h"
#include "core/decimal.h"
#include "core/diag.h"
#include "matrix/view.h"

#define LINE_MAX_BYTES ((size_t)1 << 30)

int sherd__csv_append(sherd__buf *line, const double *values, size_t len)
{
    char number[32];
    int err = 0;
    for (size_t i = 0; i < len && !err; i++) {
        int n = isnan(values[i]) ? snprintf(number, sizeof number, "nan")
                                 : sherd__decimal_write(number, sizeof number, 17, values[i]);
        err = sherd__buf_append(line, number, (size_t)n);
        if (!err) err = sherd__buf_append(line, i + 1 == len ? "\n" : ",", 1);
    }
    return err;
}

int sherd__csv_write(sherd__file *f, sherd_view v, sherd_diag *d)
{
    sherd__buf line;
    double *row = sherd__alloc((v.cols + 1) * sizeof *row);
    int err = row ? SHERD_OK : SHERD_ENOMEM;
    sherd__buf_init(&line, LINE_MAX_BYTES, 0);
    for (size_t i = 0; i < v.rows && !err; i++) {
        line.len = 0;
        sherd__view_row_f64(v, i, 0, v.cols, row);
        err = sherd__csv_append(&line, row, v.cols);
        if (!err) err = sherd__file_write(f, line.data, line.len, d);
    }
    sherd__buf_fini(&line);
    sherd__free(row);
    return err == SHERD_ENOMEM ? sherd__fail_memory(d, "a line of %zu numbers", v.cols) : err;
}
