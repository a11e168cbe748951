/* The only place where data sent for training becomes fragments. */
#include "scheduler/train/put.h"

#include "core/alloc.h"
#include "crypto/fragment_make.h"
#include "sherd/mat.h"

int sherd__train_put(sherd__session *s, uint64_t job, sherd__train_block block,
                     sherd__train_bytes from)
{
    sherd__fragment *f;
    sherd__fragment_info info = { .origin = SHERD__HIDDEN,
                                  .dtype = block.dtype,
                                  .rows = block.rows,
                                  .cols = block.cols,
                                  .len = sherd_dtype_size((sherd_dtype)block.dtype) * block.rows *
                                         block.cols };
    int err = sherd__fragment_take(&f, &info, from.bytes, from.release, from.ctx);
    if (err) {
        if (from.release) from.release(from.ctx, from.bytes, info.len);
        else sherd__free(from.bytes);
        return err;
    }
    err = sherd__session_put(s, job, block.number, f);
    if (err) sherd__fragment_free(f);
    return err;
}
