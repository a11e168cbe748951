/*
 * Adds checkpoints to a chain: first the new file, then the head. Each is complete and synced
 * before it gets its name (store/file.h).
 */
#include "store/chain.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "store/chain_files.h"
#include "store/file.h"
#include "store/npz.h"

struct sherd__chain {
    char *folder;
    int fd;                     /* of the folder: carries the lock */
    sherd__chain_report walked; /* result of the walk, kept up to date */
    bool unsure;                /* an addition failed: the state of its file must be determined */
};

static int fail_folder(const char *folder, const char *what, sherd_diag *d)
{
    return sherd__fail_file(SHERD_EOPEN, NULL, folder, what, errno, d);
}

/* Creates the folder and syncs its parent, which makes it durable. */
static int make_folder(const char *folder, sherd_diag *d)
{
    char above[PATH_MAX];
    int len = snprintf(above, sizeof above, "%s/..", folder);
    if (len < 0 || (size_t)len >= sizeof above) {
        errno = ENAMETOOLONG;
        return fail_folder(folder, "make the folder", d);
    }
    if (mkdir(folder, 0700) != 0)
        return errno == EEXIST ? 0 : fail_folder(folder, "make the folder", d);
    if (access(above, R_OK) != 0) return 0; /* writable but not readable: cannot be synced */
    int err = sherd__file_sync_folder(above, d);
    if (err) (void)rmdir(folder); /* otherwise the next run would not sync it */
    return err;
}

static int open_folder(sherd__chain *c, sherd_diag *d)
{
    int err = make_folder(c->folder, d);
    if (err) return err;
    c->fd = open(c->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (c->fd < 0) return fail_folder(c->folder, "open the folder", d);
    if (flock(c->fd, LOCK_EX | LOCK_NB) == 0) return SHERD_OK;
    if (errno != EWOULDBLOCK) return fail_folder(c->folder, "lock the folder", d);
    return sherd__fail(d, SHERD_EBUSY, "wait for it, or name another folder",
                       "%s: another process is adding checkpoints", sherd__path_tail(c->folder));
}

int sherd__chain_open(sherd__chain **out, const char *folder, bool go_on, sherd_diag *d)
{
    *out = NULL;
    sherd__chain *c = sherd__calloc(1, sizeof *c);
    if (!c || !(c->folder = sherd__strdup(folder))) {
        sherd__free(c);
        return sherd__fail_memory(d, "a chain of checkpoints");
    }
    c->fd = -1;
    int err = open_folder(c, d);
    if (!err) sherd__file_sweep(c->fd);
    if (!err) err = sherd__chain_walk(folder, &c->walked, d);
    if (!err && !go_on && c->walked.len > 0)
        err = sherd__fail(d, SHERD_EINVAL, "resume it, or name another folder",
                          "%s: holds %zu checkpoints of an earlier run, up to %s",
                          sherd__path_tail(folder), c->walked.len, c->walked.last.name);
    if (err) sherd__chain_close(c);
    else *out = c;
    return err;
}

void sherd__chain_close(sherd__chain *c)
{
    if (!c) return;
    if (c->fd >= 0) close(c->fd);
    sherd__free(c->folder);
    sherd__free(c);
}

bool sherd__chain_newest(const sherd__chain *c, sherd__chain_link *out)
{
    if (c->walked.len > 0) *out = c->walked.last;
    return c->walked.len > 0;
}

/* ---- adding ---------------------------------------------------------------------------------- */

static int add_member(sherd__npz_writer *w, const sherd__chain_member *m, sherd_diag *d)
{
    return sherd__npz_writer_add_values(w,
                                        &(sherd__npz_array){ m->name, m->dtype, m->ndim, m->rows,
                                                             m->cols },
                                        false, m->values, d);
}

static int write_file(const sherd__chain *c, const sherd__chain_link *link,
                      const sherd__chain_member *members, size_t len, sherd_diag *d)
{
    static const char format[] = SHERD__CHAIN_FORMAT;
    const int64_t number = (int64_t)link->number;
    const sherd__chain_member own[] = {
        { "format", SHERD_U8, 1, 1, sizeof format - 1, format },
        { "number", SHERD_I64, 1, 1, 1, &number },
        { "previous", SHERD_U8, 1, 1, SHERD__DIGEST_BYTES, c->walked.last.hash.sha256 },
    };
    enum { OWN = sizeof own / sizeof *own };
    sherd__npz_writer *w = NULL;
    char *path = sherd__chain_path(c->folder, link->name);
    int err = path ? SHERD_OK : sherd__fail_memory(d, "the name of a checkpoint");
    if (!err) err = sherd__npz_writer_new(&w, path, d);
    for (size_t i = 0; i < OWN + len && !err; i++)
        err = add_member(w, i < OWN ? &own[i] : &members[i - OWN], d);
    if (!err) err = sherd__npz_writer_commit(w, NULL, d);
    else sherd__npz_writer_abort(w);
    sherd__free(path);
    return err;
}

static int write_head(const sherd__chain *c, const sherd__chain_link *link, sherd_diag *d)
{
    char hex[SHERD__DIGEST_TEXT], text[SHERD__CHAIN_NAME + SHERD__DIGEST_TEXT + 16];
    sherd__file *f = NULL;
    char *path = sherd__chain_path(c->folder, "head");
    if (!path) return sherd__fail_memory(d, "the name of the chain's head");
    sherd__digest_text(&link->hash, hex);
    int len = snprintf(text, sizeof text, "%s sha256:%s\n", link->name, hex);
    int err = sherd__file_begin(&f, path, SHERD__FILE_PRIVATE, d);
    if (!err) err = sherd__file_write(f, text, (size_t)len, d);
    if (!err) err = sherd__file_commit(f, d);
    else sherd__file_abort(f);
    sherd__free(path);
    return err;
}

int sherd__chain_add(sherd__chain *c, uint64_t number, const sherd__chain_member *members,
                     size_t len, sherd_diag *d)
{
    sherd__chain_link link = { .number = number };
    int err = c->unsure ? sherd__chain_walk(c->folder, &c->walked, d) : SHERD_OK;
    if (err) return err;
    if ((c->walked.len > 0 && number <= c->walked.last.number) || number > INT64_MAX)
        return sherd__fail(d, SHERD_EINVAL, NULL,
                           "%s: checkpoint %" PRIu64 " cannot follow checkpoint %" PRIu64,
                           sherd__path_tail(c->folder), number, c->walked.last.number);
    sherd__chain_name(number, link.name);
    c->unsure = true;
    err = c->walked.late ? write_head(c, &c->walked.last, d) : SHERD_OK;
    if (!err) err = write_file(c, &link, members, len, d);
    if (!err) err = sherd__chain_hash(c->folder, &link, d);
    if (!err) err = write_head(c, &link, d);
    if (err) return err;
    c->unsure = c->walked.late = false;
    c->walked.last = link;
    if (c->walked.len++ == 0) {
        c->walked.first = link;
        c->walked.whole = true;
    }
    return SHERD_OK;
}

int sherd__chain_prune(sherd__chain *c, size_t keep, sherd_diag *d)
{
    uint64_t *numbers = NULL;
    size_t len = 0;
    char name[SHERD__CHAIN_NAME];
    int err = sherd__chain_list(c->folder, &numbers, &len, d);
    for (size_t i = 0; !err && i + keep < len; i++) {
        sherd__chain_name(numbers[i], name);
        if (unlinkat(c->fd, name, 0) != 0) err = fail_folder(c->folder, "remove a checkpoint", d);
        else if (i + 1 + keep == len) err = sherd__file_sync_folder(c->folder, d);
    }
    sherd__free(numbers);
    if (!err && len > keep) {
        c->walked.len = keep;
        c->walked.whole = false;
    }
    return err;
}
