/*
 * .npz: a zip archive of .npy members, as numpy.savez writes it and numpy.load reads it. The reader
 * does not trust the archive. Member names, methods (stored, deflated), headers and sizes are
 * checked against a limit when the archive is opened, before any allocation. The CRC of a member is
 * checked when its last byte has been read. The writer streams: members are produced row by row
 * while the file is written.
 */
#ifndef STORE_NPZ_H
#define STORE_NPZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/mat.h"
#include "store/npy_header.h"

/** Maximum number of members; more are refused. */
#define SHERD__NPZ_MEMBERS_MAX 65535u
/** Maximum size of a member name, including ".npy" and the terminating NUL. */
#define SHERD__NPZ_NAME_SIZE 80u

typedef struct sherd__npz sherd__npz;

typedef struct sherd__npz_member {
    char name[SHERD__NPZ_NAME_SIZE]; /* without ".npy" */
    bool deflated;
    sherd__npy_header head;
    uint64_t packed; /* bytes in the file */
} sherd__npz_member;

/**
 * Opens an archive. All members together may unpack to unpacked_base bytes plus unpacked_ratio
 * bytes for each byte of the archive. The caller closes *out with sherd__npz_close. Errors:
 * SHERD_EOPEN, SHERD_EIO, SHERD_ENOMEM; SHERD_EFORMAT, SHERD_ESHAPE: not a zip, or one that is
 * refused; the message names file and member.
 */
int sherd__npz_open(sherd__npz **out, const char *path, uint64_t unpacked_base,
                    uint32_t unpacked_ratio, sherd_diag *d) SHERD_MUST;
/** All members together may unpack to `base` bytes plus `ratio` bytes for each of the archive. */
typedef struct sherd__npz_limit {
    uint64_t base;
    uint32_t ratio;
} sherd__npz_limit;
/** Does the same for bytes in memory, which are borrowed; `where` is the prefix of messages. */
int sherd__npz_open_bytes(sherd__npz **out, const uint8_t *bytes, size_t len, const char *where,
                          sherd__npz_limit limit, sherd_diag *d) SHERD_MUST;
/** Closes the archive. NULL is allowed. */
void sherd__npz_close(sherd__npz *z);

size_t sherd__npz_count(const sherd__npz *z);
const sherd__npz_member *sherd__npz_member_at(const sherd__npz *z, size_t i);
/** Returns the index of the member `name` (without ".npy"), or -1. */
int64_t sherd__npz_find(const sherd__npz *z, const char *name);
/** Returns the path, for messages. */
const char *sherd__npz_where(const sherd__npz *z);

/** Reads all values of member i in the order of the file (Fortran order is kept). len must be its
 *  head.data_len. Errors: SHERD_EFORMAT (CRC, broken deflate stream), SHERD_EINVAL (len),
 *  SHERD_ENOMEM. */
int sherd__npz_read(sherd__npz *z, size_t i, void *out, size_t len, sherd_diag *d) SHERD_MUST;

/** Reads the member `name`, which must have this dtype and `len` bytes of values. Errors:
 *  SHERD_EFORMAT if there is no such member, and those of sherd__npz_read. */
int sherd__npz_take(sherd__npz *z, const char *name, sherd_dtype dtype, void *out, size_t len,
                    sherd_diag *d) SHERD_MUST;

/** Reads the values of member i in pieces. Several readers of one archive may be open, on one
 *  thread. The caller frees *out with sherd__npz_reader_free. */
typedef struct sherd__npz_reader sherd__npz_reader;
int sherd__npz_reader_new(sherd__npz_reader **out, sherd__npz *z, size_t i,
                          sherd_diag *d) SHERD_MUST;
/** Reads the next len bytes of values. The CRC is checked with the last bytes. Errors: SHERD_EINVAL
 *  past the end. */
int sherd__npz_reader_next(sherd__npz_reader *r, void *out, size_t len, sherd_diag *d) SHERD_MUST;
void sherd__npz_reader_free(sherd__npz_reader *r);

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct sherd__npz_writer sherd__npz_writer;

/** The source of a member's values: `fill` writes rows [row, row+rows) to out, in ascending order.
 *  It returns 0 or SHERD_E*. */
typedef struct sherd__npz_source {
    int (*fill)(void *ctx, size_t row, size_t rows, void *out, sherd_diag *d);
    void *ctx;
} sherd__npz_source;

/** Starts a private file (0600), which is published as a whole by the commit. The caller ends it
 *  with sherd__npz_writer_commit or _abort. Errors: SHERD_EUNSUPPORTED for a pipe. */
int sherd__npz_writer_new(sherd__npz_writer **out, const char *path, sherd_diag *d) SHERD_MUST;
/** Reserves space for an archive of `bytes`; what it does not need is given back by the commit.
 *  Errors: SHERD_EIO. */
int sherd__npz_writer_reserve(sherd__npz_writer *w, uint64_t bytes, sherd_diag *d) SHERD_MUST;
/** A member in C order. With ndim 1 its length is cols, and rows is 1. */
typedef struct sherd__npz_array {
    const char *name;
    sherd_dtype dtype;
    unsigned ndim;
    size_t rows, cols;
} sherd__npz_array;

/** Adds a member. `fill` is not called before the commit. Errors: SHERD_EINVAL for a name that the
 *  reader would refuse. */
int sherd__npz_writer_add(sherd__npz_writer *w, const sherd__npz_array *a, bool deflate,
                          sherd__npz_source source, sherd_diag *d) SHERD_MUST;
/** Does the same for values in memory, C order without gaps, borrowed until the commit. */
int sherd__npz_writer_add_values(sherd__npz_writer *w, const sherd__npz_array *a, bool deflate,
                                 const void *values, sherd_diag *d) SHERD_MUST;
/** Fills and writes all members in order, syncs the file and gives it its name. Frees w, on failure
 *  too. *size (may be NULL) is the size of the file. On failure an existing file is unchanged. */
int sherd__npz_writer_commit(sherd__npz_writer *w, uint64_t *size, sherd_diag *d) SHERD_MUST;
/** Discards the file and frees w. NULL is allowed. */
void sherd__npz_writer_abort(sherd__npz_writer *w);

#endif
