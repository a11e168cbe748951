/* Some thousand numbers at a time, so that the text of a large matrix takes no memory. */
#include "store/csv_write.h"

#include <math.h>
#include <stdio.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/decimal.h"
#include "core/diag.h"
#include "matrix/view.h"

#define BLOCK 512u /* numbers that are read at once */
#define FULL                                                                                       \
    ((size_t)64 << 10) /* bytes of text that are written at once, and at most a block more */

int sherd__csv_append(sherd__buf *text, const double *values, size_t len, char end)
{
    char number[32];
    int err = 0;
    for (size_t i = 0; i < len && !err; i++) {
        int n = isnan(values[i]) ? snprintf(number, sizeof number, "nan")
                                 : sherd__decimal_write(number, sizeof number - 1, 17, values[i]);
        number[n] = i + 1 == len ? end : ',';
        err = sherd__buf_append(text, number, (size_t)n + 1);
    }
    return err;
}

static int append_row(sherd__buf *text, sherd__file *f, sherd_view v, size_t row, sherd_diag *d)
{
    double values[BLOCK];
    int err = SHERD_OK;
    for (size_t at = 0, n; at < v.cols && !err; at += n) {
        n = v.cols - at < BLOCK ? v.cols - at : BLOCK;
        sherd__view_row_f64(v, row, at, n, values);
        if (sherd__csv_append(text, values, n, at + n == v.cols ? '\n' : ','))
            return sherd__fail_memory(d, "the text of %zu numbers", n);
        if (text->len < FULL) continue;
        err = sherd__file_write(f, text->data, text->len, d);
        text->len = 0;
    }
    return err;
}

int sherd__csv_write(sherd__file *f, sherd_view v, sherd_diag *d)
{
    sherd__buf text;
    int err = SHERD_OK;
    sherd__buf_init(&text, 2 * FULL, 0);
    for (size_t i = 0; i < v.rows && !err; i++) err = append_row(&text, f, v, i, d);
    if (!err && text.len > 0) err = sherd__file_write(f, text.data, text.len, d);
    sherd__buf_fini(&text);
    return err;
}

int sherd__csv_reserve(sherd__file *f, size_t rows, size_t cols, sherd_diag *d)
{
    size_t bytes;
    if (!sherd__mul(rows, cols, &bytes) || !sherd__mul(bytes, 2, &bytes)) bytes = SIZE_MAX;
    return sherd__file_reserve(f, bytes, d);
}
