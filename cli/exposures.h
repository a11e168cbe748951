/* The lines of a table that shows what nodes are given of the operands of operations. */
#ifndef CLI_EXPOSURES_H
#define CLI_EXPOSURES_H

#include <stdint.h>

/** Prints the heads of the columns. what: the meaning of the numbers. */
void sherd__exposures_head(const char *what);
/** Prints the fractions of one operation, a number for each node: one line for every seven nodes.
 *  operands: "A", "B", or "A, B" if the fractions are those of both. */
void sherd__exposures_print(const char *operation, const char *operands, const double *fractions,
                            uint32_t nodes);

#endif
