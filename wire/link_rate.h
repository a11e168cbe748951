/* How fast one thread puts bytes through an encrypted session: what a link costs its two ends. */
#ifndef WIRE_LINK_RATE_H
#define WIRE_LINK_RATE_H

/** Bytes a second of one thread that writes plaintext into TLS and hands the records to the kernel,
 *  or takes them from it: the mean of both ends, over a connection on loopback, in processor time.
 *  Measured by a thread at either end, in a tenth of a second or less, and again when that is a
 *  second ago. 0 where it cannot be measured. Any thread. */
double sherd__link_rate_here(void);

#endif
