/*
 * Fitting copies, so that what was read may be used by another training as it was. Grading goes
 * chunk by chunk in one order: each chunk's sum is rounded to whole numbers by learn/grader.c, and
 * the room of a chunk is what is left when so many of them are added.
 */
#include "learn/own.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "learn/secure.h"
#include "matrix/view.h"

static int check_shape(const sherd__own *own, size_t inputs, size_t targets, sherd_diag *d)
{
    bool apart = own->y.rows > 0;
    size_t want = apart ? inputs : inputs + targets;
    if (own->x.rows == 0 || own->x.rows > UINT32_MAX ||
        (apart && own->y.rows != own->x.rows))
        return sherd__fail(d, SHERD_ESHAPE, NULL, "the node's examples do not match its targets");
    if (own->x.cols != want || (apart && own->y.cols != targets))
        return sherd__fail(d, SHERD_ESHAPE, NULL,
                           "the node's data are not of the recipe's shape: expected %zu inputs and "
                           "%zu target%s", inputs, targets, targets == 1 ? "" : "s");
    return SHERD_OK;
}

static int take_labels(sherd__dataset *s, sherd_view y, size_t at, sherd_diag *d)
{
    uint32_t *labels = s->owned[1] = sherd__calloc(y.rows, sizeof *labels);
    if (labels == NULL) return sherd__fail(d, SHERD_ENOMEM, NULL, "no memory for labels");
    for (size_t i = 0; i < y.rows; i++) {
        double v = sherd__view_at(y, i, at);
        if (!(v >= 0 && v < (double)s->width && v == floor(v)))
            return sherd__fail(d, SHERD_ERANGE, NULL, "a target of the node is no label below %zu",
                               s->width);
        labels[i] = (uint32_t)v;
    }
    s->targets.labels = labels;
    s->classes = s->width;
    return SHERD_OK;
}

static int take_values(sherd__dataset *s, sherd_view y, size_t at, sherd_diag *d)
{
    size_t n;
    double *values = sherd__mul(y.rows, s->width, &n) ? sherd__calloc(n, sizeof *values) : NULL;
    s->owned[1] = values;
    if (values == NULL) return sherd__fail(d, SHERD_ENOMEM, NULL, "no memory for targets");
    for (size_t i = 0; i < y.rows; i++)
        sherd__view_row_f64(y, i, at, s->width, values + i * s->width);
    s->targets.values = values;
    return SHERD_OK;
}

int sherd__own_fit(sherd__dataset *out, const sherd__own *own, const sherd__recipe *r,
                   size_t inputs, size_t width, sherd_diag *d)
{
    size_t targets = r->target_values ? width : 1;
    sherd_diag private = { 0 };
    *out = (sherd__dataset){ 0 };
    int err = check_shape(own, inputs, targets, d);
    if (err) return err;
    sherd__dataset as = { .x = sherd_view_sub(own->x, 0, own->x.rows, 0, inputs), .width = width };
    sherd_view y = own->y.rows ? own->y : own->x;
    size_t at = own->y.rows ? 0 : inputs;
    err = r->target_values ? take_values(&as, y, at, d) : take_labels(&as, y, at, d);
    if (!err) {
        err = sherd__dataset_check(&as, "", inputs, width, &private);
        if (err) err = sherd__fail(d, err, NULL, "the node has a number that is not finite");
    }
    if (!err) err = sherd__dataset_copy(out, &as, NULL, as.x.rows, r->divide_inputs, d);
    sherd__free(as.owned[1]);
    return err;
}

uint64_t sherd__own_memory(const sherd__own *own, size_t inputs, size_t width)
{
    uint64_t each, all;
    if (__builtin_add_overflow(inputs, 2 * (uint64_t)width + 1, &each) ||
        __builtin_mul_overflow(each, 8 * (uint64_t)own->x.rows, &all))
        return UINT64_MAX;
    return all;
}

/* ---- grading ------------------------------------------------------------------------------- */

/* Where the chunk that begins at row `at` ends: at the end of the data at the latest. */
static size_t chunk_len(const sherd__dataset *data, size_t at, uint64_t left)
{
    size_t len = data->x.rows - at;
    if (len > SHERD__OWN_CHUNK) len = SHERD__OWN_CHUNK;
    return left < len ? (size_t)left : len;
}

static uint64_t count_chunks(const sherd__dataset *data, size_t at, uint64_t rows)
{
    uint64_t n = 0;
    for (size_t len; rows > 0; rows -= len, n++) {
        len = chunk_len(data, at, rows);
        at = at + len < data->x.rows ? at + len : 0;
    }
    return n;
}

static unsigned bits_of(uint64_t n)
{
    unsigned bits = 0;
    while (((uint64_t)1 << bits) < n) bits++;
    return bits;
}

static int too_large(sherd_diag *d)
{
    return sherd__fail(d, SHERD_EBUSY, NULL, "a sum does not fit its fixed point");
}

/* Behind the gradient. */
static int add_figures(int64_t *to, uint64_t rows, double cost, uint64_t hits, int32_t scale,
                       unsigned room, sherd_diag *d)
{
    double scaled = ldexp(cost, scale), most = ldexp(1, (int)room);
    if (!(fabs(scaled) <= most) || (double)rows > most) return too_large(d);
    to[0] = (int64_t)rows;
    to[1] = (int64_t)rint(scaled);
    to[2] = (int64_t)hits;
    return SHERD_OK;
}

int sherd__own_grade(sherd__grader *g, const sherd__dataset *data, uint64_t first, uint64_t rows,
                     const int32_t *scales, unsigned room, int64_t *out, sherd_diag *d)
{
    void *sums[SHERD__RECIPE_LAYERS_MAX];
    size_t tiers = sherd__grader_tiers(g), count = 0;
    bool all = rows == 0 || rows > data->x.rows;
    double cost = 0;
    uint64_t hits = 0;
    if (all) rows = data->x.rows;
    size_t at = all ? 0 : (size_t)(first % data->x.rows);
    unsigned bits = bits_of(count_chunks(data, at, rows));
    for (size_t t = 0; t < tiers; count += sherd__grader_count(g, t++)) sums[t] = out + count;
    memset(out, 0, (count + SHERD__SECURE_EXTRA) * sizeof *out);
    if (bits > room) return too_large(d);
    sherd__grading how = { .scales = scales, .room = room - bits, .sums = sums };
    for (uint64_t left = rows; left > 0;) {
        size_t len = chunk_len(data, at, left);
        sherd__dataset part = sherd__dataset_part(data, at, len);
        sherd__shard s = { part.x, part.targets };
        sherd_diag private = { 0 };
        double c = 0;
        uint64_t h = 0;
        int err = sherd__grader_run(g, &s, &how, &c, &h, &private);
        if (err == SHERD_EBUSY) return too_large(d);
        if (err == SHERD_ERANGE) return sherd__fail(d, err, NULL, "the node's cost is not finite");
        if (err) return sherd__fail(d, err, NULL, "cannot compute: %s", sherd_strerror(err));
        cost += c;
        hits += h;
        left -= len;
        at = at + len < data->x.rows ? at + len : 0;
    }
    return add_figures(out + count, rows, cost, hits, scales[tiers], room, d);
}
