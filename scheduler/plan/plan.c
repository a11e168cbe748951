/*
 * Chooses the sizes of panels, tiles and cells. A cell should be large enough for its fixed costs
 * (a task message, two hand-overs between threads, BLAS packing B once more) to be negligible, and
 * small enough for several of them per node to fit in memory and keep the link and the node busy at
 * the same time.
 */
#include "scheduler/plan/plan.h"

#include <math.h>
#include <stdio.h>

#include "core/diag.h"

#define DEPTH_MIN 3u /* one being sent, one computed, one received */
#define DEPTH_MAX 64u
#define PANELS_MIN 6u /* of one slot, if there are enough rows: for overlap */
#define TILE_STAYING ((double)SHERD__TILE_STAYING)
#define PANEL_STAYING 320.0 /* rows: more hardly make BLAS faster */
#define BESIDE 2u           /* cells that a node sends or receives while it computes */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t sherd__plan_enough(uint64_t cell)
{
    return cell < SHERD__CELL_SMALL ? SHERD__CELL_SMALL : least(cell, SHERD__CELL_MAX);
}

/* Returns the bytes that a node holds for one column of the resident block: as received, as
 * doubles, and a second time as residues. */
static double resident_column(const sherd__plan_input *in)
{
    double copies = (double)in->size_b + (in->size_b == 8 ? 0 : 8) + (in->primes_len ? 8 : 0);
    return (double)(in->widest ? in->widest : 1) * copies;
}

/* Fails because not even one row and one column fit. row: bytes of both at a node. */
static int too_little(const sherd__plan_input *in, double row, sherd_diag *d)
{
    double need = resident_column(in) / 0.3, need_row = row * DEPTH_MIN / 0.35;
    double need_here = 2 * DEPTH_MIN * in->slots * row;
    char there[16], here[16], want_there[16], want_here[16];
    return sherd__fail(
        d, SHERD_EFEWNODES, "give the nodes more memory, raise --memory, or use more nodes",
        "the work does not fit: %s has %s and the coordinator %s; one row and one column "
        "need about %s at a node and %s here",
        in->smallest ? in->smallest : "a node", sherd__bytes_text((double)in->node_memory, there),
        sherd__bytes_text((double)in->memory, here),
        sherd__bytes_text(need > need_row ? need : need_row, want_there),
        sherd__bytes_text(need_here, want_here));
}

size_t sherd__plan_panel(double most, double row, size_t rows, unsigned panels, uint64_t cell)
{
    const double all = rows ? (double)rows : 1, enough = (double)sherd__plan_enough(cell),
                 cut = all / panels;
    most = fmin(most, all);
    if (most * row > enough && most > cut) most = fmax(cut, enough / row);
    return most < 1 ? 1 : (size_t)most;
}

/* Returns how many cells a node is given at a time. */
static uint32_t depth_of(const sherd__plan_input *in, uint64_t cell_bytes)
{
    uint64_t here = in->memory / 2 / (in->slots * (cell_bytes ? cell_bytes : 1));
    uint64_t at_node = (uint64_t)(0.35 * (double)in->node_memory) / (cell_bytes ? cell_bytes : 1);
    uint64_t depth = least(least(here, at_node), DEPTH_MAX);
    if (depth < 2) depth = 2;
    /* For large cells, the minimum that keeps everything busy is enough. */
    uint64_t busy = (uint64_t)in->tasks + BESIDE;
    if (busy < DEPTH_MIN + 1) busy = DEPTH_MIN + 1;
    if (cell_bytes > SHERD__CELL_SMALL && depth > busy) depth = busy;
    return (uint32_t)depth;
}

/*
 * Plans a product of which panels of A stay at the nodes. A node then needs its rows of A, and two
 * or three tiles of B at a time, in memory that is used again for each tile. All of B would be
 * fresh memory for the first product. Panels are tall, because BLAS packs the tile once for each.
 * Returns false where the other order is better: B is small, or a node has no room for its rows.
 */
static bool plan_staying(sherd__plan *out, const sherd__plan_input *in)
{
    const double room = (double)in->node_memory, col = resident_column(in),
                 all = col * (double)in->m;
    const double tiles = ceil(all / fmin(TILE_STAYING, 0.1 * room));
    const size_t rows = in->rows_longest ? in->rows_longest : 1;
    if (!in->may_stay || all <= fmin(TILE_STAYING, 0.3 * room) || tiles > (double)in->m)
        return false;
    const size_t tile = (size_t)ceil((double)in->m / tiles);
    const double left = (double)in->widest * ((double)in->size_a + (in->size_a == 8 ? 0 : 8));
    const double answer = 8.0 * (double)tile;
    const double here = (double)in->memory / 2 / ((double)in->slots * DEPTH_MIN);
    const double most = fmin(here, 0.35 * room / DEPTH_MIN) / answer;
    if (left * (double)rows > 0.3 * room || most < 1) return false;
    const size_t panels = (size_t)ceil((double)rows / floor(fmin(most, PANEL_STAYING)));
    out->left_stays = true;
    out->tile_cols = tile;
    out->panel_rows = (rows + panels - 1) / panels;
    out->cell_bytes = (uint64_t)((double)out->panel_rows * answer);
    out->depth = depth_of(in, out->cell_bytes);
    out->perm_cache = in->memory / 4;
    out->node_bytes = (uint64_t)(left * (double)rows + col * (double)tile * DEPTH_MIN) +
                      out->cell_bytes * out->depth;
    return true;
}

int sherd__plan_make(sherd__plan *out, const sherd__plan_input *in, sherd_diag *d)
{
    *out = (sherd__plan){ .left_stays = false };
    if (plan_staying(out, in)) return SHERD_OK;
    double answer_el = in->primes_len ? 3.0 * in->primes_len : 8.0;
    double left_row = (double)in->widest * (double)in->size_a;
    double cell_max = (double)least(SHERD__CELL_MAX,
                                    in->memory / 2 / ((uint64_t)in->slots * DEPTH_MIN));
    double for_cells = 0.35 * (double)in->node_memory / DEPTH_MIN;
    /* Nodes compute with doubles: narrower elements are there in both types. */
    double node_row_left = (double)in->widest * ((double)in->size_a + 8);
    if (for_cells < cell_max) cell_max = for_cells;

    double kept = in->rows_kept > 1e-6 ? in->rows_kept : 1e-6;
    double by_node = 0.3 * (double)in->node_memory / resident_column(in);
    double by_row = (cell_max - (left_row < node_row_left ? node_row_left : left_row)) /
                    (kept < 1 ? answer_el : kept * answer_el);
    double cols = by_node < by_row ? by_node : by_row;
    if (cols < 1) return too_little(in, node_row_left + kept * answer_el, d);
    size_t tile = cols >= (double)in->m ? in->m : (size_t)cols;
    if (tile == 0) tile = 1;
    double row = node_row_left + kept * answer_el * (double)tile;
    out->tile_cols = tile;
    out->panel_rows = sherd__plan_panel(cell_max / row, row, in->rows_longest, PANELS_MIN,
                                        in->cell);
    out->cell_bytes = (uint64_t)((double)out->panel_rows * row);
    out->depth = depth_of(in, out->cell_bytes);
    out->perm_cache = in->memory / 4;
    out->node_bytes = (uint64_t)(resident_column(in) * (double)tile) * 2 +
                      out->cell_bytes * out->depth;
    return SHERD_OK;
}

static double cells_of(const sherd__plan *plan, const sherd__plan_input *in)
{
    return ceil((double)in->m / (double)plan->tile_cols) *
           ceil((double)in->rows_longest / (double)plan->panel_rows);
}

size_t sherd__plan_spared(size_t len)
{
    return (len - 1) / 2;
}

int sherd__plan_fit(sherd__plan *out, uint64_t *counted, const sherd__plan_input *in,
                    const uint64_t *rooms, size_t len, sherd_diag *d)
{
    const size_t most = sherd__plan_spared(len);
    double fewest = INFINITY;
    for (size_t i = most + 1; i-- > 0;) {
        sherd__plan_input now = *in;
        sherd__plan plan;
        now.node_memory = rooms[i];
        if (rooms[0] < rooms[most]) now.smallest = NULL;
        int err = sherd__plan_make(&plan, &now, i == most ? d : NULL);
        if (err && i == most) return err;
        double cells = err ? 0 : cells_of(&plan, in);
        if (err || (cells > 2 * fewest && plan.cell_bytes < SHERD__CELL_SMALL)) break;
        fewest = fmin(fewest, cells);
        *out = plan;
        *counted = rooms[i];
    }
    return SHERD_OK;
}

void sherd__plan_rows(sherd__plan *out, uint64_t *counted, const sherd__plan_input *in,
                      unsigned operands, const uint64_t *rooms, size_t len)
{
    double row = (double)(in->widest ? in->widest : 1) * 8 * (operands + 1), most = 0;
    double cell = fmin((double)in->memory / 2 / (DEPTH_MIN * in->slots),
                       (double)SHERD__CELL_MAX / 2);
    for (size_t i = sherd__plan_spared(len) + 1; i-- > 0;) {
        double node = fmin(0.3 * (double)rooms[i] / DEPTH_MIN, cell);
        if (most > 0 && (node < row || (2 * node < most && node < (double)SHERD__CELL_SMALL)))
            break;
        most = fmax(most, node);
        *counted = rooms[i];
        cell = node;
    }
    double rows = cell / row < 1 ? 1 : cell / row;
    *out = (sherd__plan){ .panel_rows = rows > (double)in->n ? in->n : (size_t)rows,
                          .tile_cols = 1,
                          .depth = DEPTH_MIN,
                          .perm_cache = in->memory / 4 };
    if (out->panel_rows == 0) out->panel_rows = 1;
}
