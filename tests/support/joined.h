/*
 * A coordinator's session joined in memory to a client of a real task loop: when the test moves
 * bytes, one side receives what the other has sent. A step that fails fails the test.
 */
#ifndef TESTS_SUPPORT_JOINED_H
#define TESTS_SUPPORT_JOINED_H

#include "node/worker.h"

typedef struct joined {
    sherd__session *co, *no;
    sherd__worker *worker;
    sherd__client *client;                    /* NULL: the node has ended it */
    void (*hear)(void *ctx, sherd__event *e); /* its fragment is freed after the call */
    void *ctx;
    bool paused;                    /* the coordinator does not read what the node sends */
    char withheld[SHERD__TEXT_MAX]; /* the latest reason that the node does not send to the
                                     * coordinator */
} joined;

/** Opens a client of `w`, READY at both ends. Events of the coordinator's session go to `hear`. */
void joined_open(joined *j, sherd__worker *w, void (*hear)(void *, sherd__event *), void *ctx);
/** As joined_open, for the holder of a key and its part of the budget (sherd__worker_join). */
void joined_open_as(joined *j, sherd__worker *w, const sherd__fingerprint *key, uint64_t memory,
                    void (*hear)(void *, sherd__event *), void *ctx);

/** Moves what one side offers, out to the node or back. Returns the bytes moved. */
size_t joined_move(joined *j, bool out);
/** Moves bytes until neither side has anything to send. */
void joined_exchange(joined *j);
/** As joined_exchange, until nothing is left to compute either. */
void joined_settle(joined *j, sherd__executor *executor);

/** Sends a block from the coordinator; the bytes are copied. */
void joined_put(joined *j, uint64_t job, uint32_t block, uint8_t dtype, uint64_t rows,
                uint64_t cols, const void *bytes);

/** Asks for a task whose result has these rows and columns. It is sent with the next exchange. */
void joined_ask(joined *j, uint64_t job, uint32_t number, uint32_t op, uint32_t left,
                uint32_t right, uint8_t dtype, uint64_t rows, uint64_t cols);

/** Breaks the connection; both sessions are freed. */
void joined_cut(joined *j);

#endif
