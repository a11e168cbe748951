/*
 * The counters of mask files: one file of 64 bytes for each, named by its id, in a folder of the
 * user's. And the form of such a mark, which the mask files hold too.
 */
#ifndef STORE_MASKFILE_STATE_H
#define STORE_MASKFILE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "sherd/err.h"

#define SHERD__MARK_BYTES 64u

/** used u64, zeros, and a tag over them, the kind ('M': in the file, 'C': counter) and the id. */
void sherd__mark_put(uint8_t out[SHERD__MARK_BYTES], char kind, const uint8_t id[16],
                     const uint8_t tag_key[32], uint64_t used);
/** False where the tag does not fit; *used is untouched then. */
bool sherd__mark_get(const uint8_t in[SHERD__MARK_BYTES], char kind, const uint8_t id[16],
                     const uint8_t tag_key[32], uint64_t *used);

/**
 * The folder of counters, made (0700) where it is missing: `folder`, or where that is NULL
 * $XDG_STATE_HOME/sherd/masks, ~/.local/state/sherd/masks. *out is the caller's. SHERD_EOPEN (no
 * home, no permission, or others may write there), SHERD_ENOMEM.
 */
int sherd__state_folder(char **out, const char *folder, sherd_diag *d) SHERD_MUST;

/** Makes a counter of 0, synced with its folder. SHERD_EOPEN (it exists: an id drawn twice),
 *  SHERD_EIO. */
int sherd__counter_new(const char *folder, const uint8_t id[16], const uint8_t tag_key[32],
                       sherd_diag *d) SHERD_MUST;
/**
 * Opens it and gives what it says; use: for writing, locked until *fd is closed. `name`: of the
 * mask file, for messages. SHERD_EEXPOSURE: there is none, so nobody can say what was used;
 * SHERD_EBUSY; SHERD_EFORMAT; SHERD_EOPEN. *fd is -1 on failure, and where use is false.
 */
int sherd__counter_open(int *fd, const char *folder, const uint8_t id[16],
                        const uint8_t tag_key[32], bool use, const char *name, uint64_t *used,
                        sherd_diag *d) SHERD_MUST;
/** Writes and syncs it and its folder. SHERD_EIO. */
int sherd__counter_move(int fd, const char *folder, const uint8_t id[16], const uint8_t tag_key[32],
                        uint64_t used, sherd_diag *d) SHERD_MUST;

#endif
