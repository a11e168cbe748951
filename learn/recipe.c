/*
 * Recipes as text. One table of keys (learn/recipe_keys.c) drives both directions, so that parsing
 * accepts what printing writes. The text may come from an untrusted source: it is checked once as
 * bytes, then line by line, and nothing of it is used before all of it has been checked.
 */
#include "learn/recipe.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/suggest.h"
#include "learn/recipe_keys.h"

#define KEYS_MAX 32

typedef struct reader {
    sherd__recipe recipe;
    const char *where;
    sherd__recipe_part part;
    size_t lines[KEYS_MAX]; /* line number of each key; 0: the key is absent */
} reader;

/* ---- parsing --------------------------------------------------------------------------------- */

static int check_bytes(const char *text, size_t len, const char *where, sherd_diag *d)
{
    if (len > SHERD__RECIPE_BYTES_MAX)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "%s: expected at most %u bytes, found %zu",
                           where, SHERD__RECIPE_BYTES_MAX, len);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        bool end = c == '\n' || (c == '\r' && i + 1 < len && text[i + 1] == '\n');
        if (c < ' ' ? c != '\t' && !end : c == 127)
            return sherd__fail(d, SHERD_EFORMAT, NULL,
                               "%s: expected a text, found byte %u at offset %zu", where, c, i);
    }
    return SHERD_OK;
}

/* Copies the words of text to out, each terminated. */
static bool cut_words(const char *text, char *out, sherd__recipe_value *v)
{
    v->len = 0;
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, " ");
        if (n == 0) {
            p++;
            continue;
        }
        if (v->len == SHERD__RECIPE_WORDS_MAX) return false;
        memcpy(out, p, n);
        out[n] = '\0';
        v->words[v->len++] = out;
        out += n + 1;
        p += n;
    }
    return true;
}

static int find_key(const char *name)
{
    for (int i = 0; sherd__recipe_keys[i].name; i++)
        if (strcmp(sherd__recipe_keys[i].name, name) == 0) return i;
    return -1;
}

static int unknown_key(const reader *rd, const char *where, const char *name, sherd_diag *d)
{
    const char *known[KEYS_MAX + 1];
    char hint[120];
    size_t len = 0;
    for (const sherd__recipe_key *k = sherd__recipe_keys; k->name; k++)
        if (k->part <= rd->part) known[len++] = k->name;
    known[len] = NULL;
    const char *near = sherd__suggest(name, known);
    if (near) snprintf(hint, sizeof hint, "did you mean %s?", near);
    else snprintf(hint, sizeof hint, "docs/TRAINING.md lists all keys");
    return sherd__fail(d, SHERD_EFORMAT, hint, "%s: unknown key '%.60s'", where, name);
}

static char *trim(char *s)
{
    while (*s == ' ') s++;
    size_t n = strlen(s);
    while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\r')) n--;
    s[n] = '\0';
    return s;
}

/* Parses one line without its end; words is scratch of the same size. */
static int take_line(reader *rd, char *line, char *words, size_t number, sherd_diag *d)
{
    char where[512];
    sherd__recipe_value v = { .where = where };
    snprintf(where, sizeof where, "%.480s:%zu", rd->where, number);
    line[strcspn(line, "#")] = '\0';
    for (char *p = line; *p != '\0'; p++)
        if (*p == '\t') *p = ' '; /* error messages quote lines */
    char *name = trim(line);
    if (*name == '\0') return SHERD_OK;
    char *eq = strchr(name, '=');
    if (!eq)
        return sherd__fail(d, SHERD_EFORMAT, "a line is `key = value`; # starts a comment",
                           "%s: expected `key = value`, found '%.60s'", where, name);
    *eq = '\0';
    v.text = trim(eq + 1);
    v.key = name = trim(name);
    int i = find_key(name);
    if (i < 0 || sherd__recipe_keys[i].part > rd->part) return unknown_key(rd, where, name, d);
    const sherd__recipe_key *key = &sherd__recipe_keys[i];
    if (rd->lines[i] > 0 && !key->repeats)
        return sherd__fail(d, SHERD_EFORMAT, "leave one of them out", "%s: %s is also in line %zu",
                           where, name, rd->lines[i]);
    rd->lines[i] = number;
    if (!sherd__recipe_key_is_text(key) && !cut_words(v.text, words, &v))
        return sherd__fail(d, SHERD_EFORMAT, NULL, "%s: %s: too many words", where, name);
    return key->read(&rd->recipe, &v, d);
}

/* Checks that all required keys were given. */
static int judge_keys(const reader *rd, sherd_diag *d)
{
    for (int i = 0; sherd__recipe_keys[i].name; i++)
        if (sherd__recipe_keys[i].required && sherd__recipe_keys[i].part <= rd->part &&
            rd->lines[i] == 0)
            return sherd__fail(d, SHERD_EFORMAT, "docs/TRAINING.md lists all keys",
                               "%s: the key %s is missing", rd->where, sherd__recipe_keys[i].name);
    return SHERD_OK;
}

/* Checks values that depend on each other. */
static int judge(const sherd__recipe *r, const char *where, sherd_diag *d)
{
    if ((r->epochs > 0) == (r->steps > 0))
        return sherd__fail(d, SHERD_EFORMAT, "say how long to train by one of the two",
                           r->epochs > 0 ? "%s: both epochs and steps are given"
                                         : "%s: the key epochs (or steps) is missing",
                           where);
    bool generated = r->data == SHERD__DATA_SPIRAL || r->data == SHERD__DATA_PARABOLA ||
                     r->data == SHERD__DATA_RANDOM || r->data == SHERD__DATA_DIGITS;
    bool classes = r->data == SHERD__DATA_SPIRAL || r->data == SHERD__DATA_RANDOM;
    if (generated && r->examples == 0)
        return sherd__fail(d, SHERD_EFORMAT, "examples = 1000",
                           "%s: data = %s needs a number of examples", where,
                           sherd__data_kind_name(r->data));
    if (classes && r->classes == 0)
        return sherd__fail(d, SHERD_EFORMAT, "classes = 3",
                           "%s: data = %s needs a number of classes", where,
                           sherd__data_kind_name(r->data));
    if (!classes && r->classes > 0)
        return sherd__fail(d, SHERD_EFORMAT, "leave it out",
                           "%s: classes has no meaning beside data = %s", where,
                           sherd__data_kind_name(r->data));
    if (r->loss == SHERD__LOSS_CROSS_ENTROPY && r->layers[r->len - 1].kind == &sherd__layer_softmax)
        return sherd__fail(d, SHERD_EFORMAT, "leave that layer out: the loss contains it",
                           "%s: softmax before loss = cross-entropy would be applied twice", where);
    if (r->loss == SHERD__LOSS_CROSS_ENTROPY &&
        (r->target_values || r->data == SHERD__DATA_PARABOLA))
        return sherd__fail(d, SHERD_EFORMAT, "loss = squared, or data with labels",
                           "%s: loss = cross-entropy is for labels, and %s has values", where,
                           r->target_values ? "targets = values" : "data = parabola");
    if (r->class_names[0] != '\0' && r->target_values)
        return sherd__fail(d, SHERD_EFORMAT, "leave one of them out",
                           "%s: class_names is for labels, and targets = values", where);
    return sherd__schedule_check(&r->schedule, d);
}

int sherd__recipe_parse(sherd__recipe *out, const char *text, size_t len, const char *where,
                        sherd__recipe_part part, sherd_diag *d)
{
    reader rd = { .where = where, .part = part };
    size_t number = 0;
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* some editors write a byte order
                                                               mark */
        text += 3;
        len -= 3;
    }
    int err = check_bytes(text, len, where, d);
    if (err != 0) return err;
    char *copy = sherd__alloc(2 * (len + 1)), *words = !copy ? NULL : copy + len + 1;
    if (!copy) return sherd__fail_memory(d, "reading %s", where);
    memcpy(copy, text, len);
    copy[len] = '\0';
    sherd__recipe_defaults(&rd.recipe);
    for (char *line = copy; line && err == 0;) {
        char *end = strchr(line, '\n');
        if (end) *end = '\0';
        err = take_line(&rd, line, words, ++number, d);
        line = end ? end + 1 : NULL;
    }
    if (err == 0) err = judge_keys(&rd, d);
    if (err == 0 && part == SHERD__RECIPE_ALL) err = judge(&rd.recipe, where, d);
    if (err == 0) *out = rd.recipe;
    sherd__free(copy);
    return err;
}

int sherd__recipe_set(sherd__recipe *r, const char *key, const char *text, const char *where,
                      sherd_diag *d)
{
    const reader rd = { .where = where, .part = SHERD__RECIPE_ALL };
    sherd__recipe_value v = { .where = where, .key = key, .text = text };
    sherd__recipe changed = *r;
    int i = find_key(key);
    if (i < 0) return unknown_key(&rd, where, key, d);
    if (sherd__recipe_keys[i].repeats)
        return sherd__fail(d, SHERD_EUNSUPPORTED, "parse a text that has all of them",
                           "%s: a recipe has several keys `%s`, which cannot be set one by one",
                           where, key);
    if (text[strcspn(text, "#\n\r\t")] != '\0')
        return sherd__recipe_expected(&v, "a value without # in one line", NULL, d);
    int err = check_bytes(text, strlen(text), where, d);
    char *copy = sherd__alloc(2 * (strlen(text) + 1)),
         *words = !copy ? NULL : copy + strlen(text) + 1;
    if (!copy) return sherd__fail_memory(d, "changing %s", where);
    memcpy(copy, text, strlen(text) + 1);
    v.text = trim(copy);
    if (err == 0 && !sherd__recipe_key_is_text(&sherd__recipe_keys[i]) &&
        !cut_words(v.text, words, &v))
        err = sherd__fail(d, SHERD_EFORMAT, NULL, "%s: %s: too many words", where, key);
    if (strcmp(key, "epochs") == 0) changed.steps = 0;
    if (strcmp(key, "steps") == 0) changed.epochs = 0;
    if (err == 0) err = sherd__recipe_keys[i].read(&changed, &v, d);
    if (err == 0) err = judge(&changed, where, d);
    if (err == 0) *r = changed;
    sherd__free(copy);
    return err;
}

/* ---- printing -------------------------------------------------------------------------------- */

int sherd__recipe_print(const sherd__recipe *r, sherd__recipe_part part, sherd__buf *out)
{
    char value[SHERD__RECIPE_LIST], line[SHERD__RECIPE_LIST + 64];
    size_t was = out->len;
    for (const sherd__recipe_key *k = sherd__recipe_keys; k->name; k++) {
        for (size_t i = 0; k->part <= part && k->write(r, i, value); i++) {
            int n = snprintf(line, sizeof line, "%s = %s\n", k->name, value);
            int err = sherd__buf_append(out, line, (size_t)n);
            if (err != 0) {
                out->len = was;
                return err;
            }
        }
    }
    return SHERD_OK;
}

/* ---- networks -------------------------------------------------------------------------------- */

static sherd__network_spec spec_of(const sherd__recipe *r, size_t batch)
{
    return (sherd__network_spec){ .in = r->in,
                                  .layers = r->layers,
                                  .len = r->len,
                                  .batch = batch,
                                  .loss = r->loss,
                                  .l2 = r->l2,
                                  .bias_total = r->bias_total,
                                  .dtype = r->precision };
}

int sherd__recipe_network(const sherd__recipe *r, size_t batch, sherd__network **out, sherd_diag *d)
{
    sherd__network_spec spec = spec_of(r, batch);
    return sherd__network_new(&spec, out, d);
}

int sherd__recipe_network_unset(const sherd__recipe *r, size_t batch, sherd__network **out,
                                sherd_diag *d)
{
    sherd__network_spec spec = spec_of(r, batch);
    spec.unset = true;
    return sherd__network_new(&spec, out, d);
}

int sherd__recipe_shapes(const sherd__recipe *r, sherd__network **out, sherd_diag *d)
{
    sherd__network_spec spec = spec_of(r, 1);
    return sherd__network_shapes(&spec, out, d);
}

int sherd__recipe_measure(const sherd__recipe *r, size_t batch, sherd__network_size *out,
                          sherd_diag *d)
{
    sherd__network_spec spec = spec_of(r, batch);
    return sherd__network_measure(&spec, out, d);
}

bool sherd__recipe_member(const sherd__network *n, size_t i, bool biases, char name[16])
{
    unsigned number = 1;
    if (sherd__network_layer(n, i)->cols == 0) return false;
    for (size_t k = 0; k < i; k++) number += sherd__network_layer(n, k)->cols > 0;
    snprintf(name, 16, "%c%u", biases ? 'b' : 'w', number);
    return true;
}
