/* Shared by the files of products on tiles of bytes: residue_limbs.c for every processor, and
 * residue_limbs_wide.c for processors with AVX-512 and AMX. */
#ifndef MATRIX_RESIDUE_LIMBS_KERNELS_H
#define MATRIX_RESIDUE_LIMBS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LIMBS_TILE = 16, /* rows or columns of a strip */
    LIMBS_STEP = 64, /* terms of a tile */
    LIMBS = 3,
    LIMBS_LIMB = LIMBS_TILE * LIMBS_STEP, /* bytes of a tile */
    LIMBS_SUMS = 5,                       /* weights of products of two limbs */
    LIMBS_SUM = LIMBS_TILE * LIMBS_TILE   /* elements of a tile of sums */
};

/** Some rows of A times some columns of B, for at most SHERD__LIMBS_DEPTH terms. */
typedef struct sherd__limbs_piece {
    const uint8_t *left, *right; /* the first strip of each */
    size_t strip;                /* bytes of a strip */
    size_t steps;                /* tiles of each limb in a strip */
    size_t rows, cols;
    uint32_t p;
    bool add;     /* to what is in out */
    uint8_t *out; /* its first element; packed */
    size_t stride;
} sherd__limbs_piece;

typedef struct sherd__limbs_kernels {
    /** Sorts `rows` <= 16 rows of k values, `stride` bytes apart, into a strip. Returns true if a
     *  value is not below p. */
    bool (*sort_rows)(const uint8_t *in, size_t rows, size_t k, size_t stride, uint32_t p,
                      uint8_t *strip);
    /** Sorts `cols` <= 64 columns of k rows, `stride` bytes apart, into four strips of `strip`
     *  bytes each. Returns true if a value is not below p. */
    bool (*sort_columns)(const uint8_t *in, size_t cols, size_t k, size_t stride, uint32_t p,
                         uint8_t *out, size_t strip);
    /** Transposes a tile in the form of B to the form of A: 16 x 16 words of four terms. */
    void (*turn)(uint8_t *tile);
    void (*multiply)(const sherd__limbs_piece *piece);
} sherd__limbs_kernels;

/** Computes the sums of each weight of two strips, with instructions of any processor. */
void sherd__limbs_sums(const uint8_t *a, const uint8_t *b, size_t steps,
                       uint32_t sums[LIMBS_SUMS * LIMBS_SUM]);
/** Returns the kernels for AVX-512, or with tiles for AVX-512 and AMX. NULL where the processor
 *  does not have them, or the system does not let the process use them. */
const sherd__limbs_kernels *sherd__limbs_wide(bool tiles);

#endif
