#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "sherd/npy.h"
#include "tests/unit/store/scratch.h"

/* Element (r, c) of the matrices that both sides make; every dtype can represent it. */
static int value_at(size_t r, size_t c)
{
    return (int)((r * 7 + c * 3) % 101);
}

static double element(sherd_view v, size_t r, size_t c)
{
    ptrdiff_t at = (ptrdiff_t)r * v.row_stride + (ptrdiff_t)c * v.col_stride;
    switch (v.dtype) {
    case SHERD_F64: return ((const double *)v.data)[at];
    case SHERD_F32: return (double)((const float *)v.data)[at];
    case SHERD_U8: return ((const uint8_t *)v.data)[at];
    case SHERD_U16: return ((const uint16_t *)v.data)[at];
    case SHERD_U32: return ((const uint32_t *)v.data)[at];
    case SHERD_I8: return ((const int8_t *)v.data)[at];
    case SHERD_I16: return ((const int16_t *)v.data)[at];
    case SHERD_I32: return ((const int32_t *)v.data)[at];
    case SHERD_I64: return (double)((const int64_t *)v.data)[at];
    }
    return -1;
}

static void set_element(void *data, sherd_dtype t, size_t at, int v)
{
    switch (t) {
    case SHERD_F64: ((double *)data)[at] = v; break;
    case SHERD_F32: ((float *)data)[at] = (float)v; break;
    case SHERD_U8: ((uint8_t *)data)[at] = (uint8_t)v; break;
    case SHERD_U16: ((uint16_t *)data)[at] = (uint16_t)v; break;
    case SHERD_U32: ((uint32_t *)data)[at] = (uint32_t)v; break;
    case SHERD_I8: ((int8_t *)data)[at] = (int8_t)v; break;
    case SHERD_I16: ((int16_t *)data)[at] = (int16_t)v; break;
    case SHERD_I32: ((int32_t *)data)[at] = v; break;
    case SHERD_I64: ((int64_t *)data)[at] = v; break;
    }
}

static const char *const names[] = { NULL, "f8", "f4", "u1", "u2", "u4", "i1", "i2", "i4", "i8" };
static const size_t shapes[][2] = { { 0, 0 }, { 0, 5 }, { 5, 0 },   { 1, 1 },    { 1, 9 },
                                    { 9, 1 }, { 3, 4 }, { 64, 65 }, { 300, 517 } };
#define SHAPES (sizeof shapes / sizeof shapes[0])

static void files_saved_by_numpy_are_read(void **s)
{
    (void)s;
    static const char program[] =
        "import numpy as np\n"
        "names = 'f8 f4 u1 u2 u4 i1 i2 i4 i8'.split()\n"
        "shapes = [(0,0),(0,5),(5,0),(1,1),(1,9),(9,1),(3,4),(64,65),(300,517)]\n"
        "for name in names:\n"
        "    for k, (n, m) in enumerate(shapes):\n"
        "        r, c = np.ogrid[:n, :m]\n"
        "        a = ((r * 7 + c * 3) % 101).astype(name)\n"
        "        np.save(f'C-{name}-{k}', np.ascontiguousarray(a))\n"
        "        np.save(f'F-{name}-{k}', np.asfortranarray(a))\n"
        "        with open(f'2-{name}-{k}.npy', 'wb') as f:\n"
        "            np.lib.format.write_array(f, a, version=(2, 0))\n"
        "np.save('one', np.arange(5.0)); np.save('zero', np.float64(3))\n";
    assert_int_equal(scratch_python(program), 0);
    for (int t = SHERD_F64; t <= SHERD_I64; t++)
        for (size_t k = 0; k < SHAPES; k++)
            for (const char *form = "CF2"; *form; form++) {
                char name[32];
                sherd_npy *f;
                sherd_diag d = { 0 };
                snprintf(name, sizeof name, "%c-%s-%zu.npy", *form, names[t], k);
                if (sherd_npy_open(&f, scratch_path(name), &d)) fail_msg("%s", d.message);
                sherd_view v = sherd_npy_view(f);
                assert_int_equal(v.dtype, t);
                assert_int_equal(v.rows, shapes[k][0]);
                assert_int_equal(v.cols, shapes[k][1]);
                assert_int_equal(sherd_npy_ndim(f), 2);
                for (size_t r = 0; r < v.rows; r++)
                    for (size_t c = 0; c < v.cols; c++)
                        if ((int)element(v, r, c) != value_at(r, c)) fail_msg("%s", name);
                assert_int_equal(sherd_npy_check(f, NULL), 0);
                sherd_npy_close(f);
            }
    sherd_npy *f;
    assert_int_equal(sherd_npy_open(&f, scratch_path("one.npy"), NULL), 0);
    assert_int_equal(sherd_npy_ndim(f), 1);
    assert_true(sherd_npy_view(f).rows == 1 && sherd_npy_view(f).cols == 5);
    sherd_npy_close(f);
    assert_int_equal(sherd_npy_open(&f, scratch_path("zero.npy"), NULL), 0);
    assert_int_equal(sherd_npy_ndim(f), 0);
    assert_true(element(sherd_npy_view(f), 0, 0) == 3);
    sherd_npy_close(f);
}

/* Saves every dtype and shape in C order, transposed, with reversed rows, and inside a larger
 * matrix. */
static void save_all(void)
{
    for (int t = SHERD_F64; t <= SHERD_I64; t++)
        for (size_t k = 0; k < SHAPES; k++) {
            if (t != SHERD_F64 && t != SHERD_U8 && k % 4 != 0) continue; /* each save is synced */
            size_t n = shapes[k][0], m = shapes[k][1], size = sherd_dtype_size((sherd_dtype)t);
            uint8_t *c = calloc((n + 2) * (m + 2) + 1, size), *f = calloc(n * m + 1, size);
            uint8_t *p = calloc(n * m + 1, size), *back = calloc(n * m + 1, size);
            for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < m; j++) {
                    int v = value_at(i, j);
                    set_element(p, (sherd_dtype)t, i * m + j, v);
                    set_element(f, (sherd_dtype)t, j * n + i, v);
                    set_element(back, (sherd_dtype)t, (n - 1 - i) * m + j, v);
                    set_element(c, (sherd_dtype)t, (i + 1) * (m + 2) + j + 1, v);
                }
            sherd_view reversed = sherd_view_c(back, (sherd_dtype)t, n, m);
            if (n) reversed.data = back + (n - 1) * m * size;
            reversed.row_stride = -reversed.row_stride;
            sherd_view views[4] = {
                sherd_view_c(p, (sherd_dtype)t, n, m),
                sherd_view_t(sherd_view_c(f, (sherd_dtype)t, m, n)),
                sherd_view_sub(sherd_view_c(c, (sherd_dtype)t, n + 2, m + 2), 1, n, 1, m),
                reversed,
            };
            for (int i = 0; i < 4; i++) {
                char name[32];
                snprintf(name, sizeof name, "%d-%s-%zu.npy", i, names[t], k);
                assert_int_equal(sherd_npy_save(scratch_path(name), views[i], NULL), 0);
            }
            free(c);
            free(f);
            free(p);
            free(back);
        }
}

static void numpy_reads_saved_files(void **s)
{
    (void)s;
    static const char program[] =
        "import numpy as np\n"
        "names = 'f8 f4 u1 u2 u4 i1 i2 i4 i8'.split()\n"
        "shapes = [(0,0),(0,5),(5,0),(1,1),(1,9),(9,1),(3,4),(64,65),(300,517)]\n"
        "for name in names:\n"
        "    for k, (n, m) in enumerate(shapes):\n"
        "        r, c = np.ogrid[:n, :m]\n"
        "        want = ((r * 7 + c * 3) % 101).astype(name)\n"
        "        if name not in ('f8', 'u1') and k % 4: continue\n"
        "        for form in range(4):\n"
        "            got = np.load(f'{form}-{name}-{k}.npy')\n"
        "            assert got.dtype == want.dtype and got.shape == (n, m), (form, name, k)\n"
        "            assert (got == want).all(), (form, name, k)\n"
        "            assert got.flags.c_contiguous\n";
    save_all();
    assert_int_equal(scratch_python(program), 0);
    scratch_clear();
}

static void rows_and_tiles_write_the_same_file(void **s)
{
    (void)s;
    double a[7 * 11] = { 0 };
    size_t len[3];
    uint8_t *bytes[3];
    sherd_npy_writer *w;
    sherd_view v = sherd_view_c(a, SHERD_F64, 7, 11);
    for (int i = 0; i < 77; i++) a[i] = i * 0.37;
    assert_int_equal(sherd_npy_save(scratch_path("0.npy"), v, NULL), 0);
    assert_int_equal(sherd_npy_writer_new(&w, scratch_path("1.npy"), SHERD_F64, 7, 11, NULL), 0);
    for (size_t r = 0; r < 7; r += 3) {
        sherd_view rows = sherd_view_sub(v, r, r + 3 <= 7 ? 3 : 1, 0, 11);
        assert_int_equal(sherd_npy_writer_rows(w, rows, NULL), 0);
    }
    assert_int_equal(sherd_npy_writer_commit(w, NULL), 0);
    assert_int_equal(sherd_npy_writer_new(&w, scratch_path("2.npy"), SHERD_F64, 7, 11, NULL), 0);
    for (size_t c = 11; c > 0; c = c > 4 ? c - 4 : 0)
        for (size_t r = 0; r < 7; r += 2) {
            size_t c0 = c > 4 ? c - 4 : 0, rows = r + 2 <= 7 ? 2 : 1;
            sherd_view tile = sherd_view_sub(v, r, rows, c0, c - c0);
            assert_int_equal(sherd_npy_writer_tile(w, r, c0, tile, NULL), 0);
        }
    assert_int_equal(sherd_npy_writer_commit(w, NULL), 0);
    for (int i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "%d.npy", i);
        bytes[i] = scratch_read(scratch_path(name), &len[i]);
        assert_int_equal(len[i], len[0]);
        assert_memory_equal(bytes[i], bytes[0], len[0]);
    }
    for (int i = 0; i < 3; i++) free(bytes[i]);
}

static void places_that_no_tile_covers_are_zero(void **s)
{
    (void)s;
    float one = 1;
    sherd_npy_writer *w;
    sherd_npy *f;
    assert_int_equal(sherd_npy_writer_new(&w, scratch_path("z.npy"), SHERD_F32, 3, 3, NULL), 0);
    assert_int_equal(sherd_npy_writer_tile(w, 1, 1, sherd_view_c(&one, SHERD_F32, 1, 1), NULL), 0);
    assert_int_equal(sherd_npy_writer_commit(w, NULL), 0);
    assert_int_equal(sherd_npy_open(&f, scratch_path("z.npy"), NULL), 0);
    for (size_t i = 0; i < 9; i++)
        assert_true(element(sherd_npy_view(f), i / 3, i % 3) == (i == 4 ? 1 : 0));
    sherd_npy_close(f);
}

static void rows_and_tiles_that_do_not_fit_are_refused(void **s)
{
    (void)s;
    double a[16] = { 0 };
    sherd_npy_writer *w;
    scratch_clear();
    const char *path = scratch_path("f.npy");
    sherd_view v = sherd_view_c(a, SHERD_F64, 4, 4);
    assert_int_equal(sherd_npy_writer_new(&w, path, (sherd_dtype)0, 1, 1, NULL), SHERD_EINVAL);
    assert_null(w);
    assert_int_equal(sherd_npy_writer_new(&w, path, SHERD_F64, SIZE_MAX / 4, 8, NULL),
                     SHERD_EINVAL);
    assert_int_equal(sherd_npy_writer_new(&w, path, SHERD_F64, 3, 4, NULL), 0);
    assert_int_equal(sherd_npy_writer_rows(w, v, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_npy_writer_rows(w, sherd_view_c(a, SHERD_F32, 3, 4), NULL),
                     SHERD_EINVAL);
    assert_int_equal(sherd_npy_writer_rows(w, sherd_view_c(a, SHERD_F64, 3, 3), NULL),
                     SHERD_EINVAL);
    assert_int_equal(sherd_npy_writer_tile(w, 2, 0, sherd_view_c(a, SHERD_F64, 2, 1), NULL),
                     SHERD_EINVAL);
    assert_int_equal(sherd_npy_writer_tile(w, 0, 4, sherd_view_c(a, SHERD_F64, 1, 1), NULL),
                     SHERD_EINVAL);
    assert_int_equal(sherd_npy_writer_tile(w, SIZE_MAX, 0, sherd_view_c(a, SHERD_F64, 2, 1), NULL),
                     SHERD_EINVAL);
    assert_int_equal(sherd_npy_writer_rows(w, sherd_view_c(a, SHERD_F64, 2, 4), NULL), 0);
    assert_int_equal(sherd_npy_writer_commit(w, NULL), SHERD_EINVAL);
    assert_int_equal(scratch_entries(), 0);
}

static void a_header_that_leaves_values_unaligned_is_read(void **s)
{
    (void)s;
    const double values[2] = { 1.5, -2.5 };
    for (size_t pad = 0; pad < 9; pad++) {
        uint8_t b[128] = "\x93NUMPY\x01\x00";
        char dict[100];
        sherd_npy *f;
        int n = snprintf(dict, sizeof dict,
                         "{'descr':'<f8','fortran_order':False,'shape':(1,2)}%*s", (int)pad, "");
        b[8] = (uint8_t)n;
        memcpy(b + 10, dict, (size_t)n);
        memcpy(b + 10 + n, values, sizeof values);
        const char *path = scratch_write("u.npy", b, 10 + (size_t)n + sizeof values);
        assert_int_equal(sherd_npy_open(&f, path, NULL), 0);
        assert_int_equal((uintptr_t)sherd_npy_view(f).data % 8, 0);
        assert_true(element(sherd_npy_view(f), 0, 1) == -2.5);
        sherd_npy_close(f);
    }
}

static void every_truncation_is_reported(void **s)
{
    (void)s;
    double a[4] = { 1, 2, 3, 4 };
    size_t len;
    const char *path = scratch_path("t.npy");
    assert_int_equal(sherd_npy_save(path, sherd_view_c(a, SHERD_F64, 2, 2), NULL), 0);
    uint8_t *bytes = scratch_read(path, &len);
    for (size_t n = 0; n < len; n++) {
        sherd_npy *f = (void *)a;
        sherd_diag d = { 0 };
        scratch_write("cut.npy", bytes, n);
        assert_int_equal(sherd_npy_open(&f, scratch_path("cut.npy"), &d), SHERD_EFORMAT);
        assert_null(f);
        assert_non_null(strstr(d.message, "cut.npy"));
        assert_true(d.hint[0]);
    }
    free(bytes);
}

static void object_arrays_and_archives_of_numpy_are_refused(void **s)
{
    (void)s;
    static const char program[] = "import numpy as np\n"
                                  "np.save('object', np.array([[1, None]], dtype=object))\n"
                                  "np.savez('archive', a=np.eye(2))\n"
                                  "np.save('cube', np.zeros((2, 2, 2)))\n"
                                  "np.save('big', np.zeros((2, 2), '>f8'))\n";
    assert_int_equal(scratch_python(program), 0);
    static const struct {
        const char *name, *message;
        int err;
    } bad[] = { { "object.npy", "Python objects", SHERD_EFORMAT },
                { "archive.npz", "archive", SHERD_EFORMAT },
                { "cube.npy", "3 dimensions", SHERD_ESHAPE },
                { "big.npy", "big endian", SHERD_EFORMAT },
                { "missing.npy", "No such file", SHERD_EOPEN } };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        sherd_npy *f;
        sherd_diag d = { 0 };
        assert_int_equal(sherd_npy_open(&f, scratch_path(bad[i].name), &d), bad[i].err);
        assert_non_null(strstr(d.message, bad[i].message));
        assert_non_null(strstr(d.message, bad[i].name));
    }
}

static void a_pipe_is_read_and_written(void **s)
{
    (void)s;
    double a[6] = { 1, 2, 3, 4, 5, 6 };
    int ends[2];
    char in[32], out[32];
    sherd_npy *f;
    assert_int_equal(pipe(ends), 0);
    snprintf(in, sizeof in, "/dev/fd/%d", ends[0]);
    snprintf(out, sizeof out, "/dev/fd/%d", ends[1]);
    assert_int_equal(sherd_npy_save(out, sherd_view_c(a, SHERD_F64, 2, 3), NULL), 0);
    close(ends[1]);
    assert_int_equal(sherd_npy_open(&f, in, NULL), 0);
    assert_true(element(sherd_npy_view(f), 1, 2) == 6);
    sherd_npy_close(f);
    close(ends[0]);
}

static int save_past_limit(void)
{
    double *a = calloc(100000, 8);
    struct rlimit lim = { 100000, 100000 };
    sherd_diag d = { 0 };
    signal(SIGXFSZ, SIG_IGN);
    if (!a || setrlimit(RLIMIT_FSIZE, &lim)) return 1;
    int err = sherd_npy_save(scratch_path("old.npy"), sherd_view_c(a, SHERD_F64, 100, 1000), &d);
    if (err != SHERD_EIO || !strstr(d.message, "old.npy")) return 2;
    err = sherd_npy_save("/dev/full", sherd_view_c(a, SHERD_F64, 100, 1000), NULL);
    free(a);
    return err == SHERD_EIO ? 0 : 3;
}

static void a_full_disk_leaves_the_earlier_matrix(void **s)
{
    (void)s;
    double one = 1;
    sherd_npy *f;
    const char *path = scratch_path("old.npy");
    assert_int_equal(sherd_npy_save(path, sherd_view_c(&one, SHERD_F64, 1, 1), NULL), 0);
    pid_t child = fork();
    if (child == 0) _exit(save_past_limit());
    int status = 0;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(sherd_npy_open(&f, path, NULL), 0);
    assert_true(element(sherd_npy_view(f), 0, 0) == 1);
    sherd_npy_close(f);
}

static void every_failed_allocation_is_reported(void **s)
{
    (void)s;
    double one = 1;
    sherd_view v = sherd_view_c(&one, SHERD_F64, 1, 1);
    const char *path = scratch_path("m.npy");
    assert_int_equal(sherd_npy_save(path, v, NULL), 0);
    for (size_t n = 1, reached = 1; reached; n++) {
        sherd_npy *f;
        sherd__alloc_fail_nth(n);
        int err = sherd_npy_save(path, v, NULL);
        if (!err) err = sherd_npy_open(&f, path, NULL);
        reached = sherd__alloc_fail_nth(0) >= n;
        assert_int_equal(err, reached ? SHERD_ENOMEM : 0);
        if (!err) sherd_npy_close(f);
        assert_int_equal(sherd_npy_open(&f, path, NULL), 0);
        sherd_npy_close(f);
    }
    sherd_npy_close(NULL);
    sherd_npy_writer_abort(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_saved_by_numpy_are_read),
        cmocka_unit_test(numpy_reads_saved_files),
        cmocka_unit_test(rows_and_tiles_write_the_same_file),
        cmocka_unit_test(places_that_no_tile_covers_are_zero),
        cmocka_unit_test(rows_and_tiles_that_do_not_fit_are_refused),
        cmocka_unit_test(a_header_that_leaves_values_unaligned_is_read),
        cmocka_unit_test(every_truncation_is_reported),
        cmocka_unit_test(object_arrays_and_archives_of_numpy_are_refused),
        cmocka_unit_test(a_pipe_is_read_and_written),
        cmocka_unit_test(a_full_disk_leaves_the_earlier_matrix),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("store/npy", tests, scratch_setup, scratch_teardown);
}
