/*
 * The ledger in memory: costs as a step function over positions, numbers of uploads by job and by
 * day, and the subject of each sum. A coordinator determines how many entries there are, so
 * counters and sums are found in constant or logarithmic time; a charge visits the steps of its
 * positions. Lines that are read from the file and new lines are applied by the same function.
 */
#include "store/ledger.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <sodium.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buf.h"
#include "core/decimal.h"
#include "core/diag.h"
#include "core/index.h"
#include "store/costs.h"
#include "store/journal.h"
#include "store/rosters.h"

#define LIST_MAX ((size_t)1 << 40) /* no limit: memory is smaller */
#define HEX (2 * SHERD__LEDGER_KEY)

/* Here and below, the first members are the key in an index. Job numbers are separate for each
 * coordinator. */
typedef struct job_count {
    uint8_t by[SHERD__LEDGER_KEY];
    uint64_t job, uploads;
} job_count;

typedef struct day_count {
    int64_t day;
    uint8_t by[SHERD__LEDGER_KEY]; /* key of the coordinator */
    uint64_t uploads, named;       /* named: bytes of lines that name members */
} day_count;

typedef struct known {
    uint8_t about[SHERD__LEDGER_KEY], opened[SHERD__LEDGER_KEY];
    uint32_t roster, threshold;
    bool charged, bound;
    uint8_t unused[6];
} known;

struct sherd__ledger {
    sherd__journal *journal;
    bool settled; /* the file was read completely: costs are now counted one by one */
    sherd__costs costs;
    sherd__index jobs; /* of job_count */
    sherd__buf days;   /* of day_count, by ascending day */
    sherd__rosters rosters;
    uint64_t named;    /* bytes of such lines that are not yet counted for an upload */
    sherd__index sums; /* of known */
    uint64_t uploads;
};

/* ---- numbers of uploads ---------------------------------------------------------------------- */

double sherd__ledger_spent(const sherd__ledger *l, uint64_t first, uint64_t rows)
{
    return sherd__costs_most(&l->costs, first, rows);
}

static job_count job_of(const uint8_t *by, uint64_t job)
{
    job_count c = { .job = job };
    memcpy(c.by, by, sizeof c.by);
    return c;
}

static int add_job(sherd__ledger *l, const uint8_t *by, uint64_t job)
{
    const job_count name = job_of(by, job);
    job_count *c = sherd__index_find(&l->jobs, &name);
    if (!c) c = sherd__index_add(&l->jobs, &name);
    if (!c) return SHERD_ENOMEM;
    c->uploads++;
    return SHERD_OK;
}

uint64_t sherd__ledger_job(const sherd__ledger *l, const uint8_t *by, uint64_t job)
{
    const job_count name = job_of(by, job), *c = sherd__index_find(&l->jobs, &name);
    return c ? c->uploads : 0;
}

/* Returns the index of the first entry of this day or a later one. */
static size_t find_day(const sherd__ledger *l, int64_t day, size_t *len)
{
    const day_count *c = (const day_count *)(const void *)l->days.data;
    size_t low = 0, high = *len = l->days.len / sizeof *c;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c[middle].day < day) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Counts an upload. There is one entry per day and coordinator: only few coordinators are
 * admitted. */
static int add_day(sherd__ledger *l, int64_t day, const uint8_t *by)
{
    size_t len, at = find_day(l, day, &len);
    day_count *c = (day_count *)(void *)l->days.data;
    day_count fresh = { .day = day, .uploads = 1, .named = l->named };
    memcpy(fresh.by, by, sizeof fresh.by);
    for (; at < len && c[at].day == day; at++)
        if (memcmp(c[at].by, by, sizeof fresh.by) == 0) {
            c[at].uploads++;
            c[at].named += l->named;
            return SHERD_OK;
        }
    if (sherd__buf_append(&l->days, &fresh, sizeof fresh)) return SHERD_ENOMEM;
    c = (day_count *)(void *)l->days.data;
    memmove(c + at + 1, c + at, (len - at) * sizeof *c); /* the clock may have been set back */
    c[at] = fresh;
    return SHERD_OK;
}

static day_count since(const sherd__ledger *l, int64_t day, const uint8_t *by)
{
    const day_count *c = (const day_count *)(const void *)l->days.data;
    day_count sum = { 0 };
    size_t len;
    for (size_t i = find_day(l, day, &len); i < len; i++) {
        if (by && memcmp(c[i].by, by, sizeof c[i].by) != 0) continue;
        sum.uploads += c[i].uploads;
        sum.named += c[i].named;
    }
    return sum;
}

uint64_t sherd__ledger_since(const sherd__ledger *l, int64_t day, const uint8_t *by)
{
    return since(l, day, by).uploads;
}

/* ---- members of sums ------------------------------------------------------------------------- */

/* Returns the entry of `about`, created if necessary; NULL if there is no memory. */
static known *make_known(sherd__ledger *l, const uint8_t *about)
{
    known *k = sherd__index_find(&l->sums, about);
    return k ? k : sherd__index_add(&l->sums, about);
}

sherd__ledger_known sherd__ledger_known_of(const sherd__ledger *l,
                                           const uint8_t about[SHERD__LEDGER_KEY])
{
    const known *k = sherd__index_find(&l->sums, about);
    sherd__ledger_known out = { 0 };
    if (!k) return out;
    out.threshold = k->threshold;
    if (k->charged) out.keys = sherd__rosters_keys(&l->rosters, k->roster, &out.nodes);
    out.opened = k->bound ? k->opened : NULL;
    return out;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int apply(sherd__ledger *l, const sherd__ledger_upload *u, uint32_t number)
{
    int err = l->settled ? sherd__costs_add(&l->costs, u->first, u->rows, u->rho)
                         : sherd__costs_wait(&l->costs, u->first, u->rows, u->rho);
    if (!err) err = add_job(l, u->by, u->job);
    if (!err) err = add_day(l, u->day, u->by);
    known *k = err ? NULL : make_known(l, u->about);
    if (!k) return SHERD_ENOMEM;
    k->charged = true;
    k->roster = number;
    k->threshold = u->threshold;
    l->uploads++;
    l->named = 0;
    return SHERD_OK;
}

/* Reserves memory for everything that a charge for this set adds, so that a charge that is in the
 * file is also in memory. */
static int reserve(sherd__ledger *l, const sherd__roster *set)
{
    uint8_t *at;
    int err = sherd__costs_reserve(&l->costs);
    if (!err) err = sherd__index_reserve(&l->jobs);
    if (!err) err = sherd__buf_reserve(&l->days, sizeof(day_count), &at);
    if (!err) err = sherd__rosters_reserve(&l->rosters, set);
    return err ? err : sherd__index_reserve(&l->sums);
}

/* Binds `about` to a set of members. The first binding is kept: files of older versions may have
 * another one after it. */
static int apply_bind(sherd__ledger *l, const uint8_t *about, const uint8_t *members)
{
    known *k = make_known(l, about);
    if (!k) return SHERD_ENOMEM;
    if (k->bound) return SHERD_OK;
    k->bound = true;
    memcpy(k->opened, members, sizeof k->opened);
    return SHERD_OK;
}

/* Returns the days since 1970-01-01 of a Gregorian date, with years counted from March. */
static int64_t day_of(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t month_day = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return 365 * year + year / 4 - year / 100 + year / 400 + month_day - 719468;
}

static void date_of(int64_t day, char out[16])
{
    int64_t year = 1970 + day / 366, month = 1;
    while (day_of(year + 1, 1, 1) <= day) year++;
    while (month < 12 && day_of(year, month + 1, 1) <= day) month++;
    snprintf(out, 16, "%04d-%02d-%02d", (int)(year % 10000), (int)month,
             (int)(day - day_of(year, month, 1) + 1));
}

static bool read_hex(const char *text, size_t len, uint8_t out[SHERD__LEDGER_KEY])
{
    size_t used;
    return len == HEX &&
           sodium_hex2bin(out, SHERD__LEDGER_KEY, text, HEX, NULL, &used, NULL) == 0 &&
           used == SHERD__LEDGER_KEY;
}

static bool read_upload(const char *text, sherd__ledger_upload *u, uint32_t *number)
{
    int year, month, day, used = 0;
    char rho[32], about[HEX + 2], by[HEX + 2], *end;
    int n = sscanf(text,
                   "upload %4d-%2d-%2d %16" SCNx64 " %20" SCNu64 " %20" SCNu64
                   " %31s %65s %10" SCNu32 " %10" SCNu32 " %65s%n",
                   &year, &month, &day, &u->job, &u->first, &u->rows, rho, about, number,
                   &u->threshold, by, &used);
    if (n != 11 || text[used] || year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 ||
        u->rows == 0 || u->first + u->rows < u->first)
        return false;
    u->day = day_of(year, month, day);
    u->rho = sherd__decimal_read(rho, &end);
    return !*end && u->rho >= 0 && read_hex(about, strlen(about), u->about) &&
           read_hex(by, strlen(by), u->by);
}

static int take_bind(sherd__ledger *l, const char *text)
{
    int used = 0;
    char about[HEX + 2], members[HEX + 2];
    uint8_t a[SHERD__LEDGER_KEY], m[SHERD__LEDGER_KEY];
    if (sscanf(text, "bind %65s %65s%n", about, members, &used) != 2 || text[used] ||
        !read_hex(about, strlen(about), a) || !read_hex(members, strlen(members), m))
        return SHERD_EFORMAT;
    return apply_bind(l, a, m);
}

static int take_line(void *ctx, const char *at, const char *end)
{
    char text[384];
    sherd__ledger_upload u = { 0 };
    uint32_t number = 0;
    size_t len = (size_t)(end - at);
    sherd__ledger *l = ctx;
    int err = sherd__rosters_take(&l->rosters, at, end);
    if (err != SHERD_EUNSUPPORTED) {
        l->named += len + 1;
        return err;
    }
    if (len >= sizeof text || memchr(at, '\0', len)) return SHERD_EFORMAT;
    memcpy(text, at, len);
    text[len] = '\0';
    if (!strncmp(text, "bind ", 5)) return take_bind(l, text);
    if (!read_upload(text, &u, &number) || number >= sherd__rosters_len(&l->rosters))
        return SHERD_EFORMAT;
    return apply(l, &u, number);
}

/* ---- the file -------------------------------------------------------------------------------- */

static const sherd__journal_kind kind = {
    .first = "sherd-ledger-1\n",
    .name = "privacy ledger",
    .line = take_line,
    .missing = "it records what was spent",
    .remedy = "put it back; where these data have given nothing yet, leave out --require-ledger",
};

static int init(sherd__ledger *l)
{
    sherd__entropy os = sherd__entropy_os();
    sherd__table_key key;
    sherd__table_key_draw(&key, &os);
    sherd__index_init(&l->jobs, sizeof(job_count), offsetof(job_count, uploads), LIST_MAX, &key);
    sherd__index_init(&l->sums, sizeof(known), SHERD__LEDGER_KEY, LIST_MAX, &key);
    sherd__buf_init(&l->days, LIST_MAX, 0);
    int err = sherd__rosters_init(&l->rosters, &key);
    return err ? err : sherd__costs_init(&l->costs);
}

int sherd__ledger_open(sherd__ledger **out, const char *path, bool must_exist, sherd_diag *d)
{
    *out = NULL;
    sherd__ledger *l = sherd__calloc(1, sizeof *l);
    int err = !l || init(l) ? SHERD_ENOMEM : SHERD_OK;
    if (!err)
        err = sherd__journal_open(&l->journal, path,
                                  must_exist ? SHERD__JOURNAL_EXISTING : SHERD__JOURNAL_ANY, &kind,
                                  l, d);
    else err = sherd__fail_memory(d, "a privacy ledger");
    if (!err && sherd__costs_settle(&l->costs)) err = sherd__fail_memory(d, "a privacy ledger");
    if (err) {
        sherd__ledger_close(l);
        return err;
    }
    l->settled = true;
    *out = l;
    return SHERD_OK;
}

void sherd__ledger_close(sherd__ledger *l)
{
    if (!l) return;
    sherd__journal_close(l->journal);
    sherd__costs_fini(&l->costs);
    sherd__index_fini(&l->jobs);
    sherd__buf_fini(&l->days);
    sherd__rosters_fini(&l->rosters);
    sherd__index_fini(&l->sums);
    sherd__free(l);
}

bool sherd__ledger_made(const sherd__ledger *l)
{
    return sherd__journal_made(l->journal);
}

sherd__ledger_sum sherd__ledger_all(const sherd__ledger *l)
{
    return (sherd__ledger_sum){ l->uploads, sherd__ledger_spent(l, 0, UINT64_MAX) };
}

static int no_memory(sherd_diag *d)
{
    return sherd__fail_memory(d, "a charge");
}

static int print_upload(sherd__buf *out, const sherd__ledger_upload *u, uint32_t number)
{
    char text[384], date[16], rho[32], about[HEX + 1], by[HEX + 1];
    date_of(u->day, date);
    sherd__decimal_write(rho, sizeof rho, 17, u->rho);
    sodium_bin2hex(about, sizeof about, u->about, sizeof u->about);
    sodium_bin2hex(by, sizeof by, u->by, sizeof u->by);
    int n = snprintf(text, sizeof text,
                     "upload %s %016" PRIx64 " %" PRIu64 " %" PRIu64 " %s %s %" PRIu32 " %" PRIu32
                     " %s\n",
                     date, u->job, u->first, u->rows, rho, about, number, u->threshold, by);
    return sherd__buf_append(out, text, (size_t)n);
}

/* Returns true if this many more bytes may name members on this day. */
static bool may_name(const sherd__ledger *l, const sherd__ledger_upload *u, size_t bytes)
{
    return bytes == 0 || (since(l, u->day, u->by).named + bytes <= SHERD__LEDGER_NAMED &&
                          since(l, u->day, NULL).named + bytes <= 2 * SHERD__LEDGER_NAMED);
}

/* Appends to the file first, because a charge that exists only in memory would be forgotten. A
 * charge that exists only in the file would give the next set of members a number that is already
 * used, and the file could not be read at a later start; reserve() prevents that. */
int sherd__ledger_charge(sherd__ledger *l, const sherd__ledger_upload *u, sherd_diag *d)
{
    sherd__buf text;
    sherd__roster set;
    if (u->rows == 0 || u->first + u->rows < u->first || !(u->rho >= 0) || u->day < 0 ||
        sherd__rosters_find(&l->rosters, u->keys, u->nodes, &set))
        return sherd__fail(d, SHERD_EINVAL, NULL, "a charge of %g for %" PRIu64 " places", u->rho,
                           u->rows);
    sherd__buf_init(&text, LIST_MAX, 0);
    int err = reserve(l, &set);
    if (!err) err = sherd__rosters_print(&l->rosters, &set, &text);
    const size_t named = text.len;
    if (!err) err = print_upload(&text, u, set.number);
    if (err) err = no_memory(d);
    else if (!may_name(l, u, named))
        err = sherd__fail(d, SHERD_EEXPOSURE, NULL, "too many new sets of members in a day");
    else err = sherd__journal_add(l->journal, (const char *)text.data, text.len, true, d);
    sherd__buf_fini(&text);
    if (err) return err;
    l->named += named;
    err = sherd__rosters_add(&l->rosters, &set);
    if (!err) err = apply(l, u, set.number);
    assert(!err);
    return SHERD_OK;
}

int sherd__ledger_bind(sherd__ledger *l, const uint8_t about[SHERD__LEDGER_KEY],
                       const uint8_t members[SHERD__LEDGER_KEY], sherd_diag *d)
{
    char text[200], a[HEX + 1], m[HEX + 1];
    const sherd__ledger_known was = sherd__ledger_known_of(l, about);
    if (was.opened && !memcmp(was.opened, members, SHERD__LEDGER_KEY)) return SHERD_OK;
    if (was.opened)
        return sherd__fail(d, SHERD_EEXPOSURE, NULL, "this sum was opened over other members");
    sodium_bin2hex(a, sizeof a, about, SHERD__LEDGER_KEY);
    sodium_bin2hex(m, sizeof m, members, SHERD__LEDGER_KEY);
    int n = snprintf(text, sizeof text, "bind %s %s\n", a, m);
    if (sherd__index_reserve(&l->sums)) return no_memory(d);
    int err = sherd__journal_add(l->journal, text, (size_t)n, true, d);
    if (err) return err;
    err = apply_bind(l, about, members);
    assert(!err);
    return SHERD_OK;
}
