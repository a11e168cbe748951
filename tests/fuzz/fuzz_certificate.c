/* Certificates: only a signed one parses, and every failure gives its reason. */
#include <assert.h>
#include <stdlib.h>

#include "store/certificate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    sherd__certificate *c = malloc(sizeof *c);
    sherd_diag d = { 0 };
    assert(c);
    int err = sherd__certificate_parse(c, (const char *)data, len, "fuzz", &d);
    if (err) assert(d.code == err && d.message[0]);
    else
        assert(c->has_signature && c->inputs_len >= 1 && c->inputs_len <= 2 &&
               c->list_len <= SHERD__CERTIFICATE_NODES);
    if (!err) sherd__certificate_fini(c);
    free(c);
    return 0;
}
