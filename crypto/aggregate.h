/*
 * Secure aggregation: a coordinator gets the sum of what nodes hold, and nothing else (LightSecAgg,
 * So et al., arXiv 2109.14236, algorithm 1). All in F_q, q = 2^61 - 1.
 *
 * In a round node i draws a mask z_i, codes it into one piece for each node, and uploads x_i + z_i.
 * The coordinator names the survivors V, those whose upload it has, and each node signs once a
 * round which V it was told. Each that is shown U signatures for its V answers once with the sum of
 * the pieces it holds of V; any U answers give the sum of z_i over V, and so the sum of x_i, and no
 * mask by itself.
 *
 *   z_i, of (U - T) L numbers, and T L uniform ones are the coefficients p_0 .. p_{U-1} (each a
 *   vector of L) of a polynomial; piece j is its value at j + 1. U values fix it. T values say
 *   nothing of z_i: their T highest coefficients are uniform, and the minor that multiplies them is
 *   diagonal times Vandermonde over points that are distinct and not 0.
 *
 * Who learns what: T nodes together with the coordinator learn the sum over the honest nodes of V,
 * which is what a sum gives away in any case; a node alone learns nothing. U > (N + T) / 2 keeps a
 * coordinator that names two sets of survivors from getting an honest answer for both: any two
 * groups of U nodes have an honest one in common, and it signs one set. (Such a round of signatures
 * is what Bonawitz et al., CCS 2017, add against active adversaries: ConsistencyCheck.)
 *
 * This is the one part of crypto/ that nodes use: masks of their own data.
 */
#ifndef CRYPTO_AGGREGATE_H
#define CRYPTO_AGGREGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rand.h"
#include "sherd/err.h"

#define SHERD__AGGREGATE_NODES_MAX 1024u
#define SHERD__AGGREGATE_Q UINT64_C(0x1fffffffffffffff)

typedef struct sherd__aggregate {
    uint32_t nodes;     /* N */
    uint32_t threshold; /* U */
    uint32_t colluding; /* T */
    size_t len;         /* numbers of one x */
} sherd__aggregate;

/** The least threshold that is safe: the larger of T + 2 and floor((N + T) / 2) + 1. */
uint32_t sherd__aggregate_threshold(uint32_t nodes, uint32_t colluding);
/** SHERD_EINVAL says which of 3 <= N <= SHERD__AGGREGATE_NODES_MAX, 1 <= T, T + 2 <= U <= N,
 *  2U > N + T and 1 <= len does not hold. Everything below relies on it. */
int sherd__aggregate_check(const sherd__aggregate *a, sherd_diag *d) SHERD_MUST;
/** L, the numbers of one piece: len / (U - T), rounded up. */
size_t sherd__aggregate_piece_len(const sherd__aggregate *a);
/** Largest |x| for which N of them cannot wrap: N |x| < q / 2. */
int64_t sherd__aggregate_bound(const sherd__aggregate *a);

/* ---- a node ---------------------------------------------------------------------------------- */

/** The mask of one node for one round. A secret. */
typedef struct sherd__aggregate_mask sherd__aggregate_mask;

/** Fresh, from `e`. SHERD_ENOMEM, SHERD_EINTERNAL (no cipher); *out is NULL then. */
int sherd__aggregate_mask_new(sherd__aggregate_mask **out, const sherd__aggregate *a,
                              const sherd_entropy *e) SHERD_MUST;
/** Wipes. NULL is allowed. */
void sherd__aggregate_mask_free(sherd__aggregate_mask *m);
/** Piece of node `to`, L numbers. */
void sherd__aggregate_piece(const sherd__aggregate_mask *m, uint32_t to, uint64_t *out);
/** out = x + z: len numbers, uniform to all who do not know z. SHERD_ERANGE, out undefined, where
 *  an |x| is above the bound (which one is not said: it is the node's secret). A mask hides one x:
 *  the second call is SHERD_EINVAL. */
int sherd__aggregate_hide(sherd__aggregate_mask *m, const int64_t *x, uint64_t *out) SHERD_MUST;

/* ---- pieces through the coordinator ---------------------------------------------------------- */

/* Pieces travel from node to node by way of the coordinator, sealed (X25519, XSalsa20-Poly1305:
 * libsodium's crypto_box) between two keys that sender and receiver made for this session, each
 * signed with the key that its node is known by (wire/identity.h): nobody else can read a piece,
 * nor make one in another's name. What is sealed names its place, so that a piece of
 * another round, sender or receiver is refused, and what its sender was told the round is about: of
 * two members that were told of other members, weights or a recipe, neither can be made to open the
 * other's pieces. So a coordinator cannot have all but one compute what it knows (Pasquini et al.,
 * CCS 2022, "model inconsistency"). */
#define SHERD__SEAL_KEY 32u
#define SHERD__ABOUT 32u      /* bytes of a digest */
#define SHERD__SEAL_EXTRA 96u /* bytes that sealing adds */

typedef struct sherd__seal_key {
    uint8_t open[SHERD__SEAL_KEY];
    uint8_t secret[SHERD__SEAL_KEY];
} sherd__seal_key;

typedef struct sherd__seal_place {
    uint64_t job, round;
    uint32_t from, to;
    uint8_t about[SHERD__ABOUT];
} sherd__seal_place;

typedef struct sherd__about_part {
    const void *bytes;
    size_t len;
} sherd__about_part;

/** Digest of these in this order (BLAKE2b; each with its length in front). */
void sherd__about(uint8_t out[SHERD__ABOUT], const sherd__about_part *parts, size_t len);

/** A fresh pair; wipe it (core/wipe.h) when the session ends. */
void sherd__seal_key_new(sherd__seal_key *key);
/** Whether anything can be sealed to this key: not to a point of small order, with which all
 *  secrets agree on the same. */
bool sherd__seal_key_valid(const uint8_t open[SHERD__SEAL_KEY]);
/** out: len + SHERD__SEAL_EXTRA bytes. SHERD_EINVAL for a key that is not valid; SHERD_ENOMEM. */
int sherd__seal(uint8_t *out, const uint8_t *in, size_t len, sherd__seal_place place,
                const sherd__seal_key *from, const uint8_t to[SHERD__SEAL_KEY]) SHERD_MUST;
/** The reverse: len bytes from len + SHERD__SEAL_EXTRA. SHERD_EFRAME: not of `from` for us,
 *  damaged, or of another place; out is wiped then. SHERD_ENOMEM. */
int sherd__unseal(uint8_t *out, size_t len, const uint8_t *in, sherd__seal_place place,
                  const uint8_t from[SHERD__SEAL_KEY], const sherd__seal_key *key) SHERD_MUST;

/* ---- a node, round by round ------------------------------------------------------------------ */

/**
 * A node through the rounds of a session: what it must not do is refused here, whatever it is
 * asked. One mask a round, rounds only ascend, one x a mask, one piece from each sender, one set of
 * survivors a round, at least U of them, and one answer, for these, if U nodes were told the same.
 */
typedef struct sherd__aggregate_member sherd__aggregate_member;

/** Node `self` of the session `job`; keys: what the N nodes opened, in order, copied; own is
 *  copied. The caller has checked whose keys these are. SHERD_EINVAL, SHERD_ENOMEM. */
int sherd__aggregate_member_new(sherd__aggregate_member **out, const sherd__aggregate *a,
                                uint32_t self, uint64_t job, const sherd__seal_key *own,
                                const uint8_t (*keys)[32], sherd_diag *d) SHERD_MUST;
/** Wipes. NULL is allowed. */
void sherd__aggregate_member_free(sherd__aggregate_member *m);
/** Forgets the round before and draws a mask. about: what this node was told the round is about.
 *  SHERD_EINVAL: not above the round before. */
int sherd__aggregate_begin(sherd__aggregate_member *m, uint64_t round,
                           const uint8_t about[SHERD__ABOUT], const sherd_entropy *e,
                           sherd_diag *d) SHERD_MUST;
/** Bytes of a sealed piece. */
size_t sherd__aggregate_sealed_len(const sherd__aggregate *a);
/** The sealed piece for another node. SHERD_EINVAL: no such node, or its key is no point. */
int sherd__aggregate_send(sherd__aggregate_member *m, uint32_t to, uint8_t *sealed,
                          sherd_diag *d) SHERD_MUST;
/** A piece from another node. SHERD_EINVAL: no such node, or twice; SHERD_EFRAME: not what that
 *  node sealed for this one in this round, or that one was told it is about something else. */
int sherd__aggregate_receive(sherd__aggregate_member *m, uint32_t from, const uint8_t *sealed,
                             sherd_diag *d) SHERD_MUST;
/** x + z, len numbers; sherd__aggregate_hide. SHERD_EINVAL the second time in a round. */
int sherd__aggregate_upload(sherd__aggregate_member *m, const int64_t *x, uint64_t *out,
                            sherd_diag *d) SHERD_MUST;

#define SHERD__CONFIRMATION 80u /* bytes of the statement that is signed */

/** What a node signs that was told these survivors (ascending) of a round: format and job, round,
 *  digest of about and survivors. */
void sherd__confirmation(uint8_t out[SHERD__CONFIRMATION], uint64_t job, uint64_t round,
                         const uint8_t about[SHERD__ABOUT], const uint32_t *survivors,
                         uint32_t len);
/** The survivors of this round (ascending), and what is to be signed of it; once a round.
 *  SHERD_EFEWNODES: fewer than U; SHERD_EINVAL: no such nodes, or the second time in a round. */
int sherd__aggregate_confirm(sherd__aggregate_member *m, const uint32_t *survivors, uint32_t len,
                             uint8_t statement[SHERD__CONFIRMATION], sherd_diag *d) SHERD_MUST;
/** Whom sherd__aggregate_confirm was given in this round; NULL: it was not called. */
const uint32_t *sherd__aggregate_survivors(const sherd__aggregate_member *m, uint32_t *len);
/** A node, which may be this one, has signed that same statement: the caller has checked that.
 *  SHERD_EINVAL: no such node, or nothing is confirmed by this one. */
int sherd__aggregate_confirmed(sherd__aggregate_member *m, uint32_t from, sherd_diag *d) SHERD_MUST;
/** The sum of pieces over the survivors that were confirmed, L numbers. SHERD_EFEWNODES: by fewer
 *  than U nodes; SHERD_EINVAL: by none, or asked twice in a round; SHERD_ECLOSED: the piece of one
 *  of them never came. */
int sherd__aggregate_answer(sherd__aggregate_member *m, uint64_t *out, sherd_diag *d) SHERD_MUST;

/* ---- both ------------------------------------------------------------------------------------ */

/** acc += x (mod q), n numbers: pieces at a node, uploads at the coordinator. */
void sherd__aggregate_add(uint64_t *acc, const uint64_t *x, size_t n);
/** n numbers from 8 n little-endian bytes, and back. SHERD_EFRAME for one that is not below q. */
int sherd__aggregate_parse(const uint8_t *bytes, size_t n, uint64_t *out) SHERD_MUST;
void sherd__aggregate_print(const uint64_t *x, size_t n, uint8_t *bytes);

/* ---- the coordinator ------------------------------------------------------------------------- */

/**
 * The sum of x over the survivors, from the sum of their uploads (len) and the answers (L each) of
 * U different nodes `who`. SHERD_EINVAL: a node twice, or none of the round; SHERD_ENOMEM. Answers
 * are not checked: a lying node spoils the sum but learns nothing.
 */
int sherd__aggregate_reveal(const sherd__aggregate *a, const uint64_t *uploads, const uint32_t *who,
                            const uint64_t *const *answers, int64_t *sum, sherd_diag *d) SHERD_MUST;

#endif
