/*
 * B of `blind`, which is public: rows of a tile in the narrowest integers that hold them, made
 * while they are sent. This is done on the loop thread, with its own buffers. B's values are
 * trusted to fit the width that was determined when its exponent was chosen.
 */
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "crypto/fragment_make.h"
#include "schemes/blind/blind.h"

typedef struct blind_tile {
    sherd_view v;
    sherd__fixed fixed;
    size_t from, width, size;
    size_t made; /* the row in `bytes`, or SIZE_MAX */
    double *row;
    uint8_t *bytes;
} blind_tile;

static void tile_free(void *ctx)
{
    blind_tile *t = ctx;
    sherd__free(t->row);
    sherd__free(t->bytes);
    sherd__free(t);
}

/* Writes integers that are known to fit the size, signed or unsigned. */
static void narrow(const double *x, size_t n, size_t size, uint8_t *out)
{
    for (size_t j = 0; j < n; j++) {
        int32_t v = (int32_t)x[j];
        if (size == 1) out[j] = (uint8_t)v;
        else if (size == 2) sherd__put_u16(out + 2 * j, (uint16_t)v);
        else sherd__put_u32(out + 4 * j, (uint32_t)v);
    }
}

static int tile_fill(void *ctx, uint64_t offset, uint8_t *out, size_t len)
{
    blind_tile *t = ctx;
    size_t row_bytes = t->width * t->size;
    while (len > 0) {
        size_t row = (size_t)(offset / row_bytes), skip = (size_t)(offset % row_bytes);
        size_t n = row_bytes - skip < len ? row_bytes - skip : len;
        if (t->made != row) {
            sherd__fixed_row(&t->fixed, t->v, row, t->from, t->width, t->row);
            narrow(t->row, t->width, t->size, t->bytes);
            t->made = row;
        }
        memcpy(out, t->bytes + skip, n);
        offset += n;
        out += n;
        len -= n;
    }
    return SHERD_OK;
}

int sherd__blind_tile(sherd__fragment **out, sherd_view b, const sherd__fixed *fixed, uint8_t dtype,
                      size_t from, size_t width)
{
    *out = NULL;
    blind_tile *t = sherd__calloc(1, sizeof *t);
    if (!t) return SHERD_ENOMEM;
    *t = (blind_tile){ .v = b,
                       .fixed = *fixed,
                       .from = from,
                       .width = width,
                       .size = sherd_dtype_size((sherd_dtype)dtype),
                       .made = SIZE_MAX };
    t->row = sherd__alloc(t->width * sizeof *t->row);
    t->bytes = sherd__alloc(t->width * t->size);
    sherd__fragment_info info = { .origin = SHERD__HIDDEN,
                                  .dtype = dtype,
                                  .rows = b.rows,
                                  .cols = t->width,
                                  .len = (uint64_t)b.rows * t->width * t->size };
    int err = t->row && t->bytes ? SHERD_OK : SHERD_ENOMEM;
    if (!err)
        err = sherd__fragment_new_source(out, &info,
                                         (sherd__fragment_source){ tile_fill, tile_free, t });
    if (err) tile_free(t);
    return err;
}
