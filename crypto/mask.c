/*
 * Masks from ChaCha20. Several short rows are read at once, since a nonce costs as much as 150
 * words. Rejected words (about 1 in 10,000) are replaced from a stream per element, so that the
 * common path has no data-dependent length and can be vectorised. A few ciphers are kept
 * initialised, in slots selected by (role, prime, t); two masks with the same slot only cost
 * another initialisation. The ciphers are on OpenSSL's heap, and OpenSSL wipes them when they are
 * freed.
 */
#include "crypto/mask.h"

#include <assert.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/wipe.h"
#include "crypto/byte_code_kernels.h"
#include "crypto/keystream.h"
#include "matrix/clones.h"

enum {
    WORDS = 4096,
    PIECE = 256,
    SHORT = 16,
    BLOCK_WORDS = SHERD__KEYSTREAM_BLOCK / 4,
    CIPHERS = 64,
    PRIMES = 4,
    BYTE_PRIMES = 8,
    KEY = 32
};

/* Masks of words and masks of bytes have keys of their own. */
typedef enum residue_kind { WORDS_V1, BYTES_V1 } residue_kind;
enum { LABEL = 14 };
static const char labels[][LABEL] = { "sherd mask-v1", "sherd byte-v1" };
static const char seed_label[LABEL] = "sherd seed-v1";

typedef struct cipher {
    sherd__mask_id id; /* role 0: the slot is empty */
    residue_kind kind;
    sherd__seed_id seed; /* role 0: derived from the key of the masks, not from a seed */
    sherd__keystream ks;
} cipher;

struct sherd__masks {
    uint8_t *key; /* KEY bytes, by key_new */
    cipher ciphers[CIPHERS];
    uint32_t words[WORDS];
    size_t used; /* words used since the last wipe */
};

/* ---- keys ------------------------------------------------------------------------------------ */

/*
 * Guarded memory for keys: locked, excluded from dumps, between pages without access. To make and
 * free it takes eleven system calls, some of which interrupt the other threads, and a step of a
 * training draws dozens of keys. Pieces that were freed are therefore kept, wiped.
 */
enum { FREED = 64 };
static _Atomic(uint8_t *) freed[FREED]; /* NULL: an empty place */
static atomic_int freed_by;             /* the process that locked them: a child's are not locked */

static void forget_parents(void)
{
    int here = (int)getpid(), by = atomic_exchange(&freed_by, here);
    for (size_t i = 0; i < FREED && by != here; i++) atomic_store(&freed[i], NULL);
}

static uint8_t *key_new(void)
{
    uint8_t *key = NULL;
    forget_parents();
    for (size_t i = 0; i < FREED && !key; i++)
        if (atomic_load(&freed[i])) key = atomic_exchange(&freed[i], NULL);
    return key ? key : sodium_malloc(KEY); /* a lock may be refused (RLIMIT_MEMLOCK) */
}

static void key_free(uint8_t *key)
{
    sherd__wipe(key, KEY);
    forget_parents();
    for (size_t i = 0; i < FREED; i++) {
        uint8_t *empty = NULL;
        if (atomic_compare_exchange_strong(&freed[i], &empty, key)) return;
    }
    sodium_free(key);
}

static int make(sherd__masks **out)
{
    *out = NULL;
    if (sodium_init() < 0) return SHERD_EINTERNAL;
    sherd__masks *m = sherd__calloc(1, sizeof *m);
    if (!m) return SHERD_ENOMEM;
    m->key = key_new();
    if (!m->key) {
        sherd__free(m);
        return SHERD_ENOMEM;
    }
    *out = m;
    return SHERD_OK;
}

int sherd__masks_new(sherd__masks **out, const sherd__entropy *entropy)
{
    int err = make(out);
    if (!err) entropy->fill(entropy->ctx, (*out)->key, KEY);
    return err;
}

int sherd__masks_from_key(sherd__masks **out, const uint8_t key[32])
{
    int err = make(out);
    if (!err) memcpy((*out)->key, key, KEY);
    return err;
}

int sherd__masks_clone(sherd__masks **out, const sherd__masks *m)
{
    return sherd__masks_from_key(out, m->key);
}

void sherd__masks_free(sherd__masks *m)
{
    if (!m) return;
    for (size_t i = 0; i < CIPHERS; i++)
        if (m->ciphers[i].id.role != 0) sherd__keystream_fini(&m->ciphers[i].ks);
    key_free(m->key);
    sherd__wipe(m, sizeof *m);
    sherd__free(m);
}

void sherd__masks_seed(const sherd__masks *m, const sherd__seed_id *id,
                       uint8_t seed[SHERD__SEED_BYTES])
{
    uint8_t text[LABEL + 2 * 4 + 8], *at = text + LABEL;
    memcpy(text, seed_label, LABEL); /* includes the terminator */
    sherd__put_u32(at, (uint32_t)id->role);
    sherd__put_u32(at + 4, id->slot);
    sherd__put_u64(at + 8, id->at);
    crypto_generichash(seed, SHERD__SEED_BYTES, text, sizeof text, m->key, KEY);
}

static void derive(const uint8_t from[KEY], const sherd__mask_id *id, residue_kind kind,
                   uint8_t key[KEY])
{
    uint8_t text[LABEL + 4 * 4 + 8], *at = text + LABEL;
    memcpy(text, labels[kind], LABEL); /* includes the terminator */
    sherd__put_u32(at, (uint32_t)id->role);
    sherd__put_u32(at + 4, id->t);
    sherd__put_u32(at + 8, id->prime_index);
    sherd__put_u32(at + 12, id->p);
    sherd__put_u64(at + 16, id->width);
    crypto_generichash(key, KEY, text, sizeof text, from, KEY);
}

static bool same_seed(const sherd__seed_id *a, const sherd__seed_id *b)
{
    return a->role == b->role && a->slot == b->slot && a->at == b->at;
}

static bool same(const sherd__mask_id *a, const sherd__mask_id *b)
{
    return a->role == b->role && a->t == b->t && a->prime_index == b->prime_index && a->p == b->p &&
           a->width == b->width;
}

static const sherd__seed_id no_seed;

/* seed: role 0, or that of the fragment which `id` is a stream of. Then id->t selects a cipher and
 * nothing else, so that masks which are drawn in turns have one each. */
static int stream_of(sherd__masks *m, const sherd__mask_id *id, residue_kind kind,
                     const sherd__seed_id *seed, sherd__keystream **out)
{
    const uint32_t primes = kind == BYTES_V1 ? BYTE_PRIMES : PRIMES;
    cipher *c =
        &m->ciphers[((id->t * primes + id->prime_index) * 2 + (unsigned)id->role % 2) % CIPHERS];
    uint8_t key[KEY], own[KEY];
    assert(id->role && id->prime_index < primes);
    if (c->kind != kind || !same(&c->id, id) || !same_seed(&c->seed, seed)) {
        if (c->id.role != 0) sherd__keystream_fini(&c->ks);
        c->id.role = (sherd__mask_role)0;
        sherd__mask_id of = *id;
        if (seed->role) {
            sherd__masks_seed(m, seed, own);
            of.t = 0;
        }
        derive(seed->role ? own : m->key, &of, kind, key);
        int err = sherd__keystream_init(&c->ks, key);
        sherd__wipe(key, sizeof key);
        if (seed->role) sherd__wipe(own, sizeof own);
        if (err != 0) return err;
        c->id = *id;
        c->kind = kind;
        c->seed = *seed;
    }
    *out = &c->ks;
    return SHERD_OK;
}

/* ---- residues -------------------------------------------------------------------------------- */

/*
 * Converts n words to residues; returns true if one is rejected. v*p is below 2^53, so it and all
 * that follows is exact in doubles. The only tie of rounding is v = -2^29, where l is 2^29 on one
 * side and -2^29, which is rejected, on the other. ROUND is even exactly where h is, so that the
 * tie is rounded to -h.
 */
SHERD__CLONES_WHOLE
static bool scale(const uint32_t *w, size_t n, uint32_t p, double least, double *restrict out)
{
    double f = (double)p, part = f * 0x1p-30, round = 0x1.8p52 + (double)((p - 1) / 2 % 2);
    uint64_t signs = 0;
    for (size_t i = 0; i < n; i++) {
        double v = (double)((int32_t)w[i] >> 2), r = v * part + round - round;
        double spare = v * f - least - r * 0x1p30;
        uint64_t bits;
        memcpy(&bits, &spare, sizeof bits);
        signs |= bits;
        out[i] = r;
    }
    return signs >> 63;
}

/* Converts one word in integers; returns false if it is rejected. */
static bool residue_of(uint32_t word, uint32_t p, double *out)
{
    int64_t v = (int64_t)(word >> 2) - (word >> 31 ? INT64_C(1) << 30 : 0);
    int64_t wide = v * p + (INT64_C(1) << 29) + (INT64_C(1) << 53); /* not negative */
    *out = (double)((wide >> 30) - (INT64_C(1) << 23));
    return (wide & ((INT64_C(1) << 30) - 1)) >= (INT64_C(1) << 30) % p;
}

/* Draws the residue of an element with a rejected word. */
static int redraw(sherd__keystream *ks, uint64_t element, uint32_t p, double *out)
{
    uint8_t block[SHERD__KEYSTREAM_BLOCK];
    bool found = false;
    int err = SHERD_OK;
    for (uint64_t b = 0; err == 0 && !found; b++) {
        err = sherd__keystream_read(ks, 1 + element, b, block, sizeof block);
        for (size_t i = 0; err == 0 && i < BLOCK_WORDS && !found; i++)
            found = residue_of(sherd__get_u32(block + 4 * i), p, out);
    }
    sherd__wipe(block, sizeof block);
    return err;
}

/* Converts the words of one row. A piece with a rejected word is repeated in shorter pieces, and a
 * short piece word by word. */
static int residues(sherd__keystream *ks, const uint32_t *w, size_t n, size_t piece,
                    uint64_t element, uint32_t p, double *out)
{
    const double least = (double)((1u << 30) % p) - 0x1p29;
    int err = SHERD_OK;
    for (size_t at = 0; at < n && err == 0; at += piece) {
        size_t len = n - at < piece ? n - at : piece, end = at + len;
        if (!scale(w + at, len, p, least, out + at)) continue;
        if (piece > SHORT) err = residues(ks, w + at, len, SHORT, element + at, p, out + at);
        else
            for (size_t i = at; i < end && err == 0; i++)
                if (!residue_of(w[i], p, out + i)) err = redraw(ks, element + i, p, out + i);
    }
    return err;
}

/* Reads a part in one read of the keystream. */
static int read_rows(sherd__masks *m, sherd__keystream *ks, const sherd__mask_id *id,
                     sherd__mask_part part, double *out, size_t ld)
{
    uint64_t stride = (id->width + BLOCK_WORDS - 1) / BLOCK_WORDS, first = part.col / BLOCK_WORDS;
    size_t words = (part.rows - 1) * stride * BLOCK_WORDS + part.col % BLOCK_WORDS + part.cols;
    int err = sherd__keystream_read(ks, 0, part.row * stride + first, m->words, words * 4);
    if (words > m->used) m->used = words;
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    for (size_t i = 0; i < words; i++) m->words[i] = __builtin_bswap32(m->words[i]);
#endif
    for (size_t i = 0; i < part.rows && err == 0; i++)
        err = residues(ks, m->words + i * stride * BLOCK_WORDS + part.col % BLOCK_WORDS, part.cols,
                       PIECE, (part.row + i) * stride * BLOCK_WORDS + part.col, id->p,
                       out + i * ld);
    return err;
}

int sherd__masks_part(sherd__masks *m, const sherd__mask_id *id, sherd__mask_part part, double *out,
                      size_t ld)
{
    const size_t rows = part.rows, n = part.cols;
    sherd__keystream *ks;
    size_t step = (id->width + BLOCK_WORDS - 1) / BLOCK_WORDS * BLOCK_WORDS;
    assert(id->width >= n && part.col <= id->width - n);
    if (rows == 0 || n == 0) return SHERD_OK;
    int err = stream_of(m, id, WORDS_V1, &no_seed, &ks);
    /* Neighbouring rows are read together only if little between them is discarded. */
    size_t together = step <= WORDS && 2 * n > step ? WORDS / step : 1;
    for (size_t i = 0; i < rows && err == 0; i += together) {
        size_t some = rows - i < together ? rows - i : together;
        for (size_t c = 0; c < n && err == 0;) {
            size_t room = WORDS - (part.col + c) % BLOCK_WORDS, len = n - c < room ? n - c : room;
            err = read_rows(m, ks, id, (sherd__mask_part){ part.row + i, some, part.col + c, len },
                            out + i * ld + c, ld);
            c += len;
        }
    }
    sherd__wipe(m->words, m->used * sizeof *m->words);
    m->used = 0;
    return err;
}

int sherd__masks_row(sherd__masks *m, const sherd__mask_id *id, uint64_t row, double *out)
{
    return sherd__masks_part(m, id, (sherd__mask_part){ row, 1, 0, id->width }, out, id->width);
}

/* ---- residues of bytes ----------------------------------------------------------------------- */

/* Returns the length of a read that most often has n residues: whole blocks, at most all words. */
static size_t length_for(size_t n, uint32_t p)
{
    enum { MOST = WORDS * 4, BLOCK = SHERD__KEYSTREAM_BLOCK };
    if (n >= MOST) return MOST;
    size_t bytes = n * 256 / p + n / 256 + BLOCK;
    return bytes < MOST ? bytes / BLOCK * BLOCK : MOST;
}

static int draw_bytes(sherd__masks *m, const sherd__mask_id *id, const sherd__seed_id *seed,
                      uint64_t unit, size_t n, uint8_t *out)
{
    sherd__keystream *ks;
    uint64_t block = 0;
    assert(id->p >= 2 && id->p <= UINT8_MAX);
    int err = n ? stream_of(m, id, BYTES_V1, seed, &ks) : SHERD_OK;
    while (n > 0 && !err) {
        size_t len = length_for(n, id->p);
        err = sherd__keystream_read(ks, unit, block, m->words, len);
        if (len / 4 > m->used) m->used = len / 4;
        if (err) break;
        size_t have = sherd__bytes_keep((const uint8_t *)m->words, len, id->p, out, n);
        out += have;
        n -= have;
        block += len / SHERD__KEYSTREAM_BLOCK;
    }
    sherd__wipe(m->words, m->used * sizeof *m->words);
    m->used = 0;
    return err;
}

int sherd__masks_bytes(sherd__masks *m, const sherd__mask_id *id, uint64_t unit, size_t n,
                       uint8_t *out)
{
    return draw_bytes(m, id, &no_seed, unit, n, out);
}

int sherd__masks_seeded(sherd__masks *m, const sherd__seed_id *id, const sherd__mask_id *of,
                        uint64_t unit, size_t n, uint8_t *out)
{
    const sherd__mask_id stream = { id->role, of->t, of->prime_index, of->p, 0 };
    assert(id->role);
    return draw_bytes(m, &stream, id, unit, n, out);
}
