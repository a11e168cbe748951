/* Opens .npy files as operands. */
#include "cli/operands.h"

#include "core/diag.h"

int sherd__operand_open(sherd__operand *in, const char *path, bool column, sherd_diag *d)
{
    *in = (sherd__operand){ .path = path };
    int err = sherd_npy_open(&in->file, path, d);
    if (err) return err;
    in->view = sherd_npy_view(in->file);
    if (column && sherd_npy_ndim(in->file) == 1) in->view = sherd_view_t(in->view);
    return sherd_profile_new(&in->profile, in->view, d);
}

void sherd__operand_close(sherd__operand *in)
{
    sherd_profile_free(in->profile);
    sherd_npy_close(in->file);
    *in = (sherd__operand){ .path = NULL };
}

int sherd__operands_agree(const sherd__operand in[2], sherd_op op, sherd_diag *d)
{
    sherd_view a = in[0].view, b = in[1].view;
    if (op == 0 && a.cols != b.rows)
        return sherd__fail(d, SHERD_ESHAPE, "A needs as many columns as B has rows",
                           "%s is %zu x %zu and %s is %zu x %zu: they cannot be multiplied",
                           in[0].path, a.rows, a.cols, in[1].path, b.rows, b.cols);
    if (op == 0 || (a.rows == b.rows && a.cols == b.cols)) return 0;
    return sherd__fail(d, SHERD_ESHAPE, "both must have one shape",
                       "%s is %zu x %zu and %s is %zu x %zu", in[0].path, a.rows, a.cols,
                       in[1].path, b.rows, b.cols);
}
