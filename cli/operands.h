/* Operands of a verb: files, their views and profiles. */
#ifndef CLI_OPERANDS_H
#define CLI_OPERANDS_H

#include <stdbool.h>

#include "sherd/array.h"
#include "sherd/profile.h"

typedef struct sherd__operand_file {
    const char *path;
    sherd_array *file; /* NULL: data from elsewhere */
    sherd_view view;
    sherd_profile *profile; /* NULL: none */
} sherd__operand_file;

/** Opens a file (sherd_array_open) by numpy's rule for vectors: a row, or with `column`, as on the
 *  right of a product, a column. The caller closes *in in any case. */
int sherd__operand_file_open(sherd__operand_file *in, const char *path, bool column,
                             sherd_diag *d) SHERD_MUST;
/** Closes *in, which may be zeroed. */
void sherd__operand_file_close(sherd__operand_file *in);

#endif
