/*
 * A file of one-time masks: the key of a random matrix R (rows x k), and R*B modulo each prime,
 * prepared in advance for one public B (k x m). A party that sends A + R and receives (A + R)*B
 * subtracts R*B.
 *
 *     0    "SHERDMSK", version u32, primes u32, id 16 bytes, key 32 bytes,
 *          SHA-256 of B (store/digest.h)
 *     96   k, m, rows u64; bits of A and of B u32 each; four primes u32 (unused ones 0); zeros
 *     160  tag of all that, 32 bytes
 *     192  mark: rows used so far u64, zeros to 32 bytes, tag
 *     256  rows of R*B: for each prime m packed residues (3 bytes), then a tag of 16 bytes
 *
 * All numbers are little-endian. Tags are keyed BLAKE2b, so an edited or damaged byte is detected
 * before any data that depends on it is sent.
 *
 * A row is used only once. sherd__maskfile_strike moves the mark and syncs the file and its folder.
 * It then moves and syncs a counter that is stored elsewhere (one small file named by the id, in
 * the user's state folder). Only then does it return the key, which is the only way to get it. A
 * process that is killed at any time has therefore either sent nothing, or has marked as used every
 * row that it may have sent. The counter distinguishes an older copy of the file, such as one
 * restored from a backup, from the newest version: the mark of the copy is behind, and the copy is
 * refused. While a file is open for use its counter is locked, so no copy of the file can be opened
 * for use.
 *
 * Who learns it: anyone who reads the file, also later or from a backup, can remove the masks of
 * everything that was or will be sent with it. The file therefore has mode 0600, and is refused if
 * other users could read it.
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
#define SHERD__MASKFILE_TAG 16u   /* bytes of the tag after each row */

/** The contents and purpose of a file. */
typedef struct sherd__maskfile_head {
    uint8_t id[16];
    sherd__digest b;
    uint64_t k, m, rows;
    uint32_t bits_a, bits_b; /* widths that the range proof relies on */
    uint32_t primes_len, primes[4];
} sherd__maskfile_head;

/** Returns the bytes of R*B in a row, without its tag. */
size_t sherd__maskfile_row_bytes(const sherd__maskfile_head *h);
/** Returns the size of the whole file in bytes, or 0 if the head is out of range: k, m and rows
 *  must be below 2^32, bits 2 to 26, with one to four distinct primes. */
uint64_t sherd__maskfile_bytes(const sherd__maskfile_head *h);

/* --- creating a file -------------------------------------------------------------------------- */

typedef struct sherd__maskfile_writer sherd__maskfile_writer;

/** A mask file, and the folder of its counter (NULL: the default one). */
typedef struct sherd__maskfile_place {
    const char *path, *state;
} sherd__maskfile_place;
/**
 * Starts a new file that will become `path`. id and root key are 16 and 32 fresh random bytes.
 * `state` is the folder of counters; NULL is the user's ($XDG_STATE_HOME/sherd/masks). Returns in
 * mask_key the file's mask key, which is derived from root. Errors: SHERD_EOPEN, SHERD_EIO (no
 * room), SHERD_EINVAL, SHERD_ENOMEM.
 */
int sherd__maskfile_begin(sherd__maskfile_writer **out, sherd__maskfile_place at,
                          const sherd__maskfile_head *head, const uint8_t root[32],
                          uint8_t mask_key[32], sherd_diag *d) SHERD_MUST;
/** Appends the next row: sherd__maskfile_row_bytes bytes of packed residues. */
int sherd__maskfile_row(sherd__maskfile_writer *w, const uint8_t *bytes, sherd_diag *d) SHERD_MUST;
/** Publishes first the counter and then the file. Frees w, on failure too. Errors: SHERD_EINVAL if
 *  rows are missing. */
int sherd__maskfile_commit(sherd__maskfile_writer *w, sherd_diag *d) SHERD_MUST;
/** Discards the file and frees w. NULL is allowed. */
void sherd__maskfile_abort(sherd__maskfile_writer *w);

/* --- using a file ----------------------------------------------------------------------------- */

typedef struct sherd__maskfile sherd__maskfile;

/**
 * Opens a file and checks head, size, mark and counter. With `use` rows can be taken, and the file
 * is locked until it is closed; otherwise it is opened read-only. The caller closes *out with
 * sherd__maskfile_close. Errors: SHERD_EOPEN; SHERD_EKEY: other users can read it; SHERD_EFORMAT:
 * not a file of masks, damaged or edited; SHERD_EVERSION; SHERD_EBUSY: in use; SHERD_EEXPOSURE: an
 * older copy, or it has no counter here.
 */
int sherd__maskfile_open(sherd__maskfile **out, const char *path, const char *state, bool use,
                         sherd_diag *d) SHERD_MUST;
const sherd__maskfile_head *sherd__maskfile_head_of(const sherd__maskfile *f);
/** Returns the number of unused rows. */
uint64_t sherd__maskfile_left(const sherd__maskfile *f);
/** Checks the next n rows, which may take some time; no row is marked as used. Errors:
 *  SHERD_EEXPOSURE: fewer rows are left; SHERD_EFORMAT: a row is damaged; SHERD_EIO,
 *  SHERD_ENOMEM. */
int sherd__maskfile_check(sherd__maskfile *f, uint64_t n, sherd_diag *d) SHERD_MUST;
/**
 * Checks the next n rows and marks them as used permanently. Returns the index of the first one and
 * the mask key, which the caller wipes. Errors: those of sherd__maskfile_check, with no row marked;
 * SHERD_EIO: the rows may be marked, and must be considered used.
 */
int sherd__maskfile_strike(sherd__maskfile *f, uint64_t n, uint64_t *first, uint8_t mask_key[32],
                           sherd_diag *d) SHERD_MUST;
/** Reads bytes [offset, offset+len) of row `row` of R*B. The row is checked again, because the file
 *  may have changed since; the row that was read last stays in memory. One thread at a time.
 *  Errors: SHERD_EFORMAT, SHERD_EIO, SHERD_ENOMEM. */
int sherd__maskfile_read(sherd__maskfile *f, uint64_t row, size_t offset, size_t len, uint8_t *out,
                         sherd_diag *d) SHERD_MUST;
/** Closes and unlocks the file. NULL is allowed. */
void sherd__maskfile_close(sherd__maskfile *f);

#endif
