/* Shared by the files of products of byte residues: residue_bytes.c for every processor,
 * residue_bytes_avx2.c for processors with AVX2 or AVX-VNNI, residue_bytes_wide.c for processors
 * with AVX-512-VNNI or AMX, residue_bytes_neon.c for ARM. */
#ifndef MATRIX_RESIDUE_BYTES_KERNELS_H
#define MATRIX_RESIDUE_BYTES_KERNELS_H

#include "matrix/residue_bytes.h"

enum {
    BYTES_TILE_LEN = SHERD__BYTES_TILE * SHERD__BYTES_STEP,
    BYTES_HIGH = 128, /* rows of a piece */
    BYTES_WIDE = 96,  /* columns of a piece */
    BYTES_DEEP = 64   /* tiles of a strip that are multiplied at a time: a piece fits the
                         second-level cache */
};

/** Rows of A times columns of B, for some tiles of each strip. */
typedef struct sherd__bytes_piece {
    const uint8_t *left, *right;  /* the first strip of each */
    size_t row, tile, left_strip; /* bytes from one row, tile, or strip of A to the next */
    size_t right_strip;           /* bytes from one strip of B to the next */
    size_t steps;                 /* tiles */
    size_t rows, cols;            /* at most BYTES_HIGH and BYTES_WIDE */
    int32_t *sums;                /* BYTES_HIGH x BYTES_WIDE, aligned to 64; strips are complete */
    bool more;                    /* add to the sums */
} sherd__bytes_piece;

typedef struct sherd__bytes_kernels {
    /** Computes the sums of a piece. */
    void (*sum)(const sherd__bytes_piece *piece);
    /** Sets out[i] to sums[i] modulo p, or to (out[i] + sums[i]) modulo p; n <= BYTES_WIDE. */
    void (*reduce)(const int32_t *sums, size_t n, uint32_t p, bool add, uint8_t *out);
    /** Lays out k rows of m columns of B, `stride` bytes apart, in strips `strip` bytes apart. */
    void (*lay)(const int8_t *in, size_t k, size_t m, size_t stride, uint8_t *out, size_t strip);
} sherd__bytes_kernels;

/** Returns the kernels of a path, NULL if this processor does not have them or the system does not
 *  permit them. */
const sherd__bytes_kernels *sherd__bytes_narrow(sherd__bytes_path path);
const sherd__bytes_kernels *sherd__bytes_wide(sherd__bytes_path path);
const sherd__bytes_kernels *sherd__bytes_neon(void);
/** The functions `reduce` and `lay` for any processor. */
void sherd__bytes_reduce_any(const int32_t *sums, size_t n, uint32_t p, bool add, uint8_t *out);
void sherd__bytes_lay_any(const int8_t *in, size_t k, size_t m, size_t stride, uint8_t *out,
                          size_t strip);

#endif
