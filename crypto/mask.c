/*
 * Masks from ChaCha20. Short rows are read many at a time, since a nonce costs as much as 150 words;
 * rejection is left to a stream per element, so that the common path has no data-dependent length and
 * vectorises: some 1 in 10,000 words is dropped. Of the ciphers a few are kept set up, picked by
 * (role, prime, t); two that fall on one place only cost a set-up. They lie on OpenSSL's heap, which
 * wipes them when they are freed.
 */
#include "crypto/mask.h"

#include <sodium.h>
#include <stdbool.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/wipe.h"
#include "crypto/keystream.h"
#include "matrix/clones.h"

enum { WORDS = 2048, BLOCK_WORDS = SHERD__KEYSTREAM_BLOCK / 4, CIPHERS = 64, KEY = 32 };
#define LABEL "sherd mask-v1"

typedef struct cipher {
    sherd__mask_id id; /* role 0: none */
    sherd__keystream ks;
} cipher;

struct sherd__masks {
    uint8_t *key; /* KEY bytes, guarded */
    cipher ciphers[CIPHERS];
    uint32_t words[WORDS];
};

/* ---- keys ------------------------------------------------------------------------------------ */

static int make(sherd__masks **out)
{
    *out = NULL;
    if (sodium_init() < 0) return SHERD_EINTERNAL;
    sherd__masks *m = sherd__calloc(1, sizeof *m);
    if (m == NULL) return SHERD_ENOMEM;
    m->key = sodium_malloc(KEY); /* a lock that is refused (RLIMIT_MEMLOCK) is no failure */
    if (m->key == NULL) {
        sherd__free(m);
        return SHERD_ENOMEM;
    }
    *out = m;
    return SHERD_OK;
}

int sherd__masks_new(sherd__masks **out, const sherd_entropy *entropy)
{
    int err = make(out);
    if (err != 0) return err;
    entropy->fill(entropy->ctx, (*out)->key, KEY);
    (void)sodium_mprotect_readonly((*out)->key);
    return SHERD_OK;
}

int sherd__masks_from_key(sherd__masks **out, const uint8_t key[32])
{
    int err = make(out);
    if (err != 0) return err;
    memcpy((*out)->key, key, KEY);
    (void)sodium_mprotect_readonly((*out)->key);
    return SHERD_OK;
}

int sherd__masks_clone(sherd__masks **out, const sherd__masks *m)
{
    return sherd__masks_from_key(out, m->key);
}

void sherd__masks_free(sherd__masks *m)
{
    if (m == NULL) return;
    for (size_t i = 0; i < CIPHERS; i++)
        if (m->ciphers[i].id.role != 0) sherd__keystream_fini(&m->ciphers[i].ks);
    sodium_free(m->key); /* wipes */
    sherd__wipe(m, sizeof *m);
    sherd__free(m);
}

static void derive(const sherd__masks *m, const sherd__mask_id *id, uint8_t key[KEY])
{
    uint8_t text[sizeof LABEL + 4 * 4 + 8], *at = text + sizeof LABEL;
    memcpy(text, LABEL, sizeof LABEL); /* and its terminator */
    sherd__put_u32(at, (uint32_t)id->role);
    sherd__put_u32(at + 4, id->t);
    sherd__put_u32(at + 8, id->prime_index);
    sherd__put_u32(at + 12, id->p);
    sherd__put_u64(at + 16, id->width);
    crypto_generichash(key, KEY, text, sizeof text, m->key, KEY);
}

static bool same(const sherd__mask_id *a, const sherd__mask_id *b)
{
    return a->role == b->role && a->t == b->t && a->prime_index == b->prime_index && a->p == b->p &&
           a->width == b->width;
}

static int stream_of(sherd__masks *m, const sherd__mask_id *id, sherd__keystream **out)
{
    cipher *c = &m->ciphers[(id->t * 8 + id->prime_index * 2 + (unsigned)id->role % 2) % CIPHERS];
    uint8_t key[KEY];
    if (!same(&c->id, id)) {
        if (c->id.role != 0) sherd__keystream_fini(&c->ks);
        c->id.role = (sherd__mask_role)0;
        derive(m, id, key);
        int err = sherd__keystream_init(&c->ks, key);
        sherd__wipe(key, sizeof key);
        if (err != 0) return err;
        c->id = *id;
    }
    *out = &c->ks;
    return SHERD_OK;
}

/* ---- residues -------------------------------------------------------------------------------- */

/* n words, little-endian, to canonical residues; nonzero if one is to be dropped. The upper half of
 * w*p goes to a double by way of the exponent of 2^52, which every vector width has. */
SHERD__CLONES
static uint64_t scale(const uint32_t *w, size_t n, uint32_t p, uint32_t drop, double *out)
{
    uint64_t dropped = 0;
    double h = (double)((p - 1) / 2), f = (double)p;
    for (size_t i = 0; i < n; i++) {
        uint64_t wide = (uint64_t)w[i] * p, bits = wide >> 32 | UINT64_C(0x4330000000000000);
        double v;
        memcpy(&v, &bits, sizeof v);
        v -= 0x1p52;
        dropped |= (wide & UINT32_MAX) < drop;
        out[i] = v > h ? v - f : v;
    }
    return dropped;
}

/* The residue of an element whose word was dropped. */
static int redraw(sherd__keystream *ks, uint64_t element, uint32_t p, uint32_t drop, double *out)
{
    uint8_t block[SHERD__KEYSTREAM_BLOCK];
    int err = SHERD_OK;
    uint64_t wide = 0;
    for (uint64_t b = 0; err == 0 && (uint32_t)wide < drop; b++) {
        err = sherd__keystream_read(ks, 1 + element, b, block, sizeof block);
        for (size_t i = 0; err == 0 && i < BLOCK_WORDS && (uint32_t)wide < drop; i++)
            wide = (uint64_t)sherd__get_u32(block + 4 * i) * p;
    }
    double v = (double)(wide >> 32);
    *out = v > (double)((p - 1) / 2) ? v - (double)p : v;
    sherd__wipe(block, sizeof block);
    return err;
}

/* Elements of one row, from their words. */
static int residues(sherd__keystream *ks, const uint32_t *w, size_t n, uint64_t element, uint32_t p,
                    double *out)
{
    uint32_t drop = (0 - p) % p; /* 2^32 mod p */
    int err = SHERD_OK;
    if (scale(w, n, p, drop, out) == 0) return SHERD_OK;
    for (size_t i = 0; i < n && err == 0; i++)
        if ((uint32_t)(w[i] * p) < drop) err = redraw(ks, element + i, p, drop, out + i);
    return err;
}

/* Rows that are read together; block0 is where the first one's columns begin. */
static int read_rows(sherd__masks *m, sherd__keystream *ks, const sherd__mask_id *id, uint64_t row0,
                     size_t rows, size_t c0, size_t n, double *out, size_t ld)
{
    uint64_t stride = (id->width + BLOCK_WORDS - 1) / BLOCK_WORDS, first = c0 / BLOCK_WORDS;
    size_t words = (rows - 1) * stride * BLOCK_WORDS + c0 % BLOCK_WORDS + n;
    int err = sherd__keystream_read(ks, 0, row0 * stride + first, m->words, words * 4);
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    for (size_t i = 0; i < words; i++) m->words[i] = __builtin_bswap32(m->words[i]);
#endif
    for (size_t i = 0; i < rows && err == 0; i++)
        err = residues(ks, m->words + i * stride * BLOCK_WORDS + c0 % BLOCK_WORDS, n,
                       (row0 + i) * stride * BLOCK_WORDS + c0, id->p, out + i * ld);
    sherd__wipe(m->words, words * 4);
    return err;
}

int sherd__masks_part(sherd__masks *m, const sherd__mask_id *id, uint64_t row0, size_t rows, size_t c0,
                      size_t n, double *out, size_t ld)
{
    sherd__keystream *ks;
    size_t step = (id->width + BLOCK_WORDS - 1) / BLOCK_WORDS * BLOCK_WORDS;
    if (rows == 0 || n == 0) return SHERD_OK;
    int err = stream_of(m, id, &ks);
    /* Neighbouring rows in one read only where little between them is thrown away. */
    size_t together = step <= WORDS && 2 * n > step ? WORDS / step : 1;
    for (size_t i = 0; i < rows && err == 0; i += together) {
        size_t some = rows - i < together ? rows - i : together;
        for (size_t c = 0; c < n && err == 0;) {
            size_t room = WORDS - (c0 + c) % BLOCK_WORDS, part = n - c < room ? n - c : room;
            err = read_rows(m, ks, id, row0 + i, some, c0 + c, part, out + i * ld + c, ld);
            c += part;
        }
    }
    return err;
}

int sherd__masks_row(sherd__masks *m, sherd__mask_role role, uint32_t t, uint32_t prime_index,
                     uint32_t p, uint64_t row, size_t n, double *out)
{
    sherd__mask_id id = {.role = role, .t = t, .prime_index = prime_index, .p = p, .width = n};
    return sherd__masks_part(m, &id, row, 1, 0, n, out, n);
}
