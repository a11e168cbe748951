/*
 * Failures: no listener, no answer, a peer that vanishes or stops reading, no memory. Each is
 * reported once, with its reason, and nothing leaks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "crypto/fragment_make.h"
#include "sherd/mat.h"
#include "tests/unit/wire/link_world.h"

/* ---- failures -------------------------------------------------------------------------------- */

static void connecting_without_a_listener_is_an_error(void **s)
{
    (void)s;
    world w;
    link_world_open(&w);
    uint16_t port = sherd__listener_port(w.listener);
    sherd__listener_close(w.listener);
    w.listener = NULL;
    link_run_until(&w, NULL, 0, 5);
    assert_int_equal(link_dial(&w, "127.0.0.1", port, link_id_c, link_id_n, 0), 0);
    assert_int_equal(w.c.closed_events, 0);
    assert_true(link_run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
    assert_int_equal(w.c.err, SHERD_ECONNECT);
    link_expect(w.c.text, "127.0.0.1:", "refused; is a node running there?");
    assert_int_equal(link_dial(&w, "", 1, link_id_c, link_id_n, 0), SHERD_EINVAL);
    assert_int_equal(link_dial(&w, "127.0.0.1", 0, link_id_c, link_id_n, 0), SHERD_EINVAL);
    link_world_close(&w);
}

/* A socket that listens but never accepts. It sends nothing; with a full queue, TCP does not answer
 * either. */
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

static void a_peer_that_never_answers_causes_a_timeout(void **s)
{
    (void)s;
    world w;
    uint16_t port;
    int deaf = deaf_socket(&port, 0), filler[4];
    link_world_open(&w);
    assert_int_equal(link_dial(&w, "127.0.0.1", port, link_id_c, link_id_n, 1000), 0);
    assert_true(link_run_until(&w, &w.c.closed_events, 1, WAIT_MS));
    assert_int_equal(w.c.err, SHERD_ESILENT);
    link_expect(w.c.text, "127.0.0.1:", "handshake was not done within 1000 ms");
    assert_true(link_run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
    for (int i = 0; i < 4; i++) { /* the queue is full: TCP does not answer either */
        struct sockaddr_in a = { .sin_family = AF_INET,
                                 .sin_port = htons(port),
                                 .sin_addr = { htonl(INADDR_LOOPBACK) } };
        filler[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)!connect(filler[i], (struct sockaddr *)&a, sizeof a);
    }
    assert_int_equal(link_dial(&w, "127.0.0.1", port, link_id_c, link_id_n, 300), 0);
    assert_true(link_run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
    assert_int_equal(w.c.err, SHERD_ECONNECT);
    link_expect(w.c.text, "127.0.0.1:", "no connection within 300 ms; is the machine up");
    for (int i = 0; i < 4; i++) close(filler[i]);
    close(deaf);
    link_world_close(&w);
}

/* A caller that waits for its node to start does not run its loop meanwhile. */
static void the_timeout_starts_with_the_call_even_if_the_loop_was_not_run(void **s)
{
    (void)s;
    world w;
    link_world_open(&w);
    uv_run(&w.loop, UV_RUN_NOWAIT);
    nanosleep(&(struct timespec){ .tv_sec = 1, .tv_nsec = 600000000 }, NULL);
    assert_int_equal(link_dial(&w, "127.0.0.1", sherd__listener_port(w.listener), link_id_c,
                               link_id_n, 1500),
                     0);
    assert_true(link_run_until(&w, &w.c.ready, 1, WAIT_MS));
    link_world_close(&w);
}

static void a_server_of_another_protocol_is_recognised(void **s)
{
    (void)s;
    world w;
    uint16_t port;
    int deaf = deaf_socket(&port, 4);
    link_world_open(&w);
    assert_int_equal(link_dial(&w, "127.0.0.1", port, link_id_c, link_id_n, 0), 0);
    int fd = accept(deaf, NULL, NULL);
    assert_int_equal(write(fd, "SSH-2.0-OpenSSH_9.2\r\n", 21), 21);
    assert_true(link_run_until(&w, &w.c.closed_events, 1, WAIT_MS));
    assert_int_equal(w.c.err, SHERD_EFRAME);
    link_expect(w.c.text, "127.0.0.1:", "\"SSH-2.0-OpenSSH_9.2");
    close(fd);
    close(deaf);
    link_world_close(&w);
}

static void a_port_in_use_is_named(void **s)
{
    (void)s;
    world w;
    sherd__listener *second;
    sherd_diag d = { 0 };
    link_world_open(&w);
    sherd__listen_options o = { .loop = &w.loop, .identity = link_id_n, .accept = link_on_accept };
    uint16_t port = sherd__listener_port(w.listener);
    assert_int_equal(sherd__listener_new(&second, &o, "127.0.0.1", port, &d), SHERD_EADDRINUSE);
    assert_null(second);
    link_expect(d.message, "127.0.0.1:", "already in use");
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd__listener_new(&second, &o, "192.0.2.1", 0, &d), SHERD_ENET);
    link_world_close(&w);
}

static void cut_tcp(sherd__link *l)
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
        link_world_open(&w);
        link_both_up(&w);
        link_narrow(&w);
        link_put(&w, 1, link_body(16u << 20), 16u << 20);
        sherd__link_flush(w.c.link);
        const sherd__session_stats *stats = sherd__session_stats_of(sherd__link_session(w.n.link));
        while (stats->bytes_in < 1u << 20) uv_run(&w.loop, UV_RUN_ONCE);
        cut_tcp(cut_by_node ? w.n.link : w.c.link);
        assert_true(link_run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
        assert_true(link_run_until(&w, &w.n.closed_calls, 1, WAIT_MS));
        assert_int_equal(w.c.err, SHERD_ECLOSED);
        assert_int_equal(w.n.err, SHERD_ECLOSED);
        link_expect(w.c.text, "127.0.0.1:", "without a goodbye");
        assert_int_equal(w.n.blocks, 0);
        link_world_close(&w);
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

static void a_reader_that_stalls_stops_the_source_and_uses_no_memory(void **s)
{
    (void)s;
    world w;
    counter c = { 0, 0 };
    sherd__fragment *f;
    sherd__fragment_info i = link_info_of(SHERD__HIDDEN, 8u << 20);
    link_world_open(&w);
    link_both_up(&w);
    link_narrow(&w);
    sherd__link_pause(w.n.link, true);
    assert_int_equal(sherd__fragment_new_source(&f, &i,
                                                (sherd__fragment_source){ count_fill, count_free,
                                                                          &c }),
                     0);
    assert_int_equal(sherd__session_put(sherd__link_session(w.c.link), JOB, 1, f), 0);
    sherd__link_flush(w.c.link);
    link_run_until(&w, NULL, 0, 200);
    uint64_t then = c.filled;
    assert_true(then > 0 && then < 2u << 20); /* the kernel's and the link's buffers, not the whole
                                               * block */
    link_run_until(&w, NULL, 0, 100);
    assert_int_equal(c.filled, then);
    assert_true(uv_stream_get_write_queue_size((uv_stream_t *)&w.c.link->tcp) <=
                SHERD__TLS_GATHER + 32768);
    sherd__link_pause(w.n.link, false);
    assert_true(link_run_until(&w, &w.n.blocks, 1, WAIT_MS));
    assert_int_equal(c.filled, i.len);
    assert_int_equal(c.freed, 1);
    link_world_close(&w);
}

static void closing_a_link_to_a_peer_that_does_not_read_takes_limited_time(void **s)
{
    (void)s;
    world w;
    link_world_open(&w);
    link_both_up(&w);
    link_narrow(&w);
    sherd__link_pause(w.n.link, true);
    link_put(&w, 1, link_body(4u << 20), 4u << 20);
    sherd__link_flush(w.c.link);
    link_run_until(&w, NULL, 0, 50);
    uint64_t begin = uv_now(&w.loop);
    sherd__link_close(w.c.link, 0, "no time");
    assert_true(link_run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
    assert_true(uv_now(&w.loop) - begin < 5000);
    link_world_close(&w);
}

static int descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

static void an_abort_closes_the_descriptor_at_once(void **s)
{
    (void)s;
    world w;
    link_world_open(&w);
    link_both_up(&w);
    int before = descriptors();
    sherd__link_abort(w.c.link, SHERD_EBUSY, "no room");
    assert_int_equal(descriptors(), before - 1);
    assert_true(link_run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
    assert_true(link_run_until(&w, &w.n.closed_calls, 1, WAIT_MS));
    assert_int_equal(w.c.err, SHERD_EBUSY);
    link_expect(w.c.text, "127.0.0.1:", "no room");
    assert_int_equal(w.n.err, SHERD_ECLOSED);
    link_world_close(&w);
}

/* Opens, uses and closes two links with the n-th allocation failing. Returns whether all steps
 * succeeded. */
static bool live_once(size_t n, size_t *seen)
{
    world w;
    memset(&w, 0, sizeof w);
    w.allowed = link_id_c;
    assert_int_equal(uv_loop_init(&w.loop), 0);
    uint8_t *body = malloc(300000 + 8);
    memset(body, 7, 300008);
    sherd__put_u32(body, 1);
    sherd__put_u32(body + 4, 300000);
    sherd__alloc_fail_nth(n);
    bool well = link_listen(&w, 0, 0) == 0 &&
                link_dial(&w, "127.0.0.1", sherd__listener_port(w.listener), link_id_c, link_id_n,
                          0) == 0;
    while (well && !w.c.ready && !w.c.closed_calls) uv_run(&w.loop, UV_RUN_ONCE);
    if (well && w.c.ready) {
        sherd__fragment *f = NULL;
        sherd__fragment_info i = link_info_of(SHERD__HIDDEN, 300000);
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
    link_world_close(&w);
    free(body);
    return well;
}

static void every_failed_allocation_is_reported(void **s)
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
        cmocka_unit_test(connecting_without_a_listener_is_an_error),
        cmocka_unit_test(a_peer_that_never_answers_causes_a_timeout),
        cmocka_unit_test(the_timeout_starts_with_the_call_even_if_the_loop_was_not_run),
        cmocka_unit_test(a_server_of_another_protocol_is_recognised),
        cmocka_unit_test(a_port_in_use_is_named),
        cmocka_unit_test(a_peer_that_vanishes_inside_a_block_ends_both_sides),
        cmocka_unit_test(a_reader_that_stalls_stops_the_source_and_uses_no_memory),
        cmocka_unit_test(closing_a_link_to_a_peer_that_does_not_read_takes_limited_time),
        cmocka_unit_test(an_abort_closes_the_descriptor_at_once),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("wire/link_breaks", tests, link_keys_make, link_keys_free);
}
