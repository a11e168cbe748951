/*
 * Parses the recorded bytes between a coordinator and a node (docs/PROTOCOL.md): records, and the
 * control bodies that describe the data. It is separate from the parser in wire/, because an audit
 * must not trust the code that it audits, and because the bytes may have been cut or edited since.
 * Pure functions; outputs borrow from the input; nothing here allocates.
 */
#ifndef AUDIT_READING_H
#define AUDIT_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/fragment.h"

/* Record types, with the numbers of docs/PROTOCOL.md. */
enum {
    SHERD__READ_HELLO = 1,
    SHERD__READ_WELCOME = 2,
    SHERD__READ_PUT = 3,
    SHERD__READ_TASK = 4,
    SHERD__READ_RESULT = 5,
    SHERD__READ_REFUSE = 6,
    SHERD__READ_DROP = 7
};

#define SHERD__READ_HEAD 32u
#define SHERD__READ_PART 262144u
#define SHERD__READ_PRIMES 8u

typedef struct sherd__reading {
    uint16_t type;
    uint64_t job;
    uint32_t number, part;
    const uint8_t *body;
    size_t len;
} sherd__reading;

/**
 * Reads the record at *at and moves *at past it. Returns 1 if one was read, 0 at the end, and -1,
 * with *at unchanged, if the bytes there are no record or are cut.
 */
int sherd__reading_next(const uint8_t *bytes, size_t len, size_t *at,
                        sherd__reading *out) SHERD_MUST;
/** Returns the next position in [from, len) where a session could start (a HELLO or WELCOME
 *  header), or len. */
size_t sherd__reading_resume(const uint8_t *bytes, size_t len, size_t from, uint16_t type);

/** Reads part 0 of a PUT or a RESULT. *attempt is 0 if the body has none. SHERD_EFRAME. */
int sherd__reading_description(const uint8_t *body, size_t len, sherd__fragment_info *out,
                               uint32_t *attempt) SHERD_MUST;

typedef struct sherd__reading_task {
    uint32_t op, flags, left, right;
    uint32_t primes_len, primes[SHERD__READ_PRIMES];
    sherd__fragment_info result;
} sherd__reading_task;

int sherd__reading_task_of(const uint8_t *body, size_t len, sherd__reading_task *out) SHERD_MUST;

#endif
