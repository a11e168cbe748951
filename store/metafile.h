/*
 * Metadata files as members and a manifest: the form on disk, without knowing where numbers come
 * from (scheduler/metadata/metadata.c derives them).
 */
#ifndef STORE_METAFILE_H
#define STORE_METAFILE_H

#include "sherd/meta.h"
#include "store/npz.h"

#define SHERD__META_FORMAT 1
#define SHERD__META_OPERATIONS_MAX 4096u

typedef struct sherd__metafile {
    sherd_meta_settings settings;
    bool expanded; /* of the loaded file */
    bool has_seed;
    uint8_t seed[32]; /* where has_seed; wiped by fini */
    uint8_t commitment[32];
    size_t count, room;
    sherd_meta_operation *ops;
    uint8_t (*exposures_sha256)[32]; /* expanded: per operation; NULL otherwise */
    sherd__npz *npz;                 /* the loaded file, or NULL */
} sherd__metafile;

/** Frees, closes and wipes; safe on a zeroed struct. */
void sherd__metafile_fini(sherd__metafile *f);
/** SHERD_EINVAL where settings are out of range. */
int sherd__metafile_check_settings(const sherd_meta_settings *s, sherd_diag *d) SHERD_MUST;
/** Appends a checked copy. SHERD_EINVAL, SHERD_ENOMEM. */
int sherd__metafile_add(sherd__metafile *f, const sherd_meta_operation *op,
                        sherd_diag *d) SHERD_MUST;
/** Index of an operation, or -1. */
int64_t sherd__metafile_find(const sherd__metafile *f, const char *name);

/** Reads the manifest and the list of members, and holds them against each other. *f is zeroed
 *  before and on failure. */
int sherd__metafile_open(sherd__metafile *f, const char *path, sherd_diag *d) SHERD_MUST;
int sherd__metafile_open_bytes(sherd__metafile *f, const uint8_t *bytes, size_t len,
                               const char *where, sherd_diag *d) SHERD_MUST;

/** Bytes of an index in a table of this operation; shape in *rows, *cols; 0 where the file has no
 *  such table. */
unsigned sherd__metafile_table(const sherd__metafile *f, size_t i, sherd_meta_table table,
                               uint64_t *rows, uint64_t *cols);
/** "z1.enshuffles". */
void sherd__metafile_member(const sherd__metafile *f, size_t i, const char *what,
                            char out[SHERD__NPZ_NAME_SIZE]);
const char *sherd__metafile_table_name(sherd_meta_table table);

/** Exposures of an expanded file as they stand, unchecked but for their number. */
int sherd__metafile_exposures(const sherd__metafile *f, size_t i, uint32_t *out,
                              sherd_diag *d) SHERD_MUST;
/** Reads a table of an expanded file row after row. */
int sherd__metafile_reader(sherd__npz_reader **out, const sherd__metafile *f, size_t i,
                           sherd_meta_table table, sherd_diag *d) SHERD_MUST;
/** SHA-256 over the exposures as u32 LE. */
void sherd__metafile_exposures_sha256(uint8_t out[32], const uint32_t *exposures, size_t len);

/** Where an expanded file's numbers come from. */
typedef struct sherd__metafile_source {
    int (*exposures)(void *ctx, size_t i, uint32_t *out, sherd_diag *d);
    /** Rows in ascending order, table after table, in the width of sherd__metafile_table. */
    int (*rows)(void *ctx, size_t i, sherd_meta_table table, uint64_t row, size_t rows, void *out,
                sherd_diag *d);
    void *ctx;
} sherd__metafile_source;

/** Writes f to path; see sherd_meta_save. source: for the expanded form. */
int sherd__metafile_write(const sherd__metafile *f, const char *path,
                          const sherd_meta_save_options *opt, const sherd__metafile_source *source,
                          uint64_t *size, sherd_diag *d) SHERD_MUST;

#endif
