/* The thread of a process in which its node's loop runs. */
#ifndef TESTS_SUPPORT_LOOP_THREAD_H
#define TESTS_SUPPORT_LOOP_THREAD_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/** Returns the thread named "sherd-node", of several the oldest, since threads that the loop starts
 *  inherit its name; 0 if there is none. */
static inline long loop_thread(pid_t pid)
{
    char path[80], name[32];
    long found = 0;
    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    DIR *dir = opendir(path);
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        long thread = strtol(e->d_name, NULL, 10);
        snprintf(path, sizeof path, "/proc/%ld/task/%ld/comm", (long)pid, thread);
        FILE *f = thread ? fopen(path, "re") : NULL;
        if (!f) continue;
        if (fgets(name, sizeof name, f) && strcmp(name, "sherd-node\n") == 0 &&
            (!found || thread < found))
            found = thread;
        fclose(f);
    }
    if (dir) closedir(dir);
    return found;
}

#endif
