/* What the files of `share` have in common: layout and life (share.c), encoding (encode.c),
 * cells (hide.c), B at the nodes (resident.c), checking (check.c), decoding
 * (decode.c). */
#ifndef SCHEMES_SHARE_INTERNAL_H
#define SCHEMES_SHARE_INTERNAL_H

#include "crypto/binding.h"
#include "crypto/freivalds.h"
#include "crypto/mask.h"
#include "matrix/exact.h"
#include "schemes/share/share.h"

#define TRIALS SHERD__FVP_TRIALS

/**
 * One operand as it is coded: a share is a sum of `terms` = blocks + masks, each with its weight. A
 * and D are cut into K row blocks; B stands in all K places, which is one block that weighs as much
 * as K; under share1 B is a single term of weight 1.
 */
typedef struct share_operand {
    sherd_view v;
    sherd__fixed fixed;
    uint32_t blocks, masks, terms;
    sherd__mask_role role;
    const double *w[4];            /* by prime: shares x terms, canonical */
    const sherd__windows *windows; /* what probes multiply are those of its rows; NULL: its rows */
    sherd__binding *binding;       /* of what its masks hide; NULL: there are none */
    size_t run_rows; /* of a run of the binding: those of a span are cut from its first */
} share_operand;

/**
 * Some rows of every block and mask, columns [col, col+cols) of the operand: rows [row, row+rows)
 * of masks and shares, and of each block of one part of the operand rows [at, at+rows). Block j is
 * rows [j*height, (j+1)*height) of the part, which is rows [from, from+limit) of the operand; what
 * lies beyond the part is zeros.
 */
typedef struct share_span {
    size_t row, rows, col, cols;
    size_t at, height, from, limit;
    size_t run; /* of the binding: the first one */
} share_span;

/** One part of A: its rows [from, from+rows), which are rows [row, row+height) of a share. */
typedef struct share_part {
    size_t from, rows, row, height;
} share_part;

/**
 * Secret vectors that a span's terms are multiplied by while they pass; NULL: not. Layouts, q prime
 * and t trial: r [q][t][rows], left [q][t][term][cols] = rT*X; s [q][t][cols], right
 * [q][t][term][rows] = X*s. left is zeroed by the caller. With windows left is rT*X of the images
 * (windows.c goes on from there), and s and right are of the windows: s [q][t][numbers of
 * one], right [q][t][term][rows * windows of one].
 */
typedef struct share_probe {
    const double *r, *s;
    double *left, *right;
} share_probe;

/** A thread's room for encoding. */
typedef struct share_scratch {
    double *data, *term; /* blocks x room quantised, terms x room residues */
    double *laid;        /* windows: a line of them across an image */
    size_t room;         /* elements of one term */
} share_scratch;

/** The shares of one span by slot: encoded together when the first is asked for. */
typedef struct share_batch {
    uint8_t **bytes; /* by slot; NULL: handed over */
    size_t len;      /* of each */
    bool over;       /* the rest was thrown away: those asked for again are made one by one */
} share_batch;

typedef struct share_panel {
    double *r;  /* for C = A*B: [q][t][rows]; with windows each number stands for those of an image,
                   times share.across */
    double *ru; /* [q][t][term][k] = rT * terms of A */
    double *ur; /* for C = A^T*D: [q][t][term][rows of answers] = terms of A * r */
    size_t held; /* of ru and ur, as counted in share.held */
    share_batch left;
} share_panel;

typedef struct share_tile {
    double *s;      /* [q][t][width] */
    double *vs;     /* [q][t][term][k] = terms of B * s */
    double *sum;    /* transposed: [q][k][width] of the panels decoded so far, or of the group's */
    int64_t *whole; /* [k][width] of the groups before */
    uint32_t decoded; /* panels */
    uint32_t summed;  /* of them in sum */
} share_tile;

/** One (tile, panel): open until it is decoded. */
typedef struct share_spot {
    bool decoded;
    share_batch batch;
    double *ds;     /* transposed: [q][t][term][rows] = terms of D * s */
    uint32_t *gram; /* [q][t][term of left][term of right] */
} share_spot;

/** Decode weights of one set of slots. */
typedef struct share_weights {
    uint32_t *slots; /* threshold, ascending; NULL: free */
    double *w;       /* [q][row][threshold]: a row for every block, or one for their sum */
    bool transposed;
} share_weights;

#define SHARE_WEIGHTS 8u
#define SHARE_CHUNKS 64u

/** The terms of some rows of B, of which every slot's share is a sum. */
typedef struct share_chunk {
    share_scratch terms; /* data is the first term */
    uint32_t tile, prime;
    size_t first, rows;
    uint64_t used; /* 0: holds nothing */
} share_chunk;

/** What the loop thread has of its own. */
typedef struct share_loop {
    sherd__masks *masks; /* of B */
    share_chunk chunk[SHARE_CHUNKS];
    uint32_t chunks;
    size_t rows; /* of a chunk, at most */
    uint64_t clock;
} share_loop;

typedef struct share {
    sherd__share_params p;
    uint32_t threshold;
    bool transposed;
    size_t n, k, m;              /* n: rows of p.a, which are images where there are windows */
    sherd__windows windows;      /* count 0: none */
    size_t each;                 /* rows of A for each of p.a: windows of an image, or 1 */
    size_t h;                    /* rows of a share of A, of a whole part */
    uint32_t part_panels, lefts; /* panels of a whole part, and of A */
    sherd_rows rows;             /* of p.a, in this product */
    size_t tile_cols;
    uint32_t group; /* transposed: panels whose sum the primes hold; 0: all of them */
    uint32_t first, panels, tiles; /* of this product: its first panel of A, and how many */
    sherd__crt crt;
    double *weights; /* all of the operands' w */
    const double *b_weights[4];
    share_operand a, b; /* b: B, or D where transposed */
    sherd__masks *a_masks, *b_masks;
    sherd__binding *a_binding, *b_binding;
    share_scratch scratch;
    share_panel *panel; /* lefts; use share_panel_of */
    share_tile *tile;
    share_spot *spot; /* tiles x panels */
    double *rt;       /* transposed: [q][t][k] */
    double *across;   /* windows: [q][t][each], see share_panel.r */
    double *spread;   /* windows: [t][rows of answers], r of the panel that is being judged */
    size_t held;      /* bytes of ru and ur of panels that nothing is open of */
    share_weights cache[SHARE_WEIGHTS];
    uint32_t cache_next;
    double *line;    /* decode: a piece of residues by prime and block, and one of values */
    uint8_t dtype_b; /* of B at the node */
    uint8_t dead[SHERD__LCC_SHARES_MAX / 8]; /* a bit per slot: nobody will ask for its share */
    share_loop loop;
} share;

/** Panels are counted from the first one of the product. */
static inline share_panel *share_panel_of(const share *d, uint32_t panel)
{
    return &d->panel[d->first + panel];
}

/** Rows of the largest panel. */
static inline size_t share_panel_most(const share *d)
{
    return d->h < d->p.panel_rows ? d->h : d->p.panel_rows;
}

share_part sherd__share_part(const share *d, uint32_t panel);
/** Rows of p.a's share in a panel; of what is multiplied there, and of an answer that is no sum. */
size_t sherd__share_panel_rows(const share *d, uint32_t panel);
size_t sherd__share_answer_rows(const share *d, uint32_t panel);

static inline size_t share_tile_width(const share *d, uint32_t tile)
{
    size_t left = d->m - (size_t)tile * d->tile_cols;
    return left < d->tile_cols ? left : d->tile_cols;
}

/** Runs of the binding in a tile of B. */
static inline size_t share_tile_runs(const share *d)
{
    return d->loop.rows ? (d->k + d->loop.rows - 1) / d->loop.rows : 0;
}

static inline share_spot *share_spot_of(const share *d, uint32_t tile, uint32_t panel)
{
    return &d->spot[(size_t)tile * d->panels + panel];
}

/** The rows of a panel: of p.a, and of D in a tile's columns. A tile of B. */
share_span sherd__share_span_a(const share *d, uint32_t panel);
share_span sherd__share_span_d(const share *d, uint32_t tile, uint32_t panel);
share_span sherd__share_span_b(const share *d, uint32_t tile);

/** Room for whole rows of `cols`, grown where it is less. SHERD_ENOMEM. */
int sherd__share_scratch(const share *d, share_scratch *s, size_t cols) SHERD_MUST;
void sherd__share_scratch_free(share_scratch *s);
/**
 * Reads `rows` rows of every block of a span from its row `row` on into s, quantised; what lies
 * beyond the operand is zero. *h: of the run that they go on with, or begin. SHERD_EIO: a run that
 * ends here is not what its masks hid before (crypto/binding.h).
 */
int sherd__share_load(share_scratch *s, const share_operand *o, const share_span *span, size_t row,
                      size_t rows, sherd__binding_hash *h) SHERD_MUST;
/** Terms of what sherd__share_load has read, modulo prime q; they lie in s or, where what was read
 * is canonical, are what was read. SHERD_ENOMEM. */
int sherd__share_terms(const share *d, share_scratch *s, const share_operand *o,
                       sherd__masks *masks, const share_span *span, size_t row, size_t rows,
                       uint32_t q, const double **term) SHERD_MUST;
/**
 * One pass over a span of an operand: its rows are read and quantised once, and for every prime
 * each term is made, multiplied by the probe's vectors, and summed up into shares: out[i] takes the
 * span's rows of share i for one prime after the other (NULL: not wanted; out NULL: none is). probe
 * may be NULL. SHERD_ENOMEM; SHERD_EIO: as sherd__share_load, and nothing of out may be sent.
 */
int sherd__share_pass(const share *d, share_scratch *s, const share_operand *o, sherd__masks *masks,
                      const share_span *span, uint8_t *const *out,
                      const share_probe *probe) SHERD_MUST;

/** Of an operand with windows: out[t][i*each + o], canonical, is window o of image i, for `rows`
 *  images of x that lie one after the other, times s[t]; s->laid is used. */
void sherd__share_windows_right(const share *d, share_scratch *s, const double *x, size_t rows,
                                const double *const vector[TRIALS], uint32_t p,
                                double *const out[TRIALS]);
/** *left, rT*X of images, becomes that of windows: [q][t][term][k]. SHERD_ENOMEM: it stays. */
int sherd__share_windows_left(share *d, double **left) SHERD_MUST;
/** r of a panel for every row of its answers: [t][rows], for prime q, until the next call.
 *  SHERD_ENOMEM. */
int sherd__share_spread(share *d, uint32_t panel, uint32_t q, const double **out) SHERD_MUST;

/** Draws r of a panel, s of a tile, where there is none. SHERD_ENOMEM. */
int sherd__share_draw_r(share *d, uint32_t panel) SHERD_MUST;
int sherd__share_draw_s(share *d, uint32_t tile) SHERD_MUST;
/** That of A, where transposed. SHERD_ENOMEM. */
int sherd__share_draw_rt(share *d) SHERD_MUST;
/** Wipes and frees all check vectors and what was made of them: the next ones are drawn anew. */
void sherd__share_redraw(share *d);
/** Nothing of a panel is open any more: what checks know of it is kept for the next product, as far
 * as there is room. r stays: late answers are judged by it, and it is small beside terms. */
void sherd__share_put_by(share *d, share_panel *p, size_t rows);
/** Those of the right operand alone: r, and A's part, are good for the next product. */
void sherd__share_forget_right(share *d);
/** Throws away the shares that nobody asked for. */
void sherd__share_batch_close(const share *d, share_batch *b);
/** Bytes of one slot's share of a span, or of an answer of that size. */
size_t sherd__share_bytes(const share *d, size_t rows, size_t cols);
/** a*b*c*size bytes, zeroed, that are wiped when they are freed: NULL on failure. */
void *sherd__share_secret(size_t a, size_t b, size_t c, size_t size);
/** NULL is allowed. */
void sherd__share_forget(void *secret);
/** Cuts B's tiles into the chunks that the loop thread makes terms of. */
void sherd__share_loop_size(share *d);
/** Forgets what the loop thread has. */
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
