/*
 * Builds views from records. A stream is read record by record. PUTs become blocks: only their
 * position is stored, and bodies stay in the mapped file until they are read. TASKs refer to the
 * latest block of their number. A connection that was cut leaves part of a record, followed by the
 * greeting of the next session; reading resumes there. If nothing more can be read, the view ends
 * and reports that.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "audit/view_internal.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "crypto/fragment_make.h"

void sherd__view_say(char *text, size_t size, const char *fmt, ...)
{
    size_t at = strlen(text);
    va_list args;
    if (at + 4 >= size) return;
    if (at) at += (size_t)snprintf(text + at, size - at, "; ");
    va_start(args, fmt);
    vsnprintf(text + at, size - at, fmt, args);
    va_end(args);
}

/* Makes room for one more element of a growing array. */
void *sherd__view_grown(void *list, size_t len, size_t *room, size_t size)
{
    size_t more = *room ? *room * 2 : 64, bytes;
    if (len < *room) return list;
    if (!sherd__mul(more, size, &bytes)) return NULL;
    void *p = sherd__realloc(list, bytes);
    if (p) *room = more;
    return p;
}

/* --- numbers of blocks ----------------------------------------------------------------------- */

/* (job, number) -> the latest block with that name in this session; open addressing. */
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
    size_t block;  /* the block being received, or SHERD__VIEW_NONE */
    uint64_t left; /* missing bytes of its body */
    uint32_t part; /* last part seen */
} filling;

static int begin_block(sherd__node_view *v, uint32_t stream, const sherd__reading *r, size_t at,
                       names *n, filling *f)
{
    sherd__view_block b = { .job = r->job, .number = r->number, .stream = stream, .at = at };
    if (sherd__reading_description(r->body, r->len, &b.info, NULL)) return SHERD_EFRAME;
    void *list = sherd__view_grown(v->blocks, v->blocks_len, &v->blocks_room, sizeof b);
    if (!list) return SHERD_ENOMEM;
    v->blocks = list;
    b.whole = b.info.len == 0;
    v->blocks[v->blocks_len++] = b;
    *f = (filling){ b.whole ? SHERD__VIEW_NONE : v->blocks_len - 1, b.info.len, 0 };
    return put_name(n, v, v->blocks_len - 1);
}

/* Adds a part of a body: it must be the next part of the current block and no longer than the
   missing bytes. */
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
    void *list = sherd__view_grown(v->tasks, v->tasks_len, &v->tasks_room, sizeof *v->tasks);
    if (!list) return SHERD_ENOMEM;
    v->tasks = list;
    size_t left = n->room && t.left ? *find_name(n, v, r->job, t.left) : 0;
    size_t right = n->room && t.right ? *find_name(n, v, r->job, t.right) : 0;
    sherd__view_task *task = &v->tasks[v->tasks_len++];
    *task = (sherd__view_task){
        .job = r->job,
        .number = r->number,
        .attempt = r->part,
        .op = t.op,
        .primes_len = t.primes_len,
        .left = left ? left - 1 : SHERD__VIEW_NONE,
        .right = right ? right - 1 : SHERD__VIEW_NONE,
    };
    memcpy(task->primes, t.primes, sizeof task->primes);
    return SHERD_OK;
}

static int take_record(sherd__node_view *v, uint32_t stream, const sherd__reading *r, size_t at,
                       names *n, filling *f)
{
    switch (r->type) {
    case SHERD__READ_HELLO: /* another session: its node has no blocks of the last one */
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

/* A connection that was cut leaves part of a record, and the record's length may include the
   greeting after it. Returns where reading resumes, or the end. */
static size_t resume(sherd__view_file *f, size_t here, size_t from, uint16_t greeting)
{
    size_t at = sherd__reading_resume(f->map.bytes, f->map.len, from, greeting);
    if (at == f->map.len) f->good = here;
    return at;
}

static int read_in(sherd__node_view *v, uint32_t stream)
{
    sherd__view_file *file = &v->streams[stream].in;
    const sherd__map *in = &file->map;
    size_t at = 0, from = 0;
    names n = { 0 };
    filling f = { .block = SHERD__VIEW_NONE };
    sherd__reading r;
    int err = SHERD_OK, got;
    file->good = in->len;
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
        err = SHERD_OK;
        at = resume(file, here, from, SHERD__READ_HELLO);
        from = at + 1;
    }
    file->midway = f.block != SHERD__VIEW_NONE;
    sherd__free(n.slot);
    return err;
}

static void read_out(sherd__node_view *v, sherd__view_file *file)
{
    const sherd__map *out = &file->map;
    size_t at = 0, from = 0;
    sherd__reading r;
    int got;
    file->good = out->len;
    while ((got = sherd__reading_next(out->bytes, out->len, &at, &r)) != 0) {
        if (got > 0) {
            v->results += r.type == SHERD__READ_RESULT && r.part == 0;
            from = (size_t)(r.body - out->bytes) - SHERD__READ_HEAD + 1;
            continue;
        }
        at = resume(file, at, from, SHERD__READ_WELCOME);
        from = at + 1;
    }
}

uint64_t sherd__view_hash(const uint8_t *body, size_t len)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325) ^ len;
    for (; len >= 8; body += 8, len -= 8)
        h = (h ^ sherd__get_u64(body)) * UINT64_C(0x9e3779b97f4a7c15) ^ h >> 29;
    for (; len; body++, len--) h = (h ^ *body) * UINT64_C(0x100000001b3);
    return h;
}

int sherd__view_body(const sherd__node_view *v, const sherd__view_block *b, uint8_t *out)
{
    const sherd__map *in = &v->streams[b->stream].in.map;
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

int sherd__view_stream_add(sherd__node_view *v, sherd__view_stream *s)
{
    void *list = sherd__realloc(v->streams, (v->streams_len + 1) * sizeof *v->streams);
    if (!list) return SHERD_ENOMEM;
    v->streams = list;
    v->streams[v->streams_len++] = *s;
    v->bytes_in += s->in.map.len;
    v->bytes_out += s->out.map.len;
    read_out(v, &v->streams[v->streams_len - 1].out);
    return read_in(v, v->streams_len - 1);
}

void sherd__view_stream_close(sherd__view_stream *s)
{
    sherd__map_close(&s->in.map);
    sherd__map_close(&s->out.map);
}

void sherd__node_view_fini(sherd__node_view *v)
{
    for (uint32_t i = 0; i < v->streams_len; i++) sherd__view_stream_close(&v->streams[i]);
    sherd__free(v->streams);
    sherd__free(v->blocks);
    sherd__free(v->tasks);
    memset(v, 0, sizeof *v);
}
