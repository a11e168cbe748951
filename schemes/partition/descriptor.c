/* Descriptions of `permute` and `plain`. Neither is private: they claim no property. */
#include "sherd/scheme.h"

#include "schemes/partition/partition.h"

const sherd_scheme_info sherd__permute = {
    .scheme = SHERD_PERMUTE,
    .name = "permute",
    .about = "each node is given some columns of A and, with their columns shuffled, rows of B",
    .training = "under permute, which is not private: nodes see shuffled parts of data and weights",
    .keeps = SHERD_KEEPS_RIGHT,
    .takes = SHERD_TAKES_SHUFFLES | SHERD_TAKES_ENCODING | SHERD_TAKES_WEIGHTS,
};

const sherd_scheme_info sherd__plain = {
    .scheme = SHERD_PLAIN,
    .name = "plain",
    .about = "nothing is hidden",
    .training = "under plain: nodes see data and weights in clear",
    .keeps = SHERD_KEEPS_RIGHT,
    .takes = SHERD_TAKES_ENCODING | SHERD_TAKES_WEIGHTS,
};
