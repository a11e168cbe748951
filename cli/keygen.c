/*
 * `sherd keygen FILE`: a new Ed25519 key for a node or a coordinator. The private key is written to
 * FILE (mode 0600, never over an existing file). The fingerprint is printed on stdout: the other
 * side's node file or allow-list needs it, and it is not secret.
 */
#include <unistd.h>

#include "cli/cli.h"
#include "cli/paths.h"
#include "sherd/identity.h"

static int print_fingerprint(sherd__cli *cli, const sherd_identity *id, const char *path,
                             sherd_diag *d)
{
    if (!cli->json) {
        printf("key=%s\n", sherd_identity_key(id));
        return 0;
    }
    json_t *obj = sherd__cli_json_new(cli);
    json_object_set_new(obj, "key", json_string(sherd_identity_key(id)));
    json_object_set_new(obj, "file", sherd__cli_json_text(path));
    return sherd__cli_json_end(cli, obj, d);
}

static int run_keygen(sherd__cli *cli, sherd_diag *d)
{
    const char *path = cli->args[0];
    sherd_identity *id = NULL;
    int err;
    if (sherd__opt_flag(cli, "show")) {
        err = sherd_identity_load(&id, path, d);
    } else {
        err = sherd__paths_file("keygen", path, d);
        if (!err) err = sherd_identity_new(&id, d);
        if (!err) err = sherd_identity_save(id, path, d);
    }
    if (!err) err = print_fingerprint(cli, id, path, d);
    if (!err && !sherd__opt_flag(cli, "show"))
        sherd__cli_say(cli, "wrote the private key to %s%s", path,
                       cli->json               ? ""
                       : isatty(STDOUT_FILENO) ? "; the fingerprint above is for the other side's "
                                                 "node file or allow-list"
                                               : "; its fingerprint went to standard output");
    sherd_identity_free(id);
    return err;
}

static const sherd__example examples[] = {
    { "sherd keygen node.key", "makes a key and prints its fingerprint" },
    { "sherd keygen --show node.key", "prints the fingerprint of a key that exists" },
    { "echo \"* $(sherd keygen me.key -q) role=coordinator\" >>allow.txt",
      "makes a coordinator's key and allows it" },
    { 0 },
};

/* clang-format off */
static const sherd__option options[] = {
    { .name = "show", .type = SHERD__FLAG, .flags = SHERD__OPT_ONLY_ARGV,
      .help = "print the fingerprint of an existing key" },
    { 0 },
};
/* clang-format on */

const sherd__verb sherd__verb_keygen = {
    .name = "keygen",
    .usage = "FILE",
    .summary = "make a key for a node or a coordinator",
    .details = "Writes a new Ed25519 private key to FILE (PEM, mode 0600; an existing file is "
               "never overwritten) and prints key=sha256:..., the fingerprint that the other "
               "side's node file or allow-list needs.",
    .examples = examples,
    .options = options,
    .args_min = 1,
    .args_max = 1,
    .run = run_keygen,
};
