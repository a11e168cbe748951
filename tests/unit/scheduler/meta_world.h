/*
 * Metadata of a small network, in memory and in files of a folder of their own, for tests of
 * metadata.
 */
#ifndef TESTS_UNIT_SCHEDULER_META_WORLD_H
#define TESTS_UNIT_SCHEDULER_META_WORLD_H

#include "sherd/meta.h"

/** For the seed form, tables, and what is made of one of these; removed in the end. */
extern char meta_seeded[96], meta_tables[96], meta_other[96];
extern const uint8_t meta_seed[32];
extern const sherd_meta_settings meta_seven; /* nodes */

/** A group's set-up and teardown. */
int meta_begin(void **s);
int meta_end(void **s);

/** Of a step of a network of 30, 12 and 5 units, from meta_seed; the caller's. */
sherd_meta *meta_network(const sherd_meta_settings *s, uint64_t samples);
/** Its file has the size that was told, and is nobody else's to read. */
void meta_save(sherd_meta *m, const char *path, sherd_meta_save_options opt);
/** The caller's. */
sherd_meta *meta_load(const char *path);
/** Fails unless both say the same of every operation. */
void meta_compare(sherd_meta *a, sherd_meta *b);

#endif
