/* By sorting: lists have one value for each node. */
#include "core/median.h"

#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double sherd__median(double *list, size_t len, bool upper)
{
    if (len == 0) return 0;
    qsort(list, len, sizeof *list, ascending);
    return list[(upper ? len : len - 1) / 2];
}
