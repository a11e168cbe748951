/*
 * The command with a node that misbehaves: the product, with the calls below wrapped at link time.
 * Run it as `sherd` for local nodes (sherd_cluster_options.program, sherd__launch_options.program).
 * The environment selects the mode and the nodes (by --name; without names, all nodes):
 *
 *     SHERD_TEST_MISBEHAVE=MODE[:AFTER][@node-3[,node-5...]]
 *
 *     wrong     well-formed results with one value changed  silent    never answers a task
 *     garbage   bytes that are not a record                 slow      a second for each product
 *     wronglen  a result of another size than requested     crash     ends as by kill -9
 *     twice     sends each result twice                     refuse    refuses every task
 *     unasked   an unrequested result                       cut       closes within a result
 *     minute    a minute for each product                   stopped   SIGSTOP before it listens
 *     killed    SIGKILL before it listens                   mute      stops when connected to
 *     late      listens a minute late                       older     does not support windows
 *     poor      reports 64 bytes of memory, one: one byte, vast: 2^60 bytes
 *     nan       reports a speed that is NaN, inf: infinite, minus: negative
 *     minor     WELCOME with another minor version          leaves    BYE instead of WELCOME
 *     breaks    closes instead of WELCOME                   moody     as refuse, see be_moody
 *     frozen    its loop runs, but its compute thread does not
 *     idle      bytes that are not a record, 0.2 s or more after its last result
 *     rewrite   copies SHERD_TEST_REWRITE.new to SHERD_TEST_REWRITE, refuses once, then behaves
 *     rewind    the same, but it ends the session instead, and with it its blocks
 *
 * AFTER: the number of results that are answered correctly first. The coordinating process waits
 * SHERD_TEST_RETURN_MS for a lost node to return, if its own limit is too short for a busy machine.
 * link: -Wl,--wrap=sherd__session_result,--wrap=sherd__session_pending,--wrap=sherd__link_begin
 * link: -Wl,--wrap=sherd__gemm_f64,--wrap=sherd__limbs_multiply,--wrap=sherd__bytes_multiply
 * link: -Wl,--wrap=sherd__session_new,--wrap=sherd__message_hello,--wrap=sherd__executor_submit
 * link: -Wl,--wrap=sherd__job_new
 */
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/command.h"
#include "core/executor.h"
#include "crypto/fragment_make.h"
#include "matrix/residue_bytes.h"
#include "matrix/residue_limbs.h"
#include "scheduler/job/job.h"
#include "sherd/mat.h"
#include "wire/link_state.h"
#include "wire/message.h"
#include "wire/session_state.h"

int __real_sherd__session_result(sherd__session *s, const sherd__task *task, sherd__fragment *f);
int __wrap_sherd__session_result(sherd__session *s, const sherd__task *task, sherd__fragment *f);
size_t __real_sherd__session_pending(sherd__session *s, uint64_t now_ms, const uint8_t **out);
size_t __wrap_sherd__session_pending(sherd__session *s, uint64_t now_ms, const uint8_t **out);
int __real_sherd__limbs_multiply(const sherd__limbs *x, sherd__team *team, uint8_t *left,
                                 uint8_t *right);
int __wrap_sherd__limbs_multiply(const sherd__limbs *x, sherd__team *team, uint8_t *left,
                                 uint8_t *right);
int __real_sherd__bytes_multiply(const sherd__bytes_product *x, sherd__team *team);
int __wrap_sherd__bytes_multiply(const sherd__bytes_product *x, sherd__team *team);
int __real_sherd__gemm_f64(size_t n, size_t k, size_t m, const double *a, size_t lda,
                           const double *b, size_t ldb, double beta, double *c, size_t ldc);
int __wrap_sherd__gemm_f64(size_t n, size_t k, size_t m, const double *a, size_t lda,
                           const double *b, size_t ldb, double beta, double *c, size_t ldc);

int __real_sherd__session_new(sherd__session **out, const sherd__session_options *opt);
int __wrap_sherd__session_new(sherd__session **out, const sherd__session_options *opt);
int __real_sherd__executor_submit(sherd__executor *e, sherd__executor_item *w);
int __wrap_sherd__executor_submit(sherd__executor *e, sherd__executor_item *w);
int __real_sherd__job_new(sherd__job **out, const sherd__job_options *opt);
int __wrap_sherd__job_new(sherd__job **out, const sherd__job_options *opt);
size_t __real_sherd__message_hello(uint8_t *body, const sherd__hello *hello);
size_t __wrap_sherd__message_hello(uint8_t *body, const sherd__hello *hello);
void __real_sherd__link_begin(sherd__link *l);
void __wrap_sherd__link_begin(sherd__link *l);

static char mode[16];        /* empty: behaves correctly */
static unsigned after;       /* correct results that are still to be sent */
static bool poisoned;        /* the next bytes, or the final ones, are replaced by garbage */
static bool answering;       /* idle: the next bytes contain a result */
static uint64_t answered_ms; /* when it was sent; 0: not yet */
static bool serving; /* there is a session: products are those of tasks, not of the self-test */

static bool is(const char *name)
{
    return strcmp(mode, name) == 0;
}

/* Makes a fragment in memory with f's bytes; frees f. */
static sherd__fragment *copy_of(sherd__fragment *f, const sherd__fragment_info *info, int change)
{
    uint64_t len = sherd__fragment_info_of(f)->len;
    uint8_t *bytes = calloc(1, len + 64);
    sherd__fragment *out;
    if (!bytes || sherd__fragment_read(f, 0, bytes, len)) abort();
    if (change && len >= 8 && info->dtype == SHERD_F64) {
        double v;
        uint8_t *at = bytes + len / 16 * 8;
        memcpy(&v, at, 8);
        v = v * 1.5 + 1;
        memcpy(at, &v, 8);
    } else if (change && len) {
        bytes[0] ^= 1; /* stays a residue, unless it is the largest */
    }
    if (sherd__fragment_take(&out, info, bytes, NULL, NULL)) abort();
    sherd__fragment_free(f);
    return out;
}

static int send_twice(sherd__session *s, const sherd__task *task, sherd__fragment *f)
{
    f = copy_of(f, &task->result, 0);
    uint8_t *bytes = malloc(task->result.len + 1);
    sherd__fragment *again;
    if (!bytes || sherd__fragment_read(f, 0, bytes, task->result.len)) abort();
    if (sherd__fragment_take(&again, &task->result, bytes, NULL, NULL)) abort();
    int err = __real_sherd__session_result(s, task, f);
    if (!err && !sherd__tasks_add(&s->open, task, 0))
        if (__real_sherd__session_result(s, task, again)) abort();
    return err;
}

static int send_unasked(sherd__session *s, const sherd__task *task, sherd__fragment *f)
{
    sherd__task other = *task;
    other.task += 1000000;
    if (sherd__tasks_add(&s->open, &other, 0)) abort();
    return __real_sherd__session_result(s, &other, f);
}

static int send_wrong_length(sherd__session *s, const sherd__task *task, sherd__fragment *f)
{
    sherd__task other = *task;
    if (other.result.rows < 2) return send_unasked(s, task, f);
    other.result.rows--;
    other.result.len -= other.result.len / task->result.rows;
    return __real_sherd__session_result(s, &other, copy_of(f, &other.result, 0));
}

/* In place: a process that has mapped the file sees the change. */
static void rewrite(void)
{
    const char *path = getenv("SHERD_TEST_REWRITE");
    char from[512], bytes[65536];
    size_t n;
    if (!path) abort();
    snprintf(from, sizeof from, "%s.new", path);
    FILE *in = fopen(from, "rbe"), *out = fopen(path, "r+be");
    if (!in || !out) abort();
    while ((n = fread(bytes, 1, sizeof bytes, in)) > 0)
        if (fwrite(bytes, 1, n, out) != n) abort();
    if (fclose(out)) abort();
    fclose(in);
}

static int refuse(sherd__session *s, const sherd__task *task, sherd__fragment *f, int code)
{
    sherd__refusal r = {
        .job = task->job, .task = task->task, .attempt = task->attempt, .code = code, .text = "no"
    };
    sherd__fragment_free(f);
    return sherd__session_refuse(s, &r);
}

/* Ends the session at the first task of its third job. From its fourth job on, its reason is
 * another one. */
static int be_moody(sherd__session *s, const sherd__task *task, sherd__fragment *f)
{
    static uint64_t job;
    static unsigned jobs;
    bool other = task->job != job;
    jobs += other;
    job = task->job;
    if (jobs != 3 || !other) return refuse(s, task, f, jobs < 4 ? SHERD_ENOMEM : SHERD_EBUSY);
    sherd__fragment_free(f);
    (void)!sherd__session_end(s, SHERD_ECLOSED, false, "on purpose");
    return SHERD_OK;
}

int __wrap_sherd__session_result(sherd__session *s, const sherd__task *task, sherd__fragment *f)
{
    if (!mode[0] || after > 0) {
        after -= after > 0;
        return __real_sherd__session_result(s, task, f);
    }
    if (is("wrong")) return __real_sherd__session_result(s, task, copy_of(f, &task->result, 1));
    if (is("twice")) return send_twice(s, task, f);
    if (is("unasked")) return send_unasked(s, task, f);
    if (is("wronglen")) return send_wrong_length(s, task, f);
    if (is("crash")) raise(SIGKILL);
    if (is("refuse")) return refuse(s, task, f, SHERD_ENOMEM);
    if (is("moody")) return be_moody(s, task, f);
    if (is("rewrite") || is("rewind")) {
        sherd__refusal r = { .job = task->job,
                             .task = task->task,
                             .attempt = task->attempt,
                             .code = SHERD_EBUSY,
                             .text = "later" };
        bool refuse = is("rewrite");
        mode[0] = '\0';
        rewrite();
        sherd__fragment_free(f);
        if (refuse) return sherd__session_refuse(s, &r);
        (void)!sherd__session_end(s, SHERD_ECLOSED, false, "on purpose");
        return SHERD_OK;
    }
    if (is("silent")) {
        sherd__fragment_free(f);
        return SHERD_OK;
    }
    poisoned = is("garbage") || is("cut");
    answering = true;
    return __real_sherd__session_result(s, task, f);
}

size_t __wrap_sherd__session_pending(sherd__session *s, uint64_t now_ms, const uint8_t **out)
{
    size_t n = __real_sherd__session_pending(s, now_ms, out);
    serving = true;
    if (is("idle") && n > 0) {
        poisoned = !answering && answered_ms && now_ms >= answered_ms + 200;
        if (answering) answered_ms = now_ms;
        answering = false;
    }
    if (!poisoned || n == 0) return n;
    if (is("garbage") || is("idle")) {
        memset((uint8_t *)(uintptr_t)*out, 0xEE, n);
        poisoned = false;
        return n;
    }
    static int offers; /* cut: the first half is sent, then the process is gone */
    if (offers++ > 0) raise(SIGKILL);
    return n > 1 ? n / 2 : n;
}

static void linger(void)
{
    if (serving && (is("slow") || is("minute")) && after == 0) {
        struct timespec pause = { .tv_sec = is("slow") ? 1 : 60 };
        nanosleep(&pause, NULL);
    }
}

/* Shares, if the processor has AMX. */
int __wrap_sherd__limbs_multiply(const sherd__limbs *x, sherd__team *team, uint8_t *left,
                                 uint8_t *right)
{
    linger();
    return __real_sherd__limbs_multiply(x, team, left, right);
}

/* Shares of bytes: a task has a product for each prime. */
int __wrap_sherd__bytes_multiply(const sherd__bytes_product *x, sherd__team *team)
{
    if (x->p == sherd__byte_primes[0]) linger();
    return __real_sherd__bytes_multiply(x, team);
}

int __wrap_sherd__gemm_f64(size_t n, size_t k, size_t m, const double *a, size_t lda,
                           const double *b, size_t ldb, double beta, double *c, size_t ldc)
{
    linger();
    return __real_sherd__gemm_f64(n, k, m, a, lda, b, ldb, beta, c, ldc);
}

/* TCP is connected; the next bytes would be TLS's. */
void __wrap_sherd__link_begin(sherd__link *l)
{
    if (is("mute")) raise(SIGSTOP);
    __real_sherd__link_begin(l);
}

int __wrap_sherd__session_new(sherd__session **out, const sherd__session_options *opt)
{
    sherd__session_options o = *opt;
    if (is("poor")) o.hello.memory = 64;
    if (is("one")) o.hello.memory = 1;
    if (is("vast")) o.hello.memory = UINT64_C(1) << 60;
    if (is("older")) o.hello.features &= ~(uint64_t)SHERD__FEATURE_WINDOWS;
    int err = __real_sherd__session_new(out, &o);
    if (!err && is("leaves")) sherd__session_bye(*out, SHERD_EREFUSED, "not today");
    return err;
}

size_t __wrap_sherd__message_hello(uint8_t *body, const sherd__hello *hello)
{
    sherd__hello h = *hello;
    if (is("nan")) h.gflops = NAN;
    if (is("inf")) h.residue_gflops = INFINITY;
    if (is("minus")) h.gflops = -1;
    if (is("minor")) h.minor_min = h.minor_max = SHERD__MINOR + 1;
    if (is("breaks")) raise(SIGKILL);
    return __real_sherd__message_hello(body, &h);
}

static void stand_still(sherd__executor_item *w)
{
    (void)w;
    for (;;) sleep(3600);
}

int __wrap_sherd__executor_submit(sherd__executor *e, sherd__executor_item *w)
{
    if (serving && is("frozen") && after == 0) w->run = stand_still;
    return __real_sherd__executor_submit(e, w);
}

int __wrap_sherd__job_new(sherd__job **out, const sherd__job_options *opt)
{
    sherd__job_options o = *opt;
    const char *wait = getenv("SHERD_TEST_RETURN_MS");
    if (wait) o.return_ms = (uint32_t)strtoul(wait, NULL, 10);
    return __real_sherd__job_new(out, &o);
}

static void misbehave_before_listening(void)
{
    if (is("stopped")) raise(SIGSTOP);
    if (is("killed")) raise(SIGKILL);
    if (is("late")) sleep(60);
}

/* Returns whether the list names the node, or there is no list. */
static bool concerns(const char *list, const char *name)
{
    if (!list) return true;
    size_t len = strlen(name);
    for (const char *p = list; (p = strstr(p, name)); p += len)
        if ((p == list || p[-1] == ',') && (p[len] == '\0' || p[len] == ',')) return true;
    return false;
}

int main(int argc, char **argv)
{
    const char *how = getenv("SHERD_TEST_MISBEHAVE"), *name = "", *list;
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--name") == 0) name = argv[i + 1];
    if (how && argc > 1 && strcmp(argv[1], "node") == 0) {
        list = strchr(how, '@');
        if (concerns(list ? list + 1 : NULL, name)) {
            sscanf(how, "%15[a-z]:%u", mode, &after);
            misbehave_before_listening();
        }
    }
    return sherd__cli_main(argc, argv);
}
