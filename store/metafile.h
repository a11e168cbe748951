/*
 * Metadata files as a manifest and members: the format on disk. scheduler/metadata/save.c supplies
 * the numbers of an expanded file.
 */
#ifndef STORE_METAFILE_H
#define STORE_METAFILE_H

#include "sherd/meta.h"
#include "store/npz.h"

#define SHERD__META_FORMAT 1
#define SHERD__META_OPERATIONS_MAX 4096u

typedef struct sherd__metafile {
    sherd_meta_settings settings;
    bool expanded; /* the loaded file contains tables */
    bool has_seed;
    uint8_t seed[32]; /* valid if has_seed; wiped by fini */
    uint8_t commitment[32];
    size_t count, capacity; /* of ops */
    sherd_meta_operation *ops;
    uint8_t (*exposures_sha256)[32]; /* expanded: one per operation; NULL otherwise */
    sherd__npz *npz;                 /* the loaded file, or NULL */
} sherd__metafile;

/** Closes the file, then wipes and frees what *f holds. *f may be all zero. */
void sherd__metafile_fini(sherd__metafile *f);
/** Returns SHERD_EINVAL if settings are out of range. */
int sherd__metafile_check_settings(const sherd_meta_settings *s, sherd_diag *d) SHERD_MUST;
/** Checks an operation and appends a copy. Errors: SHERD_EINVAL, SHERD_ENOMEM. */
int sherd__metafile_add(sherd__metafile *f, const sherd_meta_operation *op,
                        sherd_diag *d) SHERD_MUST;
/** Returns the index of an operation, or -1. */
int64_t sherd__metafile_find(const sherd__metafile *f, const char *name);

/** Opens a file: reads the manifest and the list of members, and checks that they match. On
 *  failure *f is zeroed. The caller frees *f with sherd__metafile_fini. */
int sherd__metafile_open(sherd__metafile *f, const char *path, sherd_diag *d) SHERD_MUST;
int sherd__metafile_open_bytes(sherd__metafile *f, const uint8_t *bytes, size_t len,
                               const char *where, sherd_diag *d) SHERD_MUST;

/** Returns the bytes per index in a table of this operation, with its shape in *rows and *cols, or
 *  0 if the file has no such table. */
unsigned sherd__metafile_index_bytes(const sherd__metafile *f, size_t i, sherd_meta_table table,
                                     uint64_t *rows, uint64_t *cols);
/** Formats the name of a member, such as "z1.enshuffles". */
void sherd__metafile_member(const sherd__metafile *f, size_t i, const char *what,
                            char out[SHERD__NPZ_NAME_SIZE]);
const char *sherd__metafile_table_name(sherd_meta_table table);

/** Reads the exposures of an expanded file. Only their number is checked. */
int sherd__metafile_exposures(const sherd__metafile *f, size_t i, uint32_t *out,
                              sherd_diag *d) SHERD_MUST;
/** Opens a reader that returns a table of an expanded file row by row. */
int sherd__metafile_reader(sherd__npz_reader **out, const sherd__metafile *f, size_t i,
                           sherd_meta_table table, sherd_diag *d) SHERD_MUST;
/** Computes SHA-256 over the exposures as u32 LE. */
void sherd__metafile_exposures_sha256(uint8_t out[32], const uint32_t *exposures, size_t len);

/** The source of the numbers in an expanded file. */
typedef struct sherd__metafile_source {
    int (*exposures)(void *ctx, size_t i, uint32_t *out, sherd_diag *d);
    /** Called for rows in ascending order, table after table, in the width of
     *  sherd__metafile_index_bytes. */
    int (*rows)(void *ctx, size_t i, sherd_meta_table table, uint64_t row, size_t rows, void *out,
                sherd_diag *d);
    void *ctx;
} sherd__metafile_source;

/** Writes f to path; see sherd_meta_save. source: called only if opt requests the
 *  expanded form. */
int sherd__metafile_write(const sherd__metafile *f, const char *path,
                          const sherd_meta_save_options *opt, const sherd__metafile_source *source,
                          uint64_t *size, sherd_diag *d) SHERD_MUST;

#endif
