/*
 * Rates at which one thread of this machine does the work around products: unpacking and packing
 * residues, widening small types, checking answers. Measured in processor time, in a few
 * milliseconds, and measured again if the last result is older than a second. Rates are in bytes
 * per second of transferred data. Input that is received over the network in a job (blocks,
 * answers) is not in a cache of the core during the measurement. Remote nodes are assumed to have
 * the same rates.
 */
#ifndef SCHEDULER_PLAN_KERNEL_RATES_H
#define SCHEDULER_PLAN_KERNEL_RATES_H

typedef struct sherd__kernel_rates {
    double unpack;         /* packed residues to doubles */
    double pack;           /* sums of products, reduced, to packed residues */
    double widen;          /* bytes of float to doubles; narrower types take as long per entry */
    double lay;            /* doubles of a right block, which BLAS copies to its own layout for each
                              product */
    double stream;         /* answers of doubles, each the product of a column and a row, computed
                              while they are sent */
    double mask;           /* masks, generated as packed residues */
    double expand;         /* shares of byte residues, made from seeds */
    double judge_residues; /* checks of answers of packed residues, both trials */
    double judge_bytes;    /* checks of answers of byte residues */
    double judge_f64;      /* checks of answers of doubles, with real weights */
} sherd__kernel_rates;

/** Returns the rates; all are positive. Any thread. */
sherd__kernel_rates sherd__kernel_rates_here(void);
/** Returns the rates of a typical machine: nothing is measured. */
sherd__kernel_rates sherd__kernel_rates_typical(void);

#endif
