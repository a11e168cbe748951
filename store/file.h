/*
 * Files: writing one so that it is either wholly there or not there at all, and reading one as a
 * run of bytes.
 *
 * Writing. Bytes go to a file without a name (O_TMPFILE) in the folder of the target; commit syncs
 * it, gives it its name and syncs the folder. Until then an earlier file of that name is untouched,
 * and a process that is killed (kill -9 included) leaves nothing, because nothing had a name. Where
 * the target exists already Linux cannot link over it, so the new file has the hidden name
 * ".NAME.sherd-K" between two system calls, linkat and rename; where the file system has no
 * O_TMPFILE (NFS, FAT) it has that name for as long as it is written. A file left behind so is
 * recognised by its lock, which died with its writer, and removed by the next write of the same
 * target.
 *
 * A target that exists and is no regular file (/dev/stdout, a pipe) is written straight through. A
 * symbolic link is followed: the file that it names is replaced. An existing file keeps its
 * permissions under SHERD__FILE_PUBLIC.
 *
 * Callers that set RLIMIT_FSIZE must ignore SIGXFSZ, and those that write to pipes SIGPIPE (the
 * command does both): the library touches no signal.
 */
#ifndef STORE_FILE_H
#define STORE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

typedef struct sherd__file sherd__file;

typedef enum sherd__file_kind {
    SHERD__FILE_PUBLIC, /* 0666 less the umask */
    SHERD__FILE_PRIVATE /* 0600, whatever was there before */
} sherd__file_kind;

/**
 * Starts a new file that will be `path`. SHERD_EOPEN where the folder is missing or closed to us,
 * or where the target is a folder or a file that we may not write; SHERD_ENOMEM.
 */
int sherd__file_begin(sherd__file **out, const char *path, sherd__file_kind kind,
                      sherd_diag *d) SHERD_MUST;
/** Asks the disk for `size` bytes now, so that a full one is met before the work and not after it.
 *  SHERD_EIO; file systems that cannot say count as willing. */
int sherd__file_reserve(sherd__file *f, uint64_t size, sherd_diag *d) SHERD_MUST;
/** Appends len bytes, all of them or SHERD_EIO (full disk, quota, size limit, closed pipe). */
int sherd__file_write(sherd__file *f, const void *bytes, size_t len, sherd_diag *d) SHERD_MUST;
/** Writes at an offset, for formats that come back to their head. SHERD_EUNSUPPORTED on a pipe. */
int sherd__file_write_at(sherd__file *f, uint64_t offset, const void *bytes, size_t len,
                         sherd_diag *d) SHERD_MUST;
/** Makes the file at least `size` bytes long; what was never written reads as zero. Errors as
 *  sherd__file_write_at. */
int sherd__file_stretch(sherd__file *f, uint64_t size, sherd_diag *d) SHERD_MUST;
/** Bytes appended so far. */
uint64_t sherd__file_size(const sherd__file *f);
/** The descriptor, for libraries that write by themselves; readable and writable unless the target
 *  is no regular file (then -1). Stays the file's. */
int sherd__file_fd(const sherd__file *f);
/** Puts on the disk what was written so far, so that the commit has only the name left to give; of
 *  two files that belong together the second is then unlikely to fail behind the first.
 *  SHERD_EIO. */
int sherd__file_sync(sherd__file *f, sherd_diag *d) SHERD_MUST;
/** Makes the file appear under its name, or on failure disappear, and frees f in either case.
 *  SHERD_EIO, SHERD_EOPEN: an earlier file is as it was. */
int sherd__file_commit(sherd__file *f, sherd_diag *d) SHERD_MUST;
/** Drops what was written and frees f; NULL is allowed. */
void sherd__file_abort(sherd__file *f);

/** The end of a path that is too long for a message; else the path. */
const char *sherd__path_tail(const char *path);

/** Writes all of it at an offset, or (offset < 0) where the descriptor stands, through signals and
 *  short writes. 0 or an errno. */
int sherd__write_all(int fd, int64_t offset, const void *bytes, size_t len) SHERD_MUST;

/** Removes the hidden names that writers who were killed have left in a folder of ours (open as
 *  `dir`); what a living one writes stays, and a name that cannot be removed. */
void sherd__file_sweep(int dir);

/** Syncs a folder: what makes a rename or a removal in it last. */
int sherd__file_sync_folder(const char *folder, sherd_diag *d) SHERD_MUST;

/*
 * Reading. A regular file above SHERD__MAP_COPY bytes is mapped; smaller ones, and pipes, are read
 * into memory. A mapped file that another process cuts short while we read is a SIGBUS, which kills
 * a program that does not catch it (the command does, cli/bus.h): nothing of ours is then left half
 * written (see above). sherd__map_check tells the usual case, a file that was written to meanwhile,
 * apart from a wrong result.
 */
#define SHERD__MAP_COPY (256u << 10)

/** What waits for the writer of a pipe ends with SHERD_EINTERRUPTED as soon as fd can be read (an
 *  eventfd of the program's signal handlers). -1, as at the start: it waits as long as it takes. */
void sherd__file_stop_at(int fd);

typedef struct sherd__map {
    const uint8_t *bytes; /* never NULL once open */
    size_t len;
    void *owned; /* what follows is private */
    size_t owned_len;
    bool mapped;
    int fd;
    int64_t changed_s, changed_ns;
} sherd__map;

/**
 * Opens `path` for reading. `read_max` bounds what is read from something that has no size (a pipe,
 * /dev/stdin). SHERD_EOPEN, SHERD_EIO, SHERD_ENOMEM, SHERD_EINTERRUPTED; folders, and more than
 * read_max, are refused.
 */
int sherd__map_open(sherd__map *m, const char *path, size_t read_max, sherd_diag *d) SHERD_MUST;
/** SHERD_EIO if the file has been written to or cut since it was opened. */
int sherd__map_check(const sherd__map *m, const char *path, sherd_diag *d) SHERD_MUST;
/** Safe on a zeroed struct and twice. */
void sherd__map_close(sherd__map *m);

/**
 * Reads a small file (keys, JSON) whole: *bytes is the caller's (sherd__free) and has a NUL behind
 * its last byte. SHERD_EFORMAT for one larger than len_max.
 */
int sherd__file_read_small(uint8_t **bytes, size_t *len, const char *path, size_t len_max,
                           sherd_diag *d) SHERD_MUST;

#endif
