/*
 * Connections of a simulated cluster: bytes in transit under the virtual clock, sessions at both
 * ends, and the fault of a node, which occurs when so many pieces have passed it.
 */
#include <stdlib.h>
#include <string.h>

#include "sim_state.h"
#include "wire/record.h"

#define RETRY_MS 300u

/* ---- bytes in transit ------------------------------------------------------------------------ */

void sim_pipe_clear(pipe_end *p)
{
    for (segment *s = p->head, *next; s; s = next) {
        next = s->next;
        free(s->bytes);
        free(s);
    }
    *p = (pipe_end){ .tail = &p->head };
    p->tail = &p->head;
}

static void pipe_push(sim *s, pipe_end *p, uint32_t more_ms, const uint8_t *bytes, size_t len)
{
    segment *seg = calloc(1, sizeof *seg);
    uint64_t at = s->now + sim_below(s, s->o->delay_ms + 1) + more_ms;
    if (at < p->last_ms) at = p->last_ms;
    *seg = (segment){ .bytes = malloc(len), .len = len, .at_ms = at };
    memcpy(seg->bytes, bytes, len);
    p->last_ms = at;
    *p->tail = seg;
    p->tail = &seg->next;
}

/* Sends a few bytes at a time. */
static void drip(sim *s, sim_node *n, const uint8_t *bytes, size_t len)
{
    enum { DROP = 50, DROP_MS = 500 };
    for (size_t at = 0; at < len; at += DROP) {
        uint64_t after = n->up.last_ms > s->now ? n->up.last_ms - s->now : 0;
        pipe_push(s, &n->up, (uint32_t)after + DROP_MS, bytes + at,
                  len - at < DROP ? len - at : DROP);
    }
}

/* Sends an optional unknown record, and PINGs of the same total length. */
static void chatter(sim *s, sim_node *n)
{
    static uint8_t bytes[SHERD__RECORD_BYTES + 4100 + 130 * SHERD__RECORD_BYTES];
    sherd__record r = { .type = 0x7777, .flags = 1, .body_len = 4100 };
    sherd__record_pack(&r, bytes);
    for (uint32_t i = 0; i < 130; i++) {
        sherd__record ping = { .type = SHERD__REC_PING, .number = i + 1 };
        sherd__record_pack(&ping, bytes + SHERD__RECORD_BYTES * (i + 1) + 4100);
    }
    if (n->here && sherd__session_ready(n->here)) pipe_push(s, &n->up, 0, bytes, sizeof bytes);
    n->chatter_ms = s->now + 3000;
}

/* Takes the bytes that a session offers, in pieces of random size. */
static void pull(sim *s, sim_node *n, sherd__session *session, pipe_end *to, bool from_node)
{
    const uint8_t *bytes;
    size_t len;
    while (session && (len = sherd__session_pending(session, s->now, &bytes)) > 0) {
        size_t part = len > 200 && sim_below(s, 4) == 0 ? 1 + (size_t)sim_below(s, len) : len;
        if (from_node && n->dripping) drip(s, n, bytes, part);
        else pipe_push(s, to, from_node ? n->slow_ms : 0, bytes, part);
        if (from_node && part == len) {
            free(n->last);
            n->last = memcpy(malloc(len), bytes, len);
            n->last_len = len;
        }
        sherd__session_sent(session, part);
    }
}

void sim_connect(sim *s, sim_node *n)
{
    sherd__session_options here = { .role = SHERD__COORDINATOR,
                                    .now_ms = s->now,
                                    .hello = { .software = "sim" } };
    sherd__session_options there = { .role = SHERD__NODE,
                                     .now_ms = s->now,
                                     .hello = { .software = "sim",
                                                .memory = s->o->node_memory,
                                                .features = SHERD__FEATURE_WINDOWS } };
    if (s->o->bytes) there.hello.byte_gops = 1e-3;
    if (s->o->bytes && n->index >= s->o->older) there.hello.features |= SHERD__FEATURE_SEEDS;
    n->retry_ms = 0;
    if (n->dead || n->stopped) { /* no answer, as for a refused or stalled connection */
        sherd__job_node_down(s->job, n->index, false, "cannot connect", s->now);
        return;
    }
    sim_pipe_clear(&n->down);
    sim_pipe_clear(&n->up);
    if (sherd__worker_join(n->worker, &n->client, n, NULL, 0)) abort();
    sherd__worker_session(n->client, &there);
    if (sherd__session_new(&n->here, &here) || sherd__session_new(&n->there, &there)) abort();
    sim_note(s, "connect %u", n->index);
}

void sim_end_there(sim_node *n, int err)
{
    sherd__event e;
    if (!n->there) return;
    sherd__session_eof(n->there, err, "connection gone", &e);
    if (e.kind == SHERD__EV_CLOSED) sherd__worker_event(n->client, n->there, &e);
    else sherd__worker_leave(n->client);
    sherd__executor_drain(n->executor);
    sherd__session_free(n->there);
    n->there = NULL;
}

static void here_closed(sim *s, sim_node *n, const sherd__event *e)
{
    bool peer = sherd_err_class(e->err) == SHERD_BLAME_PEER && e->err != SHERD_ESILENT;
    bool back = !n->banned && !peer && n->retries++ < 5;
    sim_note(s, "closed %u %s", n->index, sherd_err_name(e->err));
    if (peer && !n->banned) sherd__job_node_banned(s->job, n->index, e->text);
    if (peer) n->banned = true;
    sherd__session *old = n->here;
    n->here = NULL;
    sherd__job_node_down(s->job, n->index, back, e->text, s->now);
    sherd__session_free(old);
    sim_end_there(n, SHERD_ECLOSED);
    sim_pipe_clear(&n->down);
    sim_pipe_clear(&n->up);
    if (back) n->retry_ms = s->now + RETRY_MS;
}

static void break_connection(sim *s, sim_node *n)
{
    sherd__event e;
    if (!n->here) return;
    sherd__session_eof(n->here, SHERD_ECLOSED, "connection gone", &e);
    if (e.kind == SHERD__EV_CLOSED) here_closed(s, n, &e);
}

/* --- events ---------------------------------------------------------------------------------- */

static void here_event(sim *s, sim_node *n, sherd__event *e)
{
    switch (e->kind) {
    case SHERD__EV_READY:
        sim_note(s, "ready %u", n->index);
        sherd__job_node_up(s->job, n->index, n->here, ++n->sessions, s->now);
        break;
    case SHERD__EV_RESULT:
    case SHERD__EV_REFUSED:
        sim_note(s, "%s %u task %u.%u", e->kind == SHERD__EV_RESULT ? "result" : "refused",
                 n->index, e->task.task, e->task.attempt);
        sherd__job_event(s->job, n->index, e, s->now);
        break;
    case SHERD__EV_CLOSED: here_closed(s, n, e); break;
    default: break;
    }
}

static void deliver_here(sim *s, sim_node *n, segment *seg)
{
    for (size_t at = 0; at < seg->len && n->here;) {
        size_t used = 0;
        sherd__event e;
        (void)!sherd__session_feed(n->here, seg->bytes + at, seg->len - at, s->now, &used, &e);
        at += used;
        here_event(s, n, &e);
        sherd__job_pump(s->job, s->now);
    }
}

static void deliver_there(sim *s, sim_node *n, segment *seg)
{
    for (size_t at = 0; at < seg->len && n->there && !n->chatter_ms;) {
        size_t used = 0;
        sherd__event e;
        int err = sherd__session_feed(n->there, seg->bytes + at, seg->len - at, s->now, &used, &e);
        at += used;
        if (e.kind == SHERD__EV_NONE) continue;
        if (e.kind == SHERD__EV_CLOSED || err) {
            sherd__worker_event(n->client, n->there, &e);
            sherd__session_free(n->there);
            n->there = NULL;
            break_connection(s, n);
            return;
        }
        if (n->frozen && (e.kind == SHERD__EV_TASK || e.kind == SHERD__EV_BLOCK)) {
            sherd__fragment_free(e.fragment);
            continue;
        }
        sherd__worker_event(n->client, n->there, &e);
        while (sherd__executor_drain(n->executor)) {}
        n->computing = n->remote && sherd__executor_pending(n->executor) > 0;
    }
}

static void lose_bytes(pipe_end *p)
{
    segment *seg = p->head;
    if (!seg) return;
    if (!(p->head = seg->next)) p->tail = &p->head;
    free(seg->bytes);
    free(seg);
}

static void strike(sim *s, sim_node *n)
{
    uint8_t junk[64];
    sim_note(s, "%s strikes %u", sim_fault_name(n->fault), n->index);
    s->out->struck++;
    switch (n->fault) {
    case SIM_KILL:
        n->dead = true;
        break_connection(s, n);
        break;
    case SIM_CUT: break_connection(s, n); break;
    case SIM_STOP: n->stopped = true; break;
    case SIM_PAUSE:
        n->stopped = true;
        n->resume_ms = s->now + 2000;
        break;
    case SIM_LIE: n->lying = true; break;
    case SIM_GARBAGE:
        s->rng.fill(s->rng.ctx, junk, sizeof junk);
        pipe_push(s, &n->up, 0, junk, sizeof junk);
        break;
    case SIM_TWICE:
        if (n->last) pipe_push(s, &n->up, 0, n->last, n->last_len);
        break;
    case SIM_DROP: lose_bytes(n->up.head ? &n->up : &n->down); break;
    case SIM_SLOW: n->slow_ms = 2000; break;
    case SIM_COLLUDE: n->colluding = true; break;
    case SIM_CHATTER: n->chatter_ms = s->now; /* fall through */
    case SIM_FREEZE: n->frozen = true; break;
    case SIM_DRIP: n->dripping = true; break;
    default: break;
    }
    n->fault = SIM_NONE;
}

/* --- the clock ------------------------------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t sim_next_time(const sim *s, uint64_t tick)
{
    uint64_t at = tick;
    for (uint32_t i = 0; i < s->o->nodes; i++) {
        const sim_node *n = &s->nodes[i];
        if (n->up.head) at = least(at, n->up.head->at_ms);
        if (n->down.head && !n->stopped) at = least(at, n->down.head->at_ms);
        if (n->here) at = least(at, sherd__session_deadline(n->here));
        if (n->retry_ms) at = least(at, n->retry_ms);
        if (n->computing && !n->stopped) at = least(at, s->now + 1);
        if (n->chatter_ms) at = least(at, n->chatter_ms);
    }
    return at > s->now ? at : s->now;
}

static segment *due(sim *s, pipe_end *p)
{
    segment *seg = p->head;
    if (!seg || seg->at_ms > s->now) return NULL;
    if (!(p->head = seg->next)) p->tail = &p->head;
    return seg;
}

static void drop(segment *seg)
{
    free(seg->bytes);
    free(seg);
}

void sim_compute(sim *s, sim_node *n, bool all)
{
    while (n->remote && sherd__executor_pending(n->executor) && (all || n->turned_ms < s->now)) {
        (void)remote_turn(n->remote);
        while (sherd__executor_drain(n->executor)) {}
        n->turned_ms = s->now;
    }
    while (sherd__executor_drain(n->executor)) {}
    n->computing = n->remote && sherd__executor_pending(n->executor) > 0;
}

void sim_move(sim *s, sim_node *n)
{
    segment *seg;
    if (n->computing && !n->stopped) sim_compute(s, n, false);
    if (n->resume_ms && s->now >= n->resume_ms) n->stopped = false, n->resume_ms = 0;
    if (n->retry_ms && s->now >= n->retry_ms) sim_connect(s, n);
    if (n->fault && (n->down.head || n->up.head) && n->pieces++ >= n->fault_at) strike(s, n);
    if (n->chatter_ms && s->now >= n->chatter_ms) chatter(s, n);
    if (!n->stopped && (seg = due(s, &n->down))) {
        deliver_there(s, n, seg);
        drop(seg);
    }
    if ((seg = due(s, &n->up))) {
        deliver_here(s, n, seg);
        drop(seg);
    }
    if (n->here && s->now >= sherd__session_deadline(n->here)) {
        sherd__event e;
        sherd__session_tick(n->here, s->now, &e);
        here_event(s, n, &e);
    }
    if (n->there && !n->stopped && s->now >= sherd__session_deadline(n->there)) {
        sherd__event e;
        sherd__session_tick(n->there, s->now, &e);
        if (e.kind == SHERD__EV_CLOSED) {
            sherd__worker_event(n->client, n->there, &e);
            sherd__session_free(n->there);
            n->there = NULL;
            break_connection(s, n);
        }
    }
}

void sim_pull(sim *s)
{
    for (uint32_t i = 0; i < s->o->nodes; i++) {
        sim_node *n = &s->nodes[i];
        pull(s, n, n->here, &n->down, false);
        if (!n->stopped) pull(s, n, n->there, &n->up, true);
    }
}
