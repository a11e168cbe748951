/*
 * Files: atomic writing, where the complete file appears or nothing does, and reading as an array
 * of bytes.
 *
 * Writing. Bytes go to a file without a name (O_TMPFILE) in the folder of the target. Commit syncs
 * it, gives it its name and syncs the folder. Until then an existing file of that name is
 * unchanged, and a process that is killed (kill -9 included) leaves nothing behind, because the new
 * file has no name. If the target exists, Linux cannot link over it, so the new file has the hidden
 * name ".NAME.sherd-K" between two system calls, linkat and rename. If the file system does not
 * support O_TMPFILE (NFS, FAT), the file has that name while it is written. A leftover file is
 * recognised because its lock ended with its writer; the next write of the same target removes it.
 *
 * An existing target that is not a regular file (/dev/stdout, a pipe) is written directly. A
 * symbolic link is followed: the file that it refers to is replaced. With SHERD__FILE_PUBLIC an
 * existing file keeps its permissions. With SHERD__FILE_DERIVED links are refused, and permissions
 * are only taken away, since others may have put the name there.
 *
 * Callers that set RLIMIT_FSIZE must ignore SIGXFSZ, and callers that write to pipes must ignore
 * SIGPIPE (the command does both): the library does not change signal handling.
 */
#ifndef STORE_FILE_H
#define STORE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

typedef struct sherd__file sherd__file;

typedef enum sherd__file_kind {
    SHERD__FILE_PUBLIC,  /* 0666 less the umask */
    SHERD__FILE_PRIVATE, /* 0600, even if an existing file has another mode */
    SHERD__FILE_DERIVED  /* 0666 less the umask and less what an existing file of ours denies, under
                            a name that the user did not give: an existing name that is not a
                            regular file is refused, symbolic links too */
} sherd__file_kind;

/**
 * Starts a new file that will become `path`. The caller ends it with sherd__file_commit or
 * sherd__file_abort. Errors: SHERD_EOPEN if the folder is missing or not accessible, or if the
 * target is a folder or a file that we may not write; SHERD_ENOMEM.
 */
int sherd__file_begin(sherd__file **out, const char *path, sherd__file_kind kind,
                      sherd_diag *d) SHERD_MUST;
/** Checks that sherd__file_begin would succeed, and changes nothing. A pipe is not opened, because
 *  its reader would take the end of the check for the end of the data. Errors of
 *  sherd__file_begin. */
int sherd__file_check(const char *path, sherd__file_kind kind, sherd_diag *d) SHERD_MUST;
/** Reserves `size` bytes on the disk, so that a full disk is detected before the work and not after
 *  it. File systems that cannot reserve space count as successful. Errors: SHERD_EIO. */
int sherd__file_reserve(sherd__file *f, uint64_t size, sherd_diag *d) SHERD_MUST;
/** Appends len bytes. Errors: SHERD_EIO if not all were written (full disk, quota, size limit,
 *  closed pipe). */
int sherd__file_write(sherd__file *f, const void *bytes, size_t len, sherd_diag *d) SHERD_MUST;
/** Writes at an offset, for formats that complete their header at the end. Errors:
 *  SHERD_EUNSUPPORTED on a pipe. */
int sherd__file_write_at(sherd__file *f, uint64_t offset, const void *bytes, size_t len,
                         sherd_diag *d) SHERD_MUST;
/** Makes the file at least `size` bytes long; bytes that were never written read as zero. Errors:
 *  those of sherd__file_write_at. */
int sherd__file_stretch(sherd__file *f, uint64_t size, sherd_diag *d) SHERD_MUST;
/** Ends the file after `size` bytes, which gives back what was reserved beyond them. Errors: those
 *  of sherd__file_write_at. */
int sherd__file_cut(sherd__file *f, uint64_t size, sherd_diag *d) SHERD_MUST;
/** Returns the descriptor, for libraries that write by themselves. It is readable and writable, and
 *  still belongs to f. Returns -1 if the target is not a regular file. */
int sherd__file_fd(const sherd__file *f);
/** Syncs the data written so far, so that the commit only has to publish the name. With two files
 *  that belong together, the second commit is then unlikely to fail after the first. Errors:
 *  SHERD_EIO. */
int sherd__file_sync(sherd__file *f, sherd_diag *d) SHERD_MUST;
/** Publishes the file under its name, or removes it on failure. Frees f in either case. *published
 *  (may be NULL) receives whether the name refers to the new file; otherwise an existing file is
 *  unchanged. Errors: SHERD_EIO, also if the file is published but its folder could not be synced;
 *  SHERD_EOPEN. */
int sherd__file_publish(sherd__file *f, bool *published, sherd_diag *d) SHERD_MUST;
/** sherd__file_publish for callers to whom any error is a failure. */
int sherd__file_commit(sherd__file *f, sherd_diag *d) SHERD_MUST;
/** Discards the written data and frees f. NULL is allowed. */
void sherd__file_abort(sherd__file *f);

/** Returns the end of a path that is too long for a message, or the path. */
const char *sherd__path_tail(const char *path);
/** Returns MEMBER of a path FILE.npz:MEMBER, and writes FILE.npz to `file`. Returns NULL, without
 *  writing to `file`, if the path has another form or is that of a file. */
const char *sherd__path_member(const char *path, char *file, size_t size);
/** Returns true if both name one regular file or folder, or would once they are created: existing
 *  ones are compared by device and inode, others by the resolved folder and the name. */
bool sherd__path_same(const char *a, const char *b);
/** A path that a call uses. */
typedef struct sherd__path_use {
    const char *what; /* for messages: "--output", "an operand" */
    const char *path; /* NULL: none */
    bool written;     /* replaced, as opposed to only read */
} sherd__path_use;
/**
 * Returns SHERD_EINVAL if a file that is written is also another one of the list. A path
 * FILE.npz:MEMBER that is read also counts as FILE.npz. Devices and pipes do not count as files.
 */
int sherd__paths_apart(const sherd__path_use *all, size_t len, sherd_diag *d) SHERD_MUST;
/** Records that a system call failed on a file, and returns `code`: the end of the path, "cannot ",
 *  `what` and the text of e, an errno. */
int sherd__fail_file(int code, const char *hint, const char *path, const char *what, int e,
                     sherd_diag *d);

/** Writes all bytes at an offset, or at the current position if offset < 0. Continues after signals
 *  and short writes. Returns 0 or an errno. */
int sherd__write_all(int fd, int64_t offset, const void *bytes, size_t len) SHERD_MUST;

/** Removes the hidden files that killed writers left in a folder of ours (open as `dir`). Files of
 *  live writers, and files that cannot be removed, stay. */
void sherd__file_sweep(int dir);

/** Syncs a folder, which makes renames and removals in it durable. */
int sherd__file_sync_folder(const char *folder, sherd_diag *d) SHERD_MUST;

/*
 * Reading. A regular file above SHERD__MAP_COPY bytes is mapped. Smaller files and pipes are read
 * into memory. If another process truncates a mapped file while it is read, the system raises
 * SIGBUS, which ends a program that does not handle it (the command does, cli/bus.h); our output
 * files are then not left half written (see above). sherd__map_check detects the more usual case of
 * a file that was written to in the meantime, so that no wrong result is used.
 */
#define SHERD__MAP_COPY (256u << 10)

/** Sets a descriptor that cancels waiting: calls that wait for the writer of a pipe fail with
 *  SHERD_EINTERRUPTED when fd is readable (an eventfd of the program's signal handlers). -1, the
 *  default: they wait without limit. */
void sherd__file_stop_at(int fd);

typedef struct sherd__map {
    const uint8_t *bytes; /* never NULL while open */
    size_t len;
    void *owned; /* the members from here on are private */
    size_t owned_len;
    bool mapped;
    int fd;
    int64_t changed_s, changed_ns;
} sherd__map;

/**
 * Opens `path` for reading. `read_max` limits the bytes read from an input without a size (a pipe,
 * /dev/stdin). The caller closes *m with sherd__map_close. Folders, and input longer than read_max,
 * are refused. Errors: SHERD_EOPEN, SHERD_EIO, SHERD_ENOMEM, SHERD_EINTERRUPTED.
 */
int sherd__map_open(sherd__map *m, const char *path, size_t read_max, sherd_diag *d) SHERD_MUST;
/** Returns SHERD_EIO if the file has been written to or truncated since it was opened. */
int sherd__map_check(const sherd__map *m, const char *path, sherd_diag *d) SHERD_MUST;
/** Closes *m. It may be zeroed, and may be closed twice. */
void sherd__map_close(sherd__map *m);

/**
 * Reads a small file (keys, JSON) as a whole. The caller frees *bytes with sherd__free; a NUL
 * follows the last byte. Errors: SHERD_EFORMAT if the file is larger than len_max.
 */
int sherd__file_read_small(uint8_t **bytes, size_t *len, const char *path, size_t len_max,
                           sherd_diag *d) SHERD_MUST;

#endif
