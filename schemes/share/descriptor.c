/* Descriptions of `share` and `share1`: Lagrange coded computing of both operands, or of A. */
#include "sherd/scheme.h"

#include "schemes/share/share.h"

const sherd_scheme_info sherd__share = {
    .scheme = SHERD_SHARE,
    .name = "share",
    .about = "any --colluding domains together learn nothing of A or B",
    .training = "under share: nodes learn shapes and the number of steps, no data and no weights",
    .hides_a = true,
    .hides_b = true,
    .withstands = SHERD_WITHSTANDS_SOME,
    .hides_zeros = true,
    .exact_only = true,
    .residues = true,
    .keeps = SHERD_KEEPS_LEFT,
    .takes = SHERD_TAKES_COLLUDING | SHERD_TAKES_BITS_B,
    .public_b = SHERD_SHARE1,
};

const sherd_scheme_info sherd__share1 = {
    .scheme = SHERD_SHARE1,
    .name = "share1",
    .about = "any --colluding domains together learn nothing of A; B is public",
    .hides_a = true,
    .withstands = SHERD_WITHSTANDS_SOME,
    .hides_zeros = true,
    .exact_only = true,
    .residues = true,
    .keeps = SHERD_KEEPS_LEFT,
    .takes = SHERD_TAKES_COLLUDING | SHERD_TAKES_BITS_B,
    .public_b = SHERD_SHARE1,
};
