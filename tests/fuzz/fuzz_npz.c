/* .npz archives, also as metadata files: what opens can be read completely, or fails with a
 * reason. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/diag.h"
#include "store/metafile.h"
#include "store/npz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_members(const uint8_t *data, size_t size)
{
    sherd__npz *z;
    sherd_diag d = { .code = 0 };
    int err = sherd__npz_open_bytes(&z, data, size, "fuzz.npz", (sherd__npz_limit){ 1 << 20, 0 },
                                    &d);
    assert(!err == (z != NULL) && !err == !d.message[0]);
    for (size_t i = 0; z && i < sherd__npz_count(z); i++) {
        const sherd__npz_member *m = sherd__npz_member_at(z, i);
        assert(m->head.data_len <= 1 << 20 && sherd__npz_find(z, m->name) == (int64_t)i);
        uint8_t *out = malloc(m->head.data_len + 1);
        sherd_diag e = { .code = 0 };
        err = sherd__npz_read(z, i, out, m->head.data_len, &e);
        assert(!err == !e.message[0]);
        free(out);
    }
    sherd__npz_close(z);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sherd__metafile f;
    sherd_diag d = { .code = 0 };
    read_members(data, size);
    int err = sherd__metafile_open_bytes(&f, data, size, "fuzz.npz", &d);
    assert(!err == !d.message[0]);
    for (size_t i = 0; !err && f.expanded && i < f.count; i++) {
        uint32_t *out = malloc((size_t)sherd_meta_columns(&f.ops[i]) * 4 + 1);
        err = sherd__metafile_exposures(&f, i, out, &d);
        free(out);
    }
    sherd__metafile_fini(&f);
    return 0;
}
