/* Shared by the two files of the truth. */
#ifndef AUDIT_TRUTH_INTERNAL_H
#define AUDIT_TRUTH_INTERNAL_H

#include "audit/truth.h"

/**
 * Assumes that the kept rows of f are consecutive rows of A, and finds them. Sets col, alike and
 * row as sherd__truth_rows does, alike over the rows present. If there is no such range, *found is
 * false and the others are unchanged. SHERD_ENOMEM.
 */
int sherd__truth_part(const sherd__truth *t, const sherd__sheaf *f, uint32_t *col, uint32_t *alike,
                      uint32_t *row, bool *found) SHERD_MUST;

#endif
