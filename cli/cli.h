/*
 * The command `sherd`: one table of subcommands ("verbs"), one file each. A verb is a `const
 * sherd__verb sherd__verb_NAME` in cli/NAME.c plus its line in cli/verbs.h. The parser, `sherd help
 * NAME`, the man page and shell completion all read its option table.
 *
 * A verb's `run` reads options and arguments from the sherd__cli, prints results on stdout (or one
 * JSON object through sherd__cli_json_end) and messages for people on stderr (sherd__cli_say), and
 * returns 0 or a SHERD_E* code with *d filled. It never exits and never prints errors: main does.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/diag.h"
#include "sherd/err.h"
#include "sherd/scheme.h"

/* ---- options --------------------------------------------------------------------------------- */

typedef enum sherd__option_type {
    SHERD__FLAG = 1, /* given or not; `--no-NAME` cancels a setting of a file or the environment */
    SHERD__COUNT,    /* a flag that can be repeated: -vv */
    SHERD__INT,      /* integer within [min, max], or `word` */
    SHERD__REAL,     /* number within [min, max] */
    SHERD__SIZE,     /* bytes: 4G, 512M, 1.5G, 64K, 4096; powers of 1024 */
    SHERD__TIME,     /* 30 or 30s, 500ms, 2m, 1h; read as milliseconds */
    SHERD__TEXT,
    SHERD__FILE, /* a path; completed as a path */
    SHERD__DIR,
    SHERD__CHOICE /* one of `choices` (sherd__option_choices) */
} sherd__option_type;

enum {
    SHERD__OPT_REQUIRED = 1,  /* the verb requires it (except with --dry-run) */
    SHERD__OPT_NO_ENV = 2,    /* names a secret: never read from the environment */
    SHERD__OPT_ONLY_ARGV = 4, /* for one run: not read from the environment or configuration
                                 files */
    SHERD__OPT_HIDDEN = 8,    /* works, but is not listed */
    SHERD__OPT_STREAM = 16,   /* an output file; - is standard output */
    SHERD__OPT_SCHEMES = 32, /* the choices are the names of all schemes, and its help lists them */
    SHERD__OPT_NETWORK = 64, /* of products of a network: schemes that these cannot use are left out
                                in help and hints */
    SHERD__OPT_BACKENDS = 128, /* the choices are auto and the names of all backends */
    SHERD__OPT_PUBLIC = 256    /* only schemes that have a scheme for a public B read the option */
};

/** One row of a verb's option table. Members left out are zero. */
typedef struct sherd__option {
    const char *name; /* long name, without dashes */
    char letter;      /* short name, or 0 */
    sherd__option_type type;
    const char *arg;    /* name of the value in help: "FILE"; NULL for flags */
    const char *help;   /* one line: lower-case first letter, no full stop */
    const char *preset; /* default, as a user would type it; NULL: none */
    double min, max;    /* INT, REAL; both 0: any */
    const char *word;   /* INT: a word that is also allowed ("all"), read as word_value; REAL: a
                           word ("none") read as infinity */
    int64_t word_value;
    const char *const *choices; /* CHOICE: NULL-terminated */
    const char *excludes;       /* long name of an option that cannot be combined with this one */
    unsigned flags;             /* SHERD__OPT_* */
    unsigned takes;             /* SHERD_TAKES_*: only schemes that read one of these read the
                                   option (sherd__option_applies); help begins with their names */
} sherd__option;

/* ---- verbs ----------------------------------------------------------------------------------- */

typedef struct sherd__cli sherd__cli;
typedef struct sherd__verb sherd__verb;

typedef struct sherd__example {
    const char *command; /* "sherd multiply A.npy B.npy -o C.npy -n 7" */
    const char *help;    /* what it does, in one line */
} sherd__example;

struct sherd__verb {
    const char *name;    /* "multiply"; for a sub-verb only its own word: "build" */
    const char *usage;   /* arguments after the options: "A.npy B.npy -o C.npy" */
    const char *summary; /* one line for the list of verbs */
    const char *details; /* a paragraph or more for help and man page (plain text), or NULL */
    const sherd__example *examples; /* three, terminated by {0} */
    const sherd__option *options;   /* terminated by {0}; the options of SHERD__OPTS_GENERAL are
                                       added */
    int args_min, args_max;         /* positional arguments; args_max < 0: any number */
    int (*run)(sherd__cli *cli, sherd_diag *d);
    const sherd__verb *const *subs; /* `meta build`, `cluster up`: NULL-terminated; if set, there
                                       is no run */
    bool hidden;                    /* works, but is not listed */
    bool text;                      /* prints text for people or a shell: has no --json */
};

/** All verbs in the order of help, NULL-terminated. */
extern const sherd__verb *const sherd__verbs[];
/** The options of every verb (--json, --quiet, ...), terminated by {0}. */
extern const sherd__option sherd__options_general[];

/* ---- reading options and arguments ----------------------------------------------------------- */

typedef struct sherd__opts sherd__opts; /* parsed values; cli/options.h */

struct sherd__cli {
    const sherd__verb *verb;
    char title[48]; /* "multiply", "meta build": begins messages and names the schema */
    int args_len;   /* positional arguments */
    char **args;
    sherd__opts *opts;
    bool json, quiet;
    bool reported; /* the failure has been printed on stdout (sherd__cli_json_fail) or elsewhere */
    int verbose;
    const char *verdict; /* printed last on stderr, after an error too; NULL: none */
};

/*
 * Values by long name. A name that the verb's table lacks, or a wrong type, is a programming error
 * and aborts. Without a value and a preset: false, 0, NULL.
 */
/** Returns true if a user set the option on the command line, in the environment or in a file. A
 *  preset does not count. */
bool sherd__opt_given(const sherd__cli *cli, const char *name);
bool sherd__opt_flag(const sherd__cli *cli, const char *name);
int64_t sherd__opt_int(const sherd__cli *cli, const char *name);
double sherd__opt_real(const sherd__cli *cli, const char *name);
uint64_t sherd__opt_size(const sherd__cli *cli, const char *name);
uint32_t sherd__opt_time_ms(const sherd__cli *cli, const char *name);
/** For TEXT, FILE, DIR, CHOICE. The string lives as long as *cli. */
const char *sherd__opt_text(const sherd__cli *cli, const char *name);
/** For CHOICE: returns the index in its table, -1 without a value. */
int sherd__opt_choice(const sherd__cli *cli, const char *name);
/** Returns where the value came from, for messages: "option --group", "SHERD_GROUP",
 *  "/etc/sherd/config:3". */
const char *sherd__opt_where(const sherd__cli *cli, const char *name);
/** Returns the scheme that --scheme names. */
const sherd_scheme_info *sherd__opt_scheme(const sherd__cli *cli);
/** Returns whether the scheme reads the option. */
bool sherd__option_applies(const sherd__option *o, const sherd_scheme_info *s);

/*
 * Rows that are shared by several verbs: `static const sherd__option options[] = {
 * SHERD__OPTS_CLUSTER, SHERD__OPT_OUTPUT("C.npy"), {.name = "mine", ...}, {0} };`
 */
extern const char *const sherd__choices_progress[]; /* auto bar plain none */
extern const char *const sherd__choices_bind_to[];  /* core none */
enum { SHERD__BIND_CORE, SHERD__BIND_NONE };
extern const char *const sherd__choices_encoding[]; /* auto dense csr: as sherd_encoding */
extern const char *const sherd__choices_code[];     /* auto lagrange inner: as sherd_code */
extern const char *const sherd__choices_public[];   /* b */
extern const char *const sherd__choices_exposure[]; /* uniform balanced */
extern const char *const sherd__choices_mode[];     /* float exact */

/* clang-format off */
#define SHERD__OPT_LOCAL                                                                           \
    {.name = "local", .letter = 'n', .type = SHERD__INT, .arg = "N", .min = 1, .max = 1000,        \
     .excludes = "nodes", .help = "start N nodes on this machine for this command"}
#define SHERD__OPT_NODES                                                                           \
    {.name = "nodes", .type = SHERD__FILE, .arg = "FILE", .help = "use the nodes that FILE lists"}
#define SHERD__OPT_KEY                                                                             \
    {.name = "key", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_NO_ENV,                \
     .help = "private key of this coordinator (sherd keygen)"}
#define SHERD__OPT_TIMEOUT                                                                         \
    {.name = "timeout", .type = SHERD__TIME, .arg = "TIME",                                        \
     .help = "give up after TIME: 30, 500ms, 2m, 1h"}
#define SHERD__OPT_PROGRESS                                                                        \
    {.name = "progress", .type = SHERD__CHOICE, .arg = "HOW", .preset = "auto",                    \
     .choices = sherd__choices_progress, .help = "show progress as auto, bar, plain or none"}
#define SHERD__OPT_RECORD                                                                          \
    {.name = "record", .type = SHERD__DIR, .arg = "DIR", .flags = SHERD__OPT_ONLY_ARGV,            \
     .help = "write all bytes sent to and received from each node into the new folder DIR"}
#define SHERD__OPT_NODE_MEMORY                                                                     \
    {.name = "node-memory", .type = SHERD__SIZE, .arg = "SIZE",                                    \
     .help = "budget of each node that -n starts [a share of this machine's]"}
#define SHERD__OPT_BIND_TO                                                                         \
    {.name = "bind-to", .type = SHERD__CHOICE, .arg = "WHAT", .preset = "core",                    \
     .choices = sherd__choices_bind_to,                                                            \
     .help = "core: bind each node that -n starts to cores of its own, if all threads together "   \
             "number as many as the cores; none: do not bind"}
/* Where the nodes that -n starts compute. sherd__nodes_devices (cli/nodes.h) checks them. */
#define SHERD__OPTS_DEVICES                                                                        \
    {.name = "backend", .type = SHERD__CHOICE, .arg = "NAME", .flags = SHERD__OPT_BACKENDS,        \
     .help = "what computes in the nodes that -n starts; auto is a GPU if there is one [cpu]"},    \
        {.name = "device", .type = SHERD__TEXT, .arg = "LIST",                                     \
         .help = "devices of each node that -n starts: numbers as 0,1, or all [the first one]"},   \
        {.name = "devices", .type = SHERD__INT, .arg = "K", .min = 1, .max = 12,                   \
         .help = "give each node that -n starts K devices of its own, of all or of --device"},     \
        {.name = "opencl-library", .type = SHERD__FILE, .arg = "FILE",                             \
         .flags = SHERD__OPT_HIDDEN, .help = "library of OpenCL"},                                 \
        {.name = "cuda-library", .type = SHERD__FILE, .arg = "FILE",                               \
         .flags = SHERD__OPT_HIDDEN, .help = "library of CUDA's driver"}
#define SHERD__OPT_SAME_HOST                                                                       \
    {.name = "same-host-domains", .type = SHERD__FLAG,                                             \
     .help = "private schemes: accept several domains on one host as separate ones"}
/* How to reach nodes: -n N, --nodes FILE, --key FILE, --record DIR, --node-memory, --bind-to,
 * --backend, --device, --devices, --timeout, --progress, --same-host-domains. sherd__nodes_open
 * (cli/nodes.h) turns them into an open cluster. */
#define SHERD__OPTS_CLUSTER                                                                        \
    SHERD__OPT_LOCAL, SHERD__OPT_NODES, SHERD__OPT_KEY, SHERD__OPT_NODE_MEMORY,                    \
        SHERD__OPT_BIND_TO, SHERD__OPTS_DEVICES, SHERD__OPT_SAME_HOST, SHERD__OPT_RECORD,        \
        SHERD__OPT_TIMEOUT, SHERD__OPT_PROGRESS

#define SHERD__OPT_OUTPUT(what)                                                                    \
    {.name = "output", .letter = 'o', .type = SHERD__FILE, .arg = (what),                          \
     .flags = SHERD__OPT_REQUIRED | SHERD__OPT_ONLY_ARGV,                                          \
     .help = "write the result to this file; on failure an existing file is kept"}
/* As SHERD__OPT_OUTPUT, for results that are not secret: - is standard output. */
#define SHERD__OPT_OUTPUT_STREAM(what)                                                             \
    {.name = "output", .letter = 'o', .type = SHERD__FILE, .arg = (what),                          \
     .flags = SHERD__OPT_REQUIRED | SHERD__OPT_ONLY_ARGV | SHERD__OPT_STREAM,                      \
     .help = "write the result to this file, or to standard output if it is -; on failure an "     \
             "existing file is kept"}
/* of: SHERD_TAKES_*, or 0 where there is no --scheme; likewise below. */
#define SHERD__OPT_SEED(of)                                                                        \
    {.name = "seed", .type = SHERD__FILE, .arg = "FILE", .takes = (of),                            \
     .flags = SHERD__OPT_NO_ENV | SHERD__OPT_ONLY_ARGV,                                            \
     .help = "32 bytes from which exposures and permutations are derived [fresh]"}
#define SHERD__OPT_MEMORY                                                                          \
    {.name = "memory", .type = SHERD__SIZE, .arg = "SIZE",                                         \
     .help = "limit of working memory, besides operands and result: 512M, 4G"}
#define SHERD__OPT_THREADS                                                                         \
    {.name = "threads", .type = SHERD__INT, .arg = "N", .min = 1, .max = 4096,                     \
     .help = "threads for products in this process [all cores]"}
#define SHERD__OPT_DRY_RUN                                                                         \
    {.name = "dry-run", .type = SHERD__FLAG, .flags = SHERD__OPT_ONLY_ARGV,                        \
     .help = "send nothing; print the expected cost"}
#define SHERD__OPT_CHECK                                                                           \
    {.name = "check", .type = SHERD__FLAG,                                                         \
     .help = "also compute it locally and compare; exit 9 if they differ"}
#define SHERD__OPT_CERTIFICATE                                                                     \
    {.name = "certificate", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_ONLY_ARGV,     \
     .help = "write a signed certificate of inputs, result and nodes"}
#define SHERD__OPT_CERTIFICATE_PUBLIC                                                              \
    {.name = "certificate-public", .type = SHERD__FLAG,                                            \
     .help = "leave the digests of the inputs out of the certificate"}
#define SHERD__OPT_META(of)                                                                        \
    {.name = "meta", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_ONLY_ARGV,            \
     .takes = (of), .excludes = "seed",                                                            \
     .help = "take exposures and permutations from this metadata file"}
#define SHERD__OPT_OPERATION                                                                       \
    {.name = "operation", .type = SHERD__TEXT, .arg = "NAME", .flags = SHERD__OPT_ONLY_ARGV,       \
     .help = "operation of the metadata file [the one of this kind and shape]"}
#define SHERD__OPT_REUSE_METADATA                                                                  \
    {.name = "reuse-metadata", .type = SHERD__FLAG, .flags = SHERD__OPT_ONLY_ARGV,                 \
     .help = "accept metadata that has been used for other operands"}
#define SHERD__OPT_STRICT                                                                          \
    {.name = "strict", .type = SHERD__FLAG,                                                        \
     .help = "fail at a node's wrong answer instead of repeating that work on other nodes"}
#define SHERD__OPT_EXPOSURE(of)                                                                    \
    {.name = "exposure", .type = SHERD__CHOICE, .arg = "HOW", .preset = "uniform", .takes = (of),  \
     .choices = sherd__choices_exposure,                                                           \
     .help = "assign columns to nodes at random (uniform) or in equal counts (balanced)"}
#define SHERD__OPT_EXPOSURE_MAX(of)                                                                \
    {.name = "exposure-max", .type = SHERD__REAL, .arg = "F", .min = 1e-9, .max = 1,               \
     .takes = (of),                                                                                \
     .help = "largest fraction of an operand that a domain may be given [twice the largest "       \
             "planned share]"}
/* flag: SHERD__OPT_NETWORK or 0. */
#define SHERD__OPT_COLLUDING(flag)                                                                 \
    {.name = "colluding", .type = SHERD__INT, .arg = "T", .min = 1, .max = 63, .preset = "1",      \
     .flags = (flag), .takes = SHERD_TAKES_COLLUDING,                                              \
     .help = "number of colluding domains that learn nothing"}
#define SHERD__OPT_SPARE(flag)                                                                     \
    {.name = "spare", .type = SHERD__INT, .arg = "S", .min = 0, .max = 1000, .preset = "0",        \
     .flags = (flag), .takes = SHERD_TAKES_COLLUDING,                                              \
     .help = "number of nodes that may be slow, dead or wrong without repeated work"}
#define SHERD__OPT_CODE(flag)                                                                      \
    {.name = "code", .type = SHERD__CHOICE, .arg = "NAME", .preset = "auto",                       \
     .choices = sherd__choices_code, .flags = (flag), .takes = SHERD_TAKES_COLLUDING,              \
     .help = "code of the shares: lagrange, inner (share only: less work, but no node may be "     \
             "missing; not for trainings), or the faster of those that are possible (auto)"}
#define SHERD__OPT_GROUP(flag)                                                                     \
    {.name = "group", .type = SHERD__INT, .arg = "G", .min = 1, .max = 4294967295.0,               \
     .word = "all", .word_value = 0, .preset = "all", .flags = (flag),                             \
     .takes = SHERD_TAKES_SHUFFLES, .help = "columns that share one permutation, 1 to all"}
/* what: the operands that are sent in this encoding. */
#define SHERD__OPT_ENCODING(flag, what)                                                            \
    {.name = "encoding", .type = SHERD__CHOICE, .arg = "HOW", .preset = "auto",                    \
     .choices = sherd__choices_encoding, .flags = (flag), .takes = SHERD_TAKES_ENCODING,           \
     .help = "send " what " dense, in csr (without zeros), or as is faster (auto)"}
/* How operands are hidden: --scheme, --masks, --colluding, --spare, --code, --public, --group,
 * --exposure, --exposure-max, --shuffle-rows. */
#define SHERD__OPTS_SCHEME                                                                         \
    {.name = "scheme", .type = SHERD__CHOICE, .arg = "NAME", .preset = "permute",                  \
     .flags = SHERD__OPT_SCHEMES, .help = "how operands are hidden"},                              \
        {.name = "masks", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_ONLY_ARGV,       \
         .takes = SHERD_TAKES_MASKS,                                                               \
         .help = "masks for this B (sherd prepare); rows of them are used up"},                    \
        SHERD__OPT_COLLUDING(0), SHERD__OPT_SPARE(0), SHERD__OPT_CODE(0),                          \
        {.name = "public", .type = SHERD__CHOICE, .arg = "WHAT", .choices = sherd__choices_public, \
         .flags = SHERD__OPT_PUBLIC, .help = "b means that B need not be hidden"},                 \
        SHERD__OPT_GROUP(0), SHERD__OPT_EXPOSURE(SHERD_TAKES_SHUFFLES),                            \
        SHERD__OPT_EXPOSURE_MAX(SHERD_TAKES_SHUFFLES),                                             \
        {.name = "shuffle-rows", .type = SHERD__FLAG, .takes = SHERD_TAKES_SHUFFLES,               \
         .help = "send A's rows in a different order in each group"},                              \
        SHERD__OPT_ENCODING(0, "A")
/* Arithmetic: --mode float|exact, --bits B (which means exact). sherd__opts_arithmetic reads
 * both. */
#define SHERD__OPTS_ARITHMETIC                                                                     \
    {.name = "mode", .type = SHERD__CHOICE, .arg = "HOW", .preset = "float",                       \
     .choices = sherd__choices_mode,                                                               \
     .help = "float (as BLAS computes it) or exact (fixed point, bit for bit)"},                   \
        {.name = "bits", .type = SHERD__INT, .arg = "B", .min = 2, .max = 26,                      \
         .help = "width of fixed-point numbers in bits; implies --mode exact [17]"},               \
        {.name = "bits-b", .type = SHERD__INT, .arg = "B", .min = 2, .max = 26,                    \
         .takes = SHERD_TAKES_BITS_B, .help = "width of B's numbers in bits [as --bits]"}
/* clang-format on */
/** Reads SHERD__OPTS_ARITHMETIC. SHERD_EINVAL if --bits is combined with a --mode float from the
 *  same or a stronger place. */
int sherd__opts_arithmetic(const sherd__cli *cli, bool *exact, uint32_t *bits,
                           sherd_diag *d) SHERD_MUST;

/* ---- messages and results -------------------------------------------------------------------- */

/** Returns the width of the terminal that `out` writes to. Without one: COLUMNS of the environment,
 *  or 80. */
int sherd__cli_columns(FILE *out);

/* On a terminal, messages are broken between words to fit its width. A command in backquotes is not
 * broken. */
/** Prints a line for people on stderr, except under --quiet. fmt does not end with a newline. */
void sherd__cli_say(const sherd__cli *cli, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/** As sherd__cli_say, but only under -v. */
void sherd__cli_note(const sherd__cli *cli, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/** Prints "sherd: multiply: warning: ...", also under --quiet. */
void sherd__cli_warn(const sherd__cli *cli, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** Prints a line of the result on stdout. As in messages, characters that a terminal obeys are
 *  escaped: use it for each line that contains text of a file, a peer or the user. */
void sherd__cli_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/** As sherd__cli_print, for sentences: on a terminal they are broken like messages, and continued
 *  lines begin with `indent` blanks. */
void sherd__cli_print_prose(int indent, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** Writes text with such characters escaped to out, as far as there is room, and returns out. */
const char *sherd__cli_plain(const char *text, char *out, size_t size);

/** Returns {"schema": "sherd/multiply/1", "ok": true}. Fill it, then pass it to
 *  sherd__cli_json_end. */
json_t *sherd__cli_json_new(const sherd__cli *cli);
/** Makes a string from any bytes, for example a path. Bytes that are not UTF-8 are escaped as \xff.
 *  NULL gives null. Returns NULL without memory. */
json_t *sherd__cli_json_text(const char *text);
/** Writes one line to stdout and releases obj. SHERD_ENOMEM if obj is NULL; SHERD_EIO. */
int sherd__cli_json_end(const sherd__cli *cli, json_t *obj, sherd_diag *d) SHERD_MUST;
/** For a failure that has results to show (a --check that differs, doctor): sets ok = false in obj,
 *  adds the error, prints and releases obj. Returns err, for the verb to return. */
int sherd__cli_json_fail(sherd__cli *cli, json_t *obj, int err, const sherd_diag *d) SHERD_MUST;
/** Returns the name of an exit code as in --json ("verification" for 8); NULL for an unused
 *  number. */
const char *sherd__exit_name(int exit_code);

/** Formats a size as "1.5 GB", "820 KB", "12 bytes" (powers of 1000, as in progress and
 *  reports). */
const char *sherd__cli_bytes(uint64_t n, char out[24]);
/** Formats a time as "0.82 s", "12.3 s", "2 min 05 s". */
const char *sherd__cli_seconds(double s, char out[24]);

/* ---- signals --------------------------------------------------------------------------------- */

/** Returns the first SIGINT, SIGTERM or SIGHUP that was received; SIGALRM if --timeout ended first
 *  (limit.h); else 0. Any thread; cheap. */
int sherd__cli_interrupted(void);
/** The same as sherd_hooks.interrupted; ctx is not used. */
bool sherd__cli_stops(void *ctx);
/** Returns a descriptor that becomes readable when sherd__cli_interrupted becomes non-zero. Never
 *  read from it. */
int sherd__cli_interrupt_fd(void);

#endif
