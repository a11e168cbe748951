/* Metadata files in use: settings, the lock, and the record of a use (sherd_meta_take). */
#ifndef LIB_METADATA_H
#define LIB_METADATA_H

#include "sherd/hooks.h"
#include "sherd/product.h"

/** What settings of a metadata file are taken for. */
typedef struct sherd__meta_user {
    sherd_op op;
    uint32_t nodes;    /* 0: not known */
    unsigned settings; /* as sherd_meta_request.settings */
} sherd__meta_user;
/** Sets `group`, `balanced` and `shuffle_rows` of *opt to the settings of a file. SHERD_ESHAPE:
 *  another number of nodes; SHERD_EINVAL: *opt disagrees, or its scheme uses no permutations. */
int sherd__meta_settings_take(const sherd_meta *meta, const sherd__meta_user *user,
                              sherd_product_options *opt, sherd_diag *d) SHERD_MUST;

/** Locks a file from reading its record of uses to writing it. The caller closes *fd; -1: there is
 *  nothing to lock. SHERD_EINTERRUPTED. */
int sherd__meta_lock(const char *path, const sherd_hooks *hooks, int *fd, sherd_diag *d) SHERD_MUST;
/** Writes a locked file again, after sherd_meta_use. Errors of sherd_meta_save. */
int sherd__meta_record(sherd_meta *meta, const char *path, const sherd_hooks *hooks,
                       sherd_diag *d) SHERD_MUST;

#endif
