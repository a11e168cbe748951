/*
 * What stand-ins for libraries of drivers share: faults that an environment variable chooses, as
 * words that are separated by commas, memory, and kernels, which are the host's compilation of
 * ours.
 *
 *   devices=N   number of devices (1)         memory=N    bytes of each device (1 GiB)
 *   old=N       the first N (1) are too old   none        there is no device
 *   nobuild     kernels are not compiled      abort       the driver aborts when it is asked
 *   chatty      it prints to descriptor 1     stuck       it does not answer
 *   full=N      allocation N finds no memory  crash=N     with launch N the process ends
 *   fail=N      launch N fails                lost=N      with launch N the device is lost
 *   hang=N      launch N does not end         wrong=N     launch N spoils a byte of its result
 *   gone        the next launch loses it      room=N      only N bytes can be allocated
 *   nocopy=N    copy N fails                  lostcopy=N  with copy N the device is lost
 *   slowcopy=N  copies take N us longer for each MiB
 *   nozero      overwriting memory does not   holdcopy=N  copy N starts after standin_pass
 *               end
 *
 * Allocations, launches and copies are counted from 1 in each process, and with SHERD_TEST_ARMED
 * from when the file that it names exists; `room` and `gone` apply from then on, too. Those faults
 * write their name to standard error when they take effect. Kernels run when they are started.
 * Copies are done as late as a driver may do them, which is when they are waited for or something
 * else follows in their queue: who does not wait for a copy sees other bytes. standin_dirty counts
 * memory that was freed although it still held a number, and standin_held the bytes of memory that
 * are allocated.
 *
 * A stand-in defines STANDIN_VARIABLE, the name of its variable, and includes this once.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/backends/kernels/kernels.h"
#include "node/backends/kernels_text.h"

#define EXPORT __attribute__((visibility("default")))
#define DEVICES_MAX 8
#define COPIES_MAX 8

typedef struct standin_memory {
    uint8_t *bytes;
    size_t len;
    struct standin_memory *next;
} standin_memory;

typedef void standin_kernel(const uint8_t *, const uint8_t *, uint8_t *, uint32_t *,
                            const sherd__kernel_job, uint32_t, uint32_t);

/* All memory, which is not a leak when a device was given up. */
static standin_memory *all_memory;
static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint allocations, launches, copies, products, dirty; /* products: of a library */
static atomic_ullong held;                                         /* bytes */
static atomic_bool lost, passed;
static atomic_uint dead; /* a bit for each device that is lost alone */

EXPORT unsigned standin_dirty(void);
EXPORT unsigned standin_launches(void);
EXPORT unsigned standin_products(void);
EXPORT unsigned standin_allocations(void);
EXPORT unsigned standin_copies(void);
EXPORT unsigned long long standin_held(void);
EXPORT void standin_reset(void);
EXPORT void standin_pass(void);

/* Counts from 1 again. */
void standin_reset(void)
{
    atomic_store(&allocations, 0);
    atomic_store(&launches, 0);
    atomic_store(&products, 0);
    atomic_store(&copies, 0);
    atomic_store(&dirty, 0);
    atomic_store(&lost, false);
    atomic_store(&passed, false);
    atomic_store(&dead, 0);
}

void standin_pass(void)
{
    atomic_store(&passed, true);
}

unsigned standin_dirty(void)
{
    return atomic_load(&dirty);
}

unsigned standin_products(void)
{
    return atomic_load(&products);
}

unsigned standin_launches(void)
{
    return atomic_load(&launches);
}

unsigned standin_allocations(void)
{
    return atomic_load(&allocations);
}

unsigned standin_copies(void)
{
    return atomic_load(&copies);
}

unsigned long long standin_held(void)
{
    return atomic_load(&held);
}

/* Returns the value of a word of the variable; 1 if it has none, 0 if it is not there. */
static unsigned long long word(const char *name)
{
    const char *at = getenv(STANDIN_VARIABLE);
    size_t len = strlen(name);
    for (; at && *at; at += strcspn(at, ","), at += *at == ',') {
        if (strncmp(at, name, len) != 0) continue;
        if (at[len] == '=') return strtoull(at + len + 1, NULL, 10);
        if (at[len] == ',' || at[len] == '\0') return 1;
    }
    return 0;
}

/* Returns whether faults that are counted may occur. */
static bool armed(void)
{
    static atomic_bool is;
    const char *file = getenv("SHERD_TEST_ARMED");
    if (!atomic_load(&is)) atomic_store(&is, !file || access(file, F_OK) == 0);
    return atomic_load(&is);
}

/* Returns the number of what is counted; 0: it is not. */
static unsigned count(atomic_uint *n)
{
    return armed() ? atomic_fetch_add(n, 1) + 1 : 0;
}

/* Returns whether the fault with this name occurs in number n, and says so. */
static bool strikes(const char *name, unsigned n)
{
    if (n == 0 || n != word(name)) return false;
    fprintf(stderr, "stand-in: %s=%u\n", name, n);
    return true;
}

static _Noreturn void never(void)
{
    for (;;) pause();
}

/* The first function that is called. */
static void begin(void)
{
    if (word("abort")) abort();
    if (word("chatty") && write(STDOUT_FILENO, "driver\n", 7) != 7) abort();
    if (word("stuck")) never();
}

static unsigned devices_count(void)
{
    const unsigned n = word("devices") ? (unsigned)word("devices") : 1;
    return n < DEVICES_MAX ? n : DEVICES_MAX;
}

static uint64_t device_memory(void)
{
    return word("memory") ? word("memory") : (uint64_t)1 << 30;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Counts an allocation of a device; returns whether it finds memory. */
static bool has_memory(size_t len)
{
    const unsigned n = count(&allocations);
    const unsigned long long before = atomic_fetch_add(&held, len);
    const bool cramped = n && word("room") && before + len > word("room");
    if (!strikes("full", n) && !cramped) return true;
    if (cramped) fprintf(stderr, "stand-in: room=%llu\n", word("room"));
    atomic_fetch_sub(&held, len);
    return false;
}

static void memory_add(standin_memory *m)
{
    pthread_mutex_lock(&memory_lock);
    m->next = all_memory;
    all_memory = m;
    pthread_mutex_unlock(&memory_lock);
}

static void memory_remove(const standin_memory *m)
{
    size_t i = 0;
    while (i < m->len && !m->bytes[i]) i++;
    if (i < m->len && m->len > 64) atomic_fetch_add(&dirty, 1); /* 64: the word for bad values */
    pthread_mutex_lock(&memory_lock);
    standin_memory **at = &all_memory;
    while (*at != m) at = &(*at)->next;
    *at = m->next;
    pthread_mutex_unlock(&memory_lock);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* The copies of a queue that are not done. */
typedef struct standin_queue {
    struct {
        void *to;
        const void *from;
        size_t len;
    } list[COPIES_MAX];
    unsigned asked, done;
} standin_queue;

/* Counts a copy, and returns its number. */
static unsigned begin_copy(void)
{
    const unsigned n = count(&copies);
    if (strikes("lostcopy", n)) atomic_store(&lost, true);
    while (n && n == word("holdcopy") && !atomic_load(&passed)) usleep(1000);
    return n;
}

/* Adds a copy, and returns what to wait for. */
static unsigned queue_add(standin_queue *q, void *to, const void *from, size_t len)
{
    const unsigned i = q->asked++ % COPIES_MAX;
    if (q->asked - q->done > COPIES_MAX) abort();
    q->list[i].to = to;
    q->list[i].from = from;
    q->list[i].len = len;
    return q->asked;
}

/* Does the copies up to this one. */
static void queue_run(standin_queue *q, unsigned until)
{
    for (; q->done < until; q->done++) {
        const unsigned i = q->done % COPIES_MAX;
        memcpy(q->list[i].to, q->list[i].from, q->list[i].len);
        if (word("slowcopy"))
            usleep((useconds_t)(word("slowcopy") * q->list[i].len / ((size_t)1 << 20)));
    }
}

/* ---- kernels --------------------------------------------------------------------------------- */

static standin_kernel *kernel_named(const char *name)
{
    static const struct {
        const char *name;
        standin_kernel *run;
    } kernels[] = {
#define KERNEL(name) { #name, name }
        KERNEL(sherd__kernel_map),     KERNEL(sherd__kernel_product_f64),
        KERNEL(sherd__kernel_convert), KERNEL(sherd__kernel_product_residues),
        KERNEL(sherd__kernel_store),   KERNEL(sherd__kernel_product_bytes),
        KERNEL(sherd__kernel_centre),  KERNEL(sherd__kernel_reduce),
        KERNEL(sherd__kernel_layer),   KERNEL(sherd__kernel_peak),
        KERNEL(sherd__kernel_columns),
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(name, kernels[i].name) == 0) return kernels[i].run;
    abort();
}

/* Counts a launch, and returns its number. */
static unsigned begin_launch(void)
{
    const unsigned n = count(&launches);
    if (strikes("crash", n)) abort();
    if (strikes("lost", n) || (n && word("gone"))) atomic_store(&lost, true);
    return n;
}

static void run_launch(unsigned n, standin_kernel *run, standin_memory *const memory[4],
                       const sherd__kernel_job *job, const size_t groups[2])
{
    for (size_t y = 0; y < groups[1]; y++)
        for (size_t x = 0; x < groups[0]; x++)
            run(memory[0]->bytes, memory[1]->bytes, memory[2]->bytes,
                (uint32_t *)(void *)memory[3]->bytes, *job, (uint32_t)x, (uint32_t)y);
    /* In a program: of the first number of the result, as float64. */
    const size_t at = memory[0] == memory[2] ? job->out_at + 6 : memory[2]->len / 2;
    if (strikes("wrong", n)) memory[2]->bytes[at] ^= 1;
}
