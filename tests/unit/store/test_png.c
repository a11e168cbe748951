#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "core/alloc.h"
#include "store/png.h"
#include "tests/unit/store/scratch.h"

/* A reader written in Python reads the file. */
static void pixels_are_read_back(void **s)
{
    (void)s;
    static const char program[] =
        "import struct, zlib\n"
        "d = open('p.png', 'rb').read()\n"
        "assert d[:8] == b'\\x89PNG\\r\\n\\x1a\\n'\n"
        "at, parts = 8, []\n"
        "while at < len(d):\n"
        "    n, name = struct.unpack('>I4s', d[at:at + 8])\n"
        "    body, crc = d[at + 8:at + 8 + n], struct.unpack('>I', d[at + 8 + n:at + 12 + n])[0]\n"
        "    assert zlib.crc32(name + body) == crc\n"
        "    parts.append((name, body)); at += 12 + n\n"
        "assert [p[0] for p in parts] == [b'IHDR', b'IDAT', b'IEND']\n"
        "assert struct.unpack('>IIBBBBB', parts[0][1]) == (5, 3, 8, 0, 0, 0, 0)\n"
        "raw = zlib.decompress(parts[1][1])\n"
        "assert raw == b''.join(b'\\0' + bytes((r * 50 + c * 7) % 256 for c in range(5)) for r in "
        "range(3))\n";
    uint8_t pixels[15], *file;
    size_t len;
    for (unsigned i = 0; i < 15; i++) pixels[i] = (uint8_t)(i / 5 * 50 + i % 5 * 7);
    assert_int_equal(sherd__png_grey(&file, &len, pixels, 5, 3), 0);
    (void)scratch_write("p.png", file, len);
    sherd__free(file);
    assert_int_equal(scratch_python(program), 0);
}

static void a_picture_without_pixels_is_invalid(void **s)
{
    (void)s;
    uint8_t pixel = 1, *file = NULL;
    size_t len;
    assert_int_equal(sherd__png_grey(&file, &len, &pixel, 0, 1), SHERD_EINVAL);
    assert_int_equal(sherd__png_grey(&file, &len, &pixel, 1, 0), SHERD_EINVAL);
    assert_int_equal(sherd__png_grey(&file, &len, &pixel, SIZE_MAX, 2), SHERD_EINVAL);
    assert_null(file);
    for (size_t n = 1; n < 3; n++) {
        sherd__alloc_fail_nth(n);
        assert_int_equal(sherd__png_grey(&file, &len, &pixel, 1, 1), SHERD_ENOMEM);
        sherd__alloc_fail_nth(0);
    }
    assert_null(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_are_read_back),
        cmocka_unit_test(a_picture_without_pixels_is_invalid),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
