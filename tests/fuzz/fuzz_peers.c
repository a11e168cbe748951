/* Peer files: every peer that parses is written in a form that parses to the same peer. */
#include <assert.h>
#include <string.h>

#include "wire/identity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    sherd__peers p;
    sherd_diag d = { 0 };
    if (sherd__peers_parse(&p, (const char *)data, len, "fuzz", &d) != 0) {
        assert(d.code != 0 && d.message[0]);
        return 0;
    }
    for (size_t i = 0; i < p.len; i++) {
        char line[1100];
        sherd__peer back;
        bool found = false;
        assert(sherd__peer_format(&p.list[i], line, sizeof line) < (int)sizeof line);
        int err = sherd__peer_parse(&back, &found, line, "fuzz", NULL);
        assert(err == 0 && found);
        assert(strcmp(p.list[i].host, back.host) == 0 && p.list[i].port == back.port);
        assert(p.list[i].weight == back.weight && p.list[i].has_key == back.has_key);
        assert(strcmp(p.list[i].name, back.name) == 0 && strcmp(p.list[i].role, back.role) == 0);
        if (back.has_key) assert(sherd__fingerprint_equal(&p.list[i].key, &back.key));
    }
    sherd__peers_fini(&p);
    return 0;
}
