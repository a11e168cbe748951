/* Streams as a coordinator and a node would have recorded them, made by hand, and folders that
 * contain them. */
#ifndef TESTS_AUDIT_SPOOL_H
#define TESTS_AUDIT_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "crypto/fragment.h"

typedef struct spool {
    uint8_t bytes[1 << 20];
    size_t len;
} spool;

void spool_record(spool *s, uint16_t type, uint64_t job, uint32_t number, uint32_t part,
                  const void *body, size_t len);
void spool_hello(spool *s);
void spool_welcome(spool *s);
/** Appends part 0 of a PUT only. */
void spool_head(spool *s, uint64_t job, uint32_t number, const sherd__fragment_info *info);
/** Appends a PUT with all its parts. */
void spool_put(spool *s, uint64_t job, uint32_t number, const sherd__fragment_info *info,
               const void *body);
/** Appends a multiply task; primes NULL and 0: in doubles. */
void spool_task(spool *s, uint64_t job, uint32_t number, uint32_t left, uint32_t right,
                const uint32_t *primes, uint32_t primes_len, const sherd__fragment_info *result);
/** Describes one dense group of bytes in *info and writes its table and values to body; returns
 *  info.len. */
size_t spool_group(sherd__fragment_info *info, const uint8_t *values, uint32_t rows, uint32_t cols,
                   uint8_t *body);

/** Creates an empty folder for a record under /tmp, which is removed at exit, and returns its
 *  path. */
const char *spool_folder(void);
/** Writes one peer's files (no index). */
void spool_file(const char *dir, const char *name, const void *bytes, size_t len);

#endif
