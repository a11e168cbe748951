/*
 * `sherd verify CERT.json A.npy [B.npy] C.npy`: checks that the matrices are those of the
 * certificate and that the result is correct (sherd/certificate.h). `sherd verify FOLDER` is in
 * cli/verify_chain.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli/fields.h"
#include "cli/operands.h"
#include "cli/verify.h"
#include "cli/work.h"
#include "sherd/certificate.h"

typedef struct verification {
    sherd_certificate *certificate;
    sherd_certificate_info info;
    sherd__operand_file in[3]; /* inputs, then the result */
    unsigned len;
    bool checked; /* check is set */
    sherd_check check;
    sherd_distance distance;
} verification;

/* ---- matrices -------------------------------------------------------------------------------- */

/* A vector is a row, or a column where the certificate has as many rows. */
static int open_all(verification *v, const sherd__cli *cli, sherd_diag *d)
{
    if (cli->args_len != (int)v->len + 1)
        return sherd__fail(d, SHERD_EINVAL, "sherd verify CERT.json A.npy [B.npy] C.npy",
                           "%s certifies %s (operands: %u): expected %u files besides it, found %d",
                           cli->args[0], v->info.operation, v->info.inputs, v->len,
                           cli->args_len - 1);
    for (unsigned i = 0; i < v->len; i++) {
        sherd_certificate_matrix m = { .size = sizeof m };
        int err = sherd_certificate_matrix_at(v->certificate, i, &m, d);
        if (!err) err = sherd__operand_file_open(&v->in[i], cli->args[1 + i], m.rows != 1, d);
        if (err) return err;
    }
    return 0;
}

/* A file that changed meanwhile is reported first: nothing can be said of its values. */
static int check_files(const verification *v, int err, sherd_diag *d)
{
    for (unsigned i = 0; i < v->len; i++) {
        sherd_diag changed = { 0 };
        if (sherd_array_check(v->in[i].file, &changed) == 0) continue;
        *d = changed;
        return changed.code;
    }
    return err;
}

static int check(verification *v, const sherd__cli *cli, sherd_diag *d)
{
    sherd_view matrices[3];
    sherd_verify_options opt = { .size = sizeof opt,
                                 .signer = sherd__opt_text(cli, "signer"),
                                 .hooks = { .interrupted = sherd__cli_stops } };
    for (unsigned i = 0; i < v->len; i++) {
        matrices[i] = v->in[i].view;
        opt.names[i] = v->in[i].path;
    }
    v->check = (sherd_check){ .size = sizeof v->check, .seconds = -1 };
    int err = sherd_certificate_verify(v->certificate, matrices, v->len, &opt, &v->check, d);
    v->checked = v->check.seconds >= 0;
    sherd_check_options how = { .size = sizeof how, .hooks = opt.hooks };
    v->distance.size = sizeof v->distance;
    if (!err && v->info.mode == SHERD_MODE_EXACT) {
        err = sherd_certificate_options(v->certificate, &how, d);
        if (!err)
            err = sherd_check_distance(matrices[0], matrices[1], matrices[2], &how, &v->distance,
                                       d);
    }
    return err && err != SHERD_EDIFFERS ? err : check_files(v, err, d);
}

/* ---- output ---------------------------------------------------------------------------------- */

/* Prints the certificate's statement about the coordinator's own check of the nodes' answers. */
static void say_check(const sherd_certificate_info *c, const sherd__cli *cli)
{
    if (strcmp(c->method, "sample") == 0)
        sherd__cli_say(cli,
                       "the coordinator states that it recomputed a sample of every answer: one "
                       "wrong entry was missed with probability %.2g",
                       c->sample_missed_ppm * 1e-6);
    else if (c->freivalds_error_log2 < 0 && c->freivalds_modulus_bits < 61)
        sherd__cli_say(cli,
                       "the coordinator states that it checked every answer (Freivalds, trials: "
                       "%" PRIu32 ", modulo each prime): a wrong one passed with probability "
                       "2^%" PRId32,
                       c->freivalds_trials, c->freivalds_error_log2);
    else if (c->freivalds_error_log2 < 0)
        sherd__cli_say(cli,
                       "the coordinator states that it checked every answer (Freivalds, trials: "
                       "%" PRIu32 ", modulo 2^%" PRIu32 "-1): a wrong one passed with "
                       "probability 2^%" PRId32,
                       c->freivalds_trials, c->freivalds_modulus_bits, c->freivalds_error_log2);
    else
        sherd__cli_say(cli, "the coordinator states that it checked every answer for gross errors "
                            "(Freivalds with real weights and a tolerance)");
}

/* Returns whether the scheme is known, and private. */
static bool is_private(const char *name)
{
    const sherd_scheme_info *s;
    for (size_t i = 0; (s = sherd_scheme_at(i)); i++)
        if (strcmp(s->name, name) == 0) return sherd_scheme_private(s->scheme);
    return false;
}

static void say_scheme(const sherd_certificate_info *c, const sherd__cli *cli)
{
    if (c->colluding && is_private(c->scheme))
        sherd__cli_say(cli, "scheme: %s, against any %" PRIu32 " of %" PRIu32 " domains together",
                       c->scheme, c->colluding, c->domains);
    else sherd__cli_say(cli, "scheme: %s, which claims no privacy", c->scheme);
}

static void say_result(const verification *v, const sherd__cli *cli)
{
    const sherd_check *x = &v->check;
    char t[24], far[200], out[96], nan[96];
    sherd__work_nan_text(x, nan);
    if (x->judged == SHERD_JUDGED_BITS)
        sherd__cli_say(cli,
                       "equal: yes, bit for bit (%" PRIu64 " entries, computed locally in %s)%s",
                       x->entries, sherd__cli_seconds(x->seconds, t), nan);
    else
        sherd__cli_say(cli,
                       "equal: yes, within gamma_k |A||B| in every entry%s%s; largest difference "
                       "%.3g; computed locally in %s",
                       sherd__work_unjudged_text(x, out), nan, x->max_abs,
                       sherd__cli_seconds(x->seconds, t));
    if (v->info.mode == SHERD_MODE_EXACT)
        sherd__cli_say(cli, "%s", sherd__work_distance_text(&v->distance, far));
}

static void say(const verification *v, const sherd__cli *cli)
{
    const sherd_certificate_info *c = &v->info;
    sherd__cli_say(cli, "signed by %s%s", c->signer,
                   sherd__opt_given(cli, "signer") ? "" : " (--signer compares it with yours)");
    sherd__cli_say(cli, "digests: %s",
                   c->inputs_compared ? "inputs and result are the certified ones"
                                      : "the result is the certified one; the certificate has no "
                                        "digests of the inputs");
    say_result(v, cli);
    say_check(c, cli);
    say_scheme(c, cli);
    if (c->domains_simulated) sherd__cli_say(cli, "domains: simulated on one host");
    for (uint32_t i = 0; i < c->nodes_listed; i++) {
        sherd_certificate_node n = { .size = sizeof n };
        if (sherd_certificate_node_at(v->certificate, i, &n, NULL) == 0)
            sherd__cli_note(cli, "node %s of domain %s, key=%s", n.name, n.domain, n.key);
    }
    for (uint32_t i = 0; i < c->warnings; i++)
        sherd__cli_say(cli, "the certificate warns: %s",
                       sherd_certificate_warning_at(v->certificate, i));
}

/* Makes an empty array if the certificate does not name the nodes. */
static json_t *nodes_array(const verification *v)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < v->info.nodes_listed; i++) {
        sherd_certificate_node n = { .size = sizeof n };
        if (sherd_certificate_node_at(v->certificate, i, &n, NULL) == 0)
            json_array_append_new(all,
                                  sherd__fields_object(&n, sherd_certificate_node_fields, NULL));
    }
    return all;
}

static json_t *result_object(const verification *v, const sherd__cli *cli)
{
    static const char *const about[] = { "signer",          "operation",         "mode",
                                         "scheme",          "colluding",         "primes",
                                         "inputs_compared", "domains_simulated", NULL };
    static const char *const strength[] = { "method",
                                            "freivalds_trials",
                                            "freivalds_modulus_bits",
                                            "freivalds_error_log2",
                                            "sample_missed_ppm",
                                            NULL };
    static const char *const found[] = { "equal",    "judged", "entries", "bit_equal",
                                         "unjudged", "nan",    "seconds", NULL };
    json_t *obj = sherd__cli_json_new(cli), *warnings = json_array(), *part = json_object();
    sherd__fields_json_of(obj, &v->info, sherd_certificate_info_fields, about);
    sherd__fields_json_of(part, &v->info, sherd_certificate_info_fields, strength);
    json_object_set_new(obj, "nodes", nodes_array(v));
    json_object_set_new(obj, "verification", part);
    json_object_set_new(obj, "warnings", warnings);
    for (uint32_t i = 0; i < v->info.warnings; i++)
        json_array_append_new(warnings,
                              json_string(sherd_certificate_warning_at(v->certificate, i)));
    if (!v->checked) return obj;
    sherd__fields_json_of(obj, &v->check, sherd_check_fields, found);
    if (v->info.mode != SHERD_MODE_EXACT || !v->check.equal) return obj;
    json_object_set_new(obj, "from_float64",
                        sherd__fields_object(&v->distance, sherd_distance_fields, NULL));
    return obj;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int check_arguments(const sherd__cli *cli, sherd_diag *d)
{
    if (access(cli->args[0], R_OK) != 0)
        return sherd__fail(d, SHERD_EOPEN, "check the path and its permissions",
                           "%s: cannot open: %s", cli->args[0], strerror(errno));
    if (cli->args_len < 3)
        return sherd__fail(d, SHERD_EINVAL,
                           "sherd verify CERT.json A.npy [B.npy] C.npy, or a "
                           "folder of checkpoints",
                           "%s: expected the certificate's matrices after it, found %d",
                           cli->args[0], cli->args_len - 1);
    if (sherd__opt_given(cli, "head"))
        return sherd__fail(d, SHERD_EINVAL,
                           "leave --head out: --signer names the key of a certificate",
                           "--head is for checkpoints: %s is not a folder", cli->args[0]);
    return 0;
}

static int verify(sherd__cli *cli, sherd_diag *d)
{
    verification v = { .info = { .size = sizeof v.info } };
    int err = check_arguments(cli, d);
    if (!err) err = sherd_certificate_load(&v.certificate, cli->args[0], d);
    if (err) return err;
    err = sherd_certificate_get(v.certificate, &v.info, d);
    v.len = v.info.inputs + 1;
    if (!err) err = sherd_certificate_accept(v.certificate, sherd__opt_text(cli, "signer"), d);
    if (!err) err = open_all(&v, cli, d);
    if (!err) err = check(&v, cli, d);
    if (cli->json)
        err = err ? sherd__cli_json_fail(cli, result_object(&v, cli), err, d)
                  : sherd__cli_json_end(cli, result_object(&v, cli), d);
    else if (!err) say(&v, cli);
    for (unsigned i = 0; i < 3; i++) sherd__operand_file_close(&v.in[i]);
    sherd_certificate_free(v.certificate);
    return err;
}

static int run_verify(sherd__cli *cli, sherd_diag *d)
{
    int err = sherd__verify_is_chain(cli->args[0]) ? sherd__verify_chain(cli, d) : verify(cli, d);
    if (err != SHERD_EINVAL) cli->verdict = err ? "NOT VERIFIED" : "VERIFIED";
    return err;
}

static const sherd__example examples[] = {
    { "sherd verify C.json A.npy B.npy C.npy",
      "checks signature and digests and computes C again" },
    { "sherd verify C.json A.npy B.npy C.npy --signer key=sha256:...",
      "the same, if this coordinator signed the certificate" },
    { "sherd verify S.json A.npy S.npy --json", "an element-wise result, as JSON" },
    { "sherd verify run --head sha256:...", "the checkpoints of a training, up to this head" },
    { 0 },
};

/* clang-format off */
static const sherd__option options[] = {
    { .name = "signer", .type = SHERD__TEXT, .arg = "KEY",
      .help = "accept only this coordinator's signature: key=sha256:..." },
    { .name = "head", .type = SHERD__TEXT, .arg = "HASH",
      .help = "checkpoints: accept only a chain that ends in the file with this hash, sha256:..." },
    { 0 },
};
/* clang-format on */

const sherd__verb sherd__verb_verify = {
    .name = "verify",
    .usage = "CERT.json A.npy [B.npy] C.npy | FOLDER",
    .summary = "check a certificate by computing its result again, or a chain of checkpoints",
    .details =
        "Checks the certificate's signature, compares the digests of the matrices with it, and "
        "computes the operation locally as the certificate specifies it: exact results must agree "
        "bit for bit, float products within gamma_k |A||B| in every entry; otherwise the exit code "
        "is 9. A signature that does not match is exit 6. Without --signer any key may have "
        "signed; its fingerprint is printed. The last line is VERIFIED or NOT VERIFIED, "
        "unless the command is used wrongly (exit 2).\n\n"
        "In a folder of checkpoints each file is read completely and compared with the hash of it "
        "in the next one, and the last one with the file `head`: damaged, replaced and missing "
        "files, and a folder without checkpoints, are exit 12. Anyone who can write to the folder "
        "can make another chain. Only a hash of the head that you kept elsewhere (--head) detects "
        "that.",
    .examples = examples,
    .options = options,
    .args_min = 1,
    .args_max = 4,
    .run = run_verify,
};
