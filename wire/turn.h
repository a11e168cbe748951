/*
 * What connections of one key may have of a turn of the loop, all together, so that a coordinator
 * with many connections has no more of it than one with few. Those that ask in a turn have equal
 * parts in the next one; what one takes beyond its part is paid in later turns. A turn is what
 * happens at one time of the loop's clock.
 */
#ifndef WIRE_TURN_H
#define WIRE_TURN_H

#include <stdbool.h>
#include <stdint.h>

#define SHERD__TURN_RECORDS 512u
#define SHERD__TURN_BYTES (8u << 20) /* of plaintext */

/** Of a key; zero at first. Outlives its parts. */
typedef struct sherd__turn {
    uint64_t now, records, bytes; /* taken in the turn at `now`, and beyond earlier ones */
    uint32_t asking, before;      /* connections that asked in this turn; in the one before */
} sherd__turn;

/** Of a connection; zero at first but for `of`. */
typedef struct sherd__turn_part {
    sherd__turn *of;
    uint64_t now, records, bytes;
} sherd__turn_part;

/** Whether the connection must wait for a later turn than the one at `now` (ms). */
bool sherd__turn_over(sherd__turn_part *p, uint64_t now);
/** Counts a record that took so long to handle, as one more for each 8 us of it. As two turns' at
 *  most: the thread may have waited for a processor meanwhile. */
void sherd__turn_record(sherd__turn_part *p, uint64_t ns);
/** Counts bytes of plaintext. */
void sherd__turn_bytes(sherd__turn_part *p, uint64_t bytes);

#endif
