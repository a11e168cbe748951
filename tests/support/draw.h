/* Random numbers of tests: the same ones behind the same seed. */
#ifndef TESTS_SUPPORT_DRAW_H
#define TESTS_SUPPORT_DRAW_H

#include <stdint.h>

/** The generator's whole state; set it to begin a series. */
extern uint64_t draw_state;

/** The next one, of 31 bits. */
uint64_t draw(void);

#endif
