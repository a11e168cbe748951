/* Seven nodes fit 80 columns. More nodes continue in lines of their own. */
#include "cli/exposures.h"

#include <inttypes.h>
#include <stdio.h>

#define NODES_PER_LINE 7u

void sherd__exposures_head(const char *what)
{
    printf("%-20s %-5s %-9s %s\n", "operation", "of", "nodes", what);
}

void sherd__exposures_print(const char *operation, const char *operands, const double *fractions,
                            uint32_t nodes)
{
    char range[24];
    for (uint32_t from = 0; from < nodes; from += NODES_PER_LINE) {
        uint32_t to = nodes - from < NODES_PER_LINE ? nodes : from + NODES_PER_LINE;
        snprintf(range, sizeof range, "%" PRIu32 "-%" PRIu32, from + 1, to);
        printf("%-20s %-5s %-9s", from ? "" : operation, from ? "" : operands, range);
        for (uint32_t i = from; i < to; i++) printf(" %5.1f", 100 * fractions[i]);
        printf("\n");
    }
}
