/* `sherd apply OP A.npy [B.npy] -o C.npy`: an element-wise operation on nodes, in float64. */
#include <string.h>

#include "cli/work.h"
#include "core/suggest.h"

static int find_operation(sherd__cli *cli, sherd_op *op, unsigned *operands, sherd_diag *d)
{
    static const char *const names[] = { "sigmoid", "minus", "square", "multiply",
                                         "relu",    "tanh",  "exp",    NULL };
    char hint[80];
    const char *name = cli->args[0], *near = sherd__suggest(name, names);
    *op = sherd_op_find(name);
    *operands = sherd_op_operands(*op);
    if (*operands == 0 || *op == SHERD_OP_PRODUCT) {
        snprintf(hint, sizeof hint, "did you mean %s?", near ? near : "");
        return sherd__fail(d, SHERD_EINVAL, near ? hint : NULL,
                           "expected sigmoid, minus, square, multiply, relu, tanh or exp, found "
                           "'%.60s'",
                           name);
    }
    if (cli->args_len - 1 == (int)*operands) return 0;
    return sherd__fail(d, SHERD_EINVAL, NULL, "%s takes %s, found %d", name,
                       *operands == 1 ? "one matrix" : "two matrices", cli->args_len - 1);
}

static int run_apply(sherd__cli *cli, sherd_diag *d)
{
    sherd__product_run w;
    sherd_op op = 0;
    unsigned operands = 1;
    int err = find_operation(cli, &op, &operands, d);
    if (err) return err;
    err = sherd__product_run_begin(&w, cli, op, operands, d);
    if (!err) err = sherd__product_run_run(&w, d);
    sherd__product_run_fini(&w);
    return err;
}

static const sherd__example examples[] = {
    { "sherd apply sigmoid A.npy -o C.npy -n 7", "1/(1+exp(-a)) of every entry over seven nodes" },
    { "sherd apply minus A.npy B.npy -o C.npy -n 7 --check",
      "A - B, compared bit for bit with the same operation computed locally" },
    { "sherd apply tanh A.npy -o C.npy --nodes nodes.txt --key me.key",
      "over the nodes that a file lists" },
    { 0 },
};

static const sherd__option options[] = {
    SHERD__OPT_OUTPUT_STREAM("C.npy"),
    SHERD__OPTS_CLUSTER,
    SHERD__OPT_EXPOSURE(0),
    SHERD__OPT_EXPOSURE_MAX(0),
    SHERD__OPT_SEED(0),
    SHERD__OPT_META(0),
    SHERD__OPT_OPERATION,
    SHERD__OPT_REUSE_METADATA,
    SHERD__OPT_CHECK,
    SHERD__OPT_STRICT,
    SHERD__OPT_CERTIFICATE,
    SHERD__OPT_CERTIFICATE_PUBLIC,
    SHERD__OPT_MEMORY,
    SHERD__OPT_THREADS,
    { 0 },
};

const sherd__verb sherd__verb_apply = {
    .name = "apply",
    .usage = "OP A.npy [B.npy] -o C.npy",
    .summary = "compute an element-wise operation over nodes",
    .details =
        "OP is sigmoid, square, relu, tanh or exp of A, or minus or multiply of A and B, in "
        "float64. The entries of each row are sent permuted; a secret sample of every answer is "
        "recomputed on this machine. NaN and infinities give the results of numpy. sigmoid of -710 "
        "is 4.476e-309, the correct value; numpy's 1/(1+exp(-a)) overflows to 0.",
    .examples = examples,
    .options = options,
    .args_min = 2,
    .args_max = 3,
    .run = run_apply,
};
