/* A small mask file for one test, its counter, and a call that takes rows of it. */
#ifndef TESTS_UNIT_STORE_MASKFILE_WORLD_H
#define TESTS_UNIT_STORE_MASKFILE_WORLD_H

#include "store/maskfile.h"

#define ROWS 7u
#define COLS 3u

/** The file, a path for a copy of it, and the folder of counters. */
extern char masks_path[256], masks_copy[256], masks_state[256];
/** The root that the file was made from, and the key that comes with its rows. */
extern uint8_t masks_root[32], masks_key[32];

/** A case's set-up: the file exists and none of its rows is used. */
int masks_fresh(void **s);
void masks_make(void);
sherd__maskfile_head masks_head(void);
/** Returns byte i of a row of the file. */
uint8_t masks_byte(uint64_t row, size_t i);
/** Returns the path of the counter's file. */
char *masks_counter(void);

/** Returns all bytes of a file; the caller frees them. */
uint8_t *masks_slurp(const char *name, size_t *len);
void masks_put(const char *name, const uint8_t *bytes, size_t len);

/** Opens the file and takes n rows. Returns the error, or 0 and the first row in *first. */
int masks_take(const char *name, uint64_t n, uint64_t *first, sherd_diag *d);
/** Fails unless taking a row is refused with this error, this text and a hint. */
void masks_must_refuse(const char *name, int code, const char *says);

#endif
