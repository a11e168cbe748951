/*
 * Subnormal numbers as zeros. Many processors take a hundred times as long for an operation with a
 * subnormal operand or result, and so time would tell of numbers.
 */
#ifndef CORE_SUBNORMAL_H
#define CORE_SUBNORMAL_H

#include <stdbool.h>

/**
 * Whether from now on this thread's float32 and float64 operations read subnormal operands as zeros
 * and give zeros where results are subnormal; returns whether they did before, for setting it back.
 * x86-64 (MXCSR) and AArch64 (FPCR); elsewhere nothing changes, and false is returned.
 */
bool sherd__subnormal_flush(bool flush);
/** Whether they do. */
bool sherd__subnormal_flushed(void);

#endif
