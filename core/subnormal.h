/*
 * Flushing of subnormal numbers to zero. Many processors take a hundred times as long for an
 * operation with a subnormal operand or result, so that the time would reveal information about the
 * numbers.
 */
#ifndef CORE_SUBNORMAL_H
#define CORE_SUBNORMAL_H

#include <stdbool.h>

/**
 * Sets whether float32 and float64 operations of this thread read subnormal operands as zeros and
 * replace subnormal results with zeros. Returns the previous setting, for restoring it. Supports
 * x86-64 (MXCSR) and AArch64 (FPCR); elsewhere it changes nothing and returns false.
 */
bool sherd__subnormal_flush(bool flush);
/** Returns the current setting. */
bool sherd__subnormal_flushed(void);

#endif
