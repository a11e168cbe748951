/*
 * The state that a node keeps for the holder of a key. All sessions of this key share it, and so do
 * the connections from and to members of the all-reduce groups of these sessions. It lasts as long
 * as the worker.
 */
#ifndef NODE_ACCOUNT_H
#define NODE_ACCOUNT_H

#include "node/worker.h"
#include "wire/identity.h"
#include "wire/turn.h"

struct sherd__account {
    sherd__fingerprint key;
    bool named; /* the key counts; false: the account belongs to one session */
    sherd__pool *pool;
    sherd__turn turn;     /* the share of the loop's time for all these connections */
    uint32_t connections; /* accepted connections; counted by the code that accepts them */
    uint32_t opened;      /* connections opened to members */
    sherd__account *next;
};

#endif
