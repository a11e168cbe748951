/*
 * The devices of a task loop: which of them computes a task, which blocks each of them holds, and
 * what is lost with one. The host keeps every block, so that a device is a cache of blocks: what it
 * has no room for is dropped, least recently used first, and held again when a task needs it; a
 * device that is lost takes no data with it.
 */
#ifndef NODE_DEVICES_H
#define NODE_DEVICES_H

#include "node/backend.h"
#include "node/store.h"

#define SHERD__DEVICES_MAX 16u

typedef struct sherd__residence sherd__residence;

typedef struct sherd__device_state {
    sherd__device what;
    uint32_t number;
    uint32_t under_way; /* calls */
    bool lost;
    sherd__residence *oldest, *newest; /* blocks that it holds, by their last use */
} sherd__device_state;

typedef struct sherd__devices {
    const sherd__backend *backend;
    void *ctx; /* the backend's */
    sherd__device_state list[SHERD__DEVICES_MAX];
    uint32_t count;
} sherd__devices;

/** The first `count` devices of a backend that is open; at most SHERD__DEVICES_MAX are used. */
void sherd__devices_init(sherd__devices *ds, const sherd__backend *backend, void *ctx,
                         const sherd__device *list, uint32_t count);
/** Calls under way that keep all devices busy. */
uint32_t sherd__devices_depth(const sherd__devices *ds);
/** Whether a call is under way. */
bool sherd__devices_busy(const sherd__devices *ds);
/**
 * Starts the call of a task over these blocks (right may be NULL) on the device that fits best:
 * sets the call's handles; task, owner, out, executor, clock and done are the caller's. The device
 * is *on until sherd__devices_done. SHERD_EBUSY: as many calls are under way as the devices take.
 * SHERD_ENOMEM: no room beside what calls under way use. SHERD_EDEVICE, SHERD_EUNSUPPORTED: no
 * device computes it.
 */
int sherd__devices_submit(sherd__devices *ds, sherd__call *c, sherd__block *left,
                          sherd__block *right, sherd__device_state **on, sherd_diag *d) SHERD_MUST;
/** The call is done: notes what its answer says of the device. True where another attempt may
 *  succeed. */
bool sherd__devices_done(const sherd__call *c, sherd__block *left, sherd__block *right,
                         sherd__device_state *on);
/** Ends all handles of a block. */
void sherd__devices_drop(sherd__block *b);

#endif
