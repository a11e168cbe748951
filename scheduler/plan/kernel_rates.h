/*
 * How fast one thread of this machine does what surrounds products: residues unpacked and packed,
 * small types widened, answers judged. Measured in processor time, in some milliseconds, and again
 * when that is a second ago; bytes a second of what travels. What comes from elsewhere when it
 * happens (blocks, answers) is no longer in any cache near the core when it is measured. Of nodes
 * elsewhere it is assumed.
 */
#ifndef SCHEDULER_PLAN_KERNEL_RATES_H
#define SCHEDULER_PLAN_KERNEL_RATES_H

typedef struct sherd__kernel_rates {
    double unpack;         /* packed residues into doubles */
    double pack;           /* sums of products, reduced, into packed residues */
    double widen;          /* bytes of float into doubles; narrower types take as long an entry */
    double lay;            /* doubles of a right block, laid out by BLAS anew for each product */
    double stream;         /* answers of doubles made of a column and a row, as they are sent */
    double mask;           /* masks drawn, as packed residues */
    double judge_residues; /* answers of packed residues, both trials */
    double judge_f64;      /* answers of doubles, with real weights */
} sherd__kernel_rates;

/** Every rate is positive. Any thread. */
sherd__kernel_rates sherd__kernel_rates_here(void);

#endif
