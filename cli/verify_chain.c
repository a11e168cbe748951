/* `sherd verify FOLDER`: verifies a chain of checkpoints, from its first file to its head. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/fields.h"
#include "cli/verify.h"
#include "core/diag.h"
#include "sherd/train.h"

bool sherd__verify_is_chain(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int check_arguments(const sherd__cli *cli, sherd_diag *d)
{
    if (cli->args_len != 1)
        return sherd__fail(d, SHERD_EINVAL, "sherd verify FOLDER",
                           "%s is a folder of checkpoints: expected no argument after it, found "
                           "'%.60s'",
                           cli->args[0], cli->args[1]);
    if (sherd__opt_given(cli, "signer"))
        return sherd__fail(d, SHERD_EINVAL, "leave --signer out",
                           "checkpoints are not signed: --head compares them with a hash");
    return 0;
}

static void say(const sherd__cli *cli, const sherd_checkpoints *r, bool given)
{
    sherd__cli_say(cli, "checkpoints: %" PRIu64 ", complete and in order, up to %s", r->checkpoints,
                   r->last);
    if (!r->whole)
        sherd__cli_say(cli, "earlier ones have been removed: the chain begins with %s", r->first);
    if (r->late) sherd__cli_say(cli, "the writer was stopped before it named the last one in head");
    sherd__cli_say(cli, "head: sha256:%s%s", r->head,
                   given ? ", as given" : " (keep it elsewhere: --head compares it)");
}

int sherd__verify_chain(sherd__cli *cli, sherd_diag *d)
{
    static const char *const without[] = { "late", NULL };
    sherd_checkpoints r = { .size = sizeof r };
    const char *head = sherd__opt_text(cli, "head");
    memset(r.head, '0', sizeof r.head - 1); /* printed if the chain is broken */
    int err = check_arguments(cli, d);
    if (err) return err;
    err = sherd_checkpoints_verify(cli->args[0], head, &r, d);
    if (!cli->json) {
        if (!err) say(cli, &r, head);
        return err;
    }
    json_t *obj = sherd__cli_json_new(cli);
    sherd__fields_json(obj, &r, sherd_checkpoints_fields, without);
    return err ? sherd__cli_json_fail(cli, obj, err, d) : sherd__cli_json_end(cli, obj, d);
}
