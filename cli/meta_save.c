/* Checks before writing a metadata file, which may take hours and fill disks, and progress during
 * it. */
#include "cli/meta.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "cli/progress.h"
#include "core/clock.h"

#define EXPANDED_MAX 0x1p40 /* bytes; each entry takes at least one */
/* A smaller expanded file is written too quickly to show progress. */
#define PROGRESS_FROM ((uint64_t)1 << 30)

/* Returns the free bytes at `path`; UINT64_MAX if unknown or if `path` is not a regular file. */
static uint64_t free_at(const char *path)
{
    char folder[PATH_MAX];
    struct statvfs fs;
    struct stat st;
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) + 1 : 0;
    if ((stat(path, &st) == 0 && !S_ISREG(st.st_mode)) || len >= sizeof folder) return UINT64_MAX;
    memcpy(folder, path, len);
    folder[len] = '\0';
    if (statvfs(len ? folder : ".", &fs) != 0) return UINT64_MAX;
    return (uint64_t)fs.f_bavail * fs.f_frsize;
}

/* Deflate reduces an array to a quarter at best. */
int sherd__meta_room(const sherd_meta *meta, const sherd_meta_save_options *opt, const char *path,
                     sherd_diag *d)
{
    static const char hint[] = "the seed form (--form seed) holds the same in 32 bytes";
    double entries = 0;
    uint64_t bytes = 0, room = opt->expanded ? free_at(path) : UINT64_MAX;
    char needs[24], has[24];
    for (size_t i = 0; i < sherd_meta_count(meta) && opt->expanded; i++) {
        const sherd_meta_operation *op = sherd_meta_at(meta, i);
        entries += (double)sherd_meta_table_rows(op) * (double)op->m +
                   (double)op->k * (double)op->n;
        if (entries > EXPANDED_MAX)
            return sherd__fail(d, SHERD_EINVAL, hint,
                               "the expanded form of %s and what is before it would be more than "
                               "%s",
                               op->name, sherd__cli_bytes((uint64_t)EXPANDED_MAX, needs));
        bytes += sherd_meta_bytes(meta, i);
    }
    if ((opt->deflate ? bytes / 4 : bytes) <= room) return SHERD_OK;
    return sherd__fail(d, SHERD_EIO, hint, "%s needs %s, and its disk has %s left", path,
                       sherd__cli_bytes(bytes, needs), sherd__cli_bytes(room, has));
}

/* ---- progress and Ctrl-C --------------------------------------------------------------------- */

typedef struct watcher {
    sherd__progress_line line;
    bool quiet;
} watcher;

static bool interrupted(void *ctx)
{
    (void)ctx;
    return sherd__cli_interrupted() != 0;
}

static void on_progress(void *ctx, const sherd_progress *p)
{
    watcher *w = ctx;
    if (!w->quiet && p->total >= PROGRESS_FROM)
        sherd__progress_update(&w->line, p->done >> 20, p->total >> 20, NULL, sherd__clock_s());
}

int sherd__meta_write(sherd__cli *cli, sherd_meta *meta, bool verify,
                      const sherd_meta_save_options *opt, uint64_t *size, sherd_diag *d)
{
    watcher w = { .quiet = cli->quiet };
    sherd__progress_init(&w.line, stderr, SHERD__PROGRESS_AUTO, cli->title, "MiB",
                         sherd__clock_s());
    sherd_meta_set_hooks(meta, &(sherd_hooks){ interrupted, NULL, on_progress, &w });
    int err = verify ? sherd_meta_verify(meta, d) : SHERD_OK;
    if (!err && opt) err = sherd_meta_save(meta, sherd__opt_text(cli, "output"), opt, size, d);
    sherd_meta_set_hooks(meta, NULL);
    sherd__progress_fini(&w.line);
    return err;
}
