/* The files of a chain, for chain.c (writing) and chain_walk.c (reading). No other file includes
 * this. */
#ifndef STORE_CHAIN_FILES_H
#define STORE_CHAIN_FILES_H

#include "store/chain.h"

/** More than this is no checkpoint of ours: a member, and all of them. */
#define CHAIN_BYTES_MAX (UINT64_C(1) << 40)
/** What to do with a broken chain. */
#define SHERD__CHAIN_ELSEWHERE                                                                     \
    "go on from an earlier checkpoint, in another folder: --initial takes its weights"

/** "FOLDER/NAME"; the caller's, or NULL. */
char *sherd__chain_path(const char *folder, const char *name);
void sherd__chain_name(uint64_t number, char out[SHERD__CHAIN_NAME]);
/** Numbers of the checkpoints in a folder, ascending; *numbers is the caller's (sherd__free). */
int sherd__chain_list(const char *folder, uint64_t **numbers, size_t *len,
                      sherd_diag *d) SHERD_MUST;
/** SHA-256 of a file's bytes. */
int sherd__chain_hash(const char *folder, sherd__chain_link *link, sherd_diag *d) SHERD_MUST;
/** What `head` says; name empty where there is none. SHERD_ECHAIN for one that is damaged. */
int sherd__chain_head(const char *folder, sherd__chain_link *out, sherd_diag *d) SHERD_MUST;

#endif
