/*
 * Records to views. A stream is read record by record; PUTs become blocks (where they lie, not
 * their bytes: bodies stay in the mapped file until they are asked for) and TASKs refer to the
 * latest block of their number. A connection that was cut leaves half a record with the next
 * session's greeting behind it: reading takes up again there. Where nothing more can be made out,
 * the view ends and says so.
 */
#include "audit/view.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "crypto/fragment_make.h"

#define INDEX_MAX ((size_t)16 << 20)
#define NODES_MAX 4096u

static int no_memory(sherd_diag *d)
{
    return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory for the record");
}

static void say(char text[200], const char *what)
{
    if (!text[0]) snprintf(text, 200, "%s", what);
}

/* One more element of a growing array. */
static void *grown(void *list, size_t len, size_t *room, size_t size)
{
    size_t more = *room ? *room * 2 : 64, bytes;
    if (len < *room) return list;
    if (!sherd__mul(more, size, &bytes)) return NULL;
    void *p = sherd__realloc(list, bytes);
    if (p) *room = more;
    return p;
}

/* --- numbers of blocks ----------------------------------------------------------------------- */

/* (job, number) -> the latest block of that name in this session; open addressing. */
typedef struct names {
    size_t *slot; /* index + 1 of a block */
    size_t room, used;
} names;

static size_t *find_name(const names *n, const sherd__node_view *v, uint64_t job, uint32_t number)
{
    uint64_t h = (job ^ ((uint64_t)number << 32 | number)) * UINT64_C(0x9e3779b97f4a7c15);
    size_t i = (size_t)(h >> 20) & (n->room - 1);
    while (n->slot[i]) {
        const sherd__view_block *b = &v->blocks[n->slot[i] - 1];
        if (b->job == job && b->number == number) break;
        i = (i + 1) & (n->room - 1);
    }
    return &n->slot[i];
}

static int put_name(names *n, const sherd__node_view *v, size_t block)
{
    if (2 * (n->used + 1) > n->room) {
        names more = { .room = n->room ? 2 * n->room : 256 };
        more.slot = sherd__calloc(more.room, sizeof *more.slot);
        if (!more.slot) return SHERD_ENOMEM;
        for (size_t i = 0; i < n->room; i++) {
            if (!n->slot[i]) continue;
            const sherd__view_block *b = &v->blocks[n->slot[i] - 1];
            *find_name(&more, v, b->job, b->number) = n->slot[i];
        }
        more.used = n->used;
        sherd__free(n->slot);
        *n = more;
    }
    size_t *at = find_name(n, v, v->blocks[block].job, v->blocks[block].number);
    n->used += *at == 0;
    *at = block + 1;
    return SHERD_OK;
}

/* --- a stream -------------------------------------------------------------------------------- */

typedef struct filling {
    size_t block;       /* whose body is arriving, or SHERD__VIEW_NONE */
    uint64_t left;      /* bytes of it that are missing */
    uint32_t part;      /* the last one seen */
} filling;

static int begin_block(sherd__node_view *v, uint32_t stream, const sherd__reading *r, size_t at,
                       names *n, filling *f)
{
    sherd__view_block b = { .job = r->job, .number = r->number, .stream = stream, .at = at };
    if (sherd__reading_description(r->body, r->len, &b.info, NULL)) return SHERD_EFRAME;
    void *list = grown(v->blocks, v->blocks_len, &v->blocks_room, sizeof b);
    if (!list) return SHERD_ENOMEM;
    v->blocks = list;
    b.whole = b.info.len == 0;
    v->blocks[v->blocks_len++] = b;
    *f = (filling){ b.whole ? SHERD__VIEW_NONE : v->blocks_len - 1, b.info.len, 0 };
    return put_name(n, v, v->blocks_len - 1);
}

/* A part of the body: of the block that is under way, in turn, and no longer than what is
 * missing. */
static int more_block(sherd__node_view *v, const sherd__reading *r, filling *f)
{
    if (f->block == SHERD__VIEW_NONE || r->len > f->left || r->len == 0 || r->part != f->part + 1 ||
        r->number != v->blocks[f->block].number || r->job != v->blocks[f->block].job)
        return SHERD_EFRAME;
    f->left -= r->len;
    f->part = r->part;
    if (f->left > 0) return SHERD_OK;
    v->blocks[f->block].whole = true;
    f->block = SHERD__VIEW_NONE;
    return SHERD_OK;
}

static int take_task(sherd__node_view *v, const sherd__reading *r, const names *n)
{
    sherd__reading_task t;
    if (sherd__reading_task_of(r->body, r->len, &t)) return SHERD_EFRAME;
    void *list = grown(v->tasks, v->tasks_len, &v->tasks_room, sizeof *v->tasks);
    if (!list) return SHERD_ENOMEM;
    v->tasks = list;
    size_t left = n->room && t.left ? *find_name(n, v, r->job, t.left) : 0;
    size_t right = n->room && t.right ? *find_name(n, v, r->job, t.right) : 0;
    sherd__view_task *task = &v->tasks[v->tasks_len++];
    *task = (sherd__view_task){
        .job = r->job, .number = r->number, .op = t.op, .primes_len = t.primes_len,
        .left = left ? left - 1 : SHERD__VIEW_NONE, .right = right ? right - 1 : SHERD__VIEW_NONE,
    };
    memcpy(task->primes, t.primes, sizeof task->primes);
    return SHERD_OK;
}

static int take_record(sherd__node_view *v, uint32_t stream, const sherd__reading *r, size_t at,
                       names *n, filling *f)
{
    switch (r->type) {
    case SHERD__READ_HELLO: /* another session: its node had forgotten all blocks */
        if (n->room) memset(n->slot, 0, n->room * sizeof *n->slot);
        n->used = 0;
        f->block = SHERD__VIEW_NONE;
        return SHERD_OK;
    case SHERD__READ_PUT:
        return r->part == 0 ? begin_block(v, stream, r, at, n, f) : more_block(v, r, f);
    case SHERD__READ_TASK: return take_task(v, r, n);
    default: return SHERD_OK;
    }
}

static int read_stream(sherd__node_view *v, uint32_t stream)
{
    const sherd__map *in = &v->streams[stream].in;
    size_t at = 0, from = 0;
    names n = { 0 };
    filling f = { .block = SHERD__VIEW_NONE };
    sherd__reading r;
    char text[120];
    int err = SHERD_OK, got;
    while (err == SHERD_OK && (got = sherd__reading_next(in->bytes, in->len, &at, &r)) != 0) {
        size_t here = at;
        if (got > 0) {
            here = (size_t)(r.body - in->bytes) - SHERD__READ_HEAD;
            err = take_record(v, stream, &r, here, &n, &f);
            if (err == SHERD_ENOMEM) break;
        }
        if (got > 0 && err == SHERD_OK) {
            from = here + 1;
            continue;
        }
        /* Half a record may have swallowed the greeting that follows it. */
        err = SHERD_OK;
        at = sherd__reading_resume(in->bytes, in->len, from, SHERD__READ_HELLO);
        if (at < in->len) {
            from = at + 1;
            continue;
        }
        snprintf(text, sizeof text, "what it received cannot be read from byte %zu of %zu on", here,
                 in->len);
        say(v->trouble, text);
    }
    if (err == SHERD_OK && f.block != SHERD__VIEW_NONE)
        say(v->trouble, "the record ends in the middle of a block");
    sherd__free(n.slot);
    return err;
}

static void count_results(sherd__node_view *v, const sherd__map *out)
{
    size_t at = 0;
    sherd__reading r;
    while (sherd__reading_next(out->bytes, out->len, &at, &r) == 1)
        v->results += r.type == SHERD__READ_RESULT && r.part == 0;
}

int sherd__view_body(const sherd__node_view *v, const sherd__view_block *b, uint8_t *out)
{
    const sherd__map *in = &v->streams[b->stream].in;
    size_t at = b->at;
    uint64_t done = 0;
    sherd__reading r;
    if (!b->whole) return SHERD_EFRAME;
    while (done < b->info.len && sherd__reading_next(in->bytes, in->len, &at, &r) == 1) {
        if (r.type != SHERD__READ_PUT || r.part == 0) continue;
        if (r.len > b->info.len - done) return SHERD_EFRAME;
        memcpy(out + done, r.body, r.len);
        done += r.len;
    }
    if (done < b->info.len) return SHERD_EFRAME;
    return b->info.groups ? sherd__fragment_table_check(&b->info, out, NULL) : SHERD_OK;
}

/* --- a folder -------------------------------------------------------------------------------- */

/* A file of the record: a plain name, so that an index cannot send us elsewhere. */
static bool plain_name(const char *s)
{
    size_t n = strlen(s);
    return n > 0 && n < 90 && s[0] != '.' &&
           strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n;
}

static int open_file(sherd__map *m, const char *dir, const char *name, const char *suffix,
                     sherd_diag *d)
{
    char path[4400];
    int len = snprintf(path, sizeof path, "%s/%s.%s", dir, name, suffix);
    if (len < 0 || (size_t)len >= sizeof path)
        return sherd__fail(d, SHERD_EOPEN, NULL, "%s: the path is too long", sherd__path_tail(dir));
    return sherd__map_open(m, path, 0, d);
}

static void close_stream(sherd__view_stream *s)
{
    sherd__map_close(&s->in);
    sherd__map_close(&s->out);
}

static void node_fini(sherd__node_view *v)
{
    for (uint32_t i = 0; i < v->streams_len; i++) close_stream(&v->streams[i]);
    sherd__free(v->streams);
    sherd__free(v->blocks);
    sherd__free(v->tasks);
    memset(v, 0, sizeof *v);
}

static bool greets(const sherd__map *m, uint16_t type)
{
    size_t at = 0;
    sherd__reading r;
    return sherd__reading_next(m->bytes, m->len, &at, &r) == 1 && r.type == type;
}

/* 1 or 0: a coordinator's record or a node's; -1: neither stream opens with a greeting. */
static int side_of(const sherd__map *sent, const sherd__map *received)
{
    if (greets(sent, SHERD__READ_HELLO) || greets(received, SHERD__READ_WELCOME)) return 1;
    if (greets(received, SHERD__READ_HELLO) || greets(sent, SHERD__READ_WELCOME)) return 0;
    return -1;
}

typedef struct folder {
    const char *dir;
    sherd__node_view *nodes;
    sherd__view_domain *said; /* of each node: what the index says; number UINT64_MAX: nothing */
    size_t len, room, said_room;
    int version;
    int side; /* -1 until it is known */
    bool cut;
    char trouble[200];
} folder;

static int add_stream(sherd__node_view *v, sherd__view_stream *s)
{
    void *list = sherd__realloc(v->streams, (v->streams_len + 1) * sizeof *v->streams);
    if (!list) return SHERD_ENOMEM;
    v->streams = list;
    v->streams[v->streams_len++] = *s;
    v->bytes_in += s->in.len;
    v->bytes_out += s->out.len;
    count_results(v, &s->out);
    return read_stream(v, v->streams_len - 1);
}

static void make_plain(char *text)
{
    for (char *c = text; *c; c++)
        if (*c < 0x20 || *c >= 0x7f) *c = '?';
}

/* A peer of the record: a node of its own, or one more conversation of the one node that wrote
 * it. */
static int add_peer(folder *f, const char *name, const char *about, sherd_diag *d)
{
    sherd__map sent = { 0 }, received = { 0 };
    int err = open_file(&sent, f->dir, name, "sent", d);
    if (!err) err = open_file(&received, f->dir, name, "received", d);
    int side = err ? -1 : side_of(&sent, &received);
    if (err || side < 0 || (f->side >= 0 && f->side != side)) {
        if (!err && (sent.len || received.len)) {
            say(f->trouble, "one peer's files do not open with a greeting and were left out");
            f->cut = true;
        }
        sherd__map_close(&sent);
        sherd__map_close(&received);
        return err;
    }
    f->side = side;
    sherd__view_stream s = { side ? sent : received, side ? received : sent };
    if (side == 1 || f->len == 0) {
        void *list =
            f->len < NODES_MAX ? grown(f->nodes, f->len, &f->room, sizeof *f->nodes) : NULL;
        if (!list) {
            close_stream(&s);
            return no_memory(d);
        }
        f->nodes = list;
        list = grown(f->said, f->len, &f->said_room, sizeof *f->said);
        if (!list) {
            close_stream(&s);
            return no_memory(d);
        }
        f->said = list;
        f->said[f->len] = (sherd__view_domain){ .number = UINT64_MAX };
        sherd__node_view *v = &f->nodes[f->len++];
        memset(v, 0, sizeof *v);
        v->shuffled = f->version != 1;
        const char *tail = strrchr(f->dir, '/');
        snprintf(v->name, sizeof v->name, "%.90s",
                 side ? name : tail && tail[1] ? tail + 1 : f->dir);
        snprintf(v->about, sizeof v->about, "%.110s", about);
        make_plain(v->name);
    }
    sherd__node_view *v = &f->nodes[f->len - 1];
    uint32_t before = v->streams_len;
    err = add_stream(v, &s);
    if (err && v->streams_len == before) close_stream(&s);
    return err ? no_memory(d) : SHERD_OK;
}

/* What the index says of a peer besides its files. */
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
                           "%s/index.json: the domain of %s is no number and name",
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

/* The index's list of peers. */
static int by_index(folder *f, const json_t *peers, sherd_diag *d)
{
    for (size_t i = 0; i < json_array_size(peers); i++) {
        const json_t *p = json_array_get(peers, i);
        const char *name = json_string_value(json_object_get(p, "name"));
        const char *about = json_string_value(json_object_get(p, "about"));
        if (!name || !plain_name(name))
            return sherd__fail(d, SHERD_EFORMAT, "take the folder as sherd --record wrote it",
                               "%s/index.json: peer %zu has no plain name",
                               sherd__path_tail(f->dir), i);
        uint64_t before = streams_of(f);
        int err = add_peer(f, name, about ? about : "", d);
        if (err) return err;
        if (streams_of(f) == before) continue;
        sherd__node_view *v = &f->nodes[f->len - 1];
        json_int_t bytes = json_integer_value(
            json_object_get(json_object_get(p, f->side == 1 ? "sent" : "received"), "bytes"));
        if (bytes != (json_int_t)v->streams[v->streams_len - 1].in.len)
            say(v->trouble, "its file is not as long as the index says: it was cut or added to");
        err = read_domain(f, p, d);
        if (err) return err;
    }
    return SHERD_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Without an index (its process was killed): every pair of files. */
static int by_listing(folder *f, sherd_diag *d)
{
    char (*list)[96] = NULL;
    size_t len = 0, room = 0;
    DIR *dir = opendir(f->dir);
    if (!dir)
        return sherd__fail(d, SHERD_EOPEN, "give the folder that --record wrote", "%s: %s",
                           sherd__path_tail(f->dir), strerrordesc_np(errno));
    int err = SHERD_OK;
    for (struct dirent *e; !err && (e = readdir(dir)) != NULL;) {
        size_t n = strlen(e->d_name);
        if (n <= 5 || strcmp(e->d_name + n - 5, ".sent") || !plain_name(e->d_name)) continue;
        void *p = len < NODES_MAX ? grown(list, len, &room, sizeof *list) : NULL;
        if (!p) {
            err = no_memory(d);
            break;
        }
        list = p;
        snprintf(list[len++], sizeof *list, "%.*s", (int)(n - 5), e->d_name);
    }
    closedir(dir);
    if (len) qsort(list, len, sizeof *list, compare_names);
    for (size_t i = 0; i < len && !err; i++) err = add_peer(f, list[i], "", d);
    sherd__free(list);
    return err;
}

static int version_of(const json_t *root, const char *path, int *version, sherd_diag *d)
{
    const char *schema = json_string_value(json_object_get(root, "schema"));
    *version = !schema                            ? 0
               : !strcmp(schema, "sherd/record/1") ? 1
               : !strcmp(schema, "sherd/record/2") ? 2
                                                   : 0;
    if (*version) return SHERD_OK;
    if (schema && !strncmp(schema, "sherd/record/", 13))
        return sherd__fail(d, SHERD_EFORMAT, "audit it with the version of sherd that wrote it",
                           "%s: %.40s is not known here, sherd/record/1 and 2 are",
                           sherd__path_tail(path), schema);
    return sherd__fail(d, SHERD_EFORMAT, "give the folder that --record wrote",
                       "%s: is no index of a record", sherd__path_tail(path));
}

static int read_folder(folder *f, sherd_diag *d)
{
    char path[4400];
    uint8_t *text = NULL;
    size_t len;
    snprintf(path, sizeof path, "%s/index.json", f->dir);
    int err = sherd__file_read_small(&text, &len, path, INDEX_MAX, NULL);
    if (err == SHERD_EOPEN) {
        say(f->trouble, "the record has no index: its writer was ended before its time");
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
        say(f->trouble, "the index says that the record is not complete");
        f->cut = true;
    }
    err = by_index(f, json_object_get(root, "peers"), d);
    json_decref(root);
    return err;
}

/* --- domains ---------------------------------------------------------------------------------- */

/* Numbers of the record may be any: domains stand in the order of theirs. */
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

/* Sets v->domains and the domain of each of f's nodes, which come behind v->len others. */
static int number_domains(sherd__views *v, folder *f)
{
    size_t all = v->len + f->len, len = 0;
    bool known = all_said(f);
    if (all > UINT32_MAX) return SHERD_ENOMEM;
    sherd__view_domain *list = sherd__calloc(all, sizeof *list);
    if (!list) return SHERD_ENOMEM;
    if (v->len) memcpy(list, v->domains, v->len * sizeof *list); /* nodes' own: one each */
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
        say(f->trouble, "the record does not say which nodes are one domain: each counts as one");
    }
    sherd__free(v->domains);
    v->domains = list;
    v->domains_len = (uint32_t)(known ? len : all);
    v->domains_known = known;
    return SHERD_OK;
}

/* --- several ---------------------------------------------------------------------------------- */

int sherd__views_add(sherd__views *v, const char *dir, sherd_diag *d)
{
    folder f = { .dir = dir, .side = -1 };
    sherd__node_view *all = NULL;
    int err = read_folder(&f, d);
    if (!err && f.side < 0)
        err = sherd__fail(d, SHERD_EFORMAT, "give the folder that --record wrote",
                          "%s: holds nothing that a node was sent", sherd__path_tail(dir));
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
        if (f.trouble[0]) say(v->trouble, f.trouble);
        v->cut = v->cut || f.cut;
        f.len = 0;
    }
    for (size_t i = 0; i < f.len; i++) node_fini(&f.nodes[i]);
    sherd__free(f.nodes);
    sherd__free(f.said);
    return err;
}

void sherd__views_fini(sherd__views *v)
{
    for (size_t i = 0; i < v->len; i++) node_fini(&v->nodes[i]);
    sherd__free(v->nodes);
    sherd__free(v->domains);
    memset(v, 0, sizeof *v);
}
