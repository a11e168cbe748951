/* `sherd version`: the versions of sherd and of the libraries loaded into this process. */
#include "sherd/version.h"

#include "cli/cli.h"
#include "sherd/machine.h"

static int run_version(sherd__cli *cli, sherd_diag *d)
{
    char text[64];
    sherd_machine m = { .size = sizeof m };
    int err = sherd_machine_get(&m, d);
    if (err) return err;
    json_t *obj = cli->json ? sherd__cli_json_new(cli) : NULL, *libraries = json_object();
    if (!obj) printf("sherd %s\n", sherd_version());
    for (size_t i = 0; sherd_library_name(i); i++) {
        sherd_library_version(i, text, sizeof text);
        if (!obj) printf("%-10s %s\n", sherd_library_name(i), text);
        json_object_set_new(libraries, sherd_library_name(i), json_string(text));
    }
    if (!obj) {
        printf("%-10s %s\n", "blas core", m.blas_core);
        json_decref(libraries);
        return 0;
    }
    json_object_set_new(obj, "version", json_string(sherd_version()));
    json_object_set_new(obj, "libraries", libraries);
    json_object_set_new(obj, "blas_core", json_string(m.blas_core));
    return sherd__cli_json_end(cli, obj, d);
}

static const sherd__example examples[] = {
    { "sherd version", "versions of sherd and of the libraries in use" },
    { "sherd version --json", "the same as one JSON object" },
    { "sherd --version", "the same as `sherd version`" },
    { 0 },
};

const sherd__verb sherd__verb_version = {
    .name = "version",
    .summary = "print the versions of sherd and of the libraries in use",
    .examples = examples,
    .run = run_version,
};
