/*
 * The line format that node files, allow-lists and coordinator lists share. The text may come from
 * anyone who can paste into a file. Therefore fields are fixed, character sets are strict, no
 * memory is allocated while a line is read, and text quoted in messages is shortened and stripped
 * of control characters.
 *
 * Weights are decimal numbers with at most six decimal places, read and written with integer
 * arithmetic. They do not depend on the locale, and a written weight reads back as the same double.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/suggest.h"
#include "core/wipe.h"
#include "wire/identity.h"

#define LINE_LEN_MAX 1024
#define FILE_LEN_MAX (16u << 20)
#define WEIGHT_UNIT 1000000u /* weights are multiples of 1e-6, below 1e6 */

#define EXAMPLE "a line reads: host:port key=sha256:... name= domain= weight= role=node|coordinator"

static const char *const words[] = { "key", "name", "domain", "weight", "role", NULL };
static const char *const roles[] = { "node", "coordinator", NULL };

typedef struct span {
    const char *at;
    size_t len;
} span;

typedef struct quoted {
    char text[48];
} quoted;

/* Converts s to printable characters and truncates it, for messages. */
static quoted quote(span s)
{
    quoted q;
    size_t n = s.len < 40 ? s.len : 40;
    for (size_t i = 0; i < n; i++) {
        char c = s.at[i];
        q.text[i] = c >= 0x20 && c < 0x7f ? c : '?';
    }
    memcpy(q.text + n, s.len > n ? "..." : "", s.len > n ? 4 : 1);
    return q;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Returns the next word of the line; an empty one at the end of the line or at a comment. */
static span next_word(const char **line)
{
    const char *p = *line;
    while (is_blank(*p)) p++;
    span s = { p, 0 };
    if (*p == '#') return s;
    while (p[s.len] && !is_blank(p[s.len])) s.len++;
    *line = p + s.len;
    return s;
}

/* Copies s to out (size bytes). Returns false if s has characters other than letters, digits and
 * those in `others`. */
static bool copy_text(char *out, size_t size, span s, const char *others)
{
    if (s.len == 0 || s.len >= size) return false;
    for (size_t i = 0; i < s.len; i++)
        if (!is_alnum(s.at[i]) && !strchr(others, s.at[i])) return false;
    memcpy(out, s.at, s.len);
    out[s.len] = '\0';
    return true;
}

static bool parse_port(uint16_t *out, span s)
{
    unsigned v = 0;
    if (s.len == 0 || s.len > 5 || s.at[0] == '0') return false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.at[i] < '0' || s.at[i] > '9') return false;
        v = 10 * v + (unsigned)(s.at[i] - '0');
    }
    if (v > 65535) return false;
    *out = (uint16_t)v;
    return true;
}

/* Parses an IPv6 address with an optional %zone. */
static bool parse_ipv6(char *out, size_t size, span s)
{
    struct in6_addr addr;
    char bare[INET6_ADDRSTRLEN];
    if (!copy_text(out, size, s, ":.%-_")) return false;
    size_t len = strcspn(out, "%");
    if (len >= sizeof bare || (out[len] == '%' && out[len + 1] == '\0')) return false;
    memcpy(bare, out, len);
    bare[len] = '\0';
    return inet_pton(AF_INET6, bare, &addr) == 1;
}

static int parse_address(sherd__peer *p, span s, const char *where, sherd_diag *d)
{
    if (s.len == 1 && s.at[0] == '*') {
        memcpy(p->host, "*", 2);
        return SHERD_OK;
    }
    size_t colon = s.len;
    while (colon > 0 && s.at[colon - 1] != ':') colon--;
    if (colon == 0 || memchr(s.at, '=', s.len))
        return sherd__fail(d, SHERD_EFORMAT, EXAMPLE, "%s: found \"%s\", expected host:port or *",
                           where, quote(s).text);
    span host = { s.at, colon - 1 }, port = { s.at + colon, s.len - colon };
    bool good;
    if (host.len >= 2 && host.at[0] == '[' && host.at[host.len - 1] == ']')
        good = parse_ipv6(p->host, sizeof p->host, (span){ host.at + 1, host.len - 2 });
    else good = copy_text(p->host, sizeof p->host, host, ".-_");
    if (!good)
        return sherd__fail(d, SHERD_EFORMAT,
                           memchr(host.at, ':', host.len) ? "write IPv6 as [address]:port"
                                                          : EXAMPLE,
                           "%s: \"%s\" is not a host name or address", where, quote(host).text);
    if (!parse_port(&p->port, port))
        return sherd__fail(d, SHERD_EFORMAT, EXAMPLE, "%s: found port \"%s\", expected 1 to 65535",
                           where, quote(port).text);
    return SHERD_OK;
}

/* Parses [ digits ] [ . digits ], at most six each; n / 1e6 is correctly rounded and reads back. */
static bool parse_weight(double *out, span s)
{
    uint64_t n = 0;
    size_t whole = 0, places = 0, i = 0;
    for (; i < s.len && s.at[i] >= '0' && s.at[i] <= '9'; i++, whole++)
        n = 10 * n + (uint64_t)(s.at[i] - '0');
    if (whole > 6) return false;
    if (i < s.len && s.at[i] == '.') {
        for (i++; i < s.len && s.at[i] >= '0' && s.at[i] <= '9' && places < 6; i++, places++)
            n = 10 * n + (uint64_t)(s.at[i] - '0');
        if (places == 0) return false;
    }
    if (whole + places == 0) return false;
    for (; places < 6; places++) n *= 10;
    if (i != s.len || n == 0) return false;
    *out = (double)n / WEIGHT_UNIT;
    return true;
}

static int parse_key(sherd__peer *p, span s, const char *where, sherd_diag *d)
{
    char text[SHERD__FINGERPRINT_TEXT];
    if (s.len == sizeof text - 1) {
        memcpy(text, s.at, s.len);
        text[s.len] = '\0';
        if (!sherd__fingerprint_parse(&p->key, text)) {
            p->has_key = true;
            return SHERD_OK;
        }
    }
    return sherd__fail(d, SHERD_EFORMAT, "copy the line that `sherd node` or `sherd keygen` prints",
                       "%s: key \"%s\" is not sha256: and 43 base64 characters", where,
                       quote(s).text);
}

static int parse_role(sherd__peer *p, span s, const char *where, sherd_diag *d)
{
    char hint[64];
    for (const char *const *r = roles; *r; r++)
        if (strlen(*r) == s.len && memcmp(*r, s.at, s.len) == 0) {
            memcpy(p->role, *r, s.len + 1);
            return SHERD_OK;
        }
    const char *near = sherd__suggest(quote(s).text, roles);
    snprintf(hint, sizeof hint, "did you mean role=%s?", near ? near : "");
    return sherd__fail(d, SHERD_EFORMAT, near ? hint : EXAMPLE,
                       "%s: found role \"%s\", expected node or coordinator", where, quote(s).text);
}

/* allowed in names and domains, besides letters and digits */
static const char others[] = "._-:/@+";

bool sherd__peer_name_valid(const char *name)
{
    sherd__peer p;
    return copy_text(p.name, sizeof p.name, (span){ name, strlen(name) }, others);
}

static int parse_value(sherd__peer *p, const char *word, span s, const char *where, sherd_diag *d)
{
    switch (word[0]) {
    case 'k': return parse_key(p, s, where, d);
    case 'r': return parse_role(p, s, where, d);
    case 'w':
        if (parse_weight(&p->weight, s)) return SHERD_OK;
        return sherd__fail(d, SHERD_EFORMAT, "for example weight=1.5",
                           "%s: weight \"%s\" is not a number above 0 and below 1000000, with six "
                           "decimals at most",
                           where, quote(s).text);
    default:
        if (copy_text(word[0] == 'n' ? p->name : p->domain, sizeof p->name, s, others))
            return SHERD_OK;
        return sherd__fail(d, SHERD_EFORMAT, "use 1 to 63 letters, digits and . _ - : / @ +",
                           "%s: %s \"%s\" is empty, too long or has other characters", where, word,
                           quote(s).text);
    }
}

/* Parses one word=value. *seen has a bit for each word already found in this line. */
static int parse_field(sherd__peer *p, span s, unsigned *seen, const char *where, sherd_diag *d)
{
    char word[32], hint[64];
    const char *equals = memchr(s.at, '=', s.len);
    size_t len = equals ? (size_t)(equals - s.at) : s.len;
    for (unsigned i = 0; equals && words[i]; i++) {
        if (strlen(words[i]) != len || memcmp(words[i], s.at, len) != 0) continue;
        if (*seen & 1u << i)
            return sherd__fail(d, SHERD_EFORMAT, "keep one of the two", "%s: %s= is given twice",
                               where, words[i]);
        *seen |= 1u << i;
        return parse_value(p, words[i], (span){ equals + 1, s.len - len - 1 }, where, d);
    }
    const char *near = copy_text(word, sizeof word, (span){ s.at, len }, "_-")
                           ? sherd__suggest(word, words)
                           : NULL;
    snprintf(hint, sizeof hint, "did you mean %s=?", near ? near : "");
    return sherd__fail(d, SHERD_EFORMAT, near ? hint : EXAMPLE, "%s: unknown word \"%s\"", where,
                       quote(s).text);
}

int sherd__peer_parse(sherd__peer *out, bool *found, const char *line, const char *where,
                      sherd_diag *d)
{
    sherd__peer p = { .weight = 1 };
    unsigned seen = 0;
    size_t len = strnlen(line, LINE_LEN_MAX + 1);
    if (len > LINE_LEN_MAX)
        return sherd__fail(d, SHERD_EFORMAT, EXAMPLE, "%s: line longer than %d bytes", where,
                           LINE_LEN_MAX);
    span s = next_word(&line);
    if (s.len == 0) {
        *found = false;
        return SHERD_OK;
    }
    int err = parse_address(&p, s, where, d);
    while (!err && (s = next_word(&line)).len > 0) err = parse_field(&p, s, &seen, where, d);
    if (err) return err;
    *out = p;
    *found = true;
    return SHERD_OK;
}

/* Formats " weight=1.5" without trailing zeros. The default weight gives an empty string. */
static void format_weight(double weight, char *out, size_t size)
{
    unsigned long long n = (unsigned long long)llround(weight * WEIGHT_UNIT);
    out[0] = '\0';
    if (n == WEIGHT_UNIT) return;
    int len = snprintf(out, size, " weight=%llu.%06llu", n / WEIGHT_UNIT, n % WEIGHT_UNIT);
    while (out[len - 1] == '0') out[--len] = '\0';
    if (out[len - 1] == '.') out[len - 1] = '\0';
}

int sherd__peer_format(const sherd__peer *p, char *out, size_t size)
{
    char address[sizeof p->host + 16], key[SHERD__FINGERPRINT_TEXT] = "", weight[48];
    if (strcmp(p->host, "*") == 0) snprintf(address, sizeof address, "*");
    else
        snprintf(address, sizeof address, strchr(p->host, ':') ? "[%s]:%u" : "%s:%u", p->host,
                 p->port);
    if (p->has_key) sherd__fingerprint_text(&p->key, key);
    format_weight(p->weight, weight, sizeof weight);
    return snprintf(out, size, "%s%s%s%s%s%s%s%s%s%s", address, p->has_key ? " key=" : "", key,
                    p->name[0] ? " name=" : "", p->name, p->domain[0] ? " domain=" : "", p->domain,
                    weight, p->role[0] ? " role=" : "", p->role);
}

/* Peers and their line numbers, collected while a file is read. */
typedef struct lines {
    sherd__peer *list;
    size_t *number; /* counted from 1 */
    size_t len, cap;
} lines;

static int lines_add(lines *l, const sherd__peer *p, size_t number)
{
    if (l->len == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 16, bytes;
        if (!sherd__mul(cap, sizeof *l->list, &bytes)) return SHERD_ENOMEM;
        sherd__peer *list = sherd__realloc(l->list, bytes);
        if (!list) return SHERD_ENOMEM;
        l->list = list;
        size_t *numbers = sherd__realloc(l->number, cap * sizeof *numbers);
        if (!numbers) return SHERD_ENOMEM;
        l->number = numbers;
        l->cap = cap;
    }
    l->list[l->len] = *p;
    l->number[l->len++] = number;
    return SHERD_OK;
}

static int by_key(const void *a, const void *b, void *list)
{
    const sherd__peer *all = list;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    int order = memcmp(all[i].key.sha256, all[j].key.sha256, sizeof all[i].key.sha256);
    return order ? order : (i > j) - (i < j);
}

/* Refuses duplicate keys. Compares neighbours after sorting by key: O(n log n) for any file. */
static int refuse_twins(const lines *l, const char *where, sherd_diag *d)
{
    char text[SHERD__FINGERPRINT_TEXT];
    size_t keys = 0, *order = sherd__calloc(l->len, sizeof *order);
    int err = SHERD_OK;
    if (!order) return sherd__fail_memory(d, "%s", where);
    for (size_t i = 0; i < l->len; i++)
        if (l->list[i].has_key) order[keys++] = i;
    if (keys > 1) qsort_r(order, keys, sizeof *order, by_key, l->list);
    for (size_t i = 1; i < keys && !err; i++) {
        const sherd__peer *a = &l->list[order[i - 1]], *b = &l->list[order[i]];
        if (!sherd__fingerprint_equal(&a->key, &b->key)) continue;
        sherd__fingerprint_text(&b->key, text);
        err = sherd__fail(d, SHERD_EFORMAT, "a key is one peer: remove one of the lines",
                          "%s: lines %zu and %zu have the same key %s", where,
                          l->number[order[i - 1]], l->number[order[i]], text);
    }
    sherd__free(order);
    return err;
}

/* Parses one line of the text, without its line end; `number` counts from 1. */
static int parse_line(lines *l, span s, size_t number, const char *where, sherd_diag *d)
{
    char line[LINE_LEN_MAX + 2], place[300];
    sherd__peer p;
    bool found;
    snprintf(place, sizeof place, "%s:%zu", where, number);
    if (memchr(s.at, '\0', s.len))
        return sherd__fail(d, SHERD_EFORMAT, EXAMPLE, "%s: a zero byte, expected text", place);
    /* one byte above the limit, so that the parser refuses a longer line */
    size_t len = s.len < sizeof line - 1 ? s.len : sizeof line - 1;
    memcpy(line, s.at, len);
    line[len] = '\0';
    int err = sherd__peer_parse(&p, &found, line, place, d);
    if (err || !found) return err;
    p.line = (uint32_t)number;
    err = lines_add(l, &p, number);
    return err ? sherd__fail_memory(d, "%s", place) : SHERD_OK;
}

int sherd__peers_parse(sherd__peers *out, const char *text, size_t len, const char *where,
                       sherd_diag *d)
{
    lines l = { 0 };
    int err = SHERD_OK;
    size_t number = 0;
    if (len > FILE_LEN_MAX)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "%s: longer than %u bytes", where, FILE_LEN_MAX);
    while (len > 0 && !err) {
        const char *end = memchr(text, '\n', len);
        size_t line_len = end ? (size_t)(end - text) : len, step = line_len + (end != NULL);
        err = parse_line(&l, (span){ text, line_len }, ++number, where, d);
        text += step;
        len -= step;
    }
    if (!err) err = refuse_twins(&l, where, d);
    sherd__free(l.number);
    if (err) {
        sherd__free(l.list);
        return err;
    }
    *out = (sherd__peers){ l.list, l.len };
    return SHERD_OK;
}

/* Reads the whole file into memory, at most FILE_LEN_MAX bytes. */
static int read_file(char **text, size_t *len, const char *path, sherd_diag *d)
{
    struct stat st;
    char *got = NULL;
    size_t at = 0;
    ssize_t n = 1;
    int err = SHERD_OK, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) != 0) {
        err = sherd__fail(d, SHERD_EOPEN, "check the path", "%s: cannot open: %s", path,
                          strerror(errno));
        goto out;
    }
    if (!S_ISREG(st.st_mode) || st.st_size > (off_t)FILE_LEN_MAX) {
        err = sherd__fail(d, SHERD_EFORMAT, EXAMPLE, "%s: not a regular file of at most %u bytes",
                          path, FILE_LEN_MAX);
        goto out;
    }
    got = sherd__alloc((size_t)st.st_size);
    if (!got) {
        err = sherd__fail_memory(d, "%s", path);
        goto out;
    }
    while (at < (size_t)st.st_size && n != 0) {
        n = read(fd, got + at, (size_t)st.st_size - at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            err = sherd__fail(d, SHERD_EIO, NULL, "%s: %s", path, strerror(errno));
            goto out;
        }
        at += (size_t)n;
    }
    *text = got;
    *len = at;
    got = NULL;
out:
    sherd__free(got);
    if (fd >= 0) close(fd);
    return err;
}

int sherd__peers_load(sherd__peers *out, const char *path, sherd_diag *d)
{
    char *text = NULL;
    size_t len = 0;
    int err = read_file(&text, &len, path, d);
    if (err) return err;
    if (memmem(text, len, "-----BEGIN", 10))
        err = sherd__fail(d, SHERD_EFORMAT, "did you swap --key and the option for the list?",
                          "%s: a key in PEM form, expected a list of nodes or keys", path);
    else err = sherd__peers_parse(out, text, len, path, d);
    if (text) sherd__wipe(text, len); /* it may be a key */
    sherd__free(text);
    return err;
}

void sherd__peers_fini(sherd__peers *p)
{
    sherd__free(p->list);
    *p = (sherd__peers){ 0 };
}

const sherd__peer *sherd__peers_find(const sherd__peers *p, const sherd__fingerprint *key)
{
    for (size_t i = 0; i < p->len; i++)
        if (p->list[i].has_key && sherd__fingerprint_equal(&p->list[i].key, key))
            return &p->list[i];
    return NULL;
}

static bool address_here(uint32_t v4)
{
    return v4 >> 24 == 127 || v4 == 0;
}

bool sherd__address_loopback(const struct in6_addr *at)
{
    uint32_t v4;
    memcpy(&v4, at->s6_addr + 12, sizeof v4);
    if (IN6_IS_ADDR_V4MAPPED(at)) return address_here(ntohl(v4));
    return IN6_IS_ADDR_LOOPBACK(at) || IN6_IS_ADDR_UNSPECIFIED(at);
}

bool sherd__peer_loopback(const sherd__peer *p)
{
    static const char name[] = "localhost", tail[] = ".localhost";
    struct in_addr v4;
    struct in6_addr v6;
    size_t len = strlen(p->host), tail_len = sizeof tail - 1;
    if (inet_aton(p->host, &v4)) return address_here(ntohl(v4.s_addr));
    if (inet_pton(AF_INET6, p->host, &v6) == 1) return sherd__address_loopback(&v6);
    if (strcasecmp(p->host, name) == 0) return true;
    return len > tail_len && strcasecmp(p->host + len - tail_len, tail) == 0;
}
