/* Description of `blind`: one-time masks for A, prepared in advance for one B. */
#include "sherd/scheme.h"

#include "schemes/blind/blind.h"

const sherd_scheme_info sherd__blind = {
    .scheme = SHERD_BLIND,
    .name = "blind",
    .about = "one-time masks: all nodes together learn nothing of A; B is public",
    .hides_a = true,
    .withstands = SHERD_WITHSTANDS_ALL,
    .hides_zeros = true,
    .exact_only = true,
    .residues = true,
    .takes = SHERD_TAKES_BITS_B | SHERD_TAKES_MASKS | SHERD_TAKES_WEIGHTS,
};
