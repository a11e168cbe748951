/*
 * Progress, drawn from numbers that the caller passes in, including the time, so that tests need
 * not wait.
 *
 * The bar is erased (carriage return, clear to end of line) before other output, so errors and
 * warnings never share its line. It uses no colour, so NO_COLOR does not affect it.
 */
#include "cli/progress.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"

#define REDRAW_SECONDS 0.1
#define BAR_CELLS 20
#define RATE_SECONDS_MIN 0.5 /* below this, rate and time left are too inaccurate */

static sherd__progress_line *on_screen;

void sherd__progress_init(sherd__progress_line *p, FILE *out, sherd__progress_mode mode,
                          const char *what, const char *unit, double now)
{
    if (mode == SHERD__PROGRESS_AUTO) {
        const char *term = getenv("TERM");
        bool bar = isatty(fileno(out)) == 1 && term && strcmp(term, "dumb") != 0;
        mode = bar ? SHERD__PROGRESS_BAR : SHERD__PROGRESS_PLAIN;
    }
    *p = (sherd__progress_line){
        .out = out, .mode = mode, .what = what, .unit = unit, .started = now, .drawn = -1
    };
}

static int columns_of(FILE *out)
{
    struct winsize w;
    if (ioctl(fileno(out), TIOCGWINSZ, &w) == 0 && w.ws_col > 0) return w.ws_col;
    const char *columns = getenv("COLUMNS");
    int n = columns ? atoi(columns) : 0;
    return n > 0 ? n : 80;
}

/* Formats "41/64 tasks  extra  8/s  3 s left". */
static void describe(char *out, size_t size, const sherd__progress_line *p, uint64_t done,
                     uint64_t total, const char *extra, double now)
{
    char left[24], tail[80] = "", more[160];
    double seconds = now - p->started;
    if (seconds >= RATE_SECONDS_MIN && done > 0) {
        double rate = (double)done / seconds;
        int at = snprintf(tail, sizeof tail, rate < 10 ? "  %.1f/s" : "  %.0f/s", rate);
        if (total > done)
            snprintf(tail + at, sizeof tail - (size_t)at, "  %s left",
                     sherd__cli_seconds((double)(total - done) / rate, left));
    }
    snprintf(out, size, "%llu/%llu %s%s%s%s", (unsigned long long)done, (unsigned long long)total,
             p->unit, extra && *extra ? "  " : "",
             sherd__cli_plain(extra ? extra : "", more, sizeof more), tail);
}

static void draw_bar(sherd__progress_line *p, int percent, const char *text)
{
    char line[512], cells[BAR_CELLS + 1];
    memset(cells, '-', BAR_CELLS);
    memset(cells, '#', (size_t)(percent * BAR_CELLS / 100));
    cells[BAR_CELLS] = '\0';
    snprintf(line, sizeof line, "%s %3d %% [%s]  %s", p->what, percent, cells, text);
    int width = columns_of(p->out) - 1; /* the last column would wrap on some terminals */
    fprintf(p->out, "\r%.*s\033[K", width > 1 ? width : 1, line);
    fflush(p->out);
    p->shown = true;
    on_screen = p;
}

void sherd__progress_update(sherd__progress_line *p, uint64_t done, uint64_t total,
                            const char *extra, double now)
{
    char text[256];
    if (p->mode == SHERD__PROGRESS_NONE || total == 0) return;
    if (done > total) done = total;
    int percent = (int)((double)done / (double)total * 100);
    if (p->mode == SHERD__PROGRESS_BAR) {
        if (p->drawn >= 0 && now - p->drawn < REDRAW_SECONDS && done < total) return;
        p->drawn = now;
        describe(text, sizeof text, p, done, total, extra, now);
        draw_bar(p, percent, text);
    } else if (percent / 10 > p->tenths) {
        p->tenths = percent / 10;
        describe(text, sizeof text, p, done, total, extra, now);
        fprintf(p->out, "%s: %d %%, %s\n", p->what, percent, text);
        fflush(p->out);
    }
}

void sherd__progress_fini(sherd__progress_line *p)
{
    if (p->shown) fprintf(p->out, "\r\033[K");
    fflush(p->out);
    p->shown = false;
    if (on_screen == p) on_screen = NULL;
}

void sherd__progress_clear(void)
{
    if (on_screen) sherd__progress_fini(on_screen);
}
