/*
 * What a command gives the local nodes that it starts: a fresh private key and the allow-list, over
 * a pipe that only the two of them hold. Never arguments, environment or files, which others may
 * read. The pipe stays open afterwards: its end is how the node learns that its parent is gone.
 *
 * On the pipe: "sherd-handoff 1\n", then key and list, each as u32 LE length and bytes.
 */
#ifndef WIRE_HANDOFF_H
#define WIRE_HANDOFF_H

#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

/** All of it together; less than a pipe holds, so that writing never waits for the node. */
#define SHERD__HANDOFF_MAX 16384u

/** Key PEM and allow-list text, each terminated. */
typedef struct sherd__handoff {
    char *key, *allow;
    size_t key_len, allow_len;
} sherd__handoff;

/** Writes both to fd. SHERD_EINVAL: too long; SHERD_EIO with errno's text. */
int sherd__handoff_write(int fd, const sherd__handoff *h, sherd_diag *d) SHERD_MUST;
/** Reads both from fd, waiting at most timeout_ms: SHERD_ETIMEOUT, SHERD_ECLOSED, SHERD_EFRAME.
 *  sherd__handoff_fini frees. */
int sherd__handoff_read(int fd, uint32_t timeout_ms, sherd__handoff *out, sherd_diag *d) SHERD_MUST;
/** Wipes and frees what read gave. */
void sherd__handoff_fini(sherd__handoff *h);

#endif
