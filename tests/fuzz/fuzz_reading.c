/* The audit's reader of recorded streams, for any bytes. */
#include <assert.h>
#include <stdint.h>

#include "audit/reading.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t at = 0;
    sherd__reading r;
    for (;;) {
        size_t before = at;
        int got = sherd__reading_next(data, size, &at, &r);
        if (got == 0) break;
        if (got < 0) {
            assert(at == before);
            at = sherd__reading_resume(data, size, at + 1, SHERD__READ_HELLO);
            assert(at > before && at <= size);
            continue;
        }
        assert(at > before && at <= size && r.body + r.len == data + at);
        sherd__fragment_info info;
        sherd__reading_task task;
        uint32_t attempt;
        if (r.type == SHERD__READ_PUT &&
            sherd__reading_description(r.body, r.len, &info, &attempt) == 0)
            assert(info.primes <= SHERD__READ_PRIMES);
        if (r.type == SHERD__READ_TASK && sherd__reading_task_of(r.body, r.len, &task) == 0)
            assert(task.primes_len <= SHERD__READ_PRIMES);
    }
    return 0;
}
