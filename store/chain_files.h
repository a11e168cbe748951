/* Files of a chain, shared by chain.c (writing) and chain_walk.c (reading). No other file includes
 * this header. */
#ifndef STORE_CHAIN_FILES_H
#define STORE_CHAIN_FILES_H

#include "store/chain.h"

/** Maximum size in bytes of a checkpoint, and of each of its members. */
#define CHAIN_BYTES_MAX (UINT64_C(1) << 40)
/** Hint for a broken chain. */
#define SHERD__CHAIN_ELSEWHERE                                                                     \
    "continue from an earlier checkpoint in another folder: --initial uses its weights"

/** Returns "FOLDER/NAME", which the caller frees with sherd__free, or NULL. */
char *sherd__chain_path(const char *folder, const char *name);
void sherd__chain_name(uint64_t number, char out[SHERD__CHAIN_NAME]);
/** Lists the numbers of the checkpoints in a folder in ascending order. The caller frees *numbers
 *  with sherd__free. */
int sherd__chain_list(const char *folder, uint64_t **numbers, size_t *len,
                      sherd_diag *d) SHERD_MUST;
/** Computes the SHA-256 of the bytes of a file. */
int sherd__chain_hash(const char *folder, sherd__chain_link *link, sherd_diag *d) SHERD_MUST;
/** Reads `head`; the name in *out is empty if there is none. Errors: SHERD_ECHAIN if damaged. */
int sherd__chain_head(const char *folder, sherd__chain_link *out, sherd_diag *d) SHERD_MUST;

#endif
