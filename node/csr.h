/*
 * Taking a block in CSR apart (crypto/fragment.h): some rows of a group at a time, and of these one
 * range of columns after another, as lists or scattered over zeros. What is never written out is
 * the whole dense form: its size is the peer's to choose.
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

/** Rows that are computed together, and how far their entries have been taken. */
typedef struct sherd__csr_rows {
    size_t n;
    uint64_t next[SHERD__CSR_ROWS], end[SHERD__CSR_ROWS]; /* entries of the block */
    uint32_t count[SHERD__CSR_ROWS];                      /* of the current range of columns */
    size_t taken;                                         /* sum of count */
} sherd__csr_rows;

/** f is CSR, its body in memory. */
void sherd__csr_open(sherd__csr_block *out, const sherd__fragment *f);
/** Begins with n <= SHERD__CSR_ROWS rows, from row `first` of the block on, whose entries begin at
 *  entry `at`. Returns where those of the row behind them begin. */
uint64_t sherd__csr_begin(sherd__csr_rows *r, const sherd__csr_block *b, uint64_t first, size_t n,
                          uint64_t at);
/** The next range [*from, *from + *len) of the group's cols columns, *from a multiple of step and
 *  len at most step, that holds entries: those between are zero in all of the rows. False: no
 *  more. */
bool sherd__csr_range(sherd__csr_rows *r, const sherd__csr_block *b, uint64_t cols, size_t step,
                      size_t *from, size_t *len);
/** The range's entries as taken columns, counted from `from`, and values. */
void sherd__csr_lists(sherd__csr_rows *r, const sherd__csr_block *b, size_t from, uint32_t *column,
                      double *value);
/** The same as n x len numbers, row-major. Either of the two, once for a range. */
void sherd__csr_dense(sherd__csr_rows *r, const sherd__csr_block *b, size_t from, size_t len,
                      double *out);

#endif
