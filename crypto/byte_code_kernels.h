/* Shared by the files of codes over byte primes: byte_code.c for every processor, byte_code_wide.c
 * for processors with AVX-512-VNNI. */
#ifndef CRYPTO_BYTE_CODE_KERNELS_H
#define CRYPTO_BYTE_CODE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/byte_code.h"

/** Parameters of sherd__bytes_combine. */
typedef struct sherd__byte_sums {
    const int8_t *w;
    uint32_t sums, terms, p;
    bool is_signed;
    const uint8_t *const *in;
    size_t n;
    uint8_t *const *out;
} sherd__byte_sums;

/** Parameters of sherd__bytes_project. */
typedef struct sherd__byte_projection {
    const int8_t *r;
    size_t r_ld;
    const uint8_t *x;
    size_t rows, cols, ld;
    int32_t *acc;
    size_t acc_ld;
} sherd__byte_projection;

/** The functions of byte_code.h that have a version for each path. */
typedef struct sherd__byte_kernels {
    void (*reduce)(const double *x, size_t n, uint32_t len, size_t stride, uint8_t *out);
    void (*combine)(const sherd__byte_sums *s);
    void (*project)(const sherd__byte_projection *s);
    void (*settle)(const int32_t *acc, size_t n, uint32_t p, bool is_signed, uint8_t *out);
    size_t (*keep)(const uint8_t *in, size_t n, uint32_t p, uint8_t *out, size_t room);
} sherd__byte_kernels;

/** Returns the kernels for AVX-512-VNNI, NULL if this processor or compiler does not have it. */
const sherd__byte_kernels *sherd__byte_kernels_wide(void);

/** Copies bytes below p in their order, until there are `room` of them; returns how many. p is at
 *  most 255. For crypto/mask.h. */
size_t sherd__bytes_keep(const uint8_t *in, size_t n, uint32_t p, uint8_t *out, size_t room);

#endif
