/* A node's own examples, from a file. */
#ifndef CLI_OWN_H
#define CLI_OWN_H

#include "learn/own.h"
#include "sherd/npy.h"

typedef struct sherd__own_data {
    sherd__own own;
    sherd_npy *npy;   /* what it borrows from */
    void *members[2];
} sherd__own_data;

/** A .npy, whose last columns are targets, or a .npz with members x and y. *out is the caller's
 *  (sherd__own_close), on failure too. SHERD_EOPEN, SHERD_EFORMAT, SHERD_ESHAPE, SHERD_ENOMEM. */
int sherd__own_load(sherd__own_data *out, const char *path, sherd_diag *d) SHERD_MUST;
/** Safe on a zeroed one. */
void sherd__own_close(sherd__own_data *x);

#endif
