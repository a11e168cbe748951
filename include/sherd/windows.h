/*
 * Windows of images: what a convolution multiplies. A plain description, which travels as it is.
 */
#ifndef SHERD_WINDOWS_H
#define SHERD_WINDOWS_H

#include <stdint.h>

/**
 * An image is a row of height * width * channels numbers, channels fastest, then columns. With
 * `padding` rings of zeros around it squares of `window` a side are taken every `stride` pixels,
 * row after row from the top left, as many as fit. The matrix of windows has a row for each, image
 * after image: window * window * channels numbers, in the image's order.
 */
typedef struct sherd_windows {
    uint32_t height, width, channels; /* 1 or more */
    uint32_t window, stride, padding; /* 1 or more; 1 or more; below window. window 0: there are
                                         none, and a matrix is meant as it lies */
} sherd_windows;

#endif
