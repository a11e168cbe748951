/* Throughput of one thread at either end of an encrypted session: the cost of a link. */
#ifndef WIRE_LINK_RATE_H
#define WIRE_LINK_RATE_H

/** Returns the bytes per second of one thread that writes plaintext into TLS and passes the records
 *  to the kernel, or does the reverse: the mean of both ends, over a loopback connection, in
 *  processor time. The measurement uses one thread per end and takes a tenth of a second or less.
 *  It is repeated if the last one is more than a second old. Returns 0 if it fails. Any thread may
 *  call it. */
double sherd__link_rate_here(void);

#endif
