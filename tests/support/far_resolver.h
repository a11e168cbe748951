/*
 * Replaces getaddrinfo by one with a slow name server, for tests with `link:
 * -Wl,--wrap=getaddrinfo` in their opening comment. Names that begin with "slow" resolve to
 * 192.0.2.1 after far_release() was called; names that begin with "fast" resolve to it at once; the
 * system resolves all others.
 */
#ifndef TESTS_SUPPORT_FAR_RESOLVER_H
#define TESTS_SUPPORT_FAR_RESOLVER_H

#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned waiting, asked; /* slow names: lookups in progress, and all so far */
    bool released;
} far = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, false };

int __real_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out);

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out)
{
    bool slow = strncmp(host, "slow", 4) == 0, fast = strncmp(host, "fast", 4) == 0;
    if (hints->ai_flags & AI_NUMERICHOST || (!slow && !fast))
        return __real_getaddrinfo(host, service, hints, out);
    pthread_mutex_lock(&far.lock);
    far.waiting += slow;
    far.asked += slow;
    pthread_cond_broadcast(&far.changed);
    while (slow && !far.released) pthread_cond_wait(&far.changed, &far.lock);
    int error = __real_getaddrinfo("192.0.2.1", service, hints, out);
    far.waiting -= slow;
    pthread_cond_broadcast(&far.changed);
    pthread_mutex_unlock(&far.lock);
    return error;
}

/* Waits until n lookups of slow names are in progress. */
static inline void far_wait(unsigned n)
{
    pthread_mutex_lock(&far.lock);
    while (far.waiting < n) pthread_cond_wait(&far.changed, &far.lock);
    pthread_mutex_unlock(&far.lock);
}

/* Lets the name server answer; returns when all lookups have received the answer. */
static inline void far_release(void)
{
    pthread_mutex_lock(&far.lock);
    far.released = true;
    pthread_cond_broadcast(&far.changed);
    while (far.waiting) pthread_cond_wait(&far.changed, &far.lock);
    far.released = false;
    pthread_mutex_unlock(&far.lock);
}

#endif
