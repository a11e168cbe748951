/*
 * The command in a build that is broken on purpose: one ChaCha20 keystream of a fixed key masks
 * every operand (in place of crypto/mask.c), to make records in which `sherd audit` must find this.
 * All other code is the command's. $MASKS selects what shares the keystream:
 *
 *     encodings    all encodings, each starting five rows after the previous one (the default)
 *     left, right  only the primes of each A or of each B, each starting five rows after the
 *                  previous one
 *     nothing      each prime of each encoding has a stream of its own, as it should
 *
 * $SEEDS makes it send seeds, and selects what shares a seed or its stream:
 *
 *     encodings    all encodings of A or of B
 *     operands     A and B, with two seeds each
 *     primes       all primes of a seed
 *
 * `prog_shared_masks keep A B RECORD` multiplies an A that seven nodes keep by the inner-product
 * code, for A B alone, which the command does not do.
 *
 * Primes below 256 are used only with $BYTES: their masks are drawn in an order of their own
 * (schemes/share/share.h), and most tests state places in rows.
 * link: -Wl,--wrap=sherd__bytes_primes_needed -Wl,--wrap=sherd__share_code_seeds
 * link: -Wl,--wrap=sherd__share_code_seconds
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/command.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "crypto/keystream.h"
#include "crypto/mask.h"
#include "scheduler/plan/share_code.h"
#include "sherd/array.h"
#include "sherd/cluster.h"
#include "sherd/multiplier.h"

enum { ROWS = 5, WORDS = 16, PIECE = 256 };

struct sherd__masks {
    sherd__keystream ks;
    uint64_t number; /* of the encoding */
    bool seeded;
    uint8_t seed[SHERD__SEED_BYTES];
};

static int draw_seed(const uint8_t seed[SHERD__SEED_BYTES], const sherd__mask_id *id, uint64_t unit,
                     size_t n, uint8_t *out);

uint32_t __real_sherd__bytes_primes_needed(size_t k, uint64_t a, uint64_t b);
uint32_t __wrap_sherd__bytes_primes_needed(size_t k, uint64_t a, uint64_t b);

uint32_t __wrap_sherd__bytes_primes_needed(size_t k, uint64_t a, uint64_t b)
{
    return getenv("BYTES") ? __real_sherd__bytes_primes_needed(k, a, b) : 0;
}

static atomic_uint_fast64_t encodings;

static int make(sherd__masks **out, uint64_t number)
{
    static const uint8_t key[32] = { 1 };
    *out = sherd__calloc(1, sizeof **out);
    if (!*out) return SHERD_ENOMEM;
    (*out)->number = number;
    return sherd__keystream_init(&(*out)->ks, key);
}

int sherd__masks_new(sherd__masks **out, const sherd__entropy *entropy)
{
    (void)entropy;
    return make(out, atomic_fetch_add(&encodings, 1));
}

int sherd__masks_from_key(sherd__masks **out, const uint8_t key[32])
{
    int err = make(out, 0);
    if (err || !getenv("SEEDS")) return err;
    (*out)->seeded = true; /* at a node */
    memcpy((*out)->seed, key, sizeof(*out)->seed);
    return SHERD_OK;
}

int sherd__masks_clone(sherd__masks **out, const sherd__masks *m)
{
    return make(out, m->number);
}

void sherd__masks_free(sherd__masks *m)
{
    if (m) sherd__keystream_fini(&m->ks);
    sherd__free(m);
}

/* The position in the keystream, in rows. */
static uint64_t stream_of(const sherd__masks *m, const sherd__mask_id *id, uint64_t *shift)
{
    const char *shared = getenv("MASKS");
    uint64_t one = 16 * (uint64_t)id->t, each = one + 1 + id->prime_index;
    sherd__mask_role role = shared && *shared == 'l' ? SHERD__MASK_LEFT : SHERD__MASK_RIGHT;
    *shift = ROWS * m->number;
    if (!shared || *shared == 'e') return each;
    if (*shared == 'n') {
        *shift = 0;
        return 4096 * (m->number + 1) + each;
    }
    *shift = id->role == role ? ROWS * (uint64_t)id->prime_index : 0;
    return 4096 * (m->number + 1) + (id->role == role ? one : each);
}

/* Returns a word of 30 bits, scaled to the prime, so that the fractions of two primes are equal. */
static double residue(const uint8_t *word, uint32_t p)
{
    uint32_t r = (uint32_t)((uint64_t)(sherd__get_u32(word) >> 2) * p >> 30);
    return r > p / 2 ? (double)r - p : (double)r;
}

int sherd__masks_part(sherd__masks *m, const sherd__mask_id *id, sherd__mask_part part, double *out,
                      size_t ld)
{
    uint8_t words[4 * (PIECE + WORDS)];
    uint64_t shift, nonce = stream_of(m, id, &shift);
    int err = SHERD_OK;
    for (size_t r = 0; r < part.rows; r++)
        for (size_t at = 0; at < part.cols && !err; at += PIECE) {
            uint64_t first = (part.row + r + shift) * id->width + part.col + at;
            size_t some = part.cols - at < PIECE ? part.cols - at : PIECE, skip = first % WORDS;
            err = sherd__keystream_read(&m->ks, nonce, first / WORDS, words, 4 * (skip + some));
            for (size_t i = 0; i < some && !err; i++)
                out[r * ld + at + i] = residue(words + 4 * (skip + i), id->p);
        }
    return err;
}

/* Takes the bytes that are below p. A unit is named by its first row and column, and has at most 32
 * rows of A or 64 of B (schemes/share/bytes_encode.c). The bytes of a unit begin at those of its
 * place; each row has room for the bytes that are rejected. */
int sherd__masks_bytes(sherd__masks *m, const sherd__mask_id *id, uint64_t unit, size_t n,
                       uint8_t *out)
{
    if (m->seeded) return draw_seed(m->seed, id, unit, n, out);
    uint8_t bytes[4 * WORDS];
    uint64_t shift, nonce = stream_of(m, id, &shift);
    uint64_t rows = id->role == SHERD__MASK_LEFT ? 32 : 64, col = unit & UINT32_MAX;
    uint64_t block = (((unit >> 32) + shift) * id->width + col * rows) * 2 / sizeof bytes;
    int err = SHERD_OK;
    for (size_t done = 0; done < n && !err; block++) {
        err = sherd__keystream_read(&m->ks, nonce, block, bytes, sizeof bytes);
        for (size_t i = 0; i < sizeof bytes && done < n && !err; i++)
            if (bytes[i] < id->p) out[done++] = bytes[i];
    }
    return err;
}

/* ---- seeds ----------------------------------------------------------------------------------- */

uint32_t __real_sherd__share_code_seeds(const sherd__prepared *p, const sherd__nodes *nodes,
                                        uint32_t *slots);
uint32_t __wrap_sherd__share_code_seeds(const sherd__prepared *p, const sherd__nodes *nodes,
                                        uint32_t *slots);

uint32_t __wrap_sherd__share_code_seeds(const sherd__prepared *p, const sherd__nodes *nodes,
                                        uint32_t *slots)
{
    return getenv("SEEDS") ? __real_sherd__share_code_seeds(p, nodes, slots) : 0;
}

double __real_sherd__share_code_seconds(const sherd__prepared *p, const sherd__matrices *m,
                                        bool stays, const sherd__nodes *nodes,
                                        const sherd_product_options *opt);
double __wrap_sherd__share_code_seconds(const sherd__prepared *p, const sherd__matrices *m,
                                        bool stays, const sherd__nodes *nodes,
                                        const sherd_product_options *opt);

/* Seeds are for residues of one byte, which are chosen for large operands only. */
double __wrap_sherd__share_code_seconds(const sherd__prepared *p, const sherd__matrices *m,
                                        bool stays, const sherd__nodes *nodes,
                                        const sherd_product_options *opt)
{
    if (getenv("SEEDS") && p->bytes) return 0;
    return __real_sherd__share_code_seconds(p, m, stays, nodes, opt);
}

static bool shared(const char *what)
{
    const char *seeds = getenv("SEEDS");
    return seeds && strcmp(seeds, what) == 0;
}

void sherd__masks_seed(const sherd__masks *m, const sherd__seed_id *id,
                       uint8_t seed[SHERD__SEED_BYTES])
{
    memset(seed, 0, SHERD__SEED_BYTES);
    sherd__put_u64(seed, id->at);
    sherd__put_u32(seed + 12, shared("operands") ? id->slot % 2 : id->slot);
    if (!shared("operands")) sherd__put_u32(seed + 8, (uint32_t)id->role);
    if (!shared("encodings") && !shared("operands")) sherd__put_u64(seed + 16, m->number + 1);
}

/* Draws as crypto/seed.h says. */
static int draw_seed(const uint8_t seed[SHERD__SEED_BYTES], const sherd__mask_id *id, uint64_t unit,
                     size_t n, uint8_t *out)
{
    static const char label[14] = "sherd byte-v1";
    uint8_t text[sizeof label + 24] = { 0 }, key[32], bytes[64];
    sherd__keystream ks;
    memcpy(text, label, sizeof label);
    if (!shared("operands")) sherd__put_u32(text + sizeof label, (uint32_t)id->role);
    if (!shared("primes")) {
        sherd__put_u32(text + sizeof label + 8, id->prime_index);
        sherd__put_u32(text + sizeof label + 12, id->p);
    }
    crypto_generichash(key, sizeof key, text, sizeof text, seed, SHERD__SEED_BYTES);
    int err = sherd__keystream_init(&ks, key);
    for (uint64_t block = 0; n > 0 && !err; block++) {
        err = sherd__keystream_read(&ks, unit, block, bytes, sizeof bytes);
        for (size_t i = 0; i < sizeof bytes && n > 0 && !err; i++)
            if (bytes[i] < id->p) *out++ = bytes[i], n--;
    }
    sherd__keystream_fini(&ks);
    return err;
}

int sherd__masks_seeded(sherd__masks *m, const sherd__seed_id *id, const sherd__mask_id *of,
                        uint64_t unit, size_t n, uint8_t *out)
{
    uint8_t seed[SHERD__SEED_BYTES];
    const sherd__mask_id stream = { id->role, 0, of->prime_index, of->p, 0 };
    sherd__masks_seed(m, id, seed);
    return draw_seed(seed, &stream, unit, n, out);
}

int sherd__masks_row(sherd__masks *m, const sherd__mask_id *id, uint64_t row, double *out)
{
    return sherd__masks_part(m, id, (sherd__mask_part){ row, 1, 0, id->width }, out, id->width);
}

/* ---- kept operands --------------------------------------------------------------------------- */

/* Multiplies A twice by B at nodes that keep A. */
static int multiply_kept(sherd_cluster *c, sherd_view a, sherd_view b, sherd_diag *d)
{
    const sherd_product_options opt = {
        .size = sizeof opt, .scheme = SHERD_SHARE, .code = SHERD_CODE_INNER, .colluding = 1
    };
    const sherd_keep_options how = { .size = sizeof how, .one_way = true };
    sherd_multiplier m = { 0 };
    sherd_kept *kept = NULL;
    double *product = sherd__alloc(a.rows * b.cols * sizeof *product);
    int err = product ? sherd_multiplier_cluster(&m, c, &opt, d) : SHERD_ENOMEM;
    if (!err) err = sherd_multiplier_keep(&kept, m, a, &how, d);
    for (int i = 0; i < 2 && !err; i++)
        err = sherd_multiplier_multiply_kept(m, kept, false, b, product, b.cols, d);
    if (kept) sherd_multiplier_release(m, kept);
    sherd_multiplier_free(m);
    sherd__free(product);
    return err;
}

static int keep(const char *file_a, const char *file_b, const char *record)
{
    const sherd_cluster_options nodes = {
        .size = sizeof nodes, .local_nodes = 7, .program = getenv("SHERD"), .record_dir = record
    };
    sherd_array *a = NULL, *b = NULL;
    sherd_cluster *c = NULL;
    sherd_diag d = { 0 };
    int err = sherd_array_open(&a, file_a, NULL, &d);
    if (!err) err = sherd_array_open(&b, file_b, NULL, &d);
    if (!err) err = sherd_cluster_open(&c, &nodes, &d);
    if (!err)
        err = multiply_kept(c, sherd_array_operand(a, false), sherd_array_operand(b, true), &d);
    if (err) fprintf(stderr, "%s\n", d.message);
    sherd_cluster_close(c);
    sherd_array_close(a);
    sherd_array_close(b);
    return err != 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "keep") == 0) return keep(argv[2], argv[3], argv[4]);
    return sherd__cli_main(argc, argv);
}
