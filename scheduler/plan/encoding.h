/*
 * How panels of A travel: dense, or in CSR, which leaves zeros out (crypto/fragment.h). The choice
 * is for a whole product and by predicted time; a panel for which CSR is not smaller is dense in
 * any case.
 *
 * Predicted is what the two do not have in common, one after the other: bytes of A through the
 * links, products at the nodes, and picking zeros out and putting them back. Speeds: of products
 * what the slowest node measured of itself when it started; of links what sherd__link_rate says.
 * Everything else is a constant, so that one cluster makes one choice for one matrix however busy
 * it is.
 */
#ifndef SCHEDULER_PLAN_ENCODING_H
#define SCHEDULER_PLAN_ENCODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sherd__encoding_input {
    uint64_t rows, cols; /* of A */
    uint64_t nonzeros;
    uint64_t groups;    /* of all slots; plain: 1, of which every row of A has one piece */
    uint64_t widest;    /* columns of the widest group */
    bool skips;         /* pieces of zeros are not sent in any encoding */
    size_t value_bytes; /* of A on the wire */
    uint64_t m;         /* columns of B */
    uint64_t tiles;     /* times that A travels */
    uint32_t primes_len;
    uint32_t nodes;   /* that compute at a time */
    double gflops;    /* of the slowest node; 0: as this process */
    uint32_t threads; /* of a node; 0: 1 */
    double link;      /* bytes a second */
} sherd__encoding_input;

typedef struct sherd__encoding {
    bool csr;
    double dense_s, csr_s; /* predicted, as above */
} sherd__encoding;

void sherd__encoding_choose(sherd__encoding *out, const sherd__encoding_input *in);

/**
 * Bytes a second that this machine can send. local: nodes on loopback, where a connection carries a
 * known part of what the cipher does, and that is measured once a process, in less than a
 * millisecond.
 * Else the fastest network interface's own figure (Linux: /sys/class/net), or Gigabit Ethernet's
 * 125,000,000 (IEEE 802.3ab) where none has one; at most as on loopback.
 */
double sherd__link_rate(bool local);
/** The interfaces' part alone, with the folder to look in; 0 where none says. For tests. */
double sherd__interface_rate(const char *folder);

#endif
