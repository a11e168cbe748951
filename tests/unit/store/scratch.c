#include "tests/unit/store/scratch.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[64];

int scratch_setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/sherd-store-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

int scratch_teardown(void **state)
{
    (void)state;
    scratch_clear();
    return rmdir(dir);
}

const char *scratch_dir(void)
{
    return dir;
}

const char *scratch_path(const char *name)
{
    static char path[8][512];
    static int turn;
    turn = (turn + 1) % 8;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

const char *scratch_write(const char *name, const void *bytes, size_t len)
{
    const char *path = scratch_path(name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, len, f) != len || fclose(f)) abort();
    return path;
}

uint8_t *scratch_read(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    if (fseek(f, 0, SEEK_END)) abort();
    long n = ftell(f);
    rewind(f);
    uint8_t *p = malloc((size_t)n + 1);
    if (!p || fread(p, 1, (size_t)n, f) != (size_t)n) abort();
    p[n] = 0;
    fclose(f);
    *len = (size_t)n;
    return p;
}

static size_t walk(const char *path, int remove_them)
{
    size_t n = 0;
    DIR *list = opendir(path);
    if (!list) return 0;
    for (struct dirent *e; (e = readdir(list));) {
        char at[1024];
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        n++;
        if (!remove_them) continue;
        snprintf(at, sizeof at, "%s/%s", path, e->d_name);
        if (unlink(at) == 0) continue;
        walk(at, 1);
        if (rmdir(at)) abort();
    }
    closedir(list);
    return n;
}

size_t scratch_entries(void)
{
    return walk(dir, 0);
}

void scratch_clear(void)
{
    walk(dir, 1);
}

int scratch_python(const char *program)
{
    char command[128];
    snprintf(command, sizeof command, "cd %s && exec /usr/bin/python3 -", dir);
    FILE *p = popen(command, "w");
    if (!p) return -1;
    fputs(program, p);
    int status = pclose(p);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
