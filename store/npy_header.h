/*
 * The head of a .npy file or of a member of an .npz: numpy's format 1.0 and 2.0, and nothing of
 * Python. https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 */
#ifndef STORE_NPY_HEADER_H
#define STORE_NPY_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/mat.h"

/** A dictionary longer than this is refused, as numpy does. */
#define SHERD__NPY_DICT_MAX 10000u
/** As many leading bytes as a parse can need: magic, length, dictionary. */
#define SHERD__NPY_HEADER_MAX (12u + SHERD__NPY_DICT_MAX)
/** Room that format needs. */
#define SHERD__NPY_HEADER_OUT 128u

typedef struct sherd__npy_header {
    sherd_dtype dtype;
    bool fortran;
    unsigned ndim;     /* 0, 1 or 2 */
    size_t rows, cols; /* 0-D: 1 x 1; 1-D of n: 1 x n */
    size_t data_at;    /* where the values begin */
    size_t data_len;   /* rows * cols * size, checked not to wrap */
} sherd__npy_header;

/**
 * Reads a head from the first `len` bytes (at least min(all, SHERD__NPY_HEADER_MAX) of them).
 * `where` names the file, and the member if any, in messages. SHERD_EFORMAT: not .npy, another
 * version, malformed or truncated dictionary, dtype that is not read (objects, big endian, complex,
 * ...); SHERD_ESHAPE: more than two dimensions, or a size that no memory holds. *out is then as it
 * was. Whether data_len bytes follow is the caller's to check (sherd__npy_size_check).
 */
int sherd__npy_header_parse(sherd__npy_header *out, const uint8_t *bytes, size_t len,
                            const char *where, sherd_diag *d) SHERD_MUST;
/** SHERD_EFORMAT unless file_len is data_at + data_len. */
int sherd__npy_size_check(const sherd__npy_header *h, uint64_t file_len, const char *where,
                          sherd_diag *d) SHERD_MUST;

/** Writes a version 1.0 head, C order; ndim 1 takes cols as the length. Returns its length, a
 *  multiple of 64. */
size_t sherd__npy_header_format(uint8_t out[SHERD__NPY_HEADER_OUT], sherd_dtype dtype,
                                unsigned ndim, size_t rows, size_t cols);

#endif
