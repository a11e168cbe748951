/*
 * Creates a file of masks. Its counter is published first: a file without a counter is refused,
 * whereas a counter without a file is harmless.
 */
#include "store/maskfile_form.h"

#include <sodium.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "store/file.h"
#include "store/maskfile_state.h"

typedef unsigned long long ull;

struct sherd__maskfile_writer {
    sherd__maskfile_head head;
    sherd__file *file;
    char *state;
    uint64_t rows;
    uint8_t tag_key[32];
};

static int write_head(sherd__maskfile_writer *w, const uint8_t root[32], sherd_diag *d)
{
    uint8_t head[SHERD__MASKFILE_HEAD];
    sherd__maskfile_head_put(head, &w->head, root, w->tag_key);
    sherd__mark_put(head + SHERD__MASKFILE_AT_MARK, 'M', w->head.id, w->tag_key, 0);
    int err = sherd__file_write(w->file, head, sizeof head, d);
    sherd__wipe(head, sizeof head);
    return err;
}

int sherd__maskfile_begin(sherd__maskfile_writer **out, sherd__maskfile_place at,
                          const sherd__maskfile_head *head, const uint8_t root[32],
                          uint8_t mask_key[32], sherd_diag *d)
{
    *out = NULL;
    if (sodium_init() < 0) return sherd__fail(d, SHERD_EINTERNAL, NULL, "libsodium does not start");
    uint64_t size = sherd__maskfile_bytes(head);
    if (size == 0)
        return sherd__fail(d, SHERD_EINVAL, "use fewer rows, and 2 to 26 bits",
                           "masks of %llu rows for a B of %llu x %llu, %u and %u bits, are not "
                           "possible",
                           (ull)head->rows, (ull)head->k, (ull)head->m, head->bits_a, head->bits_b);
    sherd__maskfile_writer *w = sherd__calloc(1, sizeof *w);
    if (!w) return sherd__fail_memory(d, "a file of masks");
    w->head = *head;
    sherd__maskfile_tag_key(w->tag_key, root);
    int err = sherd__state_folder(&w->state, at.state, d);
    if (!err) err = sherd__file_begin(&w->file, at.path, SHERD__FILE_PRIVATE, d);
    if (!err) err = sherd__file_reserve(w->file, size, d);
    if (!err) err = write_head(w, root, d);
    if (err) {
        sherd__maskfile_abort(w);
        return err;
    }
    sherd__maskfile_mask_key(mask_key, root);
    *out = w;
    return SHERD_OK;
}

int sherd__maskfile_row(sherd__maskfile_writer *w, const uint8_t *bytes, sherd_diag *d)
{
    uint8_t tag[SHERD__MASKFILE_TAG];
    size_t len = sherd__maskfile_row_bytes(&w->head);
    if (w->rows == w->head.rows)
        return sherd__fail(d, SHERD_EINVAL, NULL, "all %llu rows of masks are written",
                           (ull)w->rows);
    sherd__maskfile_row_tag(tag, w->tag_key, w->rows++, bytes, len);
    int err = sherd__file_write(w->file, bytes, len, d);
    return err ? err : sherd__file_write(w->file, tag, sizeof tag, d);
}

int sherd__maskfile_commit(sherd__maskfile_writer *w, sherd_diag *d)
{
    int err = SHERD_OK;
    if (w->rows != w->head.rows)
        err = sherd__fail(d, SHERD_EINVAL, NULL, "%llu of %llu rows of masks were written",
                          (ull)w->rows, (ull)w->head.rows);
    if (!err) err = sherd__counter_new((sherd__counter){ w->state, w->head.id, w->tag_key }, d);
    if (!err) {
        err = sherd__file_commit(w->file, d);
        w->file = NULL;
    }
    sherd__maskfile_abort(w);
    return err;
}

void sherd__maskfile_abort(sherd__maskfile_writer *w)
{
    if (!w) return;
    sherd__file_abort(w->file);
    sherd__free(w->state);
    sherd__wipe(w, sizeof *w);
    sherd__free(w);
}
