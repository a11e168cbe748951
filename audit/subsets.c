/* Subsets in lexicographic order, or drawn by Floyd's method and kept if they are new. */
#include "audit/subsets.h"

#include <stdbool.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/rand.h"

static uint64_t subsets(uint32_t n, uint32_t size)
{
    __extension__ unsigned __int128 all = 1;
    for (uint32_t i = 0; i < size && all <= UINT64_MAX; i++) all = all * (n - i) / (i + 1);
    return all > UINT64_MAX ? UINT64_MAX : (uint64_t)all;
}

/* Advances to the next subset; returns false after the last. */
static bool next(uint32_t *m, uint32_t n, uint32_t size)
{
    uint32_t i = size;
    while (i > 0 && m[i - 1] == n - size + i - 1) i--;
    if (i == 0) return false;
    m[i - 1]++;
    for (; i < size; i++) m[i] = m[i - 1] + 1;
    return true;
}

/* Floyd: for j = n-size..n-1 adds a number up to j, or j if that number is already in the
   subset. */
static void draw(const sherd__entropy *e, uint32_t *m, uint32_t n, uint32_t size)
{
    uint32_t len = 0;
    for (uint32_t j = n - size; j < n; j++, len++) {
        uint32_t v = (uint32_t)sherd__entropy_below(e, (uint64_t)j + 1), at = 0;
        for (uint32_t i = 0; i < len; i++)
            if (m[i] == v) v = j;
        while (at < len && m[at] < v) at++;
        memmove(m + at + 1, m + at, (len - at) * sizeof *m);
        m[at] = v;
    }
}

int sherd__subsets_choose(sherd__subsets *out, uint32_t n, uint32_t size, uint32_t most,
                          uint64_t seed)
{
    sherd__subsets m = { .size = size };
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, seed);
    size_t cells;
    *out = m;
    if (size == 0 || size > n || most == 0) return SHERD_OK;
    m.of = subsets(n, size);
    uint32_t want = m.of < most ? (uint32_t)m.of : most;
    if (!sherd__mul(want, size, &cells)) return SHERD_ENOMEM;
    m.list = sherd__calloc(cells, sizeof *m.list);
    if (!m.list) return SHERD_ENOMEM;
    for (uint32_t i = 0; i < size; i++) m.list[i] = i;
    while (m.len < want) {
        uint32_t *at = m.list + (size_t)m.len * size;
        bool known = false;
        if (m.of > most) draw(&e, at, n, size);
        for (uint32_t i = 0; i < m.len && m.of > most && !known; i++)
            known = memcmp(m.list + (size_t)i * size, at, size * sizeof *at) == 0;
        if (known) continue;
        if (++m.len == want) break;
        memcpy(at + size, at, size * sizeof *at);
        if (m.of <= most) (void)next(at + size, n, size);
    }
    *out = m;
    return SHERD_OK;
}

void sherd__subsets_fini(sherd__subsets *m)
{
    sherd__free(m->list);
    memset(m, 0, sizeof *m);
}
