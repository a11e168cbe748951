/*
 * The data are written to one file in gnuplot's blocks (two empty lines between them), the script
 * to another. Both have no name while gnuplot runs, and get one only if it fails. gnuplot draws to
 * memory, and the picture then replaces the old plot. gnuplot runs as a child process with a
 * deadline and without the user's start-up file. It inherits the three descriptors and no name, so
 * other users of the folder can neither exchange what it reads nor redirect what it writes.
 */
#include "cli/plot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/clock.h"
#include "core/diag.h"
#include "store/file.h"

#define GNUPLOT_SECONDS 60.0

typedef struct names {
    char data[PATH_MAX], script[PATH_MAX];
} names;

/* What gnuplot works on. */
typedef struct work {
    sherd__file *data, *script;
    int picture; /* descriptor of a file in memory; -1: none */
} work;

static const char *kind_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    if (dot && strcmp(dot, ".svg") == 0) return "svg";
    return dot && strcmp(dot, ".png") == 0 ? "pngcairo" : NULL;
}

static int make_names(names *n, const char *path, sherd_diag *d)
{
    int a = snprintf(n->data, sizeof n->data, "%s.dat", path);
    int b = snprintf(n->script, sizeof n->script, "%s.gnuplot", path);
    if (a > 0 && b > 0 && (size_t)b < sizeof n->script) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, NULL, "%s: the name is too long", sherd__path_tail(path));
}

static void end_work(const work *w)
{
    sherd__file_abort(w->data);
    sherd__file_abort(w->script);
    if (w->picture >= 0) close(w->picture);
}

static int begin_work(work *w, const names *n, sherd_diag *d)
{
    *w = (work){ .picture = -1 };
    int err = sherd__file_begin(&w->data, n->data, SHERD__FILE_DERIVED, d);
    return err ? err : sherd__file_begin(&w->script, n->script, SHERD__FILE_DERIVED, d);
}

int sherd__plot_check(const char *path, sherd_diag *d)
{
    names n;
    work w = { .picture = -1 };
    sherd__file *f = NULL;
    if (!kind_of(path))
        return sherd__fail(d, SHERD_EINVAL, "use the extension .svg or .png",
                           "%s: expected the name of an "
                           ".svg or .png file",
                           sherd__path_tail(path));
    int err = make_names(&n, path, d);
    if (!err) err = sherd__file_begin(&f, path, SHERD__FILE_PUBLIC, d);
    sherd__file_abort(f);
    if (!err) err = begin_work(&w, &n, d);
    end_work(&w);
    return err;
}

/* ---- data and script ------------------------------------------------------------------------- */

/* A text file being written, borrowed; keeps the first error. */
typedef struct text {
    sherd__file *file;
    int err;
    sherd_diag *d;
} text;

__attribute__((format(printf, 2, 3))) static void say(text *t, const char *fmt, ...)
{
    char line[2 * PATH_MAX + 256];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (t->err) return;
    if (n < 0 || (size_t)n >= sizeof line) t->err = SHERD_EINTERNAL;
    else t->err = sherd__file_write(t->file, line, (size_t)n, t->d);
}

static int write_data(const sherd__plot *p, sherd__file *file, sherd_diag *d)
{
    text t = { .file = file, .d = d };
    say(&t, "# epoch, loss, loss of validation, accuracy, accuracy of validation\n");
    for (size_t i = 0; i < p->epochs_len && !t.err; i++) {
        const sherd__plot_epoch *e = &p->epochs[i];
        say(&t, "%.17g %.17g %.17g %.17g %.17g\n", e->epoch, e->cost, e->validation_cost,
            e->accuracy, e->validation_accuracy);
    }
    say(&t, "\n\n# the data: x, y, class\n");
    for (size_t i = 0; i < p->points_len && !t.err; i++)
        say(&t, "%.17g %.17g %u\n", p->points[2 * i], p->points[2 * i + 1], p->labels[i]);
    say(&t, "\n\n# decision regions of the network: x, y, class\n");
    for (size_t k = 0; k < p->side * p->side && !t.err; k++) {
        double by = (double)p->side, x = ((double)(k % p->side) + 0.5) / by;
        double y = ((double)(k / p->side) + 0.5) / by;
        say(&t, "%.17g %.17g %u\n", p->low[0] + x * (p->high[0] - p->low[0]),
            p->low[1] + y * (p->high[1] - p->low[1]), p->regions[k]);
    }
    return t.err;
}

/* Quotes a string for the script: single quotes are doubled, which is gnuplot's only quoting.
 * Control characters cannot be represented; a name with them is replaced by one without. */
static const char *quoted(const char *s, char out[2 * PATH_MAX])
{
    size_t n = 0;
    for (; *s != '\0' && n + 2 < 2 * PATH_MAX; s++) {
        if (*s == '\'') out[n++] = '\'';
        out[n++] = (unsigned char)*s < ' ' ? ' ' : *s;
    }
    out[n] = '\0';
    return out;
}

static bool any(const sherd__plot *p, size_t offset)
{
    for (size_t i = 0; i < p->epochs_len; i++) {
        double x;
        memcpy(&x, (const char *)&p->epochs[i] + offset, sizeof x);
        if (isfinite(x)) return true;
    }
    return false;
}

static void curves(text *t, const sherd__plot *p)
{
    static const struct {
        size_t offset;
        const char *using, *title;
    } lines[] = {
        { offsetof(sherd__plot_epoch, cost), "1:2 axes x1y1", "loss" },
        { offsetof(sherd__plot_epoch, validation_cost), "1:3 axes x1y1", "loss, validation" },
        { offsetof(sherd__plot_epoch, accuracy), "1:4 axes x1y2", "accuracy" },
        { offsetof(sherd__plot_epoch, validation_accuracy), "1:5 axes x1y2",
          "accuracy, validation" },
    };
    bool accuracy = any(p, lines[2].offset) || any(p, lines[3].offset), first = true;
    if (p->epochs_len == 0) { /* an empty frame: gnuplot cannot derive a range without figures */
        say(t, "set xrange [0:1]; set yrange [0:1]\nplot -1 notitle\n");
        return;
    }
    say(t, "set xlabel 'epoch'\nset ylabel 'loss'\nset ytics nomirror\nset yrange [0:*]\n");
    if (accuracy) say(t, "set y2label 'accuracy'\nset y2tics\nset y2range [0:1]\n");
    say(t, "set key below\nplot ");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (!any(p, lines[i].offset)) continue;
        say(t, "%sdata index 0 using %s with linespoints pt 7 ps 0.3 title '%s'", first ? "" : ", ",
            lines[i].using, lines[i].title);
        first = false;
    }
    say(t, "%s\nunset y2tics; unset y2label; set ytics mirror\n", first ? "-1 notitle" : "");
}

/* Numbers blocks as gnuplot does, which skips a block without lines. */
static void plane(text *t, const sherd__plot *p)
{
    int points = p->epochs_len > 0, regions = points + 1;
    say(t, "set xrange [%.17g:%.17g]; set yrange [%.17g:%.17g]\n", p->low[0], p->high[0], p->low[1],
        p->high[1]);
    say(t, "unset key; set xlabel 'x'; set ylabel 'y'; set size ratio -1; set title 'data'\n");
    say(t, "plot data index %d using 1:2:($3+1) with points pt 7 ps 0.4 lc variable\n", points);
    say(t, "set title 'decision regions'\nset style fill transparent solid 0.3 noborder\n");
    say(t,
        "plot data index %d using 1:2:(%.17g):(%.17g):($3+1) with boxxyerror lc variable, "
        "data index %d using 1:2:($3+1) with points pt 7 ps 0.4 lc variable\n",
        regions, (p->high[0] - p->low[0]) / (double)p->side / 2,
        (p->high[1] - p->low[1]) / (double)p->side / 2, points);
}

static int write_script(const sherd__plot *p, const char *path, const char *data, sherd__file *file,
                        sherd_diag *d)
{
    char q[2 * PATH_MAX];
    text t = { .file = file, .d = d };
    bool flat = p->points && p->side > 0;
    say(&t, "# gnuplot draws %s from this\n", sherd__path_tail(quoted(path, q)));
    say(&t, "if (!exists('picture')) picture = '%s'\n", quoted(path, q));
    say(&t, "if (!exists('data')) data = '%s'\n", quoted(data, q));
    say(&t, "set terminal %s size %d,480 background rgb 'white'\nset output picture\n",
        kind_of(path), flat ? 1440 : 640);
    say(&t, "set datafile missing 'nan'\nset grid\nset title '%s' noenhanced\n",
        quoted(p->title, q));
    if (flat) say(&t, "set multiplot layout 1,3\n");
    curves(&t, p);
    if (flat) plane(&t, p);
    if (flat) say(&t, "unset multiplot\n");
    say(&t, "unset output\n");
    return t.err;
}

/* ---- gnuplot --------------------------------------------------------------------------------- */

/* Waits for gnuplot, for at most GNUPLOT_SECONDS, and until a signal at most. A signal that was
 * received before the call, and ended the training that is drawn, does not count. */
static int await(pid_t pid, int *status)
{
    double until = sherd__clock_s() + GNUPLOT_SECONDS;
    bool late = sherd__cli_interrupted() != 0;
    for (;;) {
        pid_t got = waitpid(pid, status, WNOHANG);
        if (got == pid) return SHERD_OK;
        if (got < 0 && errno != EINTR) return SHERD_EINTERNAL;
        bool stop = !late && sherd__cli_interrupted();
        if (stop || sherd__clock_s() > until) {
            kill(pid, SIGKILL);
            while (waitpid(pid, status, 0) < 0 && errno == EINTR) {}
            return stop ? SHERD_EINTERRUPTED : SHERD_ETIMEOUT;
        }
        (void)poll(NULL, 0, 5);
    }
}

/* Returns 0 if the plot is in w->picture, else an error with the reason in *why. */
static int run_gnuplot(const work *w, const char **why)
{
    const int given[] = { w->picture, sherd__file_fd(w->data), sherd__file_fd(w->script) };
    char set[80], script[24];
    snprintf(set, sizeof set, "picture = '/dev/fd/%d'; data = '/dev/fd/%d'", given[0], given[1]);
    snprintf(script, sizeof script, "/dev/fd/%d", given[2]);
    const char *argv[] = { "gnuplot", "-d", "-e", set, script, NULL };
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status = 0;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) /* to itself: it is inherited */
        posix_spawn_file_actions_adddup2(&actions, given[i], given[i]);
    int e = posix_spawnp(&pid, "gnuplot", &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    *why = "gnuplot is not installed";
    if (e != 0) return SHERD_EUNSUPPORTED;
    int err = await(pid, &status);
    *why = err == SHERD_ETIMEOUT ? "gnuplot took longer than 60 s" : "gnuplot failed";
    if (!err && status != 0)
        err = WIFEXITED(status) && WEXITSTATUS(status) == 127 ? SHERD_EUNSUPPORTED : SHERD_EDEVICE;
    if (err == SHERD_EUNSUPPORTED) *why = "gnuplot is not installed";
    return err;
}

/* Writes the picture under its final name, complete and synced, as for all output files. */
static int name_picture(int picture, const char *path, sherd_diag *d)
{
    char from[24];
    sherd__map m = { 0 };
    sherd__file *f = NULL;
    snprintf(from, sizeof from, "/dev/fd/%d", picture);
    int err = sherd__map_open(&m, from, 0, d);
    if (!err) err = sherd__file_begin(&f, path, SHERD__FILE_PUBLIC, d);
    if (!err) err = sherd__file_write(f, m.bytes, m.len, d);
    if (!err) err = sherd__file_commit(f, d);
    else sherd__file_abort(f);
    sherd__map_close(&m);
    return err;
}

/* Publishes data and script for a later gnuplot. Ends both in any case. */
static int keep(work *w, sherd_diag *d)
{
    int err = sherd__file_commit(w->data, d);
    w->data = NULL;
    if (err) return err;
    err = sherd__file_commit(w->script, d);
    w->script = NULL;
    return err;
}

/* Draws, or keeps data and script with the reason in *d. */
static int draw(work *w, const names *n, const char *path, bool *drawn, sherd_diag *d)
{
    const char *why = NULL;
    w->picture = memfd_create("plot", MFD_CLOEXEC);
    if (w->picture < 0)
        return sherd__fail_file(SHERD_EIO, NULL, path, "make a file in memory", errno, d);
    int err = run_gnuplot(w, &why);
    if (!err) err = name_picture(w->picture, path, d);
    else if (err != SHERD_EINTERRUPTED) {
        int kept = keep(w, d);
        if (kept) return kept;
        sherd__fail(d, err, "install gnuplot, and run it with that file",
                    "%s: %s: data and script are kept as %s", sherd__path_tail(path), why,
                    sherd__path_tail(n->script));
        return SHERD_OK;
    }
    *drawn = err == 0;
    return err;
}

int sherd__plot_draw(const sherd__plot *p, const char *path, bool *drawn, sherd_diag *d)
{
    names n;
    work w = { .picture = -1 };
    *drawn = false;
    int err = make_names(&n, path, d);
    if (!err) err = begin_work(&w, &n, d);
    if (!err) err = write_data(p, w.data, d);
    if (!err) err = write_script(p, path, n.data, w.script, d);
    if (!err) err = draw(&w, &n, path, drawn, d);
    end_work(&w);
    return err;
}
