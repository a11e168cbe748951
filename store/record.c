/*
 * Records the bytes sent to and received from each peer. Writes are not buffered: recordings are
 * used to find out what went wrong, which may be a crash of this process. The tap cannot return an
 * error, so the first error is stored and reported at the end. Recording stops there, because a
 * recording with a gap could be mistaken for the complete exchange.
 */
#include "store/record.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "store/digest.h"
#include "store/file.h"

#define NAME_SHOWN 64 /* bytes of a peer's name that are used in file names */
#define NAME_SIZE (NAME_SHOWN + 24)

static const char readme[] =
    "This folder was written by sherd --record. For each peer it holds the plaintext protocol\n"
    "bytes that were sent to it and received from it, in order; index.json names the files.\n"
    "\n"
    "It contains enough to rebuild your data. Keep it secret, and remove it after use.\n";

typedef struct stream {
    int fd;
    uint64_t len;
    EVP_MD_CTX *md; /* SHA-256 of the bytes written */
} stream;

struct sherd__record_peer {
    sherd__recording *record;
    sherd__record_peer *next;
    char name[NAME_SIZE];
    char *about, *key, *domain; /* NULL: unknown */
    uint32_t domain_number;
    stream sent, received;
};

struct sherd__recording {
    char *dir, *side;
    int dir_fd;
    sherd__record_peer *first, **last;
    sherd_diag error; /* code 0: no error */
};

static int fail_record(const sherd__recording *r, int code, const char *what, int e, sherd_diag *d)
{
    const char *hint = e == ENOSPC || e == EDQUOT ? "free some room, or record elsewhere"
                       : e == EFBIG               ? "raise the file size limit (ulimit -f)"
                                                  : "give a new folder that can be written to";
    return sherd__fail_file(code, hint, r->dir, what, e, d);
}

/* ---- the folder ------------------------------------------------------------------------------ */

static int check_empty(const sherd__recording *r, sherd_diag *d)
{
    int fd = openat(r->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (!list) {
        int e = errno;
        if (fd >= 0) close(fd);
        return fail_record(r, SHERD_EOPEN, "check the folder", e, d);
    }
    int err = SHERD_OK;
    for (struct dirent *e; !err && (e = readdir(list));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            err = sherd__fail(d, SHERD_EOPEN, "give a folder that does not exist yet",
                              "%s: holds \"%.60s\" already; a record needs a new folder",
                              sherd__path_tail(r->dir), e->d_name);
    closedir(list);
    return err;
}

static int open_folder(sherd__recording *r, sherd_diag *d)
{
    bool made = mkdir(r->dir, 0700) == 0;
    if (!made && errno != EEXIST) return fail_record(r, SHERD_EOPEN, "make the folder", errno, d);
    r->dir_fd = open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->dir_fd < 0) return fail_record(r, SHERD_EOPEN, "open the folder", errno, d);
    int err = made ? SHERD_OK : check_empty(r, d);
    if (err) return err;
    if (fchmod(r->dir_fd, 0700) != 0)
        return fail_record(r, SHERD_EOPEN, "close the folder to others", errno, d);
    int fd = openat(r->dir_fd, "README", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return fail_record(r, SHERD_EOPEN, "write into it", errno, d);
    int e = sherd__write_all(fd, -1, readme, sizeof readme - 1);
    close(fd);
    return e ? fail_record(r, SHERD_EIO, "write README", e, d) : SHERD_OK;
}

static void free_record(sherd__recording *r)
{
    for (sherd__record_peer *p = r->first, *next; p; p = next) {
        next = p->next;
        sherd__record_peer_end(p);
        EVP_MD_CTX_free(p->sent.md);
        EVP_MD_CTX_free(p->received.md);
        sherd__free(p->about);
        sherd__free(p->key);
        sherd__free(p->domain);
        sherd__free(p);
    }
    if (r->dir_fd >= 0) close(r->dir_fd);
    sherd__free(r->dir);
    sherd__free(r->side);
    sherd__free(r);
}

int sherd__record_new(sherd__recording **out, const char *dir, const char *side, sherd_diag *d)
{
    *out = NULL;
    sherd__recording *r = sherd__calloc(1, sizeof *r);
    if (!r) return sherd__fail_memory(d, "a record");
    r->dir_fd = -1;
    r->last = &r->first;
    r->dir = sherd__strdup(dir);
    r->side = r->dir ? sherd__strdup(side) : NULL;
    int err = r->side ? open_folder(r, d) : sherd__fail_memory(d, "a record");
    if (err) {
        free_record(r);
        return err;
    }
    *out = r;
    return SHERD_OK;
}

/* ---- peers ----------------------------------------------------------------------------------- */

static bool name_taken(const sherd__recording *r, const char *name)
{
    for (const sherd__record_peer *p = r->first; p; p = p->next)
        if (!strcmp(p->name, name)) return true;
    return false;
}

static void choose_name(sherd__record_peer *p, const char *wanted)
{
    char stem[NAME_SHOWN + 1];
    size_t n = 0;
    for (; wanted[n] && n < NAME_SHOWN; n++) {
        unsigned char ch = (unsigned char)wanted[n];
        bool plain = ch < 0x80 && (isalnum(ch) || ch == '_' || ch == '-' || (ch == '.' && n > 0));
        stem[n] = plain ? (char)ch : '_';
    }
    stem[n] = '\0';
    snprintf(p->name, sizeof p->name, "%s", n ? stem : "peer");
    for (unsigned k = 2; name_taken(p->record, p->name); k++)
        snprintf(p->name, sizeof p->name, "%s-%u", n ? stem : "peer", k);
}

static int open_stream(sherd__record_peer *p, stream *s, const char *suffix, sherd_diag *d)
{
    char file[NAME_SIZE + 16];
    snprintf(file, sizeof file, "%s.%s", p->name, suffix);
    s->md = EVP_MD_CTX_new();
    if (!s->md || EVP_DigestInit_ex(s->md, EVP_sha256(), NULL) != 1)
        return sherd__fail_memory(d, "a stream of the record");
    s->fd = openat(p->record->dir_fd, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (s->fd >= 0) return SHERD_OK;
    return fail_record(p->record, SHERD_EOPEN, "make a file in it", errno, d);
}

int sherd__record_peer_add(sherd__record_peer **out, sherd__recording *r, const char *name,
                           sherd_diag *d)
{
    *out = NULL;
    sherd__record_peer *p = sherd__calloc(1, sizeof *p);
    if (!p) return sherd__fail_memory(d, "the record of a node");
    p->record = r;
    p->sent.fd = p->received.fd = -1;
    choose_name(p, name);
    int err = open_stream(p, &p->sent, "sent", d);
    if (!err) err = open_stream(p, &p->received, "received", d);
    if (err) {
        sherd__record_peer_end(p);
        EVP_MD_CTX_free(p->sent.md);
        EVP_MD_CTX_free(p->received.md);
        sherd__free(p);
        return err;
    }
    *r->last = p;
    r->last = &p->next;
    *out = p;
    return SHERD_OK;
}

static int keep_text(char **at, const char *text)
{
    char *copy = sherd__strdup(text);
    if (!copy) return SHERD_ENOMEM;
    for (char *c = copy; *c; c++) /* JSON accepts only text, and peers may send any bytes */
        if (*c < 0x20 || *c >= 0x7f) *c = '?';
    sherd__free(*at);
    *at = copy;
    return SHERD_OK;
}

int sherd__record_peer_about(sherd__record_peer *p, const char *about)
{
    return keep_text(&p->about, about);
}

int sherd__record_peer_key(sherd__record_peer *p, const char *key)
{
    return keep_text(&p->key, key);
}

int sherd__record_peer_domain(sherd__record_peer *p, uint32_t number, const char *name)
{
    p->domain_number = number;
    return keep_text(&p->domain, name);
}

void sherd__record_tap(void *peer, bool out, const uint8_t *bytes, size_t len)
{
    sherd__record_peer *p = peer;
    sherd__recording *r = p->record;
    stream *s = out ? &p->sent : &p->received;
    if (r->error.code || s->fd < 0 || len == 0) return;
    int e = sherd__write_all(s->fd, -1, bytes, len);
    if (e) (void)fail_record(r, SHERD_EIO, "write the record", e, &r->error);
    else if (EVP_DigestUpdate(s->md, bytes, len) != 1)
        (void)sherd__fail(&r->error, SHERD_EINTERNAL, NULL, "SHA-256 failed in OpenSSL");
    else s->len += len;
}

const char *sherd__record_dir(const sherd__recording *r)
{
    return r->dir;
}

void sherd__record_peer_end(sherd__record_peer *p)
{
    if (p->sent.fd >= 0) close(p->sent.fd);
    if (p->received.fd >= 0) close(p->received.fd);
    p->sent.fd = p->received.fd = -1;
}

/* ---- coded operands -------------------------------------------------------------------------- */

int sherd__record_coding(sherd__recording *r, const sherd__record_coded *c, sherd_diag *d)
{
    char line[512];
    int len = snprintf(line, sizeof line,
                       "{\"job\": \"%016" PRIx64
                       "\", \"scheme\": \"%.16s\", \"code\": \"%.16s\", \"blocks\": %" PRIu32
                       ", \"masks\": %" PRIu32 ", \"shares\": %" PRIu32 ", \"rows\": %" PRIu64
                       ", \"cols\": %" PRIu64 ", \"part\": %" PRIu64 ", \"panel\": %" PRIu64
                       ", \"stays\": %s, \"largest\": %" PRIu64 ", \"right\": %" PRIu64 "}\n",
                       c->job, c->scheme, c->code, c->blocks, c->masks, c->shares, c->rows, c->cols,
                       c->part, c->panel, c->stays ? "true" : "false", c->largest, c->right);
    int fd = openat(r->dir_fd, "coded.jsonl", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) return fail_record(r, SHERD_EOPEN, "open coded.jsonl", errno, d);
    int e = sherd__write_all(fd, -1, (const uint8_t *)line, (size_t)len);
    close(fd);
    return e ? fail_record(r, SHERD_EIO, "write coded.jsonl", e, d) : SHERD_OK;
}

/* ---- the end --------------------------------------------------------------------------------- */

static json_t *stream_json(const sherd__record_peer *p, const stream *s, const char *suffix)
{
    char file[NAME_SIZE + 16];
    snprintf(file, sizeof file, "%s.%s", p->name, suffix);
    sherd__digest sum;
    char text[SHERD__DIGEST_TEXT];
    uint8_t bytes[EVP_MAX_MD_SIZE];
    if (EVP_DigestFinal_ex(s->md, bytes, NULL) != 1) return NULL;
    memcpy(sum.sha256, bytes, sizeof sum.sha256);
    sherd__digest_text(&sum, text);
    return json_pack("{s:s, s:I, s:s}", "file", file, "bytes", (json_int_t)s->len, "sha256", text);
}

static char *index_text(const sherd__recording *r)
{
    json_t *root = json_object(), *peers = json_array();
    int bad = json_object_set_new(root, "schema", json_string("sherd/record/2"));
    bad |= json_object_set_new(root, "side", json_string(r->side));
    bad |= json_object_set_new(root, "complete", json_boolean(r->error.code == 0));
    bad |= json_object_set_new(root, "peers", peers);
    for (const sherd__record_peer *p = r->first; p; p = p->next) {
        json_t *o = json_object();
        bad |= json_object_set_new(o, "name", json_string(p->name));
        bad |= json_object_set_new(o, "about", json_string(p->about ? p->about : ""));
        if (p->key) bad |= json_object_set_new(o, "key", json_string(p->key));
        if (p->domain)
            bad |= json_object_set_new(o, "domain",
                                       json_pack("{s:I, s:s}", "number",
                                                 (json_int_t)p->domain_number, "name", p->domain));
        bad |= json_object_set_new(o, "sent", stream_json(p, &p->sent, "sent"));
        bad |= json_object_set_new(o, "received", stream_json(p, &p->received, "received"));
        bad |= json_array_append_new(peers, o);
    }
    size_t len = bad ? 0 : json_dumpb(root, NULL, 0, JSON_INDENT(2));
    char *text = len ? sherd__alloc(len + 2) : NULL;
    if (text) {
        json_dumpb(root, text, len, JSON_INDENT(2));
        memcpy(text + len, "\n", 2);
    }
    json_decref(root);
    return text;
}

static int write_index(const sherd__recording *r, sherd_diag *d)
{
    size_t path_len = strlen(r->dir) + sizeof "/index.json";
    char *path = sherd__alloc(path_len), *text = index_text(r);
    sherd__file *f = NULL;
    int err = path && text ? SHERD_OK : sherd__fail_memory(d, "the index of the record");
    if (!err) {
        snprintf(path, path_len, "%s/index.json", r->dir);
        err = sherd__file_begin(&f, path, SHERD__FILE_PRIVATE, d);
    }
    if (!err) err = sherd__file_write(f, text, strlen(text), d);
    if (!err) {
        err = sherd__file_commit(f, d);
        f = NULL;
    }
    sherd__file_abort(f);
    sherd__free(text);
    sherd__free(path);
    return err;
}

int sherd__record_error(const sherd__recording *r, sherd_diag *d)
{
    if (!r->error.code) return SHERD_OK;
    return sherd__fail(d, r->error.code, r->error.hint, "%s", r->error.message);
}

int sherd__record_end(sherd__recording *r, sherd_diag *d)
{
    int err = sherd__record_error(r, d);
    int index_err = write_index(r, d);
    free_record(r);
    return err ? err : index_err;
}
