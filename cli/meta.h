/*
 * Pieces of `sherd meta` (cli/meta.c has the verbs): making a file (cli/meta_build.c), writing it
 * (cli/meta_save.c), and saying what is in one (cli/meta_tell.c).
 */
#ifndef CLI_META_H
#define CLI_META_H

#include "cli/cli.h"
#include "sherd/meta.h"

int sherd__meta_build(sherd__cli *cli, sherd_diag *d);

/* ---- writing --------------------------------------------------------------------------------- */

/** Refuses what cannot end well before hours of writing begin: SHERD_EINVAL, SHERD_EIO. */
int sherd__meta_room(const sherd_meta *meta, const sherd_meta_save_options *opt, const char *path,
                     sherd_diag *d);

/** Verifies every number (`verify`), then writes --output (`opt`, unless NULL); shows progress and
 *  ends by Ctrl-C. */
int sherd__meta_write(sherd__cli *cli, sherd_meta *meta, bool verify,
                      const sherd_meta_save_options *opt, uint64_t *size, sherd_diag *d);

/* ---- telling: on standard output, or into `json` where that is not NULL ---------------------- */

/** How many exposures each node has; *counts, one number a node, is the caller's. */
int sherd__meta_count_exposures(sherd_meta *meta, size_t i, uint64_t **counts, sherd_diag *d);

/** A line or an object for each operation; `seconds` each took to make, or NULL. */
int sherd__meta_tell_operations(sherd_meta *meta, const double *seconds, json_t *json,
                                sherd_diag *d);
void sherd__meta_tell_settings(const sherd_meta *meta, bool expanded, bool seed, json_t *json);

/** The file that a verb has written, `seconds` of which were writing (and making what is streamed).
 *  Ends `json` as well, on failure too. */
int sherd__meta_tell_file(sherd__cli *cli, uint64_t size, double seconds, json_t *json,
                          sherd_diag *d);
const char *sherd__meta_time(double s, char out[24]);

#endif
