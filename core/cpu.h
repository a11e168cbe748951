/* Processors: how many are ours to use, and how long a task waits for one. */
#ifndef CORE_CPU_H
#define CORE_CPU_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** How many this thread may use, at least 1: under taskset, or in a container with a cpuset or a
 *  quota, fewer than are online. */
uint32_t sherd__cpu_usable(void);
/** This process's own, where it is in such a group. */
#define SHERD__CPU_QUOTA "/sys/fs/cgroup/cpu.max"
/** Of a file as cgroups of version 2 have it, "QUOTA PERIOD": their ratio, rounded up. 0: there is
 *  no such file, or no quota. */
uint32_t sherd__cpu_quota(const char *path);

typedef struct sherd__cpu_times {
    uint64_t ran, waited; /* ns, since it began: on a processor, and ready while others had them */
    uint64_t turns;       /* 0: the kernel does not count them */
} sherd__cpu_times;

/** Of one thread, or of the first one of a process (schedstat). False, and all 0: it is no more, or
 *  this system does not tell. */
bool sherd__cpu_times_of(pid_t task, sherd__cpu_times *out);

#endif
