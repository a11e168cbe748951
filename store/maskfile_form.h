/*
 * The binary format of a file of masks (store/maskfile.h): its head, and the inputs of its tags.
 * Used for writing (store/maskfile_write.c) and for reading (store/maskfile.c).
 */
#ifndef STORE_MASKFILE_FORM_H
#define STORE_MASKFILE_FORM_H

#include "store/maskfile.h"

#define SHERD__MASKFILE_MAGIC "SHERDMSK"

enum { SHERD__MASKFILE_AT_KEY = 32, SHERD__MASKFILE_AT_TAG = 160, SHERD__MASKFILE_AT_MARK = 192 };

/** Derive the two keys of a file from its root key. */
void sherd__maskfile_mask_key(uint8_t out[32], const uint8_t root[32]);
void sherd__maskfile_tag_key(uint8_t out[32], const uint8_t root[32]);

void sherd__maskfile_row_tag(uint8_t out[SHERD__MASKFILE_TAG], const uint8_t key[32], uint64_t row,
                             const uint8_t *bytes, size_t len);
/** Computes the tag of the bytes before it. */
void sherd__maskfile_head_tag(uint8_t out[32], const uint8_t key[32], const uint8_t *head);

/** Returns the distance between two rows in bytes. */
uint64_t sherd__maskfile_stride(const sherd__maskfile_head *h);

/** Writes everything before the mark, including the head's tag. */
void sherd__maskfile_head_put(uint8_t out[SHERD__MASKFILE_AT_MARK], const sherd__maskfile_head *h,
                              const uint8_t root[32], const uint8_t tag_key[32]);
/** Parses a head. The caller has checked its tag, and must still check the values. */
void sherd__maskfile_head_get(sherd__maskfile_head *h, const uint8_t in[SHERD__MASKFILE_AT_MARK]);

#endif
