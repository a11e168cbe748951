/* CSV: what parses is finite unless it is an operand, and has as many numbers as its shape
 * requires, all readable, for any request of columns. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "store/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static char *names[] = { "a", "y" };
    static const sherd__namelist list = { .at = names, .len = 2 };
    static const sherd__csv_want wants[] = {
        { .targets = 1, .labels = true, .names = true },
        { .targets = 1, .labels = true, .names = true, .columns = &list },
        { .targets = 1,
          .labels = true,
          .classes = &list,
          .columns = &list,
          .label = "b",
          .inputs = 2 },
        { .targets = 1, .labels = true },
        { .targets = 1, .labels = true, .label = "y", .inputs = 2 },
        { .targets = 1, .label = "y", .label_optional = true, .inputs = 2 },
        { .targets = 2 },
        { .targets = 1, .label = "y" },
        { .inputs = 3 },
        { .operand = true },
    };
    for (size_t w = 0; w < sizeof wants / sizeof *wants; w++) {
        sherd__csv x;
        sherd_diag d = { 0 };
        int err = sherd__csv_parse(&x, data, len, "fuzz", &wants[w], &d);
        if (err) {
            assert(d.code == err && d.message[0]);
            continue;
        }
        uint32_t labels = 0;
        assert(x.rows > 0 && x.inputs > 0 && (!x.labels || !x.values));
        for (size_t i = 0; i < x.rows * x.inputs; i++) assert(wants[w].operand || isfinite(x.x[i]));
        for (size_t i = 0; x.values && i < x.rows * wants[w].targets; i++)
            assert(isfinite(x.values[i]));
        for (size_t i = 0; x.labels && i < x.rows; i++) labels |= x.labels[i];
        assert(!x.labels || labels <= UINT32_MAX);
        for (size_t i = 0; x.classes.len > 0 && i < x.rows; i++)
            assert(x.labels[i] < x.classes.len);
        for (size_t i = 1; i < x.classes.len; i++)
            assert(strcmp(x.classes.at[i - 1], x.classes.at[i]) < 0);
        assert(x.columns.len == 0 || x.columns.len == x.inputs);
        sherd__csv_fini(&x);
    }
    return 0;
}
