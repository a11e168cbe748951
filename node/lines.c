/* A small table that is searched linearly: all keys that get here are on the allow-list. */
#include "node/lines.h"

static sherd__lines_of *place_of(sherd__lines *l, const sherd__fingerprint *key)
{
    sherd__lines_of *oldest = &l->of[0];
    for (unsigned i = 0; i < SHERD__LINES_KEYS; i++) {
        sherd__lines_of *o = &l->of[i];
        if (o->count > 0 && sherd__fingerprint_equal(&o->key, key)) return o;
        if (o->count == 0 ? oldest->count > 0 : oldest->count > 0 && o->since_ms < oldest->since_ms)
            oldest = o;
    }
    *oldest = (sherd__lines_of){ .key = *key };
    return oldest;
}

bool sherd__lines_may(sherd__lines *l, const sherd__fingerprint *key, uint64_t now_ms,
                      uint32_t *left_out)
{
    sherd__lines_of *o = place_of(l, key);
    *left_out = 0;
    if (o->count == 0 || now_ms - o->since_ms > SHERD__LINES_MS) {
        if (o->count > SHERD__LINES_MAX) *left_out = o->count - SHERD__LINES_MAX;
        o->since_ms = now_ms;
        o->count = 0;
    }
    return o->count++ < SHERD__LINES_MAX;
}
