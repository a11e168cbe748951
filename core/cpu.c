/* Reads /proc and control groups on Linux; where they do not exist, the functions return
 * defaults. */
#include "core/cpu.h"

#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

uint32_t sherd__cpu_quota(const char *path)
{
    double quota, period;
    FILE *f = fopen(path, "re");
    int fields = f ? fscanf(f, "%lf %lf", &quota, &period) : 0; /* "max" is not a number */
    if (f) fclose(f);
    if (fields != 2 || !(quota > 0) || !(period > 0) || quota / period >= UINT32_MAX) return 0;
    return (uint32_t)ceil(quota / period);
}

uint32_t sherd__cpu_usable(void)
{
    cpu_set_t set;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t n = online > 0 ? (uint32_t)online : 1, quota = sherd__cpu_quota(SHERD__CPU_QUOTA);
    if (sched_getaffinity(0, sizeof set, &set) == 0) n = (uint32_t)CPU_COUNT(&set);
    return quota && quota < n ? quota : n;
}

bool sherd__cpu_times_of(pid_t task, sherd__cpu_times *out)
{
    sherd__cpu_times t;
    char path[64];
    *out = (sherd__cpu_times){ 0 };
    snprintf(path, sizeof path, "/proc/%ld/schedstat", (long)task);
    FILE *f = fopen(path, "re");
    int fields = f ? fscanf(f, "%" SCNu64 " %" SCNu64 " %" SCNu64, &t.ran, &t.waited, &t.turns) : 0;
    if (f) fclose(f);
    if (fields == 3) *out = t;
    return fields == 3;
}
