/*
 * A record as a folder: its index or, without one, every pair of files in it; and the nodes that
 * are one adversary. An index is a text file that may have been edited: names must be plain or are
 * refused, sizes are checked against those of the files, and contradictions are reported.
 */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/view_internal.h"
#include "core/alloc.h"
#include "core/diag.h"
#include "store/digest.h"

#define INDEX_MAX ((size_t)16 << 20)
#define NODES_MAX 4096u

static int no_memory(sherd_diag *d)
{
    return sherd__fail_memory(d, "the record");
}

/* Returns whether a file name is plain, so that an index cannot refer to other folders. */
static bool plain_name(const char *s)
{
    size_t n = strlen(s);
    return n > 0 && n < 90 && s[0] != '.' &&
           strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n;
}

static int open_file(sherd__view_file *f, const char *dir, const char *name, const char *suffix,
                     sherd_diag *d)
{
    char path[4400];
    snprintf(f->name, sizeof f->name, "%.98s.%s", name, suffix);
    int len = snprintf(path, sizeof path, "%s/%s", dir, f->name);
    if (len < 0 || (size_t)len >= sizeof path)
        return sherd__fail(d, SHERD_EOPEN, NULL, "%s: the path is too long", sherd__path_tail(dir));
    return sherd__map_open(&f->map, path, 0, d);
}

static bool greets(const sherd__view_file *f, uint16_t type)
{
    const sherd__map *m = &f->map;
    size_t at = 0;
    sherd__reading r;
    return sherd__reading_next(m->bytes, m->len, &at, &r) == 1 && r.type == type;
}

/* Returns 1 for a coordinator's record, 0 for a node's, and -1 if neither stream starts with a
   greeting. */
static int side_of(const sherd__view_file *sent, const sherd__view_file *received)
{
    if (greets(sent, SHERD__READ_HELLO) || greets(received, SHERD__READ_WELCOME)) return 1;
    if (greets(received, SHERD__READ_HELLO) || greets(sent, SHERD__READ_WELCOME)) return 0;
    return -1;
}

typedef struct folder {
    const char *dir;
    sherd__node_view *nodes;
    sherd__view_domain *said; /* for each node: its domain in the index; number UINT64_MAX: none */
    size_t len, room, said_room;
    int version;
    int side; /* -1: not known yet */
    bool cut;
    char trouble[400];
} folder;

static void make_plain(char *text)
{
    for (char *c = text; *c; c++)
        if (*c < 0x20 || *c >= 0x7f) *c = '?';
}

/* Returns whether the bytes are those that were written, according to the index. */
static bool is_whole(const sherd__view_file *f, const char *said)
{
    sherd__digest sum;
    char text[SHERD__DIGEST_TEXT];
    if (!said || sherd__digest_bytes(&sum, f->map.bytes, f->map.len)) return true;
    sherd__digest_text(&sum, text);
    return strcmp(text, said) == 0;
}

/* Reports what is missing of a file. said: its length in the index, UINT64_MAX if there is none;
   sum: its SHA-256 in the index, or NULL. */
static void tell_file(sherd__node_view *v, const sherd__view_file *f, uint64_t said,
                      const char *sum)
{
    if (said != UINT64_MAX && said != f->map.len)
        SHERD__SAY(v->trouble,
                   "%s is %zu bytes long and the index says %llu: it was cut or extended", f->name,
                   f->map.len, (unsigned long long)said);
    else if (!is_whole(f, sum))
        SHERD__SAY(v->trouble, "%s was changed: its SHA-256 differs from that in the index",
                   f->name);
    if (f->good < f->map.len)
        SHERD__SAY(v->trouble, "%s cannot be read from byte %zu of %zu on", f->name, f->good,
                   f->map.len);
    else if (f->midway)
        SHERD__SAY(v->trouble, "%s ends at byte %zu in the middle of a block", f->name, f->map.len);
}

static int add_node(folder *f, const char *name, const char *about, sherd_diag *d)
{
    void *list = f->len < NODES_MAX
                     ? sherd__view_grown(f->nodes, f->len, &f->room, sizeof *f->nodes)
                     : NULL;
    if (!list) return no_memory(d);
    f->nodes = list;
    list = sherd__view_grown(f->said, f->len, &f->said_room, sizeof *f->said);
    if (!list) return no_memory(d);
    f->said = list;
    f->said[f->len] = (sherd__view_domain){ .number = UINT64_MAX };
    sherd__node_view *v = &f->nodes[f->len++];
    memset(v, 0, sizeof *v);
    v->shuffled = f->version != 1;
    const char *tail = strrchr(f->dir, '/');
    snprintf(v->name, sizeof v->name, "%.90s",
             f->side           ? name
             : tail && tail[1] ? tail + 1
                               : f->dir);
    snprintf(v->about, sizeof v->about, "%.110s", about);
    make_plain(v->name);
    return SHERD_OK;
}

static uint64_t bytes_said(const json_t *peer, const char *file)
{
    const json_t *n = json_object_get(json_object_get(peer, file), "bytes");
    return json_is_integer(n) && json_integer_value(n) >= 0 ? (uint64_t)json_integer_value(n)
                                                            : UINT64_MAX;
}

static const char *sum_said(const json_t *peer, const char *file)
{
    return json_string_value(json_object_get(json_object_get(peer, file), "sha256"));
}

/* Adds a peer of the record: a new node, or another conversation of the one node that wrote the
   record. peer: its entry in the index, or NULL. */
static int add_peer(folder *f, const char *name, const json_t *peer, sherd_diag *d)
{
    sherd__view_file sent = { .good = 0 }, received = { .good = 0 };
    const char *about = json_string_value(json_object_get(peer, "about"));
    int err = open_file(&sent, f->dir, name, "sent", d);
    if (!err) err = open_file(&received, f->dir, name, "received", d);
    int side = err ? -1 : side_of(&sent, &received);
    if (err || side < 0 || (f->side >= 0 && f->side != side)) {
        if (!err && (sent.map.len || received.map.len)) {
            SHERD__SAY(f->trouble,
                       "%s.sent and %s.received do not begin with a greeting and were left out",
                       name, name);
            f->cut = true;
        }
        sherd__map_close(&sent.map);
        sherd__map_close(&received.map);
        return err;
    }
    f->side = side;
    sherd__view_stream s = { side ? sent : received, side ? received : sent };
    if (side == 1 || f->len == 0) err = add_node(f, name, about ? about : "", d);
    if (err) {
        sherd__view_stream_close(&s);
        return err;
    }
    sherd__node_view *v = &f->nodes[f->len - 1];
    uint32_t before = v->streams_len;
    err = sherd__view_stream_add(v, &s);
    if (err && v->streams_len == before) sherd__view_stream_close(&s);
    if (err) return no_memory(d);
    const sherd__view_stream *have = &v->streams[before];
    const char *in = side ? "sent" : "received", *out = side ? "received" : "sent";
    tell_file(v, &have->in, bytes_said(peer, in), sum_said(peer, in));
    tell_file(v, &have->out, bytes_said(peer, out), sum_said(peer, out));
    return SHERD_OK;
}

/* Reads a peer's domain from the index. */
static int read_domain(folder *f, const json_t *p, sherd_diag *d)
{
    const json_t *domain = json_object_get(p, "domain"),
                 *number = json_object_get(domain, "number");
    const char *name = json_string_value(json_object_get(domain, "name"));
    const char *key = json_string_value(json_object_get(p, "key"));
    sherd__node_view *v = &f->nodes[f->len - 1];
    if (key && f->side == 1) snprintf(v->key, sizeof v->key, "%.90s", key);
    make_plain(v->key);
    if (!domain || f->version < 2 || f->side != 1) return SHERD_OK;
    if (!json_is_integer(number) || json_integer_value(number) < 0 || !name || !name[0])
        return sherd__fail(d, SHERD_EFORMAT, "take the folder as sherd --record wrote it",
                           "%s/index.json: the domain of %s is not a number and a name",
                           sherd__path_tail(f->dir), v->name);
    sherd__view_domain *said = &f->said[f->len - 1];
    said->number = (uint64_t)json_integer_value(number);
    snprintf(said->name, sizeof said->name, "%.90s", name);
    make_plain(said->name);
    return SHERD_OK;
}

static uint64_t streams_of(const folder *f)
{
    return f->len ? f->len + (uint64_t)f->nodes[f->len - 1].streams_len : 0;
}

/* Reads the index's list of peers. */
static int by_index(folder *f, const json_t *peers, sherd_diag *d)
{
    for (size_t i = 0; i < json_array_size(peers); i++) {
        const json_t *p = json_array_get(peers, i);
        const char *name = json_string_value(json_object_get(p, "name"));
        if (!name || !plain_name(name))
            return sherd__fail(d, SHERD_EFORMAT, "take the folder as sherd --record wrote it",
                               "%s/index.json: peer %zu has no plain name",
                               sherd__path_tail(f->dir), i);
        uint64_t before = streams_of(f);
        int err = add_peer(f, name, p, d);
        if (err) return err;
        if (streams_of(f) == before) continue;
        err = read_domain(f, p, d);
        if (err) return err;
    }
    return SHERD_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Without an index (its process was killed), reads every pair of files. */
static int by_listing(folder *f, sherd_diag *d)
{
    char(*list)[96] = NULL;
    size_t len = 0, room = 0;
    DIR *dir = opendir(f->dir);
    if (!dir)
        return sherd__fail(d, SHERD_EOPEN, "give the folder that --record wrote",
                           "%s: cannot open: %s", sherd__path_tail(f->dir), strerrordesc_np(errno));
    int err = SHERD_OK;
    for (struct dirent *e; !err && (e = readdir(dir));) {
        size_t n = strlen(e->d_name);
        if (n <= 5 || strcmp(e->d_name + n - 5, ".sent") || !plain_name(e->d_name)) continue;
        void *p = len < NODES_MAX ? sherd__view_grown(list, len, &room, sizeof *list) : NULL;
        if (!p) {
            err = no_memory(d);
            break;
        }
        list = p;
        snprintf(list[len++], sizeof *list, "%.*s", (int)(n - 5), e->d_name);
    }
    closedir(dir);
    if (len) qsort(list, len, sizeof *list, compare_names);
    for (size_t i = 0; i < len && !err; i++) err = add_peer(f, list[i], NULL, d);
    sherd__free(list);
    return err;
}

static int version_of(const json_t *root, const char *path, int *version, sherd_diag *d)
{
    const char *schema = json_string_value(json_object_get(root, "schema"));
    *version = !schema                             ? 0
               : !strcmp(schema, "sherd/record/1") ? 1
               : !strcmp(schema, "sherd/record/2") ? 2
                                                   : 0;
    if (*version) return SHERD_OK;
    if (schema && !strncmp(schema, "sherd/record/", 13))
        return sherd__fail(d, SHERD_EFORMAT, "audit it with the version of sherd that wrote it",
                           "%s: %.40s is unknown, expected sherd/record/1 or 2",
                           sherd__path_tail(path), schema);
    return sherd__fail(d, SHERD_EFORMAT, "give the folder that --record wrote",
                       "%s: is not the index of a record", sherd__path_tail(path));
}

static int read_folder(folder *f, sherd_diag *d)
{
    char path[4400];
    uint8_t *text = NULL;
    size_t len;
    snprintf(path, sizeof path, "%s/index.json", f->dir);
    int err = sherd__file_read_small(&text, &len, path, INDEX_MAX, NULL);
    if (err == SHERD_EOPEN) {
        SHERD__SAY(f->trouble,
                   "the record has no index, because its writer ended early: a file that ends "
                   "between two messages looks complete");
        f->cut = true;
        return by_listing(f, d);
    }
    if (err) return sherd__fail(d, err, NULL, "%s: cannot be read", sherd__path_tail(path));
    json_t *root = json_loadb((const char *)text, len, 0, NULL);
    sherd__free(text);
    err = version_of(root, path, &f->version, d);
    if (err) {
        json_decref(root);
        return err;
    }
    if (!json_is_true(json_object_get(root, "complete"))) {
        SHERD__SAY(f->trouble, "the index says that the record is not complete");
        f->cut = true;
    }
    err = by_index(f, json_object_get(root, "peers"), d);
    json_decref(root);
    return err;
}

/* --- domains ---------------------------------------------------------------------------------- */

/* Numbers in the record are arbitrary; domains are sorted by them. */
static int compare_domains(const void *a, const void *b)
{
    uint64_t x = ((const sherd__view_domain *)a)->number,
             y = ((const sherd__view_domain *)b)->number;
    return (x > y) - (x < y);
}

static bool all_said(const folder *f)
{
    for (size_t i = 0; i < f->len; i++)
        if (f->said[i].number == UINT64_MAX) return false;
    return f->side == 1;
}

/* Sets v->domains and the domain of each of f's nodes, which follow v->len others. */
static int number_domains(sherd__views *v, folder *f)
{
    size_t all = v->len + f->len, len = 0;
    bool known = all_said(f);
    if (all > UINT32_MAX) return SHERD_ENOMEM;
    sherd__view_domain *list = sherd__calloc(all, sizeof *list);
    if (!list) return SHERD_ENOMEM;
    if (v->len)
        memcpy(list, v->domains, v->len * sizeof *list); /* nodes' own records: one domain each */
    for (size_t i = 0; i < f->len; i++) {
        f->nodes[i].domain = (uint32_t)(v->len + i);
        list[v->len + i].nodes = 1;
        snprintf(list[v->len + i].name, sizeof list->name, "%s", f->nodes[i].name);
    }
    if (known) {
        memcpy(list, f->said, f->len * sizeof *list);
        qsort(list, f->len, sizeof *list, compare_domains);
        for (size_t i = 0; i < f->len; i++)
            if (i == 0 || list[i].number != list[len - 1].number) list[len++] = list[i];
        for (size_t i = 0; i < f->len; i++)
            for (size_t k = 0; k < len; k++)
                if (list[k].number == f->said[i].number) {
                    f->nodes[i].domain = (uint32_t)k;
                    list[k].nodes++;
                }
    } else if (f->side == 1) {
        SHERD__SAY(f->trouble,
                   "the record does not say which nodes are one domain: each node counts as one");
    }
    sherd__free(v->domains);
    v->domains = list;
    v->domains_len = (uint32_t)(known ? len : all);
    v->domains_known = known;
    return SHERD_OK;
}

/* ---- several records ------------------------------------------------------------------------- */

int sherd__views_add(sherd__views *v, const char *dir, sherd_diag *d)
{
    folder f = { .dir = dir, .side = -1 };
    sherd__node_view *all = NULL;
    int err = read_folder(&f, d);
    if (!err && f.side < 0)
        err = sherd__fail(d, SHERD_EFORMAT, "give the folder that --record wrote",
                          "%s: contains nothing that was sent to a node", sherd__path_tail(dir));
    if (!err && v->len && (v->of_coordinator || f.side == 1))
        err = sherd__fail(d, SHERD_EINVAL, "give one coordinator's record, or nodes' own",
                          "%s: cannot be audited together with another record",
                          sherd__path_tail(dir));
    if (!err && !(all = sherd__realloc(v->nodes, (v->len + f.len) * sizeof *all)))
        err = no_memory(d);
    if (all) v->nodes = all;
    if (all && number_domains(v, &f)) {
        err = no_memory(d);
        all = NULL;
    }
    if (all) {
        memcpy(all + v->len, f.nodes, f.len * sizeof *all);
        v->len += f.len;
        v->of_coordinator = f.side == 1;
        if (f.trouble[0]) SHERD__SAY(v->trouble, "%s", f.trouble);
        v->cut = v->cut || f.cut;
        f.len = 0;
        if (v->of_coordinator && sherd__view_coded_read(v, dir)) {
            sherd__views_fini(v); /* it was empty before this record */
            err = no_memory(d);
        }
    }
    for (size_t i = 0; i < f.len; i++) sherd__node_view_fini(&f.nodes[i]);
    sherd__free(f.nodes);
    sherd__free(f.said);
    return err;
}

void sherd__views_fini(sherd__views *v)
{
    for (size_t i = 0; i < v->len; i++) sherd__node_view_fini(&v->nodes[i]);
    sherd__free(v->nodes);
    sherd__free(v->domains);
    sherd__free(v->coded);
    sherd__free(v->order);
    memset(v, 0, sizeof *v);
}
