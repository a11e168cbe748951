/*
 * The list of sums as lines of a journal: one write and one sync for each sum, before a node is
 * asked to open it.
 */
#include "store/sumlist.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buf.h"
#include "core/diag.h"
#include "store/journal.h"

#define NAME "sums"
#define KEY_TEXT (2 * SHERD__DIGEST_BYTES)
#define LIST_MAX ((size_t)1 << 30)

typedef struct entry {
    uint64_t step;
    size_t from, len;   /* indices in keys */
    uint32_t threshold; /* of a round */
} entry;

struct sherd__sumlist {
    sherd__journal *journal;
    sherd__buf steps; /* of entry, ascending: sums that were to be opened */
    sherd__buf asked; /* of entry: rounds that were started, in order */
    sherd__buf keys;  /* of sherd__digest */
    size_t from, len; /* the last set */
    bool broken;      /* memory may contain entries that are not in the file */
};

static int no_memory(sherd_diag *d)
{
    return sherd__fail_memory(d, "the list of sums");
}

/* ---- in memory ----------------------------------------------------------------------------- */

static const entry *entries(const sherd__buf *list, size_t *len)
{
    *len = list->len / sizeof(entry);
    return (const entry *)(const void *)list->data;
}

static const sherd__digest *keys_at(const sherd__sumlist *s, size_t from)
{
    return (const sherd__digest *)(const void *)s->keys.data + from;
}

static int compare_steps(const void *key, const void *element)
{
    uint64_t a = *(const uint64_t *)key, b = ((const entry *)element)->step;
    return (a > b) - (a < b);
}

sherd__sumlist_step sherd__sumlist_find(const sherd__sumlist *s, uint64_t step)
{
    size_t all;
    const entry *list = entries(&s->steps, &all), *asked = NULL;
    const entry *opened = all ? bsearch(&step, list, all, sizeof *list, compare_steps) : NULL;
    list = entries(&s->asked, &all);
    while (!asked && all > 0) asked = list[--all].step == step ? &list[all] : NULL;
    const entry *e = opened ? opened : asked;
    return (sherd__sumlist_step){ .who = e ? keys_at(s, e->from) : NULL,
                                  .len = e ? e->len : 0,
                                  .threshold = asked ? asked->threshold : 0,
                                  .opened = opened != NULL };
}

static bool above_all(const sherd__sumlist *s, uint64_t step)
{
    size_t len;
    const entry *list = entries(&s->steps, &len);
    return len == 0 || step > list[len - 1].step;
}

static int compare_keys(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(sherd__digest));
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Parses "over KEY KEY ..."; at is after "over". */
static int take_keys(sherd__sumlist *s, const char *at, const char *end)
{
    sherd__digest key;
    size_t from = s->keys.len / sizeof key, len = 0, used;
    for (; at < end && *at == ' '; at += KEY_TEXT + 1, len++) {
        if (end - at < KEY_TEXT + 1 || len == SHERD__SUMLIST_NODES ||
            sodium_hex2bin(key.sha256, sizeof key.sha256, at + 1, KEY_TEXT, NULL, &used, NULL) ||
            used != sizeof key.sha256 ||
            (len && compare_keys(keys_at(s, from + len - 1), &key) >= 0))
            return SHERD_EFORMAT;
        if (sherd__buf_append(&s->keys, &key, sizeof key)) return SHERD_ENOMEM;
    }
    s->from = from;
    s->len = len;
    return at == end && len > 0 ? SHERD_OK : SHERD_EFORMAT;
}

static bool read_number(const char *at, const char *end, uint64_t *out)
{
    char *behind;
    if (at == end || *at < '0' || *at > '9' || end - at > 20) return false;
    errno = 0;
    *out = strtoull(at, &behind, 10);
    return !errno && behind == end;
}

static int take_step(sherd__sumlist *s, const char *at, const char *end)
{
    entry e = { .from = s->from, .len = s->len };
    if (!read_number(at, end, &e.step) || s->len == 0 || !above_all(s, e.step))
        return SHERD_EFORMAT;
    return sherd__buf_append(&s->steps, &e, sizeof e) ? SHERD_ENOMEM : SHERD_OK;
}

static int take_asked(sherd__sumlist *s, const char *at, const char *end)
{
    entry e = { .from = s->from, .len = s->len };
    uint64_t threshold;
    const char *space = memchr(at, ' ', (size_t)(end - at));
    if (!space || !read_number(at, space, &e.step) || !read_number(space + 1, end, &threshold) ||
        threshold > s->len || s->len == 0)
        return SHERD_EFORMAT;
    e.threshold = (uint32_t)threshold;
    return sherd__buf_append(&s->asked, &e, sizeof e) ? SHERD_ENOMEM : SHERD_OK;
}

static int take_line(void *ctx, const char *at, const char *end)
{
    if (!strncmp(at, "over ", 5)) return take_keys(ctx, at + 4, end);
    if (!strncmp(at, "step ", 5)) return take_step(ctx, at + 5, end);
    if (!strncmp(at, "asked ", 6)) return take_asked(ctx, at + 6, end);
    return SHERD_EFORMAT;
}

/* ---- opening ------------------------------------------------------------------------------- */

static const sherd__journal_kind kind = {
    .first = "sherd-sums-1\n",
    .name = "list of sums",
    .missing = "it names the nodes of each sum since the last checkpoint",
    .remedy = "restore the folder from a backup, or start again without --resume",
    .line = take_line,
};

int sherd__sumlist_open(sherd__sumlist **out, const char *folder, bool fresh, sherd_diag *d)
{
    size_t size = strlen(folder) + 1 + sizeof NAME;
    *out = NULL;
    sherd__sumlist *s = sherd__calloc(1, sizeof *s);
    char *path = sherd__alloc(size);
    int err = s && path ? SHERD_OK : no_memory(d);
    if (!err) {
        sherd__buf_init(&s->steps, LIST_MAX, 0);
        sherd__buf_init(&s->keys, LIST_MAX, 0);
        sherd__buf_init(&s->asked, LIST_MAX, 0);
        snprintf(path, size, "%s/" NAME, folder);
        err = sherd__journal_open(&s->journal, path,
                                  fresh ? SHERD__JOURNAL_FRESH : SHERD__JOURNAL_EXISTING, &kind, s,
                                  d);
    }
    sherd__free(path);
    if (err) sherd__sumlist_close(s);
    else *out = s;
    return err;
}

void sherd__sumlist_close(sherd__sumlist *s)
{
    if (!s) return;
    sherd__journal_close(s->journal);
    sherd__buf_fini(&s->steps);
    sherd__buf_fini(&s->keys);
    sherd__buf_fini(&s->asked);
    sherd__free(s);
}

/* ---- adding -------------------------------------------------------------------------------- */

/* Formats the lines of this entry over these keys; the keys are omitted if they are those of the
 * last set. */
static int print_lines(sherd__buf *text, bool opened, const entry *e, const sherd__digest *keys,
                       bool same)
{
    char word[KEY_TEXT + 2] = " ";
    int err = same ? SHERD_OK : sherd__buf_append(text, "over", 4);
    for (size_t i = 0; i < e->len && !same && !err; i++) {
        sodium_bin2hex(word + 1, sizeof word - 1, keys[i].sha256, sizeof keys[i].sha256);
        err = sherd__buf_append(text, word, KEY_TEXT + 1);
    }
    int n = snprintf(word, sizeof word, opened ? "%sstep %" PRIu64 : "%sasked %" PRIu64,
                     same ? "" : "\n", e->step);
    if (!opened) n += snprintf(word + n, sizeof word - (size_t)n, " %" PRIu32, e->threshold);
    if (!err) err = sherd__buf_append(text, word, (size_t)n);
    return err ? err : sherd__buf_append(text, "\n", 1);
}

/* Appends to the list of sums to be opened, or to the list of rounds. */
static int append(sherd__sumlist *s, bool opened, entry e, const sherd__digest *keys, sherd_diag *d)
{
    sherd__buf text;
    bool same = e.len == s->len && memcmp(keys_at(s, s->from), keys, e.len * sizeof *keys) == 0;
    sherd__buf_init(&text, LIST_MAX, 0);
    int err = print_lines(&text, opened, &e, keys, same);
    if (!err && !same) {
        s->from = s->keys.len / sizeof *keys;
        s->len = 0;
        err = sherd__buf_append(&s->keys, keys, e.len * sizeof *keys);
        if (!err) s->len = e.len;
    }
    e.from = s->from;
    if (!err) err = sherd__buf_append(opened ? &s->steps : &s->asked, &e, sizeof e);
    err = err ? no_memory(d)
              : sherd__journal_add(s->journal, (const char *)text.data, text.len, opened, d);
    s->broken = err != SHERD_OK;
    sherd__buf_fini(&text);
    return err;
}

/* Returns the keys in ascending order. The caller frees *out with sherd__free. */
static int sort_keys(sherd__sumlist *s, const sherd__digest *who, size_t len, sherd__digest **out,
                     sherd_diag *d)
{
    if (s->broken) return sherd__fail(d, SHERD_EIO, NULL, "the list of sums could not be written");
    if (len == 0 || len > SHERD__SUMLIST_NODES)
        return sherd__fail(d, SHERD_EINVAL, NULL, "a sum over %zu nodes", len);
    sherd__digest *keys = *out = sherd__alloc(len * sizeof *keys);
    if (!keys) return no_memory(d);
    memcpy(keys, who, len * sizeof *keys);
    qsort(keys, len, sizeof *keys, compare_keys);
    return SHERD_OK;
}

int sherd__sumlist_add(sherd__sumlist *s, uint64_t step, const sherd__digest *who, size_t len,
                       sherd_diag *d)
{
    sherd__digest *keys = NULL;
    int err = sort_keys(s, who, len, &keys, d);
    if (err) return err;
    const sherd__sumlist_step was = sherd__sumlist_find(s, step);
    if (was.opened ? was.len != len || memcmp(was.who, keys, len * sizeof *keys) != 0
                   : !above_all(s, step))
        err = sherd__fail(d, SHERD_EINVAL, NULL,
                          "step %" PRIu64 " already had a sum over %zu other nodes", step, was.len);
    else if (!was.opened) err = append(s, true, (entry){ .step = step, .len = len }, keys, d);
    sherd__free(keys);
    return err;
}

int sherd__sumlist_ask(sherd__sumlist *s, uint64_t step, uint32_t threshold,
                       const sherd__digest *who, size_t len, sherd_diag *d)
{
    sherd__digest *keys = NULL;
    int err = sort_keys(s, who, len, &keys, d);
    if (!err)
        err = append(s, false, (entry){ .step = step, .len = len, .threshold = threshold }, keys,
                     d);
    sherd__free(keys);
    return err;
}

size_t sherd__sumlist_rounds(const sherd__sumlist *s)
{
    return s->asked.len / sizeof(entry);
}

uint64_t sherd__sumlist_round(const sherd__sumlist *s, size_t i)
{
    size_t len;
    return entries(&s->asked, &len)[i].step;
}
