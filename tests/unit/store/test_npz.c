#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "store/file.h"
#include "store/npz.h"

#define BASE ((uint64_t)1 << 20)

static char dir[64], path[96];

static int begin(void **s)
{
    (void)s;
    /* In memory if possible: the test should not wait for the disk. */
    snprintf(dir, sizeof dir, "%s/sherd-npz-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/a.npz", dir);
    return 0;
}

static int end(void **s)
{
    (void)s;
    unlink(path);
    return rmdir(dir); /* fails if any other file was left behind */
}

/* ---- archives that the test writes ----------------------------------------------------------- */

/* Values that count up from `first`; fails at row fail_at. */
typedef struct counter {
    size_t cols, first, fail_at, calls;
    unsigned size;
} counter;

static int count_up(void *ctx, size_t row, size_t rows, void *out, sherd_diag *d)
{
    counter *c = ctx;
    uint8_t *p = out;
    c->calls++;
    if (c->fail_at >= row && c->fail_at < row + rows)
        return sherd__fail(d, SHERD_ERANGE, "none", "row %zu cannot be made", c->fail_at);
    for (size_t i = row * c->cols; i < (row + rows) * c->cols; i++)
        for (unsigned b = 0; b < c->size; b++) *p++ = (uint8_t)((c->first + i) >> 8 * b);
    return SHERD_OK;
}

static int write_two(size_t rows, size_t cols, size_t fail_at, bool deflate, uint64_t *size,
                     sherd_diag *d)
{
    sherd__npz_writer *w;
    counter a = { cols, 5, fail_at, 0, 2 }, b = { 7, 1, SIZE_MAX, 0, 1 };
    int err = sherd__npz_writer_new(&w, path, d);
    if (err) return err;
    err = sherd__npz_writer_add(w, &(sherd__npz_array){ "one.two", SHERD_U16, 2, rows, cols },
                                deflate, (sherd__npz_source){ count_up, &a }, d);
    if (!err)
        err = sherd__npz_writer_add(w, &(sherd__npz_array){ "b", SHERD_U8, 1, 1, 7 }, deflate,
                                    (sherd__npz_source){ count_up, &b }, d);
    if (err) {
        sherd__npz_writer_abort(w);
        return err;
    }
    return sherd__npz_writer_commit(w, size, d);
}

static void check_two(size_t rows, size_t cols, bool deflated)
{
    sherd_diag d = { .code = 0 };
    sherd__npz *z;
    uint8_t b[7];
    assert_int_equal(sherd__npz_open(&z, path, BASE, 2000, &d), 0);
    assert_int_equal(sherd__npz_count(z), 2);
    int64_t i = sherd__npz_find(z, "one.two");
    assert_int_equal(i, 0);
    assert_int_equal(sherd__npz_find(z, "one"), -1);
    const sherd__npz_member *m = sherd__npz_member_at(z, 0);
    assert_string_equal(m->name, "one.two");
    assert_int_equal(m->deflated, deflated);
    assert_int_equal(m->head.dtype, SHERD_U16);
    assert_int_equal(m->head.rows, rows);
    assert_int_equal(m->head.cols, cols);
    uint16_t *v = malloc(rows * cols * 2 + 1);
    assert_int_equal(sherd__npz_read(z, 0, v, rows * cols * 2, &d), 0);
    for (size_t j = 0; j < rows * cols; j++) assert_int_equal(v[j], (uint16_t)(5 + j));
    assert_int_equal(sherd__npz_read(z, 1, b, 7, &d), 0);
    for (size_t j = 0; j < 7; j++) assert_int_equal(b[j], 1 + j);
    assert_int_equal(sherd__npz_read(z, 1, b, 6, &d), SHERD_EINVAL);
    free(v);
    sherd__npz_close(z);
}

static void members_of_any_shape_are_read_back_stored_and_deflated(void **s)
{
    (void)s;
    static const size_t shapes[][2] = { { 0, 0 }, { 0, 5 },      { 5, 0 },     { 1, 1 },
                                        { 3, 4 }, { 1000, 700 }, { 2, 300000 } };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int deflate = 0; deflate < 2; deflate++) {
            struct stat st;
            uint64_t size;
            sherd_diag d = { .code = 0 };
            assert_int_equal(write_two(shapes[i][0], shapes[i][1], SIZE_MAX, deflate, &size, &d),
                             0);
            assert_int_equal(stat(path, &st), 0);
            assert_int_equal(st.st_size, size);
            assert_int_equal(st.st_mode & 0777, 0600);
            check_two(shapes[i][0], shapes[i][1], deflate);
        }
}

static void two_readers_of_one_archive_are_independent(void **s)
{
    (void)s;
    sherd_diag d = { .code = 0 };
    sherd__npz *z;
    sherd__npz_reader *a, *b, *c;
    uint16_t x[700], y[700];
    uint8_t byte;
    assert_int_equal(write_two(1000, 700, SIZE_MAX, true, NULL, &d), 0);
    assert_int_equal(sherd__npz_open(&z, path, BASE, 32, &d), 0);
    assert_int_equal(sherd__npz_reader_new(&a, z, 0, &d), 0);
    assert_int_equal(sherd__npz_reader_new(&b, z, 0, &d), 0);
    assert_int_equal(sherd__npz_reader_new(&c, z, 1, &d), 0);
    assert_int_equal(sherd__npz_reader_next(b, y, sizeof y, &d), 0);
    for (size_t r = 0; r < 999; r++) {
        assert_int_equal(sherd__npz_reader_next(a, x, sizeof x, &d), 0);
        assert_int_equal(x[1], (uint16_t)(r * 700 + 6));
        assert_int_equal(sherd__npz_reader_next(b, y, sizeof y, &d), 0);
        assert_int_equal(y[1], (uint16_t)((r + 1) * 700 + 6));
        if (r < 7) assert_int_equal(sherd__npz_reader_next(c, &byte, 1, &d), 0);
    }
    assert_int_equal(sherd__npz_reader_next(b, y, 1, &d), SHERD_EINVAL);
    sherd__npz_reader_free(a);
    sherd__npz_reader_free(b);
    sherd__npz_reader_free(c);
    sherd__npz_reader_free(NULL);
    sherd__npz_close(z);
}

static void a_source_that_fails_leaves_the_earlier_file_and_its_own_error(void **s)
{
    (void)s;
    sherd_diag d = { .code = 0 };
    assert_int_equal(write_two(3, 4, SIZE_MAX, false, NULL, &d), 0);
    for (int deflate = 0; deflate < 2; deflate++) {
        sherd_diag e = { .code = 0 };
        assert_int_equal(write_two(2000, 500, 1999, deflate, NULL, &e), SHERD_ERANGE);
        assert_string_equal(e.message, "row 1999 cannot be made");
        check_two(3, 4, false);
    }
}

static void equal_contents_give_equal_files(void **s)
{
    (void)s;
    sherd_diag d = { .code = 0 };
    uint8_t *a, *b;
    size_t a_len, b_len;
    assert_int_equal(write_two(3, 4, SIZE_MAX, false, NULL, &d), 0);
    assert_int_equal(sherd__file_read_small(&a, &a_len, path, 1 << 20, &d), 0);
    setenv("TZ", "Asia/Tokyo", 1);
    assert_int_equal(write_two(3, 4, SIZE_MAX, false, NULL, &d), 0);
    unsetenv("TZ");
    assert_int_equal(sherd__file_read_small(&b, &b_len, path, 1 << 20, &d), 0);
    assert_int_equal(a_len, b_len);
    assert_memory_equal(a, b, a_len);
    sherd__free(a);
    sherd__free(b);
}

static void names_that_could_not_be_read_back_are_not_written(void **s)
{
    (void)s;
    static const char *const bad[] = { "",   ".",  "a/b", "../x",    "a.B",     "a.b.c",
                                       "a.", ".a", "a b", "a.npy.x", "\xc3\xa4" };
    sherd_diag d = { .code = 0 };
    sherd__npz_writer *w;
    char longest[SHERD__NPZ_NAME_SIZE];
    counter c = { 1, 0, SIZE_MAX, 0, 1 };
    sherd__npz_source src = { count_up, &c };
    assert_int_equal(sherd__npz_writer_new(&w, path, &d), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(sherd__npz_writer_add(w, &(sherd__npz_array){ bad[i], SHERD_U8, 1, 1, 1 },
                                               false, src, NULL),
                         SHERD_EINVAL);
    memset(longest, 'x', sizeof longest);
    longest[SHERD__NPZ_NAME_SIZE - 5] = '\0';
    assert_int_equal(sherd__npz_writer_add(w, &(sherd__npz_array){ longest, SHERD_U8, 1, 1, 1 },
                                           false, src, &d),
                     0);
    assert_int_equal(sherd__npz_writer_add(w, &(sherd__npz_array){ longest, SHERD_U8, 1, 1, 1 },
                                           false, src, NULL),
                     SHERD_EINVAL); /* twice */
    assert_int_equal(sherd__npz_writer_add(w,
                                           &(sherd__npz_array){ "big", SHERD_F64, 2, SIZE_MAX / 4,
                                                                8 },
                                           false, src, NULL),
                     SHERD_EINVAL);
    sherd__npz_writer_abort(w);
    sherd__npz_writer_abort(NULL);
}

static void a_pipe_or_a_missing_folder_cannot_be_written_to(void **s)
{
    (void)s;
    sherd__npz_writer *w;
    sherd_diag d = { .code = 0 };
    assert_int_equal(sherd__npz_writer_new(&w, "/dev/null", &d), SHERD_EUNSUPPORTED);
    assert_null(w);
    assert_int_equal(sherd__npz_writer_new(&w, "/nowhere/at/all.npz", NULL), SHERD_EOPEN);
    /* a pipe without a reader */
    char pipe[64];
    snprintf(pipe, sizeof pipe, "/tmp/sherd-npz-pipe-%ld", (long)getpid());
    assert_int_equal(mkfifo(pipe, 0600), 0);
    alarm(10);
    int err = sherd__npz_writer_new(&w, pipe, NULL);
    alarm(0);
    unlink(pipe);
    assert_int_equal(err, SHERD_EUNSUPPORTED);
    assert_null(w);
}

/* ---- foreign and hostile archives ------------------------------------------------------------ */

typedef struct raw {
    uint8_t bytes[1 << 16];
    size_t len, directory_len;
    uint8_t directory[1 << 14];
    unsigned count;
} raw;

typedef struct entry {
    const char *name;
    const uint8_t *data;
    uint32_t len;      /* in the archive */
    uint32_t unpacked; /* as stated */
    uint32_t crc;
    uint16_t method, flags;
} entry;

/* Adds a local header with its data and its directory entry, with every field as given. */
static void raw_add(raw *z, const entry *e)
{
    uint8_t *p = z->bytes + z->len, *q = z->directory + z->directory_len;
    size_t name = strlen(e->name);
    memset(p, 0, 30);
    memset(q, 0, 46);
    sherd__put_u32(p, 0x04034b50);
    sherd__put_u32(q, 0x02014b50);
    /* The fields common to both, two bytes further in the directory */
    for (int i = 0; i < 2; i++) {
        uint8_t *f = i ? q + 6 : p + 4;
        if (i) sherd__put_u16(q + 4, 20);
        sherd__put_u16(f, 20);
        sherd__put_u16(f + 2, e->flags);
        sherd__put_u16(f + 4, e->method);
        sherd__put_u16(f + 8, 0x21);
        sherd__put_u32(f + 10, e->crc);
        sherd__put_u32(f + 14, e->len);
        sherd__put_u32(f + 18, e->unpacked);
        sherd__put_u16(f + 22, (uint16_t)name);
    }
    sherd__put_u32(q + 42, (uint32_t)z->len);
    memcpy(p + 30, e->name, name);
    memcpy(q + 46, e->name, name);
    if (e->len) memcpy(p + 30 + name, e->data, e->len);
    z->len += 30 + name + e->len;
    z->directory_len += 46 + name;
    z->count++;
}

static void raw_end(raw *z)
{
    uint8_t *p = z->bytes + z->len;
    memcpy(p, z->directory, z->directory_len);
    p += z->directory_len;
    memset(p, 0, 22);
    sherd__put_u32(p, 0x06054b50);
    sherd__put_u16(p + 8, (uint16_t)z->count);
    sherd__put_u16(p + 10, (uint16_t)z->count);
    sherd__put_u32(p + 12, (uint32_t)z->directory_len);
    sherd__put_u32(p + 16, (uint32_t)z->len);
    z->len += z->directory_len + 22;
}

static uint32_t npy_of(uint8_t *out, size_t cols, size_t bytes)
{
    size_t head = sherd__npy_header_format(out, SHERD_U8, 1, 1, cols);
    for (size_t i = 0; i < bytes; i++) out[head + i] = (uint8_t)i;
    return (uint32_t)(head + bytes);
}

static entry plain(const char *name, const uint8_t *data, uint32_t len)
{
    return (entry){ name, data, len, len, (uint32_t)crc32(0, data, len), 0, 0 };
}

/* Opens and reads everything; returns the first error. */
static int read_all(const uint8_t *bytes, size_t len, sherd_diag *d)
{
    sherd__npz *z;
    int err = sherd__npz_open_bytes(&z, bytes, len, "x.npz", (sherd__npz_limit){ BASE, 32 }, d);
    for (size_t i = 0; !err && i < sherd__npz_count(z); i++) {
        const sherd__npz_member *m = sherd__npz_member_at(z, i);
        uint8_t *out = malloc(m->head.data_len + 1);
        err = sherd__npz_read(z, i, out, m->head.data_len, d);
        free(out);
    }
    sherd__npz_close(z);
    return err;
}

static void refused(const entry *e, const char *why)
{
    static raw z;
    sherd_diag d = { .code = 0 };
    memset(&z, 0, sizeof z);
    raw_add(&z, e);
    raw_end(&z);
    int err = read_all(z.bytes, z.len, &d);
    if (!why) {
        assert_int_equal(err, 0);
        return;
    }
    assert_true(err == SHERD_EFORMAT || err == SHERD_ESHAPE);
    if (!strstr(d.message, why)) fail_msg("\"%s\" lacks \"%s\"", d.message, why);
}

static void hostile_archives_are_refused_with_a_reason(void **s)
{
    (void)s;
    static const char *const names[] = { "a",       "a.NPY",     "a/b.npy", "../a.npy",
                                         "/a.npy",  "a.B.npy",   "a..npy",  ".npy",
                                         "a b.npy", "a.b.c.npy", "a\n.npy" };
    uint8_t npy[512];
    uint32_t len = npy_of(npy, 10, 10);
    entry good = plain("a.b.npy", npy, len), e;
    refused(&good, NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        e = good;
        e.name = names[i];
        refused(&e, "is named");
    }
    e = good;
    e.crc ^= 1;
    refused(&e, "CRC");
    e = good;
    e.method = 12; /* bzip2 */
    refused(&e, "method 12");
    e = good;
    e.flags = 1;
    refused(&e, "encrypted");
    e = good;
    e.unpacked += 5; /* the directory states more than the header */
    refused(&e, "");
    e = good;
    e.method = 8; /* stated to be deflated */
    refused(&e, "");
    e = plain("a.npy", npy, len - 1);
    refused(&e, "");
    e = plain("a.npy", npy, 20);
    refused(&e, "");
    e = plain("a.npy", npy, 0);
    refused(&e, "");
    len = npy_of(npy, 11, 10);
    e = plain("a.npy", npy, len);
    refused(&e, "");
    len = npy_of(npy, SIZE_MAX / 2, 10);
    e = plain("a.npy", npy, len);
    refused(&e, "");
}

static void a_duplicate_name_is_refused(void **s)
{
    (void)s;
    static raw z;
    uint8_t npy[512];
    sherd_diag d = { .code = 0 };
    entry e = plain("a.npy", npy, npy_of(npy, 10, 10));
    raw_add(&z, &e);
    raw_add(&z, &e);
    raw_end(&z);
    assert_int_equal(read_all(z.bytes, z.len, &d), SHERD_EFORMAT);
}

/* Makes `total` bytes of zeros behind a header, deflated a thousandfold. */
static uint32_t bomb(uint8_t *out, size_t cap, size_t total, uint32_t *crc)
{
    static uint8_t plain_bytes[40 << 20];
    size_t head = sherd__npy_header_format(plain_bytes, SHERD_U8, 1, 1, total - 128);
    assert_int_equal(head, 128);
    memset(plain_bytes + head, 0, total - head);
    *crc = (uint32_t)crc32(0, plain_bytes, (uInt)total);
    z_stream st = {
        .next_in = plain_bytes, .avail_in = (uInt)total, .next_out = out, .avail_out = (uInt)cap
    };
    assert_int_equal(deflateInit2(&st, 9, Z_DEFLATED, -15, 8, 0), Z_OK);
    assert_int_equal(deflate(&st, Z_FINISH), Z_STREAM_END);
    deflateEnd(&st);
    return (uint32_t)st.total_out;
}

static void a_zip_bomb_is_refused_before_it_unpacks(void **s)
{
    (void)s;
    static raw z;
    static uint8_t packed[60000];
    const uint32_t total = 40 << 20;
    sherd_diag d = { .code = 0 };
    entry e = { .name = "a.npy", .data = packed, .unpacked = total, .method = 8 };
    e.len = bomb(packed, sizeof packed, total, &e.crc);
    raw_add(&z, &e);
    raw_end(&z);
    sherd__npz *npz;
    assert_int_equal(sherd__npz_open_bytes(&npz, z.bytes, z.len, "x.npz",
                                           (sherd__npz_limit){ 64 << 20, 0 }, &d),
                     0);
    sherd__npz_close(npz);
    assert_int_equal(sherd__npz_open_bytes(&npz, z.bytes, z.len, "x.npz",
                                           (sherd__npz_limit){ BASE, 32 }, &d),
                     SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "would unpack to"));
    /* The same with a directory that states a small size. */
    memset(&z, 0, sizeof z);
    e.unpacked = 1000;
    raw_add(&z, &e);
    raw_end(&z);
    assert_int_equal(read_all(z.bytes, z.len, NULL), SHERD_EFORMAT);
}

/* Directory and header agree on a gigabyte, which 200 bytes cannot hold. */
static void a_member_that_its_bytes_cannot_give_is_refused_when_opened(void **s)
{
    (void)s;
    static raw z;
    const uint32_t claimed = 1u << 30;
    uint8_t head[SHERD__NPY_HEADER_OUT], packed[512];
    sherd_diag d = { .code = 0 };
    entry e = { .name = "a.npy", .data = packed, .unpacked = claimed, .method = 8 };
    size_t len = sherd__npy_header_format(head, SHERD_U8, 1, 1, claimed - 128);
    z_stream st = {
        .next_in = head, .avail_in = (uInt)len, .next_out = packed, .avail_out = sizeof packed
    };
    assert_int_equal(deflateInit2(&st, 9, Z_DEFLATED, -15, 8, 0), Z_OK);
    assert_int_equal(deflate(&st, Z_FINISH), Z_STREAM_END);
    deflateEnd(&st);
    e.len = (uint32_t)st.total_out;
    raw_add(&z, &e);
    raw_end(&z);
    sherd__npz *npz;
    assert_int_equal(sherd__npz_open_bytes(&npz, z.bytes, z.len, "x.npz",
                                           (sherd__npz_limit){ UINT64_C(8) << 30, 0 }, &d),
                     SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "can unpack to"));
}

static void every_prefix_and_every_flipped_bit_is_handled(void **s)
{
    (void)s;
    static raw z;
    uint8_t npy[512], packed[512];
    uint32_t crc, len = npy_of(npy, 10, 10);
    entry a = plain("a.b.npy", npy, len);
    entry b = { .name = "b.npy", .data = packed, .unpacked = 400, .method = 8 };
    b.len = bomb(packed, sizeof packed, 400, &crc);
    b.crc = crc;
    raw_add(&z, &a);
    raw_add(&z, &b);
    raw_end(&z);
    assert_int_equal(read_all(z.bytes, z.len, NULL), 0);
    for (size_t n = 0; n < z.len; n++) {
        uint8_t *cut = malloc(n + 1); /* exact, so that a sanitizer sees an overrun */
        memcpy(cut, z.bytes, n);
        assert_int_not_equal(read_all(cut, n, NULL), 0);
        free(cut);
    }
    for (size_t bit = 0; bit < 8 * z.len; bit++) {
        z.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        sherd_diag d = { .code = 0 };
        int err = read_all(z.bytes, z.len, &d);
        assert_true(err == 0 || d.message[0]);
        z.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void every_flipped_bit_of_the_values_is_detected(void **s)
{
    (void)s;
    sherd_diag d = { .code = 0 };
    uint8_t *bytes;
    size_t len;
    assert_int_equal(write_two(30, 40, SIZE_MAX, false, NULL, &d), 0);
    assert_int_equal(sherd__file_read_small(&bytes, &len, path, 1 << 20, &d), 0);
    for (size_t at = 200; at < 2000; at += 7) {
        bytes[at] ^= 0x10;
        assert_int_equal(read_all(bytes, len, NULL), SHERD_EFORMAT);
        bytes[at] ^= 0x10;
    }
    sherd__free(bytes);
}

static void files_that_are_not_archives_are_refused(void **s)
{
    (void)s;
    sherd_diag d = { .code = 0 };
    sherd__npz *z;
    assert_int_equal(sherd__npz_open(&z, "/nowhere.npz", BASE, 32, &d), SHERD_EOPEN);
    assert_null(z);
    d.code = 0;
    assert_int_equal(sherd__npz_open(&z, "/etc/passwd", BASE, 32, &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "/etc/passwd"));
    assert_int_equal(sherd__npz_open_bytes(&z, (const uint8_t *)"", 0, "x",
                                           (sherd__npz_limit){ BASE, 32 }, NULL),
                     SHERD_EFORMAT);
    sherd__npz_close(NULL);
}

static void every_failed_allocation_is_reported(void **s)
{
    (void)s;
    sherd_diag d = { .code = 0 };
    assert_int_equal(write_two(3, 4, SIZE_MAX, false, NULL, &d), 0);
    for (size_t n = 1;; n++) {
        sherd__alloc_fail_nth(n);
        int err = write_two(30, 40, SIZE_MAX, true, NULL, NULL);
        size_t seen = sherd__alloc_fail_nth(0);
        if (err) check_two(3, 4, false);
        if (seen < n) {
            assert_int_equal(err, 0);
            break;
        }
        assert_int_equal(err, SHERD_ENOMEM);
    }
    uint8_t *bytes;
    size_t len;
    assert_int_equal(sherd__file_read_small(&bytes, &len, path, 1 << 20, &d), 0);
    for (size_t n = 1;; n++) {
        sherd__alloc_fail_nth(n);
        int err = read_all(bytes, len, NULL);
        if (sherd__alloc_fail_nth(0) < n) {
            assert_int_equal(err, 0);
            break;
        }
        assert_int_equal(err, SHERD_ENOMEM);
    }
    sherd__free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_of_any_shape_are_read_back_stored_and_deflated),
        cmocka_unit_test(two_readers_of_one_archive_are_independent),
        cmocka_unit_test(a_source_that_fails_leaves_the_earlier_file_and_its_own_error),
        cmocka_unit_test(equal_contents_give_equal_files),
        cmocka_unit_test(names_that_could_not_be_read_back_are_not_written),
        cmocka_unit_test(a_pipe_or_a_missing_folder_cannot_be_written_to),
        cmocka_unit_test(hostile_archives_are_refused_with_a_reason),
        cmocka_unit_test(a_duplicate_name_is_refused),
        cmocka_unit_test(a_zip_bomb_is_refused_before_it_unpacks),
        cmocka_unit_test(a_member_that_its_bytes_cannot_give_is_refused_when_opened),
        cmocka_unit_test(every_prefix_and_every_flipped_bit_is_handled),
        cmocka_unit_test(every_flipped_bit_of_the_values_is_detected),
        cmocka_unit_test(files_that_are_not_archives_are_refused),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("store/npz", tests, begin, end);
}
