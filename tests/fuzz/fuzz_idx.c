/* IDX files, gzipped or not: what parses has as many values as its shape requires, all readable. */
#include <assert.h>

#include "store/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    sherd__idx x;
    sherd_diag d = { 0 };
    int err = sherd__idx_parse(&x, data, len, "fuzz", &d);
    if (err) {
        assert(d.code == err && d.message[0]);
        return 0;
    }
    unsigned sum = 0;
    for (size_t i = 0; i < x.rows * x.cols; i++) sum += x.values[i];
    assert(x.rows == x.shape[0] && sum <= 255u * (x.rows * x.cols));
    sherd__idx_fini(&x);
    return 0;
}
