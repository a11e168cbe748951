/* How fast one thread puts bytes through an encrypted session: what a link costs its two ends. */
#ifndef WIRE_CARRY_H
#define WIRE_CARRY_H

/** Bytes a second of one thread that writes plaintext into TLS and hands the records to the kernel,
 *  or takes them from it: the mean of both ends, over a connection on loopback, in processor time.
 *  Measured by a thread at either end, in a tenth of a second or less, and again when that is a
 *  second ago. 0 where it cannot be measured. Any thread. */
double sherd__carry_rate(void);

#endif
