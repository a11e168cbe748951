/* Grey pictures as PNG (ISO/IEC 15948), eight bits a pixel: for pages that show what nodes saw. */
#ifndef STORE_PNG_H
#define STORE_PNG_H

#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

/** pixels: height x width, row by row, 0 is black. *out (sherd__free) is the file, *len bytes.
 *  SHERD_EINVAL: no pixels, or more than 2^28; SHERD_ENOMEM. */
int sherd__png_grey(uint8_t **out, size_t *len, const uint8_t *pixels, size_t width,
                    size_t height) SHERD_MUST;

#endif
