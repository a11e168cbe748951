/*
 * Converts argv, environment and configuration files to values. For each option the strongest place
 * wins: command line, SHERD_* environment, --config FILE, the user's file, the system's file, the
 * preset.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "cli/cli.h"

/** Source of a value; a greater one is stronger. */
typedef enum sherd__option_source {
    SHERD__FROM_NOWHERE,
    SHERD__FROM_PRESET,
    SHERD__FROM_SYSTEM,
    SHERD__FROM_USER,
    SHERD__FROM_CONFIG,
    SHERD__FROM_ENV,
    SHERD__FROM_ARGV
} sherd__option_source;

typedef struct sherd__value {
    sherd__option_source source;
    const char *where; /* "--group", "SHERD_GROUP", "/etc/sherd/config:3: group" */
    const char *text;  /* as written */
    int64_t integer;   /* FLAG 0 or 1, COUNT, INT, CHOICE (index), SIZE in bytes, TIME in ms */
    double real;
} sherd__value;

/** Parses one value. `where` begins the message; `code` is the error (EINVAL, or EFORMAT in
 *  files). */
int sherd__value_parse(sherd__value *out, const sherd__option *o, const char *text,
                       const char *where, int code, sherd_diag *d) SHERD_MUST;

/** Returns the source of the option's value. SHERD__FROM_NOWHERE also for a flag that is turned
 *  off, and for a name that the verb does not have. */
sherd__option_source sherd__opt_source(const sherd__cli *cli, const char *name);
/** Resets the option to its preset, or to no value, as if no place had set it. */
void sherd__opt_forget(sherd__cli *cli, const char *name);

/** Process environment and files, passed in so that tests can supply their own. */
typedef struct sherd__opts_sources {
    char *const *env;          /* NAME=value strings, NULL-terminated; NULL: none */
    const char *user_config;   /* path or NULL; need not exist */
    const char *system_config; /* path or NULL; need not exist */
} sherd__opts_sources;

/**
 * Parses for cli->verb; fills cli->opts, args, json, quiet, verbose. argv[0] is the verb's name,
 * and argv is permuted (getopt_long). If --help is among the options, *help is true and nothing
 * further is read. `src` may be NULL: only the command line.
 */
int sherd__opts_parse(sherd__cli *cli, int argc, char **argv, const sherd__opts_sources *src,
                      bool *help, sherd_diag *d) SHERD_MUST;
void sherd__opts_free(sherd__opts *o);

/** Lists the rows of a verb's table and the general ones; returns their number, at most max. */
size_t sherd__options_of(const sherd__verb *v, const sherd__option **out, size_t max);
#define SHERD__OPTIONS_MAX 128

/** Calls fn for every verb and sub-verb that runs; `title` is "meta build". Stops when fn returns
 *  true. */
bool sherd__verbs_each(bool (*fn)(void *ctx, const sherd__verb *v, const char *title), void *ctx);
/** Returns the values of a CHOICE, NULL-terminated. */
const char *const *sherd__option_choices(const sherd__option *o);
/** Returns the option's help, with the schemes if it lists them. */
const char *sherd__option_help(const sherd__option *o, char out[320]);
/** Returns the next scheme that reads the option, from number *i of the list of schemes on, and
 *  sets *i to the number after it; NULL after the last. */
const sherd_scheme_info *sherd__option_scheme(const sherd__option *o, size_t *i);
/** Writes the variable's name SHERD_NAME for an option, e.g. SHERD_EXPOSURE_MAX. */
void sherd__option_env_name(const sherd__option *o, char out[64]);

/** Called for each line of a configuration file; `where` is "path:line". The strings are valid
 *  during the call. */
typedef int sherd__config_set(void *ctx, const char *where, const char *name, const char *value,
                              sherd_diag *d);
/**
 * Reads `option = value` lines and calls set for each, until it fails. A file that does not exist
 * is SHERD_EOPEN with *missing true. A pipe, a terminal or a file with other lines is
 * SHERD_EFORMAT.
 */
int sherd__config_read(const char *path, bool *missing, sherd__config_set *set, void *ctx,
                       sherd_diag *d) SHERD_MUST;

#endif
