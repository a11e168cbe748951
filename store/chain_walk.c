/*
 * Reads and verifies a chain. A file is checked against its hash in the next file before its
 * contents are used. The contents of the last file, which only the head names, are checked at the
 * end.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "store/chain_files.h"
#include "store/file.h"
#include "store/npz.h"

#define PIECE ((size_t)1 << 20)

/* The number and predecessor that a file declares. */
typedef struct own {
    uint64_t number;
    sherd__digest previous;
    bool first; /* previous is all zeros: there is no previous file */
} own;

/* Reports a failure to read a checkpoint. The file counts as damaged unless the cause is memory, a
 * version or IO. */
static int damaged(const char *folder, const char *name, int err, const sherd_diag *why,
                   sherd_diag *d)
{
    if (err == SHERD_ENOMEM || err == SHERD_EVERSION || err == SHERD_EIO || err == SHERD_EOPEN)
        return sherd__fail(d, err, why->hint, "%s", why->message);
    return sherd__fail(d, SHERD_ECHAIN, SHERD__CHAIN_ELSEWHERE, "%s/%s: is damaged (%s)",
                       sherd__path_tail(folder), name, why->message);
}

static int read_format(sherd__npz *z, sherd_diag *d)
{
    char text[64] = { 0 };
    int64_t i = sherd__npz_find(z, "format");
    const sherd__npz_member *m = i >= 0 ? sherd__npz_member_at(z, (size_t)i) : NULL;
    if (!m || m->head.dtype != SHERD_U8 || m->head.data_len >= sizeof text)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "%s: is not a checkpoint: it has no 'format'",
                           sherd__npz_where(z));
    int err = sherd__npz_read(z, (size_t)i, text, m->head.data_len, d);
    if (err) return err;
    if (strcmp(text, SHERD__CHAIN_FORMAT) == 0) return SHERD_OK;
    return sherd__fail(d, SHERD_EVERSION, "use the version of sherd that wrote it",
                       "%s: is of format '%.40s', expected '%s'", sherd__npz_where(z), text,
                       SHERD__CHAIN_FORMAT);
}

static int read_through(sherd__npz *z, void *piece, sherd_diag *d)
{
    int err = SHERD_OK;
    for (size_t i = 0; i < sherd__npz_count(z) && !err; i++) {
        sherd__npz_reader *r;
        size_t left = sherd__npz_member_at(z, i)->head.data_len;
        err = sherd__npz_reader_new(&r, z, i, d);
        if (err) return err;
        do {
            size_t n = left < PIECE ? left : PIECE;
            err = sherd__npz_reader_next(r, piece, n, d);
            left -= n;
        } while (left > 0 && !err);
        sherd__npz_reader_free(r);
    }
    return err;
}

static int look(const char *folder, const char *name, own *out, void *piece, sherd_diag *d)
{
    static const uint8_t none[SHERD__DIGEST_BYTES];
    sherd__npz *z = NULL;
    int64_t number = -1;
    char *path = sherd__chain_path(folder, name);
    if (!path) return sherd__fail_memory(d, "the name of a checkpoint");
    int err = sherd__npz_open(&z, path, CHAIN_BYTES_MAX, 1, d);
    if (!err) err = read_format(z, d);
    if (!err) err = sherd__npz_take(z, "number", SHERD_I64, &number, sizeof number, d);
    if (!err)
        err = sherd__npz_take(z, "previous", SHERD_U8, out->previous.sha256,
                              sizeof out->previous.sha256, d);
    if (!err) err = read_through(z, piece, d);
    out->number = (uint64_t)number;
    out->first = memcmp(out->previous.sha256, none, sizeof none) == 0;
    sherd__npz_close(z);
    sherd__free(path);
    return err;
}

static bool same(const sherd__digest *a, const sherd__digest *b)
{
    return memcmp(a->sha256, b->sha256, sizeof a->sha256) == 0;
}

/* Reads the file of `number`: its hash and its contents. before: the previous file; its name is
 * empty if there is none. */
static int visit(const char *folder, uint64_t number, const sherd__chain_link *before,
                 sherd__chain_report *r, void *piece, sherd_diag *d)
{
    sherd__chain_link *out = &r->last;
    own o = { 0 };
    sherd_diag why = { 0 };
    out->number = number;
    sherd__chain_name(number, out->name);
    int err = sherd__chain_hash(folder, out, d);
    if (err) return err;
    err = look(folder, out->name, &o, piece, &why);
    if (err) return damaged(folder, out->name, err, &why, d);
    if (o.number != number)
        return sherd__fail(d, SHERD_ECHAIN, SHERD__CHAIN_ELSEWHERE,
                           "%s/%s: states that it is number %" PRIu64, sherd__path_tail(folder),
                           out->name, o.number);
    if (before->name[0] == '\0') {
        r->whole = o.first;
        return SHERD_OK;
    }
    if (same(&o.previous, &before->hash)) return SHERD_OK;
    return sherd__fail(d, SHERD_ECHAIN, SHERD__CHAIN_ELSEWHERE,
                       "%s/%s: does not follow %s: that file was changed, or one between them is "
                       "missing",
                       sherd__path_tail(folder), out->name, before->name);
}

/* Checks that the head names the last file, or the one before if its writer was killed. */
static int check_head(const char *folder, sherd__chain_report *r, const sherd__chain_link *before,
                      sherd_diag *d)
{
    sherd__chain_link head;
    int err = sherd__chain_head(folder, &head, d);
    if (err) return err;
    r->late = head.name[0] == '\0' ? r->len > 0 : head.number != r->last.number;
    const sherd__chain_link *expected = r->late ? before : &r->last;
    if (head.name[0] == '\0' && before->name[0] == '\0' && (r->len == 0 || r->whole))
        return SHERD_OK;
    if (head.name[0] == '\0')
        return sherd__fail(d, SHERD_ECHAIN, SHERD__CHAIN_ELSEWHERE,
                           "%s/head: is missing, so later checkpoints may be, too",
                           sherd__path_tail(folder));
    if (head.number > r->last.number || r->len == 0)
        return sherd__fail(d, SHERD_ECHAIN, SHERD__CHAIN_ELSEWHERE,
                           "%s: %s is missing, which head names", sherd__path_tail(folder),
                           head.name);
    if (head.number == expected->number && same(&head.hash, &expected->hash)) return SHERD_OK;
    return sherd__fail(d, SHERD_ECHAIN, SHERD__CHAIN_ELSEWHERE,
                       "%s/%s: is not the file that head names", sherd__path_tail(folder),
                       head.name);
}

int sherd__chain_walk(const char *folder, sherd__chain_report *out, sherd_diag *d)
{
    uint64_t *numbers = NULL;
    size_t len = 0;
    sherd__chain_report r = { 0 };
    sherd__chain_link before = { 0 };
    int err = sherd__chain_list(folder, &numbers, &len, d);
    if (err) return err;
    void *piece = sherd__alloc(PIECE);
    if (!piece) err = sherd__fail_memory(d, "reading a chain of checkpoints");
    for (size_t i = 0; i < len && !err; i++) {
        before = r.last;
        err = visit(folder, numbers[i], &before, &r, piece, d);
        if (i == 0) r.first = r.last;
    }
    r.len = len;
    if (!err) err = check_head(folder, &r, &before, d);
    sherd__free(piece);
    sherd__free(numbers);
    if (!err) *out = r;
    return err;
}
