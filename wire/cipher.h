/* Encryption speed of this machine, which is an upper bound on the rate of any link. */
#ifndef WIRE_CIPHER_H
#define WIRE_CIPHER_H

/** Returns the throughput of TLS_AES_128_GCM_SHA256, the preferred cipher suite of links, in bytes
 *  per second for 16 KB records on one thread. The value is the best of a few runs, measured at the
 *  first call in less than a millisecond. Any thread may call it. */
double sherd__cipher_rate(void);

#endif
