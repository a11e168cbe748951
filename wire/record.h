/*
 * The record, which is the unit of a session's byte stream: a fixed little-endian header of
 * SHERD__RECORD_BYTES, followed by body_len bytes of body.
 *
 *   offset  0  u32  magic      "SHRD"
 *           4  u16  type       sherd__record_type
 *           6  u16  flags      bit 0: a receiver that does not know the type skips the record
 *           8  u64  job
 *          16  u32  number     block, task or ping number
 *          20  u32  part       part of a body (PUT, RESULT), attempt (TASK, REFUSE, CANCEL)
 *          24  u64  body_len
 */
#ifndef WIRE_RECORD_H
#define WIRE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "sherd/err.h"

#define SHERD__RECORD_BYTES 32u
#define SHERD__RECORD_MAGIC 0x44524853u /* 'S' 'H' 'R' 'D' in byte order */
#define SHERD__RECORD_OPTIONAL 1u       /* flags, bit 0 */

/* Maximum body lengths by kind of record, in bytes. */
#define SHERD__CONTROL_MAX 1024u  /* protobuf bodies */
#define SHERD__UNKNOWN_MAX 65536u /* optional records of an unknown type, which are skipped */

/* These numbers are part of the protocol and are never reused. */
typedef enum sherd__record_type {
    SHERD__REC_HELLO = 1,
    SHERD__REC_WELCOME = 2,
    SHERD__REC_PUT = 3,
    SHERD__REC_TASK = 4,
    SHERD__REC_RESULT = 5,
    SHERD__REC_REFUSE = 6,
    SHERD__REC_DROP = 7,
    SHERD__REC_PING = 8,
    SHERD__REC_PONG = 9,
    SHERD__REC_CANCEL = 10,
    SHERD__REC_BYE = 11
} sherd__record_type;

typedef struct sherd__record {
    uint16_t type, flags;
    uint64_t job;
    uint32_t number, part;
    uint64_t body_len;
} sherd__record;

/** Returns the name of a type, such as "PUT", or NULL for an unknown type. */
const char *sherd__record_name(uint16_t type);
/** Returns the roles that send this type: bit 0 coordinator, bit 1 node, 1 << (sherd__role - 1). */
unsigned sherd__record_senders(uint16_t type);
/** Returns the maximum body length of a record of this type and part, in bytes. */
uint64_t sherd__record_cap(uint16_t type, uint32_t part);

void sherd__record_pack(const sherd__record *r, uint8_t out[SHERD__RECORD_BYTES]);

/**
 * Parses a header. Errors: SHERD_EFRAME, with the reason in *d and *out unchanged, for a wrong
 * magic, undefined flags, an unknown type that may not be skipped, a body longer than the maximum
 * of its type, a job, number or part that the type does not have, or a missing one that it
 * requires.
 */
int sherd__record_parse(sherd__record *out, const uint8_t in[SHERD__RECORD_BYTES],
                        sherd_diag *d) SHERD_MUST;

#endif
