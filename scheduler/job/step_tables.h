/*
 * Tables of the operations of one training step, from metadata: a multiplier over a cluster uses
 * them in place of exposures and permutations that it draws (docs/METADATA.md, "Trainings").
 *
 * Tables are in the order in which a pass calls the multiplier; a forward pass uses the first of
 * them. Every call is compared with the table that is next. The caller fills the list (lib/train).
 */
#ifndef SCHEDULER_JOB_STEP_TABLES_H
#define SCHEDULER_JOB_STEP_TABLES_H

#include "learn/layer.h"
#include "sherd/meta.h"
#include "sherd/product.h"

typedef struct sherd__step_table {
    sherd_meta_operation op; /* of a batch of full size */
    uint64_t number;         /* index of the operation in the metadata */
    bool kept;               /* a product whose right operand stays at the nodes */
    bool of_batch;           /* the columns of A are the examples of the batch, their windows, or
                                all entries */
    uint32_t *exposures;     /* sherd_meta_columns(&op) of them; owned */
    uint64_t calls;
    double *shown; /* of A by node, then of B: the largest fractions that a call reported; owned */
} sherd__step_table;

typedef struct sherd__step_tables {
    uint8_t seed[32]; /* of the metadata; secret */
    uint32_t nodes;
    uint64_t pass; /* number of the pass in progress */
    size_t len, next;
    sherd__step_table *at;
} sherd__step_tables;

/** Wipes and frees what *t holds. *t may be zeroed. */
void sherd__step_tables_fini(sherd__step_tables *t);
/** Begins a pass: a callback of sherd__engine, whose context is the tables. */
void sherd__step_tables_begin(void *tables, uint64_t pass);
/** Returns whether the next table is that of a product whose right operand stays at the nodes. An
 *  operand that is kept is sent with its product if it is not. */
bool sherd__step_tables_keep(const sherd__step_tables *t);
/**
 * Returns the next table. columns, length: the number of exposures and the length of the
 * permutations that the operation needs, at most those of the table: a batch may be shorter.
 * SHERD_EINTERNAL: the pass calls for another operation.
 */
int sherd__step_tables_next(sherd__step_tables *t, sherd_op kind, size_t columns, size_t length,
                            sherd__step_table **out, sherd_diag *d) SHERD_MUST;
/** Derives the key of the permutations of a table with the number `turn`, which is t in
 *  METADATA.md. The caller wipes it. */
void sherd__step_table_key(const sherd__step_tables *t, const sherd__step_table *of, uint64_t turn,
                           uint8_t key[32]);
/** Counts a call, and records what it showed to each node. r->nodes may be 0. */
void sherd__step_table_show(sherd__step_table *t, const sherd_report *r);

/** Makes a multiplier of sherd_multiplier_cluster use these tables, which must outlive it. Its
 *  scheme uses permutations, and its cluster has tables->nodes nodes. Passes are announced by
 *  sherd__step_tables_begin. */
void sherd__multiplier_use_tables(sherd_multiplier m, sherd__step_tables *tables);

#endif
