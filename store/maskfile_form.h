/*
 * The bytes of a file of masks (store/maskfile.h): its head, and what its tags are made of. Both
 * who makes one (store/maskfile_write.c) and who uses one (store/maskfile.c) go by it.
 */
#ifndef STORE_MASKFILE_FORM_H
#define STORE_MASKFILE_FORM_H

#include "store/maskfile.h"

#define SHERD__MASKFILE_MAGIC "SHERDMSK"

enum { SHERD__MASKFILE_AT_KEY = 32, SHERD__MASKFILE_AT_TAG = 160, SHERD__MASKFILE_AT_MARK = 192 };

/** The two keys that a file's root key stands for. */
void sherd__maskfile_mask_key(uint8_t out[32], const uint8_t root[32]);
void sherd__maskfile_tag_key(uint8_t out[32], const uint8_t root[32]);

void sherd__maskfile_row_tag(uint8_t out[SHERD__MASKFILE_TAG], const uint8_t key[32], uint64_t row,
                             const uint8_t *bytes, size_t len);
/** Of the bytes before the tag. */
void sherd__maskfile_head_tag(uint8_t out[32], const uint8_t key[32], const uint8_t *head);

/** Bytes from one row to the next. */
uint64_t sherd__maskfile_stride(const sherd__maskfile_head *h);

/** All before the mark, its tag included. */
void sherd__maskfile_head_put(uint8_t out[SHERD__MASKFILE_AT_MARK], const sherd__maskfile_head *h,
                              const uint8_t root[32], const uint8_t tag_key[32]);
/** Its tag has been checked; what it says may still be of no use to us. */
void sherd__maskfile_head_get(sherd__maskfile_head *h, const uint8_t in[SHERD__MASKFILE_AT_MARK]);

#endif
