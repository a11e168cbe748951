/* Opens files as operands. */
#include "cli/operands.h"

int sherd__operand_file_open(sherd__operand_file *in, const char *path, bool column, sherd_diag *d)
{
    *in = (sherd__operand_file){ .path = path };
    int err = sherd_array_open(&in->file, path, NULL, d);
    if (err) return err;
    in->view = sherd_array_operand(in->file, column);
    return sherd_profile_new(&in->profile, in->view, d);
}

void sherd__operand_file_close(sherd__operand_file *in)
{
    sherd_profile_free(in->profile);
    sherd_array_close(in->file);
    *in = (sherd__operand_file){ .path = NULL };
}
