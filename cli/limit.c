/*
 * A thread that waits for the end of the time or for a signal. Code that checks the timeout ends
 * first. Half a second later, all code that polls for signals or waits for one is notified as if by
 * a signal. One second after that, the thread ends the process. It uses only system calls and
 * messages formatted before, since other threads may hold any lock, including stdio's, and it does
 * not write to a pipe that nothing reads. A signal handler can therefore do the same if no thread
 * can be started.
 */
#include "cli/limit.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "bench/verbs.h"
#include "cli/node.h"
#include "cli/process.h"
#include "cli/report.h"
#include "core/clock.h"

#define SOFT_MS 500       /* after the timeout: code that checks it ends first */
#define LATE_MS 1400      /* after the timeout: the process ends */
#define HANDLED_MS 1700   /* after a signal: the process ends */
#define PUT_AWAY_MS 30000 /* after a signal that has been handled: the process ends */
#define TELL_MS 100       /* time for a reader to accept the message */
#define TICK_MS 100       /* period of the timer that replaces the thread */
#define STACK (128 * 1024)

typedef struct sentence {
    char text[640];
    int code;
} sentence;

static sentence timeout, interrupt;
static int words_fd;
static int64_t end_ms; /* INT64_MAX: no timeout */
static atomic_bool ending, handled, writes;

static int least(int64_t ms)
{
    return ms < 0 ? 0 : ms > 1000000 ? 1000000 : (int)ms;
}

__attribute__((noreturn)) static void exit_with(const sentence *s)
{
    struct pollfd to = { .fd = words_fd, .events = POLLOUT };
    /* A pipe that polls as writable accepts 4096 bytes. */
    if (!atomic_load(&ending) && poll(&to, 1, TELL_MS) == 1 && (to.revents & POLLOUT))
        (void)!write(words_fd, s->text, strlen(s->text));
    _exit(s->code);
}

/* Takes the actions that are due. sig: result of sherd__cli_interrupted; signalled: when a signal
 * was received, INT64_MAX if none has. Returns for how many ms nothing is due, -1: until a
 * signal. */
static int look(int sig, int64_t *signalled)
{
    int64_t now = sherd__clock_ms();
    if (*signalled == INT64_MAX && sig && sig != SIGALRM) *signalled = now;
    if (*signalled != INT64_MAX && atomic_load(&writes)) atomic_store(&handled, true);
    int64_t late = end_ms == INT64_MAX ? INT64_MAX : end_ms + LATE_MS, due = late;
    int64_t more = atomic_load(&handled) ? PUT_AWAY_MS : HANDLED_MS;
    if (*signalled != INT64_MAX && *signalled + more < due) due = *signalled + more;
    if (now >= due) exit_with(due == late ? &timeout : &interrupt);
    if (*signalled == INT64_MAX && late != INT64_MAX) {
        if (now >= end_ms + SOFT_MS) sherd__process_late();
        else due = end_ms + SOFT_MS;
    }
    /* `handled` may be set at any time. */
    int wait = due == INT64_MAX ? -1 : least(due - now);
    return *signalled != INT64_MAX && wait > 200 ? 200 : wait;
}

__attribute__((noreturn)) static void *watch(void *none)
{
    (void)none;
    struct pollfd signal_came = { .fd = sherd__cli_interrupt_fd(), .events = POLLIN };
    int64_t signalled = INT64_MAX;
    for (;;) {
        int sig = sherd__cli_interrupted(), wait = look(sig, &signalled);
        /* After a signal the descriptor stays readable, so it is polled only before. */
        (void)poll(&signal_came, !sig && signal_came.fd >= 0, wait);
    }
}

static void on_tick(int alarm)
{
    static int64_t signalled = INT64_MAX;
    int saved = errno;
    (void)alarm;
    (void)look(sherd__cli_interrupted(), &signalled);
    errno = saved;
}

static void watch_by_timer(void)
{
    const struct timeval tick = { .tv_usec = TICK_MS * 1000 };
    const struct itimerval again = { .it_interval = tick, .it_value = tick };
    struct sigaction act = { .sa_flags = SA_RESTART, .sa_handler = on_tick };
    sigemptyset(&act.sa_mask);
    if (sigaction(SIGALRM, &act, NULL) == 0) (void)setitimer(ITIMER_REAL, &again, NULL);
}

static void choose(sentence *s, const sherd__cli *cli, int err, const char *message,
                   const char *hint)
{
    char title[sizeof cli->title];
    s->code = sherd_err_exit(err);
    if (!cli->json) {
        snprintf(s->text, sizeof s->text, "sherd: %s: %s%s%s\n", cli->title, message,
                 *hint ? "\n  try: " : "", hint);
        return;
    }
    snprintf(title, sizeof title, "%s", cli->title);
    for (char *p = title; *p != '\0'; p++)
        if (*p == ' ') *p = '-';
    snprintf(s->text, sizeof s->text,
             "{\"schema\":\"sherd/%s/1\",\"ok\":false,\"error\":{\"code\":%d,\"name\":\"%s\","
             "\"error\":\"%s\",\"message\":\"%s\",\"hint\":\"%s\"}}\n",
             title, s->code, sherd__exit_name(s->code), sherd_err_name(err), message, hint);
}

static uint32_t timeout_of(const sherd__cli *cli)
{
    for (const sherd__option *o = cli->verb->options; o && o->name; o++)
        if (strcmp(o->name, "timeout") == 0) return sherd__opt_time_ms(cli, "timeout");
    return 0;
}

void sherd__limit_start(const sherd__cli *cli)
{
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t all, before;
    /* A node ends after it has notified its coordinators, within its own time limits. */
    if (cli->verb == &sherd__verb_node || cli->verb == &sherd__verb_bench_node) return;
    uint32_t ms = timeout_of(cli);
    end_ms = ms ? sherd__clock_ms() + ms : INT64_MAX;
    words_fd = cli->json ? STDOUT_FILENO : STDERR_FILENO;
    choose(&timeout, cli, SHERD_ETIMEOUT, "--timeout expired", "allow more time with --timeout");
    choose(&interrupt, cli, SHERD_EINTERRUPTED, "interrupted", "");
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int bad = pthread_attr_init(&attr);
    if (!bad) {
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attr, STACK);
        bad = pthread_create(&thread, &attr, watch, NULL);
        pthread_attr_destroy(&attr);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (bad) watch_by_timer();
}

void sherd__limit_handled(void)
{
    atomic_store(&handled, true);
}

void sherd__limit_writes(bool is)
{
    atomic_store(&writes, is);
}

void sherd__limit_ending(void)
{
    atomic_store(&ending, true);
}
