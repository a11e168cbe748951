/* Verifies a folder of checkpoints (store/chain.h). */
#include <stdio.h>
#include <string.h>

#include "core/diag.h"
#include "core/options.h"
#include "sherd/train.h"
#include "store/chain.h"

static int check_head(const char *folder, const char *head, const char *found, sherd_diag *d)
{
    if (!head) return SHERD_OK;
    if (strlen(head) != SHERD__DIGEST_TEXT - 1 ||
        strspn(head, "0123456789abcdef") != SHERD__DIGEST_TEXT - 1)
        return sherd__fail(d, SHERD_EINVAL, "give what `sherd verify` printed, or the file head",
                           "expected 64 hexadecimal digits, found '%.80s'", head);
    if (strcmp(head, found) == 0) return SHERD_OK;
    return sherd__fail(d, SHERD_ECHAIN, NULL, "%s: ends in sha256:%s, not in sha256:%s", folder,
                       found, head);
}

int sherd_checkpoints_verify(const char *folder, const char *head, sherd_checkpoints *out,
                             sherd_diag *d)
{
    sherd__chain_report r = { 0 };
    sherd_checkpoints found = { 0 };
    int err = out ? sherd__result_check(out, "sherd_checkpoints", d) : SHERD_OK;
    if (!err) err = sherd__chain_walk(folder, &r, d);
    if (!err && r.len == 0)
        err = sherd__fail(d, SHERD_EINVAL, "name the folder that --checkpoint had",
                          "%s: has no checkpoints", folder);
    if (err) return err;
    found.checkpoints = r.len;
    snprintf(found.first, sizeof found.first, "%s", r.first.name);
    snprintf(found.last, sizeof found.last, "%s", r.last.name);
    found.step = r.last.number;
    sherd__digest_text(&r.last.hash, found.head);
    found.whole = r.whole;
    found.late = r.late;
    if (out) sherd__result_write(out, &found, sizeof found);
    return check_head(folder, head, found.head, d);
}
