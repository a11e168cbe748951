/*
 * Mask files. The first byte says whether valid tags are computed for the following bytes
 * (otherwise no input would have any, and no code behind the check would be reached) and how many
 * rows to take. Then any header: a file that opens has the size that its header states, rows are
 * given out once, and all of it can be read.
 */
#include <assert.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/bytes.h"
#include "store/maskfile.h"
#include "store/maskfile_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static char dir[64], path[96], state[96];

static void clean(void)
{
    unlink(path);
    rmdir(state);
    rmdir(dir);
}

static void begin(void)
{
    const char *tmp = getenv("TMPDIR");
    if (*dir) return;
    bool shm = access("/dev/shm", W_OK) == 0;
    snprintf(dir, sizeof dir, "%s/maskfile-XXXXXX",
             shm                       ? "/dev/shm"
             : tmp && strlen(tmp) < 40 ? tmp
                                       : "/tmp");
    if (sodium_init() < 0 || !mkdtemp(dir)) abort();
    snprintf(path, sizeof path, "%s/masks", dir);
    snprintf(state, sizeof state, "%s/state", dir);
    if (mkdir(state, 0700) != 0 || atexit(clean) != 0) abort();
}

/* Computes tags as store/maskfile.h defines them: BLAKE2b under a key derived from the file's. */
static void fit_tags(uint8_t *bytes, size_t len, uint8_t key[32])
{
    static const char label[] = "sherd mask file tags v1";
    uint8_t text[161] = { 'H' };
    crypto_generichash(key, 32, (const uint8_t *)label, sizeof label - 1, bytes + 32, 32);
    memcpy(bytes, "SHERDMSK\1\0\0\0", 12);
    memcpy(text + 1, bytes, 160);
    crypto_generichash(bytes + 160, 32, text, sizeof text, key, 32);
    sherd__mark_put(bytes + 192, 'M', bytes + 16, key, sherd__get_u64(bytes + 192));
    uint32_t primes = sherd__get_u32(bytes + 12) % 5;
    size_t row = (size_t)sherd__get_u32(bytes + 104) % 64 * 3 * primes, at = SHERD__MASKFILE_HEAD;
    for (uint64_t r = 0; len - at >= row + SHERD__MASKFILE_TAG;
         r++, at += row + SHERD__MASKFILE_TAG) {
        crypto_generichash_state st;
        uint8_t head[9] = { 'R' };
        sherd__put_u64(head + 1, r);
        crypto_generichash_init(&st, key, 32, SHERD__MASKFILE_TAG);
        crypto_generichash_update(&st, head, sizeof head);
        crypto_generichash_update(&st, bytes + at, row);
        crypto_generichash_final(&st, bytes + at + row, SHERD__MASKFILE_TAG);
    }
}

static void put(const uint8_t *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, bytes, len) != (ssize_t)len || close(fd) != 0) abort();
}

static void use(sherd__maskfile *f, uint64_t rows, uint64_t size)
{
    const sherd__maskfile_head *h = sherd__maskfile_head_of(f);
    uint64_t left = sherd__maskfile_left(f), first = 0;
    uint8_t key[32], byte;
    assert(sherd__maskfile_bytes(h) == size && left <= h->rows);
    int err = sherd__maskfile_strike(f, rows, &first, key, NULL);
    assert(err == 0 || err == SHERD_EFORMAT || err == SHERD_EEXPOSURE);
    assert((err == SHERD_EEXPOSURE) == (rows > left));
    assert(err || (first == h->rows - left && sherd__maskfile_left(f) == left - rows));
    size_t bytes = sherd__maskfile_row_bytes(h);
    for (uint64_t r = 0; r < h->rows && r < 4 && bytes; r++) {
        err = sherd__maskfile_read(f, r, bytes - 1, 1, &byte, NULL);
        assert(err == 0 || err == SHERD_EFORMAT);
    }
    assert(sherd__maskfile_read(f, h->rows, 0, 0, &byte, NULL) == SHERD_EINVAL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static uint8_t bytes[1 << 16];
    uint8_t key[32], id[16] = { 0 };
    char counter[160];
    sherd_diag d = { 0 };
    sherd__maskfile *f;
    if (len == 0 || len > sizeof bytes) return 0;
    begin();
    memcpy(bytes, data + 1, --len);
    bool fits = data[0] & 1 && len >= SHERD__MASKFILE_HEAD;
    if (fits) {
        fit_tags(bytes, len, key);
        memcpy(id, bytes + 16, sizeof id);
        if (sherd__counter_new((sherd__counter){ state, id, key }, NULL)) abort();
    }
    put(bytes, len);
    int err = sherd__maskfile_open(&f, path, state, true, &d);
    if (err) assert(!f && d.code == err && d.message[0] && d.hint[0]);
    else use(f, data[0] >> 1, len);
    if (!err) sherd__maskfile_close(f);
    if (fits) {
        size_t at = (size_t)snprintf(counter, sizeof counter, "%s/", state);
        sodium_bin2hex(counter + at, sizeof counter - at, id, sizeof id);
        if (unlink(counter) != 0) abort();
    }
    return 0;
}
