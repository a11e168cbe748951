/* A folder for one test, and files in it. */
#ifndef TESTS_STORE_SCRATCH_H
#define TESTS_STORE_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

/** cmocka group setup and teardown: creates and removes the folder. */
int scratch_setup(void **state);
int scratch_teardown(void **state);
/** Returns the path of the folder. */
const char *scratch_dir(void);
/** Returns the path of `name` in the folder; valid during the next eight calls. */
const char *scratch_path(const char *name);
/** Writes a file and returns its path. */
const char *scratch_write(const char *name, const void *bytes, size_t len);
/** Reads a whole file into malloc'ed memory and adds a NUL; NULL if there is no file. */
uint8_t *scratch_read(const char *path, size_t *len);
/** Returns the number of entries of the folder, hidden ones included. */
size_t scratch_entries(void);
/** Removes all entries of the folder. */
void scratch_clear(void);
/** Runs a Python program on stdin in the folder. Returns its exit status, or -1 if it did not
 *  exit. */
int scratch_python(const char *program);

#endif
