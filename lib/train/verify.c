/* Verifies a folder of checkpoints (store/chain.h). */
#include <stdio.h>
#include <string.h>

#include "core/diag.h"
#include "core/options.h"
#include "sherd/train.h"
#include "store/chain.h"

#define DIGITS (SHERD__DIGEST_TEXT - 1)

/* Sets *digits to the hash's digits; NULL: none is given. */
static int read_head(const char **digits, const char *head, sherd_diag *d)
{
    static const char mark[] = "sha256:";
    bool marked = head && strncmp(head, mark, sizeof mark - 1) == 0;
    *digits = marked ? head + sizeof mark - 1 : head;
    if (!head || (strlen(*digits) == DIGITS && strspn(*digits, "0123456789abcdef") == DIGITS))
        return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL,
                       "give what `sherd verify` printed, or the contents of the "
                       "file head",
                       "--head: expected sha256: and 64 hexadecimal digits, found '%.80s'", head);
}

int sherd_checkpoints_verify(const char *folder, const char *head, sherd_checkpoints *out,
                             sherd_diag *d)
{
    sherd__chain_report r = { 0 };
    sherd_checkpoints found = { 0 };
    const char *digits;
    int err = out ? sherd__result_check(out, "sherd_checkpoints", d) : SHERD_OK;
    if (!err) err = read_head(&digits, head, d);
    if (!err) err = sherd__chain_walk(folder, &r, d);
    if (!err && r.len == 0) /* all of them may have been removed */
        err = sherd__fail(d, SHERD_ECHAIN, "name the folder that --checkpoint had",
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
    if (!digits || strcmp(digits, found.head) == 0) return SHERD_OK;
    return sherd__fail(d, SHERD_ECHAIN, NULL, "%s: ends in sha256:%s, not in sha256:%s", folder,
                       found.head, digits);
}
