/* A pass of a network as a program for a device. Used by node/programs.c only. */
#ifndef NODE_PROGRAMS_BUILD_H
#define NODE_PROGRAMS_BUILD_H

#include "learn/network.h"
#include "node/backends/program.h"

/** A pass whose memory grows as needed; zeroed before its first use. */
typedef struct sherd__pass_program {
    sherd__program program; /* `call` and `ctx` are not set */
    sherd__program_step *steps;
    size_t room;
    double *input; /* x in float64, if it could not be copied as it is */
    size_t input_room;
} sherd__pass_program;

/**
 * Makes the program of a pass. It refers to the memory of p: x, y, dy, and parameters and gradients
 * of the network. Errors: SHERD_ENOMEM; SHERD_EUNSUPPORTED where a program cannot compute the pass
 * (node/programs.h).
 */
int sherd__pass_program_make(sherd__pass_program *out, const sherd__network_pass *p,
                             unsigned bits) SHERD_MUST;
void sherd__pass_program_free(sherd__pass_program *out);

#endif
