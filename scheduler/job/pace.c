/* Which node set the pace of a job, from the time in which each node owed answers. A node that
 * waits for the others owes nothing meanwhile, so its time is short although the job lasts as
 * long. The time until a node is lost or relieved is its own. What other nodes do in its place does
 * not count. */
#include "scheduler/job/job.h"

#include "core/median.h"

#define SLOWER 1.5    /* times the median of the others */
#define SLOWER_S 0.25 /* and so many seconds more */

sherd__job_slowest sherd__job_slowest_of(const sherd__job_pace *paces, uint32_t nodes, double *room)
{
    sherd__job_slowest s = { .node = UINT32_MAX };
    uint32_t others = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        double owed = (paces[i].bytes ? paces[i].seconds : 0) + paces[i].missed;
        if (owed <= s.seconds) continue;
        s.node = i;
        s.seconds = owed;
    }
    for (uint32_t i = 0; i < nodes; i++)
        if (paces[i].bytes && i != s.node) room[others++] = paces[i].seconds;
    s.others = sherd__median(room, others, true);
    bool comparable = others || (s.node < nodes && paces[s.node].missed > 0);
    if (!comparable || s.seconds < SLOWER * s.others || s.seconds < SLOWER_S + s.others)
        s.node = UINT32_MAX;
    return s;
}
