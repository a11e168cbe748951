/*
 * Control bodies: the first byte selects the kind, the rest is the body. An accepted body has legal
 * values, is written again within the cap, and the written bytes parse to the same values.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "crypto/fragment_make.h"
#include "wire/message.h"
#include "wire/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { HELLO, PUT, RESULT, TASK, REFUSE, BYE, KINDS };

typedef struct message {
    sherd__hello hello;
    sherd__fragment_info info;
    uint32_t attempt;
    sherd__task task;
    sherd__refusal refusal;
    int code;
    char text[SHERD__TEXT_MAX];
} message;

static int parse(unsigned kind, message *m, const uint8_t *body, size_t len, sherd_diag *d)
{
    switch (kind) {
    case HELLO: return sherd__message_hello_parse(&m->hello, body, len, d);
    case PUT: return sherd__message_description_parse(&m->info, NULL, body, len, d);
    case RESULT: return sherd__message_description_parse(&m->info, &m->attempt, body, len, d);
    case TASK: return sherd__message_task_parse(&m->task, body, len, d);
    case REFUSE: return sherd__message_refuse_parse(&m->refusal, body, len, d);
    default: return sherd__message_bye_parse(&m->code, m->text, body, len, d);
    }
}

static size_t put(unsigned kind, const message *m, uint8_t *out)
{
    switch (kind) {
    case HELLO: return sherd__message_hello(out, &m->hello);
    case PUT: return sherd__message_description(out, &m->info, NULL);
    case RESULT: return sherd__message_description(out, &m->info, &m->attempt);
    case TASK: return sherd__message_task(out, &m->task);
    case REFUSE: return sherd__message_refuse(out, &m->refusal);
    default: return sherd__message_bye(out, m->code, m->text);
    }
}

static void printable(const char *text, size_t room)
{
    assert(memchr(text, 0, room));
    for (; *text; text++) assert(*text >= ' ' && *text <= '~');
}

static void legal(unsigned kind, const message *m)
{
    const sherd__task *t = &m->task;
    switch (kind) {
    case HELLO:
        assert(m->hello.minor_min <= m->hello.minor_max);
        assert(isfinite(m->hello.gflops) && m->hello.gflops >= 0);
        assert(isfinite(m->hello.residue_gflops) && m->hello.residue_gflops >= 0);
        assert(isfinite(m->hello.byte_gops) && m->hello.byte_gops >= 0);
        assert(m->hello.devices_len <= SHERD__DEVICES_MAX && sherd__hello_rates_ok(&m->hello));
        assert(sherd__hello_rates_of(&m->hello).gflops <=
               SHERD__DEVICES_MAX * SHERD__HELLO_GFLOPS_MAX);
        assert(m->hello.threads <= SHERD__HELLO_THREADS_MAX &&
               m->hello.memory <= SHERD__HELLO_BYTES_MAX);
        printable(m->hello.software, sizeof m->hello.software);
        printable(m->hello.blas_core, sizeof m->hello.blas_core);
        printable(m->hello.backend, sizeof m->hello.backend);
        break;
    case PUT:
    case RESULT: assert(sherd__fragment_info_check(&m->info, NULL) == 0); break;
    case TASK:
        assert(t->left != 0 && t->primes_len <= SHERD__PRIMES_MAX);
        assert(t->result.origin == SHERD__RESULT);
        assert(sherd__fragment_info_check(&t->result, NULL) == 0);
        break;
    case REFUSE:
        assert(m->refusal.code < 0 && (m->refusal.block != 0) != (m->refusal.task != 0));
        printable(m->refusal.text, sizeof m->refusal.text);
        break;
    default: assert(m->code <= 0); printable(m->text, sizeof m->text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const message none;
    uint8_t first[SHERD__CONTROL_MAX], second[SHERD__CONTROL_MAX];
    message m = none, back = none;
    sherd_diag d = { 0 };
    if (len == 0) return 0;
    unsigned kind = data[0] % KINDS;
    if (parse(kind, &m, data + 1, len - 1, &d)) {
        assert(d.code == SHERD_EFRAME && d.message[0]);
        assert(memcmp(&m, &none, sizeof m) == 0);
        return 0;
    }
    legal(kind, &m);
    size_t n = put(kind, &m, first);
    assert(n <= sizeof first);
    int err = parse(kind, &back, first, n, NULL);
    assert(err == 0);
    size_t again = put(kind, &back, second);
    assert(again == n && memcmp(first, second, n) == 0);
    return 0;
}
