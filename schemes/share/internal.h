/* Shared by the files of `share`: layout and lifetime (share.c), encoding (encode.c), cells
 * (hide.c), B at the nodes (resident.c), windows (windows.c), checks (check.c), decoding
 * (decode.c). Residues are numbers of 23 bits in doubles, or bytes (bytes.h): what is declared as
 * void * below holds either kind. */
#ifndef SCHEMES_SHARE_INTERNAL_H
#define SCHEMES_SHARE_INTERNAL_H

#include "crypto/binding.h"

#include <assert.h>
#include "crypto/byte_code.h"
#include "crypto/freivalds.h"
#include "crypto/mask.h"
#include "matrix/exact.h"
#include "schemes/share/share.h"

#define TRIALS SHERD__FVP_TRIALS

/**
 * One operand in coded form: a share is a weighted sum of `terms` = blocks + masks. If the code
 * cuts rows, A and D are cut into K row blocks, and B is used at all K points, as one block with
 * the sum of K weights; under share1 B is a single term of weight 1. Otherwise A is cut into K
 * blocks of columns, and B into K blocks of rows.
 */
typedef struct share_operand {
    sherd_view v;
    sherd__fixed fixed;
    uint32_t blocks, masks, terms;
    sherd__mask_role role;
    const double *w[SHERD__SHARE_PRIMES];       /* for each prime: shares x terms, canonical */
    const int8_t *w_bytes[SHERD__SHARE_PRIMES]; /* the same where residues are bytes; else NULL */
    const sherd__windows *windows; /* probes multiply the windows of its rows; NULL: its rows */
    sherd__binding *binding;       /* of the values that its masks hide; NULL: it has no masks */
    size_t run_rows; /* rows of a run of the binding, counted from a span's first row */
    uint32_t seeds;  /* slots whose shares are the masks: all masks or, if 0, none */
    uint32_t seeded[SHERD__LCC_BLOCKS_MAX]; /* mask t is the share of seeded[t] */
} share_operand;

/**
 * Some rows of every block and mask, columns [col, col+cols) of the operand: rows [row, row+rows)
 * of masks and shares, and rows [at, at+rows) of each block of one part of the operand. Block j is
 * rows [j*height, (j+1)*height) of the part, which is rows [from, from+limit) of the operand; rows
 * beyond the part are zeros. block_cols: all blocks have the rows of block 0, and block j has
 * columns [j*block_cols, (j+1)*block_cols); columns beyond the operand are zeros.
 */
typedef struct share_span {
    size_t row, rows, col, cols;
    size_t at, height, from, limit;
    size_t block_cols; /* 0: blocks are ranges of rows */
    size_t run;        /* first run of the binding */
} share_span;

/** One part of A: its rows [from, from+rows), which are rows [row, row+height) of a share. */
typedef struct share_part {
    size_t from, rows, row, height;
} share_part;

/**
 * Secret vectors by which a span's terms are multiplied during a pass; NULL: not multiplied.
 * Layouts, q prime and t trial: r [q][t][rows], left [q][t][term][cols] = rT*X; s [q][t][cols],
 * right [q][t][term][rows] = X*s. The caller zeroes left. With windows, left is rT*X of the images
 * (windows.c computes that of the windows from it), and s and right belong to the windows: s
 * [q][t][numbers of a window], right [q][t][term][rows * windows of an image].
 */
typedef struct share_probe {
    const void *r, *s;
    void *left, *right;
} share_probe;

/** Buffers of one thread for encoding. */
typedef struct share_scratch {
    double *data, *term; /* quantised blocks, blocks x room; residues, terms x room */
    double *laid;        /* windows: one line of them across an image */
    size_t room;         /* elements of one term */
} share_scratch;

/** The shares of one span, for each slot; they are encoded together when the first is requested. */
typedef struct share_batch {
    uint8_t **bytes; /* for each slot; NULL: handed over */
    size_t len;      /* of each */
    bool over;       /* the rest was discarded: shares requested again are made one at a time */
} share_batch;

typedef struct share_panel {
    void *r;  /* for C = A*B: [q][t][rows]; with windows each number is used for all windows of an
                 image, multiplied by share.across */
    void *ru; /* [q][t][term][depth] = rT * terms of A */
    void *ur; /* for C = A^T*D: [q][t][term][rows of answers] = terms of A * r */
    size_t held; /* bytes of ru and ur, as counted in share.held */
    share_batch left;
} share_panel;

typedef struct share_tile {
    void *s;          /* [q][t][width] */
    void *vs;         /* [q][t][term][depth] = terms of B * s */
    void *sum;        /* transposed: [q][k][width], sum of the panels decoded so far, or in the
                         group */
    int64_t *whole;   /* [k][width], sum of the groups before */
    uint32_t decoded; /* number of panels */
    uint32_t summed;  /* number of them in sum */
} share_tile;

/** One (tile, panel), open until it is decoded. */
typedef struct share_spot {
    bool decoded;
    share_batch batch;
    void *ds;   /* transposed: [q][t][term][rows] = terms of D * s */
    void *gram; /* [q][t][term of left][term of right], 32 bits each; of bytes: [q][left][right],
                   all products of check vectors */
} share_spot;

/** Decode weights for one set of slots. */
typedef struct share_weights {
    uint32_t *slots; /* threshold, ascending; NULL: free */
    void *w;         /* [q][row][threshold]: one row for each block, or one for their sum */
    bool transposed;
} share_weights;

#define SHARE_WEIGHTS 8u
#define SHARE_CHUNKS 64u

/** The terms of some rows of B; every slot's share is a sum of them. */
typedef struct share_chunk {
    share_scratch terms; /* data is the first term */
    uint32_t tile, prime;
    size_t first, rows;
    uint64_t used; /* time of the last use; 0: empty */
} share_chunk;

/** State owned by the loop thread. */
typedef struct share_loop {
    sherd__masks *masks; /* of B */
    share_chunk chunk[SHARE_CHUNKS];
    uint32_t chunks;
    size_t rows; /* rows of a chunk, at most */
    uint64_t clock;
} share_loop;

typedef struct share {
    sherd__share_params p;
    uint32_t threshold;
    bool transposed;
    size_t n, k, m;              /* n: rows of p.a, which are images if there are windows */
    sherd__windows windows;      /* count 0: none */
    size_t each;                 /* rows of A for each row of p.a: windows of an image, or 1 */
    size_t depth;                /* columns of a share of A, rows of one of B: k, or of a block */
    size_t h;                    /* rows of a share of A for a whole part */
    uint32_t part_panels, lefts; /* panels of a whole part; panels of A */
    sherd_rows rows;             /* rows of p.a in this product */
    size_t tile_cols;
    uint32_t group;                /* transposed: panels of which the primes hold the sum; 0: all */
    uint32_t first, panels, tiles; /* of this product: index of its first panel of A; numbers of
                                      panels and tiles */
    sherd__crt crt;
    double *weights; /* contains w of all operands */
    const double *b_weights[SHERD__SHARE_PRIMES];
    /* The same where residues are bytes: of a, and of b in the second half; else NULL. */
    int8_t *weights_bytes;
    int8_t *right_bytes;
    uint32_t *seed_slots; /* copy of those of p */
    uint32_t rights;      /* right operands so far, among which seeds take turns */
    sherd__bytes_crt crt_bytes;
    struct share_bytes *bytes; /* state of bytes.h; NULL: residues have 23 bits */
    share_operand a, b;        /* b: B, or D if transposed */
    sherd__masks *a_masks, *b_masks;
    sherd__binding *a_binding, *b_binding;
    share_scratch scratch;
    share_panel *panel; /* lefts panels; access by share_panel_of */
    share_tile *tile;
    share_spot *spot; /* tiles x panels */
    void *rt;         /* transposed: [q][t][k] */
    void *across;     /* windows: [q][t][each], factors of share_panel.r */
    void *spread;     /* windows: [t][rows of answers], r of the panel being checked */
    size_t held;      /* bytes of ru and ur of panels without open cells */
    share_weights cache[SHARE_WEIGHTS];
    uint32_t cache_next;
    void *line;      /* decode: a piece of residues for each prime and block, and one of values */
    uint8_t dtype_b; /* element kind of B at the node */
    uint8_t dead[SHERD__LCC_SHARES_MAX / 8]; /* a bit for each slot without requests */
    share_loop loop;
} share;

/** Returns a panel by its index in the product. */
static inline share_panel *share_panel_of(const share *d, uint32_t panel)
{
    assert(panel < d->panels);
    return &d->panel[d->first + panel];
}

/** Returns whether the slot's share of the operand is a seed. */
static inline bool share_seeded(const share_operand *o, uint32_t slot)
{
    for (uint32_t t = 0; t < o->seeds; t++)
        if (o->seeded[t] == slot) return true;
    return false;
}

static inline bool share_cuts_inner(const share *d)
{
    return d->p.by->cut == SHERD__CUT_INNER;
}

/** Returns the number of blocks of rows that a part of A is cut into. */
static inline uint32_t share_row_blocks(const share *d)
{
    return share_cuts_inner(d) ? 1 : d->p.code.blocks;
}

/** Returns the number of rows of the largest panel. */
static inline size_t share_panel_most(const share *d)
{
    return d->h < d->p.panel_rows ? d->h : d->p.panel_rows;
}

share_part sherd__share_part(const share *d, uint32_t panel);
/** Return the number of rows in a panel: of the share of p.a; of an answer, which is that of the
 *  left operand multiplied there (not for sums). */
size_t sherd__share_panel_rows(const share *d, uint32_t panel);
size_t sherd__share_answer_rows(const share *d, uint32_t panel);

static inline size_t share_tile_width(const share *d, uint32_t tile)
{
    size_t left = d->m - (size_t)tile * d->tile_cols;
    return left < d->tile_cols ? left : d->tile_cols;
}

/** Returns the number of runs of the binding in a tile of B. */
size_t sherd__share_tile_runs(const share *d);

static inline share_spot *share_spot_of(const share *d, uint32_t tile, uint32_t panel)
{
    assert(tile < d->tiles && panel < d->panels);
    return &d->spot[(size_t)tile * d->panels + panel];
}

/** Return the span of a panel's rows in p.a and in D (a tile's columns), and of a tile of B. */
/* What is encoded: a span of an operand, with the masks of the operand. */
typedef struct share_source {
    const share_operand *o;
    sherd__masks *masks;
    const share_span *span;
} share_source;

/* Rows of a source that are in cache together, modulo prime number q. */
typedef struct share_piece {
    const share_source *of;
    size_t row, rows;
    uint32_t q;
} share_piece;

share_span sherd__share_span_a(const share *d, uint32_t panel);
share_span sherd__share_span_d(const share *d, uint32_t tile, uint32_t panel);
share_span sherd__share_span_b(const share *d, uint32_t tile);

/** Allocates room for whole rows of `cols`, larger if there is less. SHERD_ENOMEM. */
int sherd__share_scratch(const share *d, share_scratch *s, size_t cols) SHERD_MUST;
void sherd__share_scratch_free(share_scratch *s);
/**
 * Reads `rows` rows of every block of a span, from its row `row` on, into s and quantises them;
 * values beyond the operand are zero. *h: hash of the run that these rows continue or start.
 * SHERD_EIO: a run that ends here differs from the values that its masks hid before
 * (crypto/binding.h).
 */
int sherd__share_load(share_scratch *s, const share_operand *o, const share_span *span, size_t row,
                      size_t rows, sherd__binding_hash *h) SHERD_MUST;
/** Computes the terms of the rows read by sherd__share_load. They are stored in s; rows that are
 *  already canonical are used unchanged. SHERD_ENOMEM. */
int sherd__share_terms(const share *d, share_scratch *s, const share_piece *piece,
                       const double **term) SHERD_MUST;
/**
 * One pass over a source. Its rows are read and quantised once. For every prime each
 * term is made, multiplied by the probe's vectors, and summed into shares: out[i] receives the
 * span's rows of share i, one prime after the other (NULL: not wanted; out NULL: no share is
 * wanted). probe may be NULL. SHERD_ENOMEM; SHERD_EIO: as sherd__share_load, and nothing of out may
 * be sent.
 */
int sherd__share_pass(const share *d, share_scratch *s, const share_source *of, uint8_t *const *out,
                      const share_probe *probe) SHERD_MUST;

/** For an operand with windows: out[t][i*each + o], canonical, is window o of image i multiplied by
 *  s[t], for `rows` consecutive images of x. Uses s->laid. */
void sherd__share_windows_right(const share *d, share_scratch *s, const double *x, size_t rows,
                                const double *const vector[TRIALS], uint32_t p,
                                double *const out[TRIALS]);
/** Replaces *left, rT*X of images, by that of windows: [q][t][term][depth]. SHERD_ENOMEM:
 *  unchanged. */
int sherd__share_windows_left(share *d, void **left) SHERD_MUST;
/** Returns r of a panel for every row of its answers: [t][rows], for prime q, valid until the next
 *  call. SHERD_ENOMEM. */
int sherd__share_spread(share *d, uint32_t panel, uint32_t q, const double **out) SHERD_MUST;

/** Draw r of a panel and s of a tile if they do not exist. SHERD_ENOMEM. */
int sherd__share_draw_r(share *d, uint32_t panel) SHERD_MUST;
int sherd__share_draw_s(share *d, uint32_t tile) SHERD_MUST;
/** Draws the vector for A in a transposed product. SHERD_ENOMEM. */
int sherd__share_draw_rt(share *d) SHERD_MUST;
/** Returns it in the form in which rows of A are multiplied by it. */
const void *sherd__share_rt(const share *d);
/** Wipes and frees all check vectors and the data computed from them; new ones are drawn later. */
void sherd__share_redraw(share *d);
/** Called when no cell of a panel is open: keeps its check data for the next product if there is
 *  room. r is kept in any case: late answers are checked with it, and it is small compared to
 *  terms. */
void sherd__share_put_by(share *d, share_panel *p, size_t rows);
/** Frees the check data of the right operand: r and the data of A serve the next product. */
void sherd__share_forget_right(share *d);
/** Discards the shares that were not requested. */
void sherd__share_batch_close(const share *d, share_batch *b);
/** What a fragment is; a node multiplies a left operand by a right one. */
typedef enum share_side { SHARE_LEFT, SHARE_RIGHT, SHARE_ANSWER } share_side;
/** Returns the bytes of one slot's share of a span, or of an answer of that size. */
size_t sherd__share_bytes(const share *d, share_side side, size_t rows, size_t cols);
/** Returns the description of a fragment of this size. */
sherd__fragment_info sherd__share_residues(const share *d, share_side side, size_t rows,
                                           size_t cols);
/** Allocates a*b*c*size zeroed bytes, to be freed with sherd__share_forget. NULL on failure. */
void *sherd__share_secret(size_t a, size_t b, size_t c, size_t size);
/** NULL is allowed. */
void sherd__share_forget(void *secret);
/** Cuts B's tiles into chunks, for which the loop thread makes terms. */
void sherd__share_loop_size(share *d);
/** Frees the state of the loop thread. */
void sherd__share_loop_free(share *d);

sherd__changed sherd__share_changed(const void *ctx);
void sherd__share_spare(void *ctx, const uint8_t *dead);
int sherd__share_hide(void *ctx, sherd__cell cell, sherd__cell_work *out);
int sherd__share_sizes(void *ctx, sherd__cell cell, sherd__cell_sizes *out);
int sherd__share_left(void *ctx, uint32_t slot, uint32_t panel, sherd__fragment **out);
int sherd__share_resident(void *ctx, uint32_t slot, uint32_t tile, sherd__fragment **out);
int sherd__share_check(void *ctx, sherd__cell cell, const uint8_t *body);
int sherd__share_decode(void *ctx, uint32_t tile, uint32_t panel, const uint32_t *slots,
                        const uint8_t *const *bodies, uint32_t len);

#endif
