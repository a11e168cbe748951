/*
 * A matrix of some classes fits a terminal of 80 columns; names are shortened before numbers are.
 * Of more classes the cells outside the diagonal are listed that have the largest counts.
 */
#include "cli/confusion.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/alloc.h"

#define COLUMNS 80
#define NAME_MOST 20 /* columns of a row's name */
#define CELL_MOST 12 /* of a count and its class's name */
#define RIGHT 10     /* of the last column */
#define MISTAKES 10u

const char *sherd__class_name(const sherd_model *m, size_t i, int most, char out[96])
{
    const char *name = sherd_model_class_name(m, i);
    char plain[384]; /* the names are those of a file */
    int columns = 0;
    size_t at = 0;
    if (name) name = sherd__cli_plain(name, plain, sizeof plain);
    if (!name) {
        snprintf(out, 96, "%zu", i);
        return out;
    }
    for (; name[at] && at < 95; at++) {
        columns += ((unsigned char)name[at] & 0xc0) != 0x80;
        if (columns > most) break;
        out[at] = name[at];
    }
    out[at] = '\0';
    return out;
}

static const char *name_of(const sherd__confusion *c, size_t i, int most, char out[96])
{
    return sherd__class_name(c->model, i, most, out);
}

static int columns_of(const char *text)
{
    int columns = 0;
    for (; *text; text++) columns += ((unsigned char)*text & 0xc0) != 0x80;
    return columns;
}

/* Prints a text with blanks before it, or after it if width is below 0. */
static void print_cell(FILE *to, const char *text, int width)
{
    int blanks = abs(width) - columns_of(text);
    if (blanks < 0) blanks = 0;
    fprintf(to, "%*s%s%*s", width > 0 ? blanks : 0, "", text, width < 0 ? blanks : 0, "");
}

typedef struct layout {
    int name, cell; /* widths, with a blank before a cell */
} layout;

/* Returns false if the matrix does not fit. */
static bool lay_out(const sherd__confusion *c, size_t n, layout *l)
{
    char text[96];
    int digits = 1, name = 1;
    for (size_t i = 0; i < n * n; i++) {
        int len = snprintf(text, sizeof text, "%" PRIu64, c->counts[i]);
        if (len > digits) digits = len;
    }
    for (size_t i = 0; i < n; i++) {
        int len = columns_of(name_of(c, i, NAME_MOST, text));
        if (len > name) name = len;
    }
    int room = (COLUMNS - name - RIGHT) / (n < COLUMNS ? (int)n : COLUMNS) - 2;
    l->name = name;
    l->cell = name < CELL_MOST ? name : CELL_MOST;
    if (l->cell > room) l->cell = room;
    if (l->cell < digits) l->cell = digits;
    return l->cell <= room && (l->cell >= 4 || l->cell >= name);
}

static uint64_t sum_of(const uint64_t *row, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += row[i];
    return sum;
}

static void print_matrix(FILE *to, const sherd__confusion *c, size_t n, const layout *l)
{
    char text[96];
    print_cell(to, "", l->name);
    for (size_t j = 0; j < n; j++) print_cell(to, name_of(c, j, l->cell, text), l->cell + 2);
    fprintf(to, "%*s\n", RIGHT, "correct");
    for (size_t i = 0; i < n; i++) {
        const uint64_t *row = c->counts + i * n;
        uint64_t all = sum_of(row, n);
        print_cell(to, name_of(c, i, l->name, text), -l->name);
        for (size_t j = 0; j < n; j++) fprintf(to, "  %*" PRIu64, l->cell, row[j]);
        if (all > 0) fprintf(to, "%*.1f %%", RIGHT - 2, 100 * (double)row[i] / (double)all);
        else fprintf(to, "%*s", RIGHT, "-");
        fprintf(to, "\n");
    }
}

/* Prints the largest counts outside the diagonal, in descending order. */
static void print_mistakes(FILE *to, const sherd__confusion *c, size_t n)
{
    char label[96], predicted[96];
    uint64_t below = UINT64_MAX;
    size_t after = 0;
    print_cell(to, "label", -28);
    print_cell(to, "prediction", -28);
    fprintf(to, "%10s\n", "examples");
    for (size_t k = 0; k < MISTAKES; k++) {
        size_t best = n * n;
        for (size_t i = 0; i < n * n; i++) {
            uint64_t x = c->counts[i];
            bool next = x < below || (x == below && i >= after);
            if (i / n != i % n && x > 0 && next && (best == n * n || x > c->counts[best])) best = i;
        }
        if (best == n * n) break;
        below = c->counts[best];
        after = best + 1;
        print_cell(to, name_of(c, best / n, 26, label), -28);
        print_cell(to, name_of(c, best % n, 26, predicted), -28);
        fprintf(to, "%10" PRIu64 "\n", below);
    }
}

void sherd__confusion_print(const sherd__confusion *c, FILE *to)
{
    layout l;
    if (!c->counts) return;
    size_t n = sherd_model_outputs(c->model);
    uint64_t all = sum_of(c->counts, n * n), right = 0;
    for (size_t i = 0; i < n; i++) right += c->counts[i * n + i];
    if (lay_out(c, n, &l)) {
        fprintf(to,
                "\n%" PRIu64 " %s examples: a row for each label, a column for each prediction\n",
                all, c->of);
        print_matrix(to, c, n, &l);
    } else {
        fprintf(to, "\n%" PRIu64 " of %" PRIu64 " %s examples are classified correctly%s\n", right,
                all, c->of,
                right < all ? "\nmost frequent mistakes (--json has all of them):" : "");
        if (right < all) print_mistakes(to, c, n);
    }
}

json_t *sherd__confusion_json(const sherd__confusion *c)
{
    size_t n = sherd_model_outputs(c->model);
    json_t *o = json_pack("{s:s}", "of", c->of), *rows = json_array(), *names = json_array();
    const char *name;
    for (size_t i = 0; (name = sherd_model_class_name(c->model, i)); i++)
        json_array_append_new(names, sherd__cli_json_text(name));
    if (json_array_size(names) > 0) json_object_set(o, "classes", names);
    json_decref(names);
    for (size_t i = 0; i < n; i++) {
        json_t *row = json_array();
        for (size_t j = 0; j < n; j++)
            json_array_append_new(row, json_integer((json_int_t)c->counts[i * n + j]));
        json_array_append_new(rows, row);
    }
    json_object_set_new(o, "counts", rows);
    return o;
}
