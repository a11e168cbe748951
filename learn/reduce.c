/* The steps of an all-reduce. The second half is the first half in reverse order, with sums sent
   back along the same paths, so one description serves both. */
#include "learn/reduce.h"

const char *sherd__reduce_name(sherd__reduce kind)
{
    switch (kind) {
    case SHERD__REDUCE_RING: return "ring";
    case SHERD__REDUCE_HALVING: return "halving-doubling";
    }
    return NULL;
}

static uint32_t half_up(uint32_t s)
{
    return s - s / 2;
}

/* Returns the number of steps of one half. */
static uint32_t one_way(sherd__reduce kind, uint32_t n)
{
    uint32_t steps = 0;
    if (kind == SHERD__REDUCE_RING) return n - 1;
    for (uint32_t s = n; s > 1; s = half_up(s)) steps++;
    return steps;
}

uint32_t sherd__reduce_steps(sherd__reduce kind, uint32_t n)
{
    return 2 * one_way(kind, n);
}

/* Returns a + b modulo n; both are below n. */
static uint32_t onward(uint32_t a, uint32_t b, uint32_t n)
{
    return (uint32_t)(((uint64_t)a + b) % n);
}

/* Returns step `step` of the reduce-scatter; every worker ends with the sum of block `rank`. Ring:
   the sum of a block passes every worker and reaches its owner last. Halving: a worker still sums
   `had` blocks, starting with its own, and sends the upper ones to the worker that is half as far
   away. */
static sherd__reduce_step adding(sherd__reduce kind, uint32_t n, uint32_t rank, uint32_t step)
{
    uint32_t had = n, keep = half_up(n);
    if (kind == SHERD__REDUCE_RING) {
        uint32_t out = onward(rank, n - 1 - step, n);
        return (sherd__reduce_step){ .to = onward(rank, 1, n),
                                     .from = onward(rank, n - 1, n),
                                     .out = { out, 1 },
                                     .in = { onward(out, n - 1, n), 1 },
                                     .add = true };
    }
    for (; step > 0; step--) {
        had = keep;
        keep = half_up(had);
    }
    return (sherd__reduce_step){ .to = onward(rank, keep, n),
                                 .from = onward(rank, n - keep, n),
                                 .out = { onward(rank, keep, n), had - keep },
                                 .in = { rank, had - keep },
                                 .add = true };
}

sherd__reduce_step sherd__reduce_step_of(sherd__reduce kind, uint32_t n, uint32_t rank,
                                         uint32_t step)
{
    uint32_t half = one_way(kind, n);
    if (step < half) return adding(kind, n, rank, step);
    sherd__reduce_step s = adding(kind, n, rank, 2 * half - 1 - step);
    return (sherd__reduce_step){ .to = s.from, .from = s.to, .out = s.in, .in = s.out };
}

size_t sherd__reduce_at(size_t len, uint32_t n, uint32_t b)
{
    size_t more = len % n;
    return b * (len / n) + (b < more ? b : more);
}

size_t sherd__reduce_len(size_t len, uint32_t n, sherd__reduce_part part)
{
    uint32_t end = part.first + part.count;
    if (end <= n) return sherd__reduce_at(len, n, end) - sherd__reduce_at(len, n, part.first);
    return len - sherd__reduce_at(len, n, part.first) + sherd__reduce_at(len, n, end - n);
}
