/* Writes a PNG of three chunks: header, one deflated block of unfiltered lines, end. */
#include "store/png.h"

#include <string.h>
#include <zlib.h>

#include "core/alloc.h"

#define PIXELS_MAX ((size_t)1 << 28)

static void put_big(uint8_t *p, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++) p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* Completes a chunk: length, name, data (already at p + 8), checksum. Returns the position after
 * it. */
static uint8_t *chunk(uint8_t *p, const char *name, size_t len)
{
    put_big(p, (uint32_t)len);
    memcpy(p + 4, name, 4);
    put_big(p + 8 + len, (uint32_t)crc32(crc32(0, NULL, 0), p + 4, (uInt)(len + 4)));
    return p + 12 + len;
}

int sherd__png_grey(uint8_t **out, size_t *len, const uint8_t *pixels, size_t width, size_t height)
{
    static const uint8_t magic[8] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
    if (width == 0 || height == 0 || width > PIXELS_MAX || height > PIXELS_MAX / width)
        return SHERD_EINVAL;
    size_t raw_len = height * (width + 1);
    uLongf packed = compressBound((uLong)raw_len);
    uint8_t *raw = sherd__calloc(raw_len, 1), *file = sherd__alloc(8 + 25 + 12 + packed + 12);
    int err = raw && file ? SHERD_OK : SHERD_ENOMEM;
    if (!err) {
        for (size_t r = 0; r < height; r++)
            memcpy(raw + r * (width + 1) + 1, pixels + r * width, width);
        memcpy(file, magic, 8);
        put_big(file + 16, (uint32_t)width);
        put_big(file + 20, (uint32_t)height);
        memcpy(file + 24, "\x08\0\0\0", 5); /* bits; grey, deflate, no filter, not interlaced */
        uint8_t *p = chunk(file + 8, "IHDR", 13);
        if (compress2(p + 8, &packed, raw, (uLong)raw_len, 9) != Z_OK) err = SHERD_ENOMEM;
        if (!err) p = chunk(chunk(p, "IDAT", packed), "IEND", 0);
        *len = (size_t)(p - file);
    }
    sherd__free(raw);
    if (err) sherd__free(file);
    else *out = file;
    return err;
}
