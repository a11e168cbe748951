/*
 * Messages and results. Errors are printed only here, once, when a run ends: either as two lines
 * for people or as one JSON object for programs. A result that could not be written (stdout closed,
 * its disk full) is a failure of the run, whatever the verb returned.
 */
#include "cli/report.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/limit.h"
#include "cli/progress.h"
#include "core/alloc.h"

#define EXIT_PIPE (128 + SIGPIPE)

static const struct {
    int code;
    const char *name;
} exits[] = {
    { 0, "done" },          { 1, "failed" },   { 2, "usage" },          { 3, "input" },
    { 4, "file" },          { 5, "network" },  { 6, "authentication" }, { 7, "nodes" },
    { 8, "verification" },  { 9, "differs" },  { 10, "exposure" },      { 11, "range" },
    { 12, "chain" },        { 13, "stopped" }, { 14, "version" },       { 124, "timeout" },
    { 130, "interrupted" },
};

const char *sherd__exit_name(int exit_code)
{
    for (size_t i = 0; i < sizeof exits / sizeof *exits; i++)
        if (exits[i].code == exit_code) return exits[i].name;
    return NULL;
}

bool sherd__cli_colour(void)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(STDERR_FILENO) == 1 && (!no || *no == '\0') && term && strcmp(term, "dumb") != 0;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* A message, written by one write, so that processes that share a terminal or mpirun's pipe do not
 * interleave their messages (a pipe takes 4096 bytes atomically). */
typedef struct {
    char text[4096];
    size_t len;
    FILE *to;
    int width;  /* text of put_plain is broken at blanks before this column; 0: not broken */
    int indent; /* blanks before a continued line */
    int at;     /* columns of the line so far */
} words;

int sherd__cli_columns(FILE *out)
{
    struct winsize w;
    if (ioctl(fileno(out), TIOCGWINSZ, &w) == 0 && w.ws_col > 0) return w.ws_col;
    const char *columns = getenv("COLUMNS");
    int n = columns ? atoi(columns) : 0;
    return n > 0 ? n : 80;
}

/* Makes text that is broken before the last column of a terminal. Other readers get whole lines. */
static words prose(FILE *to)
{
    words w = { .to = to, .indent = 2 };
    if (isatty(fileno(to)) == 1) w.width = sherd__cli_columns(to) - 1;
    return w;
}

static void speak(words *w)
{
    (void)fwrite(w->text, 1, w->len, w->to);
    w->len = 0;
}

static void add(words *w, const char *text, size_t len)
{
    if (len > sizeof w->text - w->len) speak(w);
    memcpy(w->text + w->len, text, len);
    w->len += len;
}

/* Appends our own text unchanged, with no escapes of the terminal. */
static void put(words *w, const char *text)
{
    const char *line = strrchr(text, '\n');
    add(w, text, strlen(text));
    w->at = line ? (int)strlen(line + 1) : w->at + (int)strlen(text);
}

/* Appends text in a colour: an SGR sequence such as "1;31". */
static void put_colour(words *w, const char *colour, const char *text)
{
    bool shown = sherd__cli_colour();
    if (shown) add(w, "\033[", 2), add(w, colour, strlen(colour)), add(w, "m", 1);
    put(w, text);
    if (shown) add(w, "\033[0m", 4);
}

/* Reads a character of UTF-8. Returns its length; 0: these bytes are none. */
static size_t character(const unsigned char *p, uint32_t *code)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = {
        { 0x80, 0x00, 0 }, { 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 }
    };
    size_t n = 0;
    while (n < 4 && (*p & forms[n].mask) != forms[n].lead) n++;
    if (n == 4) return 0;
    *code = *p & (unsigned char)~forms[n].mask;
    for (size_t i = 1; i <= n; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0;
        *code = *code << 6 | (p[i] & 0x3f);
    }
    return *code >= forms[n].least && *code <= 0x10ffff && *code >> 11 != 0x1b ? n + 1 : 0;
}

/* Returns whether a terminal obeys the character, or shows text around it in another order or on
 * another line: controls, line separators, bidirectional formatting, tags. */
static bool obeyed(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xe0000 && c <= 0xe007f);
}

/* Copies the next character of *text to out, or an escape of one that is obeyed or not UTF-8.
 * Advances *text; returns the length in out. */
static size_t next_plain(const char **text, char out[12])
{
    uint32_t code = 0;
    const unsigned char *p = (const unsigned char *)*text;
    size_t len = character(p, &code);
    if (len > 0 && !obeyed(code)) {
        memcpy(out, p, len);
        *text += len;
        return len;
    }
    *text += len > 0 ? len : 1;
    if (len == 0) code = *p;
    return (size_t)snprintf(out, 12, code > 0xff ? "\\u%04x" : "\\x%02x", code);
}

/* Returns the columns of an escape or of one character of UTF-8. */
static int columns_of(const char *code, size_t len)
{
    return (code[0] & 0x80) != 0 ? 1 : (int)len;
}

/* Returns whether a line may end at text, which follows `before`: not within a quoted command, so
 * that it can be copied, nor between a number and its unit. */
static bool is_break(const char *text, char before, bool quoted)
{
    return *text == ' ' && !quoted && !(before >= '0' && before <= '9');
}

/* Returns the columns from text to the next place where a line may end. */
static int word_columns(const char *text)
{
    char code[12];
    char before = ' ';
    int columns = 0;
    for (bool quoted = false; *text != '\0' && !is_break(text, before, quoted); before = text[-1]) {
        quoted ^= *text == '`';
        size_t len = next_plain(&text, code);
        columns += columns_of(code, len);
    }
    return columns;
}

/* Appends text of others, escaped. File names, arguments and messages of nodes may contain
 * characters that a terminal obeys. */
static void put_plain(words *w, const char *text)
{
    char code[12], before = ' ';
    for (bool quoted = false; *text != '\0'; before = text[-1]) {
        quoted ^= *text == '`';
        if (w->width > 0 && is_break(text, before, quoted) && w->at > w->indent &&
            w->at + 1 + word_columns(text + 1) > w->width) {
            text += strspn(text, " ");
            add(w, "\n", 1);
            for (w->at = 0; w->at < w->indent; w->at++) add(w, " ", 1);
            continue;
        }
        size_t len = next_plain(&text, code);
        add(w, code, len);
        w->at += columns_of(code, len);
    }
}

const char *sherd__cli_plain(const char *text, char *out, size_t size)
{
    char code[12];
    size_t at = 0, len;
    while (*text != '\0' && at + (len = next_plain(&text, code)) < size) {
        memcpy(out + at, code, len);
        at += len;
    }
    out[at] = '\0';
    return out;
}

static void say(words *w, const char *fmt, va_list args) __attribute__((format(printf, 2, 0)));
static void say(words *w, const char *fmt, va_list args)
{
    char text[8192];
    sherd__progress_clear();
    vsnprintf(text, sizeof text, fmt, args);
    put_plain(w, text);
    put(w, "\n");
    speak(w);
}

void sherd__cli_print(const char *fmt, ...)
{
    words w = { .to = stdout };
    va_list args;
    va_start(args, fmt);
    say(&w, fmt, args);
    va_end(args);
}

void sherd__cli_print_prose(int indent, const char *fmt, ...)
{
    words w = prose(stdout);
    va_list args;
    w.indent = indent;
    va_start(args, fmt);
    say(&w, fmt, args);
    va_end(args);
}

void sherd__cli_say(const sherd__cli *cli, const char *fmt, ...)
{
    if (cli->quiet) return;
    words w = prose(stderr);
    va_list args;
    va_start(args, fmt);
    say(&w, fmt, args);
    va_end(args);
}

void sherd__cli_note(const sherd__cli *cli, const char *fmt, ...)
{
    if (cli->quiet || cli->verbose < 1) return;
    words w = prose(stderr);
    va_list args;
    va_start(args, fmt);
    say(&w, fmt, args);
    va_end(args);
}

void sherd__cli_warn(const sherd__cli *cli, const char *fmt, ...)
{
    words w = prose(stderr);
    va_list args;
    va_start(args, fmt);
    put(&w, "sherd: ");
    put(&w, cli->title);
    put(&w, ": ");
    put_colour(&w, "33", "warning:");
    put(&w, " ");
    say(&w, fmt, args);
    va_end(args);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* schema: "sherd/multiply/1", "sherd/meta-build/1" */
static json_t *new_object(const sherd__cli *cli, bool ok)
{
    char schema[80];
    int n = snprintf(schema, sizeof schema, "sherd/%s/1", *cli->title ? cli->title : "sherd");
    for (int i = 0; i < n; i++)
        if (schema[i] == ' ') schema[i] = '-';
    return json_pack("{s:s, s:b}", "schema", schema, "ok", ok);
}

json_t *sherd__cli_json_new(const sherd__cli *cli)
{
    return new_object(cli, true);
}

/* Every double keeps 15 digits, so that 0.3 is not printed as 0.29999999999999999. */
#define OUTPUT_FLAGS (JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15))

static int print_object(json_t *obj)
{
    char *text = obj ? json_dumps(obj, OUTPUT_FLAGS) : NULL;
    if (!text) return SHERD_ENOMEM;
    int err = puts(text) < 0 ? SHERD_EIO : 0;
    free(text); /* allocated by jansson */
    return err;
}

json_t *sherd__cli_json_text(const char *text)
{
    json_t *s = text ? json_string(text) : json_null();
    if (s) return s;
    size_t size = 4 * strlen(text) + 1, at = 0;
    char *copy = sherd__alloc(size);
    while (copy && *text != '\0') {
        uint32_t code;
        size_t len = character((const unsigned char *)text, &code);
        if (len) memcpy(copy + at, text, len);
        at += len ? len : (size_t)snprintf(copy + at, 5, "\\x%02x", (unsigned char)*text);
        text += len ? len : 1;
    }
    if (copy) copy[at] = '\0';
    s = json_string(copy ? copy : "");
    sherd__free(copy);
    return s;
}

#define STDOUT_FAILED "cannot write to standard output: %s; all else was done"
#define STDOUT_HINT "check that its reader runs and that its disk has room"

int sherd__cli_json_end(const sherd__cli *cli, json_t *obj, sherd_diag *d)
{
    (void)cli;
    int err = print_object(obj);
    json_decref(obj);
    if (err == SHERD_EIO) return sherd__fail(d, err, STDOUT_HINT, STDOUT_FAILED, strerror(errno));
    return err ? sherd__fail_memory(d, "the JSON object") : 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Returns the remedy for an error that was reported without one. An interrupt needs none. */
static const char *remedy(int err, const sherd_diag *d)
{
    static const struct {
        int err;
        const char *hint;
    } known[] = {
        { SHERD_ENOMEM, "free memory, or limit its use with --memory" },
        { SHERD_EINTERNAL, "this is a bug in sherd: report it with the command that caused it" },
        { SHERD_ETIMEOUT, "allow more time with --timeout" },
        { SHERD_EFEWNODES, "start more nodes, or give them more memory" },
        { SHERD_EFRAME, "check that both ends run the same version: sherd version" },
        { SHERD_EAUTH, "compare keys and allow-lists: sherd keygen --show" },
        { SHERD_EREFUSED, "read the node's messages" },
        { SHERD_EVERSION, "install one version of sherd at both ends" },
        { SHERD_ESILENT, "check whether the node is overloaded or stopped" },
        { SHERD_ECLOSED, "read the node's messages: it may have ended" },
        { SHERD_ECONNECT, "check that the node runs and that its address is right" },
        { SHERD_EADDRINUSE, "choose another port; 0 selects a free one" },
        { SHERD_ENET, "check the network between the two: sherd doctor" },
        { SHERD_EDEVICE, "sherd doctor tests the devices of this machine" },
        { SHERD_EOPEN, "check the path and its permissions" },
        { SHERD_EIO, "check the disk: space, quota, health" },
        { SHERD_EFORMAT, "correct what it names, create the file again, or restore a copy" },
    };
    if (*d->hint != '\0') return d->hint;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].err == err) return known[i].hint;
    return "";
}

static void print_error(const sherd__cli *cli, int err, const sherd_diag *d)
{
    const char *hint = remedy(err, d);
    words w = prose(stderr);
    sherd__progress_clear();
    put_colour(&w, "1;31", "sherd:");
    put(&w, " ");
    put(&w, cli->title);
    if (*cli->title) put(&w, ": ");
    put_plain(&w, *d->message ? d->message : sherd_strerror(err));
    if (*hint != '\0') {
        put(&w, "\n  try: ");
        w.indent = w.at;
        put_plain(&w, hint);
    }
    put(&w, "\n");
    speak(&w);
}

/* Makes {"code": 8, "name": "verification", ...}. */
static json_t *error_object(int err, const sherd_diag *d)
{
    int code = sherd_err_exit(err);
    const char *name = sherd__exit_name(code);
    const char *message = *d->message ? d->message : sherd_strerror(err);
    return json_pack("{s:i, s:s, s:s, s:o, s:o}", "code", code, "name", name ? name : "failed",
                     "error", sherd_err_name(err), "message", sherd__cli_json_text(message), "hint",
                     sherd__cli_json_text(remedy(err, d)));
}

int sherd__cli_json_fail(sherd__cli *cli, json_t *obj, int err, const sherd_diag *d)
{
    if (obj && json_object_set_new(obj, "ok", json_false()) == 0 &&
        json_object_set_new(obj, "error", error_object(err, d)) == 0)
        cli->reported = print_object(obj) == 0;
    json_decref(obj);
    return err;
}

/* Prints the error object of a failed run with --json; false if it could not be printed. */
static bool print_json(const sherd__cli *cli, int err, const sherd_diag *d)
{
    json_t *obj = new_object(cli, false);
    bool reported = obj && json_object_set_new(obj, "error", error_object(err, d)) == 0 &&
                    print_object(obj) == 0;
    json_decref(obj);
    return reported;
}

/* Returns whether all that failed is the output, because its reader has closed the pipe, as head
 * does when it has enough. This is reported as the status of a program that SIGPIPE ends. */
static bool reader_left(int err, const sherd_diag *d)
{
    struct pollfd output = { .fd = STDOUT_FILENO, .events = POLLOUT };
    bool failed = fflush(stdout) != 0 || ferror(stdout);
    return failed && (err == 0 || strcmp(d->hint, STDOUT_HINT) == 0) && poll(&output, 1, 0) == 1 &&
           (output.revents & POLLERR);
}

int sherd__cli_end(const sherd__cli *cli, int err, const sherd_diag *d)
{
    sherd_diag mine = *d;
    sherd__limit_ending();
    if (reader_left(err, d)) return EXIT_PIPE;
    if (err == SHERD_EINTERRUPTED && sherd__cli_interrupted() == SIGALRM) {
        /* "interrupted" alone says nothing of where the time went. */
        bool says = *d->message && strcmp(d->message, "interrupted") != 0;
        mine = (sherd_diag){ 0 };
        err = sherd__fail(&mine, SHERD_ETIMEOUT, "allow more time with --timeout",
                          "--timeout expired%s%s", says ? "; " : "", says ? d->message : "");
    }
    sherd__progress_clear();
    bool reported = err != 0 && (cli->reported || (cli->json && print_json(cli, err, &mine)));
    if ((fflush(stdout) != 0 || ferror(stdout)) && (err == 0 || reported)) {
        reported = false;
        if (err == 0) {
            err = SHERD_EIO;
            mine = (sherd_diag){ 0 };
            (void)sherd__fail(&mine, err, STDOUT_HINT, STDOUT_FAILED, strerror(errno));
        }
    }
    if (err != 0 && !reported) print_error(cli, err, &mine);
    if (cli->verdict && !cli->json) sherd__cli_say(cli, "%s", cli->verdict);
    return err ? sherd_err_exit(err) : 0;
}

/* ---- numbers for people ---------------------------------------------------------------------- */

const char *sherd__cli_bytes(uint64_t n, char out[24])
{
    return sherd__bytes_text((double)n, out);
}

const char *sherd__cli_seconds(double s, char out[24])
{
    if (!(s >= 0)) s = 0;
    if (s > 0 && s < 0.0009995) snprintf(out, 24, "%.0f us", s * 1e6);
    else if (s < 0.0995) snprintf(out, 24, "%.1f ms", s * 1e3);
    else if (s < 9.995) snprintf(out, 24, "%.2f s", s);
    else if (s < 99.95) snprintf(out, 24, "%.1f s", s);
    else if (s < 5999.5)
        snprintf(out, 24, "%d min %02d s", (int)(s + 0.5) / 60, (int)(s + 0.5) % 60);
    else snprintf(out, 24, "%.0f h %02d min", floor(s / 3600), (int)fmod(s / 60, 60));
    return out;
}
