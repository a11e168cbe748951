/* Options for the products of a network: how they are computed, and by which nodes. */
#ifndef CLI_REMOTE_PRODUCTS_H
#define CLI_REMOTE_PRODUCTS_H

#include "cli/cli.h"
#include "sherd/cluster.h"
#include "sherd/product.h"

typedef struct sherd__remote_products {
    bool nodes;       /* requested by -n, --nodes or --by */
    bool elementwise; /* nodes compute sigmoid, tanh and ReLU too */
    bool stochastic;  /* operands are rounded stochastically */
    sherd_product_options opt;
} sherd__remote_products;

/* clang-format off */
/** How operands of a network's products are hidden: --scheme, --colluding, --spare, --code,
 *  --group, --exposure, --exposure-max, --encoding. */
#define SHERD__OPTS_OVER                                                                           \
    {.name = "scheme", .type = SHERD__CHOICE, .arg = "NAME", .preset = "permute",                  \
     .flags = SHERD__OPT_SCHEMES | SHERD__OPT_NETWORK,                                             \
     .help = "how operands are hidden from nodes"},                                                \
        SHERD__OPT_COLLUDING(SHERD__OPT_NETWORK), SHERD__OPT_SPARE(SHERD__OPT_NETWORK),            \
        SHERD__OPT_CODE(SHERD__OPT_NETWORK), SHERD__OPT_GROUP(SHERD__OPT_NETWORK),                 \
        SHERD__OPT_EXPOSURE(SHERD_TAKES_SHUFFLES),                                                 \
        SHERD__OPT_EXPOSURE_MAX(SHERD_TAKES_SHUFFLES),                                             \
        SHERD__OPT_ENCODING(SHERD__OPT_NETWORK, "operands")
#define SHERD__OPT_MODE                                                                            \
    {.name = "mode", .type = SHERD__CHOICE, .arg = "HOW", .preset = "float",                       \
     .choices = sherd__choices_mode,                                                               \
     .help = "float (as BLAS computes it) or exact (fixed point, the same bits everywhere)"}
#define SHERD__OPT_BITS                                                                            \
    {.name = "bits", .type = SHERD__INT, .arg = "B", .min = 2, .max = 26,                          \
     .help = "width of fixed-point numbers in bits; implies --mode exact [17]"}
#define SHERD__OPT_ELEMENTWISE                                                                     \
    {.name = "elementwise", .type = SHERD__CHOICE, .arg = "WHERE", .preset = "here",               \
     .choices = sherd__choices_elementwise,                                                        \
     .help = "sigmoid, tanh, ReLU: here (on this machine), or nodes (over them; not private)"}
#define SHERD__OPT_ROUNDING                                                                        \
    {.name = "rounding", .type = SHERD__CHOICE, .arg = "HOW", .preset = "nearest",                 \
     .choices = sherd__choices_rounding,                                                           \
     .help = "fixed point: nearest, or stochastic (up or down at random, correct on average)"}
/* clang-format on */
extern const char *const sherd__choices_elementwise[]; /* here nodes */
extern const char *const sherd__choices_rounding[];    /* nearest stochastic */

/**
 * Zeroes o and reads the options, before anything is opened. Options without effect that are not on
 * the command line are forgotten. SHERD_EINVAL: options without effect on the command line, unless
 * the library refuses them.
 */
int sherd__remote_products_read(sherd__remote_products *o, sherd__cli *cli,
                                sherd_diag *d) SHERD_MUST;
/** Checks the nodes, and opens them; *out is NULL if none are requested. The caller closes *out. */
int sherd__remote_products_open(sherd_cluster **out, const sherd__remote_products *o,
                                sherd__cli *cli, sherd_diag *d) SHERD_MUST;

#endif
