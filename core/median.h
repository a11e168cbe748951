/* The median of a list of numbers. */
#ifndef CORE_MEDIAN_H
#define CORE_MEDIAN_H

#include <stdbool.h>
#include <stddef.h>

/** Sorts the list and returns its middle value; of two, the upper or the lower one. 0 if it is
 *  empty. No value may be NaN. */
double sherd__median(double *list, size_t len, bool upper);

#endif
