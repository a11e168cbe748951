/*
 * Where the time of a product goes: processor time of every thread of the nodes and of this
 * process, which Linux counts (schedstat). A thread's name says what it does: the loops of a node
 * and of a cluster send and receive, which is mostly encryption and copies of the system; the other
 * threads of a node compute. Threads that end between two readings are not counted.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "core/cpu.h"
#include "lib/node.h"
#include "scheduler/cluster/measure.h"

/* Reads a thread's name. */
static void name_of(pid_t pid, pid_t thread, char out[32])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/comm", (long)pid, (long)thread);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, out, 31) : -1;
    if (fd >= 0) close(fd);
    out[len > 0 ? len : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

/* Adds the time of threads that have the name to *named, and that of the others to *others. */
static void add_threads(pid_t pid, const char *name, double *named, double *others)
{
    char path[64], is[32];
    sherd__cpu_times t;
    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        pid_t thread = (pid_t)strtol(e->d_name, NULL, 10);
        if (thread <= 0 || !sherd__cpu_times_of(thread, &t)) continue;
        name_of(pid, thread, is);
        *(strcmp(is, name) == 0 ? named : others) += 1e-9 * (double)t.ran;
    }
    if (dir) closedir(dir);
}

void sherd__bench_busy(sherd_cluster *c, sherd__busy *out)
{
    *out = (sherd__busy){ 0 };
    for (uint32_t i = 0; i < sherd_cluster_size(c); i++) {
        sherd_node_info info = { .size = sizeof info };
        if (sherd_cluster_node_at(c, i, &info, NULL) || info.pid <= 0) continue;
        add_threads((pid_t)info.pid, SHERD__NODE_THREAD, &out->links, &out->products);
    }
    add_threads(getpid(), SHERD__CLUSTER_THREAD, &out->links, &out->here);
}

void sherd__bench_put_busy(sherd__bench *b, const sherd__busy *before, const sherd__busy *after,
                           double seconds)
{
    double all = seconds * b->cores, products = after->products - before->products;
    double links = after->links - before->links, here = after->here - before->here;
    double waiting = all - products - links - here;
    sherd__bench_put(b, "cores", all);
    sherd__bench_put(b, "products", products);
    sherd__bench_put(b, "links", links);
    sherd__bench_put(b, "here", here);
    sherd__bench_put(b, "waiting", waiting > 0 ? waiting : 0);
}
