/*
 * One 64-bit word holds the number of the loop, its count of indices and the next index. A thread
 * takes an index by incrementing the next index with a compare-and-swap. A thread that wakes up
 * after the end of a loop, or in a later loop, therefore takes nothing, and the caller does not
 * wait for threads that took nothing. A thread reads the loop's function and context only while it
 * has an index: they cannot change before that index is done. Threads spin for some tens of
 * microseconds before they sleep, since passes of training follow each other closely; the caller
 * spins likewise for the last index.
 */
#include "core/team.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/alloc.h"
#include "core/subnormal.h"

#define SPINS 20000 /* 30 to 60 microseconds */
/* The word: 24 bits of loop number, 20 of count, 20 of next index. */
#define BITS 20
#define MOST (((size_t)1 << BITS) - 1)

typedef struct worker {
    sherd__team *team;
    unsigned number;
    pthread_t thread;
} worker;

struct sherd__team {
    _Atomic uint64_t word;
    atomic_size_t done;
    atomic_bool stop, waiting; /* waiting: the caller sleeps until all are done */
    atomic_uint sleepers;
    void (*fn)(void *ctx, size_t i, unsigned thread);
    void *ctx;
    size_t base; /* offset of the current part's first index */
    bool flush;  /* the caller's sherd__subnormal_flushed */
    pthread_mutex_t lock;
    pthread_cond_t more, over;
    unsigned threads, started; /* both include the caller */
    bool launched;
    worker workers[];
};

static size_t count_of(uint64_t word)
{
    return (size_t)(word >> BITS) & MOST;
}

static size_t next_of(uint64_t word)
{
    return (size_t)word & MOST;
}

static bool open(uint64_t word)
{
    return next_of(word) < count_of(word);
}

static inline void pause_a_little(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Takes and runs indices until there are none left. */
static void take(sherd__team *t, unsigned number)
{
    uint64_t word = atomic_load(&t->word);
    while (open(word)) {
        if (!atomic_compare_exchange_weak(&t->word, &word, word + 1)) continue;
        size_t count = count_of(word);
        if (number > 0) (void)sherd__subnormal_flush(t->flush);
        t->fn(t->ctx, t->base + next_of(word), number);
        if (atomic_fetch_add(&t->done, 1) + 1 == count && atomic_load(&t->waiting)) {
            pthread_mutex_lock(&t->lock);
            pthread_cond_signal(&t->over);
            pthread_mutex_unlock(&t->lock);
        }
        word = atomic_load(&t->word);
    }
}

static bool idle(sherd__team *t)
{
    return !open(atomic_load(&t->word)) && !atomic_load(&t->stop);
}

static void *work(void *arg)
{
    worker *w = arg;
    sherd__team *t = w->team;
    while (!atomic_load(&t->stop)) {
        take(t, w->number);
        for (int i = 0; i < SPINS && idle(t); i++) pause_a_little();
        if (!idle(t)) continue;
        pthread_mutex_lock(&t->lock);
        atomic_fetch_add(&t->sleepers, 1);
        while (idle(t)) pthread_cond_wait(&t->more, &t->lock);
        atomic_fetch_sub(&t->sleepers, 1);
        pthread_mutex_unlock(&t->lock);
    }
    return NULL;
}

int sherd__team_new(sherd__team **out, unsigned threads)
{
    if (threads == 0) threads = 1;
    if (threads > SHERD__TEAM_MOST) threads = SHERD__TEAM_MOST;
    sherd__team *t = sherd__calloc(1, sizeof *t + threads * sizeof *t->workers);
    *out = t;
    if (!t) return SHERD_ENOMEM;
    t->threads = threads;
    t->started = 1;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->more, NULL);
    pthread_cond_init(&t->over, NULL);
    return SHERD_OK;
}

void sherd__team_free(sherd__team *t)
{
    if (!t) return;
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->stop, true);
    pthread_cond_broadcast(&t->more);
    pthread_mutex_unlock(&t->lock);
    for (unsigned i = 1; i < t->started; i++) pthread_join(t->workers[i].thread, NULL);
    pthread_cond_destroy(&t->over);
    pthread_cond_destroy(&t->more);
    pthread_mutex_destroy(&t->lock);
    sherd__free(t);
}

unsigned sherd__team_threads(const sherd__team *t)
{
    return t ? t->threads : 1;
}

static void start_threads(sherd__team *t)
{
    t->launched = true;
    for (unsigned i = 1; i < t->threads; i++) {
        worker *w = &t->workers[i];
        *w = (worker){ .team = t, .number = i };
        if (pthread_create(&w->thread, NULL, work, w) != 0) return;
        t->started = i + 1;
    }
}

/* Runs at most MOST indices, from `base` on. */
static void run_part(sherd__team *t, size_t count)
{
    atomic_store(&t->done, 0);
    uint64_t loop = (atomic_load(&t->word) >> 2 * BITS) + 1;
    atomic_store(&t->word, loop << 2 * BITS | (uint64_t)count << BITS);
    if (atomic_load(&t->sleepers) > 0) {
        pthread_mutex_lock(&t->lock);
        pthread_cond_broadcast(&t->more);
        pthread_mutex_unlock(&t->lock);
    }
    take(t, 0);
    for (int i = 0; i < SPINS && atomic_load(&t->done) < count; i++) pause_a_little();
    if (atomic_load(&t->done) == count) return;
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->waiting, true);
    while (atomic_load(&t->done) < count) pthread_cond_wait(&t->over, &t->lock);
    atomic_store(&t->waiting, false);
    pthread_mutex_unlock(&t->lock);
}

void sherd__team_run(sherd__team *t, size_t count, void (*fn)(void *ctx, size_t i, unsigned thread),
                     void *ctx)
{
    if (!t || t->threads == 1 || count <= 1) {
        for (size_t i = 0; i < count; i++) fn(ctx, i, 0);
        return;
    }
    if (!t->launched) start_threads(t);
    t->fn = fn;
    t->ctx = ctx;
    t->flush = sherd__subnormal_flushed();
    for (t->base = 0; t->base < count; t->base += MOST)
        run_part(t, count - t->base < MOST ? count - t->base : MOST);
}
