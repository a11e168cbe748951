/*
 * Converts option tables to values. getopt_long reads the command line. The environment and
 * configuration files then set options that are still unset; a weaker place never overrides a
 * stronger one.
 *
 * Conflicts are checked after all places were read. Of two options that exclude each other, the one
 * from the stronger place wins; from one place they are an error. Every message begins with the
 * place as the user wrote it: --group, SHERD_GROUP, /etc/sherd/config:3.
 */
#include "cli/options.h"

#include <assert.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/suggest.h"

#define LONG_BASE 256   /* getopt's val of long option i is LONG_BASE + i */
#define NEGATED 4096    /* added to it for --no-NAME */
#define STRINGS_MAX 128 /* values and places copied from files and the environment */

struct sherd__opts {
    const sherd__verb *verb;
    const sherd__option *table[SHERD__OPTIONS_MAX];
    sherd__value values[SHERD__OPTIONS_MAX];
    size_t len;
    char *strings[STRINGS_MAX];
    size_t strings_len;
};

/* ---- keeping values -------------------------------------------------------------------------- */

/* Copies a string for the lifetime of the options; NULL without memory or room. */
static const char *keep(sherd__opts *o, const char *s)
{
    if (o->strings_len == STRINGS_MAX) return NULL;
    char *copy = sherd__strdup(s);
    if (copy) o->strings[o->strings_len++] = copy;
    return copy;
}

/* Parses and sets the value of option i, from a place no stronger than those read before. */
static int set(sherd__opts *o, size_t i, sherd__option_source source, const char *where,
               const char *text, sherd_diag *d)
{
    sherd__value *v = &o->values[i];
    int code = source == SHERD__FROM_ARGV || source == SHERD__FROM_ENV ? SHERD_EINVAL
                                                                       : SHERD_EFORMAT;
    if (v->source == source && o->table[i]->type != SHERD__COUNT)
        return sherd__fail(d, code, "leave one of them out",
                           source == SHERD__FROM_ARGV ? "%s is given twice"
                                                      : "%s: is set a second time",
                           where);
    sherd__value parsed;
    int err = sherd__value_parse(&parsed, o->table[i], text, where, code, d);
    if (err || v->source > source) return err; /* an overridden value is checked, too */
    if (v->source == source) parsed.integer += v->integer;
    parsed.source = source;
    if (source != SHERD__FROM_ARGV && source != SHERD__FROM_PRESET) {
        parsed.where = keep(o, where);
        parsed.text = keep(o, text);
        if (!parsed.where || !parsed.text) return sherd__fail_memory(d, "the value of %s", where);
    }
    *v = parsed;
    return 0;
}

/* ---- the command line ------------------------------------------------------------------------ */

static int find(const sherd__opts *o, const char *name)
{
    for (size_t i = 0; i < o->len; i++)
        if (strcmp(o->table[i]->name, name) == 0) return (int)i;
    return -1;
}

typedef struct lookup {
    const char *name, *title;
    const sherd__verb *not_in;
    char found[48];
    unsigned owners; /* count_owner */
} lookup;

static bool has_option(void *ctx, const sherd__verb *v, const char *title)
{
    lookup *l = ctx;
    const sherd__option *list[SHERD__OPTIONS_MAX];
    size_t len = sherd__options_of(v, list, SHERD__OPTIONS_MAX);
    for (size_t i = 0; i < len && v != l->not_in; i++)
        if (strcmp(list[i]->name, l->name) == 0) {
            snprintf(l->found, sizeof l->found, "%s", title);
            return true;
        }
    return false;
}

/* Counts the verbs that have the option. */
static bool count_owner(void *ctx, const sherd__verb *v, const char *title)
{
    lookup *l = ctx;
    l->owners += has_option(l, v, title);
    return false;
}

static int unknown_long(const sherd__opts *o, const char *title, const char *given, sherd_diag *d)
{
    char name[64], hint[200], candidates[300];
    const char *known[SHERD__OPTIONS_MAX + 1];
    size_t len = 0, candidates_len = 0;
    size_t n = strcspn(given, "=");
    snprintf(name, sizeof name, "%.*s", (int)(n < 60 ? n : 60), given);
    for (size_t i = 0; i < o->len; i++) {
        known[i] = o->table[i]->name;
        if (strncmp(known[i], name, strlen(name)) != 0 || len >= sizeof candidates) continue;
        len += (size_t)snprintf(candidates + len, sizeof candidates - len, "%s--%s",
                                candidates_len++ ? ", " : "", known[i]);
    }
    known[o->len] = NULL;
    if (candidates_len > 1)
        return sherd__fail(d, SHERD_EINVAL, "write it out", "--%s could be any of %s", name,
                           candidates);
    lookup l = { .name = name, .not_in = o->verb };
    const char *near = sherd__suggest(name, known);
    (void)sherd__verbs_each(count_owner, &l);
    if (near) snprintf(hint, sizeof hint, "did you mean --%s?", near);
    else if (l.owners == 1)
        snprintf(hint, sizeof hint, "--%s belongs to `sherd %s`", name, l.found);
    else snprintf(hint, sizeof hint, "sherd help %s", title);
    if (near || l.owners == 0)
        return sherd__fail(d, SHERD_EINVAL, hint, "unknown option --%s", name);
    return sherd__fail(d, SHERD_EINVAL, hint, "sherd %s has no --%s", title, name);
}

static int by_letter(const sherd__opts *o, int letter)
{
    for (size_t i = 0; i < o->len; i++)
        if (letter != 0 && o->table[i]->letter == letter) return (int)i;
    return -1;
}

/* Reports getopt's two errors, ':' (no value) and '?' (anything else), as a sentence. */
static int complain(const sherd__opts *o, const char *title, int what, const char *given,
                    sherd_diag *d)
{
    if (what == ':') {
        int i = optopt >= LONG_BASE ? (optopt - LONG_BASE) % NEGATED : by_letter(o, optopt);
        assert(i >= 0);
        const sherd__option *p = o->table[i];
        return optopt >= LONG_BASE
                   ? sherd__fail(d, SHERD_EINVAL, NULL, "--%s needs a value: %s", p->name, p->arg)
                   : sherd__fail(d, SHERD_EINVAL, NULL, "-%c needs a value: %s", optopt, p->arg);
    }
    if (optopt >= LONG_BASE)
        return sherd__fail(d, SHERD_EINVAL, NULL, "%.*s takes no value", (int)strcspn(given, "="),
                           given);
    if (optopt != 0) {
        char hint[80];
        snprintf(hint, sizeof hint, "sherd help %s", title);
        return sherd__fail(d, SHERD_EINVAL, hint, "unknown option -%c", optopt);
    }
    return unknown_long(o, title, given + 2, d);
}

/* Fills the tables for getopt_long; flags that can be negated take two rows. */
static void getopt_tables(const sherd__opts *o, char *letters, struct option *longs,
                          char (*negated)[64])
{
    *letters++ = ':';
    for (size_t i = 0; i < o->len; i++) {
        const sherd__option *p = o->table[i];
        bool flag = p->type == SHERD__FLAG || p->type == SHERD__COUNT;
        if (p->letter != 0) {
            *letters++ = p->letter;
            if (!flag) *letters++ = ':';
        }
        *longs++ = (struct option){ p->name, flag ? no_argument : required_argument, NULL,
                                    LONG_BASE + (int)i };
        if (p->type != SHERD__FLAG || (p->flags & SHERD__OPT_ONLY_ARGV) != 0) continue;
        snprintf(negated[i], sizeof negated[i], "no-%s", p->name);
        *longs++ = (struct option){ negated[i], no_argument, NULL, LONG_BASE + NEGATED + (int)i };
    }
    *letters = '\0';
    *longs = (struct option){ 0 };
}

static int read_argv(sherd__opts *o, const char *title, int argc, char **argv, sherd_diag *d)
{
    char letters[2 * SHERD__OPTIONS_MAX + 2], negated[SHERD__OPTIONS_MAX][64], where[72];
    struct option longs[2 * SHERD__OPTIONS_MAX + 1];
    getopt_tables(o, letters, longs, negated);
    opterr = 0;
    optind = 0; /* glibc: reinitialise */
    for (;;) {
        int at = optind > 0 ? optind : 1;
        optopt = 0;
        int c = getopt_long(argc, argv, letters, longs, NULL);
        if (c == -1) return 0;
        if (c == '?' || c == ':')
            return complain(o, title, c, argv[optind > at ? optind - 1 : at], d);
        bool is_long = c >= LONG_BASE, no = c >= LONG_BASE + NEGATED;
        int i = is_long ? (c - LONG_BASE) % NEGATED : by_letter(o, c);
        assert(i >= 0);
        snprintf(where, sizeof where, is_long ? "--%s%s" : "-%s%.1s", no ? "no-" : "",
                 is_long ? o->table[i]->name : &o->table[i]->letter);
        const char *kept = keep(o, where);
        if (!kept) return sherd__fail_memory(d, "the command line");
        const char *text = optarg ? optarg : no ? "no" : "1";
        int err = set(o, (size_t)i, SHERD__FROM_ARGV, kept, text, d);
        if (err) return err;
    }
}

/* ---- environment and files ------------------------------------------------------------------- */

static int read_env(sherd__opts *o, char *const *env, sherd_diag *d)
{
    char name[64];
    for (size_t i = 0; i < o->len; i++) {
        if ((o->table[i]->flags & (SHERD__OPT_NO_ENV | SHERD__OPT_ONLY_ARGV)) != 0) continue;
        sherd__option_env_name(o->table[i], name);
        size_t n = strlen(name);
        for (char *const *e = env; e && *e; e++) {
            if (strncmp(*e, name, n) != 0 || (*e)[n] != '=' || (*e)[n + 1] == '\0') continue;
            int err = set(o, i, SHERD__FROM_ENV, name, *e + n + 1, d);
            if (err) return err;
            break;
        }
    }
    return 0;
}

typedef struct file_reading {
    sherd__opts *opts;
    sherd__option_source source;
} file_reading;

static bool add_names(void *ctx, const sherd__verb *v, const char *title)
{
    (void)title;
    const char **known = ctx;
    const sherd__option *list[SHERD__OPTIONS_MAX];
    size_t len = sherd__options_of(v, list, SHERD__OPTIONS_MAX);
    for (size_t i = 0; i < len; i++) {
        size_t n = 0;
        while (known[n] && strcmp(known[n], list[i]->name) != 0) n++;
        if (!known[n] && n < 255) known[n] = list[i]->name;
    }
    return false;
}

static int set_from_file(void *ctx, const char *where, const char *name, const char *value,
                         sherd_diag *d)
{
    file_reading *r = ctx;
    char place[PATH_MAX + 128], hint[96];
    snprintf(place, sizeof place, "%s: %.64s", where, name);
    int i = find(r->opts, name);
    if (i >= 0 && (r->opts->table[i]->flags & SHERD__OPT_ONLY_ARGV) == 0 &&
        strcmp(name, "config") != 0)
        return set(r->opts, (size_t)i, r->source, place, value, d);
    lookup l = { .name = name, .not_in = i >= 0 ? NULL : r->opts->verb };
    if (i < 0 && sherd__verbs_each(has_option, &l)) return 0; /* of another verb */
    if (i >= 0)
        return sherd__fail(d, SHERD_EFORMAT, "give it on the command line",
                           "%s: cannot be set in a configuration file", place);
    const char *known[256] = { NULL };
    add_names(known, r->opts->verb, "");
    sherd__verbs_each(add_names, known);
    const char *near = sherd__suggest(name, known);
    if (near) snprintf(hint, sizeof hint, "did you mean %s?", near);
    return sherd__fail(d, SHERD_EFORMAT, near ? hint : NULL, "%s: no verb has an option '%.60s'",
                       where, name);
}

static int read_file(sherd__opts *o, const char *path, sherd__option_source source, sherd_diag *d)
{
    file_reading r = { o, source };
    sherd_diag mine = { 0 };
    bool missing;
    int err = sherd__config_read(path, &missing, set_from_file, &r, &mine);
    if (err && missing && source != SHERD__FROM_CONFIG) return 0;
    return err ? sherd__fail(d, err, mine.hint, "%s", mine.message) : 0;
}

static int read_files(sherd__opts *o, const sherd__opts_sources *src, sherd_diag *d)
{
    int at = find(o, "config");
    const char *config = o->values[at].text;
    int err = config ? read_file(o, config, SHERD__FROM_CONFIG, d) : 0;
    if (!err && src && src->user_config) err = read_file(o, src->user_config, SHERD__FROM_USER, d);
    if (!err && src && src->system_config)
        err = read_file(o, src->system_config, SHERD__FROM_SYSTEM, d);
    return err;
}

/* ---- presets and conflicts ------------------------------------------------------------------- */

/* Sets the value of an option that no place has set. */
static void preset(sherd__opts *o, size_t i)
{
    const sherd__option *p = o->table[i];
    o->values[i] = (sherd__value){ 0 };
    int err = p->preset ? set(o, i, SHERD__FROM_PRESET, p->name, p->preset, NULL) : 0;
    assert(err == 0);
    (void)err;
}

static int exclude(sherd__opts *o, size_t i, sherd_diag *d)
{
    if (!o->table[i]->excludes || o->values[i].source == SHERD__FROM_NOWHERE) return 0;
    int j = find(o, o->table[i]->excludes);
    if (j < 0 || o->values[j].source == SHERD__FROM_NOWHERE) return 0;
    sherd__value *a = &o->values[i], *b = &o->values[j];
    if (a->source == b->source)
        return sherd__fail(d, SHERD_EINVAL, "leave one of them out", "%s and %s cannot be combined",
                           a->where, b->where);
    *(a->source < b->source ? a : b) = (sherd__value){ 0 };
    return 0;
}

static int exclude_all(sherd__opts *o, sherd_diag *d)
{
    int err = 0;
    for (size_t i = 0; i < o->len && !err; i++) err = exclude(o, i, d);
    return err;
}

/* Sets presets, and finds a missing option. */
static int complete(sherd__opts *o, const char *title, sherd_diag *d)
{
    char hint[80];
    int dry = find(o, "dry-run");
    bool spared = dry >= 0 && o->values[dry].integer != 0;
    for (size_t i = 0; i < o->len; i++) {
        const sherd__option *p = o->table[i];
        if (o->values[i].source != SHERD__FROM_NOWHERE) continue;
        preset(o, i);
        if ((p->flags & SHERD__OPT_REQUIRED) == 0 || spared) continue;
        snprintf(hint, sizeof hint, "sherd help %s", title);
        return p->letter != 0
                   ? sherd__fail(d, SHERD_EINVAL, hint, "needs -%c %s", p->letter, p->arg)
                   : sherd__fail(d, SHERD_EINVAL, hint, "needs --%s %s", p->name, p->arg);
    }
    return 0;
}

/* Returns whether an argument is the unit of a number that was typed as a word of its own. */
static bool is_unit(const char *arg)
{
    static const char *const units[] = { "steps", "step", "s", "ms", "m",  "min", "h",
                                         "K",     "M",    "G", "T",  "KB", "MB",  "GB" };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(arg, units[i]) == 0) return true;
    return false;
}

static int count_args(const sherd__cli *cli, sherd_diag *d)
{
    const sherd__verb *v = cli->verb;
    bool few = cli->args_len < v->args_min;
    bool many = v->args_max >= 0 && cli->args_len > v->args_max;
    if (!few && !many) return 0;
    char hint[80], expected[48];
    if (many && is_unit(cli->args[v->args_max]))
        snprintf(hint, sizeof hint, "a number and its unit are one word: 10%s",
                 cli->args[v->args_max]);
    else snprintf(hint, sizeof hint, "sherd help %s", cli->title);
    if (v->args_max == 0)
        return sherd__fail(d, SHERD_EINVAL, hint, "takes no arguments, found '%.60s'",
                           cli->args[0]);
    if (v->args_max == v->args_min) snprintf(expected, sizeof expected, "%d", v->args_min);
    else
        snprintf(expected, sizeof expected, "%s %d", few ? "at least" : "at most",
                 few ? v->args_min : v->args_max);
    if (many)
        return sherd__fail(d, SHERD_EINVAL, hint,
                           "expected %s argument%s, found %d; '%s' is one "
                           "too many",
                           expected, strcmp(expected, "1") == 0 ? "" : "s", cli->args_len,
                           cli->args[v->args_max]);
    return sherd__fail(d, SHERD_EINVAL, hint, "expected %s argument%s (%s), found %d", expected,
                       v->args_min == 1 ? "" : "s", v->usage, cli->args_len);
}

int sherd__opts_parse(sherd__cli *cli, int argc, char **argv, const sherd__opts_sources *src,
                      bool *help, sherd_diag *d)
{
    *help = false;
    sherd__opts *o = sherd__calloc(1, sizeof *o);
    if (!o) return sherd__fail_memory(d, "the options");
    o->verb = cli->verb;
    o->len = sherd__options_of(cli->verb, o->table, SHERD__OPTIONS_MAX);
    cli->opts = o;
    int err = read_argv(o, cli->title, argc, argv, d);
    if (err) return err;
    cli->args_len = argc - optind;
    cli->args = argv + optind;
    *help = sherd__opt_flag(cli, "help");
    if (*help) return 0;
    if (src) err = read_env(o, src->env, d);
    if (!err) err = read_files(o, src, d);
    if (!err) err = exclude_all(o, d);
    if (!err) err = count_args(cli, d);
    if (!err) err = complete(o, cli->title, d);
    if (err) return err;
    cli->json = !cli->verb->text && sherd__opt_flag(cli, "json");
    cli->quiet = sherd__opt_flag(cli, "quiet");
    cli->verbose = (int)sherd__opt_int(cli, "verbose");
    return 0;
}

void sherd__opts_free(sherd__opts *o)
{
    if (!o) return;
    for (size_t i = 0; i < o->strings_len; i++) sherd__free(o->strings[i]);
    sherd__free(o);
}

/* ---- lookup ---------------------------------------------------------------------------------- */

static const sherd__value *value_of(const sherd__cli *cli, const char *name, unsigned types)
{
    int i = find(cli->opts, name);
    assert(i >= 0 && "the verb's table has this option");
    assert((types >> cli->opts->table[i]->type & 1U) != 0 && "the option has this type");
    return &cli->opts->values[i];
}

bool sherd__opt_given(const sherd__cli *cli, const char *name)
{
    return value_of(cli, name, ~0U)->source > SHERD__FROM_PRESET;
}

bool sherd__opt_flag(const sherd__cli *cli, const char *name)
{
    return value_of(cli, name, 1U << SHERD__FLAG)->integer != 0;
}

int64_t sherd__opt_int(const sherd__cli *cli, const char *name)
{
    return value_of(cli, name, 1U << SHERD__INT | 1U << SHERD__COUNT)->integer;
}

double sherd__opt_real(const sherd__cli *cli, const char *name)
{
    return value_of(cli, name, 1U << SHERD__REAL)->real;
}

uint64_t sherd__opt_size(const sherd__cli *cli, const char *name)
{
    return (uint64_t)value_of(cli, name, 1U << SHERD__SIZE)->integer;
}

uint32_t sherd__opt_time_ms(const sherd__cli *cli, const char *name)
{
    return (uint32_t)value_of(cli, name, 1U << SHERD__TIME)->integer;
}

const char *sherd__opt_text(const sherd__cli *cli, const char *name)
{
    return value_of(cli, name,
                    1U << SHERD__TEXT | 1U << SHERD__FILE | 1U << SHERD__DIR | 1U << SHERD__CHOICE)
        ->text;
}

int sherd__opt_choice(const sherd__cli *cli, const char *name)
{
    const sherd__value *v = value_of(cli, name, 1U << SHERD__CHOICE);
    return v->source == SHERD__FROM_NOWHERE ? -1 : (int)v->integer;
}

const char *sherd__opt_where(const sherd__cli *cli, const char *name)
{
    const sherd__value *v = value_of(cli, name, ~0U);
    return v->where ? v->where : name;
}

sherd__option_source sherd__opt_source(const sherd__cli *cli, const char *name)
{
    int i = find(cli->opts, name);
    const sherd__value *v = i >= 0 ? &cli->opts->values[i] : NULL;
    bool no = !v || (cli->opts->table[i]->type == SHERD__FLAG && v->integer == 0);
    return no ? SHERD__FROM_NOWHERE : v->source;
}

void sherd__opt_forget(sherd__cli *cli, const char *name)
{
    int i = find(cli->opts, name);
    assert(i >= 0 && "the verb's table has this option");
    preset(cli->opts, (size_t)i);
}

int sherd__opts_arithmetic(const sherd__cli *cli, bool *exact, uint32_t *bits, sherd_diag *d)
{
    const sherd__value *mode = value_of(cli, "mode", 1U << SHERD__CHOICE);
    const sherd__value *width = value_of(cli, "bits", 1U << SHERD__INT);
    bool wants = mode->integer == 1;
    if (width->source > SHERD__FROM_PRESET && !wants) {
        if (mode->source == width->source)
            return sherd__fail(d, SHERD_EINVAL, "leave one of them out",
                               "%s asks for exact arithmetic, %s for float", width->where,
                               mode->where);
        wants = width->source > mode->source;
    }
    *exact = wants;
    *bits = width->source > SHERD__FROM_PRESET ? (uint32_t)width->integer : 17;
    return 0;
}
