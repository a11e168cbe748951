/*
 * The header of a .npy file or of a member of an .npz: numpy's formats 1.0 and 2.0, without Python.
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 */
#ifndef STORE_NPY_HEADER_H
#define STORE_NPY_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/mat.h"

/** Maximum length of the dictionary. Longer ones are refused, as numpy does. */
#define SHERD__NPY_DICT_MAX 10000u
/** Maximum number of leading bytes that a parse needs: magic, length, dictionary. */
#define SHERD__NPY_HEADER_MAX (12u + SHERD__NPY_DICT_MAX)
/** Bytes that sherd__npy_header_format needs. */
#define SHERD__NPY_HEADER_OUT 128u

typedef struct sherd__npy_header {
    sherd_dtype dtype;
    bool fortran;
    unsigned ndim;     /* 0, 1 or 2 */
    size_t rows, cols; /* 0-D: 1 x 1; 1-D of n: 1 x n */
    size_t data_at;    /* offset of the values */
    size_t data_len;   /* rows * cols * size, checked for overflow */
} sherd__npy_header;

/**
 * Parses a header from the first `len` bytes (at least min(all, SHERD__NPY_HEADER_MAX) of them).
 * `where` names the file, and the member if there is one, in messages. *out is unchanged on
 * failure. The caller must check that data_len bytes follow (sherd__npy_size_check). Errors:
 * SHERD_EFORMAT: not .npy, another version, a malformed or truncated dictionary, an unsupported
 * dtype (objects, big endian, complex, ...); SHERD_ESHAPE: more than two dimensions, or a size
 * larger than any memory.
 */
int sherd__npy_header_parse(sherd__npy_header *out, const uint8_t *bytes, size_t len,
                            const char *where, sherd_diag *d) SHERD_MUST;
/** Returns SHERD_EFORMAT unless file_len is data_at + data_len. */
int sherd__npy_size_check(const sherd__npy_header *h, uint64_t file_len, const char *where,
                          sherd_diag *d) SHERD_MUST;

/** Writes a version 1.0 header, C order; with ndim 1 the length is cols. Returns the length of the
 *  header, a multiple of 64. */
size_t sherd__npy_header_format(uint8_t out[SHERD__NPY_HEADER_OUT], sherd_dtype dtype,
                                unsigned ndim, size_t rows, size_t cols);

#endif
