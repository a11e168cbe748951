/*
 * Secure aggregation: a coordinator learns the sum of the nodes' vectors and nothing else
 * (LightSecAgg, So et al., arXiv 2109.14236, algorithm 1). All arithmetic is in F_q, q = 2^61 - 1.
 *
 * In a round, node i draws a mask z_i, encodes it into one piece for each node, and uploads x_i +
 * z_i. The coordinator names the survivors V, the nodes whose uploads it has received. Each node
 * signs, once a round, the set V that it received. A node that is shown U signatures for its V
 * answers once with the sum of the pieces that it holds of V. Any U answers give the sum of z_i
 * over V, and so the sum of x_i, but no single mask.
 *
 *   z_i, of (U - T) L numbers, and T L uniform numbers are the coefficients p_0 .. p_{U-1} (each a
 *   vector of L) of a polynomial; piece j is its value at j + 1. U values determine it. T values
 *   reveal nothing about z_i: the T highest coefficients are uniform, and the minor that multiplies
 *   them is diagonal times Vandermonde over points that are distinct and not 0.
 *
 * Who learns what: T nodes together with the coordinator learn the sum over the honest nodes of V,
 * which any sum reveals; a node alone learns nothing. U > (N + T) / 2 prevents a coordinator that
 * names two sets of survivors from getting an honest answer for both: any two groups of U nodes
 * have an honest node in common, and it signs only one set. (Bonawitz et al., CCS 2017, add such a
 * round of signatures against active adversaries: ConsistencyCheck.)
 *
 * This is the only part of crypto/ that nodes use: they mask their own data with it.
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
    size_t len;         /* length of one vector x */
} sherd__aggregate;

/** Returns the smallest safe threshold: the larger of T + 2 and floor((N + T) / 2) + 1. */
uint32_t sherd__aggregate_threshold(uint32_t nodes, uint32_t colluding);
/** Checks the parameters; all functions below rely on it. Returns SHERD_EINVAL, with the reason in
 *  *d, unless 3 <= N <= SHERD__AGGREGATE_NODES_MAX, 1 <= T, T + 2 <= U <= N, 2U > N + T and 1 <=
 *  len. */
int sherd__aggregate_check(const sherd__aggregate *a, sherd_diag *d) SHERD_MUST;
/** Returns L, the length of one piece: len / (U - T), rounded up. */
size_t sherd__aggregate_piece_len(const sherd__aggregate *a);
/** Returns the largest |x| for which a sum of N numbers cannot wrap: N |x| < q / 2. */
int64_t sherd__aggregate_bound(const sherd__aggregate *a);

/* ---- a node ---------------------------------------------------------------------------------- */

/** The mask of one node for one round. It is secret. */
typedef struct sherd__aggregate_mask sherd__aggregate_mask;

/** Draws a fresh mask from `e`. The caller frees it with sherd__aggregate_mask_free. Errors:
 *  SHERD_ENOMEM, SHERD_EINTERNAL (no cipher); *out is then NULL. */
int sherd__aggregate_mask_new(sherd__aggregate_mask **out, const sherd__aggregate *a,
                              const sherd__entropy *e) SHERD_MUST;
/** Wipes and frees a mask. NULL is allowed. */
void sherd__aggregate_mask_free(sherd__aggregate_mask *m);
/** Computes the piece of node `to`, L numbers. */
void sherd__aggregate_piece(const sherd__aggregate_mask *m, uint32_t to, uint64_t *out);
/** Computes out = x + z: len numbers, uniform to all who do not know z. Returns SHERD_ERANGE, with
 *  out undefined, if some |x| is above the bound; the error does not name the element, which is the
 *  node's secret. A mask hides only one x: a second call returns SHERD_EINVAL. */
int sherd__aggregate_hide(sherd__aggregate_mask *m, const int64_t *x, uint64_t *out) SHERD_MUST;

/* ---- pieces through the coordinator ---------------------------------------------------------- */

/* Pieces travel from node to node through the coordinator. They are sealed (X25519,
 * XSalsa20-Poly1305: libsodium's crypto_box) between two keys that sender and receiver made for
 * this session, each signed with the identity key of its node (wire/identity.h). No other party can
 * read a piece or forge one. The sealed data contain the piece's place, so that a piece of another
 * round, sender or receiver is refused, and a digest of the description of the round that its
 * sender received. If two members received different members, weights or recipes, neither can open
 * the other's pieces. A coordinator therefore cannot make all members but one compute values that
 * it knows (Pasquini et al., CCS 2022, "model inconsistency"). */
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

/** Computes the digest of the parts in this order (BLAKE2b; each part is preceded by its
 *  length). */
void sherd__about(uint8_t out[SHERD__ABOUT], const sherd__about_part *parts, size_t len);

/** Draws a fresh key pair. The caller wipes it (core/wipe.h) when the session ends. */
void sherd__seal_key_new(sherd__seal_key *key);
/** Returns whether data can be sealed to this key. A point of small order is not valid: it gives
 *  the same shared secret with every key. */
bool sherd__seal_key_valid(const uint8_t open[SHERD__SEAL_KEY]);
/** Seals len bytes; out has room for len + SHERD__SEAL_EXTRA bytes. Errors: SHERD_EINVAL for a key
 *  that is not valid; SHERD_ENOMEM. */
int sherd__seal(uint8_t *out, const uint8_t *in, size_t len, sherd__seal_place place,
                const sherd__seal_key *from, const uint8_t to[SHERD__SEAL_KEY]) SHERD_MUST;
/** Opens len + SHERD__SEAL_EXTRA sealed bytes into len bytes. Errors: SHERD_EFRAME if they were not
 *  sealed by `from` for this key, are damaged, or are of another place; out is then wiped.
 *  SHERD_ENOMEM. */
int sherd__unseal(uint8_t *out, size_t len, const uint8_t *in, sherd__seal_place place,
                  const uint8_t from[SHERD__SEAL_KEY], const sherd__seal_key *key) SHERD_MUST;

/* ---- a node, round by round ------------------------------------------------------------------ */

/**
 * A node's state through the rounds of a session. It refuses every request that would endanger a
 * mask: there is one mask a round, rounds only ascend, a mask hides one x, each sender gives one
 * piece, and a round has one set of survivors, of at least U nodes. A node gives one answer a
 * round, for these survivors, and only if U nodes confirmed the same set.
 */
typedef struct sherd__aggregate_member sherd__aggregate_member;

/** Node `node` in the session `job`, its key, and the public keys of the N nodes, in order. */
typedef struct sherd__aggregate_self {
    uint32_t node;
    uint64_t job;
    const sherd__seal_key *own;
    const uint8_t (*keys)[32];
} sherd__aggregate_self;
/** Creates the state of a node. The keys are copied. The caller has verified the owners of the
 *  keys. Free with sherd__aggregate_member_free. Errors: SHERD_EINVAL, SHERD_ENOMEM. */
int sherd__aggregate_member_new(sherd__aggregate_member **out, const sherd__aggregate *a,
                                const sherd__aggregate_self *self, sherd_diag *d) SHERD_MUST;
/** Wipes and frees the state. NULL is allowed. */
void sherd__aggregate_member_free(sherd__aggregate_member *m);
/** Forgets the previous round and draws a mask. about: digest of the description of the round that
 *  this node received. Returns SHERD_EINVAL if the round is not above the previous one. */
int sherd__aggregate_begin(sherd__aggregate_member *m, uint64_t round,
                           const uint8_t about[SHERD__ABOUT], const sherd__entropy *e,
                           sherd_diag *d) SHERD_MUST;
/** Returns the bytes of a sealed piece. */
size_t sherd__aggregate_sealed_len(const sherd__aggregate *a);
/** Computes the sealed piece for another node. Returns SHERD_EINVAL if there is no such node or its
 *  key is not a valid point. */
int sherd__aggregate_send(sherd__aggregate_member *m, uint32_t to, uint8_t *sealed,
                          sherd_diag *d) SHERD_MUST;
/** Takes a piece from another node. Errors: SHERD_EINVAL if there is no such node or it has already
 *  sent one; SHERD_EFRAME if that node did not seal it for this node in this round, or received a
 *  different description of the round. */
int sherd__aggregate_receive(sherd__aggregate_member *m, uint32_t from, const uint8_t *sealed,
                             sherd_diag *d) SHERD_MUST;
/** Computes x + z, len numbers, as sherd__aggregate_hide does. Returns SHERD_EINVAL the second time
 *  in a round. */
int sherd__aggregate_upload(sherd__aggregate_member *m, const int64_t *x, uint64_t *out,
                            sherd_diag *d) SHERD_MUST;

#define SHERD__CONFIRMATION 80u /* bytes of the statement that is signed */

/** Writes the statement that a node signs when it has received these survivors (ascending) of a
 *  round: format and job, round, digest of about and survivors. */
void sherd__confirmation(uint8_t out[SHERD__CONFIRMATION], uint64_t job, uint64_t round,
                         const uint8_t about[SHERD__ABOUT], const uint32_t *survivors,
                         uint32_t len);
/** Takes the survivors of this round (ascending) and writes the statement to be signed. Errors:
 *  SHERD_EFEWNODES if there are fewer than U; SHERD_EINVAL if a node does not exist, or the second
 *  time in a round. */
int sherd__aggregate_confirm(sherd__aggregate_member *m, const uint32_t *survivors, uint32_t len,
                             uint8_t statement[SHERD__CONFIRMATION], sherd_diag *d) SHERD_MUST;
/** Returns the survivors that sherd__aggregate_confirm received in this round; NULL if it was not
 *  called. */
const uint32_t *sherd__aggregate_survivors(const sherd__aggregate_member *m, uint32_t *len);
/** Records that a node, which may be this one, has signed the same statement; the caller has
 *  verified the signature. Returns SHERD_EINVAL if there is no such node, or this node has no
 *  survivors yet. */
int sherd__aggregate_confirmed(sherd__aggregate_member *m, uint32_t from, sherd_diag *d) SHERD_MUST;
/** Computes the sum of the pieces of the confirmed survivors, L numbers. Errors: SHERD_EFEWNODES if
 *  fewer than U nodes confirmed them; SHERD_EINVAL if there are no survivors yet, or the second
 *  time in a round; SHERD_ECLOSED if the piece of a survivor has not arrived. */
int sherd__aggregate_answer(sherd__aggregate_member *m, uint64_t *out, sherd_diag *d) SHERD_MUST;

/* ---- both ------------------------------------------------------------------------------------ */

/** Adds x to acc (mod q), n numbers: pieces at a node, uploads at the coordinator. */
void sherd__aggregate_add(uint64_t *acc, const uint64_t *x, size_t n);
/** Converts 8 n little-endian bytes to n numbers, and back. Returns SHERD_EFRAME for a number that
 *  is not below q. */
int sherd__aggregate_parse(const uint8_t *bytes, size_t n, uint64_t *out) SHERD_MUST;
void sherd__aggregate_print(const uint64_t *x, size_t n, uint8_t *bytes);

/* ---- the coordinator ------------------------------------------------------------------------- */

/**
 * Computes the sum of x over the survivors, from the sum of their uploads (len numbers) and the
 * answers (L numbers each) of U different nodes `who`. Errors: SHERD_EINVAL if a node is named
 * twice or does not exist; SHERD_ENOMEM. Answers are not checked: a lying node spoils the sum but
 * learns nothing.
 */
int sherd__aggregate_reveal(const sherd__aggregate *a, const uint64_t *uploads, const uint32_t *who,
                            const uint64_t *const *answers, int64_t *sum, sherd_diag *d) SHERD_MUST;

#endif
