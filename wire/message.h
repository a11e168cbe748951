/*
 * Bodies of the control records: our structs to protobuf bytes and back (wire/messages.proto).
 * Nothing here allocates. Encoders write at most SHERD__CONTROL_MAX bytes and return how many;
 * parsers check every field and answer SHERD_EFRAME with the reason in *d, *out then untouched.
 * Text that came from a peer is made printable ASCII before anybody sees it.
 */
#ifndef WIRE_MESSAGE_H
#define WIRE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "wire/session.h"

size_t sherd__message_hello(uint8_t *out, const sherd__hello *h);
int sherd__message_hello_parse(sherd__hello *out, const uint8_t *body, size_t len,
                               sherd_diag *d) SHERD_MUST;

/** The first record of a PUT (attempt NULL) or a RESULT. */
size_t sherd__message_description(uint8_t *out, const sherd__fragment_info *info,
                                  const uint32_t *attempt);
/** attempt is NULL for a PUT, which has none; a RESULT must have one. The info passed
 *  sherd__fragment_info_check. */
int sherd__message_description_parse(sherd__fragment_info *out, uint32_t *attempt,
                                     const uint8_t *body, size_t len, sherd_diag *d) SHERD_MUST;

/** job, task and attempt travel in the header: the parser leaves them 0. An operation that is not
 *  known is no error here: the receiver refuses the task. */
size_t sherd__message_task(uint8_t *out, const sherd__task *t);
int sherd__message_task_parse(sherd__task *out, const uint8_t *body, size_t len,
                              sherd_diag *d) SHERD_MUST;

/** As for TASK: job, number and attempt travel in the header. The parser sets block or task to 1 to
 *  say which of them the header's number is. */
size_t sherd__message_refuse(uint8_t *out, const sherd__refusal *r);
int sherd__message_refuse_parse(sherd__refusal *out, const uint8_t *body, size_t len,
                                sherd_diag *d) SHERD_MUST;

/** text has SHERD__TEXT_MAX bytes on parsing. code is 0 (done) or SHERD_E*. */
size_t sherd__message_bye(uint8_t *out, int code, const char *text);
int sherd__message_bye_parse(int *code, char *text, const uint8_t *body, size_t len,
                             sherd_diag *d) SHERD_MUST;

#endif
