/* The data of `sherd node --data`: examples, their owner's policy, and the ledger of privacy
 * costs. */
#ifndef CLI_NODE_DATA_H
#define CLI_NODE_DATA_H

#include <pthread.h>

#include "cli/cli.h"
#include "lib/local_data.h"
#include "node/server.h"
#include "store/ledger.h"

typedef struct sherd__node_data {
    sherd__own_data own;
    sherd__policy policy;
    sherd__ledger *ledger;
    pthread_mutex_t lock; /* of the ledger: uploads are charged in a different thread from
                             reports */
} sherd__node_data;

/** Reads --data and its related options into *o, which borrows from *x; does nothing without
 *  --data. SHERD_EINVAL: an option without effect; errors of sherd__own_load and
 *  sherd__ledger_open. */
int sherd__node_data_open(sherd__node_data *x, sherd__cli *cli, sherd__node_options *o,
                          sherd_diag *d) SHERD_MUST;
void sherd__node_data_close(sherd__node_data *x);
/** Returns the costs so far: uploads, and epsilon at the policy's delta. */
json_t *sherd__node_data_json(sherd__node_data *x);
void sherd__node_data_say(sherd__cli *cli, sherd__node_data *x);

/* clang-format off */
/** Rows for the option table. */
#define SHERD__NODE_DATA_OPTIONS                                                                   \
    {.name = "data", .type = SHERD__FILE, .arg = "FILE",                                           \
     .help = "examples of this node's own: a .npy or .csv (targets are the last columns), a "      \
             ".npz with members x and y, or a folder of IDX files; only masked sums over them "    \
             "leave it (train --aggregate secure)"},                                               \
    {.name = "label", .type = SHERD__TEXT, .arg = "NAME",                                          \
     .help = "the column of a .csv that is the target, by its name in the first line"},            \
    {.name = "peers", .type = SHERD__FILE, .arg = "FILE",                                          \
     .help = "nodes that may be members with it, one line each as in a node file"},                \
    {.name = "any-peers", .type = SHERD__FLAG, .excludes = "peers",                                \
     .help = "--data: aggregate with whatever nodes the coordinator names"},                       \
    {.name = "any-roster", .type = SHERD__FLAG,                                                    \
     .help = "--data: give a sum over the same examples and weights to other members, too: their " \
             "difference tells what single nodes have, but for noise"},                            \
    {.name = "epsilon", .type = SHERD__REAL, .arg = "E", .min = 1e-6, .max = 1e6, .word = "none",  \
     .preset = "8",                                                                                \
     .help = "--data: what all rounds together may cost an example's privacy; none allows rounds " \
             "without noise"},                                                                     \
    {.name = "delta", .type = SHERD__REAL, .arg = "D", .min = 1e-300, .max = 0.1,                  \
     .preset = "1e-6", .help = "--data: the probability that goes with --epsilon"},                \
    {.name = "ledger", .type = SHERD__FILE, .arg = "FILE",                                         \
     .help = "--data: where uploads and their costs are kept [beside the data, FILE.ledger]"},     \
    {.name = "require-ledger", .type = SHERD__FLAG,                                                \
     .help = "--data: end where the ledger does not exist, instead of making one in which "        \
             "nothing is charged"},                                                                \
    {.name = "min-nodes", .type = SHERD__INT, .arg = "N", .min = 3, .max = 1024, .preset = "3",    \
     .help = "--data: take part in sums of at least so many nodes"},                               \
    {.name = "min-colluding", .type = SHERD__INT, .arg = "T", .min = 1, .max = 1022,               \
     .preset = "1", .help = "--data: ... that withstand at least so many colluding ones"},         \
    {.name = "min-rows", .type = SHERD__INT, .arg = "N", .min = 1, .max = 4294967295.0,            \
     .preset = "32",                                                                               \
     .help = "--data: ... of at least so many places of each node a round, empty ones too"},       \
    {.name = "max-rows", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e15,                    \
     .preset = "1048576", .help = "--data: ... of at most so many places of each node a round"},   \
    {.name = "max-rounds", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e15,                  \
     .preset = "10000",                                                                            \
     .help = "--data: most rounds of one training, or for one coordinator a day"},                 \
    {.name = "max-rounds-day", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e15,              \
     .preset = "20000", .help = "--data: most rounds in one day (UTC), of all trainings"}
/* clang-format on */

#endif
