/*
 * Computes how many bytes a block, a task or a result occupies in a session: headers, description
 * and the parts of its body. The encoders themselves are used, so that predictions are equal to the
 * counters (sherd__session_stats.work_in, work_out).
 */
#ifndef WIRE_SIZE_H
#define WIRE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/session.h"

/** Returns true if records of this type are counted as work: PUT, TASK, RESULT. */
bool sherd__size_counts(uint16_t type);
uint64_t sherd__size_put(const sherd__fragment_info *block);
uint64_t sherd__size_task(const sherd__task *task);
uint64_t sherd__size_result(const sherd__fragment_info *result, uint32_t attempt);

#endif
