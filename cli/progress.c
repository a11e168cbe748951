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
#include <unistd.h>

#include "cli/cli.h"

#define REDRAW_SECONDS 0.1
#define BAR_CELLS 20
#define BAR_MIN 8
#define LINE_CELLS 79        /* of a line that is not on a terminal */
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

/* Formats the rate and the time left, or nothing while they would be too inaccurate. */
static void estimate(const sherd__progress_line *p, uint64_t done, uint64_t total, double seconds,
                     char rate[32], char left[48])
{
    char time[24];
    *rate = *left = '\0';
    if (seconds < RATE_SECONDS_MIN || done <= p->from) return;
    double per = (double)(done - p->from) / seconds;
    snprintf(rate, 32, per < 10 ? "  %.1f/s" : "  %.0f/s", per);
    if (total > done)
        snprintf(left, 48, "%s left  ", sherd__cli_seconds((double)(total - done) / per, time));
}

/* Returns the length of the fields of `text`, which two spaces separate, that fit into `room`. */
static size_t whole_fields(const char *text, size_t room)
{
    size_t len = strlen(text);
    while (len > room) {
        do len--;
        while (len > 0 && strncmp(text + len, "  ", 2) != 0);
        while (len > 0 && text[len - 1] == ' ') len--;
    }
    return len;
}

/* The bar gives way to the fields, down to BAR_MIN cells; then the last fields do. */
static void draw_bar(sherd__progress_line *p, int percent, const char *text)
{
    char cells[BAR_CELLS + 1], front[64];
    int width = sherd__cli_columns(p->out) - 1; /* the last column would wrap on some terminals */
    int fixed = snprintf(front, sizeof front, "%.40s %3d %%", p->what, percent);
    int room = width - fixed - 3; /* " [" and "]" */
    int bar = room - 2 - (int)strlen(text);
    bar = bar > BAR_CELLS ? BAR_CELLS : bar < BAR_MIN ? BAR_MIN : bar;
    size_t len = room > bar + 2 ? whole_fields(text, (size_t)(room - bar - 2)) : 0;
    memset(cells, '-', (size_t)bar);
    memset(cells, '#', (size_t)(percent * bar / 100));
    cells[bar] = '\0';
    if (fixed > width) fprintf(p->out, "\r%3d %%\033[K", percent);
    else if (room < bar) fprintf(p->out, "\r%s\033[K", front);
    else fprintf(p->out, "\r%s [%s]%s%.*s\033[K", front, cells, len ? "  " : "", (int)len, text);
    fflush(p->out);
    p->shown = true;
    on_screen = p;
}

static void draw_line(const sherd__progress_line *p, int percent, const char *text)
{
    char front[64];
    int used = snprintf(front, sizeof front, "%.40s: %d %%, ", p->what, percent);
    size_t len = whole_fields(text, (size_t)(LINE_CELLS - used));
    fprintf(p->out, "%s%.*s\n", front, (int)len, text);
}

void sherd__progress_update(sherd__progress_line *p, uint64_t done, uint64_t total,
                            const char *extra, double now)
{
    char text[320], rate[32], left[48], plain[160];
    if (p->mode == SHERD__PROGRESS_NONE || total == 0) return;
    if (done > total) done = total;
    int percent = (int)((double)done / (double)total * 100);
    bool bar = p->mode == SHERD__PROGRESS_BAR;
    if (bar && p->drawn >= 0 && now - p->drawn < REDRAW_SECONDS && done < total) return;
    if (!bar && percent / 10 <= p->tenths) return;
    estimate(p, done, total, now - p->started, rate, left);
    snprintf(text, sizeof text, "%s%s%s%llu/%llu %s%s", left,
             sherd__cli_plain(extra ? extra : "", plain, sizeof plain), extra && *extra ? "  " : "",
             (unsigned long long)done, (unsigned long long)total, p->unit, rate);
    p->drawn = now;
    p->tenths = percent / 10;
    if (bar) draw_bar(p, percent, text);
    else draw_line(p, percent, text);
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
