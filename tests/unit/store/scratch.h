/* A folder of a test's own, and files in it. */
#ifndef TESTS_STORE_SCRATCH_H
#define TESTS_STORE_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

/** cmocka group setup and teardown: makes and removes the folder. */
int scratch_setup(void **state);
int scratch_teardown(void **state);
/** The folder. */
const char *scratch_dir(void);
/** Path of `name` in it; good for the next eight calls. */
const char *scratch_path(const char *name);
/** Writes a file and returns its path. */
const char *scratch_write(const char *name, const void *bytes, size_t len);
/** Reads a whole file: malloc'ed, NUL behind it; NULL where there is none. */
uint8_t *scratch_read(const char *path, size_t *len);
/** How many entries the folder has, hidden ones included. */
size_t scratch_entries(void);
/** Removes everything in it. */
void scratch_clear(void);
/** Runs a Python program on stdin in the folder; its exit status, -1 where it did not end
 *  itself. */
int scratch_python(const char *program);

#endif
