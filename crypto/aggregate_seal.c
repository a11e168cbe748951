/*
 * Sealing of data from one node for another, preceded by the place that it belongs to. The sender's
 * secret key takes part (crypto_box, not crypto_box_seal), so that the coordinator, which transfers
 * the data and knows all public keys, cannot create any. Otherwise it could replace the pieces of
 * all nodes but one with its own, and the sum of the answers would be that node's mask.
 */
#include <sodium.h>
#include <stdbool.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/wipe.h"
#include "crypto/aggregate.h"

enum { PLACE = 24 + SHERD__ABOUT, NONCE = crypto_box_NONCEBYTES };
_Static_assert(NONCE + crypto_box_MACBYTES + PLACE == SHERD__SEAL_EXTRA, "what sealing adds");
_Static_assert(crypto_box_PUBLICKEYBYTES == SHERD__SEAL_KEY, "X25519");

void sherd__seal_key_new(sherd__seal_key *key)
{
    crypto_box_keypair(key->open, key->secret);
}

static void put_place(uint8_t out[PLACE], sherd__seal_place place)
{
    sherd__put_u64(out, place.job);
    sherd__put_u64(out + 8, place.round);
    sherd__put_u32(out + 16, place.from);
    sherd__put_u32(out + 20, place.to);
    memcpy(out + 24, place.about, SHERD__ABOUT);
}

void sherd__about(uint8_t out[SHERD__ABOUT], const sherd__about_part *parts, size_t len)
{
    static const char tag[16] = "sherd about 1";
    crypto_generichash_state h;
    crypto_generichash_init(&h, NULL, 0, SHERD__ABOUT);
    crypto_generichash_update(&h, (const uint8_t *)tag, sizeof tag);
    for (size_t i = 0; i < len; i++) {
        uint8_t front[8];
        sherd__put_u64(front, parts[i].len);
        crypto_generichash_update(&h, front, sizeof front);
        crypto_generichash_update(&h, parts[i].bytes, parts[i].len);
    }
    crypto_generichash_final(&h, out, SHERD__ABOUT);
}

void sherd__confirmation(uint8_t out[SHERD__CONFIRMATION], uint64_t job, uint64_t round,
                         const uint8_t about[SHERD__ABOUT], const uint32_t *survivors, uint32_t len)
{
    static const char tag[32] = "sherd survivors 1";
    uint8_t list[4 * SHERD__AGGREGATE_NODES_MAX];
    for (uint32_t i = 0; i < len; i++) sherd__put_u32(list + 4 * i, survivors[i]);
    memcpy(out, tag, sizeof tag);
    sherd__put_u64(out + 32, job);
    sherd__put_u64(out + 40, round);
    sherd__about(out + 48,
                 (const sherd__about_part[]){ { about, SHERD__ABOUT }, { list, 4 * (size_t)len } },
                 2);
}

/* libsodium's one-piece interface requires a copy of the plain text, which is wiped here. */
static void forget(uint8_t *plain, size_t len)
{
    if (plain) sherd__wipe(plain, len);
    sherd__free(plain);
}

bool sherd__seal_key_valid(const uint8_t open[SHERD__SEAL_KEY])
{
    static const uint8_t any[crypto_box_SECRETKEYBYTES] = { 1 };
    uint8_t shared[crypto_scalarmult_BYTES];
    return crypto_scalarmult(shared, any, open) == 0;
}

int sherd__seal(uint8_t *out, const uint8_t *in, size_t len, sherd__seal_place place,
                const sherd__seal_key *from, const uint8_t to[SHERD__SEAL_KEY])
{
    size_t all;
    if (!sherd__add(len, PLACE, &all)) return SHERD_ENOMEM;
    uint8_t *plain = sherd__alloc(all);
    if (!plain) return SHERD_ENOMEM;
    put_place(plain, place);
    if (len > 0) memcpy(plain + PLACE, in, len);
    randombytes_buf(out, NONCE);
    int err = crypto_box_easy(out + NONCE, plain, all, out, to, from->secret) == 0 ? SHERD_OK
                                                                                   : SHERD_EINVAL;
    forget(plain, all);
    return err;
}

int sherd__unseal(uint8_t *out, size_t len, const uint8_t *in, sherd__seal_place place,
                  const uint8_t from[SHERD__SEAL_KEY], const sherd__seal_key *key)
{
    uint8_t expected[PLACE];
    size_t all;
    if (!sherd__add(len, PLACE, &all)) return SHERD_ENOMEM;
    uint8_t *plain = sherd__alloc(all);
    if (!plain) return SHERD_ENOMEM;
    put_place(expected, place);
    bool sealed = crypto_box_open_easy(plain, in + NONCE, all + crypto_box_MACBYTES, in, from,
                                       key->secret) == 0;
    int err = sealed && memcmp(plain, expected, PLACE) == 0 ? SHERD_OK : SHERD_EFRAME;
    if (len > 0 && err == 0) memcpy(out, plain + PLACE, len);
    else if (len > 0) sherd__wipe(out, len);
    forget(plain, all);
    return err;
}
