/*
 * Chooses how panels of A are sent: dense, or in CSR, which leaves out zeros (crypto/fragment.h).
 * The choice is made for a whole product, by predicted time. A panel for which CSR is not smaller
 * is sent dense in any case.
 *
 * Only costs that differ are predicted, and added up: transfer of A, products at the nodes, and
 * leaving out and restoring zeros. The speed of products is what the slowest node measured when it
 * started; that of links is sherd__link_rate. Everything else is constant, so a cluster always
 * makes the same choice for the same matrix, regardless of its load.
 */
#ifndef SCHEDULER_PLAN_ENCODING_H
#define SCHEDULER_PLAN_ENCODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sherd__encoding_input {
    uint64_t rows, cols; /* of A */
    uint64_t nonzeros;
    uint64_t groups;    /* of all slots; plain: 1, which has one piece of every row of A */
    uint64_t widest;    /* columns of the widest group */
    bool skips;         /* all-zero pieces are left out in both encodings */
    size_t value_bytes; /* of an element of A, as transferred */
    uint64_t m;         /* columns of B */
    uint64_t tiles;     /* times that A is sent */
    uint32_t primes_len;
    uint32_t nodes;   /* that compute at the same time */
    double gflops;    /* of the slowest node; 0: use this process's own speed */
    bool none;        /* nodes do not compute with CSR */
    uint32_t threads; /* of a node; 0: 1 */
    double link;      /* bytes per second */
} sherd__encoding_input;

typedef struct sherd__encoding {
    bool csr;
    double dense_s, csr_s; /* predicted seconds, differing costs only */
} sherd__encoding;

/** Texts of the values of sherd_encoding, ended by NULL. */
extern const char *const sherd__encoding_names[];

void sherd__encoding_choose(sherd__encoding *out, const sherd__encoding_input *in);

/**
 * Returns how many bytes per second this machine can send. local: nodes are on loopback. Then the
 * rate is a fixed part of the cipher's rate, which is measured once per process, in less than a
 * millisecond. Otherwise it is the highest speed that a network interface reports (Linux:
 * /sys/class/net), or Gigabit Ethernet's 125,000,000 (IEEE 802.3ab) if none reports one, but no
 * more than on loopback.
 */
double sherd__link_rate(bool local);
/** Returns the interfaces' part of sherd__link_rate only, read from this folder; 0 if no speed is
 *  reported. For tests. */
double sherd__interface_rate(const char *folder);

#endif
