/* A name server that does not answer: looking up the name silent.invalid never ends. */
#include <dlfcn.h>
#include <netdb.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **list);

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **list)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    bool number = hints && hints->ai_flags & AI_NUMERICHOST;
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (node && strcmp(node, "silent.invalid") == 0 && !number) {
        (void)!write(2, "looking up\n", 11);
        for (;;) sleep(60);
    }
    return real(node, service, hints, list);
}
