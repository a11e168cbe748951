/*
 * Additional information in a coordinator's record: how each coded operand was cut (coded.jsonl),
 * and the row of a training's data that each of its rows is (rows.npy). All of it except the order
 * is public. No attack receives the order; it is used only to count what attacks found. These are
 * text files that may have been edited: invalid lines are left out, and the users of this
 * information check it against the transferred data.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/view_internal.h"
#include "core/alloc.h"
#include "crypto/lagrange.h"
#include "matrix/view.h"
#include "schemes/share/share.h"
#include "sherd/npy.h"

#define LINES_MAX ((size_t)256 << 20)

static bool number(const json_t *o, const char *name, uint64_t low, uint64_t high, uint64_t *out)
{
    const json_t *n = json_object_get(o, name);
    if (!json_is_integer(n) || json_integer_value(n) < 0) return false;
    *out = (uint64_t)json_integer_value(n);
    return *out >= low && *out <= high;
}

/* Returns the scheme of that name, if the attacks know its code, or NULL. */
static const sherd_scheme_info *coded_by(const char *name)
{
    static const sherd_scheme_info *const known[] = { &sherd__share, &sherd__share1 };
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i]->name) == 0) return known[i];
    return NULL;
}

static bool read_code(const json_t *o, sherd__view_coded *c)
{
    const char *job = json_string_value(json_object_get(o, "job"));
    const sherd_scheme_info *scheme = coded_by(json_string_value(json_object_get(o, "scheme")));
    const char *code = json_string_value(json_object_get(o, "code")); /* none: an older record */
    const json_t *stays = json_object_get(o, "stays");
    uint64_t k, t, n;
    char *end;
    if (!job || strlen(job) != 16 || !scheme || !json_is_boolean(stays)) return false;
    c->job = strtoull(job, &end, 16);
    c->both = scheme->hides_b;
    c->inner = code && strcmp(code, "inner") == 0;
    if (code && !c->inner && strcmp(code, "lagrange") != 0) return false;
    if (*end) return false;
    if (!number(o, "blocks", 1, SHERD__LCC_BLOCKS_MAX - 1, &k) ||
        !number(o, "masks", 1, SHERD__LCC_BLOCKS_MAX - k, &t) ||
        !number(o, "shares", 1, SHERD__LCC_SHARES_MAX, &n) ||
        !number(o, "rows", 1, UINT32_MAX - 2, &c->rows) ||
        !number(o, "cols", 1, UINT32_MAX, &c->cols) ||
        !number(o, "part", c->inner ? 1 : k, c->rows, &c->part) ||
        !number(o, "panel", 1, UINT64_MAX, &c->panel) ||
        !number(o, "largest", 0, (uint64_t)1 << 53, &c->largest))
        return false;
    if (!number(o, "right", 0, (uint64_t)1 << 53, &c->right))
        c->right = 0; /* from an older record */
    c->blocks = (uint32_t)k;
    c->masks = (uint32_t)t;
    c->shares = (uint32_t)n;
    c->stays = json_is_true(stays);
    return true;
}

static int read_lines(sherd__views *v, char *text, size_t len)
{
    size_t line = 0;
    for (char *at = text, *end; at < text + len; at = end + 1) {
        end = memchr(at, '\n', (size_t)(text + len - at));
        if (!end) end = text + len;
        sherd__view_coded c;
        json_t *o = json_loadb(at, (size_t)(end - at), 0, NULL);
        bool is = read_code(o, &c);
        json_decref(o);
        line++;
        if (!is) {
            SHERD__SAY(v->trouble, "coded.jsonl:%zu does not say how an operand is coded", line);
            continue;
        }
        void *list = sherd__view_grown(v->coded, v->coded_len, &v->coded_room, sizeof c);
        if (!list) return SHERD_ENOMEM;
        v->coded = list;
        v->coded[v->coded_len++] = c;
    }
    return SHERD_OK;
}

/* Reads the rows of the data, by the rows of the operand. */
static int read_order(sherd__views *v, const char *path)
{
    sherd_npy *npy = NULL;
    sherd_diag d = { 0 };
    int err = sherd_npy_open(&npy, path, &d);
    if (err == SHERD_EOPEN) return SHERD_OK; /* no file: in order */
    sherd_view x = npy ? sherd_npy_view(npy) : sherd_view_c(NULL, SHERD_U32, 0, 0);
    if (!err && x.dtype == SHERD_U32 && x.rows == 1 && x.cols > 0) {
        v->order = sherd__calloc(x.cols, sizeof *v->order);
        if (!v->order) err = SHERD_ENOMEM;
        for (size_t i = 0; i < x.cols && !err; i++) v->order[i] = (uint32_t)sherd__view_at(x, 0, i);
        v->order_len = err ? 0 : x.cols;
    } else if (err != SHERD_ENOMEM) {
        SHERD__SAY(v->trouble, "rows.npy holds no numbers of rows");
        err = SHERD_OK;
    }
    sherd_npy_close(npy);
    return err;
}

int sherd__view_coded_read(sherd__views *v, const char *dir)
{
    char path[4400];
    uint8_t *text = NULL;
    size_t len;
    int n = snprintf(path, sizeof path, "%s/coded.jsonl", dir);
    if (n < 0 || (size_t)n >= sizeof path) return SHERD_OK;
    int err = sherd__file_read_small(&text, &len, path, LINES_MAX, NULL);
    if (!err) err = read_lines(v, (char *)text, len);
    else if (err != SHERD_EOPEN && err != SHERD_ENOMEM)
        SHERD__SAY(v->trouble, "coded.jsonl cannot be read");
    sherd__free(text);
    if (err == SHERD_ENOMEM) return err;
    snprintf(path, sizeof path, "%s/rows.npy", dir);
    return read_order(v, path);
}

const sherd__view_coded *sherd__view_coding(const sherd__views *v, uint64_t job)
{
    for (size_t i = 0; i < v->coded_len; i++)
        if (v->coded[i].job == job) return &v->coded[i];
    return NULL;
}
