/*
 * Bodies of control records: converts our structs to protobuf bytes and back (wire/messages.proto).
 * No function allocates. Encoders write at most SHERD__CONTROL_MAX bytes and return the number
 * written. Parsers check every field; on failure they return SHERD_EFRAME with the reason in *d and
 * leave *out unchanged. Text from a peer is converted to printable ASCII first.
 */
#ifndef WIRE_MESSAGE_H
#define WIRE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "wire/session.h"

size_t sherd__message_hello(uint8_t *out, const sherd__hello *h);
int sherd__message_hello_parse(sherd__hello *out, const uint8_t *body, size_t len,
                               sherd_diag *d) SHERD_MUST;

/** Returns whether all rates of a HELLO are finite and not negative, and its devices not too
 *  many. */
bool sherd__hello_rates_ok(const sherd__hello *h);

/** Encodes the first record of a PUT (attempt NULL) or of a RESULT. */
size_t sherd__message_description(uint8_t *out, const sherd__fragment_info *info,
                                  const uint32_t *attempt);
/** Parses the first record of a PUT (attempt NULL) or of a RESULT, which must have an attempt. The
 *  returned info has passed sherd__fragment_info_check. */
int sherd__message_description_parse(sherd__fragment_info *out, uint32_t *attempt,
                                     const uint8_t *body, size_t len, sherd_diag *d) SHERD_MUST;

/** Encode and parse a TASK. Job, task and attempt are sent in the record header, so the parser
 *  leaves them 0. An unknown operation is not an error here: the receiver refuses the task. */
size_t sherd__message_task(uint8_t *out, const sherd__task *t);
int sherd__message_task_parse(sherd__task *out, const uint8_t *body, size_t len,
                              sherd_diag *d) SHERD_MUST;

/** Encode and parse a REFUSE. Job, number and attempt are sent in the record header, as for TASK.
 *  The parser sets block or task to 1 to show which of the two the number in the header is. */
size_t sherd__message_refuse(uint8_t *out, const sherd__refusal *r);
int sherd__message_refuse_parse(sherd__refusal *out, const uint8_t *body, size_t len,
                                sherd_diag *d) SHERD_MUST;

/** Encode and parse a BYE. When parsing, text has SHERD__TEXT_MAX bytes. code is 0 (done) or
 *  SHERD_E*. */
size_t sherd__message_bye(uint8_t *out, int code, const char *text);
int sherd__message_bye_parse(int *code, char *text, const uint8_t *body, size_t len,
                             sherd_diag *d) SHERD_MUST;

#endif
