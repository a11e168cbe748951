/*
 * The record: what a session's byte stream is made of. A fixed little-endian header of
 * SHERD__RECORD_BYTES, then body_len bytes of body.
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
#define SHERD__RECORD_MAGIC 0x44524853u /* 'S' 'H' 'R' 'D' as they travel */
#define SHERD__RECORD_OPTIONAL 1u       /* flags, bit 0 */

/* Longest bodies by kind of record. */
#define SHERD__CONTROL_MAX 1024u  /* protobuf bodies */
#define SHERD__UNKNOWN_MAX 65536u /* optional records of a type that is not known: skipped */

/* The numbers travel and are never reused. */
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

/** "PUT" and so on; NULL for a type that is none of ours. */
const char *sherd__record_name(uint16_t type);
/** Who sends this type: bit 0 the coordinator, bit 1 the node (1 << (sherd__role - 1)). */
unsigned sherd__record_senders(uint16_t type);
/** Longest body that a record of this type and part may have. */
uint64_t sherd__record_cap(uint16_t type, uint32_t part);

void sherd__record_pack(const sherd__record *r, uint8_t out[SHERD__RECORD_BYTES]);

/**
 * Reads a header. SHERD_EFRAME, with the reason in *d and *out untouched, for a wrong magic, flags
 * that no type has, an unknown type that may not be skipped, a body above its type's cap, or a job,
 * number or part where the type has none (or none where it must have one).
 */
int sherd__record_parse(sherd__record *out, const uint8_t in[SHERD__RECORD_BYTES],
                        sherd_diag *d) SHERD_MUST;

#endif
