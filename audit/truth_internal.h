/* What the two files of the truth share. */
#ifndef AUDIT_TRUTH_INTERNAL_H
#define AUDIT_TRUTH_INTERNAL_H

#include "audit/truth.h"

/**
 * Takes the kept rows of f for a run of A's rows, and finds it: col, alike and row as
 * sherd__truth_rows has them, alike over the rows that are there. *found is false, and they are as
 * they were, where there is no such run. SHERD_ENOMEM.
 */
int sherd__truth_part(const sherd__truth *t, const sherd__sheaf *f, uint32_t *col, uint32_t *alike,
                      uint32_t *row, bool *found) SHERD_MUST;

#endif
