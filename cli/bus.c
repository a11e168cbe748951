/*
 * Turns SIGBUS into a message. The handler runs in a thread that may hold any lock, so it uses only
 * system calls, static buffers, and text that was formatted before. The kernel identifies the file:
 * it is the mapping in /proc/self/maps that contains the address. No list of mapped files is
 * therefore needed, and files mapped by libraries are named, too.
 */
#include "cli/bus.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define HINT "run again once its writer has finished"
#define CUT                                                                                        \
    "became shorter while it was read, or its disk failed; an existing output file is unchanged"

static struct {
    char start[192], middle[16], end[128]; /* of the message, around path and sentence */
    int fd, code;
} words;
static char line[4352]; /* of /proc/self/maps: a path, and up to 100 characters before it */
static atomic_flag speaking = ATOMIC_FLAG_INIT; /* several threads may get SIGBUS at once */

/* ---- reading /proc/self/maps line by line ---------------------------------------------------- */

static const char *hex(const char *p, uintptr_t *out)
{
    uintptr_t v = 0;
    for (;; p++) {
        if (*p >= '0' && *p <= '9') v = v << 4 | (uintptr_t)(*p - '0');
        else if (*p >= 'a' && *p <= 'f') v = v << 4 | (uintptr_t)(*p - 'a' + 10);
        else break;
    }
    *out = v;
    return p;
}

/* Returns the path in a line like "7f00-7f80 r--p 00000000 08:01 1234   /path" if its mapping
 * contains `address`. */
static const char *path_of(const char *text, uintptr_t address)
{
    uintptr_t from, to;
    const char *p = hex(text, &from);
    if (*p != '-') return NULL;
    (void)hex(p + 1, &to);
    return address >= from && address < to ? strchr(text, '/') : NULL;
}

static const char *find_file(uintptr_t address)
{
    char block[1024];
    const char *found = NULL;
    ssize_t got;
    size_t len = 0;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NULL;
    while (!found && (got = read(fd, block, sizeof block)) > 0) {
        for (ssize_t i = 0; i < got && !found; i++) {
            if (block[i] != '\n') {
                if (len < sizeof line - 1) line[len++] = block[i];
                continue;
            }
            line[len] = '\0';
            len = 0;
            found = path_of(line, address);
        }
    }
    close(fd);
    return found;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void put(const char *text)
{
    size_t len = strlen(text);
    while (len > 0) {
        ssize_t n = write(words.fd, text, len);
        if (n <= 0) return;
        text += n;
        len -= (size_t)n;
    }
}

/* Escapes the path, which can contain any byte: the message must stay one line, and valid JSON. */
static void put_path(const char *path)
{
    char part[2] = "";
    for (; *path != '\0'; path++) {
        bool plain = *path >= ' ' && *path < 127 && *path != '"' && *path != '\\';
        part[0] = plain ? *path : '?';
        put(part);
    }
}

static void on_bus(int sig, siginfo_t *info, void *context)
{
    (void)context;
    while (atomic_flag_test_and_set(&speaking)) pause(); /* another thread ends the process */
    bool memory = info->si_code == BUS_ADRERR;
    const char *path = memory ? find_file((uintptr_t)info->si_addr) : NULL;
    if (!path) {
        signal(sig, SIG_DFL); /* the access is repeated with the default action */
        atomic_flag_clear(&speaking);
        return;
    }
    put(words.start);
    put_path(path);
    put(words.middle);
    put(CUT);
    put(words.end);
    _exit(words.code);
}

static void choose_words(const sherd__cli *cli)
{
    words.code = sherd_err_exit(SHERD_EIO);
    words.fd = cli->json ? STDOUT_FILENO : STDERR_FILENO;
    snprintf(words.middle, sizeof words.middle, ": ");
    if (!cli->json) {
        snprintf(words.start, sizeof words.start, "sherd: %s: ", cli->title);
        snprintf(words.end, sizeof words.end, "\n  try: " HINT "\n");
        return;
    }
    char title[sizeof cli->title];
    snprintf(title, sizeof title, "%s", cli->title);
    for (char *p = title; *p != '\0'; p++)
        if (*p == ' ') *p = '-';
    snprintf(words.start, sizeof words.start,
             "{\"schema\":\"sherd/%s/1\",\"ok\":false,\"error\":{\"code\":%d,\"name\":\"%s\","
             "\"error\":\"%s\",\"message\":\"",
             title, words.code, sherd__exit_name(words.code), sherd_err_name(SHERD_EIO));
    snprintf(words.end, sizeof words.end, "\",\"hint\":\"" HINT "\"}}\n");
}

void sherd__bus_start(const sherd__cli *cli)
{
    struct sigaction act;
    choose_words(cli);
    memset(&act, 0, sizeof act);
    sigfillset(&act.sa_mask);
    act.sa_flags = SA_SIGINFO;
    act.sa_sigaction = on_bus;
    sigaction(SIGBUS, &act, NULL);
}
