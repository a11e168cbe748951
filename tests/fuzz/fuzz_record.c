/* Headers: an accepted header is within its type's cap and packs to the same bytes. */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "wire/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    for (; len >= SHERD__RECORD_BYTES; data += SHERD__RECORD_BYTES, len -= SHERD__RECORD_BYTES) {
        uint8_t again[SHERD__RECORD_BYTES];
        sherd__record r;
        sherd_diag d = { 0 };
        if (sherd__record_parse(&r, data, &d)) {
            assert(d.code == SHERD_EFRAME && d.message[0]);
            continue;
        }
        assert(r.body_len <= sherd__record_cap(r.type, r.part));
        assert(sherd__record_name(r.type) || r.flags & SHERD__RECORD_OPTIONAL);
        sherd__record_pack(&r, again);
        assert(memcmp(again, data, sizeof again) == 0);
    }
    return 0;
}
