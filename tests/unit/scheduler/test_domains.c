/*
 * Names and addresses of one host, and domains in a node file.
 *
 * link: -Wl,--wrap=getaddrinfo
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "scheduler/cluster/domains.h"
#include "tests/support/far_resolver.h"

#define MOST 4u

/* A resolver that knows two machines, and numeric addresses. */
static size_t known(void *ctx, const char *host, struct in6_addr *out, size_t room)
{
    static const struct {
        const char *name, *at;
    } hosts[] = {
        { "a.example", "::ffff:192.0.2.1" },
        { "b.example", "2001:db8::2" },
        { "both.example", "::ffff:192.0.2.1" },
        { "both.example", "2001:db8::2" },
    };
    size_t len = 0;
    (void)ctx;
    if (!strstr(host, "example")) {
        sherd__names *names;
        sherd__peer p = { .port = 1 }, *one = &p;
        snprintf(p.host, sizeof p.host, "%s", host);
        if (sherd__names_start(&names, &one, 1)) return 0;
        assert_int_equal(sherd__names_missing(names), 1);
        len = sherd__names_addresses(names, host, out, room);
        sherd__names_free(names);
        return len;
    }
    for (size_t i = 0; i < 4; i++)
        if (strcmp(hosts[i].name, host) == 0) (void)inet_pton(AF_INET6, hosts[i].at, &out[len++]);
    return len;
}

/* "host" or "host=domain" for each node; the expected result has one letter for each node. */
typedef struct example {
    const char *nodes[MOST];
    const char *domains;
    bool split;
} example;

static void domains_follow_from_the_file_or_from_hosts(void **state)
{
    (void)state;
    static const example examples[] = {
        { { "127.0.0.1", "localhost", "LOCALHOST.", "::1" }, "aaaa", false },
        { { "127.0.0.1", "127.1.2.3", "::ffff:127.0.0.1", "x.localhost" }, "aaaa", false },
        { { "192.0.2.1", "::ffff:192.0.2.1", "a.example", "192.0.2.2" }, "aaab", false },
        { { "2001:db8::2", "2001:DB8:0:0::2", "b.example.", "a.example" }, "aaab", false },
        { { "Odd.Host.example", "odd.host.example.", "odd.example", NULL }, "aab", false },
        { { "a.example", "b.example", "both.example", "c.example" }, "aaab", false },
        { { "a.example=x", "b.example=x", "c.example=y", "d.example" }, "aabc", false },
        { { "a.example=x", "192.0.2.1=y", NULL }, "ab", true },
        { { "a.example=x", "a.example=x", "b.example=y", NULL }, "aab", false },
        { { "192.0.2.1", "b.example", "a.example=x", NULL }, "aba", false },
        { { "127.0.0.1=x", "localhost=y", "127.0.0.1", NULL }, "aba", true },
        { { "a.example=b.example", "b.example", NULL }, "aa", false },
    };
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const example *e = &examples[i];
        sherd__peer peers[MOST], *list[MOST];
        uint32_t of[MOST], count = 0, most = 0;
        sherd__domains domains = { .of = of };
        for (; count < MOST && e->nodes[count]; count++) {
            sherd__peer *p = list[count] = &peers[count];
            *p = (sherd__peer){ .port = 1 };
            (void)sscanf(e->nodes[count], "%255[^=]=%63s", p->host, p->domain);
        }
        assert_int_equal(sherd__domains_number(&domains, list, count, known, NULL), SHERD_OK);
        for (uint32_t n = 0; n < count; n++) {
            if (of[n] != (uint32_t)(e->domains[n] - 'a'))
                fail_msg("%zu: node %u is of domain %u", i, n, of[n]);
            if (of[n] + 1 > most) most = of[n] + 1;
            assert_true(peers[n].domain[0] != '\0');
            for (uint32_t m = 0; m < n; m++) /* texts distinguish them, as certificates count
                                              * them */
                assert_true((strcmp(peers[n].domain, peers[m].domain) == 0) == (of[n] == of[m]));
        }
        assert_int_equal(domains.len, most);
        assert_true((domains.split[0] != domains.split[1]) == e->split);
    }
}

static void hosts_are_looked_up_once_and_all_at_the_same_time(void **state)
{
    (void)state;
    static const char *const hosts[] = { "127.0.0.1",     "fast.example",   "slow.example",
                                         "SLOW.example.", "slower.example", "192.0.2.1",
                                         "localhost",     "slow.example" };
    enum { COUNT = sizeof hosts / sizeof *hosts };
    sherd__peer peers[COUNT], *list[COUNT];
    sherd__names *names;
    struct in6_addr at[2];
    uint32_t of[COUNT];
    sherd__domains domains = { .of = of };
    for (uint32_t i = 0; i < COUNT; i++) {
        list[i] = &peers[i];
        peers[i] = (sherd__peer){ .port = 1 };
        snprintf(peers[i].host, sizeof peers[i].host, "%s", hosts[i]);
    }
    assert_int_equal(sherd__names_start(&names, list, COUNT), SHERD_OK);
    far_wait(2);
    for (uint32_t i = 0; i < 60000 && sherd__names_missing(names) != 2; i++) usleep(1000);
    assert_int_equal(sherd__names_missing(names), 2);
    assert_int_equal(sherd__names_addresses(names, "slow.example", at, 2), 0);
    assert_int_equal(sherd__names_addresses(names, "192.0.2.1", at, 2), 1);
    assert_true(IN6_IS_ADDR_V4MAPPED(&at[0]) && at[0].s6_addr[15] == 1);
    far_release();
    for (uint32_t i = 0; i < 60000 && sherd__names_missing(names) != COUNT; i++) usleep(1000);
    assert_int_equal(sherd__names_missing(names), COUNT);
    assert_int_equal(sherd__domains_number(&domains, list, COUNT, sherd__names_addresses, names),
                     SHERD_OK);
    assert_int_equal(domains.len,
                     2); /* loopback, and the machine to which all other names resolve */
    assert_int_equal(far.asked, 2);
    sherd__names_free(names);
    sherd__names_free(NULL);
}

static void abandoned_look_ups_do_not_block(void **state)
{
    (void)state;
    sherd__peer one = { .host = "slow.example", .port = 1 }, *list[] = { &one };
    uint32_t of;
    sherd__domains domains = { .of = &of };
    sherd__names *names;
    assert_int_equal(sherd__names_start(&names, list, 1), SHERD_OK);
    assert_int_equal(sherd__domains_number(&domains, list, 1, sherd__names_addresses, names),
                     SHERD_OK);
    assert_string_equal(one.domain, "slow.example");
    far_wait(1);
    sherd__names_free(names);
    far_release();
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    sherd__peer one = { .host = "192.0.2.1" }, *list[] = { &one };
    uint32_t of;
    sherd__domains domains = { .of = &of };
    int err = SHERD_ENOMEM;
    for (size_t n = 1; err; n++) {
        (void)sherd__alloc_fail_nth(n);
        err = sherd__domains_number(&domains, list, 1, known, NULL);
        (void)sherd__alloc_fail_nth(0);
        assert_true(!err || one.domain[0] == '\0');
        assert_true(n < 10);
    }
    assert_string_equal(one.domain, "192.0.2.1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(domains_follow_from_the_file_or_from_hosts),
        cmocka_unit_test(hosts_are_looked_up_once_and_all_at_the_same_time),
        cmocka_unit_test(abandoned_look_ups_do_not_block),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
