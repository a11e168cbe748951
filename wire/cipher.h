/* How fast this machine enciphers: the most that a link can carry, whatever network is below. */
#ifndef WIRE_CIPHER_H
#define WIRE_CIPHER_H

/** Bytes a second of TLS_AES_128_GCM_SHA256, the links' first choice, in records of 16 KB on one
 *  thread: the best of a few, measured at the first call in less than a millisecond. Any thread. */
double sherd__cipher_rate(void);

#endif
