/*
 * A limit on the work that all connections of one peer key may cause in one iteration of the event
 * loop, so that a coordinator with many connections gets no more time than one with few. The
 * connections that ask in one iteration get equal shares in the next. Usage beyond a share is
 * charged to later iterations. An iteration ("turn") is what happens at one value of the loop's
 * clock.
 */
#ifndef WIRE_TURN_H
#define WIRE_TURN_H

#include <stdbool.h>
#include <stdint.h>

#define SHERD__TURN_RECORDS 512u
#define SHERD__TURN_BYTES (8u << 20) /* of plaintext */

/** The state of one key. Zero-initialise. It must outlive its parts. */
typedef struct sherd__turn {
    /* used in the iteration at `now`, including excess of earlier ones */
    uint64_t now, records, bytes;
    uint32_t asking, before; /* connections that asked in this iteration; in the one before */
} sherd__turn;

/** The state of one connection. Zero-initialise except for `of`. */
typedef struct sherd__turn_part {
    sherd__turn *of;
    uint64_t now, records, bytes;
} sherd__turn_part;

/** Returns true if the connection must wait for an iteration later than the one at `now` (ms). */
bool sherd__turn_over(sherd__turn_part *p, uint64_t now);
/** Counts a record that took `ns` to handle: one, plus one for each 8 us. It counts at most twice
 *  the limit of an iteration more, because the thread may have waited for a processor meanwhile. */
void sherd__turn_record(sherd__turn_part *p, uint64_t ns);
/** Counts bytes of plaintext. */
void sherd__turn_bytes(sherd__turn_part *p, uint64_t bytes);

#endif
