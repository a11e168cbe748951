/*
 * Whole passes of training on a node's devices: a network's layers become one program
 * (node/backends/program.h), so that activations and their gradients stay on the device. Examples
 * and parameters are copied to it, outputs and gradients back. The loss is computed on the host.
 *
 * In fixed point only, with the bits of learn/. What a program does not compute (floats, softmax as
 * a layer, products whose sums are not exact in float64, a batch for which there is no room) is
 * left to sherd__network_learn, which asks for products one by one (node/products.h).
 */
#ifndef NODE_PROGRAMS_H
#define NODE_PROGRAMS_H

#include "learn/network.h"
#include "node/devices.h"

/** Computes a pass on every device that runs programs. One that computes other bits than the host
 *  or fails runs none from then on. Errors: SHERD_ENOMEM. */
int sherd__programs_test(sherd__devices *devices, sherd_diag *d) SHERD_MUST;
/** Makes what computes passes on devices, which must outlive it; out->run is NULL where no device
 *  runs programs. Errors: SHERD_ENOMEM. */
int sherd__programs_new(sherd__elsewhere *out, sherd__devices *devices, unsigned bits,
                        sherd_diag *d) SHERD_MUST;

#endif
