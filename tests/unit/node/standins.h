/* Backends over stand-ins for their drivers (tests/system/node/standin.h), and calls of them. */
#ifndef TESTS_UNIT_NODE_STANDINS_H
#define TESTS_UNIT_NODE_STANDINS_H

#include "crypto/fragment_make.h"
#include "node/backend.h"

enum { N = 40 };
#define LEN ((uint64_t)N * N * 8)

typedef struct standin {
    const sherd__backend *backend;
    const char *file, *plain; /* in tests/system/node; plain: without an optional function */
    const char *variable;     /* of its faults */
    const char *interface;    /* as messages name it */
    const char *full, *gone;  /* errors: there is no memory, the device is lost */
    /* Functions of the library. */
    unsigned (*dirty)(void), (*launches)(void), (*allocations)(void), (*copies)(void);
    unsigned (*products)(void);
    unsigned long long (*held)(void);
    void (*reset)(void), (*pass)(void);
} standin;

enum { STANDIN_OPENCL, STANDIN_CUDA, STANDINS };
extern standin standins[STANDINS];
/** That of the test, and its backend. */
extern standin *on;
extern const sherd__backend *backend;
/** That of all calls. */
extern sherd__executor *executor;

/** For groups of tests. */
int standins_open(void **s);
int standins_close(void **s);
/** For tests over a stand-in, whose number is their state. */
int standin_choose(void **s);
#define OVER(test, name, i)                                                                        \
    {                                                                                              \
        name, test, standin_choose, NULL, (void *)(uintptr_t)(i)                                   \
    }
#define OVER_OPENCL(test) OVER(test, #test "_opencl", STANDIN_OPENCL)
#define OVER_CUDA(test) OVER(test, #test "_cuda", STANDIN_CUDA)
#define OVER_BOTH(test) OVER_OPENCL(test), OVER_CUDA(test)

/** Returns the path of a library in tests/system/node, valid until the next call. */
const char *standin_path(const char *file);
void standin_function(void *loaded, const char *name, void *out);
void set_faults(const char *faults);
/** Opens the backend with these faults. */
int open_with(void **ctx, const char *faults, sherd__backend_options o, sherd_diag *d);
void *opened(const char *faults);
/** Returns the launches of a self-test with all its measurements. */
unsigned launches_of_open(void);

typedef struct calling {
    sherd__call call; /* must be first */
    sherd__task task;
    unsigned dones;
    double out[N * N];
} calling;

/** Returns a block of N x N numbers; each call's task is its square. */
sherd__fragment *block_new(void);
sherd__handle held(void *ctx, const sherd__fragment *f);
int begin(void *ctx, calling *c, sherd__handle h, sherd_diag *d);
/** Waits until no call is in progress. */
void settle(void *ctx);
/** Makes one call, and checks its result; returns its error. */
int call_once(void *ctx, calling *c, sherd__handle h);
/** Returns a block over bytes of the test, `primes` 0 or 1. */
sherd__fragment *block_over(uint8_t dtype, uint8_t primes, uint64_t rows, uint64_t cols,
                            uint8_t *bytes);
/** Starts a call of c->task, in parts if c->call says so; right.id 0: it has one operand. */
int begin_task(void *ctx, calling *c, sherd__handle left, sherd__handle right, uint8_t *out,
               sherd_diag *d);
/** Makes two calls with this fault at the first launch after the self-test: the first one fails and
 *  leaves the device usable, the second one succeeds. */
void fails_once(const char *fault);

#endif
