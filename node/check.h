/* Checks that a task and the blocks that it names agree, before any memory is taken and before any
 * arithmetic. */
#ifndef NODE_CHECK_H
#define NODE_CHECK_H

#include "crypto/fragment.h"
#include "matrix/windows.h"
#include "sherd/err.h"
#include "wire/session.h"

/** Least and largest modulus of a task (matrix/residue.h): quotients of integers up to 2^53 by less
 *  than 5 are not rounded exactly. */
#define SHERD__PRIME_MIN 5u
#define SHERD__PRIME_MAX ((1u << 23) - 1)
/** The same for residues of one byte (matrix/residue_bytes.h), and the largest number of terms. */
#define SHERD__BYTES_PRIME_MIN 3u
#define SHERD__BYTES_PRIME_MAX 255u
#define SHERD__BYTES_TERMS_MAX 65536u

/**
 * Checks a task against its blocks. left and right (NULL where the task names none) must have
 * passed sherd__fragment_table_check. On error *d names the two that disagree.
 *
 * Errors: SHERD_EUNSUPPORTED where no node computes this operation, dtype or modulus; SHERD_EINVAL
 * where an operand is missing or superfluous; SHERD_ESHAPE where shapes disagree with each other or
 * with the announced result.
 */
int sherd__task_check(const sherd__task *task, const sherd__fragment *left,
                      const sherd__fragment *right, sherd_diag *d) SHERD_MUST;
/** Computes blocks that were sent as seeds, for the thread that computes the task: the first task
 *  that uses one expands it. right may be NULL. Errors of sherd__fragment_settle. */
int sherd__task_settle(const sherd__fragment *left, const sherd__fragment *right,
                       sherd_diag *d) SHERD_MUST;
/** More groups are not compared by sherd__task_check, which runs on the loop's thread. */
#define SHERD__GROUPS_AT_ONCE (1u << 16)
bool sherd__task_defers_groups(const sherd__task *task, const sherd__fragment *left);
/** The rest of the check, for the compute thread. Does nothing where sherd__task_check compared the
 *  groups. Returns SHERD_ESHAPE where they disagree. */
int sherd__task_check_groups(const sherd__task *task, const sherd__fragment *left,
                             const sherd__fragment *right, sherd_diag *d) SHERD_MUST;

/** Returns the kinds of arithmetic of a task, SHERD__DOES_*. */
uint32_t sherd__task_needs(const sherd__task *task, const sherd__fragment *left);

/** Returns the windows of a task that has windows and passed the check. */
sherd__windows sherd__task_windows(const sherd__task *task);

/** Rough counts of arithmetic operations and of bytes touched, for a checked task. */
double sherd__task_flops(const sherd__task *task, const sherd__fragment *left);
double sherd__task_bytes(const sherd__task *task, const sherd__fragment *left,
                         const sherd__fragment *right);

/** Returns the bytes of one value in a message; 0 for an unknown kind. */
size_t sherd__wire_size(uint8_t dtype);

/** One group of a block that has a table of groups, or the whole block where it has none. */
typedef struct sherd__group {
    const uint8_t *values; /* of this group; NULL where the body is not read */
    uint64_t rows, cols;
} sherd__group;
uint32_t sherd__groups_of(const sherd__fragment_info *info);
/** Returns group q. `values` is the start of its values, for group 0 behind the table. */
sherd__group sherd__group_at(const sherd__fragment *f, uint32_t q, const uint8_t *values);
/** Returns the start of the values of group 0. */
const uint8_t *sherd__group_first(const sherd__fragment *f);

#endif
