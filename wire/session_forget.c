/*
 * Cancels a job, a block or a task in the middle of its transfer. A coordinator's session must
 * release all data of a job that is cancelled, for two reasons: fragments that are produced while
 * they are sent read operands that their owner frees next, and a peer that hardly reads would
 * otherwise make us keep all that it has not read. Entries that have not been started are removed
 * from the queue. A body that has been started must be completed, because otherwise the peer could
 * not find the start of the next record: the remaining bytes are sent as zeros, and the block is
 * dropped.
 */
#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "crypto/fragment_make.h"
#include "wire/session_state.h"

/* Source of a blanked body: the group table, without which the block is invalid, then zeros. */
typedef struct blank {
    size_t len;
    uint8_t table[];
} blank;

static int fill_blank(void *ctx, uint64_t offset, uint8_t *out, size_t len)
{
    const blank *b = ctx;
    size_t n = offset < b->len ? b->len - (size_t)offset : 0;
    if (n > len) n = len;
    if (n) memcpy(out, b->table + offset, n);
    memset(out + n, 0, len - n);
    return SHERD_OK;
}

/* Turns an entry into one that sends nothing. */
static void make_nothing(sherd__session *s, sherd__bulk *item)
{
    if (item->fragment) s->bulk_bytes -= sherd__fragment_info_of(item->fragment)->len;
    sherd__fragment_free(item->fragment);
    *item = (sherd__bulk){ .kind = SHERD__BULK_TASK, .cancelled = true };
}

static int make_blank(sherd__bulk *item)
{
    const sherd__fragment_info *info = sherd__fragment_info_of(item->fragment);
    size_t len = 8 * (size_t)info->groups;
    sherd__fragment *blanked;
    blank *b = sherd__alloc(sizeof *b + len);
    if (!b) return SHERD_ENOMEM;
    b->len = len;
    int err = sherd__fragment_read(item->fragment, 0, b->table, len);
    sherd__fragment_source source = { fill_blank, sherd__free, b };
    if (!err) err = sherd__fragment_new_source(&blanked, info, source);
    if (err) {
        sherd__free(b);
        return err;
    }
    sherd__fragment_free(item->fragment);
    item->fragment = blanked;
    return SHERD_OK;
}

static sherd__bulk *bulk_at(const sherd__session *s, uint64_t sequence)
{
    return &s->bulks.ring[sequence & (s->bulks.cap - 1)];
}

/* Removes or blanks the entries of the job, or only those of one block (block != 0). */
static int take_back(sherd__session *s, uint64_t job, uint32_t block)
{
    for (uint64_t q = s->bulks.head; q != s->bulks.tail; q++) {
        sherd__bulk *item = bulk_at(s, q);
        if (item->task.job != job || item->kind == SHERD__BULK_DROP) continue;
        if (block && (item->kind != SHERD__BULK_FRAGMENT || item->task.task != block)) continue;
        int err = SHERD_OK;
        if (item->kind == SHERD__BULK_TASK ? item->cancelled : !item->described)
            make_nothing(s, item);
        else if (item->kind == SHERD__BULK_FRAGMENT && !sherd__fragment_bytes(item->fragment))
            err = make_blank(item);
        if (err) return err;
    }
    return SHERD_OK;
}

/* Removes a block that has not been started, so that it is never sent. Returns whether it did. */
static bool take_back_whole(sherd__session *s, uint64_t before, uint64_t job, uint32_t block)
{
    for (uint64_t q = before; q-- > s->bulks.head;) {
        sherd__bulk *item = bulk_at(s, q);
        if (item->kind != SHERD__BULK_FRAGMENT || item->task.job != job || item->task.task != block)
            continue;
        if (item->described) return false;
        make_nothing(s, item);
        return true;
    }
    return false;
}

void sherd__bulk_cancel(sherd__session *s, uint64_t sequence)
{
    assert(sequence >= s->bulks.head && sequence < s->bulks.tail);
    sherd__bulk *item = bulk_at(s, sequence);
    sherd__task *t = &item->task;
    item->cancelled = true;
    if (t->flags & SHERD__DROP_LEFT && take_back_whole(s, sequence, t->job, t->left))
        t->flags &= ~(uint32_t)SHERD__DROP_LEFT;
    if (t->flags & SHERD__DROP_RIGHT && t->right && take_back_whole(s, sequence, t->job, t->right))
        t->flags &= ~(uint32_t)SHERD__DROP_RIGHT;
}

int sherd__session_forget(sherd__session *s, uint64_t job)
{
    int err = SHERD_OK, taken;
    if (job == 0 || s->opt.role != SHERD__COORDINATOR || !sherd__session_ready(s))
        return SHERD_EINVAL; /* a session that is over or closing has released everything */
    if (sherd__tasks_first(&s->open, job)) err = sherd__session_cancel(s, job, 0, 0);
    taken = take_back(s, job, 0);
    if (taken) return sherd__session_end(s, taken, true, "cannot end a body that is under way");
    return err ? err : sherd__session_drop(s, job, 0);
}

int sherd__session_retract(sherd__session *s, uint64_t job, uint32_t block)
{
    if (job == 0 || block == 0 || s->opt.role != SHERD__COORDINATOR || !sherd__session_ready(s))
        return SHERD_EINVAL;
    int taken = take_back(s, job, block);
    if (taken) return sherd__session_end(s, taken, true, "cannot end a body that is under way");
    return sherd__session_drop(s, job, block);
}
