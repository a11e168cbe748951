/*
 * Reads a block in CSR (crypto/fragment.h) in parts: some rows of a group at a time, and of these
 * rows one range of columns after another, as lists of entries or as dense rows. The whole dense
 * form is never written out, since a peer chooses its size.
 *
 * The block has passed sherd__fragment_table_check, so nothing is checked here.
 */
#ifndef NODE_CSR_H
#define NODE_CSR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/fragment.h"

typedef struct sherd__csr_block {
    sherd__csr at;
    const uint8_t *body;
    uint8_t dtype;
} sherd__csr_block;

#define SHERD__CSR_ROWS 1024u

/** Rows that are computed together, with the position in the entries of each. */
typedef struct sherd__csr_rows {
    size_t n;
    uint64_t next[SHERD__CSR_ROWS], end[SHERD__CSR_ROWS]; /* entries of the block */
    uint32_t count[SHERD__CSR_ROWS];                      /* entries in the current range */
    size_t taken;                                         /* sum of count */
} sherd__csr_rows;

/** Opens f, which is in CSR and has its body in memory. */
void sherd__csr_open(sherd__csr_block *out, const sherd__fragment *f);
/** Starts with n <= SHERD__CSR_ROWS rows, from row `first` of the block on. `at` is the index of
 *  their first entry. Returns the index of the first entry of the row after them. */
uint64_t sherd__csr_begin(sherd__csr_rows *r, const sherd__csr_block *b, uint64_t first, size_t n,
                          uint64_t at);
/** Finds the next range [*from, *from + *len) of the group's cols columns that holds entries;
 *  columns between two ranges are zero in all of the rows. *from is a multiple of step, *len is at
 *  most step. Returns false where no entries are left. */
bool sherd__csr_range(sherd__csr_rows *r, const sherd__csr_block *b, uint64_t cols, size_t step,
                      size_t *from, size_t *len);
/** Writes the range's entries as lists of columns, counted from `from`, and of values. Each range
 *  is read once, with this function or the next one. */
void sherd__csr_lists(sherd__csr_rows *r, const sherd__csr_block *b, size_t from, uint32_t *column,
                      double *value);
/** Writes the range as n x len numbers, row-major. */
void sherd__csr_dense(sherd__csr_rows *r, const sherd__csr_block *b, size_t from, size_t len,
                      double *out);

#endif
