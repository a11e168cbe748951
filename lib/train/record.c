/*
 * Data that a record of a training needs in addition to its bytes. Data that are kept at the nodes
 * are sent in the order of the training, without the held-out rows. rows.npy maps each sent row to
 * the row of the input data, so that an audit can compare what nodes saw with the input data.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "lib/train/training.h"
#include "scheduler/cluster/internal.h"
#include "sherd/npy.h"

static int save(const char *dir, const uint32_t *rows, size_t n, sherd_diag *d)
{
    char path[4400];
    int len = snprintf(path, sizeof path, "%s/rows.npy", dir);
    if (len < 0 || (size_t)len >= sizeof path)
        return sherd__fail(d, SHERD_EOPEN, "give a shorter one", "--record: the path is too long");
    int err = sherd_npy_save(path, sherd_view_c(rows, SHERD_U32, 1, n), d);
    if (!err && chmod(path, 0600) != 0)
        err = sherd__fail(d, SHERD_EIO, NULL, "%s: cannot close it to others: %s", path,
                          strerrordesc_np(errno));
    return err;
}

int sherd__training_record_rows(const sherd_training *t, sherd_diag *d)
{
    const char *dir = t->cluster ? sherd__cluster_record_dir(t->cluster) : NULL;
    const uint32_t *order = sherd__train_order_fixed(sherd__trainer_order(t->trainer));
    const uint32_t *from = t->data->from;
    size_t n = t->data->train.x.rows;
    if (!dir || t->o.by == SHERD_BY_GRADIENTS || (!order && !from)) return SHERD_OK;
    uint32_t *rows = sherd__calloc(n, sizeof *rows);
    if (!rows) return sherd__fail_memory(d, "the numbers of %zu rows", n);
    for (size_t i = 0; i < n; i++) {
        uint32_t r = order ? order[i] : (uint32_t)i;
        rows[i] = from ? from[r] : r;
    }
    int err = save(dir, rows, n, d);
    sherd__free(rows);
    return err;
}
