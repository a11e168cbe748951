/*
 * `sherd fetch`, in three files: the verb (fetch.c), the list of files and mirrors (fetch_sets.c),
 * and one download (fetch_curl.c).
 */
#ifndef CLI_FETCH_H
#define CLI_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

#define SHERD__FETCH_FILES 4u
#define SHERD__FETCH_MIRRORS 4u

/** A published data set. */
typedef struct sherd__fetch_set {
    const char *name, *what;
    const char *mirrors[SHERD__FETCH_MIRRORS + 1]; /* URLs to which a file's name is appended;
                                                      NULL-terminated */
    struct {
        const char *name;
        size_t size;
        const char *sha256; /* 64 hexadecimal digits */
    } files[SHERD__FETCH_FILES];
} sherd__fetch_set;

/** All data sets, terminated by one without a name. */
extern const sherd__fetch_set sherd__fetch_sets[];

/** One download. */
typedef struct sherd__fetch {
    const char *url;
    size_t size_max;    /* a longer file is aborted at once */
    bool plain_allowed; /* also allows http://; else only https://, redirects included */
    double stall_s;     /* the download ends after less than 1 kB/s for this time */
    double until;       /* a time of sherd__clock_s; 0: no limit */
    void (*progress)(void *ctx, size_t len);
    void *ctx;
} sherd__fetch;

/**
 * Downloads by running curl. The caller frees *bytes with sherd__free. SHERD_ENET, SHERD_ESILENT,
 * SHERD_EFORMAT (too long): another mirror may succeed. SHERD_EOPEN: curl is not installed.
 * SHERD_ETIMEOUT, SHERD_EINTERRUPTED, SHERD_ENOMEM, SHERD_EINTERNAL.
 */
int sherd__fetch_run(const sherd__fetch *f, uint8_t **bytes, size_t *len, sherd_diag *d) SHERD_MUST;

#endif
