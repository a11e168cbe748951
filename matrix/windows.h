/* The matrix of windows of images (sherd/windows.h; im2col): its sizes, and some of its rows, of
 * whatever elements. Zeros around images are bytes of zero. */
#ifndef MATRIX_WINDOWS_H
#define MATRIX_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>

#include "sherd/err.h"
#include "sherd/windows.h"

/** Most numbers of a window that nodes take: those of a row must fit where they are laid out. */
#define SHERD__WINDOW_MAX ((size_t)1 << 20)

typedef struct sherd__windows {
    sherd_windows of;
    size_t high, wide; /* windows down and across */
    size_t count;      /* of an image: high * wide */
    size_t image, row; /* numbers in an image, in a window */
} sherd__windows;

/** False, and *out untouched, where the description is none, no window fits, or a size, or the
 *  numbers of all windows of an image, wrap. */
bool sherd__windows_fit(const sherd_windows *w, sherd__windows *out);
/** Whether every pixel is in some window: then images and windows have the same largest number. */
bool sherd__windows_cover(const sherd__windows *w);

/** The shape of the matrix of windows of rows x cols images that are kept in parts of `part`; their
 *  own, where w->count is 0. No size wraps that sherd_multiplier_keep_as has let pass. */
void sherd__windows_shape(const sherd__windows *w, size_t *rows, size_t *cols, size_t *part);

/** One row of one window, as elements that lie together: `run` of them from element `from` of the
 *  image, with `before` and `after` that lie outside of it. run 0: all are before. */
typedef struct sherd__strip {
    size_t before, run, after, from;
} sherd__strip;

/** Row `y` of window (down, across). */
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

/** Rows [first, first+rows) of the matrix of windows of `images`, which lie one after the other,
 *  elements of `each` bytes. */
void sherd__windows_rows(const sherd__windows *w, const void *images, size_t each, size_t first,
                         size_t rows, void *out);
/** The same in memory of its own, the caller's to free (sherd__free); NULL on failure:
 *  SHERD_ENOMEM. */
int sherd__windows_lay(const sherd__windows *w, const void *images, size_t each, size_t first,
                       size_t rows, void **out, sherd_diag *d) SHERD_MUST;

#endif
