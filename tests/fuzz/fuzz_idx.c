/* Parses IDX files, gzipped or not. An accepted file has every value that its shape declares. */
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
    size_t cols = 1;
    for (unsigned i = 1; i < x.ndim; i++) cols *= x.shape[i];
    assert(x.rows == x.shape[0] && x.cols == cols);
    /* Reads every value, so that sanitizers see a short buffer. */
    volatile uint8_t last = 0;
    for (size_t i = 0; i < x.rows * x.cols; i++) last = x.values[i];
    (void)last;
    sherd__idx_fini(&x);
    return 0;
}
