/*
 * Rounds: assign shards to members, collect their costs, and check that all members have the same
 * sum. The partition of shards does not change any bit of the result. Each member reports figures
 * of the sum that it computed on its own, so these must agree to the bit. If they do not, the
 * memory or program of a member is faulty, and it cannot be decided which one.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "core/diag.h"
#include "scheduler/allreduce/internal.h"
#include "scheduler/plan/weights.h"

/* Returns the divisor of the sum: the weight of the shards that count. */
static double divisor(const sherd__allreduce_step *s)
{
    double weight = s->weight;
    for (uint32_t i = 0; i < s->shards; i++)
        if (s->dropped[i])
            weight -= s->local ? s->local[i].weight : (double)(s->at[i + 1] - s->at[i]);
    return s->local ? weight * s->rate : weight;
}

static void deal(sherd__allreduce_job *j)
{
    const sherd__allreduce_step *s = j->ask->step;
    j->shards_len = 0;
    for (uint32_t i = 0; i < s->shards; i++)
        if (!s->dropped[i]) j->shards[j->shards_len++] = i;
    for (uint32_t i = 0; i < j->members; i++) {
        member *m = &j->nodes[j->node_of[i]];
        uint32_t part = (i + j->turned) % j->members;
        m->from = (uint32_t)((uint64_t)j->shards_len * part / j->members);
        m->to = (uint32_t)((uint64_t)j->shards_len * (part + 1) / j->members);
        m->graded = m->summed = m->refused = false;
    }
}

void sherd__allreduce_begin_step(sherd__allreduce_job *j)
{
    deal(j);
    if (j->shards_len == 0) { /* all counted shards were lost: the others compute them after all */
        memset(j->ask->step->dropped, 0, j->ask->step->shards * sizeof *j->ask->step->dropped);
        deal(j);
    }
    double by = divisor(j->ask->step);
    const sherd__allreduce_step *s = j->ask->step;
    sherd__work_expect(&j->w, j->w.flops * sherd__shards_examples(s->at, s->shards, s->local));
    j->phase = STEPPING;
    j->round++;
    j->graded_ms = 0;
    j->begun_ms = j->now_ms;
    for (uint32_t i = 0; i < j->members && !j->w.done; i++)
        sherd__allreduce_sent(j, j->node_of[i], sherd__allreduce_send_step(j, j->node_of[i], by));
}

bool sherd__allreduce_take_costs(sherd__allreduce_job *j, member *m, const uint8_t *bytes)
{
    sherd__allreduce_step *s = j->ask->step;
    for (uint32_t i = m->from; i < m->to; i++, bytes += 16) {
        uint32_t k = j->shards[i];
        double cost;
        memcpy(&cost, bytes, 8);
        uint64_t hits = sherd__get_u64(bytes + 8);
        if (!isfinite(cost) || hits > s->at[k + 1] - s->at[k]) return false;
        s->costs[k] = cost;
        s->hits[k] = hits;
    }
    m->owed_s += m->graded ? 0 : 1e-3 * (double)(j->now_ms - j->begun_ms);
    m->graded = true;
    return true;
}

void sherd__allreduce_take_figures(sherd__allreduce_job *j, member *m, const uint8_t *bytes)
{
    for (size_t i = 0; i < j->o.tiers + SHERD__ALLREDUCE_FIGURES; i++)
        m->figures[i] = sherd__get_u64(bytes + 8 * i);
    m->summed = true;
}

static double number(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static void count_links(sherd__allreduce_job *j)
{
    j->stats.link_out = j->stats.link_in = 0;
    for (uint32_t i = 0; i < j->members; i++) {
        member *m = &j->nodes[j->node_of[i]];
        const uint64_t *reported = m->figures + j->o.tiers + 2;
        const sherd__allreduce_link_bytes *b = &m->links_before;
        m->links_now = (sherd__allreduce_link_bytes){ b->out + reported[0], b->in + reported[1],
                                                      b->bodies + reported[2] };
    }
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        j->stats.link_out += j->nodes[i].links_now.out;
        j->stats.link_in += j->nodes[i].links_now.in;
    }
}

/* Notes the member for which the others wait, and names it once. A sum says nothing of members: all
 * wait for all. What delays a round is the member that is the last to compute its gradients. */
static void name_pace(sherd__allreduce_job *j)
{
    double seconds[SHERD__ALLREDUCE_MOST], room[SHERD__ALLREDUCE_MOST], median;
    for (uint32_t i = 0; i < j->members; i++) seconds[i] = j->nodes[j->node_of[i]].owed_s;
    uint32_t slowest = sherd__weights_slowest(seconds, j->members, j->stats.rounds, room, &median);
    bool slow = slowest != UINT32_MAX;
    pthread_mutex_lock(&j->requests.lock);
    j->stats.slowest = (sherd__slowest){ 0 };
    if (slow)
        j->stats.slowest = (sherd__slowest){ j->node_of[slowest] + 1,
                                             seconds[slowest] / fmax(median, 1e-3) };
    pthread_mutex_unlock(&j->requests.lock);
    if (!slow || j->nodes[j->node_of[slowest]].pace_named) return;
    j->nodes[j->node_of[slowest]].pace_named = true;
    sherd__work_say(&j->w,
                    "%s is slow: its gradients of %" PRIu64 " rounds took %.1f s, those of the "
                    "others %.1f s (median)",
                    sherd__work_name(&j->w, j->node_of[slowest]), j->stats.rounds, seconds[slowest],
                    median);
}

void sherd__allreduce_end_step(sherd__allreduce_job *j)
{
    sherd__allreduce_step *s = j->ask->step;
    const member *first = &j->nodes[j->node_of[0]];
    size_t tiers = j->o.tiers;
    double took = (double)(j->now_ms - j->graded_ms);
    for (uint32_t i = 0; i < j->members; i++) {
        const member *m = &j->nodes[j->node_of[i]];
        if (!memcmp(m->figures, first->figures, (tiers + 2) * sizeof *m->figures)) continue;
        char text[1000];
        snprintf(text, sizeof text, "%s and %s have different sums",
                 sherd__work_name(&j->w, j->node_of[0]), sherd__work_name(&j->w, j->node_of[i]));
        sherd__work_stop(&j->w, SHERD_EWRONG,
                         "one of them computes wrongly: resume from the last checkpoint without "
                         "one of them, then without the other",
                         text);
        return;
    }
    for (size_t t = 0; t < tiers; t++) s->most[t] = number(first->figures[t]);
    s->l2 = number(first->figures[tiers]);
    s->members = j->members;
    j->commit = j->round;
    j->aborted = false;
    j->rate = s->rate;
    j->failed = 0;
    for (uint32_t i = 0; i < j->o.nodes; i++) j->nodes[i].breaks = 0;
    j->usual_ms = j->usual_ms > 0 ? 0.9 * j->usual_ms + 0.1 * took : took + 1;
    pthread_mutex_lock(&j->requests.lock);
    j->stats.rounds++;
    count_links(j);
    pthread_mutex_unlock(&j->requests.lock);
    name_pace(j);
    sherd__allreduce_answer(j, SHERD_OK, "");
}

void sherd__allreduce_break(sherd__allreduce_job *j, const char *why)
{
    bool stepping = j->phase == STEPPING;
    sherd__allreduce_call_off(j);
    j->phase = IDLE;
    j->broken = j->aborted = true;
    pthread_mutex_lock(&j->requests.lock);
    j->stats.repeated += stepping;
    pthread_mutex_unlock(&j->requests.lock);
    if (++j->failed < FAILED_MOST) return;
    char text[1000];
    snprintf(text, sizeof text, "a sum among the nodes failed %u times: %s", j->failed, why);
    sherd__work_stop(&j->w, SHERD_ENET, "does something between the nodes cut their connections?",
                     text);
}

void sherd__allreduce_break_without(sherd__allreduce_job *j, const char *why)
{
    j->failed = 0;
    sherd__allreduce_break(j, why);
    j->failed = 0;
}
