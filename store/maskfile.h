/*
 * A file of one-time masks: the key of a random matrix R (rows x k), and R*B modulo each prime,
 * made ahead for one public B (k x m). Whoever sends A + R and gets (A + R)*B back subtracts R*B.
 *
 *     0    "SHERDMSK", version u32, primes u32, id 16 bytes, key 32 bytes,
 *          SHA-256 of B (store/digest.h)
 *     96   k, m, rows u64; bits of A and of B u32 each; four primes u32 (unused ones 0); zeros
 *     160  tag of all that, 32 bytes
 *     192  mark: rows used so far u64, zeros to 32 bytes, tag
 *     256  rows of R*B: for each prime m packed residues (3 bytes), then a tag of 16 bytes
 *
 * All little-endian; tags are keyed BLAKE2b, so an edited or damaged byte is found before anything
 * that depends on it is sent.
 *
 * A row is used once. sherd__maskfile_strike moves the mark and syncs file and folder; then it
 * moves a counter that lies elsewhere (one small file by the id, in the user's state folder) and
 * syncs that; only then it gives the key out, which is the one way to it. So a process that is
 * killed at any instant has either sent nothing or has struck off what it may have sent. The
 * counter tells an older copy of the file, restored or made before, from the newest: the copy says
 * less, and is refused. While a file is open for use its counter is locked, and so no copy of it
 * can be.
 *
 * Who learns it: whoever reads the file, also later or from a backup, can undo the masks of
 * everything that was and will be sent with it. So it is 0600, and refused where others could read
 * it.
 */
#ifndef STORE_MASKFILE_H
#define STORE_MASKFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "store/digest.h"

#define SHERD__MASKFILE_VERSION 1u
#define SHERD__MASKFILE_HEAD 256u /* bytes before the first row */
#define SHERD__MASKFILE_TAG 16u   /* bytes behind each row */

/** What a file is for. */
typedef struct sherd__maskfile_head {
    uint8_t id[16];
    sherd__digest b;
    uint64_t k, m, rows;
    uint32_t bits_a, bits_b; /* widths that the range proof counts on */
    uint32_t primes_len, primes[4];
} sherd__maskfile_head;

/** Bytes of R*B in a row, without its tag. */
size_t sherd__maskfile_row_bytes(const sherd__maskfile_head *h);
/** Bytes of the whole file; 0 where the head is out of range: k, m and rows below 2^32, bits 2 to
 *  26, one to four distinct primes. */
uint64_t sherd__maskfile_bytes(const sherd__maskfile_head *h);

/* --- making one ------------------------------------------------------------------------------- */

typedef struct sherd__maskfile_writer sherd__maskfile_writer;

/**
 * Begins a new file that will be `path`; id and root key are 16 and 32 fresh random bytes. `state`
 * is the folder of counters, NULL for the user's ($XDG_STATE_HOME/sherd/masks). Out of root the
 * file's mask key is derived, given in mask_key. SHERD_EOPEN, SHERD_EIO (no room), SHERD_EINVAL,
 * SHERD_ENOMEM.
 */
int sherd__maskfile_begin(sherd__maskfile_writer **out, const char *path, const char *state,
                          const sherd__maskfile_head *head, const uint8_t root[32],
                          uint8_t mask_key[32], sherd_diag *d) SHERD_MUST;
/** Appends the next row: sherd__maskfile_row_bytes of packed residues. */
int sherd__maskfile_row(sherd__maskfile_writer *w, const uint8_t *bytes, sherd_diag *d) SHERD_MUST;
/** Makes counter and file appear, in this order, and frees w, on failure too. SHERD_EINVAL where
 *  rows are missing. */
int sherd__maskfile_commit(sherd__maskfile_writer *w, sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
void sherd__maskfile_abort(sherd__maskfile_writer *w);

/* --- using one -------------------------------------------------------------------------------- */

typedef struct sherd__maskfile sherd__maskfile;

/**
 * Opens and checks head, size, mark and counter. use: to take rows, alone (locked until closed);
 * else only to look at.
 * SHERD_EOPEN; SHERD_EKEY: others can read it; SHERD_EFORMAT: no such file, damaged or edited;
 * SHERD_EVERSION; SHERD_EBUSY: in use; SHERD_EEXPOSURE: an older copy, or no counter of it here.
 */
int sherd__maskfile_open(sherd__maskfile **out, const char *path, const char *state, bool use,
                         sherd_diag *d) SHERD_MUST;
const sherd__maskfile_head *sherd__maskfile_head_of(const sherd__maskfile *f);
/** Rows that are not struck off. */
uint64_t sherd__maskfile_left(const sherd__maskfile *f);
/** Checks the next n rows, which may take a while; nothing is struck off. SHERD_EEXPOSURE: fewer
 *  are left; SHERD_EFORMAT: a row is damaged; SHERD_EIO, SHERD_ENOMEM. */
int sherd__maskfile_check(sherd__maskfile *f, uint64_t n, sherd_diag *d) SHERD_MUST;
/**
 * Strikes the next n rows off for good, once they are checked, and gives out where they begin and
 * the mask key (the caller's to wipe). Errors of sherd__maskfile_check; then nothing is struck off.
 * SHERD_EIO: they may be, and must count so.
 */
int sherd__maskfile_strike(sherd__maskfile *f, uint64_t n, uint64_t *first, uint8_t mask_key[32],
                           sherd_diag *d) SHERD_MUST;
/** Bytes [offset, offset+len) of row `row` of R*B, which is checked again, as the file may have
 *  been changed since; the row that was read last is held. One thread at a time. SHERD_EFORMAT,
 *  SHERD_EIO, SHERD_ENOMEM. */
int sherd__maskfile_read(sherd__maskfile *f, uint64_t row, size_t offset, size_t len, uint8_t *out,
                         sherd_diag *d) SHERD_MUST;
/** Unlocks; NULL is allowed. */
void sherd__maskfile_close(sherd__maskfile *f);

#endif
