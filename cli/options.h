/*
 * From argv, environment and configuration files to values. A stronger place wins option by option:
 * command line, SHERD_* environment, --config FILE, the user's file, the system's file, the preset.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "cli/cli.h"

/** Where a value came from; the greater is the stronger. */
typedef enum sherd__source {
    SHERD__FROM_NOWHERE,
    SHERD__FROM_PRESET,
    SHERD__FROM_SYSTEM,
    SHERD__FROM_USER,
    SHERD__FROM_CONFIG,
    SHERD__FROM_ENV,
    SHERD__FROM_ARGV
} sherd__source;

typedef struct sherd__value {
    sherd__source source;
    const char *where; /* "--group", "SHERD_GROUP", "/etc/sherd/config:3: group" */
    const char *text;  /* as written */
    int64_t integer;   /* FLAG 0 or 1, COUNT, INT, CHOICE (index), SIZE in bytes, TIME in ms */
    double real;
} sherd__value;

/** Reads one value. `where` opens the message; `code` is the error (EINVAL, or EFORMAT in
 *  files). */
int sherd__value_parse(sherd__value *out, const sherd__option *o, const char *text,
                       const char *where, int code, sherd_diag *d) SHERD_MUST;

/** Where its value comes from: SHERD__FROM_NOWHERE also for a flag that says no, and for a name
 *  that the verb does not have. */
sherd__source sherd__opt_source(const sherd__cli *cli, const char *name);
/** As if no place had set it: it has its preset, or no value. */
void sherd__opt_forget(sherd__cli *cli, const char *name);

/** The outside world, handed in so that tests can supply their own. */
typedef struct sherd__opts_sources {
    char *const *env;          /* NAME=value strings, then NULL; NULL: none */
    const char *user_config;   /* path or NULL; need not exist */
    const char *system_config; /* path or NULL; need not exist */
} sherd__opts_sources;

/**
 * Parses for cli->verb; fills cli->opts, args, json, quiet, verbose. argv[0] is the verb's name,
 * and argv is permuted (getopt_long). With --help among the options nothing further is read:
 * *help is true. `src` may be NULL: only the command line.
 */
int sherd__opts_parse(sherd__cli *cli, int argc, char **argv, const sherd__opts_sources *src,
                      bool *help, sherd_diag *d) SHERD_MUST;
void sherd__opts_free(sherd__opts *o);

/** Rows of a verb's table and the general ones as one list; returns the number, at most max. */
size_t sherd__options_of(const sherd__verb *v, const sherd__option **out, size_t max);
#define SHERD__OPTIONS_MAX 64

/** Calls fn for every verb and sub-verb that runs; `title` is "meta build". Stops where it is
 *  true. */
bool sherd__verbs_each(bool (*fn)(void *ctx, const sherd__verb *v, const char *title), void *ctx);
/** What a CHOICE may be, NULL-terminated. */
const char *const *sherd__option_choices(const sherd__option *o);
/** Its help, with the schemes where it lists them. */
const char *sherd__option_help(const sherd__option *o, char out[320]);
/** SHERD_NAME for an option, e.g. SHERD_EXPOSURE_MAX. */
void sherd__option_env_name(const sherd__option *o, char out[64]);

/** Called for each line of a configuration file; `where` is "path:line". Strings last for the
 *  call. */
typedef int sherd__config_set(void *ctx, const char *where, const char *name, const char *value,
                              sherd_diag *d);
/**
 * Reads `option = value` lines and calls set for each, until it fails. A file that does not exist
 * is SHERD_EOPEN with *missing true; a pipe, a terminal and what has no such lines SHERD_EFORMAT.
 */
int sherd__config_read(const char *path, bool *missing, sherd__config_set *set, void *ctx,
                       sherd_diag *d) SHERD_MUST;

#endif
