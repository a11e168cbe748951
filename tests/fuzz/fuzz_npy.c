/* .npy files: a header that parses describes values within the file, and is written as a header
 * that parses to the same values. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sherd/npy.h"
#include "store/npy_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static volatile unsigned char seen; /* prevents that reading is optimised away */

/* Reads through a file, as users do: every value is read, which a sanitizer checks. */
static void open_file(const uint8_t *data, size_t len)
{
    char path[40];
    sherd_npy *f;
    sherd_diag d = { 0 };
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    assert(fd >= 0 && write(fd, data, len) == (ssize_t)len);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int err = sherd_npy_open(&f, path, &d);
    if (err) {
        assert(!f && d.code == err && d.message[0]);
    } else {
        sherd_view v = sherd_npy_view(f);
        size_t size = sherd_dtype_size(v.dtype);
        unsigned char sum = 0;
        assert(v.rows * v.cols * size <= len);
        for (size_t i = 0; i < v.rows * v.cols * size; i++) sum ^= ((const uint8_t *)v.data)[i];
        seen = sum;
        sherd_npy_close(f);
    }
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    sherd__npy_header h, back;
    sherd_diag d = { 0 };
    int err = sherd__npy_header_parse(&h, data, len, "fuzz", &d);
    if (err) {
        assert(d.code == err && d.message[0]);
    } else {
        uint8_t out[SHERD__NPY_HEADER_OUT];
        size_t n = sherd__npy_header_format(out, h.dtype, h.ndim, h.rows, h.cols);
        assert(h.data_at <= len && h.ndim <= 2);
        assert(sherd__npy_header_parse(&back, out, n, "fuzz", NULL) == 0);
        assert(back.dtype == h.dtype && back.rows == h.rows && back.cols == h.cols);
        assert(back.ndim == h.ndim && back.data_len == h.data_len);
    }
    open_file(data, len);
    return 0;
}
