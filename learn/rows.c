/* A list is drawn from the key's stream alone, with integer arithmetic, so it is the same on every
   machine. */
#include "learn/rows.h"

#include <string.h>

#include "core/wipe.h"
#include "learn/draw.h"

bool sherd__rows_valid(const sherd__rows *r)
{
    if (r->kind > SHERD__ROWS_DRAWN || r->examples == 0 || r->len == 0) return false;
    return r->kind == SHERD__ROWS_DRAWN || r->len == r->examples;
}

bool sherd__rows_equal(const sherd__rows *a, const sherd__rows *b)
{
    return a->kind == b->kind && a->examples == b->examples && a->len == b->len &&
           memcmp(a->key, b->key, sizeof a->key) == 0;
}

void sherd__rows_list(const sherd__rows *r, uint32_t *out)
{
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_keyed(&state, r->key);
    switch (r->kind) {
    case SHERD__ROWS_GIVEN:
        for (uint32_t i = 0; i < r->len; i++) out[i] = i;
        break;
    case SHERD__ROWS_SHUFFLED: sherd__draw_shuffle(&e, out, r->len); break;
    case SHERD__ROWS_DRAWN: sherd__draw_below(&e, r->examples, out, r->len); break;
    }
    sherd__wipe(&state, sizeof state);
}
