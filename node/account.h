/*
 * What the holder of a key has of a node: all its sessions share it, and so do connections of and
 * to members that circles of these sessions name. Lasts as long as the worker.
 */
#ifndef NODE_ACCOUNT_H
#define NODE_ACCOUNT_H

#include "node/worker.h"
#include "wire/identity.h"
#include "wire/turn.h"

struct sherd__account {
    sherd__fingerprint key;
    bool named; /* key counts: else it is of one session */
    sherd__pool *pool;
    sherd__turn turn;     /* of the loop, for all these connections */
    uint32_t connections; /* that came; counted by those who let them in */
    uint32_t opened;      /* to members */
    sherd__account *next;
};

#endif
