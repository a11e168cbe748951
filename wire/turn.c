/* Usage above the limit of a loop iteration is charged to the following ones: one TLS record may
 * contain hundreds of records. */
#include "wire/turn.h"

#define RECORD_NS 8000u /* the records of one iteration then take about 4 ms */

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Returns the share of one connection in a limit `all` of its key. */
static uint64_t part_of(const sherd__turn *t, uint64_t all)
{
    return t->before < 2 ? all : t->before < all ? all / t->before : 1;
}

static void enter(sherd__turn_part *p, uint64_t now)
{
    sherd__turn *t = p->of;
    if (t->now != now)
        *t = (sherd__turn){ now, less(t->records, SHERD__TURN_RECORDS),
                            less(t->bytes, SHERD__TURN_BYTES), 0, t->asking };
    if (p->now == now) return;
    *p = (sherd__turn_part){ t, now, less(p->records, part_of(t, SHERD__TURN_RECORDS)),
                             less(p->bytes, part_of(t, SHERD__TURN_BYTES)) };
    t->asking++;
}

bool sherd__turn_over(sherd__turn_part *p, uint64_t now)
{
    enter(p, now);
    const sherd__turn *t = p->of;
    return t->records >= SHERD__TURN_RECORDS || p->records >= part_of(t, SHERD__TURN_RECORDS) ||
           t->bytes >= SHERD__TURN_BYTES || p->bytes >= part_of(t, SHERD__TURN_BYTES);
}

void sherd__turn_record(sherd__turn_part *p, uint64_t ns)
{
    const uint64_t more = ns / RECORD_NS, most = 2 * SHERD__TURN_RECORDS;
    const uint64_t records = 1 + (more < most ? more : most);
    p->records += records;
    p->of->records += records;
}

void sherd__turn_bytes(sherd__turn_part *p, uint64_t bytes)
{
    p->bytes += bytes;
    p->of->bytes += bytes;
}
