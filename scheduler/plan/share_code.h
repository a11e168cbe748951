/*
 * Chooses the code of a product under `share` and `share1`: which codes keep the promises that were
 * asked for, the number of blocks, and the predicted time.
 */
#ifndef SCHEDULER_PLAN_SHARE_CODE_H
#define SCHEDULER_PLAN_SHARE_CODE_H

#include "scheduler/plan/prepare.h"

/** Texts of the values of sherd_code, ended by NULL. */
extern const char *const sherd__code_names[];

/** Returns the code that is asked for by opt->code, or NULL for the one with the least predicted
 *  time. */
const sherd__code *sherd__share_code_asked(const sherd_product_options *opt);
/** Checks whether the code, unless it is NULL, keeps what opt asks for, as far as this does not
 *  depend on nodes. SHERD_EINVAL. */
int sherd__share_code_check(const sherd__code *by, const sherd_product_options *opt,
                            sherd_diag *d) SHERD_MUST;
/** Returns the sherd_code of a code. */
sherd_code sherd__share_code_number(const sherd__code *code);
/** Returns whether the right operand is coded, too. */
bool sherd__share_codes_b(const sherd_product_options *opt);
/** Returns the least number of domains for opt->colluding and opt->spare, whatever the code. */
uint64_t sherd__share_least(const sherd_product_options *opt);
/**
 * Sets p->coded_by, p->code and p->threshold for an A of `rows` rows (0: of no rows). Reads
 * p->primes_len. SHERD_EFEWNODES: too few domains of nodes are up. SHERD_EFORMAT: domains cannot be
 * trusted to be separate. SHERD_EINVAL: the code cannot keep what opt asks for, or there are no
 * such sizes.
 */
int sherd__share_code_fit(sherd__prepared *p, const sherd__code *by, size_t rows,
                          const sherd__nodes *nodes, const sherd_product_options *opt,
                          sherd_diag *d) SHERD_MUST;

/** Returns the number of rows in each domain's share of an A of `rows` rows, of its columns, which
 *  are rows of the share of B, for `cols` columns. */
size_t sherd__share_code_rows(const sherd__prepared *p, size_t rows);
size_t sherd__share_code_depth(const sherd__prepared *p, size_t cols);

/** Returns n rounded up to whole tiles of `each` lines or terms, in which byte residues are sent
 *  and multiplied; other residues: n. */
size_t sherd__share_code_tiled(const sherd__prepared *p, size_t n, size_t each);

/**
 * Lists the slots whose shares are sent as seeds, for sherd__share_params.seed_slots: where links
 * differ, the slowest ones that expand seeds; otherwise all that do. Returns their number, 0 or at
 * least p->code.masks. slots has room for p->code.shares, or is NULL.
 */
uint32_t sherd__share_code_seeds(const sherd__prepared *p, const sherd__nodes *nodes,
                                 uint32_t *slots);

/** Predicts the seconds of C = A*B by the planned code (p->code, p->plan), from the rates that
 *  nodes declare and typical ones: to compare codes, for which it is right within the same factor.
 *  stays: A's shares are at the nodes. */
double sherd__share_code_seconds(const sherd__prepared *p, const sherd__matrices *m, bool stays,
                                 const sherd__nodes *nodes, const sherd_product_options *opt);

#endif
