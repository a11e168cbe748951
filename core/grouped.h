/*
 * Hash table of items that a peer names by a job and a number in that job. An item is found by name
 * in constant time, whatever names the peer chooses: the hash is SipHash under a key that the peer
 * does not know. The items of one job can be listed. A job is given up in constant time; its items
 * are removed from the table later, as many at a time as the owner chooses. The table shrinks when
 * items are removed. The memory that it allocates is counted against the owner's budget.
 *
 * The table is intrusive: the owner's struct begins with a sherd__grouped_item, and the owner frees
 * it.
 */
#ifndef CORE_GROUPED_H
#define CORE_GROUPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rand.h"
#include "sherd/err.h"

/** Secret key of a table: names that collide under one key do not collide under another. A zeroed
 *  key is not secret. */
typedef struct sherd__table_key {
    uint8_t bytes[16];
} sherd__table_key;

void sherd__table_key_draw(sherd__table_key *key, const sherd__entropy *entropy);

/** A memory budget. If zeroed, there is no limit. */
typedef struct sherd__budget {
    bool (*take)(void *ctx, uint64_t len); /* false: the budget is exhausted */
    void (*give)(void *ctx, uint64_t len);
    void *ctx;
} sherd__budget;

bool sherd__budget_take(const sherd__budget *b, uint64_t len);
void sherd__budget_give(const sherd__budget *b, uint64_t len);

/** Common first member of the entries in a bucket. */
typedef struct sherd__chained {
    struct sherd__chained *chain;
    uint64_t hash;
} sherd__chained;

typedef struct sherd__buckets {
    sherd__chained **at;
    size_t cap; /* 0 or a power of two */
} sherd__buckets;

typedef struct sherd__grouped_item {
    sherd__chained chained;                  /* must be the first member */
    struct sherd__grouped_item *prev, *next; /* items of the same job */
    struct sherd__grouped_job *group;
    uint64_t number;
} sherd__grouped_item;

/** Zero-initialise it, and set key and budget before adding the first item. */
typedef struct sherd__grouped {
    sherd__table_key key;
    sherd__budget budget;
    size_t len; /* items that can be found */
    size_t all; /* len, and the items of jobs given up */
    sherd__buckets items, groups;
    size_t groups_len;
    struct sherd__grouped_job *given_up;
    bool over;   /* all jobs are given up */
    size_t from; /* if over: the first bucket of groups that is not empty */
} sherd__grouped;

/** Frees the table, which must be empty. */
void sherd__grouped_fini(sherd__grouped *g);

/** Adds an item, which must not be in the table under this name. Returns SHERD_ENOMEM if there is
 *  no memory or the budget is exhausted. */
int sherd__grouped_add(sherd__grouped *g, sherd__grouped_item *item, uint64_t job,
                       uint64_t number) SHERD_MUST;
sherd__grouped_item *sherd__grouped_find(const sherd__grouped *g, uint64_t job, uint64_t number);
/** Removes an item from the table, including an item of a job that was given up. */
void sherd__grouped_remove(sherd__grouped *g, sherd__grouped_item *item);

/** Returns one item of the job, or NULL if it has none; the others follow by `next`. */
sherd__grouped_item *sherd__grouped_first(const sherd__grouped *g, uint64_t job);
/** Gives up a job and returns the number of its items. They are no longer found and their names can
 *  be reused, but they stay in the table until they are removed. */
size_t sherd__grouped_give_up(sherd__grouped *g, uint64_t job);
/** Returns an item of a job that was given up, or NULL. */
sherd__grouped_item *sherd__grouped_given_up(const sherd__grouped *g);
/** Gives up all jobs in constant time. No item may be added afterwards. */
void sherd__grouped_give_up_all(sherd__grouped *g);
bool sherd__grouped_is_given_up(const sherd__grouped *g, const sherd__grouped_item *item);

#endif
