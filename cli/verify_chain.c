/* `sherd verify FOLDER`: verifies a chain of checkpoints, from its first file to its head. */
#include <string.h>
#include <sys/stat.h>

#include "cli/verify.h"
#include "core/diag.h"
#include "store/chain.h"

bool sherd__verify_is_chain(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int check_arguments(const sherd__cli *cli, const char *head, sherd_diag *d)
{
    if (cli->args_len != 1)
        return sherd__fail(d, SHERD_EINVAL, "sherd verify FOLDER",
                           "%s is a folder of checkpoints: expected nothing behind it, found "
                           "'%.60s'",
                           cli->args[0], cli->args[1]);
    if (sherd__opt_given(cli, "signer"))
        return sherd__fail(d, SHERD_EINVAL, "leave --signer out",
                           "checkpoints are not signed: --head holds them to a hash");
    size_t mark = sizeof "sha256:" - 1;
    if (!head || (strncmp(head, "sha256:", mark) == 0 && strlen(head) == mark + 64 &&
                  strspn(head + mark, "0123456789abcdef") == 64))
        return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, "give what `sherd verify` printed, or the file head",
                       "--head: expected sha256: and 64 hexadecimal digits, found '%.80s'", head);
}

static int check_head(const char *folder, const char *head, const char *hex, sherd_diag *d)
{
    if (!head || strcmp(head + sizeof "sha256:" - 1, hex) == 0) return SHERD_OK;
    return sherd__fail(d, SHERD_ECHAIN, NULL, "%s: ends in sha256:%s, not in %s", folder, hex,
                       head);
}

static int tell(sherd__cli *cli, const sherd__chain_report *r, const char *hex, int err,
                sherd_diag *d)
{
    json_t *obj = sherd__cli_json_new(cli);
    json_object_set_new(obj, "checkpoints", json_integer((json_int_t)r->len));
    json_object_set_new(obj, "first", json_string(r->first.name));
    json_object_set_new(obj, "last", json_string(r->last.name));
    json_object_set_new(obj, "step", json_integer((json_int_t)r->last.number));
    json_object_set_new(obj, "head", json_string(hex));
    json_object_set_new(obj, "whole", json_boolean(r->whole));
    return err ? sherd__cli_json_fail(cli, obj, err, d) : sherd__cli_json_end(cli, obj, d);
}

static void say(const sherd__cli *cli, const sherd__chain_report *r, const char *hex)
{
    sherd__cli_say(cli, "checkpoints: %zu, whole and in order, up to %s", r->len, r->last.name);
    if (!r->whole)
        sherd__cli_say(cli, "earlier ones have been removed: the chain begins with %s",
                       r->first.name);
    if (r->late)
        sherd__cli_say(cli, "the writer was stopped before it could name the last in head");
    sherd__cli_say(cli, "head: sha256:%s%s", hex,
                   sherd__opt_given(cli, "head") ? ", as given"
                                                 : " (kept elsewhere, --head compares it)");
}

int sherd__verify_chain(sherd__cli *cli, sherd_diag *d)
{
    const char *folder = cli->args[0], *head = sherd__opt_text(cli, "head");
    sherd__chain_report r = { 0 };
    char hex[SHERD__DIGEST_TEXT];
    int err = check_arguments(cli, head, d);
    if (err) return err;
    err = sherd__chain_walk(folder, &r, d);
    if (!err && r.len == 0)
        err = sherd__fail(d, SHERD_EINVAL, "name the folder that --checkpoint had",
                          "%s: has no checkpoints", folder);
    sherd__digest_text(&r.last.hash, hex);
    if (!err) err = check_head(folder, head, hex, d);
    if (cli->json) return tell(cli, &r, hex, err, d);
    if (!err) say(cli, &r, hex);
    return err;
}
