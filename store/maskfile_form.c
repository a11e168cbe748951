/*
 * Keys, tags, sizes and the head of files of masks. The key of the tags is stored in the file: tags
 * detect damage and mistakes, but do not protect against anyone who can read the file.
 */
#include "store/maskfile_form.h"

#include <sodium.h>
#include <string.h>

#include "core/bytes.h"
#include "core/wipe.h"
#include "matrix/exact.h"

enum { AT_ID = 16, AT_B = 64, AT_SHAPE = 96, AT_BITS = 120, AT_PRIMES = 128 };

static void derive(uint8_t out[32], const uint8_t root[32], const char *label)
{
    crypto_generichash(out, 32, (const uint8_t *)label, strlen(label), root, 32);
}

void sherd__maskfile_mask_key(uint8_t out[32], const uint8_t root[32])
{
    derive(out, root, "sherd one-time masks v1");
}

void sherd__maskfile_tag_key(uint8_t out[32], const uint8_t root[32])
{
    derive(out, root, "sherd mask file tags v1");
}

void sherd__maskfile_row_tag(uint8_t out[SHERD__MASKFILE_TAG], const uint8_t key[32], uint64_t row,
                             const uint8_t *bytes, size_t len)
{
    crypto_generichash_state st;
    uint8_t head[9] = { 'R' };
    sherd__put_u64(head + 1, row);
    crypto_generichash_init(&st, key, 32, SHERD__MASKFILE_TAG);
    crypto_generichash_update(&st, head, sizeof head);
    crypto_generichash_update(&st, bytes, len);
    crypto_generichash_final(&st, out, SHERD__MASKFILE_TAG);
}

void sherd__maskfile_head_tag(uint8_t out[32], const uint8_t key[32], const uint8_t *head)
{
    uint8_t text[1 + SHERD__MASKFILE_AT_TAG] = { 'H' };
    memcpy(text + 1, head, SHERD__MASKFILE_AT_TAG);
    crypto_generichash(out, 32, text, sizeof text, key, 32);
    sherd__wipe(text, sizeof text);
}

size_t sherd__maskfile_row_bytes(const sherd__maskfile_head *h)
{
    /* m < 2^32, at most 12 bytes per column */
    return (size_t)h->m * h->primes_len * SHERD__RESIDUE_BYTES;
}

uint64_t sherd__maskfile_stride(const sherd__maskfile_head *h)
{
    return sherd__maskfile_row_bytes(h) + SHERD__MASKFILE_TAG;
}

uint64_t sherd__maskfile_bytes(const sherd__maskfile_head *h)
{
    sherd__crt crt;
    size_t bytes;
    bool bits = h->bits_a >= 2 && h->bits_a <= 26 && h->bits_b >= 2 && h->bits_b <= 26;
    if (!bits || h->k > UINT32_MAX || h->m > UINT32_MAX || h->rows > UINT32_MAX) return 0;
    if (sherd__crt_init(&crt, h->primes, h->primes_len)) return 0;
    if (!sherd__mul(sherd__maskfile_stride(h), h->rows, &bytes) ||
        !sherd__add(bytes, SHERD__MASKFILE_HEAD, &bytes) || bytes > INT64_MAX)
        return 0;
    return bytes;
}

void sherd__maskfile_head_put(uint8_t out[SHERD__MASKFILE_AT_MARK], const sherd__maskfile_head *h,
                              const uint8_t root[32], const uint8_t tag_key[32])
{
    memset(out, 0, SHERD__MASKFILE_AT_MARK);
    memcpy(out, SHERD__MASKFILE_MAGIC, 8);
    sherd__put_u32(out + 8, SHERD__MASKFILE_VERSION);
    sherd__put_u32(out + 12, h->primes_len);
    memcpy(out + AT_ID, h->id, sizeof h->id);
    memcpy(out + SHERD__MASKFILE_AT_KEY, root, 32);
    memcpy(out + AT_B, h->b.sha256, sizeof h->b.sha256);
    sherd__put_u64(out + AT_SHAPE, h->k);
    sherd__put_u64(out + AT_SHAPE + 8, h->m);
    sherd__put_u64(out + AT_SHAPE + 16, h->rows);
    sherd__put_u32(out + AT_BITS, h->bits_a);
    sherd__put_u32(out + AT_BITS + 4, h->bits_b);
    for (uint32_t i = 0; i < h->primes_len; i++)
        sherd__put_u32(out + AT_PRIMES + 4 * (size_t)i, h->primes[i]);
    sherd__maskfile_head_tag(out + SHERD__MASKFILE_AT_TAG, tag_key, out);
}

void sherd__maskfile_head_get(sherd__maskfile_head *h, const uint8_t in[SHERD__MASKFILE_AT_MARK])
{
    h->primes_len = sherd__get_u32(in + 12);
    memcpy(h->id, in + AT_ID, sizeof h->id);
    memcpy(h->b.sha256, in + AT_B, sizeof h->b.sha256);
    h->k = sherd__get_u64(in + AT_SHAPE);
    h->m = sherd__get_u64(in + AT_SHAPE + 8);
    h->rows = sherd__get_u64(in + AT_SHAPE + 16);
    h->bits_a = sherd__get_u32(in + AT_BITS);
    h->bits_b = sherd__get_u32(in + AT_BITS + 4);
    for (size_t i = 0; i < 4; i++) h->primes[i] = sherd__get_u32(in + AT_PRIMES + 4 * i);
}
