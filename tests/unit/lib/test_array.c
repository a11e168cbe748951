/* Matrices from files of all formats, what is refused, and generated digits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/alloc.h"
#include "sherd/array.h"
#include "sherd/npy.h"
#include "store/npz.h"

static char folder[] = "/tmp/sherd-test-array-XXXXXX";
static const double values[6] = { 1, 2, 3, 4, 5, 6 };
/* 3 images of 2 x 2, and their labels. */
static const uint8_t images[28] = "\0\0\x08\x03\0\0\0\3\0\0\0\2\0\0\0\2"
                                  "abcdefghijkl";
static const uint8_t labels[11] = "\0\0\x08\x01\0\0\0\3"
                                  "\7\0\1";

static const char *path_of(const char *name)
{
    static char paths[4][300];
    static unsigned at;
    char *path = paths[at++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static const char *write_file(const char *name, const void *bytes, size_t len)
{
    const char *path = path_of(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
    return path;
}

static const char *write_npz(const char *name, const char *const *members, size_t count)
{
    const char *path = path_of(name);
    sherd__npz_writer *w = NULL;
    assert_int_equal(sherd__npz_writer_new(&w, path, NULL), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(sherd__npz_writer_add_values(w,
                                                      &(sherd__npz_array){ members[i], SHERD_F64,
                                                                           i ? 1 : 2, i ? 1 : 2,
                                                                           i ? 6 : 3 },
                                                      true, values, NULL),
                         0);
    assert_int_equal(sherd__npz_writer_commit(w, NULL, NULL), 0);
    return path;
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[100];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void expect(const char *path, const char *member, size_t rows, size_t cols, double last,
                   unsigned ndim)
{
    sherd_array *a;
    sherd_diag d = { 0 };
    if (sherd_array_open(&a, path, member, &d)) fail_msg("%s: %s", path, d.message);
    sherd_view v = sherd_array_view(a);
    assert_true(v.rows == rows && v.cols == cols && sherd_array_ndim(a) == ndim);
    const uint8_t *at = v.data;
    at += ((ptrdiff_t)(rows - 1) * v.row_stride + (ptrdiff_t)(cols - 1) * v.col_stride) *
          (ptrdiff_t)sherd_dtype_size(v.dtype);
    assert_true((v.dtype == SHERD_U8 ? *at : *(const double *)(const void *)at) == last);
    assert_int_equal(sherd_array_check(a, NULL), 0);
    sherd_array_close(a);
}

static void the_first_bytes_identify_the_format(void **state)
{
    static const char *const one[] = { "x" }, *const two[] = { "x", "y" };
    (void)state;
    const char *npy = path_of("values");
    assert_int_equal(sherd_npy_save(npy, sherd_view_c(values, SHERD_F64, 2, 3), NULL), 0);
    expect(npy, NULL, 2, 3, 6, 2);
    expect(write_npz("one.bin", one, 1), NULL, 2, 3, 6, 2);
    expect(write_npz("two.npz", two, 2), "x", 2, 3, 6, 2);
    expect(path_of("two.npz"), "y", 1, 6, 6, 1);
    expect(path_of("two.npz:y"), NULL, 1, 6, 6, 1);
    expect(write_file("numbers.csv", "1,2\n3,4\n5,7\n", 12), NULL, 3, 2, 7, 2);
    expect(write_file("header.csv", "a,\"b\"\r\n1,2.5\r\n", 14), NULL, 1, 2, 2.5, 2);
    expect(write_file("images", images, sizeof images), NULL, 3, 4, 'l', 3);
    expect(write_file("labels.npy.old", labels, sizeof labels), NULL, 3, 1, 1, 1);
    gzFile z = gzopen(path_of("images.gz"), "wb");
    assert_int_equal(gzwrite(z, images, sizeof images), sizeof images);
    assert_int_equal(gzclose(z), Z_OK);
    expect(path_of("images.gz"), NULL, 3, 4, 'l', 3);
}

static void refuse(const char *path, const char *member, int err, const char *says)
{
    sherd_array *a = (sherd_array *)(uintptr_t)1;
    sherd_diag d = { 0 };
    assert_int_equal(sherd_array_open(&a, path, member, &d), err);
    assert_null(a);
    if (!strstr(d.message, says)) fail_msg("'%s' is not in: %s", says, d.message);
}

static void files_without_a_matrix_are_refused(void **state)
{
    static const char *const two[] = { "x", "y" };
    (void)state;
    refuse(path_of("absent.npy"), NULL, SHERD_EOPEN, "absent.npy");
    refuse(path_of("absent"), NULL, SHERD_EOPEN, "absent");
    refuse(write_file("text", "hello\n", 6), NULL, SHERD_EFORMAT,
           "is not a .npy, .npz, .csv or IDX");
    refuse(write_file("short", images, 20), NULL, SHERD_EFORMAT, "truncated");
    refuse(write_file("empty", "", 0), NULL, SHERD_EFORMAT, "is empty");
    refuse(write_file("named.npy", "hello\n", 6), NULL, SHERD_EFORMAT, "named.npy");
    refuse(write_file("zip.npz", "PK\3\4....", 8), NULL, SHERD_EFORMAT, "zip.npz");
    write_npz("two.npz", two, 2);
    refuse(path_of("two.npz"), NULL, SHERD_EINVAL, "has 2 members, the first is x");
    refuse(path_of("two.npz"), "z", SHERD_EFORMAT, "has no member z");
    refuse(path_of("two.npz:z"), NULL, SHERD_EFORMAT, "two.npz: has no member z");
    refuse(path_of("absent.npz:z"), NULL, SHERD_EOPEN, "absent.npz");
    refuse(path_of("absent.csv"), NULL, SHERD_EOPEN, "absent.csv");
    refuse(write_file("names.csv", "1,2\n3,x\n", 8), NULL, SHERD_EFORMAT, "names.csv:2:3");
    refuse(write_file("images", images, sizeof images), "x", SHERD_EINVAL, "only an .npz");
}

static void a_change_of_a_mapped_file_is_detected(void **state)
{
    sherd_array *a;
    static double many[100 * 1000];
    (void)state;
    const char *path = path_of("large.npy");
    assert_int_equal(sherd_npy_save(path, sherd_view_c(many, SHERD_F64, 100, 1000), NULL), 0);
    assert_int_equal(sherd_array_open(&a, path, NULL, NULL), 0);
    assert_int_equal(sherd_array_check(a, NULL), 0);
    usleep(20000); /* beyond the resolution of a file's time */
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fputc(0x93, f);
    fclose(f);
    assert_int_equal(sherd_array_check(a, NULL), SHERD_EIO);
    sherd_array_close(a);
}

static void images_are_loaded_with_their_labels(void **state)
{
    sherd_array *x, *y;
    sherd_diag d = { 0 };
    (void)state;
    write_file("train-images-idx3-ubyte", images, sizeof images);
    write_file("train-labels.idx1-ubyte", labels, sizeof labels);
    assert_int_equal(sherd_array_open_idx(&x, &y, folder, "train", NULL), 0);
    sherd_view v = sherd_array_view(y);
    assert_true(sherd_array_view(x).rows == 3 && v.rows == 3 && v.cols == 1);
    assert_memory_equal(v.data, "\7\0\1", 3);
    sherd_array_close(x);
    sherd_array_close(y);
    assert_int_equal(sherd_array_open_idx(&x, &y, folder, "t10k", &d), SHERD_EOPEN);
    assert_true(!x && !y && strstr(d.message, "t10k-images"));
    for (size_t n = 1;; n++) {
        sherd__alloc_fail_nth(n);
        int err = sherd_array_open_idx(&x, &y, folder, "train", NULL);
        size_t made = sherd__alloc_fail_nth(0);
        assert_int_equal(err, made >= n ? SHERD_ENOMEM : 0);
        assert_true(err ? !x && !y : x && y);
        if (err) continue;
        sherd_array_close(x);
        sherd_array_close(y);
        break;
    }
}

static void a_failed_allocation_leaves_nothing_open(void **state)
{
    static const char *const one[] = { "x" };
    const char *paths[] = { path_of("values.npy"), write_npz("one.npz", one, 1),
                            write_file("images", images, sizeof images),
                            write_file("numbers.csv", "1,2\n3,4\n5,7\n", 12) };
    (void)state;
    assert_int_equal(sherd_npy_save(paths[0], sherd_view_c(values, SHERD_F64, 2, 3), NULL), 0);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        for (size_t n = 1;; n++) {
            sherd_array *a;
            sherd__alloc_fail_nth(n);
            int err = sherd_array_open(&a, paths[i], NULL, NULL);
            size_t made = sherd__alloc_fail_nth(0);
            assert_int_equal(err, made >= n ? SHERD_ENOMEM : 0);
            assert_true((a != NULL) == !err);
            sherd_array_close(a);
            if (!err) break;
        }
}

static void digits_depend_only_on_seed_and_number(void **state)
{
    static uint8_t all[5 * SHERD_DIGIT_PIXELS], part[2 * SHERD_DIGIT_PIXELS];
    uint8_t digits[5], two[2];
    (void)state;
    sherd_digits_draw(0, 10, 5, all, digits);
    sherd_digits_draw(UINT64_C(0x7368657264), 12, 2, part, two);
    assert_memory_equal(all + 2 * SHERD_DIGIT_PIXELS, part, sizeof part);
    assert_memory_equal(digits + 2, two, 2);
    for (size_t i = 0; i < 5; i++) assert_true(digits[i] < 10);
    sherd_digits_draw(1, 12, 2, part, NULL);
    assert_memory_not_equal(all + 2 * SHERD_DIGIT_PIXELS, part, sizeof part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_bytes_identify_the_format),
        cmocka_unit_test(files_without_a_matrix_are_refused),
        cmocka_unit_test(a_change_of_a_mapped_file_is_detected),
        cmocka_unit_test(images_are_loaded_with_their_labels),
        cmocka_unit_test(a_failed_allocation_leaves_nothing_open),
        cmocka_unit_test(digits_depend_only_on_seed_and_number),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
