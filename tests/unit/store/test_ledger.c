/*
 * The privacy ledger: costs add up by place; a process that was killed finds all charges again; a
 * truncated line was not charged; a charge that could not be synced counts as not charged.
 *
 * link: -Wl,--wrap=fsync -Wl,--wrap=linkat -Wl,--wrap=pread
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "scratch.h"
#include "store/ledger.h"
#include "tests/support/comma_locale.h"
#include "tests/support/draw.h"
#include "tests/support/send_signal.h"

static bool fail_sync;
static unsigned syncs;

int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_fsync(int fd)
{
    syncs++;
    if (!fail_sync) return __real_fsync(fd);
    errno = EIO;
    return -1;
}

/* The action of another process as soon as a file has its name. */
static void (*once_named)(void);

int __real_linkat(int from_dir, const char *from, int dir, const char *to, int flags);
int __wrap_linkat(int from_dir, const char *from, int dir, const char *to, int flags);

int __wrap_linkat(int from_dir, const char *from, int dir, const char *to, int flags)
{
    int r = __real_linkat(from_dir, from, dir, to, flags);
    void (*next)(void) = once_named;
    once_named = NULL;
    if (r == 0 && next) next();
    return r;
}

static size_t longest_read;

ssize_t __real_pread(int fd, void *to, size_t len, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t len, off_t at);

ssize_t __wrap_pread(int fd, void *to, size_t len, off_t at)
{
    if (len > longest_read) longest_read = len;
    return __real_pread(fd, to, len, at);
}

enum { PLACES = 200 };

static uint8_t keys[3][4][SHERD__LEDGER_KEY]; /* three rosters */

static sherd__ledger_upload upload(uint64_t job, uint64_t first, uint64_t rows, double rho)
{
    sherd__ledger_upload u = { .day = 20000,
                               .job = job,
                               .first = first,
                               .rows = rows,
                               .rho = rho,
                               .nodes = 4,
                               .threshold = 3 };
    for (unsigned r = 0; r < 3; r++)
        for (unsigned i = 0; i < 4; i++) memset(keys[r][i], (int)(10 * i + r), sizeof keys[r][i]);
    memset(u.about, (int)job, sizeof u.about);
    memset(u.by, (int)(job % 2), sizeof u.by);
    u.keys = (const uint8_t(*)[SHERD__LEDGER_KEY])keys[job % 3];
    return u;
}

static sherd__ledger *open_it(void)
{
    sherd__ledger *l;
    assert_int_equal(sherd__ledger_open(&l, scratch_path("x.ledger"), false, NULL), 0);
    return l;
}

static void costs_add_up_by_place_and_outlive_the_process(void **s)
{
    (void)s;
    double want[PLACES] = { 0 };
    uint64_t jobs[7] = { 0 }, all = 0;
    unlink(scratch_path("x.ledger"));
    sherd__ledger *l = open_it();
    draw_state = 5;
    for (unsigned i = 0; i < 400; i++) {
        uint64_t job = draw() % 7, first = draw() % PLACES, rows = 1 + draw() % (PLACES - first);
        sherd__ledger_upload u = upload(job, first, rows, (double)(1 + draw() % 9) / 64);
        u.day += i / 100;
        unsigned before = syncs;
        assert_int_equal(sherd__ledger_charge(l, &u, NULL), 0);
        assert_true(syncs > before);
        for (uint64_t p = first; p < first + rows; p++) want[p] += u.rho;
        jobs[job]++;
        all++;
        if (i % 50 == 49) { /* killed, and started again */
            sherd__ledger_close(l);
            l = open_it();
        }
        uint64_t from = draw() % PLACES, len = 1 + draw() % (PLACES - from);
        double most = 0;
        for (uint64_t p = from; p < from + len; p++) most = fmax(most, want[p]);
        assert_true(sherd__ledger_spent(l, from, len) == most);
    }
    uint8_t by[2][SHERD__LEDGER_KEY];
    for (unsigned b = 0; b < 2; b++) memset(by[b], (int)b, sizeof by[b]);
    for (uint64_t k = 0; k < 7; k++) {
        assert_int_equal(sherd__ledger_job(l, by[k % 2], k), jobs[k]);
        assert_int_equal(sherd__ledger_job(l, by[1 - k % 2], k), 0); /* the job of another
                                                                      * coordinator with this
                                                                      * number */
    }
    assert_int_equal(sherd__ledger_job(l, by[1], 99), 0);
    assert_int_equal(sherd__ledger_since(l, 20003, NULL), 100);
    assert_int_equal(sherd__ledger_since(l, 20000, by[0]), jobs[0] + jobs[2] + jobs[4] + jobs[6]);
    assert_int_equal(sherd__ledger_since(l, 20000, by[1]), jobs[1] + jobs[3] + jobs[5]);
    assert_int_equal(sherd__ledger_since(l, 20000, NULL), 400);
    assert_int_equal(sherd__ledger_since(l, 20004, NULL), 0);
    assert_int_equal(sherd__ledger_all(l).uploads, all);
    struct stat st;
    assert_int_equal(stat(scratch_path("x.ledger"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    sherd__ledger_close(l);
}

static void a_round_without_noise_has_an_unbounded_cost(void **s)
{
    (void)s;
    unlink(scratch_path("x.ledger"));
    sherd__ledger *l = open_it();
    sherd__ledger_upload u = upload(1, 10, 10, INFINITY);
    assert_int_equal(sherd__ledger_charge(l, &u, NULL), 0);
    sherd__ledger_close(l);
    l = open_it();
    assert_true(isinf(sherd__ledger_spent(l, 19, 5)));
    assert_true(sherd__ledger_spent(l, 20, 100) == 0);
    u = upload(1, 0, 1, NAN);
    assert_int_equal(sherd__ledger_charge(l, &u, NULL), SHERD_EINVAL);
    sherd__ledger_close(l);
}

static void rosters_and_opened_sums_are_remembered(void **s)
{
    (void)s;
    uint8_t members[2][SHERD__LEDGER_KEY];
    memset(members[0], 1, sizeof members[0]);
    memset(members[1], 2, sizeof members[1]);
    unlink(scratch_path("x.ledger"));
    sherd__ledger *l = open_it();
    for (uint64_t k = 0; k < 200; k++) {
        sherd__ledger_upload u = upload(k, 0, 1, 1);
        assert_null(sherd__ledger_known_of(l, u.about).keys);
        assert_int_equal(sherd__ledger_charge(l, &u, NULL), 0);
        if (k % 5 == 0) assert_int_equal(sherd__ledger_bind(l, u.about, members[k % 2], NULL), 0);
        unsigned before = syncs;
        if (k % 5 == 0) assert_int_equal(sherd__ledger_bind(l, u.about, members[k % 2], NULL), 0);
        if (k % 5 == 0)
            assert_int_equal(sherd__ledger_bind(l, u.about, members[!(k % 2)], NULL),
                             SHERD_EEXPOSURE);
        assert_int_equal(syncs, before); /* nothing new is written */
    }
    for (unsigned again = 0; again < 2; again++) {
        for (uint64_t k = 0; k < 200; k++) {
            sherd__ledger_upload u = upload(k, 0, 1, 1);
            const sherd__ledger_known was = sherd__ledger_known_of(l, u.about);
            assert_int_equal(was.nodes, 4);
            assert_int_equal(was.threshold, 3);
            assert_memory_equal(was.keys, keys[k % 3], sizeof keys[0]);
            if (k % 5) assert_null(was.opened);
            else assert_memory_equal(was.opened, members[k % 2], sizeof members[0]);
        }
        sherd__ledger_close(l);
        l = open_it();
    }
    sherd__ledger_close(l);
}

static void a_truncated_line_was_not_charged(void **s)
{
    (void)s;
    size_t len;
    unlink(scratch_path("x.ledger"));
    sherd__ledger *l = open_it();
    for (uint64_t k = 0; k < 5; k++) {
        sherd__ledger_upload u = upload(k, k, 1, 1);
        assert_int_equal(sherd__ledger_charge(l, &u, NULL), 0);
    }
    sherd__ledger_close(l);
    uint8_t *all = scratch_read(scratch_path("x.ledger"), &len);
    for (size_t cut = strlen("sherd-ledger-1\n"); cut <= len; cut += 3) {
        scratch_write("x.ledger", all, cut);
        uint64_t whole = 0;
        for (size_t i = 0; i + 7 <= cut; i++)
            whole += !memcmp(all + i, "upload ", 7) && memchr(all + i, '\n', cut - i);
        l = open_it();
        assert_int_equal(sherd__ledger_all(l).uploads, whole);
        sherd__ledger_upload u = upload(50, 50, 1, 1);
        assert_int_equal(sherd__ledger_charge(l, &u, NULL), 0);
        sherd__ledger_close(l);
        l = open_it();
        assert_int_equal(sherd__ledger_all(l).uploads, whole + 1);
        sherd__ledger_close(l);
    }
    free(all);
}

static void a_charge_that_could_not_be_synced_was_not_charged(void **s)
{
    (void)s;
    unlink(scratch_path("x.ledger"));
    sherd__ledger *l = open_it();
    sherd__ledger_upload u = upload(1, 0, 1, 1);
    fail_sync = true;
    assert_int_equal(sherd__ledger_charge(l, &u, NULL), SHERD_EIO);
    assert_int_equal(sherd__ledger_bind(l, u.about, u.about, NULL), SHERD_EIO);
    fail_sync = false;
    assert_int_equal(sherd__ledger_charge(l, &u, NULL), SHERD_EIO);
    sherd__ledger_close(l);
}

/* Each charge has a roster of its own, and another allocation fails. */
static void a_charge_without_memory_is_in_both_file_and_memory_or_in_neither(void **s)
{
    (void)s;
    enum { CHARGES = 140 };
    unsigned failed = 0, unbound = 0;
    uint8_t own[4][SHERD__LEDGER_KEY] = { { 0 } };
    unlink(scratch_path("x.ledger"));
    sherd__ledger *l = open_it();
    for (unsigned k = 0; k < CHARGES; k++) {
        sherd__ledger_upload u = upload(k, 2 * k, 1, 1);
        for (unsigned i = 0; i < 4; i++) own[i][0] = (uint8_t)i, own[i][1] = (uint8_t)k;
        u.keys = (const uint8_t(*)[SHERD__LEDGER_KEY])own;
        u.day += k;
        int err = SHERD_ENOMEM;
        for (size_t n = 1; err; n++) {
            (void)sherd__alloc_fail_nth(n);
            err = sherd__ledger_charge(l, &u, NULL);
            (void)sherd__alloc_fail_nth(0);
            if (!err) break;
            failed++;
            assert_int_equal(err, SHERD_ENOMEM);
            assert_int_equal(sherd__ledger_all(l).uploads, k);
            assert_true(sherd__ledger_spent(l, u.first, u.rows) == 0);
            assert_int_equal(sherd__ledger_job(l, u.by, k), 0);
            assert_int_equal(sherd__ledger_since(l, u.day, NULL), 0);
            assert_null(sherd__ledger_known_of(l, u.about).keys);
        }
        memset(u.about, 0xb0, sizeof u.about); /* a sum that has no entry */
        if (k == 40)                           /* from here on, the table grows at a bind */
            assert_int_equal(sherd__ledger_bind(l, u.about, own[0], NULL), 0);
        u.about[0] = (uint8_t)k;
        (void)sherd__alloc_fail_nth(1);
        err = sherd__ledger_bind(l, u.about, own[0], NULL);
        (void)sherd__alloc_fail_nth(0);
        if (err) assert_null(sherd__ledger_known_of(l, u.about).opened);
        if (err) assert_int_equal(sherd__ledger_bind(l, u.about, own[0], NULL), 0);
        unbound += err == SHERD_ENOMEM;
    }
    assert_true(unbound > 0);
    assert_true(failed > CHARGES);
    for (unsigned again = 0; again < 2; again++) {
        assert_int_equal(sherd__ledger_all(l).uploads, CHARGES);
        assert_true(sherd__ledger_all(l).rho == 1);
        for (unsigned k = 0; k < CHARGES; k++)
            assert_int_equal(sherd__ledger_job(l, upload(k, 0, 1, 1).by, k), 1);
        sherd__ledger_close(l);
        l = open_it();
    }
    sherd__ledger_close(l);
}

static void two_processes_cannot_open_one_ledger(void **s)
{
    (void)s;
    sherd__ledger *l = open_it(), *other;
    sherd_diag d = { 0 };
    assert_int_equal(sherd__ledger_open(&other, scratch_path("x.ledger"), false, &d), SHERD_EBUSY);
    assert_non_null(strstr(d.message, "another process has this privacy ledger open"));
    sherd__ledger_close(l);
    l = open_it();
    sherd__ledger_close(l);
}

static void open_another(void)
{
    sherd__ledger *other;
    assert_int_equal(sherd__ledger_open(&other, scratch_path("new.ledger"), false, NULL),
                     SHERD_EBUSY);
}

static void a_new_ledger_is_locked_before_it_has_a_name(void **s)
{
    (void)s;
    sherd__ledger *l;
    sherd__ledger_upload u = upload(1, 0, 1, 1);
    once_named = open_another;
    assert_int_equal(sherd__ledger_open(&l, scratch_path("new.ledger"), false, NULL), 0);
    assert_null(once_named);
    assert_int_equal(sherd__ledger_charge(l, &u, NULL), 0);
    open_another();
    sherd__ledger_close(l);
    assert_int_equal(sherd__ledger_open(&l, scratch_path("new.ledger"), true, NULL), 0);
    assert_int_equal(sherd__ledger_all(l).uploads, 1);
    sherd__ledger_close(l);
}

static void a_ledger_that_must_exist_is_not_created(void **s)
{
    (void)s;
    sherd__ledger *l;
    sherd_diag d = { 0 };
    unlink(scratch_path("lost.ledger"));
    assert_int_equal(sherd__ledger_open(&l, scratch_path("lost.ledger"), true, &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "lost.ledger: does not exist: it records what was spent"));
    assert_int_not_equal(access(scratch_path("lost.ledger"), F_OK), 0);
    for (int made = 1; made >= 0; made--) {
        assert_int_equal(sherd__ledger_open(&l, scratch_path("lost.ledger"), !made, NULL), 0);
        assert_int_equal(sherd__ledger_made(l), made);
        sherd__ledger_close(l);
    }
}

/* Several processes find no ledger at the same time: one creates it and holds it, and no other
 * process charges to a file that was replaced. */
static void of_processes_that_create_one_ledger_exactly_one_holds_it(void **s)
{
    (void)s;
    enum { PROCESSES = 6, ROUNDS = 30 };
    for (unsigned r = 0; r < ROUNDS; r++) {
        int go[2], said[2], status;
        pid_t pids[PROCESSES];
        unsigned open_now = 0;
        unlink(scratch_path("race.ledger"));
        assert_int_equal(pipe(go), 0);
        assert_int_equal(pipe(said), 0);
        for (unsigned i = 0; i < PROCESSES; i++) {
            pids[i] = fork();
            assert_true(pids[i] >= 0);
            if (pids[i] > 0) continue;
            sherd__ledger *l = NULL;
            char c = 0;
            close(go[1]);
            if (read(go[0], &c, 1) < 0) _exit(2); /* until the parent closes it */
            int err = sherd__ledger_open(&l, scratch_path("race.ledger"), false, NULL);
            c = err == 0 ? 'y' : err == SHERD_EBUSY ? 'n' : '?';
            if (write(said[1], &c, 1) != 1) _exit(2);
            pause(); /* holds the ledger until the process is ended */
        }
        close(go[0]);
        close(go[1]);
        for (unsigned i = 0; i < PROCESSES; i++) {
            char c = 0;
            assert_int_equal(read(said[0], &c, 1), 1);
            open_now += c == 'y' ? 1 : c == 'n' ? 0 : PROCESSES;
        }
        for (unsigned i = 0; i < PROCESSES; i++) {
            assert_int_equal(send_signal(pids[i], SIGKILL), 0);
            assert_true(waitpid(pids[i], &status, 0) == pids[i]);
        }
        close(said[0]);
        close(said[1]);
        assert_int_equal(open_now, 1);
    }
}

static void damage_is_named_with_its_line(void **s)
{
    (void)s;
#define K "aa00000000000000000000000000000000000000000000000000000000000000"
#define L "bb00000000000000000000000000000000000000000000000000000000000000"
#define UP "upload 2026-11-22 0000000000000001 0 4 0.5 " K " 0 1 " K "\n"
    static const struct {
        const char *text, *line;
    } bad[] = {
        { "", ":1:" },
        { "sherd-ledger-2\n", ":1:" },
        { "sherd-ledger-1\n" UP, ":2:" }, /* there is no such roster */
        { "sherd-ledger-1\nroster 1 " K "\n", ":2:" },
        { "sherd-ledger-1\nroster 0\n", ":2:" },
        { "sherd-ledger-1\nroster 0 " K " " K "\n", ":2:" },
        { "sherd-ledger-1\nroster 0 " K "\n" UP "upload x\n", ":4:" },
        { "sherd-ledger-1\nroster 0 " K "\nupload 2026-13-01 1 0 4 0.5 " K " 0 1 " K "\n", ":3:" },
        { "sherd-ledger-1\nroster 0 " K "\nupload 2026-11-22 1 0 0 0.5 " K " 0 1 " K "\n", ":3:" },
        { "sherd-ledger-1\nroster 0 " K "\nupload 2026-11-22 1 0 4 -1 " K " 0 1 " K "\n", ":3:" },
        { "sherd-ledger-1\nroster 0 " K "\nupload 2026-11-22 1 0 4 nan " K " 0 1 " K "\n", ":3:" },
        { "sherd-ledger-1\nroster 0 " K "\nupload 2026-11-22 1 0 4 1 " K "0 0 1 " K "\n", ":3:" },
        { "sherd-ledger-1\nroster 0 " K "\nupload 2026-11-22 1 0 4 1 " K " 0 1\n", ":3:" },
        { "sherd-ledger-1\nbind " K "\n", ":2:" },
        { "sherd-ledger-1\nset 0 0-0\n", ":2:" }, /* there is no such member */
        { "sherd-ledger-1\nmember " K "\nmember " K "\n", ":3:" },
        { "sherd-ledger-1\nmember " K "0\n", ":2:" },
        { "sherd-ledger-1\nmember " K " \n", ":2:" },
        { "sherd-ledger-1\nmember " K "\nset 1 0-0\n", ":3:" },
        { "sherd-ledger-1\nmember " K "\nset 0\n", ":3:" },
        { "sherd-ledger-1\nmember " K "\nset 0 \n", ":3:" },
        { "sherd-ledger-1\nmember " K "\nset 0 0\n", ":3:" },
        { "sherd-ledger-1\nmember " K "\nset 0 0-1\n", ":3:" },
        { "sherd-ledger-1\nmember " K "\nset 0 0-0 0-0\n", ":3:" },
        { "sherd-ledger-1\nmember " K "\nset 0 0-0x\n", ":3:" },
        { "sherd-ledger-1\nmember " K "\nset 0 0-4294967296\n", ":3:" },
        { "sherd-ledger-1\nmember " K "\nmember 0" K "\n", ":3:" },
        { "sherd-ledger-1\nmember " K "\nmember " L "\nset 0 0-0 1-1\n",
          ":4:" }, /* should be one span */
        { "sherd-ledger-1\nmember " K "\nmember " L "\nset 0 1-0\n", ":4:" },
        { "sherd-ledger-1\nmember " K "\nset 0 0-0\n" UP "roster 0 " K "\n", ":5:" },
        { "sherd-ledger-1\nbind " K " " K " x\n", ":2:" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sherd__ledger *l = NULL;
        sherd_diag d = { 0 };
        scratch_write("x.ledger", bad[i].text, strlen(bad[i].text));
        assert_int_equal(sherd__ledger_open(&l, scratch_path("x.ledger"), false, &d),
                         SHERD_EFORMAT);
        assert_null(l);
        assert_non_null(strstr(d.message, bad[i].line));
    }
    scratch_write("x.ledger", "sherd-ledger-1\nroster 0 " K "\n" UP,
                  strlen("sherd-ledger-1\nroster 0 " K "\n" UP));
    sherd__ledger *l = open_it();
    assert_int_equal(sherd__ledger_all(l).uploads, 1);
    assert_int_equal(sherd__ledger_since(l, 20779, NULL), 1); /* 2026-11-22 */
    assert_int_equal(sherd__ledger_since(l, 20780, NULL), 0);
    sherd__ledger_close(l);
}

static void after_a_clock_is_set_back_every_day_is_counted(void **s)
{
    (void)s;
    static const int64_t days[] = { 20005, 20001, 20003, 20001, 20005, 20002 };
    unlink(scratch_path("x.ledger"));
    sherd__ledger *l = open_it();
    for (size_t i = 0; i < sizeof days / sizeof *days; i++) {
        sherd__ledger_upload u = upload(i, 0, 1, 0.25);
        u.day = days[i];
        assert_int_equal(sherd__ledger_charge(l, &u, NULL), 0);
    }
    for (int again = 0; again < 2; again++) {
        static const uint64_t since[] = { 6, 6, 4, 3, 2, 2, 0 }; /* since days 20000, 20001, ... */
        for (int64_t i = 0; i < 7; i++)
            assert_int_equal(sherd__ledger_since(l, 20000 + i, NULL), since[i]);
        sherd__ledger_close(l);
        l = open_it();
    }
    sherd__ledger_close(l);
}

/* Writes a ledger of n uploads, each with its own job, sum, roster and places, 1000 a day.
 * `nested`: the places of each upload are among those of the previous one. */
static void write_uploads(unsigned n, bool nested)
{
    FILE *f = fopen(scratch_path("many.ledger"), "w");
    assert_non_null(f);
    fputs("sherd-ledger-1\n", f);
    draw_state = 9;
    for (unsigned i = 0; i < n; i++) {
        fprintf(f, "roster %u %064x\n", i, i + 1);
        unsigned first = (unsigned)(draw() % UINT32_MAX);
        fprintf(f, "upload %u-%02u-%02u %016llx %u %u 0.125 %064x %u 1 %064x\n",
                2000 + i / 1000 / 28 / 12, 1 + i / 1000 / 28 % 12, 1 + i / 1000 % 28,
                (unsigned long long)draw() << 32 | i, nested ? i : first, nested ? 2 * (n - i) : 32,
                i, i, i % 2);
    }
    assert_int_equal(fclose(f), 0);
}

/* Measures the processor time of opening the ledger, and of the look-ups of a round. */
static void time_it(unsigned n, bool nested, double *opening, double *rounds)
{
    enum { ROUNDS = 10000 };
    uint8_t about[SHERD__LEDGER_KEY] = { 0 }, by[SHERD__LEDGER_KEY] = { 0 };
    sherd__ledger *l;
    write_uploads(n, nested);
    clock_t from = clock();
    assert_int_equal(sherd__ledger_open(&l, scratch_path("many.ledger"), true, NULL), 0);
    clock_t to = clock();
    assert_int_equal(sherd__ledger_all(l).uploads, n);
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned sum = i % 1000;
        about[30] = (uint8_t)(sum >> 8);
        about[31] = (uint8_t)sum;
        assert_int_equal(sherd__ledger_job(l, by, UINT64_MAX - i), 0);
        (void)sherd__ledger_spent(l, nested ? 3 * n : i, 32);
        const sherd__ledger_known k = sherd__ledger_known_of(l, about);
        assert_true(k.nodes == 1 && k.threshold == 1);
        assert_int_equal(sherd__ledger_since(l, 20779, by), 0);
        assert_int_equal(sherd__ledger_since(l, 20779, NULL), 0);
    }
    *rounds = (double)(clock() - to) / ROUNDS;
    *opening = (double)(to - from);
    if (nested)
        for (unsigned i = 0; i < n; i += n / 100) {
            assert_true(sherd__ledger_spent(l, i, 1) == 0.125 * (i + 1));
            assert_true(sherd__ledger_spent(l, 2 * n - i - 1, 1) == 0.125 * (i + 1));
        }
    sherd__ledger_close(l);
}

static void opening_takes_linear_time_and_a_round_sublinear_time(void **state)
{
    (void)state;
    enum { FEW = 1000, TIMES = 64 };
    double opening[2], rounds[2];
    for (int nested = 0; nested < 2; nested++) {
        time_it(FEW, nested, &opening[0], &rounds[0]);
        time_it(FEW * TIMES, nested, &opening[1], &rounds[1]);
        print_message("# opening %.0f and %.0f us, rounds %.2f and %.2f us\n", opening[0],
                      opening[1], rounds[0], rounds[1]);
        assert_true(opening[1] < 4 * TIMES * opening[0]);
        assert_true(rounds[1] < TIMES / 2 * rounds[0]);
    }
    assert_true(longest_read > 0 && longest_read <= (size_t)1 << 20); /* for a file of 19 MB */
    unlink(scratch_path("many.ledger"));
}

static void a_path_that_is_not_a_regular_file_is_refused_at_once(void **state)
{
    (void)state;
    static const char *const names[] = { "a.pipe", "a.folder", "a.link" };
    scratch_write("x.ledger", "sherd-ledger-1\n", strlen("sherd-ledger-1\n"));
    assert_int_equal(mkfifo(scratch_path("a.pipe"), 0600), 0);
    assert_int_equal(mkdir(scratch_path("a.folder"), 0700), 0);
    assert_int_equal(symlink("x.ledger", scratch_path("a.link")), 0);
    alarm(20); /* opening a pipe can block forever */
    for (size_t i = 0; i <= sizeof names / sizeof *names; i++) {
        const char *path = i < sizeof names / sizeof *names ? scratch_path(names[i]) : "/dev/zero";
        for (int must_exist = 0; must_exist < 2; must_exist++) {
            sherd__ledger *l = NULL;
            sherd_diag d = { 0 };
            assert_int_equal(sherd__ledger_open(&l, path, must_exist, &d), SHERD_EOPEN);
            assert_null(l);
            assert_non_null(strstr(d.message, path));
        }
    }
    alarm(0);
    scratch_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_add_up_by_place_and_outlive_the_process),
        cmocka_unit_test(a_round_without_noise_has_an_unbounded_cost),
        cmocka_unit_test(rosters_and_opened_sums_are_remembered),
        cmocka_unit_test(a_truncated_line_was_not_charged),
        cmocka_unit_test(a_charge_that_could_not_be_synced_was_not_charged),
        cmocka_unit_test(a_charge_without_memory_is_in_both_file_and_memory_or_in_neither),
        cmocka_unit_test(two_processes_cannot_open_one_ledger),
        cmocka_unit_test(of_processes_that_create_one_ledger_exactly_one_holds_it),
        cmocka_unit_test(a_new_ledger_is_locked_before_it_has_a_name),
        cmocka_unit_test(a_ledger_that_must_exist_is_not_created),
        cmocka_unit_test(after_a_clock_is_set_back_every_day_is_counted),
        cmocka_unit_test(opening_takes_linear_time_and_a_round_sublinear_time),
        cmocka_unit_test(a_path_that_is_not_a_regular_file_is_refused_at_once),
        cmocka_unit_test(damage_is_named_with_its_line),
    };
    comma_locale(); /* changes nothing */
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
