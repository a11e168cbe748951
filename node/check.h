/* Whether a task and the blocks that it names agree: before any memory, before any arithmetic. */
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

/**
 * left and right (NULL where the task names none) must have passed sherd__fragment_table_check.
 * SHERD_EUNSUPPORTED: an operation, dtype or modulus that no node computes; SHERD_EINVAL: an
 * operand too many or too few; SHERD_ESHAPE: shapes that disagree with each other or with the
 * announced result. *d names the two that disagree.
 */
int sherd__task_check(const sherd__task *task, const sherd__fragment *left,
                      const sherd__fragment *right, sherd_diag *d) SHERD_MUST;
/** More groups than this are not compared by sherd__task_check, which runs on the loop's thread. */
#define SHERD__GROUPS_AT_ONCE (1u << 16)
bool sherd__task_defers_groups(const sherd__task *task, const sherd__fragment *left);
/** The rest of the check, for the compute thread: nothing where sherd__task_check compared them.
 *  SHERD_ESHAPE. */
int sherd__task_check_groups(const sherd__task *task, const sherd__fragment *left,
                             const sherd__fragment *right, sherd_diag *d) SHERD_MUST;

/** The windows of a task that has some and passed the check. */
sherd__windows sherd__task_windows(const sherd__task *task);

/** Rough count of arithmetic operations and of bytes touched, of a task that passed the check. */
double sherd__task_flops(const sherd__task *task, const sherd__fragment *left);
double sherd__task_bytes(const sherd__task *task, const sherd__fragment *left,
                         const sherd__fragment *right);

/** Bytes of one value as it travels; 0 for an unknown kind. */
size_t sherd__wire_size(uint8_t dtype);

/** Walks the groups of a block, whether it has a table or is one matrix. */
typedef struct sherd__group {
    const uint8_t *values; /* of this group; NULL where the body is not looked at */
    uint64_t rows, cols;
} sherd__group;
uint32_t sherd__groups_of(const sherd__fragment_info *info);
/** Group q; `values` is where q's values begin, group 0's behind the table. */
sherd__group sherd__group_at(const sherd__fragment *f, uint32_t q, const uint8_t *values);
/** Where the values of group 0 begin. */
const uint8_t *sherd__group_first(const sherd__fragment *f);

#endif
