/*
 * A session that receives arbitrary bytes. The first byte selects the role and how the bytes are
 * cut, the second the time between cuts. A coordinator sends its requests as soon as it is ready.
 * In all cases every block is consistent with its description, all placed memory is returned, and
 * without further bytes the session ends.
 */
#include <assert.h>
#include <stdint.h>

#include "tests/unit/wire/pair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void drain(side *e, uint64_t now)
{
    const uint8_t *out;
    for (size_t n; (n = sherd__session_pending(e->s, now, &out)) > 0;) sherd__session_sent(e->s, n);
}

static void leave_alone(side *e)
{
    for (int i = 0; i < 20 && !e->events[SHERD__EV_CLOSED]; i++) {
        uint64_t at = sherd__session_deadline(e->s);
        assert(at < UINT64_MAX);
        side_tick(e, at);
        drain(e, at);
    }
    assert(e->events[SHERD__EV_CLOSED] == 1);
    assert(e->held == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const size_t steps[] = { SIZE_MAX, 1, 7, 33 };
    if (len < 2) return 0;
    bool coordinator = data[0] & 1, asked = false;
    size_t step = steps[data[0] >> 1 & 3];
    uint64_t now = 1000, tick_ms = 10u * data[1];
    pair p;
    memset(&p, 0, sizeof p);
    side *e = coordinator ? &p.co : &p.no;
    if (side_open(e, coordinator ? SHERD__COORDINATOR : SHERD__NODE, now)) return 0;
    e->room = 1u << 20;
    for (size_t off = 2; off < len && !e->err;) {
        size_t used = 0, n = len - off < step ? len - off : step;
        sherd__event ev;
        now += tick_ms;
        int err = sherd__session_feed(e->s, data + off, n, now, &used, &ev);
        assert(used <= n && (used > 0 || err));
        assert((err != 0) == (ev.kind == SHERD__EV_CLOSED));
        if (ev.fragment)
            assert(!sherd__fragment_table_check(sherd__fragment_info_of(ev.fragment),
                                                sherd__fragment_bytes(ev.fragment), NULL));
        side_event(e, &ev);
        off += used;
        if (coordinator && !asked && sherd__session_ready(e->s)) {
            asked = true;
            assert(pair_converse(&p, 2) == 0);
        }
        if (tick_ms && !e->err) side_tick(e, now);
        drain(e, now);
    }
    leave_alone(e);
    side_close(e);
    return 0;
}
