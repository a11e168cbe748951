/*
 * Members of secure aggregation: which nodes are members, which may come back, and which belong in
 * the next roster.
 *
 * A sum that was requested and not opened is requested again, with new keys and masks, over members
 * of the same roster. Once any of them was asked to open it, it is requested again over exactly its
 * survivors. A second sum over other members with the same parameters would reveal, by its
 * difference, the values of single members, and nodes refuse it (node/secure/policy.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/diag.h"
#include "scheduler/secure/internal.h"

/* Losses of one member before a sum is opened: as often as a cluster reconnects to a node
 * quickly. */
#define LOSSES_MAX 5u

/* ---- membership ---------------------------------------------------------------------------- */

void sherd__secure_clock(sherd__secure_job *j, uint64_t now_ms)
{
    if (!j->clocked) j->began_ms = now_ms;
    j->clocked = true;
    j->now_ms = now_ms;
}

void sherd__secure_lost(sherd__secure_job *j, uint32_t node)
{
    member *m = &j->nodes[node];
    m->lost_ms = j->now_ms;
    if (m->out || ++m->losses < LOSSES_MAX) return;
    m->out = true;
    sherd__work_say(&j->w,
                    "%s no longer takes part in the training: it was lost %u times before a sum "
                    "was opened",
                    sherd__work_name(&j->w, node), m->losses);
}

void sherd__secure_leave_out(sherd__secure_job *j, uint32_t node)
{
    member *m = &j->nodes[node];
    m->out = true;
    m->asked = 0;
    sherd__work_forget(&j->w, node);
}

/* Returns how many nodes accuse this one or, if `by`, how many nodes not left out it accuses. */
static uint32_t count_blames(const sherd__secure_job *j, uint32_t node, bool by)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        size_t row = by ? node : i, col = by ? i : node;
        n += j->blames[row * j->o.nodes + col] && !(by && j->nodes[i].out);
    }
    return n;
}

bool sherd__secure_judge(sherd__secure_job *j)
{
    bool any = false;
    for (unsigned by = 0; by < 2; by++) /* accusations against liars do not count against others */
        for (uint32_t i = 0; i < j->o.nodes; i++) {
            uint32_t n = count_blames(j, i, by);
            if (j->nodes[i].out || n <= j->a.colluding) continue;
            sherd__work_say(&j->w,
                            by ? "%s no longer takes part in the training: it reports that it "
                                 "cannot open what %u others sealed for it"
                               : "%s no longer takes part in the training: %u others cannot open "
                                 "what it sealed",
                            sherd__work_name(&j->w, i), n);
            sherd__secure_leave_out(j, i);
            any = true;
        }
    return any;
}

/* Returns true if the node may be back soon, or if less time has passed since its loss than the
 * training had lasted until then: waiting has then cost no more than ending the training, which
 * loses all work done. (If the time of return is unknown, waiting for as long as the loss is worth
 * costs at most twice that loss.) */
static bool may_be_back(const sherd__secure_job *j, const member *m)
{
    if (m->out || m->w.silent) return false;
    return m->away || (m->known && j->now_ms - m->lost_ms < m->lost_ms - j->began_ms);
}

bool sherd__secure_up(const member *m)
{
    return m->w.session && !m->out;
}

bool sherd__secure_in(const member *m)
{
    return sherd__secure_up(m) && !m->waits;
}

uint32_t sherd__secure_count(const sherd__secure_job *j)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->o.nodes; i++) n += sherd__secure_in(&j->nodes[i]);
    return n;
}

bool sherd__secure_wanted(const sherd__secure_job *j, const member *m)
{
    return sherd__secure_up(m) && (!j->bound || m->bound);
}

uint32_t sherd__secure_least(const sherd__secure_job *j)
{
    return j->exact ? j->bound : j->a.threshold;
}

uint32_t sherd__secure_floor(const sherd__secure_job *j)
{
    if (!j->bound) return j->least;
    uint32_t least = j->bound < j->least ? j->bound : j->least;
    return least > j->bound_least ? least : j->bound_least;
}

uint32_t sherd__secure_needed(const sherd__secure_job *j, uint32_t n)
{
    uint32_t safe = sherd__aggregate_threshold(n, j->o.train.colluding ? j->o.train.colluding : 1);
    uint32_t least = sherd__secure_floor(j);
    return least > safe ? least : safe;
}

bool sherd__secure_hope(const sherd__secure_job *j)
{
    uint32_t there = 0, in = 0;
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        const member *m = &j->nodes[i];
        if (j->bound && !m->bound) continue;
        bool may = m->w.session ? !m->out : may_be_back(j, m);
        there += may;
        in += may || (j->phase == HIDING && m->sealed && m->hidden); /* of a sum to be opened */
    }
    if (!j->exact) return there >= sherd__secure_floor(j);
    return in >= j->bound && there >= sherd__secure_needed(j, j->bound);
}

bool sherd__secure_others(const sherd__secure_job *j)
{
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        const member *m = &j->nodes[i];
        if (sherd__secure_wanted(j, m) ? m->waits : sherd__secure_in(m)) return true;
    }
    return sherd__secure_count(j) < sherd__secure_least(j);
}

void sherd__secure_bind(sherd__secure_job *j, bool survivors)
{
    sherd__secure_unbind(j);
    j->exact = survivors;
    j->bound_step = j->sum->step;
    j->bound_least = j->a.threshold;
    j->bound = survivors ? j->survivors_len : j->a.nodes;
    for (uint32_t i = 0; i < j->bound; i++)
        j->nodes[j->node_of[survivors ? j->survivors[i] : i]].bound = true;
}

void sherd__secure_unbind(sherd__secure_job *j)
{
    j->bound = 0;
    j->exact = false;
    for (uint32_t i = 0; i < j->o.nodes; i++) j->nodes[i].bound = false;
}

/* ---- record of sums ------------------------------------------------------------------------ */

static sherd__digest digest_of(const sherd__secure_job *j, uint32_t node)
{
    sherd__digest key;
    _Static_assert(sizeof key == sizeof(sherd__fingerprint), "keys are listed as hashes of them");
    memcpy(&key, j->o.key(j->o.key_ctx, node), sizeof key);
    return key;
}

/* Records these members; NULL: all. */
static bool write_down(sherd__secure_job *j, const uint32_t *who, uint32_t len)
{
    sherd_diag d = { 0 };
    sherd__digest keys[SHERD__AGGREGATE_NODES_MAX];
    _Static_assert(SHERD__AGGREGATE_NODES_MAX <= SHERD__SUMLIST_NODES, "a sum has a line");
    if (!j->o.train.sums) return true;
    for (uint32_t i = 0; i < len; i++) keys[i] = digest_of(j, j->node_of[who ? who[i] : i]);
    int err = who ? sherd__sumlist_add(j->o.train.sums, j->sum->step, keys, len, &d)
                  : sherd__sumlist_ask(j->o.train.sums, j->sum->step, j->a.threshold, keys, len,
                                       &d);
    if (err) sherd__work_stop(&j->w, err, d.hint[0] ? d.hint : NULL, d.message);
    return !err;
}

void sherd__secure_spend(sherd__secure_job *j, uint64_t step)
{
    const sherd__secure_plan p = sherd__secure_plan_of(j);
    const sherd__privacy_round r = sherd__secure_privacy(&p, j->o.count);
    uint64_t first;
    (void)sherd__secure_window(&p, step, &first);
    pthread_mutex_lock(&j->requests.lock);
    j->rounds_asked++;
    j->spent[first / p.rows % j->windows] += sherd__privacy_cost(&r);
    pthread_mutex_unlock(&j->requests.lock);
}

bool sherd__secure_name(sherd__secure_job *j)
{
    return write_down(j, j->survivors, j->survivors_len);
}

bool sherd__secure_note_round(sherd__secure_job *j)
{
    sherd__secure_spend(j, j->sum->step);
    return write_down(j, NULL, j->a.nodes);
}

/* Restricts a repeated step to the members of the opened sum: entries of its sum may have saturated
 * (learn/gradients_summed.c). */
static void bind_opened(sherd__secure_job *j)
{
    j->exact = true;
    j->bound_step = j->opened_step;
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        j->nodes[i].bound = j->nodes[i].opened;
        j->bound += j->nodes[i].opened;
    }
}

bool sherd__secure_bind_named(sherd__secure_job *j, uint64_t step)
{
    if (step == j->opened_step) {
        bind_opened(j);
        return true;
    }
    char text[200], key[SHERD__FINGERPRINT_TEXT];
    const sherd__sumlist_step was = j->o.train.sums ? sherd__sumlist_find(j->o.train.sums, step)
                                                    : (sherd__sumlist_step){ 0 };
    j->bound = (uint32_t)was.len;
    j->exact = was.opened;
    j->bound_step = step;
    j->bound_least = was.threshold;
    for (size_t i = 0; i < was.len; i++) {
        sherd__fingerprint wanted;
        uint32_t node = 0;
        memcpy(&wanted, &was.who[i], sizeof wanted);
        while (node < j->o.nodes &&
               !sherd__fingerprint_equal(j->o.key(j->o.key_ctx, node), &wanted))
            node++;
        if (node < j->o.nodes) j->nodes[node].bound = true;
        if (node < j->o.nodes || !was.opened) continue;
        sherd__fingerprint_text(&wanted, key);
        snprintf(text, sizeof text,
                 "step %" PRIu64 " was to be summed over %zu nodes before, and "
                 "one of them is not in the node file: key=%s",
                 step, was.len, key);
        sherd__work_stop(&j->w, SHERD_EFEWNODES,
                         "the difference to a sum over other nodes would reveal data of single "
                         "nodes, so the step is repeated over the same nodes or not at all",
                         text);
        return false;
    }
    return true;
}

/* ---- messages ------------------------------------------------------------------------------ */

/* Writes the names of bound nodes that are missing, as many as fit. */
static void name_missing(const sherd__secure_job *j, char *out, size_t size)
{
    size_t len = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < j->o.nodes && len < size; i++) {
        const member *m = &j->nodes[i];
        if (!m->bound || sherd__secure_up(m) || (j->phase == HIDING && m->hidden)) continue;
        len += (size_t)snprintf(out + len, size - len, "%s%s", len ? ", " : "",
                                sherd__work_name(&j->w, i));
    }
}

void sherd__secure_too_few(sherd__secure_job *j, uint32_t have, const char *what)
{
    char text[sizeof j->withheld + 400], missing[200];
    const char *remedy = "start nodes again; --survivors is the number that must be left";
    if (j->withheld[0]) { /* by the rules of its owner, not a loss */
        snprintf(text, sizeof text, "%s; too few nodes are left for a sum", j->withheld);
        remedy = "a node that is started again refuses again, since its ledger keeps what is "
                 "spent: its owner may change the option; another time, choose more --noise or "
                 "fewer epochs";
    } else if (j->bound) {
        name_missing(j, missing, sizeof missing);
        snprintf(text, sizeof text,
                 "a sum over %u nodes was not opened, and a sum over other nodes would reveal data "
                 "of single nodes; missing: %s",
                 j->bound, missing[0] ? missing : "an answer of some");
        remedy = "start these nodes again; --resume repeats the step over the same nodes, or not "
                 "at all";
    } else {
        snprintf(text, sizeof text, "%u of %u nodes %s: %u are needed to open the sum", have,
                 j->a.nodes, what, j->a.threshold);
    }
    sherd__work_stop(&j->w, SHERD_EFEWNODES, remedy, text);
}

void sherd__secure_waiting(const void *job, uint64_t now_ms, char *out, size_t size)
{
    const sherd__secure_job *j = job;
    if (j->phase != GATHERING) {
        sherd__work_waiting(job, now_ms, out, size);
        return;
    }
    out[0] = '\0';
    for (uint32_t i = 0; i < j->o.nodes && !out[0]; i++) {
        const member *m = &j->nodes[i];
        if (m->w.session || (j->bound && !m->bound) || !may_be_back(j, m)) continue;
        snprintf(out, size, "waiting %" PRIu64 " s for %s to return", (now_ms - m->lost_ms) / 1000,
                 sherd__work_name(&j->w, i));
    }
}
