/*
 * Counters of mask files, stored apart from the files, so that restoring an older copy of a file
 * does not restore its counter. A counter is created before its file appears and is never removed:
 * a file without its counter is refused, since its number of used rows is then unknown. A machine
 * that is reset to an earlier state as a whole, with file and counter, cannot be detected.
 */
#include "store/maskfile_state.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "store/file.h"
#include "store/folder.h"

enum { TAG_AT = 32, NAME = 33 };

static void mark_tag(uint8_t out[32], const uint8_t mark[TAG_AT], char kind, const uint8_t id[16],
                     const uint8_t tag_key[32])
{
    uint8_t text[1 + 16 + TAG_AT] = { (uint8_t)kind };
    memcpy(text + 1, id, 16);
    memcpy(text + 17, mark, TAG_AT);
    crypto_generichash(out, 32, text, sizeof text, tag_key, 32);
}

void sherd__mark_put(uint8_t out[SHERD__MARK_BYTES], char kind, const uint8_t id[16],
                     const uint8_t tag_key[32], uint64_t used)
{
    memset(out, 0, SHERD__MARK_BYTES);
    sherd__put_u64(out, used);
    mark_tag(out + TAG_AT, out, kind, id, tag_key);
}

bool sherd__mark_get(const uint8_t in[SHERD__MARK_BYTES], char kind, const uint8_t id[16],
                     const uint8_t tag_key[32], uint64_t *used)
{
    uint8_t tag[32];
    mark_tag(tag, in, kind, id, tag_key);
    if (sodium_memcmp(tag, in + TAG_AT, sizeof tag) != 0) return false;
    *used = sherd__get_u64(in);
    return true;
}

/* ---- the folder ------------------------------------------------------------------------------ */

static int fail_path(const char *path, int code, const char *what, int e, sherd_diag *d)
{
    return sherd__fail_file(code, "set XDG_STATE_HOME to a folder of your own on a permanent disk",
                            path, what, e, d);
}

/* Creates the missing folders of a path and syncs each new entry. */
static int make_folders(char *path, sherd_diag *d)
{
    for (char *at = path + 1;; at++) {
        char end = *at;
        if (end != '/' && end != '\0') continue;
        *at = '\0';
        int made = mkdir(path, 0700), e = errno, err = SHERD_OK;
        if (made != 0 && e != EEXIST) err = fail_path(path, SHERD_EOPEN, "make this folder", e, d);
        char *slash = strrchr(path, '/');
        if (made == 0 && slash && slash != path) {
            *slash = '\0';
            err = sherd__file_sync_folder(path, d);
            *slash = '/';
        }
        *at = end;
        if (err || end == '\0') return err;
    }
}

int sherd__state_folder(char **out, const char *folder, sherd_diag *d)
{
    struct stat st;
    *out = NULL;
    char *path = folder ? sherd__strdup(folder)
                        : sherd__user_folder("XDG_STATE_HOME", ".local/state", "sherd/masks");
    if (!path)
        return folder ? sherd__fail_memory(d, "the name of the folder of counters")
                      : sherd__fail(d, SHERD_EOPEN, "set HOME or XDG_STATE_HOME",
                                    "there is no folder for the counters of masks");
    int err = *path ? make_folders(path, d)
                    : fail_path(path, SHERD_EOPEN, "use this path", ENOENT, d);
    if (!err && stat(path, &st) != 0) err = fail_path(path, SHERD_EOPEN, "examine it", errno, d);
    if (!err && (!S_ISDIR(st.st_mode) || !sherd__owned(&st)))
        err = sherd__fail(d, SHERD_EOPEN,
                          "chmod 700 it, or set XDG_STATE_HOME to a folder of your own",
                          "%s: others can write here, and so change which masks count as used",
                          sherd__path_tail(path));
    if (err) sherd__free(path);
    else *out = path;
    return err;
}

/* ---- counters -------------------------------------------------------------------------------- */

/* Returns "FOLDER/32 digits", which the caller frees with sherd__free, or NULL. */
static char *counter_path(const char *folder, const uint8_t id[16])
{
    char hex[NAME];
    size_t size = strlen(folder) + 1 + sizeof hex;
    char *path = sherd__alloc(size);
    if (path) snprintf(path, size, "%s/%s", folder, sodium_bin2hex(hex, sizeof hex, id, 16));
    return path;
}

static int write_counter(int fd, const uint8_t mark[SHERD__MARK_BYTES])
{
    int e = sherd__write_all(fd, 0, mark, SHERD__MARK_BYTES);
    return e == 0 && fsync(fd) != 0 ? errno : e;
}

int sherd__counter_new(sherd__counter of, sherd_diag *d)
{
    uint8_t mark[SHERD__MARK_BYTES];
    char *path = counter_path(of.folder, of.id);
    if (!path) return sherd__fail_memory(d, "the name of a counter");
    int err = SHERD_OK, fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        err = fail_path(path, SHERD_EOPEN, "make this counter", errno, d);
    } else {
        sherd__mark_put(mark, 'C', of.id, of.tag_key, 0);
        int e = write_counter(fd, mark);
        close(fd);
        err = e ? fail_path(path, SHERD_EIO, "write it", e, d)
                : sherd__file_sync_folder(of.folder, d);
    }
    sherd__free(path);
    return err;
}

static int open_counter(int *fd, const char *path, bool use, const char *name, sherd_diag *d)
{
    *fd = open(path, (use ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0 && errno == ENOENT)
        return sherd__fail(d, SHERD_EEXPOSURE,
                           "use masks on the machine and account that prepared "
                           "them, or prepare new ones",
                           "%s: its counter %s is missing: it is unknown which rows were used",
                           name, sherd__path_tail(path));
    if (*fd < 0) return fail_path(path, SHERD_EOPEN, "open it", errno, d);
    if (!use || flock(*fd, LOCK_EX | LOCK_NB) == 0) return SHERD_OK;
    return errno == EWOULDBLOCK
               ? sherd__fail(d, SHERD_EBUSY, "wait for it, or prepare masks of its own",
                             "%s: another run is using these masks, or a copy of them", name)
               : fail_path(path, SHERD_EIO, "lock it", errno, d);
}

int sherd__counter_open(int *fd, sherd__counter of, bool use, const char *name, uint64_t *used,
                        sherd_diag *d)
{
    uint8_t mark[SHERD__MARK_BYTES + 1];
    *fd = -1;
    char *path = counter_path(of.folder, of.id);
    if (!path) return sherd__fail_memory(d, "the name of a counter");
    int err = open_counter(fd, path, use, name, d);
    if (!err) {
        ssize_t got = pread(*fd, mark, sizeof mark, 0);
        if (got < 0) err = fail_path(path, SHERD_EIO, "read it", errno, d);
        else if (got != SHERD__MARK_BYTES || !sherd__mark_get(mark, 'C', of.id, of.tag_key, used))
            err = sherd__fail(d, SHERD_EFORMAT, "prepare new masks; use none of this file's",
                              "%s: damaged or edited: it is unknown which rows of %s were used",
                              sherd__path_tail(path), name);
    }
    if (*fd >= 0 && (err || !use)) {
        close(*fd);
        *fd = -1;
    }
    sherd__free(path);
    return err;
}

int sherd__counter_move(int fd, sherd__counter of, uint64_t used, sherd_diag *d)
{
    uint8_t mark[SHERD__MARK_BYTES];
    sherd__mark_put(mark, 'C', of.id, of.tag_key, used);
    int e = write_counter(fd, mark);
    if (e) return fail_path(of.folder, SHERD_EIO, "write the counter of used masks", e, d);
    return sherd__file_sync_folder(of.folder, d);
}
