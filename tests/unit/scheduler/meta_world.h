/*
 * Metadata of a small network, in memory and in files of a temporary folder, for tests of metadata.
 */
#ifndef TESTS_UNIT_SCHEDULER_META_WORLD_H
#define TESTS_UNIT_SCHEDULER_META_WORLD_H

#include "sherd/meta.h"

/** Paths for the seed form, for tables, and for a file made from either; removed at the end. */
extern char meta_seeded[96], meta_tables[96], meta_other[96];
extern const uint8_t meta_seed[32];
extern const sherd_meta_settings meta_seven; /* for seven nodes */

/** Set-up and teardown of a group of tests. */
int meta_begin(void **s);
int meta_end(void **s);

/** Makes the metadata of a training step of a network with 30, 12 and 5 units from meta_seed; the
 *  caller frees it. */
sherd_meta *meta_network(const sherd_meta_settings *s, uint64_t samples);
/** Saves the metadata; checks that the file has the reported size and that only its owner may read
 *  it. */
void meta_save(sherd_meta *m, const char *path, sherd_meta_save_options opt);
/** Loads the metadata; the caller frees it. */
sherd_meta *meta_load(const char *path);
/** Fails unless both are equal in every operation. */
void meta_compare(sherd_meta *a, sherd_meta *b);

#endif
