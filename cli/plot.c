/*
 * The data and the commands for gnuplot are one script. It has no name while gnuplot runs, and gets
 * one only if gnuplot fails. gnuplot draws to memory, and the picture then replaces the old plot.
 * gnuplot runs as a child process with a deadline and without the user's start-up file. It inherits
 * the two descriptors and no name, so other users of the folder can neither exchange what it reads
 * nor redirect what it writes.
 *
 * Loss and accuracy have panels of their own, since 97 to 99 % is a flat line on an axis of losses.
 * Regions are opaque boxes that overlap the next one: the edges of boxes that only touch would be
 * visible as a grid.
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
#define POINTS_MAX 5000u /* more are thinned */
#define UNDER 3.0        /* cells by which a box reaches under the next ones: more than a pixel */
#define MARKED_MAX 60u   /* most epochs whose figures have a mark each */

/* The first bytes of each script. A file without them is not ours, and is never replaced. */
static const char mark[] = "# sherd train --plot:";

/* What gnuplot works on. */
typedef struct work {
    char name[PATH_MAX]; /* of the script */
    sherd__file *script;
    int picture; /* descriptor of a file in memory; -1: none */
} work;

static const char *kind_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    if (dot && strcmp(dot, ".svg") == 0) return "svg";
    return dot && strcmp(dot, ".png") == 0 ? "pngcairo" : NULL;
}

static int set_name(work *w, const char *path, sherd_diag *d)
{
    int n = snprintf(w->name, sizeof w->name, "%s.gnuplot", path);
    if (n > 0 && (size_t)n < sizeof w->name) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, NULL, "%s: the name is too long", sherd__path_tail(path));
}

/* Refuses to replace a file that has another first line. Files that cannot be read are judged when
 * the script is opened. */
static int is_ours(const char *name, sherd_diag *d)
{
    char first[sizeof mark - 1] = { 0 };
    int fd = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return SHERD_OK;
    ssize_t n = read(fd, first, sizeof first);
    close(fd);
    if (n <= 0 || memcmp(first, mark, sizeof first) == 0) return SHERD_OK;
    return sherd__fail(d, SHERD_EOPEN, "give the plot another name, or move that file",
                       "%s: exists, and is not a script that sherd wrote: the script of the plot "
                       "would replace it",
                       sherd__path_tail(name));
}

static void end_work(const work *w)
{
    sherd__file_abort(w->script);
    if (w->picture >= 0) close(w->picture);
}

static int begin_work(work *w, const char *path, sherd_diag *d)
{
    int err = set_name(w, path, d);
    if (!err) err = is_ours(w->name, d);
    return err ? err : sherd__file_begin(&w->script, w->name, SHERD__FILE_DERIVED, d);
}

int sherd__plot_check(const char *path, sherd_diag *d)
{
    work w = { .picture = -1 };
    sherd__file *f = NULL;
    if (!kind_of(path))
        return sherd__fail(d, SHERD_EINVAL, "use the extension .svg or .png",
                           "%s: expected the name of an "
                           ".svg or .png file",
                           sherd__path_tail(path));
    int err = sherd__file_begin(&f, path, SHERD__FILE_PUBLIC, d);
    sherd__file_abort(f);
    if (!err) err = begin_work(&w, path, d);
    end_work(&w);
    return err;
}

/* ---- data ------------------------------------------------------------------------------------ */

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

/* Colours of classes, and of regions: the same mixed with white. */
static const uint32_t palette[] = { 0x1f77b4, 0xff7f0e, 0x2ca02c, 0xd62728, 0x9467bd,
                                    0x8c564b, 0xe377c2, 0x17becf, 0xbcbd22, 0x7f7f7f };

static uint32_t colour_of(uint32_t class)
{
    return palette[class % (sizeof palette / sizeof *palette)];
}

static uint32_t pale(uint32_t class)
{
    uint32_t c = colour_of(class), out = 0;
    for (unsigned shift = 0; shift < 24; shift += 8) {
        uint32_t part = c >> shift & 0xff;
        out |= (part * 3 + 0xff * 7) / 10 << shift;
    }
    return out;
}

static void write_epochs(text *t, const sherd__plot *p)
{
    say(t, "# epoch, loss, loss of validation, accuracy, accuracy of validation\n$curves << END\n");
    for (size_t i = 0; i < p->epochs_len && !t->err; i++) {
        const sherd__plot_epoch *e = &p->epochs[i];
        say(t, "%.17g %.17g %.17g %.17g %.17g\n", e->epoch, e->loss, e->validation_loss,
            e->accuracy, e->validation_accuracy);
    }
    say(t, "END\n");
}

static void write_points(text *t, const sherd__plot *p)
{
    size_t stride = (p->points_len - 1) / POINTS_MAX + 1;
    say(t, "# the data: x, y, class, colour\n$points << END\n");
    for (size_t i = 0; i < p->points_len && !t->err; i += stride)
        say(t, "%.17g %.17g %u %u\n", p->points[2 * i], p->points[2 * i + 1], p->labels[i],
            colour_of(p->labels[i]));
    say(t, "END\n");
}

/* Writes the cells of a row that have one class as one box. Each box reaches under the next one and
 * under the next row. */
static void write_regions(text *t, const sherd__plot *p)
{
    double side = (double)p->side, width = (p->high[0] - p->low[0]) / side,
           height = (p->high[1] - p->low[1]) / side;
    say(t, "# regions of the network's answers: left, right, bottom, top, class, colour\n"
           "$regions << END\n");
    for (size_t row = 0; row < p->side; row++) {
        const uint32_t *cells = p->regions + row * p->side;
        for (size_t from = 0, to; from < p->side && !t->err; from = to) {
            for (to = from + 1; to < p->side && cells[to] == cells[from];) to++;
            double right = p->low[0] + width * fmin((double)to + UNDER, side),
                   top = p->low[1] + height * fmin((double)row + 1 + UNDER, side);
            say(t, "%.17g %.17g %.17g %.17g %u %u\n", p->low[0] + width * (double)from, right,
                p->low[1] + height * (double)row, top, cells[from], pale(cells[from]));
        }
    }
    say(t, "END\n");
}

/* ---- commands -------------------------------------------------------------------------------- */

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

/* A panel of curves: figures of training, and of validation. */
typedef struct panel {
    const char *title;
    unsigned columns[2]; /* in $curves */
    size_t offsets[2];   /* in sherd__plot_epoch */
    bool percent;
    double label; /* height of a label that curves leave free: losses fall, accuracies rise */
} panel;

static const panel panels[] = {
    { "loss",
      { 2, 3 },
      { offsetof(sherd__plot_epoch, loss), offsetof(sherd__plot_epoch, validation_loss) },
      false,
      0.95 },
    { "accuracy",
      { 4, 5 },
      { offsetof(sherd__plot_epoch, accuracy), offsetof(sherd__plot_epoch, validation_accuracy) },
      true,
      0.05 },
};

/* Finds the range of finite figures at `offset`. Returns whether there are any. */
static bool range_of(const sherd__plot *p, size_t offset, double *low, double *high)
{
    bool any = false;
    for (size_t i = 0; i < p->epochs_len; i++) {
        double x;
        memcpy(&x, (const char *)&p->epochs[i] + offset, sizeof x);
        if (!isfinite(x)) continue;
        any = true;
        *low = fmin(*low, x);
        *high = fmax(*high, x);
    }
    return any;
}

/* Returns whether the panel has figures. */
static bool has_figures(const sherd__plot *p, const panel *q)
{
    double low = INFINITY, high = -INFINITY;
    bool first = range_of(p, q->offsets[0], &low, &high);
    return range_of(p, q->offsets[1], &low, &high) || first;
}

/* gnuplot labels powers of ten only, of which a short axis may have none. */
static void set_logarithmic(text *t, double low, double high)
{
    say(t, "set logscale y\nset yrange [%.17g:%.17g]\n", low, high);
    if (high / low > 2000) return;
    double ten = pow(10, floor(log10(low)));
    say(t, "set ytics (%.17g", ten);
    for (int i = 0; i < 5; i++, ten *= 10) say(t, ", %.3g, %.3g, %.3g", 2 * ten, 5 * ten, 10 * ten);
    say(t, ")\n");
}

/* Sets the vertical axis to the range of the figures. A loss that falls far has a logarithmic
 * axis, and one that falls to less than half has an axis from 0. */
static void set_range(text *t, const sherd__plot *p, const panel *q)
{
    double low = INFINITY, high = -INFINITY, scale = q->percent ? 100 : 1;
    bool any = range_of(p, q->offsets[0], &low, &high);
    any = range_of(p, q->offsets[1], &low, &high) || any;
    say(t, "unset logscale y\nset ytics autofreq\nset format y '%%g%s'\n", q->percent ? " %%" : "");
    if (!any) {
        say(t, "set yrange [0:1]\n");
        return;
    }
    double margin = high > low ? (high - low) * 0.05 : fabs(high) * 0.05 + 1e-3;
    if (!q->percent && low > 0 && high / low > 20) {
        set_logarithmic(t, low / 1.2, high * 1.2);
        return;
    }
    double bottom = !q->percent && low >= 0 && low < high / 2 ? 0 : low - margin;
    double top = q->percent ? fmin(high + margin, 1) : high + margin;
    say(t, "set yrange [%.17g:%.17g]\n", scale * fmax(bottom, q->percent ? 0 : bottom),
        scale * top);
}

/* Marks the epoch that early stopping chose. */
static void mark_best(text *t, const sherd__plot *p, const panel *q)
{
    if (!isfinite(p->best) || p->epochs_len == 0) return;
    bool left = p->best > (p->epochs[0].epoch + p->epochs[p->epochs_len - 1].epoch) / 2;
    say(t,
        "set arrow 1 from first %.17g, graph 0 to first %.17g, graph 1 nohead dt 2 lc rgb "
        "'#777777'\n",
        p->best, p->best);
    say(t, "set label 1 'model' at first %.17g, graph %g %s offset %g,0 textcolor rgb '#777777'\n",
        p->best, q->label, left ? "right" : "left", left ? -0.5 : 0.5);
}

static void draw_curves(text *t, const sherd__plot *p, const panel *q)
{
    static const char *const names[] = { "training", "validation" };
    const char *style = p->epochs_len <= MARKED_MAX ? "linespoints pt 7 ps 0.4" : "lines";
    bool first = true;
    set_range(t, p, q);
    mark_best(t, p, q);
    say(t, "set label 2 '%s' at graph 0, graph 1.08 left\nset xlabel 'epoch'\nplot ", q->title);
    for (unsigned i = 0; i < 2; i++) {
        double low = INFINITY, high = -INFINITY;
        if (!range_of(p, q->offsets[i], &low, &high)) continue;
        say(t, "%s$curves using 1:($%u*%d) with %s lw 2 lc rgb '#%06x' title '%s'",
            first ? "" : ", ", q->columns[i], q->percent ? 100 : 1, style, colour_of(i), names[i]);
        first = false;
    }
    say(t, "%s\n", first ? "NaN notitle" : "");
}

/* Returns the distance of labels on an axis of whole numbers: 1, 2 or 5 times a power of ten, so
 * that there are at most seven, or eleven short ones. In a narrow panel, those of gnuplot touch. */
static double step_of(double extent)
{
    double least = extent / 6, ten = pow(10, floor(log10(fmax(least, 1))));
    if (extent <= 10) return 1;
    return ten * (least <= ten ? 1 : least <= 2 * ten ? 2 : least <= 5 * ten ? 5 : 10);
}

/* Sets the horizontal axis of epochs. */
static void set_epochs(text *t, const sherd__plot *p)
{
    size_t len = p->epochs_len;
    double low = len > 0 ? p->epochs[0].epoch : 0, high = len > 0 ? p->epochs[len - 1].epoch : 1;
    if (!(high > low)) {
        low -= 0.5;
        high += 0.5;
    }
    say(t, "set xrange [%.17g:%.17g]\nset xtics %g\n", low, high, step_of(high - low));
}

/* Sets an axis label: the input's name, or its place. */
static void label_input(text *t, const sherd__plot *p, unsigned k)
{
    char q[2 * PATH_MAX];
    const char *name = p->inputs[k] ? p->inputs[k] : k ? "second input" : "first input";
    say(t, "set %clabel '%s%s' noenhanced\n", "xy"[k], quoted(name, q),
        p -> standardised ? ", standardised" : "");
}

static void draw_plane(text *t, const sherd__plot *p)
{
    char q[2 * PATH_MAX];
    say(t, "unset arrow; unset label; unset key; unset logscale; set tics autofreq\n");
    say(t, "set format y '%%g'\nset xrange [%.17g:%.17g]; set yrange [%.17g:%.17g]\n", p->low[0],
        p->high[0], p->low[1], p->high[1]);
    say(t, "set label 2 'decision regions, and the examples' at graph 0, graph 1.08 left\n"
           "set size ratio -1\n"
           "set style fill solid noborder\nunset grid\n");
    for (unsigned k = 0; k < 2; k++) label_input(t, p, k);
    if (p->classes_len > 0)
        say(t, "set key noenhanced outside right center vertical Left reverse title 'class'\n");
    say(t, "plot $regions using 1:3:1:2:3:4:6 with boxxyerror lc rgb variable notitle, "
           "$points using 1:2:4 with points pt 7 ps 0.4 lc rgb variable notitle");
    for (uint32_t i = 0; i < p->classes_len; i++)
        say(t, ", NaN with points pt 7 ps 0.8 lc rgb '#%06x' title '%s'", colour_of(i),
            quoted(p->classes[i], q));
    say(t, "\n");
}

static int write_script(const sherd__plot *p, const char *path, sherd__file *file, sherd_diag *d)
{
    char q[2 * PATH_MAX];
    text t = { .file = file, .d = d };
    bool flat = p->points && p->side > 0, svg = strcmp(kind_of(path), "svg") == 0;
    bool accuracy = has_figures(p, &panels[1]);
    int width = accuracy || flat ? 520 * (1 + accuracy + flat) : 800;
    say(&t, "%s gnuplot draws %s from this\n", mark, sherd__path_tail(quoted(path, q)));
    say(&t, "if (!exists('picture')) picture = '%s'\n", quoted(path, q));
    write_epochs(&t, p);
    if (flat) write_points(&t, p);
    if (flat) write_regions(&t, p);
    say(&t, "set terminal %s size %d,400%s font 'sans-serif,14' background rgb 'white'\n",
        kind_of(path), width, svg ? " dynamic" : "");
    say(&t, "set output picture\nset datafile missing 'nan'\n"
            "set border 3 lc rgb '#666666'\nset tics nomirror out scale 0.5\n"
            "set grid lt 1 lc rgb '#e4e4e4'\n"
            "set key outside above right horizontal samplen 1.5 font ',12'\n");
    say(&t, "set multiplot layout 1,%d title '%s' noenhanced font ',16'\n", 1 + accuracy + flat,
        quoted(p->title, q));
    set_epochs(&t, p);
    draw_curves(&t, p, &panels[0]);
    if (accuracy) draw_curves(&t, p, &panels[1]);
    if (flat) draw_plane(&t, p);
    say(&t, "unset multiplot\nunset output\n");
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
    const int given[] = { w->picture, sherd__file_fd(w->script) };
    char set[40], script[24];
    snprintf(set, sizeof set, "picture = '/dev/fd/%d'", given[0]);
    snprintf(script, sizeof script, "/dev/fd/%d", given[1]);
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

/* Publishes the script for a later gnuplot. Ends it in any case. */
static int keep(work *w, sherd_diag *d)
{
    int err = sherd__file_commit(w->script, d);
    w->script = NULL;
    return err;
}

/* Draws, or keeps the script with the reason in *d. */
static int draw(work *w, const char *path, bool *drawn, sherd_diag *d)
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
                    sherd__path_tail(w->name));
        return SHERD_OK;
    }
    *drawn = err == 0;
    return err;
}

int sherd__plot_draw(const sherd__plot *p, const char *path, bool *drawn, sherd_diag *d)
{
    work w = { .picture = -1 };
    *drawn = false;
    int err = begin_work(&w, path, d);
    if (!err) err = write_script(p, path, w.script, d);
    if (!err) err = draw(&w, path, drawn, d);
    end_work(&w);
    return err;
}
