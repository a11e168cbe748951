/*
 * A link after the TCP connection is up. Ciphertext goes from libuv to TLS and plaintext to the
 * session, and in the opposite direction for sending. A link has one timer and one code path for
 * each way to end. Decisions that the session or TLS can make are not made here.
 *
 * Reading: ciphertext is read into one reused buffer. It is decrypted one record at a time into a
 * 16 KB buffer that stays in the first-level cache, and the session is fed from there. Writing: the
 * session is asked for more only while TLS has room in its output buffer. One buffer is with the
 * kernel while the other is filled, so a slow reader delays encryption but does not make memory
 * grow. Only one uv_write is pending at a time, because libuv 1.44 completes one request per
 * wake-up (#3728).
 *
 * A node limits how much it reads from the links of one coordinator in one loop iteration
 * (wire/turn.h), so that other links are served too. When a link has used its share, it stops
 * reading. It continues with the ciphertext that it has already received when the timer fires,
 * which is in a later iteration.
 *
 * A write error does not end the link at once: the peer's reason (an alert or a BYE) may still be
 * unread in the socket.
 */
#include <assert.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "core/alloc.h"
#include "wire/link_state.h"

#define KEEPALIVE_S 10
#define DIRECT_MIN 4096u   /* missing bytes of a body from which it is decrypted in place */
#define UNACKED_MS 20000   /* unacknowledged data for this long: the peer host is down */
#define AT_ONCE (1u << 20) /* bytes written before control returns to the loop */

static void pump(sherd__link *l);

/* ---- creation and destruction ---- */

int sherd__link_make(sherd__link **out, uv_loop_t *loop, link_state state, uint32_t timeout_ms)
{
    sherd__link *l = sherd__calloc(1, sizeof *l);
    *out = NULL;
    if (!l) return SHERD_ENOMEM;
    l->in = sherd__alloc(SHERD__LINK_IN);
    l->plain = sherd__alloc(SHERD__LINK_PLAIN);
    if (!l->in || !l->plain) {
        sherd__free(l->in);
        sherd__free(l->plain);
        sherd__free(l);
        return SHERD_ENOMEM;
    }
    uv_update_time(loop); /* the loop may not have updated its clock for a long time */
    l->loop = loop;
    l->state = state;
    l->timeout_ms = timeout_ms;
    l->deadline = uv_now(loop) + timeout_ms;
    l->armed = UINT64_MAX;
    uv_timer_init(loop, &l->timer);
    l->timer.data = l;
    l->refs = 1;
    l->part.of = &l->turn;
    *out = l;
    return SHERD_OK;
}

/* Prefixes text with the peer's address: "127.0.0.1:7000: ...". */
static void put_address(const sherd__link *l, char text[SHERD__TEXT_MAX])
{
    char whole[sizeof l->address + SHERD__TEXT_MAX + 2];
    snprintf(whole, sizeof whole, "%s: %s", l->address, text);
    whole[SHERD__TEXT_MAX - 1] = '\0';
    memcpy(text, whole, strlen(whole) + 1);
}

static void emit(sherd__link *l, sherd__event *ev)
{
    if (ev->kind == SHERD__EV_CLOSED) {
        if (l->closed_emitted) return;
        l->closed_emitted = true;
        put_address(l, ev->text);
    }
    if (l->owner.event) l->owner.event(l->owner.ctx, l, ev);
}

static void emit_closed(sherd__link *l, int code, const char *text)
{
    sherd__event ev = { .kind = SHERD__EV_CLOSED, .err = code };
    snprintf(ev.text, sizeof ev.text, "%s", text);
    emit(l, &ev);
}

void sherd__link_unref(sherd__link *l)
{
    if (--l->refs > 0) return;
    if (l->owned && !l->closed_emitted) emit_closed(l, l->close_code, l->close_text);
    if (l->owned && l->owner.closed) l->owner.closed(l->owner.ctx, l);
    sherd__listener_forget(l);
    sherd__lookup_drop(l->lookup);
    sherd__session_free(l->session);
    sherd__tls_free(l->tls);
    sherd__tls_context_free(l->context);
    sherd__free(l->in);
    sherd__free(l->plain);
    sherd__free(l);
}

static void on_closed(uv_handle_t *h)
{
    sherd__link_unref(h->data);
}

void sherd__link_end_lookup(sherd__link *l)
{
    if (l->answer_open) uv_close((uv_handle_t *)&l->answer, on_closed);
    l->answer_open = false;
}

void sherd__link_shut(sherd__link *l)
{
    if (l->state == LINK_CLOSING) return;
    if (l->state == LINK_RESOLVING) { /* the handle that the resolver thread uses is closed below */
        sherd__lookup_drop(l->lookup);
        l->lookup = NULL;
    }
    sherd__link_end_lookup(l);
    l->state = LINK_CLOSING;
    uv_close((uv_handle_t *)&l->timer, on_closed);
    if (l->tcp_open) uv_close((uv_handle_t *)&l->tcp, on_closed);
    l->tcp_open = false;
}

/* ---- ending a link ---- */

/* The session is over or was never created: flushes, lingers and closes. */
static void wind_down(sherd__link *l)
{
    if (l->state >= LINK_ENDING) return;
    if (!l->tls || l->write_broken) {
        sherd__link_shut(l);
        return;
    }
    l->state = LINK_ENDING;
    l->deadline = uv_now(l->loop) + SHERD__LINK_FLUSH_MS;
    pump(l);
}

/* Joins message and hint into one sentence, truncated to the buffer. */
static void join(char out[SHERD__TEXT_MAX], const char *message, const char *hint)
{
    size_t len = strnlen(message, SHERD__TEXT_MAX - 1), more = hint ? strlen(hint) : 0;
    memcpy(out, message, len);
    if (more && len + 2 < SHERD__TEXT_MAX) {
        memcpy(out + len, "; ", 2);
        len += 2;
        if (more > SHERD__TEXT_MAX - 1 - len) more = SHERD__TEXT_MAX - 1 - len;
        memcpy(out + len, hint, more);
        len += more;
    }
    out[len] = '\0';
}

void sherd__link_fail(sherd__link *l, int code, const char *hint, const char *fmt, ...)
{
    char message[SHERD__TEXT_MAX], text[SHERD__TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    join(text, message, hint);
    if (l->owned) emit_closed(l, code, text);
    else sherd__listener_reject(l, code, text);
    wind_down(l);
}

/* Ends the session because of a transport error. If the error interrupted something that the
 * session knows about, the session reports a more precise reason. */
static void end_session(sherd__link *l, int code, const char *text)
{
    sherd__event ev;
    sherd__session_eof(l->session, code, text, &ev);
    if (ev.kind == SHERD__EV_CLOSED) emit(l, &ev);
    else emit_closed(l, code, text);
}

/* Returns the question that follows from the loss of a connection. */
static const char *question_of_loss(const sherd__link *l)
{
    if (l->session && sherd__session_ready(l->session))
        return " without a goodbye; did its process end?";
    return l->accepted ? " during the handshake; is it sherd, with our key in its node file?"
                       : " during the handshake; is it a sherd node that allows our key?";
}

/* Handles the loss of the connection; `error` is a libuv code. */
static void lost(sherd__link *l, int error)
{
    char text[SHERD__TEXT_MAX];
    bool ended = error == UV_EOF || error == UV_ECONNRESET || error == UV_EPIPE;
    int code = ended ? SHERD_ECLOSED : SHERD_ENET;
    if (l->state >= LINK_SHAKING && l->state <= LINK_LEAVING) {
        snprintf(text, sizeof text, "%s%s", ended ? "it closed the connection" : uv_strerror(error),
                 question_of_loss(l));
        l->write_broken = true; /* the peer cannot read anything more */
        if (l->session) end_session(l, code, text);
        else sherd__link_fail(l, code, NULL, "%s", text);
    }
    sherd__link_shut(l);
}

static void tls_failed(sherd__link *l)
{
    const sherd_diag *d = sherd__tls_failure(l->tls);
    if (l->state == LINK_SHAKING) {
        sherd__link_fail(l, d->code, d->hint, "%s", d->message);
    } else if (l->state == LINK_UP || l->state == LINK_LEAVING) {
        char text[SHERD__TEXT_MAX];
        join(text, d->message, d->hint);
        end_session(l, d->code, text);
        wind_down(l);
    }
}

/* ---- writing ---- */

/* Records a write error. The timer reports it later, never from inside a call of the owner. If
 * `wait`, the link first waits for the peer to send its reason. */
static void write_failed(sherd__link *l, int error, bool wait)
{
    if (l->state >= LINK_ENDING) {
        sherd__link_shut(l);
        return;
    }
    l->write_broken = true;
    l->last_error = error;
    l->deadline = uv_now(l->loop) + (wait && !l->paused ? SHERD__LINK_LINGER_MS : 0);
}

static void on_written(uv_write_t *req, int status)
{
    sherd__link *l = req->data;
    l->writing = false;
    if (l->state == LINK_CLOSING) return;
    if (status < 0) {
        write_failed(l, status, true);
    } else {
        const uint8_t *p;
        sherd__tls_sent(l->tls, sherd__tls_pending(l->tls, &p));
        pump(l);
    }
    sherd__link_arm(l);
}

/* Encrypts the session's pending bytes while TLS has room for them. */
static void gather_from_session(sherd__link *l)
{
    const uint8_t *p;
    size_t n, taken;
    if (!l->session) return;
    while (!l->write_broken && sherd__tls_room(l->tls) &&
           (n = sherd__session_pending(l->session, uv_now(l->loop), &p)) > 0) {
        if (sherd__tls_write(l->tls, p, n, &taken)) {
            write_failed(l, UV_EPROTO, false);
            return;
        }
        sherd__session_sent(l->session, taken);
        if (taken < n) return;
    }
}

static void on_shutdown(uv_shutdown_t *req, int status)
{
    sherd__link *l = req->data;
    if (status < 0 && l->state != LINK_CLOSING) sherd__link_shut(l);
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf);
static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf);

/* Called after all data has been sent. */
static void linger(sherd__link *l)
{
    l->state = LINK_LINGERING;
    l->deadline = uv_now(l->loop) + SHERD__LINK_LINGER_MS;
    l->shutdown.data = l;
    if (uv_shutdown(&l->shutdown, (uv_stream_t *)&l->tcp, on_shutdown) != 0) {
        sherd__link_shut(l);
        return;
    }
    if (l->paused || l->behind) (void)uv_read_start((uv_stream_t *)&l->tcp, on_alloc, on_read);
}

/* Sends n bytes at p: directly if `hurry` and the socket accepts them, otherwise with a write
 * request. Returns false if nothing more can be sent now. */
static bool send_some(sherd__link *l, const uint8_t *p, size_t n, bool hurry)
{
    uv_buf_t buf = uv_buf_init((char *)(uintptr_t)p, (unsigned)n);
    if (hurry) {
        int done = uv_try_write((uv_stream_t *)&l->tcp, &buf, 1);
        if (done < 0 && done != UV_EAGAIN) {
            write_failed(l, done, true);
            return false;
        }
        if (done > 0) sherd__tls_sent(l->tls, (size_t)done);
        if (done == (int)n) return true;
        n = sherd__tls_pending(l->tls, &p);
        buf = uv_buf_init((char *)(uintptr_t)p, (unsigned)n);
    }
    l->write.data = l;
    int err = uv_write(&l->write, (uv_stream_t *)&l->tcp, &buf, 1, on_written);
    if (err) {
        write_failed(l, err, true);
        return false;
    }
    l->writing = true;
    return true;
}

static void pump(sherd__link *l)
{
    size_t written = 0;
    while (l->tls && !l->write_broken && l->state >= LINK_SHAKING && l->state <= LINK_ENDING) {
        const uint8_t *p;
        gather_from_session(l);
        if (l->writing || l->write_broken || l->state == LINK_CLOSING) return;
        size_t n = sherd__tls_pending(l->tls, &p);
        if (n == 0 && l->state == LINK_ENDING) {
            sherd__tls_end(l->tls);
            n = sherd__tls_pending(l->tls, &p);
            if (n == 0) {
                linger(l);
                return;
            }
        }
        if (n == 0 || !send_some(l, p, n, written < AT_ONCE)) return;
        written += n;
    }
}

void sherd__link_flush(sherd__link *l)
{
    if (l->state < LINK_SHAKING || l->state == LINK_CLOSING) return;
    pump(l);
    sherd__link_arm(l);
}

/* ---- reading ---- */

/* Called after the peer has proved possession of an accepted key: creates the session. */
static void come_up(sherd__link *l)
{
    int err;
    l->peer_key = *sherd__tls_peer_key(l->tls);
    if (!l->owned) {
        err = sherd__listener_admit(l);
        if (err) {
            sherd__link_fail(l, err < 0 ? err : SHERD_EREFUSED, NULL, "refused: %s",
                             sherd_strerror(err < 0 ? err : SHERD_EREFUSED));
            return;
        }
        l->owned = true;
        if (l->state != LINK_SHAKING) return; /* accept closed the link */
    }
    if (l->owner.turn) sherd__link_turn(l, l->owner.turn);
    l->session_options.now_ms = uv_now(l->loop);
    err = sherd__session_new(&l->session, &l->session_options);
    if (err) {
        sherd__link_fail(l, err, NULL, "no session: %s", sherd_strerror(err));
        return;
    }
    l->state = LINK_UP;
    l->deadline = UINT64_MAX;
}

/* Returns true, and stops reading, if the link has used its share of this loop iteration. */
static bool give_way(sherd__link *l)
{
    bool bounded = l->session_options.role == SHERD__NODE || l->owner.turn;
    if (l->state != LINK_UP || !bounded || !sherd__turn_over(&l->part, uv_now(l->loop)))
        return false;
    l->behind = true;
    (void)uv_read_stop((uv_stream_t *)&l->tcp);
    return true;
}

static void deliver(sherd__link *l, const uint8_t *in, size_t len)
{
    while (len > 0 && l->state == LINK_UP) {
        sherd__event ev;
        size_t used = 0;
        uint64_t began = uv_hrtime();
        int err = sherd__session_feed(l->session, in, len, uv_now(l->loop), &used, &ev);
        assert(used <= len && (used > 0 || err));
        in += used;
        len -= used;
        if (ev.kind != SHERD__EV_NONE) emit(l, &ev);
        if (err) wind_down(l);
        sherd__turn_record(&l->part, uv_hrtime() - began);
        if (len > 0 && give_way(l)) { /* not inside a body, which is a single record */
            l->rest = in;
            l->rest_len = len;
            return;
        }
    }
}

/* Returns the buffer for plaintext: the memory of the arriving body, unless only a few bytes of it
 * are missing. */
static uint8_t *plain_room(sherd__link *l, size_t *room)
{
    uint8_t *at = l->state == LINK_UP ? sherd__session_window(l->session, room) : NULL;
    if (at && *room >= DIRECT_MIN) return at;
    *room = SHERD__LINK_PLAIN;
    return l->plain;
}

/* Processes all received ciphertext, up to the link's share of this loop iteration. */
static void decrypt(sherd__link *l)
{
    size_t got = l->rest_len, room;
    if (got > 0 && give_way(l)) return;
    l->rest_len = 0;
    deliver(l, l->rest, got);
    do {
        if (l->rest_len || give_way(l)) return;
        uint8_t *to = plain_room(l, &room);
        if (sherd__tls_read(l->tls, to, room, &got)) {
            tls_failed(l);
            return;
        }
        if (l->state == LINK_SHAKING && sherd__tls_ready(l->tls)) come_up(l);
        sherd__turn_bytes(&l->part, got);
        deliver(l, to, got);
    } while (got > 0);
    if (sherd__tls_ended(l->tls) && l->state <= LINK_LEAVING) lost(l, UV_EOF);
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    *buf = uv_buf_init((char *)((sherd__link *)h->data)->in, SHERD__LINK_IN);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    sherd__link *l = stream->data;
    (void)buf;
    if (l->state == LINK_CLOSING || n == 0) return;
    if (n < 0) {
        lost(l, (int)n);
        return;
    }
    if (l->state >= LINK_ENDING) return; /* discarded, see link_state.h */
    sherd__tls_feed(l->tls, l->in, (size_t)n);
    decrypt(l);
    pump(l);
    sherd__link_arm(l);
}

void sherd__link_begin(sherd__link *l)
{
    int fd, unacked_ms = UNACKED_MS;
    sherd__tls_policy policy = { .allow = sherd__listener_allows, .ctx = l };
    if (l->owned) policy = (sherd__tls_policy){ .pinned = &l->peer_key };
    l->state = LINK_SHAKING;
    (void)uv_tcp_nodelay(&l->tcp, 1);
    (void)uv_tcp_keepalive(&l->tcp, 1, KEEPALIVE_S);
    if (uv_fileno((uv_handle_t *)&l->tcp, &fd) == 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked_ms, sizeof unacked_ms);
    int err = sherd__tls_new(&l->tls, l->context, &policy);
    if (err) {
        sherd__link_fail(l, err, NULL, "TLS: %s", sherd_strerror(err));
        return;
    }
    err = uv_read_start((uv_stream_t *)&l->tcp, on_alloc, on_read);
    if (err) {
        lost(l, err);
        return;
    }
    pump(l);
    sherd__link_arm(l);
}

void sherd__link_pause(sherd__link *l, bool paused)
{
    if (paused == l->paused || l->state != LINK_UP) return;
    l->paused = paused;
    sherd__session_hold(l->session, paused, uv_now(l->loop));
    if (paused) (void)uv_read_stop((uv_stream_t *)&l->tcp);
    else (void)uv_read_start((uv_stream_t *)&l->tcp, on_alloc, on_read);
    sherd__link_arm(l);
}

/* ---- timer ---- */

static void expire(sherd__link *l)
{
    if (l->write_broken && l->state <= LINK_UP) { /* the peer has sent no reason */
        if (sherd__tls_failure(l->tls)->code) tls_failed(l);
        else lost(l, l->last_error);
        return;
    }
    switch (l->state) {
    case LINK_RESOLVING:
    case LINK_CONNECTING:
        if (l->deferred.code)
            sherd__link_fail(l, l->deferred.code, l->deferred.hint, "%s", l->deferred.message);
        else
            sherd__link_fail(l, SHERD_ECONNECT, "is the machine up and the address right?",
                             "no connection within %u ms%s", l->timeout_ms,
                             l->state == LINK_RESOLVING ? ", its name is not resolved" : "");
        break;
    case LINK_SHAKING:
        sherd__link_fail(l, SHERD_ESILENT, "is the program at the other end sherd?",
                         "the TLS handshake was not done within %u ms", l->timeout_ms);
        break;
    case LINK_LEAVING:
        end_session(l, l->close_code, l->close_text);
        sherd__link_shut(l);
        break;
    default: sherd__link_shut(l);
    }
}

/* Resumes reading in a later loop iteration. */
static void catch_up(sherd__link *l)
{
    l->behind = false;
    decrypt(l);
    if (!l->behind && l->state != LINK_CLOSING)
        (void)uv_read_start((uv_stream_t *)&l->tcp, on_alloc, on_read);
    pump(l);
}

static void on_timer(uv_timer_t *timer)
{
    sherd__link *l = timer->data;
    uint64_t now = uv_now(l->loop);
    l->armed = UINT64_MAX;
    if (l->behind && l->state <= LINK_LEAVING) catch_up(l);
    if (now >= l->deadline) {
        expire(l);
    } else if ((l->state == LINK_UP || l->state == LINK_LEAVING) &&
               now >= sherd__session_deadline(l->session)) {
        sherd__event ev;
        sherd__session_tick(l->session, now, &ev);
        if (ev.kind != SHERD__EV_NONE) emit(l, &ev);
        if (ev.kind == SHERD__EV_CLOSED) wind_down(l);
        pump(l);
    }
    sherd__link_arm(l);
}

/* Arms the timer. It is moved only to an earlier time: a deadline that moved to a later time is
 * detected when the timer fires. The delay is at least 1 ms, because libuv runs a timer with delay
 * 0 repeatedly before it polls. */
void sherd__link_arm(sherd__link *l)
{
    uint64_t at = l->deadline, now = uv_now(l->loop);
    if (l->state == LINK_CLOSING) return;
    if (l->state == LINK_UP || l->state == LINK_LEAVING) {
        uint64_t due = l->behind ? 0 : sherd__session_deadline(l->session);
        if (due < at) at = due;
    }
    if (at >= l->armed) return;
    l->armed = at;
    (void)uv_timer_start(&l->timer, on_timer, at > now ? at - now : 1, 0);
}

/* ---- calls of the owner ---- */

static void give_reason(sherd__link *l, int code, const char *reason)
{
    l->close_code = code < 0 ? code : SHERD_ECLOSED;
    snprintf(l->close_text, sizeof l->close_text, "%s", reason ? reason : "closed");
}

void sherd__link_abort(sherd__link *l, int code, const char *reason)
{
    if (l->state < LINK_LEAVING) give_reason(l, code, reason);
    sherd__link_shut(l);
}

void sherd__link_close(sherd__link *l, int code, const char *reason)
{
    if (l->state >= LINK_LEAVING) return;
    if (l->state != LINK_UP) {
        sherd__link_abort(l, code, reason);
        return;
    }
    give_reason(l, code, reason);
    sherd__session_bye(l->session, code, l->close_text);
    l->state = LINK_LEAVING;
    l->deadline = uv_now(l->loop) + SHERD__LINK_FLUSH_MS;
    pump(l);
    sherd__link_arm(l);
}

void sherd__link_measure(sherd__link *l)
{
    const uint8_t *p;
    int fd, unsent = 0;
    if (!l->session || !l->tcp_open || uv_fileno((uv_handle_t *)&l->tcp, &fd) != 0) return;
    if (ioctl(fd, SIOCOUTQ, &unsent) == 0 && unsent >= 0)
        sherd__session_unsent(l->session, (uint64_t)unsent + sherd__tls_pending(l->tls, &p));
}

double sherd__link_round_trip(const sherd__link *l)
{
    struct tcp_info info;
    socklen_t len = sizeof info;
    int fd;
    if (!l->tcp_open || uv_fileno((const uv_handle_t *)&l->tcp, &fd) != 0 ||
        getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
        return 0;
    return info.tcpi_rtt * 1e-6;
}

void sherd__link_turn(sherd__link *l, sherd__turn *turn)
{
    l->part = (sherd__turn_part){ .of = turn };
}

sherd__session *sherd__link_session(sherd__link *l)
{
    return l->session;
}

const char *sherd__link_peer_address(const sherd__link *l)
{
    return l->address;
}
