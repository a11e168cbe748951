/* Greyscale images as PNG (ISO/IEC 15948), eight bits per pixel, for pages that show what nodes
 * see. */
#ifndef STORE_PNG_H
#define STORE_PNG_H

#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

/** Encodes pixels: height x width, row by row, 0 is black. Returns the file of *len bytes in *out,
 *  which the caller frees with sherd__free. Errors: SHERD_EINVAL: no pixels, or more than 2^28;
 *  SHERD_ENOMEM. */
int sherd__png_grey(uint8_t **out, size_t *len, const uint8_t *pixels, size_t width,
                    size_t height) SHERD_MUST;

#endif
