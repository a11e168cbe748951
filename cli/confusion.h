/* Confusion matrices as text of 80 columns and as JSON. */
#ifndef CLI_CONFUSION_H
#define CLI_CONFUSION_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sherd/model.h"

typedef struct sherd__confusion {
    const sherd_model *model; /* its outputs are the classes */
    const char *of;           /* which examples: "validation" */
    uint64_t *counts;         /* outputs x outputs: a row for each label; NULL: no matrix */
} sherd__confusion;

/** Writes the name of class i, or its number, at most `most` columns wide. A name of several bytes
 *  a character is never cut within one. Returns out. */
const char *sherd__class_name(const sherd_model *m, size_t i, int most, char out[96]);
/** Prints it: a row for each label, or if that is too wide, the most frequent mistakes. */
void sherd__confusion_print(const sherd__confusion *c, FILE *to);
/** Returns an object: of, classes (names; absent if they are numbers) and counts, all of them. */
json_t *sherd__confusion_json(const sherd__confusion *c);

#endif
