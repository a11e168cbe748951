/* Implements wire/size.h. Descriptions have variable length: small numbers have short encodings. */
#include "wire/size.h"

#include "wire/message.h"
#include "wire/record.h"

bool sherd__size_counts(uint16_t type)
{
    return type == SHERD__REC_PUT || type == SHERD__REC_TASK || type == SHERD__REC_RESULT;
}

static uint64_t body(uint64_t len)
{
    return len + (len / SHERD__CHUNK + (len % SHERD__CHUNK != 0)) * SHERD__RECORD_BYTES;
}

uint64_t sherd__size_put(const sherd__fragment_info *block)
{
    uint8_t text[SHERD__CONTROL_MAX];
    return SHERD__RECORD_BYTES + sherd__message_description(text, block, NULL) + body(block->len);
}

uint64_t sherd__size_task(const sherd__task *task)
{
    uint8_t text[SHERD__CONTROL_MAX];
    return SHERD__RECORD_BYTES + sherd__message_task(text, task);
}

uint64_t sherd__size_result(const sherd__fragment_info *result, uint32_t attempt)
{
    uint8_t text[SHERD__CONTROL_MAX];
    return SHERD__RECORD_BYTES + sherd__message_description(text, result, &attempt) +
           body(result->len);
}
