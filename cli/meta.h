/*
 * Parts of `sherd meta` (its verbs are in cli/meta.c): making a file (cli/meta_build.c) and
 * describing one (cli/meta_print.c).
 */
#ifndef CLI_META_H
#define CLI_META_H

#include "cli/cli.h"
#include "sherd/meta.h"

int sherd__meta_build(sherd__cli *cli, sherd_diag *d);

/* ---- writing --------------------------------------------------------------------------------- */

/** Verifies every number (`verify`), then writes --output (`opt`, unless NULL). Shows progress;
 *  Ctrl-C ends it. */
int sherd__meta_write(sherd__cli *cli, sherd_meta *meta, bool verify, sherd_meta_save_options *opt,
                      uint64_t *size, sherd_diag *d);

/* ---- output: to standard output, or into `json` if it is not NULL ---------------------------- */

/** Counts the exposures of each node. *counts has one number per node; the caller frees it. */
int sherd__meta_count_exposures(sherd_meta *meta, size_t i, uint64_t **counts, sherd_diag *d);

/** Writes a line or an object for each operation. seconds: the time that each took to make, or
 *  NULL. */
int sherd__meta_print_operations(sherd_meta *meta, const double *seconds, json_t *json,
                                 sherd_diag *d);
void sherd__meta_print_settings(const sherd_meta *meta, bool expanded, bool seed, json_t *json);

/** Describes the file that a verb has written. seconds: the time of writing it (and of making
 *  streamed parts). Also ends `json`, on failure too. */
int sherd__meta_print_file(sherd__cli *cli, uint64_t size, double seconds, json_t *json,
                           sherd_diag *d);
const char *sherd__meta_time(double s, char out[24]);

#endif
