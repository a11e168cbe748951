/*
 * See store.h. Releasing a block wipes the fragment's body: this is done by sherd__pool_give, which
 * the fragment calls.
 */
#include "node/store.h"

#include "core/alloc.h"
#include "core/diag.h"
#include "node/devices.h"

void sherd__store_init(sherd__store *s)
{
    *s = (sherd__store){ .bytes = 0 };
}

static sherd__block *block_of(sherd__grouped_item *item)
{
    return (sherd__block *)(void *)item;
}

sherd__block *sherd__store_find(const sherd__store *s, uint64_t job, uint32_t number)
{
    return block_of(sherd__grouped_find(&s->table, job, number));
}

int sherd__store_need(const sherd__store *s, uint64_t job, uint32_t number, sherd__block **out,
                      sherd_diag *d)
{
    *out = sherd__store_find(s, job, number);
    return *out ? SHERD_OK
                : sherd__fail(d, SHERD_EINVAL, NULL, "no block %u of this job here", number);
}

int sherd__store_put(sherd__store *s, uint64_t job, uint32_t number, sherd__fragment *f)
{
    if (number == 0 || sherd__store_find(s, job, number)) return SHERD_EINVAL;
    if (s->table.all >= SHERD__BLOCKS_MAX) return SHERD_EBUSY;
    sherd__block *b = sherd__alloc(sizeof *b);
    if (!b) return SHERD_ENOMEM;
    *b = (sherd__block){ .fragment = f, .number = number, .refs = 1, .lending = s->lending };
    int err = sherd__grouped_add(&s->table, &b->item, job, number);
    if (err) {
        sherd__free(b);
        return err;
    }
    s->bytes += sherd__fragment_info_of(f)->len;
    return SHERD_OK;
}

static void unlink_block(sherd__store *s, sherd__block *b)
{
    sherd__grouped_remove(&s->table, &b->item);
    s->bytes -= sherd__fragment_info_of(b->fragment)->len;
    if (s->left) s->left(s->left_ctx, b);
    sherd__block_release(b);
}

size_t sherd__store_reap(sherd__store *s, size_t most)
{
    size_t n = 0;
    for (sherd__grouped_item *it; n < most && (it = sherd__grouped_given_up(&s->table)); n++)
        unlink_block(s, block_of(it));
    return n;
}

size_t sherd__store_drop(sherd__store *s, uint64_t job, uint32_t number)
{
    if (number == 0) return sherd__grouped_give_up(&s->table, job);
    sherd__block *b = sherd__store_find(s, job, number);
    if (!b) return 0;
    unlink_block(s, b);
    return 1;
}

void sherd__store_drop_all(sherd__store *s)
{
    sherd__grouped_give_up_all(&s->table);
}

void sherd__store_fini(sherd__store *s)
{
    sherd__store_drop_all(s);
    (void)sherd__store_reap(s, SIZE_MAX);
    sherd__grouped_fini(&s->table);
}

void sherd__block_hold(sherd__block *b)
{
    b->refs++;
}

void sherd__block_release(sherd__block *b)
{
    if (!b) return;
    if (--b->refs == b->calls) sherd__devices_drop(b); /* no further call will need it */
    if (b->refs > 0) return;
    sherd__fragment_free(b->fragment);
    sherd__free(b);
}
