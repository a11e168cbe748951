/*
 * What computes passes of training on a node's devices. A backend that computes in the host's
 * memory gives a multiplier of its own, which reads operands in place (sherd__backend.multiplier).
 * Otherwise a device computes whole passes (node/programs.h), or this multiplier gives each
 * product of a pass to a device as a task: its operands are held for the product only, and the
 * pass, on its own thread, waits for the result. Everything else of the pass is then computed on
 * the host.
 *
 * In fixed point, products have the same bits on every device and on the host. So where a device
 * has no room for a product, does not compute its kind, or fails repeatedly, the host computes it.
 * Where all devices are lost, products fail (SHERD_EDEVICE): the node would be too slow, and its
 * part of the training is given to another node.
 *
 * Examples of the node's own (learn/local_data.h) cannot go to another node, and one sum of their
 * gradients must not mix the rounding of two machines. So every failure is reported as
 * SHERD_EDEVICE, and learn/ computes the whole sum on the host. Only devices with
 * SHERD__DOES_STEADY compute with them.
 */
#ifndef NODE_PRODUCTS_H
#define NODE_PRODUCTS_H

#include "learn/arithmetic.h"
#include "node/devices.h"

/** Whose products are made where. The devices must outlive all multipliers. */
typedef struct sherd__products {
    sherd__devices *devices;
    uint64_t owner; /* of the operands on devices */
} sherd__products;

/** Return what makes the multipliers of graders. It refers to *p while it is used. */
sherd__arithmetic sherd__products_arithmetic(sherd__products *p);
/** The same for examples of the node's own. */
sherd__arithmetic sherd__products_own(sherd__products *p);

#endif
