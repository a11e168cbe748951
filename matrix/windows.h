/* The matrix of windows of images (sherd/windows.h; im2col): its sizes, and some of its rows, for
 * elements of any type. The zeros around images are zero bytes. */
#ifndef MATRIX_WINDOWS_H
#define MATRIX_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>

#include "sherd/err.h"
#include "sherd/multiplier.h"
#include "sherd/windows.h"

/** Maximum numbers per window that nodes accept: a row must fit where it is laid out. */
#define SHERD__WINDOW_MAX ((size_t)1 << 20)

typedef struct sherd__windows {
    sherd_windows of;
    size_t high, wide; /* windows down and across */
    size_t count;      /* per image: high * wide */
    size_t image, row; /* numbers in an image and in a window */
} sherd__windows;

/** Computes the sizes. Returns false and leaves *out unchanged if the description is invalid, if no
 *  window fits, or if a size or the numbers of all windows of an image wrap. */
bool sherd__windows_fit(const sherd_windows *w, sherd__windows *out);
/** Returns whether every pixel is in some window, so that images and windows have the same largest
 *  number. */
bool sherd__windows_cover(const sherd__windows *w);

/** Replaces the shape of rows x cols images, kept in parts of `part`, by that of their matrix of
 *  windows; no change if w->count is 0. No size wraps that sherd_multiplier_keep has
 *  accepted. */
void sherd__windows_shape(const sherd__windows *w, size_t *rows, size_t *cols, size_t *part);

/** One row of one window, as contiguous elements: `run` elements from element `from` of the image,
 *  with `before` and `after` elements outside of it. run 0: all are in `before`. */
typedef struct sherd__strip {
    size_t before, run, after, from;
} sherd__strip;

/** Returns row `y` of window (down, across). */
static inline sherd__strip sherd__windows_strip(const sherd__windows *w, size_t down, size_t across,
                                                size_t y)
{
    size_t c = w->of.channels, side = w->of.window, p = w->of.padding, wide = w->of.width;
    size_t at = down * w->of.stride + y, x = across * w->of.stride; /* with padding */
    sherd__strip s = { side * c, 0, 0, 0 };
    if (at < p || at >= p + w->of.height) return s;
    size_t left = x < p ? p - x : 0, right = x + side > p + wide ? x + side - p - wide : 0;
    if (left + right >= side) return s;
    s.before = left * c;
    s.run = (side - left - right) * c;
    s.after = right * c;
    s.from = ((at - p) * wide + (x + left - p)) * c;
    return s;
}

/** Writes rows [first, first+rows) of the matrix of windows of `images`, which are stored
 *  consecutively, with elements of `each` bytes. */
void sherd__windows_rows(const sherd__windows *w, const void *images, size_t each, size_t first,
                         size_t rows, void *out);
/** Like sherd__windows_rows, into new memory; the caller frees *out with sherd__free. Returns
 *  SHERD_ENOMEM on failure, with *out NULL. */
int sherd__windows_lay(const sherd__windows *w, const void *images, size_t each, sherd_rows rows,
                       void **out, sherd_diag *d) SHERD_MUST;

#endif
