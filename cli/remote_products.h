/* Where the products of a network are computed: in this process, or on nodes under a scheme. */
#ifndef CLI_REMOTE_PRODUCTS_H
#define CLI_REMOTE_PRODUCTS_H

#include "cli/cli.h"
#include "learn/layer.h"
#include "sherd/cluster.h"
#include "sherd/product.h"

typedef struct sherd__remote_products {
    bool nodes;           /* requested by -n, --nodes or --by */
    bool here;            /* products are computed here although there are nodes, which have
                             other work (--by gradients); set by the caller before
                             sherd__remote_products_open */
    const char *says;     /* replaces the sentence of sherd__remote_products_says; NULL: no */
    unsigned bits;        /* width of the fixed point; 0: float64 */
    bool stochastic;      /* operands are rounded stochastically (matrix/rounding.h) */
    uint8_t rounding[32]; /* its seed; set by the caller before sherd__remote_products_open */
    sherd_product_options opt;
    sherd_cluster *cluster; /* set when open; NULL: here */
    sherd__engine engine;   /* set when open */
} sherd__remote_products;

/* clang-format off */
/** How operands of a network's products are hidden: --scheme, --colluding, --spare, --group,
 *  --exposure, --exposure-max, --encoding. */
#define SHERD__OPTS_OVER                                                                           \
    {.name = "scheme", .type = SHERD__CHOICE, .arg = "NAME", .preset = "permute",                  \
     .flags = SHERD__OPT_SCHEMES | SHERD__OPT_NETWORK,                                             \
     .help = "how operands are hidden from nodes"},                                                \
        {.name = "colluding", .type = SHERD__INT, .arg = "T", .min = 1, .max = 63, .preset = "1",  \
         .help = "share: how many domains together shall learn nothing"},                          \
        {.name = "spare", .type = SHERD__INT, .arg = "S", .min = 0, .max = 1000, .preset = "0",    \
         .help = "share: how many nodes may be slow, dead or lying without work done again"},      \
        {.name = "group", .type = SHERD__INT, .arg = "G", .min = 1, .max = 4294967295.0,           \
         .word = "all", .word_value = 0, .preset = "all",                                          \
         .help = "permute: columns that share one permutation, 1 to all"},                         \
        SHERD__OPT_EXPOSURE, SHERD__OPT_EXPOSURE_MAX,                                              \
        {.name = "encoding", .type = SHERD__CHOICE, .arg = "HOW", .preset = "auto",                \
         .choices = sherd__choices_encoding,                                                       \
         .help = "permute, plain: how operands travel: dense, csr (without zeros) or as is "       \
                 "quicker"}
#define SHERD__OPT_MODE                                                                            \
    {.name = "mode", .type = SHERD__CHOICE, .arg = "HOW", .preset = "float",                       \
     .choices = sherd__choices_mode,                                                               \
     .help = "float (as BLAS computes it) or exact (fixed point, the same bits everywhere)"}
#define SHERD__OPT_BITS                                                                            \
    {.name = "bits", .type = SHERD__INT, .arg = "B", .min = 2, .max = 26,                          \
     .help = "width of the fixed point; means --mode exact [17]"}
#define SHERD__OPT_ELEMENTWISE                                                                     \
    {.name = "elementwise", .type = SHERD__CHOICE, .arg = "WHERE", .preset = "here",               \
     .choices = sherd__choices_elementwise,                                                        \
     .help = "sigmoid, tanh, ReLU: computed here, or over the nodes (plain, permute)"}
#define SHERD__OPT_ROUNDING                                                                        \
    {.name = "rounding", .type = SHERD__CHOICE, .arg = "HOW", .preset = "nearest",                 \
     .choices = sherd__choices_rounding,                                                           \
     .help = "fixed point: nearest, or stochastic (up or down by chance, right in the mean)"}
/* clang-format on */
extern const char *const sherd__choices_elementwise[]; /* here nodes */
/** Returns SHERD_EINVAL if a network of f32 is to be computed other than in floats on this
 *  machine. */
int sherd__remote_products_precision(const sherd__remote_products *o, sherd_dtype precision,
                                     sherd_diag *d) SHERD_MUST;
extern const char *const sherd__choices_rounding[]; /* nearest stochastic */

/**
 * Zeroes o and reads the options, before anything is opened. SHERD_EINVAL: share1 and blind (with
 * the reason), options without effect, options that cannot be combined.
 */
int sherd__remote_products_read(sherd__remote_products *o, sherd__cli *cli,
                                sherd_diag *d) SHERD_MUST;
/** Opens the nodes, if any, and the multiplier. seed: 32 bytes from which exposures and
 *  permutations are derived, or NULL: fresh. */
int sherd__remote_products_open(sherd__remote_products *o, sherd__cli *cli, const uint8_t *seed,
                                sherd_diag *d) SHERD_MUST;
/** For fixed point: makes *m round as the options specify, and give each operand the exponent that
 *  its largest number allows (matrix/scaling.h). On success *m owns the multiplier that it had; on
 *  failure that one is freed. SHERD_ENOMEM. */
int sherd__remote_products_round(const sherd__remote_products *o, sherd_multiplier *m,
                                 sherd_diag *d) SHERD_MUST;
/** Frees the multiplier and ends the nodes. Returns the error of --record, if any. Traffic can
 *  still be read afterwards. */
int sherd__remote_products_end(sherd__remote_products *o, sherd_diag *d) SHERD_MUST;
/** Safe on a zeroed struct and when called twice. */
void sherd__remote_products_close(sherd__remote_products *o);

/** The present nodes and their traffic so far. */
typedef struct sherd__remote_products_traffic {
    uint32_t nodes, up;
    uint64_t bytes_out, bytes_in;
} sherd__remote_products_traffic;
sherd__remote_products_traffic sherd__remote_products_traffic_now(const sherd__remote_products *o);
/** Returns one sentence that says which party sees which data. */
const char *sherd__remote_products_says(const sherd__remote_products *o);

#endif
