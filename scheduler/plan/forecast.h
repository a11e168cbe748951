/*
 * Predicts the cost of a product before anything is sent: the exact number of bytes, and an
 * estimate of the time. Bytes are counted cell by cell by the functions that make and frame them.
 * The work of this machine is calibrated: a few cells are hidden and folded, and timed.
 */
#ifndef SCHEDULER_PLAN_FORECAST_H
#define SCHEDULER_PLAN_FORECAST_H

#include "scheduler/plan/prepare.h"

/** Amount of data and work of a product. */
typedef struct sherd__traffic {
    uint64_t tasks, tasks_csr; /* tasks_csr: of these, with a left block in CSR */
    uint64_t out, in;          /* bytes of PUT and TASK, and of RESULT, headers included */
    uint64_t first;            /* of out: the resident blocks */
    uint64_t left, answer;     /* bodies only: left blocks of the cells, and results */
    double flops;              /* of all tasks; a multiply-add counts as two */
    double multiplied;         /* of flops, those that are not streamed (see below) */
    bool residues; /* all left operands are sent as packed residues; right ones are packed residues
                      or integers */
    bool bytes;    /* of these, left operands are byte residues */
    double unpacked, packed; /* bytes of packed residues that nodes unpack, and produce */
    double widened;          /* bytes of narrower types that nodes convert to doubles, counted as
                                floats */
    struct {
        double packed, widened; /* of these, for right operands */
    } right;
    double expanded; /* bytes of byte residues that nodes make from seeds */
    double laid;     /* bytes of right blocks of doubles, counted once for each product that uses
                        them */
    double streamed; /* bytes of answers that are computed while they are sent */
    double busiest;  /* time of the products, where the slowest node would take 1 for all of them
                        (sherd__cost_uneven): without speeds, the largest share of the bytes of
                        answers and operands in one slot */
    double busiest_link; /* as busiest, of the transfers */
    bool moves;          /* an idle node takes over what a slow one has not done */
    bool at_most; /* an upper bound: the amount depends on timing, because late spare shares are
                        not requested and an idle node helps only if there is time */
} sherd__traffic;

/** Counts the traffic of a product. alike: assumes that all whole panels of a slot are like its
 *  first; this holds for operands without zeros and avoids reading them. p must not be running.
 *  SHERD_EUNSUPPORTED: the scheme does not report sizes; SHERD_EINTERRUPTED: hooks. */
int sherd__traffic_count(sherd__traffic *out, const sherd__prepared *p, bool alike,
                         const sherd_hooks *hooks) SHERD_MUST;

/** Estimates seconds of the coordinator's threads for the whole product from a few of its cells; p
 *  cannot be used afterwards. For a scheme that cannot be calibrated (blind, because each mask may
 *  be used only once), the time is estimated from the number of bytes. SHERD_EINTERRUPTED:
 *  hooks. */
typedef struct sherd__calibration {
    double hide_s, fold_s, fill_s;
} sherd__calibration;
int sherd__calibration_measure(sherd__calibration *out, sherd__prepared *p, const sherd__traffic *t,
                               const sherd_hooks *hooks) SHERD_MUST;
/** Returns what sherd__calibration_measure would measure on a typical machine, from the number of
 *  bytes: right within a factor of two or so. */
sherd__calibration sherd__calibration_typical(const sherd__prepared *p, const sherd__traffic *t);
/** Returns the residues of an operand that one core of a typical machine multiplies by the vectors
 *  of a check, in a second: nothing is measured. */
double sherd__calibration_project(const sherd__prepared *p);

#endif
