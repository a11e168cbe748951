/*
 * The two owners of links. The node answers a task with the block that it received. The loop runs
 * until the event that a test waits for, or for a time that is sufficient on any machine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/bytes.h"
#include "crypto/fragment_make.h"
#include "sherd/mat.h"
#include "tests/unit/wire/link_world.h"

sherd_identity *link_id_c, *link_id_n, *link_id_x;

int link_keys_make(void **s)
{
    (void)s;
    signal(SIGPIPE, SIG_IGN); /* a program must do this: see link.h */
    return sherd_identity_new(&link_id_c, NULL) || sherd_identity_new(&link_id_n, NULL) ||
           sherd_identity_new(&link_id_x, NULL);
}

int link_keys_free(void **s)
{
    (void)s;
    sherd_identity_free(link_id_c);
    sherd_identity_free(link_id_n);
    sherd_identity_free(link_id_x);
    return 0;
}

/* ---- the two owners ---- */

static void keep_body(side *e, sherd__fragment *f)
{
    const sherd__fragment_info *info = sherd__fragment_info_of(f);
    free(e->body);
    e->body = malloc(info->len + 1);
    e->body_len = info->len;
    assert_int_equal(sherd__fragment_read(f, 0, e->body, info->len), 0);
    sherd__fragment_free(f);
}

sherd__fragment_info link_info_of(sherd__origin origin, uint64_t values)
{
    sherd__fragment_info i = {
        .origin = (uint8_t)origin, .dtype = SHERD_U8, .rows = 1, .cols = values, .len = values
    };
    if (origin == SHERD__HIDDEN) {
        i.groups = 1;
        i.len += 8;
    }
    return i;
}

/* Answers with the block as it was received, without the table. */
static void answer(side *e, const sherd__task *t)
{
    sherd__fragment *f;
    uint8_t *bytes = malloc(t->result.len + 1);
    memset(bytes, 0, t->result.len);
    if (e->body_len == t->result.len + 8) memcpy(bytes, e->body + 8, t->result.len);
    if (sherd__fragment_take(&f, &t->result, bytes, NULL, NULL)) {
        free(bytes);
        return;
    }
    if (sherd__session_result(sherd__link_session(e->link), t, f)) sherd__fragment_free(f);
}

static void on_event(void *ctx, sherd__link *l, sherd__event *ev)
{
    side *e = ctx;
    assert_ptr_equal(l, e->link);
    assert_int_equal(e->closed_events, 0);
    switch (ev->kind) {
    case SHERD__EV_READY:
        e->ready++;
        if (e->close_on_ready) sherd__link_close(l, SHERD_EINTERRUPTED, "that was all");
        break;
    case SHERD__EV_BLOCK:
        e->blocks++;
        keep_body(e, ev->fragment);
        break;
    case SHERD__EV_TASK:
        e->tasks++;
        answer(e, &ev->task);
        break;
    case SHERD__EV_RESULT:
        e->results++;
        keep_body(e, ev->fragment);
        break;
    case SHERD__EV_CLOSED:
        e->closed_events++;
        e->err = ev->err;
        memcpy(e->text, ev->text, sizeof e->text);
        break;
    default: break;
    }
}

static void on_closed(void *ctx, sherd__link *l)
{
    side *e = ctx;
    assert_ptr_equal(l, e->link);
    assert_int_equal(e->closed_events, 1);
    e->closed_calls++;
    e->link = NULL;
}

bool link_allow(void *ctx, const sherd__fingerprint *key)
{
    const world *w = ctx;
    return sherd__fingerprint_equal(key, sherd__identity_fingerprint(w->allowed));
}

int link_on_accept(void *ctx, sherd__link *l, const sherd__fingerprint *key, const char *address,
                   sherd__session_options *session, sherd__link_owner *owner)
{
    world *w = ctx;
    if (w->turn_away) return w->turn_away;
    assert_true(sherd__fingerprint_equal(key, sherd__identity_fingerprint(w->allowed)));
    assert_memory_equal(address, "127.0.0.1:", 10);
    w->accepted++;
    free(w->n.body);
    w->n = (side){ .link = l, .close_on_ready = w->n.close_on_ready };
    session->role = SHERD__NODE;
    *owner = (sherd__link_owner){ on_event, on_closed, &w->n, NULL };
    if (w->close_in_accept) sherd__listener_close(w->listener);
    return 0;
}

void link_on_rejected(void *ctx, int code, const char *address, const char *reason)
{
    world *w = ctx;
    w->rejected++;
    w->reject_code = code;
    snprintf(w->reason, sizeof w->reason, "%s", reason);
    snprintf(w->from, sizeof w->from, "%s", address);
}

/* ---- the world of a test --------------------------------------------------------------------- */

int link_listen(world *w, uint32_t half_open_max, uint32_t timeout_ms)
{
    sherd__listen_options o = { .loop = &w->loop,
                                .identity = link_id_n,
                                .allow = link_allow,
                                .accept = link_on_accept,
                                .rejected = link_on_rejected,
                                .ctx = w,
                                .half_open_max = half_open_max,
                                .handshake_timeout_ms = timeout_ms };
    return sherd__listener_new(&w->listener, &o, "127.0.0.1", 0, NULL);
}

void link_world_open(world *w)
{
    memset(w, 0, sizeof *w);
    w->allowed = link_id_c;
    assert_int_equal(uv_loop_init(&w->loop), 0);
    assert_int_equal(link_listen(w, 0, 0), 0);
}

int link_dial(world *w, const char *host, uint16_t port, const sherd_identity *id,
              const sherd_identity *pinned, uint32_t timeout_ms)
{
    sherd__link_options o = { .loop = &w->loop,
                              .identity = id,
                              .session = { .role = SHERD__COORDINATOR },
                              .owner = { on_event, on_closed, &w->c, w->turn },
                              .connect_timeout_ms = timeout_ms };
    free(w->c.body);
    w->c = (side){ .close_on_ready = w->c.close_on_ready };
    return sherd__link_connect(&w->c.link, &o, host, port, sherd__identity_fingerprint(pinned),
                               NULL);
}

void link_connect_as(world *w, const sherd_identity *id, const sherd_identity *pinned)
{
    assert_int_equal(link_dial(w, "127.0.0.1", sherd__listener_port(w->listener), id, pinned, 0),
                     0);
}

static void wake(uv_timer_t *t)
{
    *(bool *)t->data = true;
}

bool link_run_until(world *w, const int *what, int value, uint64_t ms)
{
    uv_timer_t timer;
    bool late = false;
    uv_update_time(&w->loop);
    assert_int_equal(uv_timer_init(&w->loop, &timer), 0);
    timer.data = &late;
    assert_int_equal(uv_timer_start(&timer, wake, ms, 0), 0);
    while (!late && (!what || *what != value)) uv_run(&w->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&w->loop, UV_RUN_NOWAIT);
    return !late;
}

void link_world_close(world *w)
{
    if (w->c.link) sherd__link_close(w->c.link, 0, "test over");
    if (w->n.link) sherd__link_close(w->n.link, 0, "test over");
    sherd__listener_close(w->listener);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    assert_null(w->c.link);
    assert_null(w->n.link);
    free(w->c.body);
    free(w->n.body);
}

void link_both_up(world *w)
{
    link_connect_as(w, link_id_c, link_id_n);
    assert_true(link_run_until(w, &w->c.ready, 1, WAIT_MS));
    assert_true(link_run_until(w, &w->n.ready, 1, WAIT_MS));
}

void link_narrow(world *w)
{
    int size = 65536;
    assert_int_equal(uv_send_buffer_size((uv_handle_t *)&w->c.link->tcp, &size), 0);
    size = 65536;
    assert_int_equal(uv_recv_buffer_size((uv_handle_t *)&w->n.link->tcp, &size), 0);
}

uint8_t *link_body(uint64_t values)
{
    uint8_t *bytes = malloc(values + 8);
    sherd__put_u32(bytes, 1);
    sherd__put_u32(bytes + 4, (uint32_t)values);
    uint64_t x = (uint64_t)rand() + 1;
    for (uint64_t i = 0; i < values; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        bytes[8 + i] = (uint8_t)(x >> 56);
    }
    return bytes;
}

void link_put(world *w, uint32_t block, uint8_t *bytes, uint64_t values)
{
    sherd__fragment *f;
    sherd__fragment_info i = link_info_of(SHERD__HIDDEN, values);
    assert_int_equal(sherd__fragment_take(&f, &i, bytes, NULL, NULL), 0);
    assert_int_equal(sherd__session_put(sherd__link_session(w->c.link), JOB, block, f), 0);
}

void link_expect(const char *text, const char *start, const char *words)
{
    if (strncmp(text, start, strlen(start)) != 0 || !strstr(text, words))
        fail_msg("\"%s\" is not \"%s...%s\"", text, start, words);
}

int link_raw_socket(uint16_t port)
{
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

bool link_is_closed(int fd)
{
    char sink[4096];
    ssize_t n;
    do n = read(fd, sink, sizeof sink);
    while (n > 0);
    return n == 0 || errno == ECONNRESET;
}
