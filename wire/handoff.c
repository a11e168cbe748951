/*
 * A one-shot message between a process and its child, before either has an event loop: plain reads
 * and writes with one deadline. The parent is trusted. Lengths are checked nevertheless, because a
 * user may start a node by hand with the wrong descriptor. The buffer is wiped after use, because
 * it held a private key.
 */
#include "wire/handoff.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/clock.h"
#include "core/diag.h"
#include "core/wipe.h"

static const char magic[] = "sherd-handoff 1\n";
#define MAGIC_LEN (sizeof magic - 1)

int sherd__handoff_write(int fd, const sherd__handoff *h, sherd_diag *d)
{
    size_t need = MAGIC_LEN + 8, len = 0;
    if (h->key_len > SHERD__HANDOFF_MAX - need ||
        h->allow_len > SHERD__HANDOFF_MAX - need - h->key_len)
        return sherd__fail(d, SHERD_EINVAL, NULL, "key and allow-list of %zu bytes, at most %u fit",
                           h->key_len + h->allow_len, SHERD__HANDOFF_MAX);
    uint8_t buf[SHERD__HANDOFF_MAX];
    memcpy(buf, magic, MAGIC_LEN);
    sherd__put_u32(buf + MAGIC_LEN, (uint32_t)h->key_len);
    memcpy(buf + MAGIC_LEN + 4, h->key, h->key_len);
    len = MAGIC_LEN + 4 + h->key_len;
    sherd__put_u32(buf + len, (uint32_t)h->allow_len);
    memcpy(buf + len + 4, h->allow, h->allow_len);
    len += 4 + h->allow_len;
    int err = 0;
    for (size_t done = 0; done < len && !err;) {
        ssize_t n = write(fd, buf + done, len - done);
        if (n >= 0) done += (size_t)n;
        else if (errno != EINTR)
            err = sherd__fail(d, SHERD_EIO, NULL, "cannot hand a node its key: %s",
                              strerror(errno));
    }
    sherd__wipe(buf, sizeof buf);
    return err;
}

static int read_all(int fd, int64_t deadline, void *out, size_t len, sherd_diag *d)
{
    for (size_t got = 0; got < len;) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        int64_t left = deadline - sherd__clock_ms();
        int ready = left > 0 ? poll(&p, 1, (int)left) : 0;
        if (ready < 0 && errno == EINTR) continue;
        if (ready == 0)
            return sherd__fail(d, SHERD_ETIMEOUT,
                               "--parent-pipe is for nodes that sherd starts itself",
                               "no key was received over descriptor %d", fd);
        ssize_t n = ready < 0 ? -1 : read(fd, (uint8_t *)out + got, len - got);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n < 0)
            return sherd__fail(d, SHERD_EIO, NULL, "cannot read descriptor %d: %s", fd,
                               strerror(errno));
        if (n == 0)
            return sherd__fail(d, SHERD_ECLOSED, NULL,
                               "descriptor %d ended before the key was received", fd);
        got += (size_t)n;
    }
    return SHERD_OK;
}

static int read_part(int fd, int64_t deadline, char **out, size_t *len, sherd_diag *d)
{
    uint8_t head[4];
    int err = read_all(fd, deadline, head, sizeof head, d);
    if (err) return err;
    size_t n = sherd__get_u32(head);
    if (n > SHERD__HANDOFF_MAX)
        return sherd__fail(d, SHERD_EFRAME, NULL, "descriptor %d: a part of %zu bytes, at most %u",
                           fd, n, SHERD__HANDOFF_MAX);
    char *text = sherd__alloc(n + 1);
    if (!text) return sherd__fail_memory(d, "the key");
    err = read_all(fd, deadline, text, n, d);
    text[n] = '\0';
    *out = text; /* set on failure too: the caller frees it */
    *len = n;
    return err;
}

int sherd__handoff_read(int fd, uint32_t timeout_ms, sherd__handoff *out, sherd_diag *d)
{
    int64_t deadline = sherd__clock_ms() + timeout_ms;
    char start[MAGIC_LEN];
    sherd__handoff h = { .key = NULL };
    int err = read_all(fd, deadline, start, sizeof start, d);
    if (!err && memcmp(start, magic, MAGIC_LEN) != 0)
        err = sherd__fail(d, SHERD_EFRAME, "--parent-pipe is for nodes that sherd starts itself",
                          "descriptor %d does not carry a key", fd);
    if (!err) err = read_part(fd, deadline, &h.key, &h.key_len, d);
    if (!err) err = read_part(fd, deadline, &h.allow, &h.allow_len, d);
    if (err) {
        sherd__handoff_fini(&h);
        return err;
    }
    *out = h;
    return SHERD_OK;
}

void sherd__handoff_fini(sherd__handoff *h)
{
    if (h->key) sherd__wipe(h->key, h->key_len);
    sherd__free(h->key);
    sherd__free(h->allow);
    *h = (sherd__handoff){ .key = NULL };
}
