/*
 * Windows of images, the operands of a convolution. A plain description, sent to nodes in this
 * form: it has no size and never grows.
 */
#ifndef SHERD_WINDOWS_H
#define SHERD_WINDOWS_H

#include <stdint.h>

/**
 * An image is a row of height * width * channels numbers; channels vary fastest, then columns. The
 * image is surrounded by `padding` rings of zeros. Squares of `window` pixels a side are taken
 * every `stride` pixels, row after row from the top left, as many as fit. The matrix of windows has
 * one row for each window, image after image: window * window * channels numbers, in the image's
 * order.
 */
typedef struct sherd_windows {
    uint32_t height, width, channels; /* 1 or more */
    uint32_t window, stride, padding; /* 1 or more; 1 or more; less than window. window 0: no
                                         windows; the matrix is used unchanged */
} sherd_windows;

#endif
