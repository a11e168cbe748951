/*
 * Assignments of least cost: rows to columns, each column at most once.
 */
#ifndef AUDIT_ASSIGN_H
#define AUDIT_ASSIGN_H

#include <stddef.h>

#include "sherd/err.h"

#define SHERD__ASSIGN_NONE ((size_t)-1)

/**
 * Sets to[r] to the column of row r so that the sum of cost[r * cols + to[r]] is minimal. If there
 * are more rows than columns, rows without a column get SHERD__ASSIGN_NONE. Costs must be finite.
 * Shortest augmenting paths (Kuhn 1955, Jonker and Volgenant 1987), O(min^2 * max). SHERD_ENOMEM.
 */
int sherd__assign(const double *cost, size_t rows, size_t cols, size_t *to) SHERD_MUST;
/** As sherd__assign, among ascending assignments: to[0] < to[1] < ... SHERD_EINVAL: more rows than
 *  columns. */
int sherd__assign_ascending(const double *cost, size_t rows, size_t cols, size_t *to) SHERD_MUST;

#endif
