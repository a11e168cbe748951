/*
 * Windows laid out as rows (im2col; Chellapilla, Puri and Simard 2006). One function serves all
 * element types (numbers of a layer, residues in doubles, packed residues on the wire), so that a
 * layer and a node cannot derive different matrices from one description. It relies on
 * sherd__windows_fit for the sizes and on its caller for the memory.
 */
#include "matrix/windows.h"

#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"

/* Returns the number of windows along a side; 0 if none fits. */
static size_t along(const sherd_windows *w, size_t side)
{
    size_t around = side + 2 * (size_t)w->padding; /* below 2^34 */
    return w->window > around ? 0 : (around - w->window) / w->stride + 1;
}

bool sherd__windows_fit(const sherd_windows *w, sherd__windows *out)
{
    sherd__windows s = { .of = *w };
    size_t all;
    if (w->height == 0 || w->width == 0 || w->channels == 0 || w->window == 0 || w->stride == 0 ||
        w->padding >= w->window)
        return false;
    s.high = along(w, w->height);
    s.wide = along(w, w->width);
    if (s.high == 0 || s.wide == 0 || !sherd__mul(s.high, s.wide, &s.count) ||
        !sherd__mul(w->height, w->width, &s.image) || !sherd__mul(s.image, w->channels, &s.image) ||
        !sherd__mul(w->window, w->window, &s.row) || !sherd__mul(s.row, w->channels, &s.row) ||
        !sherd__mul(s.count, s.row, &all) || !sherd__mul(all, sizeof(double), &all))
        return false;
    *out = s;
    return true;
}

static bool covers(const sherd__windows *w, size_t side, size_t count)
{
    size_t end = (count - 1) * w->of.stride + w->of.window; /* of the last window, with padding */
    return (count == 1 || w->of.stride <= w->of.window) && end >= side + w->of.padding;
}

bool sherd__windows_cover(const sherd__windows *w)
{
    return covers(w, w->of.height, w->high) && covers(w, w->of.width, w->wide);
}

void sherd__windows_shape(const sherd__windows *w, size_t *rows, size_t *cols, size_t *part)
{
    if (w->count == 0) return;
    if (*part > *rows) *part = *rows > 0 ? *rows : 1;
    *rows *= w->count;
    *part *= w->count;
    *cols = w->row;
}

void sherd__windows_rows(const sherd__windows *w, const void *images, size_t each, size_t first,
                         size_t rows, void *out)
{
    const unsigned char *image = (const unsigned char *)images + first / w->count * w->image * each;
    unsigned char *to = out;
    size_t at = first % w->count, down = at / w->wide, across = at % w->wide;
    for (; rows > 0; rows--) {
        for (size_t y = 0; y < w->of.window; y++) {
            sherd__strip s = sherd__windows_strip(w, down, across, y);
            memset(to, 0, s.before * each);
            to += s.before * each;
            memcpy(to, image + s.from * each, s.run * each);
            to += s.run * each;
            memset(to, 0, s.after * each);
            to += s.after * each;
        }
        if (++across < w->wide) continue;
        across = 0;
        if (++down < w->high) continue;
        down = 0;
        image += w->image * each;
    }
}

int sherd__windows_lay(const sherd__windows *w, const void *images, size_t each, sherd_rows rows,
                       void **out, sherd_diag *d)
{
    size_t len;
    *out = sherd__mul(rows.count, w->row, &len) && sherd__mul(len, each, &len)
               ? sherd__alloc_large(len)
               : NULL;
    if (!*out) return sherd__fail_memory(d, "%zu windows of %zu numbers", rows.count, w->row);
    sherd__windows_rows(w, images, each, rows.first, rows.count, *out);
    return SHERD_OK;
}
