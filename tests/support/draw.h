/* Pseudo-random numbers for tests: a seed determines the series. */
#ifndef TESTS_SUPPORT_DRAW_H
#define TESTS_SUPPORT_DRAW_H

#include <stdint.h>

/** The state of the generator; assign a seed to it to start a series. */
extern uint64_t draw_state;

/** Returns the next number, of 31 bits. */
uint64_t draw(void);

#endif
