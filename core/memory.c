/*
 * Available memory. Linux grants more memory than it has and kills the process that fills it;
 * core/alloc.c therefore checks large requests against this number. Control groups: the limits of
 * the process's own group and of all its ancestors count, for v2 and for the memory controller of
 * v1. The page cache of a group does not count as used, since the kernel reclaims it on demand.
 */
#include "core/memory.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Reads the number after `name` from a file of lines "name 123", or from a file that is one number
 * if name is "". Returns false if there is no number ("max"). */
static bool number_in(const char *path, const char *name, uint64_t *out)
{
    char line[256], *end;
    size_t n = strlen(name);
    bool found = false;
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        if (strncmp(line, name, n) != 0) continue;
        unsigned long long value = strtoull(line + n, &end, 10);
        found = end != line + n;
        *out = value;
    }
    if (f) fclose(f);
    return found;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

typedef struct group_files {
    const char *controller; /* as in /proc/self/cgroup, between colons */
    const char *at, *limit, *used, *cache[2];
} group_files;

static const group_files versions[] = {
    { "::",
      "/sys/fs/cgroup",
      "memory.max",
      "memory.current",
      { "inactive_file ", "active_file " } },
    { ":memory:",
      "/sys/fs/cgroup/memory",
      "memory.limit_in_bytes",
      "memory.usage_in_bytes",
      { "total_inactive_file ", "total_active_file " } },
};

/* Returns the bytes that one group has left; UINT64_MAX: it has no limit. */
static uint64_t left_by(const char *folder, const group_files *v)
{
    char path[PATH_MAX + 64];
    uint64_t limit, used = 0, cache = 0, some;
    snprintf(path, sizeof path, "%s/%s", folder, v->limit);
    if (!number_in(path, "", &limit)) return UINT64_MAX;
    snprintf(path, sizeof path, "%s/%s", folder, v->used);
    if (!number_in(path, "", &used)) return UINT64_MAX;
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    for (int i = 0; i < 2; i++)
        if (number_in(path, v->cache[i], &some)) cache += some;
    used = used > cache ? used - cache : 0;
    return limit > used ? limit - used : 0;
}

/* Returns the bytes left by the group in a line of /proc/self/cgroup and by all its ancestors. In a
 * container that path may not be visible; the mounted folder is then the group of the container. */
static uint64_t left_by_groups(const char *root, const char *line, const group_files *v)
{
    char folder[PATH_MAX];
    const char *in = strstr(line, v->controller);
    if (!in) return UINT64_MAX;
    in += strlen(v->controller);
    int base = snprintf(folder, sizeof folder, "%s%s", root, v->at);
    if (base < 0 || (size_t)base + strlen(in) >= sizeof folder) return UINT64_MAX;
    strcpy(folder + base, in);
    folder[(size_t)base + strcspn(folder + base, "\n")] = '\0';
    uint64_t left = left_by(folder, v);
    for (char *slash; (slash = strrchr(folder + base, '/'));) {
        *slash = '\0';
        left = less(left, left_by(folder, v));
    }
    return left;
}

uint64_t sherd__memory_available_in(const char *root)
{
    char path[PATH_MAX], line[PATH_MAX];
    uint64_t kib, left = UINT64_MAX;
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (number_in(path, "MemAvailable:", &kib) && kib < UINT64_MAX / 1024) left = kib * 1024;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        for (size_t v = 0; v < sizeof versions / sizeof *versions; v++)
            left = less(left, left_by_groups(root, line, &versions[v]));
    if (f) fclose(f);
    return left;
}

uint64_t sherd__memory_available(void)
{
    struct rlimit limit;
    uint64_t pages = 0, left = sherd__memory_available_in("");
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        !number_in("/proc/self/statm", "", &pages))
        return left;
    uint64_t used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return less(left, limit.rlim_cur > used ? limit.rlim_cur - used : 0);
}

uint64_t sherd__memory_machine(uint64_t *limit)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t all = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0, most;
    *limit = number_in("/sys/fs/cgroup/memory.max", "", &most) && (!all || most < all) ? most : 0;
    return all;
}

uint64_t sherd__memory_of_node(uint32_t nodes)
{
    uint64_t limit, all = sherd__memory_machine(&limit);
    if (limit) all = limit;
    return (all ? all : (uint64_t)1 << 32) / 2 / nodes;
}
