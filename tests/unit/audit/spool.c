#include "tests/unit/audit/spool.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/bytes.h"
#include "sherd/mat.h"

void spool_record(spool *s, uint16_t type, uint64_t job, uint32_t number, uint32_t part,
                  const void *body, size_t len)
{
    uint8_t *p = s->bytes + s->len;
    assert(s->len + 32 + len <= sizeof s->bytes);
    sherd__put_u32(p, 0x44524853);
    sherd__put_u16(p + 4, type);
    sherd__put_u16(p + 6, 0);
    sherd__put_u64(p + 8, job);
    sherd__put_u32(p + 16, number);
    sherd__put_u32(p + 20, part);
    sherd__put_u64(p + 24, len);
    if (len) memcpy(p + 32, body, len);
    s->len += 32 + len;
}

void spool_hello(spool *s)
{
    spool_record(s, 1, 0, 0, 0, "\x08\x00\x10\x00", 4);
}

void spool_welcome(spool *s)
{
    spool_record(s, 2, 0, 0, 0, "\x08\x00\x10\x00", 4);
}

static size_t varint(uint8_t *p, uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7) p[n++] = (uint8_t)(v | 0x80);
    p[n++] = (uint8_t)v;
    return n;
}

static size_t number(uint8_t *p, uint32_t field, uint64_t v)
{
    size_t n = varint(p, (uint64_t)field << 3);
    return n + varint(p + n, v);
}

static size_t description(uint8_t *p, const sherd__fragment_info *i)
{
    size_t n = 0;
    const uint64_t v[] = { i->origin, i->dtype, i->encoding, i->primes,
                           i->groups, i->rows,  i->cols,     i->len };
    for (uint32_t f = 0; f < 8; f++) n += number(p + n, f + 1, v[f]);
    return n;
}

void spool_head(spool *s, uint64_t job, uint32_t block, const sherd__fragment_info *info)
{
    uint8_t text[256];
    spool_record(s, 3, job, block, 0, text, description(text, info));
}

void spool_put(spool *s, uint64_t job, uint32_t block, const sherd__fragment_info *info,
               const void *body)
{
    size_t part = 1;
    spool_head(s, job, block, info);
    for (uint64_t at = 0; at < info->len; part++) {
        size_t len = info->len - at < 262144 ? (size_t)(info->len - at) : 262144;
        spool_record(s, 3, job, block, (uint32_t)part, (const uint8_t *)body + at, len);
        at += len;
    }
}

void spool_task(spool *s, uint64_t job, uint32_t task, uint32_t left, uint32_t right,
                const uint32_t *primes, uint32_t primes_len, const sherd__fragment_info *result)
{
    uint8_t text[512], inner[256];
    size_t n = number(text, 1, 1), len = 0;
    n += number(text + n, 2, 0);
    n += number(text + n, 3, left);
    n += number(text + n, 4, right);
    for (uint32_t i = 0; i < primes_len; i++) len += varint(inner + len, primes[i]);
    if (len) {
        text[n++] = 5 << 3 | 2;
        n += varint(text + n, len);
        memcpy(text + n, inner, len);
        n += len;
    }
    len = description(inner, result);
    text[n++] = 6 << 3 | 2;
    n += varint(text + n, len);
    memcpy(text + n, inner, len);
    spool_record(s, 4, job, task, 1, text, n + len);
}

size_t spool_group(sherd__fragment_info *info, const uint8_t *values, uint32_t rows, uint32_t cols,
                   uint8_t *body)
{
    size_t cells = (size_t)rows * cols;
    *info = (sherd__fragment_info){ .origin = SHERD__HIDDEN,
                                    .dtype = SHERD_U8,
                                    .groups = 1,
                                    .rows = rows,
                                    .cols = cols,
                                    .len = 8 + cells };
    sherd__put_u32(body, rows);
    sherd__put_u32(body + 4, cols);
    memcpy(body + 8, values, cells);
    return (size_t)info->len;
}

static char folders[64][64];
static unsigned made;

static void remove_all(void)
{
    for (unsigned i = 0; i < made; i++) {
        char command[128];
        snprintf(command, sizeof command, "rm -rf '%s'", folders[i]);
        if (system(command)) perror(command);
    }
}

const char *spool_folder(void)
{
    if (made == 0) atexit(remove_all);
    assert(made < 64);
    snprintf(folders[made], sizeof folders[made], "/tmp/sherd-audit-XXXXXX");
    if (!mkdtemp(folders[made])) abort();
    return folders[made++];
}

void spool_file(const char *dir, const char *name, const void *bytes, size_t len)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, len, f) != len || fclose(f)) abort();
}
