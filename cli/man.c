/*
 * sherd(1) in man macros: verbs and options from the tables, exit codes from the error table, the
 * rest hand-written. docs/sherd.1 is this output; a test asserts that it is up to date.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/help.h"
#include "cli/options.h"
#include "sherd/version.h"

/* ---- troff ----------------------------------------------------------------------------------- */

static void put_char(FILE *out, char c)
{
    if (c == '\\') fputs("\\e", out);
    else if (c == '-') fputs("\\-", out);
    else if (c == '~') fputs("\\(ti", out);
    else if (c == '^') fputs("\\(ha", out);
    else if (c == '\'') fputs("\\(aq", out);
    else if (c == '`') fputs("\\(ga", out);
    else fputc(c, out);
}

/* Writes running text: a line may not begin with a dot or quote; dashes before letters are
 * options. */
static void put_text(FILE *out, const char *s)
{
    if (*s == '.' || *s == '\'') fputs("\\&", out);
    for (; *s != '\0'; s++) put_char(out, *s);
}

/* Writes a command line or option in bold. */
static void put_bold(FILE *out, const char *s)
{
    fputs("\\fB", out);
    put_text(out, s);
    fputs("\\fR", out);
}

/* Writes paragraphs in the format of sherd__print_filled: blank lines separate them, indented lines
 * are kept. */
static void put_paragraphs(FILE *out, const char *text)
{
    bool kept = false;
    for (const char *s = text; *s != '\0';) {
        size_t n = strcspn(s, "\n");
        char line[4096];
        snprintf(line, sizeof line, "%.*s", (int)n, s);
        if (*line == ' ' && !kept) fputs(".nf\n", out);
        if (*line != ' ' && kept) fputs(".fi\n", out);
        kept = *line == ' ';
        if (n == 0) fputs(".PP", out);
        else put_text(out, line);
        fputc('\n', out);
        s += n + (s[n] == '\n' ? 1 : 0);
    }
    if (kept) fputs(".fi\n", out);
}

/* ---- from the tables ------------------------------------------------------------------------- */

static void put_option(FILE *out, const sherd__option *o)
{
    char letter[4] = { '-', o->letter, '\0' }, name[80], help[320];
    if ((o->flags & SHERD__OPT_HIDDEN) != 0) return;
    fputs(".TP\n", out);
    snprintf(name, sizeof name, "--%s", o->name);
    if (o->letter != 0) {
        put_bold(out, letter);
        fputs(", ", out);
    }
    put_bold(out, name);
    if (o->arg) fprintf(out, " \\fI%s\\fR", o->arg);
    fputc('\n', out);
    put_text(out, sherd__option_help(o, help));
    if (o->preset) {
        fputs(" [", out);
        put_text(out, o->preset);
        fputc(']', out);
    }
    fputc('\n', out);
}

static bool put_verb(void *ctx, const sherd__verb *v, const char *title)
{
    FILE *out = ctx;
    char head[96];
    if (v->hidden) return false;
    snprintf(head, sizeof head, "sherd %s", title);
    fputs(".SS ", out);
    put_text(out, head);
    fputc('\n', out);
    put_bold(out, head);
    fputs(" [options]", out);
    if (v->usage && *v->usage != '\0') {
        fputc(' ', out);
        put_text(out, v->usage);
    }
    fputs("\n.PP\n", out);
    put_paragraphs(out, v->details ? v->details : v->summary);
    for (const sherd__option *o = v->options; o && o->name; o++) put_option(out, o);
    if (!v->examples || !v->examples->command) return false;
    fputs(".PP\nExamples:\n", out);
    for (const sherd__example *e = v->examples; e->command; e++) {
        fputs(".TP\n", out);
        put_bold(out, e->command);
        fputc('\n', out);
        put_text(out, e->help);
        fputc('\n', out);
    }
    return false;
}

static void put_exit_status(FILE *out)
{
    static const struct {
        int exit;
        const char *text;
    } errors[] = {
#define XX(num, name, exit, text) { exit, text },
        SHERD_ERR_MAP(XX)
#undef XX
    };
    fputs(".SH EXIT STATUS\n.TP\n0\nsuccess\n", out);
    for (int code = 1; code < 256; code++) {
        const char *name = sherd__exit_name(code);
        if (!name) continue;
        fprintf(out, ".TP\n%d (%s)\n", code, name);
        const char *between = "";
        for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
            if (errors[i].exit != code) continue;
            fputs(between, out);
            put_text(out, errors[i].text);
            between = "; ";
        }
        fputc('\n', out);
    }
    fputs(".TP\n141\nthe reader of standard output has closed the pipe; nothing else failed, and "
          "no message is printed\n",
          out);
    fputs(".PP\nWith \\fB\\-\\-json\\fR a failed run prints one object too, with \\fIok\\fR false "
          "and \\fIerror\\fR {code, name, error, message, hint}; code and name are those above.\n",
          out);
}

/* ---- hand-written text ----------------------------------------------------------------------- */

static const char *const intro =
    "sherd splits linear algebra into fragments, sends each fragment to a machine (a scheduler "
    "node) that is not trusted with the whole, checks the answers, and puts them together so that "
    "they equal, bit for bit where the arithmetic is exact, what one machine would have "
    "computed.\n\n"
    "Nodes come from -n N (started on this machine for one command), from --nodes FILE, or from a "
    "local cluster that runs already (sherd cluster up). All connections are TLS 1.3 with pinned "
    "keys.\n\n"
    "permute shuffles and does not encrypt. docs/THREATS.md describes what each scheme hides and "
    "what it leaks.";

static const char *const precedence =
    "The value of an option comes from the first of these places that sets it: the command line; "
    "the environment (SHERD_ and the long name in capitals, with _ for -: SHERD_EXPOSURE_MAX); "
    "--config FILE; the user's file; the system's file. Of two options that exclude each other, "
    "the one from the earlier place is used; in one place they are an error. --no-NAME cancels a "
    "flag that a later place sets. Names can be abbreviated. Options that name secrets (--seed, "
    "--key) are not read from the environment. Options for one run (--output, --meta, --record and "
    "others) are read from the command line only.";

static const char *const environment[][2] = {
    { "SHERD_*", "the option of that long name, as described above; 1, yes, true or on sets a "
                 "flag" },
    { "SHERD_CUDA_PATH", "folder of a CUDA toolkit, or of its libraries alone, whose cuBLAS "
                         "multiplies on nodes with --backend cuda; empty: none does [the system's "
                         "cuBLAS, if there is one]" },
    { "NO_COLOR", "if not empty, colour is disabled" },
    { "OPENBLAS_NUM_THREADS, OMP_NUM_THREADS",
      "threads of the products in this process; each needs 129 MiB of address space, and a message "
      "is printed if limits (ulimit -v, ulimit -d) do not leave as much" },
    { "OPENBLAS_CORETYPE", "forces OpenBLAS's kernels, also for products of shares; sherd doctor "
                           "names the kernels that are replaced" },
    { "XDG_CONFIG_HOME, HOME", "where the user's configuration file is" },
    { "XDG_RUNTIME_DIR", "where a local cluster keeps its state" },
    { "XDG_STATE_HOME, HOME", "where the used masks of sherd prepare are counted" },
    { "XDG_CACHE_HOME, HOME", "where the list of passed self-tests is" },
    { "TMPDIR", "where temporary files go" },
};

static const char *const files[][2] = {
    { "~/.config/sherd/config", "the user's configuration: `option = value` lines, # comments "
                                "($XDG_CONFIG_HOME/sherd/config where that is set)" },
    { "/etc/sherd/config", "the system's configuration; no file is read from the working "
                           "directory" },
    { "*.npy", "matrices: version 1 or 2, C or Fortran order, float32 and float64, int8 to "
               "int64, uint8 to uint32; one dimension counts as one row; written as float64 in C "
               "order. No pickles" },
    { "*.masks",
      "one-time masks, mode 0600: anyone who reads them can remove them from the data that they "
      "hid. Their counters are in ~/.local/state/sherd/masks ($XDG_STATE_HOME/sherd/masks where "
      "that is set)" },
    { "~/.cache/sherd/selftests",
      "self-tests that have passed on this machine since it booted, which local nodes with the "
      "same program and libraries do not repeat ($XDG_CACHE_HOME/sherd/selftests where that is "
      "set). It may be removed at any time" },
    { "share/doc/sherd", "under the prefix of the installation: README.md, and the documents that "
                         "messages name (docs/TRAINING.md and others), examples and recipes" },
    { "*.npz",
      "metadata, mode 0600: anyone who reads it can undo the permutations. numpy.load opens it" },
};

static const char *const node_files =
    "Node files, allow-lists and lists of coordinators have the same format: one peer per line; # "
    "starts a comment. sherd node prints its own line of a node file.\n\n"
    "    HOST:PORT key=sha256:... name=... domain=... weight=... role=node|coordinator\n\n"
    "key is the fingerprint that sherd keygen prints. A node without domain= belongs to the domain "
    "of its host: nodes of one domain are counted as one adversary. weight, a number above 0 [1], "
    "is the node's part of the work relative to that of others. Under share and share1, with "
    "--meta, and in --aggregate ring, halving-doubling and secure it has no effect; commands warn. "
    "In an allow-list HOST:PORT may be *.";

static const char *const process =
    "Ctrl-C, SIGTERM and SIGHUP end a run with exit 130 (a training with --checkpoint: 13); no "
    "local nodes or temporary files remain. A second signal ends the process at once. Core dumps "
    "are disabled, since the memory of a coordinator contains operands and seeds. An output file "
    "appears complete or not at all, and on failure an existing file is kept.";

static void put_pairs(FILE *out, const char *const (*pairs)[2], size_t len)
{
    for (size_t i = 0; i < len; i++) {
        fputs(".TP\n", out);
        put_bold(out, pairs[i][0]);
        fputc('\n', out);
        put_text(out, pairs[i][1]);
        fputc('\n', out);
    }
}

static void put_section(FILE *out, const char *title, const char *text)
{
    fprintf(out, ".SH %s\n", title);
    put_paragraphs(out, text);
}

static bool put_first_example(void *ctx, const sherd__verb *v, const char *title)
{
    FILE *out = ctx;
    (void)title;
    if (v->hidden || !v->examples || !v->examples->command) return false;
    fputs(".TP\n", out);
    put_bold(out, v->examples->command);
    fputc('\n', out);
    put_text(out, v->examples->help);
    fputc('\n', out);
    return false;
}

void sherd__help_man(FILE *out)
{
    fprintf(out,
            ".\\\" Written by `sherd help --man`: change cli/, not this file.\n"
            ".TH SHERD 1 2026-11-20 \"sherd %s\" \"User Commands\"\n",
            SHERD_VERSION);
    fputs(".SH NAME\nsherd \\- linear algebra in fragments, over machines that are not trusted "
          "with the whole\n.SH SYNOPSIS\n\\fBsherd\\fR \\fIVERB\\fR [options] [\\-\\-] "
          "[arguments]\n",
          out);
    put_section(out, "DESCRIPTION", intro);
    fputs(".SH VERBS\n", out);
    sherd__verbs_each(put_verb, out);
    fputs(".SH GENERAL OPTIONS\nEvery verb has these.\n", out);
    for (const sherd__option *o = sherd__options_general; o->name; o++) put_option(out, o);
    put_section(out, "VALUES",
                "Sizes: 4096, 64K, 512M, 1.5G, 2T; powers of 1024. Times: 30 or 30s, 500ms, 2m, "
                "1h.");
    put_section(out, "PRECEDENCE", precedence);
    put_exit_status(out);
    fputs(".SH ENVIRONMENT\n", out);
    put_pairs(out, environment, sizeof environment / sizeof *environment);
    fputs(".SH FILES\n", out);
    put_pairs(out, files, sizeof files / sizeof *files);
    put_section(out, "NODE FILES", node_files);
    put_section(out, "SIGNALS AND UNFINISHED FILES", process);
    fputs(".SH EXAMPLES\n", out);
    sherd__verbs_each(put_first_example, out);
}
