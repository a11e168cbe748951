/*
 * Atomic replacement of a file. The new bytes are written to an O_TMPFILE inode without a name, so
 * a killed process leaves nothing to clean up. A hidden name is needed only to replace an existing
 * file, for the time between linkat and rename. There are few hidden names, and they are fixed
 * (".NAME.sherd-0" and so on). A live writer holds a lock on its file. Files left by a dead writer
 * can therefore be distinguished from those of a live one without a registry, and are removed.
 *
 * All operations use a descriptor of the folder, so renaming the folder meanwhile has no effect. An
 * existing file under a hidden name is not trusted (its owner and type are checked).
 */
#include "store/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/diag.h"

/* concurrent writers of one target, including leftovers between live ones */
#define HIDDEN_MAX 64
#define HIDDEN_STEM 200 /* bytes of the target's name that the hidden name contains */
#define HIDDEN_SIZE (HIDDEN_STEM + 24)
#define WRITE_CHUNK ((size_t)1 << 30)
#define PATH_SHOWN 160

struct sherd__file {
    char *path; /* as given by the caller, for messages */
    char *name; /* of the target in its folder; NULL if the target is written directly */
    int dir, fd;
    bool hidden_set; /* `hidden` exists and belongs to us */
    bool replaces;   /* a regular file with this name existed at the start */
    uint64_t size;
    char hidden[HIDDEN_SIZE];
};

const char *sherd__path_tail(const char *path)
{
    size_t len = strlen(path);
    return len > PATH_SHOWN ? path + (len - PATH_SHOWN) : path;
}

const char *sherd__path_member(const char *path, char *file, size_t size)
{
    static const char mark[] = ".npz:";
    const char *at = strstr(path, mark);
    size_t len = at ? (size_t)(at - path) + sizeof mark - 2 : 0;
    if (!at || len >= size || access(path, F_OK) == 0) return NULL;
    memcpy(file, path, len);
    file[len] = '\0';
    return at + sizeof mark - 1;
}

static const char *reason(int e, char buf[96])
{
    return strerror_r(e, buf, 96);
}

int sherd__fail_file(int code, const char *hint, const char *path, const char *what, int e,
                     sherd_diag *d)
{
    char buf[96];
    return sherd__fail(d, code, hint, "%s: cannot %s: %s", sherd__path_tail(path), what,
                       reason(e, buf));
}

static int fail_open(const char *path, int e, sherd_diag *d)
{
    if (e == ENOMEM) return sherd__fail_memory(d, "%s", path);
    return sherd__fail_file(SHERD_EOPEN, "check the path and its permissions", path,
                            "open for writing", e, d);
}

static int fail_write(const sherd__file *f, int e, sherd_diag *d)
{
    char buf[96];
    const char *hint = "check the disk and the file system";
    if (e == ENOSPC || e == EDQUOT) hint = "free some room, or write to another disk";
    if (e == EFBIG) hint = "raise the file size limit (ulimit -f)";
    if (e == EPIPE) hint = "the reader closed the pipe";
    return sherd__fail(d, SHERD_EIO, hint, "%s: cannot write at byte %llu: %s",
                       sherd__path_tail(f->path), (unsigned long long)f->size, reason(e, buf));
}

/* ---- hidden names ---------------------------------------------------------------------------- */

/* Removes a file that a dead writer left under `name`. Returns true if the name may be free now. */
static bool sweep(int dir, const char *name)
{
    struct stat held, there;
    bool gone = false;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT;
    if (fstat(fd, &held) == 0 && S_ISREG(held.st_mode) && held.st_uid == geteuid() &&
        flock(fd, LOCK_EX | LOCK_NB) == 0) {
        bool same = fstatat(dir, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
                    there.st_ino == held.st_ino && there.st_dev == held.st_dev;
        gone = !same || unlinkat(dir, name, 0) == 0;
    }
    close(fd);
    return gone;
}

/* Matches ".NAME.sherd-7". */
static bool is_hidden(const char *name)
{
    const char *end = strrchr(name, '-');
    static const char mark[] = ".sherd";
    return name[0] == '.' && end && end - name > (ptrdiff_t)sizeof mark - 1 &&
           memcmp(end - (sizeof mark - 1), mark, sizeof mark - 1) == 0 && end[1] &&
           strspn(end + 1, "0123456789") == strlen(end + 1);
}

void sherd__file_sweep(int dir)
{
    int fd = dup(dir);
    DIR *all = fd >= 0 ? fdopendir(fd) : NULL;
    if (!all) {
        if (fd >= 0) close(fd);
        return;
    }
    rewinddir(all);
    for (struct dirent *e; (e = readdir(all));)
        if (is_hidden(e->d_name)) (void)sweep(dir, e->d_name);
    closedir(all);
}

static int link_as(const sherd__file *f, const char *name)
{
    char self[40];
    snprintf(self, sizeof self, "/proc/self/fd/%d", f->fd);
    return linkat(AT_FDCWD, self, f->dir, name, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

/* Creates and locks f->hidden. A concurrent sweep that found the file unlocked has unlinked it by
 * the time we get the lock, which is checked. */
static int create_hidden(sherd__file *f, mode_t mode)
{
    struct stat st;
    int fd = openat(f->dir, f->hidden, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0) return errno;
    if (flock(fd, LOCK_EX) == 0 && fstat(fd, &st) == 0 && st.st_nlink == 0) {
        close(fd);
        return EEXIST;
    }
    f->fd = fd;
    return 0;
}

/* Claims a hidden name: links the nameless file there, or creates a file (fd < 0). Returns 0 or an
 * errno. */
static int claim_hidden(sherd__file *f, mode_t mode)
{
    bool create = f->fd < 0;
    int e = EEXIST;
    for (int k = 0; k < HIDDEN_MAX && e == EEXIST; k++) {
        snprintf(f->hidden, sizeof f->hidden, ".%.*s.sherd-%d", HIDDEN_STEM, f->name, k);
        for (int tries = 0; tries < 2 && e == EEXIST; tries++) {
            e = create ? create_hidden(f, mode) : link_as(f, f->hidden);
            if (e == EEXIST && !sweep(f->dir, f->hidden)) break;
        }
    }
    f->hidden_set = e == 0;
    return e;
}

/* ---- starting -------------------------------------------------------------------------------- */

/* Returns true for paths that denote a descriptor, even if that is a regular file. */
static bool is_descriptor(const char *path)
{
    return !strncmp(path, "/dev/std", 8) || !strncmp(path, "/dev/fd/", 8) ||
           !strncmp(path, "/proc/", 6);
}

static int begin_direct(sherd__file *f, sherd_diag *d)
{
    f->fd = open(f->path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    return f->fd < 0 ? fail_open(f->path, errno, d) : SHERD_OK;
}

/* Splits `full` into an open folder and a name. */
static int open_folder(sherd__file *f, const char *full, sherd_diag *d)
{
    const char *slash = strrchr(full, '/');
    const char *name = slash ? slash + 1 : full;
    if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
        return sherd__fail(d, SHERD_EOPEN, "give the name of a file",
                           "\"%s\" is not the name of a file", sherd__path_tail(f->path));
    char *folder = sherd__strdup(full);
    f->name = sherd__strdup(name);
    int err = SHERD_OK;
    if (!folder || !f->name) {
        err = sherd__fail_memory(d, "the name of a file");
    } else {
        folder[slash ? (slash == full ? 1 : slash - full) : 0] = '\0';
        f->dir = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (f->dir < 0 && errno == EACCES) /* writable but not readable: cannot be synced */
            f->dir = open(slash ? folder : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (f->dir < 0) err = fail_open(f->path, errno, d);
    }
    sherd__free(folder);
    return err;
}

static int open_nameless(sherd__file *f, mode_t mode)
{
    char self[40];
    f->fd = openat(f->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    if (f->fd < 0) return errno;
    snprintf(self, sizeof self, "/proc/self/fd/%d", f->fd);
    if (flock(f->fd, LOCK_EX | LOCK_NB) == 0 && access(self, F_OK) == 0) return 0;
    close(f->fd);
    f->fd = -1;
    return EOPNOTSUPP;
}

/* Takes away the permissions that `old` denies, if it is ours. */
static void keep_stricter(int fd, const struct stat *old)
{
    struct stat st;
    if (old->st_uid == geteuid() && fstat(fd, &st) == 0)
        (void)fchmod(fd, st.st_mode & old->st_mode & 0777);
}

static int begin_new(sherd__file *f, const struct stat *old, sherd__file_kind kind, sherd_diag *d)
{
    mode_t mode = kind == SHERD__FILE_PRIVATE ? 0600 : 0666;
    int e = open_nameless(f, mode);
    if (e == EOPNOTSUPP || e == EISDIR || e == EINVAL || e == ENOENT) e = claim_hidden(f, mode);
    if (e) return fail_open(f->path, e, d);
    if (old && kind == SHERD__FILE_PUBLIC) (void)fchmod(f->fd, old->st_mode & 0777);
    if (old && kind == SHERD__FILE_DERIVED) keep_stricter(f->fd, old);
    f->replaces = old != NULL;
    return SHERD_OK;
}

/* The rename at the end replaces the name itself, also if it has become a link by then. */
static int begin_derived(sherd__file *f, sherd_diag *d)
{
    struct stat st;
    bool old = lstat(f->path, &st) == 0;
    if (!old && errno != ENOENT) return fail_open(f->path, errno, d);
    if (old && !S_ISREG(st.st_mode))
        return sherd__fail(d, SHERD_EOPEN, "remove it, or write to another folder",
                           "%s: is not a regular file", sherd__path_tail(f->path));
    int err = open_folder(f, f->path, d);
    return err ? err : begin_new(f, old ? &st : NULL, SHERD__FILE_DERIVED, d);
}

static int begin(sherd__file *f, sherd__file_kind kind, sherd_diag *d)
{
    struct stat st;
    if (kind == SHERD__FILE_DERIVED) return begin_derived(f, d);
    if (stat(f->path, &st) != 0) {
        if (errno != ENOENT) return fail_open(f->path, errno, d);
        if (lstat(f->path, &st) != 0) {
            int err = open_folder(f, f->path, d);
            return err ? err : begin_new(f, NULL, kind, d);
        }
        if (S_ISLNK(st.st_mode))
            return sherd__fail(d, SHERD_EOPEN, "remove the link, or create what it names",
                               "%s: is a symbolic link to a file that does not exist",
                               sherd__path_tail(f->path));
    } /* otherwise another process has created it in between */
    if (S_ISDIR(st.st_mode)) return fail_open(f->path, EISDIR, d);
    if (!S_ISREG(st.st_mode) || is_descriptor(f->path)) return begin_direct(f, d);
    if (access(f->path, W_OK) != 0) return fail_open(f->path, errno, d);
    char *full = realpath(f->path, NULL);
    if (!full) return fail_open(f->path, errno, d);
    int err = open_folder(f, full, d);
    free(full);
    return err ? err : begin_new(f, &st, kind, d);
}

int sherd__file_begin(sherd__file **out, const char *path, sherd__file_kind kind, sherd_diag *d)
{
    *out = NULL;
    sherd__file *f = sherd__calloc(1, sizeof *f);
    if (!f) return sherd__fail_memory(d, "%s", path);
    f->dir = f->fd = -1;
    f->path = sherd__strdup(path);
    int err = f->path ? begin(f, kind, d) : sherd__fail_memory(d, "%s", path);
    if (err) {
        sherd__file_abort(f);
        return err;
    }
    *out = f;
    return SHERD_OK;
}

int sherd__file_check(const char *path, sherd__file_kind kind, sherd_diag *d)
{
    struct stat st;
    sherd__file *f;
    if (stat(path, &st) == 0 && S_ISFIFO(st.st_mode))
        return access(path, W_OK) == 0 ? SHERD_OK : fail_open(path, errno, d);
    int err = sherd__file_begin(&f, path, kind, d);
    sherd__file_abort(f);
    return err;
}

/* ---- writing --------------------------------------------------------------------------------- */

int sherd__file_reserve(sherd__file *f, uint64_t size, sherd_diag *d)
{
    if (!f->name || size == 0) return SHERD_OK;
    if (size > INT64_MAX) return fail_write(f, EFBIG, d);
    int e;
    do {
        e = fallocate(f->fd, 0, 0, (off_t)size) == 0 ? 0 : errno;
    } while (e == EINTR);
    if (e == 0 || e == EOPNOTSUPP || e == ENOSYS || e == EINVAL) return SHERD_OK;
    char buf[96];
    return sherd__fail(d, SHERD_EIO,
                       e == EFBIG ? "raise the file size limit (ulimit -f)"
                                  : "free some room, or write to another disk",
                       "%s: no room for %llu bytes: %s", sherd__path_tail(f->path),
                       (unsigned long long)size, reason(e, buf));
}

int sherd__write_all(int fd, int64_t offset, const void *from, size_t len)
{
    const uint8_t *bytes = from;
    while (len > 0) {
        size_t want = len < WRITE_CHUNK ? len : WRITE_CHUNK;
        ssize_t got = offset < 0 ? write(fd, bytes, want) : pwrite(fd, bytes, want, offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno;
        if (got == 0) return EIO;
        bytes += got;
        len -= (size_t)got;
        if (offset >= 0) offset += got;
    }
    return 0;
}

int sherd__file_write(sherd__file *f, const void *bytes, size_t len, sherd_diag *d)
{
    if (len > INT64_MAX || f->size > INT64_MAX - len) return fail_write(f, EFBIG, d);
    int e = sherd__write_all(f->fd, f->name ? (int64_t)f->size : -1, bytes, len);
    if (e) return fail_write(f, e, d);
    f->size += len;
    return SHERD_OK;
}

int sherd__file_write_at(sherd__file *f, uint64_t offset, const void *bytes, size_t len,
                         sherd_diag *d)
{
    if (!f->name)
        return sherd__fail(d, SHERD_EUNSUPPORTED, "write to a regular file",
                           "%s: cannot be written out of order", sherd__path_tail(f->path));
    if (len > INT64_MAX || offset > INT64_MAX - len) return fail_write(f, EFBIG, d);
    int e = sherd__write_all(f->fd, (int64_t)offset, bytes, len);
    return e ? fail_write(f, e, d) : SHERD_OK;
}

int sherd__file_stretch(sherd__file *f, uint64_t size, sherd_diag *d)
{
    struct stat st;
    if (!f->name) return sherd__file_write_at(f, size, NULL, 0, d);
    if (size > INT64_MAX) return fail_write(f, EFBIG, d);
    if (fstat(f->fd, &st) != 0) return fail_write(f, errno, d);
    if ((uint64_t)st.st_size < size && ftruncate(f->fd, (off_t)size) != 0)
        return fail_write(f, errno, d);
    return SHERD_OK;
}

int sherd__file_cut(sherd__file *f, uint64_t size, sherd_diag *d)
{
    if (!f->name) return sherd__file_write_at(f, size, NULL, 0, d);
    if (size > INT64_MAX) return fail_write(f, EFBIG, d);
    return ftruncate(f->fd, (off_t)size) == 0 ? SHERD_OK : fail_write(f, errno, d);
}

int sherd__file_fd(const sherd__file *f)
{
    return f->name ? f->fd : -1;
}

/* ---- finishing ------------------------------------------------------------------------------- */

static int sync_fd(int fd)
{
    int e;
    do {
        e = fsync(fd) == 0 ? 0 : errno;
    } while (e == EINTR);
    return e == EINVAL || e == EROFS || e == EBADF ? 0 : e; /* this kind of file cannot be synced */
}

/* Gives the synced file its name. Returns 0 or an errno. */
static int publish(sherd__file *f)
{
    int e = EEXIST;
    if (!f->hidden_set && !f->replaces) e = link_as(f, f->name);
    if (e != EEXIST) return e;
    e = f->hidden_set ? 0 : claim_hidden(f, 0);
    if (e) return e;
    if (renameat(f->dir, f->hidden, f->dir, f->name) != 0) return errno;
    f->hidden_set = false;
    return 0;
}

int sherd__file_sync(sherd__file *f, sherd_diag *d)
{
    int e = f->name ? sync_fd(f->fd) : 0;
    return e ? fail_write(f, e, d) : SHERD_OK;
}

static int commit(sherd__file *f, bool *published, sherd_diag *d)
{
    if (!f->name) {
        int fd = f->fd;
        f->fd = -1;
        *published = close(fd) == 0 || errno == EINTR;
        return *published ? SHERD_OK : fail_write(f, errno, d);
    }
    int err = sherd__file_sync(f, d);
    if (err) return err;
    int e = publish(f);
    if (e) return fail_open(f->path, e, d);
    *published = true;
    e = sync_fd(f->dir);
    char buf[96];
    return e == 0 ? SHERD_OK
                  : sherd__fail(d, SHERD_EIO, "check the disk",
                                "%s: written, but its folder could not be synced: %s",
                                sherd__path_tail(f->path), reason(e, buf));
}

int sherd__file_publish(sherd__file *f, bool *published, sherd_diag *d)
{
    bool there = false;
    int err = commit(f, &there, d);
    sherd__file_abort(f);
    if (published) *published = there;
    return err;
}

int sherd__file_commit(sherd__file *f, sherd_diag *d)
{
    return sherd__file_publish(f, NULL, d);
}

void sherd__file_abort(sherd__file *f)
{
    if (!f) return;
    if (f->hidden_set) (void)unlinkat(f->dir, f->hidden, 0);
    if (f->fd >= 0) close(f->fd);
    if (f->dir >= 0) close(f->dir);
    sherd__free(f->name);
    sherd__free(f->path);
    sherd__free(f);
}

int sherd__file_sync_folder(const char *folder, sherd_diag *d)
{
    char buf[96];
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int e = fd < 0 ? errno : sync_fd(fd);
    if (fd >= 0) close(fd);
    return e == 0 ? SHERD_OK
                  : sherd__fail(d, SHERD_EIO, "check the disk", "%s: cannot sync folder: %s",
                                sherd__path_tail(folder), reason(e, buf));
}
