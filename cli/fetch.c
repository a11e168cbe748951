/*
 * `sherd fetch mnist|fashion-mnist`: downloads the four files of a data set into a folder. A file
 * gets its name only after its SHA-256 matches the published one. Correct files that exist are left
 * alone, so that the command can be repeated until all are complete. An existing file with another
 * content belongs to the user and is never replaced.
 */
#include "cli/fetch.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/progress.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/suggest.h"
#include "sherd/digest.h"
#include "store/file.h"

#define MIRRORS_MAX 8u
#define URL_MAX 1024u

typedef struct fetch {
    sherd__cli *cli;
    const sherd__fetch_set *set;
    const char *folder;
    char *mirrors_text; /* --mirror, split at its commas */
    const char *mirrors[MIRRORS_MAX];
    size_t mirrors_len, mirror; /* mirror: index of the first to try, the last that succeeded */
    double stall_s, until;
    size_t done, total; /* bytes of the files to download */
    sherd__progress_line progress;
    json_t *files;
} fetch;

/* ---- arguments ------------------------------------------------------------------------------- */

static int find_set(fetch *f, sherd_diag *d)
{
    const char *known[8] = { NULL }, *name = f->cli->args[0];
    char hint[80] = "sherd help fetch";
    for (size_t i = 0; sherd__fetch_sets[i].name; i++) {
        if (strcmp(sherd__fetch_sets[i].name, name) == 0) f->set = &sherd__fetch_sets[i];
        if (i < 7) known[i] = sherd__fetch_sets[i].name;
    }
    if (f->set) return 0;
    const char *near = sherd__suggest(name, known);
    if (near) snprintf(hint, sizeof hint, "did you mean %s?", near);
    return sherd__fail(d, SHERD_EINVAL, hint, "'%.60s': expected mnist or fashion-mnist", name);
}

static bool is_url(const char *s)
{
    bool known = strncmp(s, "https://", 8) == 0 || strncmp(s, "http://", 7) == 0;
    for (; known && *s != '\0'; s++) known = *s > ' ' && *s <= '~';
    return known;
}

static int read_mirrors(fetch *f, sherd_diag *d)
{
    const char *given = sherd__opt_text(f->cli, "mirror");
    for (; !given && f->set->mirrors[f->mirrors_len]; f->mirrors_len++)
        f->mirrors[f->mirrors_len] = f->set->mirrors[f->mirrors_len];
    if (!given) return 0;
    if (!(f->mirrors_text = sherd__strdup(given)))
        return sherd__fail_memory(d, "the list of mirrors");
    for (char *p = f->mirrors_text, *end; p; p = end) {
        end = strchr(p, ',');
        if (end) *end++ = '\0';
        if (f->mirrors_len == MIRRORS_MAX || strlen(p) > URL_MAX - 64 || !is_url(p))
            return sherd__fail(d, SHERD_EINVAL,
                               "URLs begin with https:// or http:// and are "
                               "separated by commas",
                               "%s: expected up to %u addresses of folders, found '%.80s'",
                               sherd__opt_where(f->cli, "mirror"), MIRRORS_MAX, p);
        f->mirrors[f->mirrors_len++] = p;
    }
    return 0;
}

static int make_folder(const fetch *f, sherd_diag *d)
{
    struct stat st;
    if (mkdir(f->folder, 0777) == 0 ||
        (errno == EEXIST && stat(f->folder, &st) == 0 && S_ISDIR(st.st_mode)))
        return 0;
    return sherd__fail(d, SHERD_EOPEN, "name another folder with -o",
                       "%s: cannot make this folder: %s", sherd__path_tail(f->folder),
                       strerror(errno));
}

static int path_of(const fetch *f, size_t i, char out[PATH_MAX], sherd_diag *d)
{
    int n = snprintf(out, PATH_MAX, "%s/%s", f->folder, f->set->files[i].name);
    if (n > 0 && n < PATH_MAX) return 0;
    return sherd__fail(d, SHERD_EINVAL, NULL, "%s: the name is too long",
                       sherd__path_tail(f->folder));
}

static bool is_right(const fetch *f, size_t i, const uint8_t *bytes, size_t len)
{
    uint8_t sum[32];
    char text[2 * sizeof sum + 1];
    if (sherd_digest_bytes(bytes, len, sum, NULL) != 0) return false;
    for (size_t k = 0; k < sizeof sum; k++) snprintf(text + 2 * k, 3, "%02x", sum[k]);
    return strcmp(text, f->set->files[i].sha256) == 0;
}

/* Checks whether file i already exists. */
static int look(const fetch *f, size_t i, bool *there, sherd_diag *d)
{
    char path[PATH_MAX];
    struct stat st;
    sherd__map m;
    int err = path_of(f, i, path, d);
    *there = false;
    if (err || stat(path, &st) != 0) return err;
    err = sherd__map_open(&m, path, f->set->files[i].size + 1, d);
    if (err) return err;
    *there = is_right(f, i, m.bytes, m.len);
    sherd__map_close(&m);
    if (*there) return 0;
    return sherd__fail(d, SHERD_EFORMAT, "move it away, or fetch into another folder with -o",
                       "%s: exists and is not the published file (SHA-256 differs)",
                       sherd__path_tail(path));
}

/* ---- one file -------------------------------------------------------------------------------- */

static void on_bytes(void *ctx, size_t len)
{
    fetch *f = ctx;
    sherd__progress_update(&f->progress, f->done + len, f->total, NULL, sherd__clock_s());
}

static void add_file(fetch *f, size_t i, const char *url)
{
    json_t *o = json_pack("{s:s, s:I, s:s}", "name", f->set->files[i].name, "bytes",
                          (json_int_t)f->set->files[i].size, "sha256", f->set->files[i].sha256);
    if (url) json_object_set_new(o, "url", json_string(url));
    json_array_append_new(f->files, o);
}

/* Downloads a file from one mirror and checks its SHA-256. */
static int download(fetch *f, size_t i, const char *mirror, char url[URL_MAX], uint8_t **bytes,
                    sherd_diag *d)
{
    size_t n = strlen(mirror), len = 0, size = f->set->files[i].size;
    snprintf(url, URL_MAX, "%s%s%s", mirror, n > 0 && mirror[n - 1] == '/' ? "" : "/",
             f->set->files[i].name);
    sherd__fetch one = { .url = url,
                         .size_max = size,
                         .plain_allowed = strncmp(url, "http://", 7) == 0,
                         .stall_s = f->stall_s,
                         .until = f->until,
                         .progress = on_bytes,
                         .ctx = f };
    int err = sherd__fetch_run(&one, bytes, &len, d);
    if (err) return err;
    if (len < size)
        err = sherd__fail(d, SHERD_ENET, NULL, "%s: truncated: received %zu of %zu bytes", url, len,
                          size);
    else if (!is_right(f, i, *bytes, len))
        err = sherd__fail(d, SHERD_EFORMAT, NULL, "%s: is not the published file (SHA-256 differs)",
                          url);
    if (err) {
        sherd__free(*bytes);
        *bytes = NULL;
    }
    return err;
}

static bool next_may_do_better(int err)
{
    return err == SHERD_ENET || err == SHERD_ESILENT || err == SHERD_EFORMAT;
}

/* Tries one mirror after the other, until one succeeds. */
static int obtain(fetch *f, size_t i, char url[URL_MAX], uint8_t **bytes, sherd_diag *d)
{
    sherd_diag why = { 0 };
    bool all_wrong = true;
    for (size_t k = 0; k < f->mirrors_len; k++) {
        size_t at = (f->mirror + k) % f->mirrors_len;
        why = (sherd_diag){ 0 };
        int err = download(f, i, f->mirrors[at], url, bytes, &why);
        if (!err) {
            f->mirror = at;
            return 0;
        }
        if (!next_may_do_better(err)) return sherd__fail(d, err, why.hint, "%s", why.message);
        all_wrong = all_wrong && err == SHERD_EFORMAT;
        if (k + 1 == f->mirrors_len) break;
        sherd__progress_clear();
        sherd__cli_say(f->cli, "%s; trying the next mirror", why.message);
    }
    return sherd__fail(d, all_wrong ? SHERD_EFORMAT : SHERD_ENET,
                       all_wrong ? "name another mirror with --mirror URL"
                                 : "try again later, or name another mirror with --mirror URL",
                       "%s%s", f->mirrors_len > 1 ? "no mirror has it; the last error: " : "",
                       why.message);
}

static int fetch_file(fetch *f, size_t i, sherd_diag *d)
{
    char path[PATH_MAX], url[URL_MAX];
    uint8_t *bytes = NULL;
    sherd__file *file = NULL;
    int err = path_of(f, i, path, d);
    if (!err) err = sherd__file_begin(&file, path, SHERD__FILE_PUBLIC, d); /* before the download */
    if (!err) err = obtain(f, i, url, &bytes, d);
    if (!err) err = sherd__file_write(file, bytes, f->set->files[i].size, d);
    sherd__free(bytes);
    if (err) {
        sherd__file_abort(file);
        return err;
    }
    err = sherd__file_commit(file, d);
    if (err) return err;
    f->done += f->set->files[i].size;
    add_file(f, i, url);
    return 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int fetch_all(fetch *f, sherd_diag *d)
{
    bool there[SHERD__FETCH_FILES];
    for (size_t i = 0; i < SHERD__FETCH_FILES; i++) {
        int err = look(f, i, &there[i], d);
        if (err) return err;
        if (there[i]) add_file(f, i, NULL);
        else f->total += f->set->files[i].size;
    }
    int err = 0;
    for (size_t i = 0; i < SHERD__FETCH_FILES && !err; i++)
        if (!there[i]) err = fetch_file(f, i, d);
    return err;
}

static int report_result(fetch *f, sherd_diag *d)
{
    char bytes[24];
    if (f->cli->json) {
        json_t *o = sherd__cli_json_new(f->cli);
        json_object_set_new(o, "folder", sherd__cli_json_text(f->folder));
        json_object_set(o, "files", f->files);
        json_object_set_new(o, "bytes_in", json_integer((json_int_t)f->done));
        return sherd__cli_json_end(f->cli, o, d);
    }
    if (f->done == 0)
        sherd__cli_say(f->cli, "%s: all %u files exist and are the published ones", f->folder,
                       SHERD__FETCH_FILES);
    else
        sherd__cli_say(f->cli,
                       "%s: %s; %s fetched, all SHA-256 sums are correct\n"
                       "next: sherd train mnist-proper --data %s",
                       f->folder, f->set->what, sherd__cli_bytes(f->done, bytes), f->folder);
    return 0;
}

static int run_fetch(sherd__cli *cli, sherd_diag *d)
{
    fetch f = { .cli = cli, .files = json_array() };
    uint32_t timeout = sherd__opt_time_ms(cli, "timeout");
    double now = sherd__clock_s();
    f.stall_s = sherd__opt_time_ms(cli, "stall") / 1e3;
    f.until = timeout > 0 ? now + timeout / 1e3 : 0;
    int err = find_set(&f, d);
    f.folder = sherd__opt_text(cli, "output");
    if (!err && !f.folder) f.folder = f.set->name;
    if (!err) err = read_mirrors(&f, d);
    if (!err) err = make_folder(&f, d);
    if (!err) {
        sherd__progress_mode mode = (sherd__progress_mode)sherd__opt_choice(cli, "progress");
        sherd__progress_init(&f.progress, stderr, cli->quiet ? SHERD__PROGRESS_NONE : mode, "fetch",
                             "bytes", now);
        err = fetch_all(&f, d);
        sherd__progress_fini(&f.progress);
    }
    if (!err) err = report_result(&f, d);
    json_decref(f.files);
    sherd__free(f.mirrors_text);
    return err;
}

static const sherd__example examples[] = {
    { "sherd fetch mnist", "MNIST, into the folder mnist" },
    { "sherd fetch fashion-mnist -o ~/fashion", "Fashion-MNIST, into a folder of your choice" },
    { "sherd fetch mnist --mirror https://example.org/mnist", "from a mirror of your own" },
    { 0 },
};

/* clang-format off */
static const sherd__option options[] = {
    { .name = "output", .letter = 'o', .type = SHERD__DIR, .arg = "FOLDER",
      .flags = SHERD__OPT_ONLY_ARGV,
      .help = "write the files to this folder [the data set's name]" },
    { .name = "mirror", .type = SHERD__TEXT, .arg = "URL",
      .help = "fetch from this folder instead; several URLs are separated by commas and tried in "
              "turn" },
    { .name = "stall", .type = SHERD__TIME, .arg = "TIME", .preset = "30s",
      .help = "give up a mirror that sends less than 1 kB/s for this time" },
    SHERD__OPT_TIMEOUT,
    SHERD__OPT_PROGRESS,
    { 0 },
};
/* clang-format on */

const sherd__verb sherd__verb_fetch = {
    .name = "fetch",
    .usage = "mnist|fashion-mnist",
    .summary = "download a data set to train on",
    .details =
        "Downloads the four files of MNIST or Fashion-MNIST with curl, which must be installed, "
        "from the first of several mirrors that has them. A file gets its name only after its "
        "SHA-256 matches the published one. Existing files are not downloaded again if they match, "
        "and never replaced if they do not. The built-in mirrors and their redirections use https "
        "only; --mirror also accepts http://, since the checksum decides.",
    .examples = examples,
    .options = options,
    .args_min = 1,
    .args_max = 1,
    .run = run_fetch,
};
