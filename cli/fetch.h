/*
 * `sherd fetch`, in three files: the verb (fetch.c), which files and where (fetch_sets.c), and one
 * download (fetch_curl.c).
 */
#ifndef CLI_FETCH_H
#define CLI_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

#define SHERD__FETCH_FILES 4u
#define SHERD__FETCH_MIRRORS 4u

/** A data set as it is published. */
typedef struct sherd__fetch_set {
    const char *name, *what;
    const char *mirrors[SHERD__FETCH_MIRRORS + 1]; /* URLs to put a file's name behind; then NULL */
    struct {
        const char *name;
        size_t size;
        const char *sha256; /* 64 hexadecimal digits */
    } files[SHERD__FETCH_FILES];
} sherd__fetch_set;

/** All of them, then one without a name. */
extern const sherd__fetch_set sherd__fetch_sets[];

/** One download. */
typedef struct sherd__fetch {
    const char *url;
    size_t size_max;    /* a file that is longer is given up at once */
    bool plain_allowed; /* http:// too; else https:// alone, wherever it redirects to */
    double stall_s;     /* less than 1 kB/s for so long is the end of it */
    double until;       /* of sherd__clock_s; 0: no end */
    void (*progress)(void *ctx, size_t len);
    void *ctx;
} sherd__fetch;

/**
 * Downloads by running curl; *bytes is the caller's (sherd__free). SHERD_ENET, SHERD_ESILENT,
 * SHERD_EFORMAT (too long): another mirror may do better. SHERD_EOPEN: there is no curl.
 * SHERD_ETIMEOUT, SHERD_EINTERRUPTED, SHERD_ENOMEM, SHERD_EINTERNAL.
 */
int sherd__fetch_run(const sherd__fetch *f, uint8_t **bytes, size_t *len, sherd_diag *d) SHERD_MUST;

#endif
