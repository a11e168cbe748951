/*
 * Real sockets on loopback, both ends in one loop; strangers are bare sockets and bare OpenSSL.
 *
 * link: -Wl,--wrap=getaddrinfo
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/alloc.h"
#include "core/bytes.h"
#include "crypto/fragment_make.h"
#include "sherd/mat.h"
#include "tests/support/far_resolver.h"
#include "wire/identity_keys.h"
#include "wire/link_state.h"

#define JOB 77u
#define WAIT_MS 20000 /* for what comes at once, on a machine that is not under valgrind */

static sherd_identity *id_c, *id_n, *id_x; /* coordinator, node, stranger */

typedef struct side {
    sherd_link *link;
    int ready, blocks, tasks, results, closed_events, closed_calls;
    int err;
    char text[SHERD__TEXT_MAX];
    uint8_t *body; /* of the last block or result */
    uint64_t body_len;
    bool close_on_ready;
} side;

typedef struct world {
    uv_loop_t loop;
    sherd_listener *listener;
    const sherd_identity *allowed;
    side c, n; /* the newest link of each kind */
    int accepted, rejected, reject_code, turn_away;
    char reason[SHERD__TEXT_MAX], from[80];
    bool close_in_accept;
} world;

static int make_keys(void **s)
{
    (void)s;
    signal(SIGPIPE, SIG_IGN); /* the program's business: see link.h */
    return sherd__identity_new(&id_c) || sherd__identity_new(&id_n) || sherd__identity_new(&id_x);
}

static int free_keys(void **s)
{
    (void)s;
    sherd__identity_free(id_c);
    sherd__identity_free(id_n);
    sherd__identity_free(id_x);
    return 0;
}

/* ---- the two owners ---- */

static void keep_body(side *e, sherd_fragment *f)
{
    const sherd__fragment_info *info = sherd__fragment_info_of(f);
    free(e->body);
    e->body = malloc(info->len + 1);
    e->body_len = info->len;
    assert_int_equal(sherd__fragment_read(f, 0, e->body, info->len), 0);
    sherd__fragment_free(f);
}

static sherd__fragment_info info_of(sherd__origin origin, uint64_t values)
{
    sherd__fragment_info i = { .origin = (uint8_t)origin, .dtype = SHERD_U8, .rows = 1,
                               .cols = values, .len = values };
    if (origin == SHERD__HIDDEN) {
        i.groups = 1;
        i.len += 8;
    }
    return i;
}

/* The node answers a task with the block that it was given, as it came, behind the table. */
static void answer(side *e, const sherd__task *t)
{
    sherd_fragment *f;
    uint8_t *bytes = malloc(t->result.len + 1);
    memset(bytes, 0, t->result.len);
    if (e->body_len == t->result.len + 8) memcpy(bytes, e->body + 8, t->result.len);
    if (sherd__fragment_take(&f, &t->result, bytes, NULL, NULL)) {
        free(bytes);
        return;
    }
    if (sherd__session_result(sherd__link_session(e->link), t, f)) sherd__fragment_free(f);
}

static void on_event(void *ctx, sherd_link *l, sherd__event *ev)
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

static void on_closed(void *ctx, sherd_link *l)
{
    side *e = ctx;
    assert_ptr_equal(l, e->link);
    assert_int_equal(e->closed_events, 1);
    e->closed_calls++;
    e->link = NULL;
}

static bool allow(void *ctx, const sherd__fingerprint *key)
{
    const world *w = ctx;
    return sherd__fingerprint_equal(key, sherd__identity_fingerprint(w->allowed));
}

static int on_accept(void *ctx, sherd_link *l, const sherd__fingerprint *key, const char *address,
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
    *owner = (sherd__link_owner){ on_event, on_closed, &w->n };
    if (w->close_in_accept) sherd__listener_close(w->listener);
    return 0;
}

static void on_rejected(void *ctx, int code, const char *address, const char *reason)
{
    world *w = ctx;
    w->rejected++;
    w->reject_code = code;
    snprintf(w->reason, sizeof w->reason, "%s", reason);
    snprintf(w->from, sizeof w->from, "%s", address);
}

/* ---- the world ---- */

static int listen_anew(world *w, uint32_t half_open_max, uint32_t timeout_ms)
{
    sherd__listen_options o = { .loop = &w->loop, .identity = id_n, .allow = allow,
                                .accept = on_accept, .rejected = on_rejected, .ctx = w,
                                .half_open_max = half_open_max,
                                .handshake_timeout_ms = timeout_ms };
    return sherd__listener_new(&w->listener, &o, "127.0.0.1", 0, NULL);
}

static void world_open(world *w)
{
    memset(w, 0, sizeof *w);
    w->allowed = id_c;
    assert_int_equal(uv_loop_init(&w->loop), 0);
    assert_int_equal(listen_anew(w, 0, 0), 0);
}

static int dial(world *w, const char *host, uint16_t port, const sherd_identity *id,
                const sherd_identity *pinned, uint32_t timeout_ms)
{
    sherd__link_options o = { .loop = &w->loop, .identity = id,
                              .session = { .role = SHERD__COORDINATOR },
                              .owner = { on_event, on_closed, &w->c },
                              .connect_timeout_ms = timeout_ms };
    free(w->c.body);
    w->c = (side){ .close_on_ready = w->c.close_on_ready };
    return sherd__link_connect(&w->c.link, &o, host, port, sherd__identity_fingerprint(pinned),
                               NULL);
}

static void connect_as(world *w, const sherd_identity *id, const sherd_identity *pinned)
{
    assert_int_equal(dial(w, "127.0.0.1", sherd__listener_port(w->listener), id, pinned, 0), 0);
}

static void wake(uv_timer_t *t)
{
    *(bool *)t->data = true;
}

/* Runs the loop until *what is not 0 any more, or `ms` have passed: whether it happened. */
static bool run_until(world *w, const int *what, int value, uint64_t ms)
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

static void world_close(world *w)
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

static void both_up(world *w)
{
    connect_as(w, id_c, id_n);
    assert_true(run_until(w, &w->c.ready, 1, WAIT_MS));
    assert_true(run_until(w, &w->n.ready, 1, WAIT_MS));
}

/* Little room in the kernel, so that it is our own that counts. */
static void narrow(world *w)
{
    int size = 65536;
    assert_int_equal(uv_send_buffer_size((uv_handle_t *)&w->c.link->tcp, &size), 0);
    size = 65536;
    assert_int_equal(uv_recv_buffer_size((uv_handle_t *)&w->n.link->tcp, &size), 0);
}

static uint8_t *random_body(uint64_t values)
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

static void put(world *w, uint32_t block, uint8_t *bytes, uint64_t values)
{
    sherd_fragment *f;
    sherd__fragment_info i = info_of(SHERD__HIDDEN, values);
    assert_int_equal(sherd__fragment_take(&f, &i, bytes, NULL, NULL), 0);
    assert_int_equal(sherd__session_put(sherd__link_session(w->c.link), JOB, block, f), 0);
}

static void expect(const char *text, const char *start, const char *words)
{
    if (strncmp(text, start, strlen(start)) != 0 || !strstr(text, words))
        fail_msg("\"%s\" is not \"%s...%s\"", text, start, words);
}

/* ---- what must work ---- */

static void blocks_and_results_come_over_whole(void **s)
{
    (void)s;
    static const uint64_t sizes[] = { 1, 2, 1000, 16384, 262136, 262144, 262145, 5000001 };
    world w;
    world_open(&w);
    both_up(&w);
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t *body = random_body(sizes[i]), *copy = malloc(sizes[i] + 8);
        sherd__task t = { .job = JOB, .task = i + 1, .attempt = 1, .op = SHERD__OP_SQUARE,
                          .left = i + 1, .result = info_of(SHERD__RESULT, sizes[i]) };
        memcpy(copy, body, sizes[i] + 8);
        put(&w, i + 1, body, sizes[i]);
        assert_int_equal(sherd__session_task(sherd__link_session(w.c.link), &t), 0);
        sherd__link_flush(w.c.link);
        assert_true(run_until(&w, &w.c.results, (int)i + 1, WAIT_MS));
        assert_int_equal(w.n.body_len, sizes[i] + 8);
        assert_memory_equal(w.n.body, copy, sizes[i] + 8);
        assert_int_equal(w.c.body_len, sizes[i]);
        assert_memory_equal(w.c.body, copy + 8, sizes[i]);
        free(copy);
    }
    assert_true(sherd__fingerprint_equal(sherd__link_peer_key(w.c.link),
                                         sherd__identity_fingerprint(id_n)));
    assert_true(sherd__fingerprint_equal(sherd__link_peer_key(w.n.link),
                                         sherd__identity_fingerprint(id_c)));
    world_close(&w);
    assert_int_equal(w.rejected, 0);
}

static void a_goodbye_brings_its_reason_to_the_other_side(void **s)
{
    (void)s;
    for (int from_node = 0; from_node < 2; from_node++) {
        world w;
        world_open(&w);
        (from_node ? &w.n : &w.c)->close_on_ready = true;
        side *closer = from_node ? &w.n : &w.c, *other = from_node ? &w.c : &w.n;
        connect_as(&w, id_c, id_n);
        assert_true(run_until(&w, &closer->closed_calls, 1, WAIT_MS));
        assert_true(run_until(&w, &other->closed_calls, 1, WAIT_MS));
        assert_int_equal(closer->err, SHERD_EINTERRUPTED);
        expect(closer->text, "127.0.0.1:", "that was all");
        expect(other->text, "127.0.0.1:", "that was all");
        world_close(&w);
    }
}

static void a_goodbye_waits_for_no_deadline(void **s)
{
    (void)s;
    uint64_t best_ms = UINT64_MAX;
    for (int i = 0; i < 4; i++) {
        world w;
        world_open(&w);
        both_up(&w);
        uint64_t begin = uv_now(&w.loop);
        sherd__link_close(w.c.link, 0, "bye");
        assert_true(run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
        assert_true(run_until(&w, &w.n.closed_calls, 1, WAIT_MS));
        if (uv_now(&w.loop) - begin < best_ms) best_ms = uv_now(&w.loop) - begin;
        world_close(&w);
    }
    assert_true(best_ms < SHERD__LINK_LINGER_MS / 2);
}

static void a_name_is_resolved_and_each_of_its_addresses_tried(void **s)
{
    (void)s;
    world w;
    world_open(&w);
    assert_int_equal(dial(&w, "localhost", sherd__listener_port(w.listener), id_c, id_n, 0), 0);
    assert_true(run_until(&w, &w.c.ready, 1, WAIT_MS));
    assert_memory_equal(sherd__link_peer_address(w.c.link), "localhost:", 10);
    world_close(&w);
    world_open(&w);
    assert_int_equal(dial(&w, "no such host", 7000, id_c, id_n, 2000), 0);
    assert_true(run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
    assert_int_equal(w.c.err, SHERD_ECONNECT);
    world_close(&w);
}

static void a_closed_listener_leaves_its_links_alone(void **s)
{
    (void)s;
    world w;
    world_open(&w);
    both_up(&w);
    sherd__listener_close(w.listener);
    w.listener = NULL;
    put(&w, 1, random_body(100000), 100000);
    sherd__link_flush(w.c.link);
    assert_true(run_until(&w, &w.n.blocks, 1, WAIT_MS));
    world_close(&w);
}

static void an_owner_may_close_at_any_moment(void **s)
{
    (void)s;
    for (int steps = 0; steps < 25; steps++) {
        world w;
        world_open(&w);
        connect_as(&w, id_c, id_n);
        for (int i = 0; i < steps; i++) uv_run(&w.loop, UV_RUN_NOWAIT);
        sherd__link_close(w.c.link, SHERD_EINTERRUPTED, "enough");
        assert_int_equal(w.c.closed_events, 0); /* never from inside a call */
        sherd__link_close(w.c.link, 0, "twice");
        sherd__listener_close(w.listener);
        sherd__listener_close(w.listener);
        w.listener = NULL;
        uv_run(&w.loop, UV_RUN_DEFAULT);
        assert_int_equal(w.c.closed_events, 1);
        assert_int_equal(w.c.closed_calls, 1);
        assert_int_equal(w.c.err, SHERD_EINTERRUPTED);
        expect(w.c.text, "127.0.0.1:", "enough");
        world_close(&w);
    }
}

static void a_name_that_is_not_resolved_is_not_waited_for(void **s)
{
    (void)s;
    for (unsigned way = 0; way < 3; way++) {
        world w;
        world_open(&w);
        assert_int_equal(dial(&w, "slow.example", 7000, id_c, id_n, way == 1 ? 50 : 0), 0);
        if (way) far_wait(1);
        if (way != 1) sherd__link_close(w.c.link, SHERD_EINTERRUPTED, "no need");
        assert_true(run_until(&w, &w.c.closed_calls, 1, WAIT_MS)); /* nobody has answered */
        assert_int_equal(w.c.err, way == 1 ? SHERD_ECONNECT : SHERD_EINTERRUPTED);
        if (way == 1)
            expect(w.c.text, "slow.example:7000: no connection", "its name is not resolved");
        world_close(&w);
        far_wait(1);
        far_release();
    }
}

static void ipv6_works_where_the_machine_has_it(void **s)
{
    (void)s;
    world w;
    world_open(&w);
    sherd__listen_options o = { .loop = &w.loop, .identity = id_n, .allow = allow,
                                .accept = on_accept, .rejected = on_rejected, .ctx = &w };
    sherd_listener *six;
    if (sherd__listener_new(&six, &o, "::1", 0, NULL)) {
        world_close(&w);
        skip();
    }
    w.allowed = id_x; /* turned away: the address is in the report */
    assert_int_equal(dial(&w, "::1", sherd__listener_port(six), id_c, id_n, 0), 0);
    assert_true(run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
    expect(w.c.text, "[::1]:", "does not accept our key");
    assert_memory_equal(w.from, "[::1]:", 6);
    sherd__listener_close(six);
    world_close(&w);
}

static void a_listener_may_be_closed_from_inside_accept(void **s)
{
    (void)s;
    world w;
    world_open(&w);
    w.close_in_accept = true;
    connect_as(&w, id_c, id_n);
    assert_true(run_until(&w, &w.n.closed_calls, 1, WAIT_MS));
    w.listener = NULL;
    assert_true(run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
    world_close(&w);
}

/* ---- who is turned away ---- */

static void an_unknown_client_hears_that_its_key_is_not_allowed(void **s)
{
    (void)s;
    char key[SHERD__FINGERPRINT_TEXT];
    for (int i = 0; i < 20; i++) { /* its alert must never be lost to a reset */
        world w;
        world_open(&w);
        connect_as(&w, id_x, id_n);
        assert_true(run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
        sherd__fingerprint_text(sherd__identity_fingerprint(id_x), key);
        assert_int_equal(w.c.err, SHERD_EAUTH);
        expect(w.c.text, "127.0.0.1:", key);
        expect(w.c.text, "127.0.0.1:", "add our line to its allow-list");
        assert_int_equal(w.c.ready, 0);
        assert_int_equal(w.accepted, 0);
        assert_int_equal(w.rejected, 1);
        assert_int_equal(w.reject_code, SHERD_EAUTH);
        expect(w.reason, "its key ", key);
        assert_memory_equal(w.from, "127.0.0.1:", 10);
        world_close(&w);
    }
}

static void a_node_with_another_key_is_not_talked_to(void **s)
{
    (void)s;
    char found[SHERD__FINGERPRINT_TEXT], pinned[SHERD__FINGERPRINT_TEXT];
    world w;
    world_open(&w);
    connect_as(&w, id_c, id_x);
    assert_true(run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
    assert_true(run_until(&w, &w.rejected, 1, WAIT_MS));
    sherd__fingerprint_text(sherd__identity_fingerprint(id_n), found);
    sherd__fingerprint_text(sherd__identity_fingerprint(id_x), pinned);
    assert_int_equal(w.c.err, SHERD_EAUTH);
    expect(w.c.text, "127.0.0.1:", found);
    expect(w.c.text, "127.0.0.1:", pinned);
    assert_int_equal(w.reject_code, SHERD_EAUTH);
    expect(w.reason, "it does not accept our key", found);
    assert_int_equal(w.accepted, 0);
    world_close(&w);
}

static void accept_may_turn_a_known_key_away(void **s)
{
    (void)s;
    world w;
    world_open(&w);
    w.turn_away = SHERD_EBUSY;
    connect_as(&w, id_c, id_n);
    assert_true(run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
    assert_int_equal(w.c.err, SHERD_ECLOSED);
    expect(w.c.text, "127.0.0.1:", "during the handshake");
    assert_int_equal(w.reject_code, SHERD_EBUSY);
    assert_int_equal(w.accepted, 0);
    world_close(&w);
}

static int raw_socket(uint16_t port)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port),
                             .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

/* Whether the other end has closed, after reading away what it still sent. */
static bool is_closed(int fd)
{
    char sink[4096];
    ssize_t n;
    do n = read(fd, sink, sizeof sink); while (n > 0);
    return n == 0 || errno == ECONNRESET;
}

static void plain_text_is_turned_away(void **s)
{
    (void)s;
    static const char words[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    world w;
    world_open(&w);
    int fd = raw_socket(sherd__listener_port(w.listener));
    assert_true(write(fd, words, sizeof words - 1) > 0);
    assert_true(run_until(&w, &w.rejected, 1, WAIT_MS));
    assert_int_equal(w.reject_code, SHERD_EFRAME);
    expect(w.reason, "it speaks no TLS: \"GET / HTTP", "");
    run_until(&w, NULL, 0, 20);
    assert_true(is_closed(fd));
    close(fd);
    world_close(&w);
}

static void what_a_rejected_peer_still_sends_is_no_reason_for_a_reset(void **s)
{
    (void)s;
    static char words[1 << 20];
    char sink[16];
    world w;
    world_open(&w);
    memset(words, 'x', sizeof words);
    int fd = raw_socket(sherd__listener_port(w.listener));
    assert_true(write(fd, words, sizeof words) > (ssize_t)SHERD__LINK_IN);
    assert_true(run_until(&w, &w.rejected, 1, WAIT_MS));
    run_until(&w, NULL, 0, 50);
    assert_int_equal(read(fd, sink, sizeof sink), 0); /* a reset would eat our reason unread */
    close(fd);
    world_close(&w);
}

static void a_client_that_hangs_up_early_is_told_of(void **s)
{
    (void)s;
    world w;
    world_open(&w);
    close(raw_socket(sherd__listener_port(w.listener)));
    assert_true(run_until(&w, &w.rejected, 1, WAIT_MS));
    assert_int_equal(w.reject_code, SHERD_ECLOSED);
    world_close(&w);
}

static void a_silent_client_is_dropped_in_time(void **s)
{
    (void)s;
    world w;
    world_open(&w);
    sherd__listener_close(w.listener);
    assert_int_equal(listen_anew(&w, 0, 150), 0);
    int fd = raw_socket(sherd__listener_port(w.listener));
    assert_int_equal(write(fd, "\x16\x03\x01", 3), 3); /* a beginning, drop by drop */
    assert_true(run_until(&w, &w.rejected, 1, WAIT_MS));
    assert_int_equal(w.reject_code, SHERD_ESILENT);
    expect(w.reason, "the TLS handshake was not done within 150 ms", "");
    close(fd);
    world_close(&w);
}

/* An OpenSSL client as a stranger would write it, against our listener. */
static void stranger_calls(world *w, int max_version, const sherd_identity *id, const char *alpn)
{
    char sink[256];
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_max_proto_version(ctx, max_version);
    if (id) {
        assert_int_equal(SSL_CTX_use_certificate(ctx, id->cert), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey(ctx, id->key), 1);
    }
    SSL *ssl = SSL_new(ctx);
    int fd = raw_socket(sherd__listener_port(w->listener));
    if (alpn) SSL_set_alpn_protos(ssl, (const unsigned char *)alpn, (unsigned)strlen(alpn));
    SSL_set_fd(ssl, fd);
    SSL_set_connect_state(ssl);
    for (int i = 0; i < 500 && !w->rejected; i++) {
        ERR_clear_error();
        SSL_read(ssl, sink, sizeof sink);
        run_until(w, &w->rejected, 1, 2);
    }
    ERR_clear_error();
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    close(fd);
}

static void strangers_with_tls_are_told_what_is_wrong_with_them(void **s)
{
    (void)s;
    static const struct {
        int version;
        bool with_key;
        const char *alpn;
        int code;
        const char *words;
    } cases[] = {
        { TLS1_2_VERSION, true, "\x07sherd/1", SHERD_EAUTH, "TLS 1.3" },
        { TLS1_3_VERSION, false, "\x07sherd/1", SHERD_EAUTH, "no Ed25519 certificate" },
        { TLS1_3_VERSION, true, "\x07sherd/9", SHERD_EVERSION, "\"sherd/9\"" },
        { TLS1_3_VERSION, true, NULL, SHERD_EVERSION, "\"none\"" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w;
        world_open(&w);
        stranger_calls(&w, cases[i].version, cases[i].with_key ? id_c : NULL, cases[i].alpn);
        assert_int_equal(w.rejected, 1);
        assert_int_equal(w.reject_code, cases[i].code);
        expect(w.reason, "", cases[i].words);
        assert_int_equal(w.accepted, 0);
        world_close(&w);
    }
}

static void a_flood_of_half_open_connections_is_bounded_and_keeps_nobody_out(void **s)
{
    (void)s;
    enum { FLOOD = 100, PLACES = 16 };
    int fd[FLOOD], alive = 0;
    world w;
    world_open(&w);
    sherd__listener_close(w.listener);
    assert_int_equal(listen_anew(&w, PLACES, 0), 0);
    for (int i = 0; i < FLOOD; i++) fd[i] = raw_socket(sherd__listener_port(w.listener));
    assert_true(run_until(&w, &w.rejected, FLOOD - PLACES, WAIT_MS));
    assert_int_equal(w.reject_code, SHERD_EBUSY);
    run_until(&w, NULL, 0, 300);
    for (int i = 0; i < FLOOD; i++) alive += !is_closed(fd[i]);
    assert_int_equal(alive, PLACES);
    connect_as(&w, id_c, id_n); /* the oldest of them makes room */
    assert_true(run_until(&w, &w.c.ready, 1, WAIT_MS));
    assert_int_equal(w.rejected, FLOOD - PLACES + 1);
    for (int i = 0; i < FLOOD; i++) close(fd[i]);
    world_close(&w);
}

/* ---- what breaks ---- */

static void nobody_listens(void **s)
{
    (void)s;
    world w;
    world_open(&w);
    uint16_t port = sherd__listener_port(w.listener);
    sherd__listener_close(w.listener);
    w.listener = NULL;
    run_until(&w, NULL, 0, 5);
    assert_int_equal(dial(&w, "127.0.0.1", port, id_c, id_n, 0), 0);
    assert_int_equal(w.c.closed_events, 0);
    assert_true(run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
    assert_int_equal(w.c.err, SHERD_ECONNECT);
    expect(w.c.text, "127.0.0.1:", "refused; is a node running there?");
    assert_int_equal(dial(&w, "", 1, id_c, id_n, 0), SHERD_EINVAL);
    assert_int_equal(dial(&w, "127.0.0.1", 0, id_c, id_n, 0), SHERD_EINVAL);
    world_close(&w);
}

/* A bound socket that listens but never accepts: says nothing, or with a full queue nothing at
 * all. */
static int deaf_socket(uint16_t *port, int backlog)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, backlog), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    *port = ntohs(a.sin_port);
    return fd;
}

static void a_peer_that_never_answers_runs_into_the_timeout(void **s)
{
    (void)s;
    world w;
    uint16_t port;
    int deaf = deaf_socket(&port, 0), filler[4];
    world_open(&w);
    assert_int_equal(dial(&w, "127.0.0.1", port, id_c, id_n, 300), 0);
    assert_true(run_until(&w, &w.c.closed_events, 1, WAIT_MS));
    assert_int_equal(w.c.err, SHERD_ESILENT);
    expect(w.c.text, "127.0.0.1:", "handshake was not done within 300 ms");
    assert_true(run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
    for (int i = 0; i < 4; i++) { /* the queue is full: even TCP gets no answer */
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port),
                                 .sin_addr = { htonl(INADDR_LOOPBACK) } };
        filler[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)!connect(filler[i], (struct sockaddr *)&a, sizeof a);
    }
    assert_int_equal(dial(&w, "127.0.0.1", port, id_c, id_n, 300), 0);
    assert_true(run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
    assert_int_equal(w.c.err, SHERD_ECONNECT);
    expect(w.c.text, "127.0.0.1:", "no connection within 300 ms; is the machine up");
    for (int i = 0; i < 4; i++) close(filler[i]);
    close(deaf);
    world_close(&w);
}

static void a_server_of_another_kind_is_recognised(void **s)
{
    (void)s;
    world w;
    uint16_t port;
    int deaf = deaf_socket(&port, 4);
    world_open(&w);
    assert_int_equal(dial(&w, "127.0.0.1", port, id_c, id_n, 0), 0);
    int fd = accept(deaf, NULL, NULL);
    assert_int_equal(write(fd, "SSH-2.0-OpenSSH_9.2\r\n", 21), 21);
    assert_true(run_until(&w, &w.c.closed_events, 1, WAIT_MS));
    assert_int_equal(w.c.err, SHERD_EFRAME);
    expect(w.c.text, "127.0.0.1:", "\"SSH-2.0-OpenSSH_9.2");
    close(fd);
    close(deaf);
    world_close(&w);
}

static void a_port_in_use_is_named(void **s)
{
    (void)s;
    world w;
    sherd_listener *second;
    sherd_diag d = { 0 };
    world_open(&w);
    sherd__listen_options o = { .loop = &w.loop, .identity = id_n, .accept = on_accept };
    uint16_t port = sherd__listener_port(w.listener);
    assert_int_equal(sherd__listener_new(&second, &o, "127.0.0.1", port, &d), SHERD_EADDRINUSE);
    assert_null(second);
    expect(d.message, "127.0.0.1:", "listens there already");
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd__listener_new(&second, &o, "192.0.2.1", 0, &d), SHERD_ENET);
    world_close(&w);
}

static void cut_tcp(sherd_link *l)
{
    int fd;
    assert_int_equal(uv_fileno((uv_handle_t *)&l->tcp, &fd), 0);
    assert_int_equal(shutdown(fd, SHUT_RDWR), 0);
}

static void a_peer_that_vanishes_inside_a_block_ends_both_sides(void **s)
{
    (void)s;
    for (int cut_by_node = 0; cut_by_node < 2; cut_by_node++) {
        world w;
        world_open(&w);
        both_up(&w);
        narrow(&w);
        put(&w, 1, random_body(16u << 20), 16u << 20);
        sherd__link_flush(w.c.link);
        const sherd__session_stats *stats = sherd__session_stats_of(sherd__link_session(w.n.link));
        while (stats->bytes_in < 1u << 20) uv_run(&w.loop, UV_RUN_ONCE);
        cut_tcp(cut_by_node ? w.n.link : w.c.link);
        assert_true(run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
        assert_true(run_until(&w, &w.n.closed_calls, 1, WAIT_MS));
        assert_int_equal(w.c.err, SHERD_ECLOSED);
        assert_int_equal(w.n.err, SHERD_ECLOSED);
        expect(w.c.text, "127.0.0.1:", "without a goodbye");
        assert_int_equal(w.n.blocks, 0);
        world_close(&w);
    }
}

typedef struct counter {
    uint64_t filled;
    int freed;
} counter;

static int count_fill(void *ctx, uint64_t offset, uint8_t *out, size_t len)
{
    counter *c = ctx;
    memset(out, 1, len);
    if (offset == 0) sherd__put_u32(out, 1), sherd__put_u32(out + 4, 8u << 20);
    c->filled += len;
    return 0;
}

static void count_free(void *ctx)
{
    ((counter *)ctx)->freed++;
}

static void a_stalled_reader_holds_up_the_source_not_the_memory(void **s)
{
    (void)s;
    world w;
    counter c = { 0, 0 };
    sherd_fragment *f;
    sherd__fragment_info i = info_of(SHERD__HIDDEN, 8u << 20);
    world_open(&w);
    both_up(&w);
    narrow(&w);
    sherd__link_pause(w.n.link, true);
    assert_int_equal(sherd__fragment_new_source(&f, &i, (sherd__fragment_source){ count_fill,
                                                count_free, &c }), 0);
    assert_int_equal(sherd__session_put(sherd__link_session(w.c.link), JOB, 1, f), 0);
    sherd__link_flush(w.c.link);
    run_until(&w, NULL, 0, 200);
    uint64_t then = c.filled;
    assert_true(then > 0 && then < 2u << 20); /* the kernel's buffers and ours, not the block */
    run_until(&w, NULL, 0, 100);
    assert_int_equal(c.filled, then);
    assert_true(uv_stream_get_write_queue_size((uv_stream_t *)&w.c.link->tcp) <=
                SHERD__TLS_GATHER + 32768);
    sherd__link_pause(w.n.link, false);
    assert_true(run_until(&w, &w.n.blocks, 1, WAIT_MS));
    assert_int_equal(c.filled, i.len);
    assert_int_equal(c.freed, 1);
    world_close(&w);
}

static void closing_on_a_peer_that_does_not_read_is_bounded(void **s)
{
    (void)s;
    world w;
    world_open(&w);
    both_up(&w);
    narrow(&w);
    sherd__link_pause(w.n.link, true);
    put(&w, 1, random_body(4u << 20), 4u << 20);
    sherd__link_flush(w.c.link);
    run_until(&w, NULL, 0, 50);
    uint64_t begin = uv_now(&w.loop);
    sherd__link_close(w.c.link, 0, "no time");
    assert_true(run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
    assert_true(uv_now(&w.loop) - begin < 5000);
    world_close(&w);
}

/* One whole life of two links, with the n-th allocation failing: whether all went well. */
static bool live_once(size_t n, size_t *seen)
{
    world w;
    memset(&w, 0, sizeof w);
    w.allowed = id_c;
    assert_int_equal(uv_loop_init(&w.loop), 0);
    uint8_t *body = malloc(300000 + 8);
    memset(body, 7, 300008);
    sherd__put_u32(body, 1);
    sherd__put_u32(body + 4, 300000);
    sherd__alloc_fail_nth(n);
    bool well = listen_anew(&w, 0, 0) == 0 &&
                dial(&w, "127.0.0.1", sherd__listener_port(w.listener), id_c, id_n, 0) == 0;
    while (well && !w.c.ready && !w.c.closed_calls) uv_run(&w.loop, UV_RUN_ONCE);
    if (well && w.c.ready) {
        sherd_fragment *f = NULL;
        sherd__fragment_info i = info_of(SHERD__HIDDEN, 300000);
        well = sherd__fragment_take(&f, &i, body, NULL, NULL) == 0;
        if (well) body = NULL;
        if (well && sherd__session_put(sherd__link_session(w.c.link), JOB, 1, f)) {
            sherd__fragment_free(f);
            well = false;
        }
        if (well) sherd__link_flush(w.c.link);
        while (well && !w.n.blocks && !w.n.closed_calls) uv_run(&w.loop, UV_RUN_ONCE);
    }
    well = well && w.n.blocks == 1;
    *seen = sherd__alloc_fail_nth(0);
    world_close(&w);
    free(body);
    return well;
}

static void every_failed_allocation_is_survived(void **s)
{
    (void)s;
    size_t seen = 1;
    for (size_t n = 1; seen >= n; n++) {
        bool well = live_once(n, &seen);
        if (seen < n) assert_true(well);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_and_results_come_over_whole),
        cmocka_unit_test(a_goodbye_brings_its_reason_to_the_other_side),
        cmocka_unit_test(a_goodbye_waits_for_no_deadline),
        cmocka_unit_test(a_name_is_resolved_and_each_of_its_addresses_tried),
        cmocka_unit_test(a_closed_listener_leaves_its_links_alone),
        cmocka_unit_test(an_owner_may_close_at_any_moment),
        cmocka_unit_test(a_name_that_is_not_resolved_is_not_waited_for),
        cmocka_unit_test(ipv6_works_where_the_machine_has_it),
        cmocka_unit_test(a_listener_may_be_closed_from_inside_accept),
        cmocka_unit_test(an_unknown_client_hears_that_its_key_is_not_allowed),
        cmocka_unit_test(a_node_with_another_key_is_not_talked_to),
        cmocka_unit_test(accept_may_turn_a_known_key_away),
        cmocka_unit_test(plain_text_is_turned_away),
        cmocka_unit_test(what_a_rejected_peer_still_sends_is_no_reason_for_a_reset),
        cmocka_unit_test(a_client_that_hangs_up_early_is_told_of),
        cmocka_unit_test(a_silent_client_is_dropped_in_time),
        cmocka_unit_test(strangers_with_tls_are_told_what_is_wrong_with_them),
        cmocka_unit_test(a_flood_of_half_open_connections_is_bounded_and_keeps_nobody_out),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(a_peer_that_never_answers_runs_into_the_timeout),
        cmocka_unit_test(a_server_of_another_kind_is_recognised),
        cmocka_unit_test(a_port_in_use_is_named),
        cmocka_unit_test(a_peer_that_vanishes_inside_a_block_ends_both_sides),
        cmocka_unit_test(a_stalled_reader_holds_up_the_source_not_the_memory),
        cmocka_unit_test(closing_on_a_peer_that_does_not_read_is_bounded),
        cmocka_unit_test(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests_name("wire/link", tests, make_keys, free_keys);
}
