/*
 * Passes a fresh private key and the allow-list to the local nodes that a command starts. The data
 * goes over a pipe that only the two processes hold. It never goes through arguments, the
 * environment or files, which other users may be able to read. The pipe stays open afterwards: end
 * of file tells the node that its parent has exited.
 *
 * Format on the pipe: "sherd-handoff 1\n", then key and list, each as a u32 LE length followed by
 * the bytes.
 */
#ifndef WIRE_HANDOFF_H
#define WIRE_HANDOFF_H

#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

/** Maximum size of the whole message in bytes. A pipe buffers more than that, so writing never
 *  waits for the node to read. */
#define SHERD__HANDOFF_MAX 16384u

/** Key (PEM) and allow-list text. Both are NUL-terminated. */
typedef struct sherd__handoff {
    char *key, *allow;
    size_t key_len, allow_len;
} sherd__handoff;

/** Writes key and list to fd. Errors: SHERD_EINVAL if the message is too long; SHERD_EIO with
 *  errno's text. */
int sherd__handoff_write(int fd, const sherd__handoff *h, sherd_diag *d) SHERD_MUST;
/** Reads key and list from fd and waits for at most timeout_ms. The caller frees *out with
 *  sherd__handoff_fini. Errors: SHERD_ETIMEOUT, SHERD_ECLOSED, SHERD_EFRAME. */
int sherd__handoff_read(int fd, uint32_t timeout_ms, sherd__handoff *out, sherd_diag *d) SHERD_MUST;
/** Wipes and frees the contents of a handoff that sherd__handoff_read filled in. */
void sherd__handoff_fini(sherd__handoff *h);

#endif
