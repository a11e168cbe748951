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

/* Formats "  8/s  3 s left", or nothing while it would be too inaccurate. */
static void describe_rate(char out[80], uint64_t done, uint64_t total, double seconds)
{
    char left[24];
    out[0] = '\0';
    if (seconds < RATE_SECONDS_MIN || done == 0) return;
    double rate = (double)done / seconds;
    int at = snprintf(out, 80, rate < 10 ? "  %.1f/s" : "  %.0f/s", rate);
    if (total > done)
        snprintf(out + at, 80 - (size_t)at, "  %s left",
                 sherd__cli_seconds((double)(total - done) / rate, left));
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
    char text[256], rate[80], plain[160];
    if (p->mode == SHERD__PROGRESS_NONE || total == 0) return;
    if (done > total) done = total;
    int percent = (int)((double)done / (double)total * 100);
    bool bar = p->mode == SHERD__PROGRESS_BAR;
    if (bar && p->drawn >= 0 && now - p->drawn < REDRAW_SECONDS && done < total) return;
    if (!bar && percent / 10 <= p->tenths) return;
    describe_rate(rate, done, total, now - p->started);
    snprintf(text, sizeof text, "%llu/%llu %s%s%s%s", (unsigned long long)done,
             (unsigned long long)total, p->unit, extra && *extra ? "  " : "",
             sherd__cli_plain(extra ? extra : "", plain, sizeof plain), rate);
    p->drawn = now;
    p->tenths = percent / 10;
    if (bar) draw_bar(p, percent, text);
    else fprintf(p->out, "%s: %d %%, %s\n", p->what, percent, text);
    fflush(p->out);
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
