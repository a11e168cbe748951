/* The command, its processes and its files, observed from outside; see command.h. */
#include "command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/rand.h"
#include "tests/support/send_signal.h"
#include "sherd/npy.h"

static _Noreturn void die(const char *what)
{
    perror(what);
    abort();
}

/* ---- the process ----------------------------------------------------------------------------- */

static _Noreturn void become(const command *c, const char *program, const char *const *argv,
                             const char *const *env)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* nohup and shells ignore some */
    static const int usual[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) signal(usual[i], SIG_DFL);
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(c->out, 1) < 0 || dup2(c->err, 2) < 0)
        _exit(126);
    for (; env && *env; env++) putenv((char *)(uintptr_t)*env);
    execv(program, (char *const *)(uintptr_t)argv);
    _exit(127);
}

void command_start(command *c, const char *program, const char *const *argv, const char *const *env)
{
    *c = (command){ .out = memfd_create("out", MFD_CLOEXEC),
                    .err = memfd_create("err", MFD_CLOEXEC),
                    .began_ms = clock_now_ms() };
    if (c->out < 0 || c->err < 0) die("memfd_create");
    c->pid = fork();
    if (c->pid < 0) die("fork");
    if (c->pid == 0) become(c, program, argv, env);
}

bool command_over(command *c)
{
    int status = 0;
    pid_t got = c->ended || c->pid <= 0 ? 0 : waitpid(c->pid, &status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR)) return c->ended;
    c->ended = true; /* even if other code has waited for it */
    c->ended_ms = clock_now_ms();
    c->status = got < 0 ? -SIGCHLD : WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return true;
}

bool command_wait(command *c, int64_t ms)
{
    int64_t deadline = clock_now_ms() + ms;
    while (!command_over(c) && clock_now_ms() < deadline) pause_ms(2);
    if (c->ended || c->pid <= 0) return c->ended;
    send_signal(c->pid, SIGKILL);
    while (!command_over(c)) pause_ms(2);
    return false;
}

char *command_said(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0) die("fstat");
    char *text = calloc(1, (size_t)st.st_size + 1);
    if (!text || pread(fd, text, (size_t)st.st_size, 0) != st.st_size) die("pread");
    return text;
}

json_t *command_json(const command *c)
{
    char *text = command_said(c->out);
    json_t *found = json_loads(text, 0, NULL);
    free(text);
    return found;
}

void command_free(command *c)
{
    if (!c->ended) (void)command_wait(c, 0);
    close(c->out);
    close(c->err);
}

int command_run(command *c, const char *const *argv, int64_t ms)
{
    command_start(c, sherd_path(), argv, NULL);
    return command_wait(c, ms) ? c->status : -SIGKILL;
}

/* ---- nodes with keys ------------------------------------------------------------------------- */

void key_file(const char *path, char fingerprint[64])
{
    command k;
    const char *argv[] = { "sherd", "keygen", path, NULL };
    if (command_run(&k, argv, 20000 * patience()) != 0) die("keygen");
    char *said = command_said(k.out), *key = strstr(said, "sha256:");
    if (!key) die("keygen says nothing");
    snprintf(fingerprint, 64, "%.*s", (int)strcspn(key, " \n"), key);
    free(said);
    command_free(&k);
}

void allow_file(const char *path, const char *fingerprint)
{
    char text[128];
    snprintf(text, sizeof text, "* key=%s role=coordinator\n", fingerprint);
    file_put(path, text, strlen(text));
}

void node_start(command *c, const char *folder, const char *name, const char *allow,
                const char *const *more, char line[1024])
{
    char key[256], fingerprint[64];
    const char *argv[32] = { "sherd",  "node", "--key",      key,     "--allow",   allow,
                             "--name", name,   "--selftest", "quick", "--threads", "1" };
    size_t n = 12;
    snprintf(key, sizeof key, "%s/%s.key", folder, name);
    key_file(key, fingerprint);
    while (more && *more) argv[n++] = *more++;
    command_start(c, sherd_path(), argv, NULL);
    int64_t deadline = clock_now_ms() + 20000 * patience();
    for (;;) {
        char *said = command_said(c->out);
        bool whole = strchr(said, '\n') != NULL;
        snprintf(line, 1024, "%.*s", (int)strcspn(said, "\n"), said);
        free(said);
        if (whole) return;
        if (command_over(c) || clock_now_ms() > deadline) {
            fprintf(stderr, "%s: exit status %d: %s\n", name, c->status, command_said(c->err));
            die("the node does not listen");
        }
        pause_ms(5);
    }
}

const char *sherd_path(void)
{
    const char *path = getenv("SHERD");
    return path ? path : "build/sherd";
}

const char *liar_path(void)
{
    static char path[512];
    const char *build = getenv("B");
    char there[512];
    snprintf(path, sizeof path, "%s/tests/system/node/prog_misbehave",
             build ? build : "build/plain");
    if (path[0] != '/' && getcwd(there, sizeof there)) { /* callers may change the working folder */
        size_t n = strlen(there), m = strlen(path);
        if (n + m + 2 > sizeof path) die("path");
        memmove(path + n + 1, path, m + 1);
        memcpy(path, there, n);
        path[n] = '/';
    }
    return path;
}

int64_t patience(void)
{
    const char *san = getenv("SAN");
    return san && *san ? 4 : 1;
}

int64_t clock_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void pause_ms(unsigned ms)
{
    struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };
    nanosleep(&t, NULL);
}

/* ---- other processes ------------------------------------------------------------------------- */

/* Reads state and parent of a process; returns false if it does not exist. */
static bool look_at(pid_t pid, char *state, pid_t *parent)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *f = fopen(path, "re");
    if (!f) return false;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    char *end = strrchr(text, ')');
    long up;
    if (!end || sscanf(end + 1, " %c %ld", state, &up) != 2) return false;
    *parent = (pid_t)up;
    return true;
}

bool is_stopped(pid_t pid)
{
    char state;
    pid_t up;
    return look_at(pid, &state, &up) && state == 'T';
}

size_t children_of(pid_t parent, pid_t *out, size_t max)
{
    DIR *d = opendir("/proc");
    size_t n = 0;
    char state;
    pid_t up;
    if (!d) die("/proc");
    for (struct dirent *e; n < max && (e = readdir(d));) {
        pid_t pid = (pid_t)atol(e->d_name);
        if (pid > 0 && look_at(pid, &state, &up) && up == parent && state != 'Z') out[n++] = pid;
    }
    closedir(d);
    return n;
}

bool started_with(pid_t pid, const char *option, const char *value)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%ld/cmdline", (long)pid);
    FILE *f = fopen(path, "re");
    if (!f) return false;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    bool found = false;
    for (size_t i = 0; i < n; i += strlen(text + i) + 1) {
        if (found) return strcmp(text + i, value) == 0;
        found = strcmp(text + i, option) == 0;
    }
    return false;
}

pid_t child_named(pid_t parent, const char *name)
{
    pid_t all[256];
    size_t n = children_of(parent, all, 256);
    for (size_t i = 0; i < n; i++)
        if (started_with(all[i], "--name", name)) return all[i];
    return 0;
}

bool process_alive(pid_t pid)
{
    char state;
    pid_t up;
    return look_at(pid, &state, &up) && state != 'Z' && state != 'X';
}

bool processes_gone(const pid_t *pids, size_t n, int64_t ms)
{
    int64_t deadline = clock_now_ms() + ms;
    for (size_t i = 0; i < n; i++)
        while (process_alive(pids[i])) {
            if (clock_now_ms() > deadline) return false;
            pause_ms(5);
        }
    return true;
}

/* ---- files ----------------------------------------------------------------------------------- */

void folder_new(char out[128])
{
    const char *tmp = getenv("TMPDIR");
    snprintf(out, 128, "%s/sherd-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(out)) die(out);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

void folder_remove(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static size_t count_entries(const char *path, bool hidden)
{
    DIR *d = opendir(path);
    size_t n = 0;
    if (!d) die(path);
    for (struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) n += !hidden || e->d_name[0] == '.';
    closedir(d);
    return n;
}

size_t folder_hidden(const char *path)
{
    return count_entries(path, true);
}

size_t folder_entries(const char *path)
{
    return count_entries(path, false);
}

int64_t file_size(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (int64_t)st.st_size : -1;
}

/* Reads a whole file, *len bytes; NULL if there is none. */
static void *contents(const char *path, size_t *len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NULL;
    *len = (size_t)file_size(path);
    void *p = *len ? mmap(NULL, *len, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    close(fd);
    return p == MAP_FAILED ? NULL : p;
}

bool files_equal(const char *a, const char *b)
{
    size_t la = 0, lb = 0;
    void *pa = contents(a, &la), *pb = contents(b, &lb);
    bool same = file_size(a) >= 0 && file_size(a) == file_size(b) &&
                (la == 0 || (pa && pb && memcmp(pa, pb, la) == 0));
    if (pa) munmap(pa, la);
    if (pb) munmap(pb, lb);
    return same;
}

bool file_holds(const char *path, const char *text)
{
    size_t len = 0;
    void *p = contents(path, &len);
    bool same = p && len == strlen(text) && memcmp(p, text, len) == 0;
    if (p) munmap(p, len);
    return same;
}

void file_put(const char *path, const void *bytes, size_t len)
{
    FILE *f = fopen(path, "we");
    if (!f || fwrite(bytes, 1, len, f) != len || fclose(f) != 0) die(path);
}

void matrix_file(const char *path, size_t rows, size_t cols, uint64_t seed)
{
    sherd_npy_writer *w;
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, seed);
    double *row = malloc((cols + 1) * sizeof *row);
    int64_t *drawn = malloc((cols + 1) * sizeof *drawn);
    sherd_diag d = { .code = 0 };
    int err = sherd_npy_writer_new(&w, path, SHERD_F64, rows, cols, &d);
    for (size_t i = 0; !err && i < rows; i++) {
        e.fill(e.ctx, drawn, cols * sizeof *drawn);
        for (size_t j = 0; j < cols; j++) row[j] = (double)drawn[j] * 0x1p-62;
        err = sherd_npy_writer_rows(w, sherd_view_c(row, SHERD_F64, 1, cols), &d);
    }
    if (!err) err = sherd_npy_writer_commit(w, &d);
    if (err) die(d.message);
    free(drawn);
    free(row);
}
