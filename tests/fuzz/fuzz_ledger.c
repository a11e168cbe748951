/*
 * Privacy ledgers. A ledger that opens can be charged, and opened again with that charge in it;
 * costs are never negative and never decrease.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/ledger.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static char path[96];

static void clean(void)
{
    unlink(path);
}

static void begin(void)
{
    const char *tmp = getenv("TMPDIR");
    if (*path) return;
    bool shm = access("/dev/shm", W_OK) == 0;
    snprintf(path, sizeof path, "%s/ledger-XXXXXX",
             shm                       ? "/dev/shm"
             : tmp && strlen(tmp) < 40 ? tmp
                                       : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0 || atexit(clean) != 0) abort();
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const uint8_t keys[2][SHERD__LEDGER_KEY] = { { 1 }, { 2 } };
    sherd__ledger *l = NULL;
    begin();
    int fd = open(path, O_WRONLY | O_TRUNC);
    if (fd < 0 || write(fd, data, len) != (ssize_t)len) abort();
    close(fd);
    if (sherd__ledger_open(&l, path, false, NULL)) return 0;
    const sherd__ledger_sum was = sherd__ledger_all(l);
    double before = sherd__ledger_spent(l, 5, 100);
    assert(was.rho >= before && before >= 0);
    sherd__ledger_upload u = { .day = 20000,
                               .job = 3,
                               .first = 7,
                               .rows = 9,
                               .rho = 0.5,
                               .about = { 9 },
                               .keys = keys,
                               .nodes = 2,
                               .threshold = 2 };
    uint64_t job = sherd__ledger_job(l, u.by, 3);
    assert(sherd__ledger_charge(l, &u, NULL) == 0);
    const uint8_t *opened = sherd__ledger_known_of(l, u.about).opened;
    bool other = opened && memcmp(opened, keys[0], sizeof keys[0]) != 0;
    assert(sherd__ledger_bind(l, u.about, keys[0], NULL) == (other ? SHERD_EEXPOSURE : 0));
    sherd__ledger_close(l);
    assert(sherd__ledger_open(&l, path, false, NULL) == 0);
    assert(sherd__ledger_all(l).uploads == was.uploads + 1);
    assert(sherd__ledger_job(l, u.by, 3) == job + 1);
    assert(sherd__ledger_spent(l, 5, 100) >= before && sherd__ledger_spent(l, 7, 9) >= 0.5);
    const sherd__ledger_known k = sherd__ledger_known_of(l, u.about);
    assert(k.nodes == 2 && k.threshold == 2 && !memcmp(k.keys, keys, sizeof keys));
    assert(k.opened && !memcmp(k.opened, keys[0], sizeof keys[0]) == !other);
    sherd__ledger_close(l);
    return 0;
}
