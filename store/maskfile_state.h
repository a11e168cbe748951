/*
 * The counters of mask files: one file of 64 bytes for each mask file, named by its id, in a folder
 * of the user. A counter has the format of a mark, which mask files contain too.
 */
#ifndef STORE_MASKFILE_STATE_H
#define STORE_MASKFILE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "sherd/err.h"

#define SHERD__MARK_BYTES 64u

/** Writes a mark: used u64, zeros, and a tag over them, the kind ('M': in the file, 'C': counter)
 *  and the id. */
void sherd__mark_put(uint8_t out[SHERD__MARK_BYTES], char kind, const uint8_t id[16],
                     const uint8_t tag_key[32], uint64_t used);
/** Parses a mark. Returns false if the tag does not match; *used is then unchanged. */
bool sherd__mark_get(const uint8_t in[SHERD__MARK_BYTES], char kind, const uint8_t id[16],
                     const uint8_t tag_key[32], uint64_t *used);

/**
 * Returns the folder of counters and creates it (0700) if it is missing: `folder`, or if that is
 * NULL $XDG_STATE_HOME/sherd/masks or ~/.local/state/sherd/masks. The caller frees *out with
 * sherd__free. Errors: SHERD_EOPEN (no home, no permission, or other users may write there),
 * SHERD_ENOMEM.
 */
int sherd__state_folder(char **out, const char *folder, sherd_diag *d) SHERD_MUST;

/** A counter: the folder that it is in, its id, and the key of its tag. */
typedef struct sherd__counter {
    const char *folder;
    const uint8_t *id;      /* 16 bytes */
    const uint8_t *tag_key; /* 32 bytes */
} sherd__counter;
/** Creates a counter of 0, and syncs it and its folder. Errors: SHERD_EOPEN (it exists: an id was
 *  drawn twice), SHERD_EIO. */
int sherd__counter_new(sherd__counter of, sherd_diag *d) SHERD_MUST;
/**
 * Opens a counter and returns its value. With `use` it is opened for writing, and locked until *fd
 * is closed. `name` is the name of the mask file, for messages. *fd is -1 on failure and if use is
 * false. Errors: SHERD_EEXPOSURE: there is no counter, so the number of used rows is unknown;
 * SHERD_EBUSY; SHERD_EFORMAT; SHERD_EOPEN.
 */
int sherd__counter_open(int *fd, sherd__counter of, bool use, const char *name, uint64_t *used,
                        sherd_diag *d) SHERD_MUST;
/** Writes a new value, and syncs the counter and its folder. Errors: SHERD_EIO. */
int sherd__counter_move(int fd, sherd__counter of, uint64_t used, sherd_diag *d) SHERD_MUST;

#endif
