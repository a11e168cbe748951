/*
 * A table of things that a peer names: each belongs to a job and has a number in it. Found by name
 * in constant time, whatever names the peer chooses (SipHash under a key that it does not know);
 * listed by job; given up a job at a time in constant time, and taken out of the table then as many
 * at a time as its owner likes. Shrinks again. What it allocates is counted where its owner says.
 *
 * Intrusive: the owner's struct begins with a sherd__grouped_item, and is the owner's to free.
 */
#ifndef CORE_GROUPED_H
#define CORE_GROUPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rand.h"
#include "sherd/err.h"

/** Secret of a table: names that collide under one key do not under another. Zero: no secret. */
typedef struct sherd__table_key {
    uint8_t bytes[16];
} sherd__table_key;

void sherd__table_key_draw(sherd__table_key *key, const sherd_entropy *entropy);

/** A memory budget. Zeroed: none. */
typedef struct sherd__budget {
    bool (*take)(void *ctx, uint64_t len); /* false: no room */
    void (*give)(void *ctx, uint64_t len);
    void *ctx;
} sherd__budget;

bool sherd__budget_take(const sherd__budget *b, uint64_t len);
void sherd__budget_give(const sherd__budget *b, uint64_t len);

/** What lies in a bucket. */
typedef struct sherd__chained {
    struct sherd__chained *chain;
    uint64_t hash;
} sherd__chained;

typedef struct sherd__buckets {
    sherd__chained **at;
    size_t cap; /* 0 or a power of two */
} sherd__buckets;

typedef struct sherd__grouped_item {
    sherd__chained chained;                  /* first */
    struct sherd__grouped_item *prev, *next; /* in its job */
    struct sherd__group *group;
    uint64_t number;
} sherd__grouped_item;

/** Zero-initialise; set key and budget before the first item. */
typedef struct sherd__grouped {
    sherd__table_key key;
    sherd__budget budget;
    size_t len; /* items that can be found */
    size_t all; /* and those of jobs given up */
    sherd__buckets items, groups;
    size_t groups_len;
    struct sherd__group *given_up;
    bool over;   /* all jobs are given up */
    size_t from; /* of groups: their first bucket with one in it, if over */
} sherd__grouped;

/** Frees the table. It must be empty. */
void sherd__grouped_fini(sherd__grouped *g);

/** The name must not be in the table. SHERD_ENOMEM: no memory, or no room in the budget. */
int sherd__grouped_add(sherd__grouped *g, sherd__grouped_item *item, uint64_t job,
                       uint64_t number) SHERD_MUST;
sherd__grouped_item *sherd__grouped_find(const sherd__grouped *g, uint64_t job, uint64_t number);
/** Takes an item out, also one of a job that was given up. */
void sherd__grouped_remove(sherd__grouped *g, sherd__grouped_item *item);

/** An item of the job, NULL where there is none; others follow by `next`. */
sherd__grouped_item *sherd__grouped_first(const sherd__grouped *g, uint64_t job);
/** From now on no item of the job is found, and its names are free; how many they are. They stay
 *  in the table until they are removed. */
size_t sherd__grouped_give_up(sherd__grouped *g, uint64_t job);
/** An item of a job that was given up, or NULL. */
sherd__grouped_item *sherd__grouped_given_up(const sherd__grouped *g);
/** All jobs, in constant time. Nothing may be added any more. */
void sherd__grouped_give_up_all(sherd__grouped *g);
bool sherd__grouped_is_given_up(const sherd__grouped *g, const sherd__grouped_item *item);

#endif
