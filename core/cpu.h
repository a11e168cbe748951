/* Processors: the number this thread may use, and how long a task waits for one. */
#ifndef CORE_CPU_H
#define CORE_CPU_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** Returns the number of processors that this thread may use, at least 1. Under taskset, or in a
 *  container with a cpuset or a quota, it is less than the number online. */
uint32_t sherd__cpu_usable(void);
/** The quota file of the control group of this process, in a container. */
#define SHERD__CPU_QUOTA "/sys/fs/cgroup/cpu.max"
/** Returns the ratio of a cgroup v2 quota file "QUOTA PERIOD", rounded up, or 0 where the file does
 *  not exist or sets no quota. */
uint32_t sherd__cpu_quota(const char *path);

typedef struct sherd__cpu_times {
    uint64_t ran, waited; /* ns since the start: running, and runnable but waiting */
    uint64_t turns;       /* number of time slices; 0: not counted by the kernel */
} sherd__cpu_times;

/** Reads the times of a thread, or of the first thread of a process (schedstat). Returns false and
 *  sets *out to 0 where the task has ended or the system does not provide them. */
bool sherd__cpu_times_of(pid_t task, sherd__cpu_times *out);

#endif
