/*
 * .npz: a zip of .npy members, as numpy.savez writes them and numpy.load opens them. Reading takes
 * nothing on trust: member names, methods (stored, deflated), heads and sizes are checked when the
 * archive is opened, against a ceiling and before any allocation; each member's CRC when its last
 * byte has been read. Writing streams: members are produced row by row while the file is written.
 */
#ifndef STORE_NPZ_H
#define STORE_NPZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/mat.h"
#include "store/npy_header.h"

/** More members than this are refused. */
#define SHERD__NPZ_MEMBERS_MAX 65535u
/** Longest member name, ".npy" and terminator included. */
#define SHERD__NPZ_NAME_SIZE 80u

typedef struct sherd__npz sherd__npz;

typedef struct sherd__npz_member {
    char name[SHERD__NPZ_NAME_SIZE]; /* without ".npy" */
    bool deflated;
    sherd__npy_header head;
    uint64_t packed; /* bytes in the file */
} sherd__npz_member;

/**
 * Opens an archive. All members together may unpack to unpacked_base bytes and unpacked_ratio for
 * each byte of the archive. *out is the caller's (sherd__npz_close). SHERD_EOPEN, SHERD_EIO,
 * SHERD_ENOMEM; SHERD_EFORMAT, SHERD_ESHAPE: not a zip, or one that is refused; the message names
 * file and member.
 */
int sherd__npz_open(sherd__npz **out, const char *path, uint64_t unpacked_base,
                    uint32_t unpacked_ratio, sherd_diag *d) SHERD_MUST;
/** The same of bytes in memory, borrowed; `where` opens messages. */
int sherd__npz_open_bytes(sherd__npz **out, const uint8_t *bytes, size_t len, const char *where,
                          uint64_t unpacked_base, uint32_t unpacked_ratio,
                          sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
void sherd__npz_close(sherd__npz *z);

size_t sherd__npz_count(const sherd__npz *z);
const sherd__npz_member *sherd__npz_member_at(const sherd__npz *z, size_t i);
/** Index of the member `name` (without ".npy"), or -1. */
int64_t sherd__npz_find(const sherd__npz *z, const char *name);
/** The path, for messages. */
const char *sherd__npz_where(const sherd__npz *z);
/** Bytes of the archive. */
uint64_t sherd__npz_size(const sherd__npz *z);

/** Reads all values of member i (Fortran order stays as it lies): len must be its head.data_len.
 *  SHERD_EFORMAT (CRC, broken deflate stream), SHERD_EINVAL (len), SHERD_ENOMEM. */
int sherd__npz_read(sherd__npz *z, size_t i, void *out, size_t len, sherd_diag *d) SHERD_MUST;

/** The member `name`, which must have this dtype and `len` bytes of values: SHERD_EFORMAT where
 *  there is no such one; else as sherd__npz_read. */
int sherd__npz_take(sherd__npz *z, const char *name, sherd_dtype dtype, void *out, size_t len,
                    sherd_diag *d) SHERD_MUST;

/** The values of member i in pieces. Several readers of one archive may be open, on one thread. */
typedef struct sherd__npz_reader sherd__npz_reader;
int sherd__npz_reader_new(sherd__npz_reader **out, sherd__npz *z, size_t i,
                          sherd_diag *d) SHERD_MUST;
/** The next len bytes of values; SHERD_EINVAL past the end. The last bytes come with the CRC's
 *  verdict. */
int sherd__npz_reader_next(sherd__npz_reader *r, void *out, size_t len, sherd_diag *d) SHERD_MUST;
void sherd__npz_reader_free(sherd__npz_reader *r);

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct sherd__npz_writer sherd__npz_writer;

/** Where a member's values come from: rows [row, row+rows) to out, ascending; 0 or SHERD_E*. */
typedef struct sherd__npz_source {
    int (*fill)(void *ctx, size_t row, size_t rows, void *out, sherd_diag *d);
    void *ctx;
} sherd__npz_source;

/** Starts a private file (0600) that appears whole at commit. A pipe is SHERD_EUNSUPPORTED. */
int sherd__npz_writer_new(sherd__npz_writer **out, const char *path, sherd_diag *d) SHERD_MUST;
/** Announces a member, C order; ndim 1 takes cols as its length and rows = 1. Nothing is filled
 *  before the commit. SHERD_EINVAL for a name that could not be read back. */
int sherd__npz_writer_add(sherd__npz_writer *w, const char *name, sherd_dtype dtype, unsigned ndim,
                          size_t rows, size_t cols, bool deflate, sherd__npz_source source,
                          sherd_diag *d) SHERD_MUST;
/** The same of values that lie in memory, C order without gaps, borrowed until the commit. */
int sherd__npz_writer_add_values(sherd__npz_writer *w, const char *name, sherd_dtype dtype,
                                 unsigned ndim, size_t rows, size_t cols, bool deflate,
                                 const void *values, sherd_diag *d) SHERD_MUST;
/** Fills and writes all members in order, syncs, gives the file its name; frees w, on failure too.
 *  *size (may be NULL) is the file's. An earlier file survives every failure. */
int sherd__npz_writer_commit(sherd__npz_writer *w, uint64_t *size, sherd_diag *d) SHERD_MUST;
/** Drops it; NULL is allowed. */
void sherd__npz_writer_abort(sherd__npz_writer *w);

#endif
