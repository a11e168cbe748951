/*
 * `sherd verify CERT.json A.npy [B.npy] C.npy`: checks that the matrices are those of the
 * certificate and that the result is correct. It checks the signature, compares the digests of all
 * matrices, and computes the operation again here from the certificate's own specification: exact
 * ones bit for bit, float products by the bound that --check uses. Nothing in the certificate is
 * trusted if it can be recomputed.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli/verify.h"
#include "cli/work.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "matrix/fixed.h"
#include "matrix/funcs.h"
#include "matrix/view.h"
#include "store/certificate.h"
#include "wire/identity.h"

typedef struct verification {
    sherd__certificate cert;
    sherd__product_run w; /* operands, and the input of sherd__product_run_check */
    sherd__operand out;   /* C */
    double *copy;         /* C without gaps, if its file has gaps */
    char signer[SHERD__FINGERPRINT_TEXT];
} verification;

/* ---- the certificate ------------------------------------------------------------------------- */

static int check_signer(verification *v, sherd__cli *cli, sherd_diag *d)
{
    const char *wanted = sherd__opt_text(cli, "signer");
    sherd__fingerprint have, want;
    sherd__digest sum;
    int err = sherd__certificate_fingerprint(&sum, v->cert.key);
    if (err) return sherd__fail(d, err, NULL, "cannot compute a fingerprint");
    memcpy(have.sha256, sum.sha256, sizeof have.sha256);
    sherd__fingerprint_text(&have, v->signer);
    if (!wanted) return 0;
    if (strncmp(wanted, "key=", 4) == 0) wanted += 4;
    if (sherd__fingerprint_parse(&want, wanted) != 0)
        return sherd__fail(d, SHERD_EINVAL, "give what `sherd keygen --show` prints",
                           "--signer: expected key=sha256:..., found '%.60s'", wanted);
    if (sherd__fingerprint_equal(&have, &want)) return 0;
    return sherd__fail(d, SHERD_EAUTH, "ask the coordinator for its certificate",
                       "%s: is signed by %s, not by %.60s", cli->args[0], v->signer, wanted);
}

/* Reads the certificate's operation: 0 is a product. */
static int read_operation(verification *v, const char *path, sherd_diag *d)
{
    const sherd__certificate *c = &v->cert;
    sherd__product_run *w = &v->w;
    bool product = strcmp(c->operation, "product") == 0;
    w->operation = product ? "product" : c->operation;
    w->op = product ? 0 : (sherd_op)sherd_op_find(c->operation);
    if (w->op == SHERD_OP_PRODUCT) w->op = 0; /* not the name that certificates have for it */
    w->in_len = product ? 2 : w->op ? sherd__map_arity(w->op) : 0;
    if (!product && !w->op)
        return sherd__fail(d, SHERD_EUNSUPPORTED, "use the version of sherd that wrote it",
                           "%s: certifies \"%s\", which this version cannot compute", path,
                           c->operation);
    if (w->in_len != c->inputs_len || (c->exact && !product))
        return sherd__fail(d, SHERD_EFORMAT, "take the file as sherd wrote it",
                           "%s: certifies %s (operands: %u)", path, c->operation, c->inputs_len);
    w->opt.exact = c->exact;
    return 0;
}

/* Reads the widths. Integers are not quantised and have none. */
static int read_bits(verification *v, const char *path, sherd_diag *d)
{
    const sherd__certificate *c = &v->cert;
    if (!c->exact) return 0;
    v->w.opt.bits = c->bits[0] != 0 ? c->bits[0] : SHERD__FIXED_BITS;
    v->w.opt.bits_b = c->bits[1] != 0 ? c->bits[1] : SHERD__FIXED_BITS;
    for (unsigned i = 0; i < 2; i++) {
        bool floats = c->inputs[i].dtype == SHERD_F64 || c->inputs[i].dtype == SHERD_F32;
        if (floats != (c->bits[i] != 0))
            return sherd__fail(d, SHERD_EUNSUPPORTED, NULL,
                               "%s: widths of %u and %u bits for %s and %s cannot be recomputed",
                               path, c->bits[0], c->bits[1], sherd_dtype_name(c->inputs[0].dtype),
                               sherd_dtype_name(c->inputs[1].dtype));
    }
    return 0;
}

/* ---- the matrices ---------------------------------------------------------------------------- */

static int open_matrix(sherd__operand *in, const char *path, const sherd__certificate_matrix *m,
                       sherd_diag *d)
{
    in->path = path;
    int err = sherd_npy_open(&in->file, path, d);
    if (err) return err;
    in->view = sherd_npy_view(in->file);
    if (sherd_npy_ndim(in->file) == 1 && in->view.rows != m->rows)
        in->view = sherd_view_t(in->view); /* a vector used as a column */
    if (in->view.dtype == m->dtype && in->view.rows == m->rows && in->view.cols == m->cols)
        return 0;
    return sherd__fail(d, SHERD_ESHAPE, "give the certificate's matrices: inputs, then the result",
                       "%s is %zu x %zu of %s, the certificate says %llu x %llu of %s", path,
                       in->view.rows, in->view.cols, sherd_dtype_name(in->view.dtype),
                       (unsigned long long)m->rows, (unsigned long long)m->cols,
                       sherd_dtype_name(m->dtype));
}

static int open_all(verification *v, sherd__cli *cli, sherd_diag *d)
{
    sherd__product_run *w = &v->w;
    int err = 0;
    if (cli->args_len != (int)w->in_len + 2)
        return sherd__fail(d, SHERD_EINVAL, "sherd verify CERT.json A.npy [B.npy] C.npy",
                           "%s certifies %s (operands: %u): expected %u files besides it, found %d",
                           cli->args[0], w->operation, w->in_len, w->in_len + 1, cli->args_len - 1);
    for (unsigned i = 0; i < w->in_len && !err; i++)
        err = open_matrix(&w->in[i], cli->args[1 + i], &v->cert.inputs[i], d);
    if (!err) err = open_matrix(&v->out, cli->args[1 + w->in_len], &v->cert.result, d);
    if (err) return err;
    sherd_view a = w->in[0].view, b = w->in[w->in_len - 1].view, c = v->out.view;
    bool fits = w->op ? a.rows == b.rows && a.cols == b.cols && c.cols == a.cols
                      : a.cols == b.rows && c.cols == b.cols;
    if (!fits || c.rows != a.rows || c.dtype != SHERD_F64)
        return sherd__fail(d, SHERD_ESHAPE, "take the file as sherd wrote it",
                           "%s: its shapes do not agree with %s", cli->args[0], w->operation);
    w->rows = c.rows;
    w->cols = c.cols;
    return 0;
}

static int digest_one(const sherd__operand *in, const sherd__digest *want, bool given, int err_code,
                      const char *what, sherd_diag *d)
{
    sherd__digest have;
    if (!given) return 0;
    int err = sherd__digest_view(&have, in->view, d);
    if (!err) err = sherd__work_go_on(d);
    if (err || memcmp(&have, want, sizeof have) == 0) return err;
    return sherd__fail(d, err_code, "give the file that the certificate was made for",
                       "%s is not the %s that the certificate names: its SHA-256 differs", in->path,
                       what);
}

static int check_digests(verification *v, sherd_diag *d)
{
    const sherd__certificate *c = &v->cert;
    int err = 0;
    for (unsigned i = 0; i < v->w.in_len && !err; i++)
        err = digest_one(&v->w.in[i], &c->inputs[i].digest, c->has_inputs, SHERD_EFORMAT, "input",
                         d);
    if (!err) err = digest_one(&v->out, &c->result.digest, true, SHERD_EDIFFERS, "result", d);
    return err;
}

/* ---- the result ------------------------------------------------------------------------------ */

/* Converts C to the form that sherd__product_run_check reads: row-major doubles without gaps. */
static int pack_result(verification *v, sherd_diag *d)
{
    size_t ld = 0, len;
    const double *own = sherd__view_borrow_f64(v->out.view, &ld);
    if (own && ld == v->w.cols) {
        v->w.c = (double *)(uintptr_t)own; /* only read from here */
        return 0;
    }
    if (!sherd__mul(v->w.rows, v->w.cols, &len) || !sherd__mul(len, sizeof(double), &len) ||
        !(v->copy = sherd__alloc(len)))
        return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory for %s", v->out.path);
    sherd__view_dense_f64(v->out.view, v->copy, v->w.cols);
    v->w.c = v->copy;
    return 0;
}

static int recompute(verification *v, sherd_diag *d)
{
    const sherd__comparison *x = &v->w.verdict;
    int err = pack_result(v, d);
    v->w.measures = true;
    if (!err) err = sherd__product_run_check(&v->w, d);
    for (unsigned i = 0; i < v->w.in_len && !err; i++) err = sherd_npy_check(v->w.in[i].file, d);
    if (!err) err = sherd_npy_check(v->out.file, d);
    if (err || x->equal) return err;
    size_t row = x->bitwise ? x->found.bit_row : x->found.beyond_row;
    size_t col = x->bitwise ? x->found.bit_col : x->found.beyond_col;
    uint64_t wrong = x->bitwise ? x->found.count - x->found.equal : x->found.beyond;
    return sherd__fail(d, SHERD_EDIFFERS, "compute the result again",
                       "%s: %llu of %llu entries differ from the centralized result%s, the first "
                       "at row %zu, column %zu",
                       v->out.path, (unsigned long long)wrong, (unsigned long long)x->found.count,
                       x->bitwise ? "" : " by more than gamma_k |A||B|", row, col);
}

/* ---- output ---------------------------------------------------------------------------------- */

/* Prints the certificate's statement about the coordinator's own check of the nodes' answers. */
static void say_check(const sherd__certificate *c, const sherd__cli *cli)
{
    if (strcmp(c->check, "sample") == 0)
        sherd__cli_say(cli,
                       "the coordinator says that it recomputed a sample of every answer: one "
                       "wrong entry was missed with probability %.2g",
                       c->sample_missed_ppm * 1e-6);
    else if (c->freivalds_error_log2 < 0 && c->freivalds_modulus_bits < 61)
        sherd__cli_say(cli,
                       "the coordinator says that it checked every answer (Freivalds, trials: "
                       "%" PRIu32 ", modulo each prime): a wrong one passed with probability "
                       "2^%" PRId32,
                       c->freivalds_trials, c->freivalds_error_log2);
    else if (c->freivalds_error_log2 < 0)
        sherd__cli_say(cli,
                       "the coordinator says that it checked every answer (Freivalds, trials: "
                       "%" PRIu32 ", modulo 2^%" PRIu32 "-1): a wrong one passed with "
                       "probability 2^%" PRId32,
                       c->freivalds_trials, c->freivalds_modulus_bits, c->freivalds_error_log2);
    else
        sherd__cli_say(cli, "the coordinator says that it checked every answer for gross errors "
                            "(Freivalds with real weights and a tolerance)");
}

static void say_scheme(const sherd__certificate *c, const sherd__cli *cli)
{
    if (c->colluding)
        sherd__cli_say(cli, "scheme: %s, against any %" PRIu32 " of %" PRIu32 " domains together",
                       c->scheme, c->colluding, c->domains);
    else sherd__cli_say(cli, "scheme: %s, which claims no privacy", c->scheme);
}

static json_t *check_object(const sherd__certificate *c)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:I}", "method", c->check, "freivalds_trials",
                     (json_int_t)c->freivalds_trials, "freivalds_modulus_bits",
                     (json_int_t)c->freivalds_modulus_bits, "freivalds_error_log2",
                     (json_int_t)c->freivalds_error_log2, "sample_missed_ppm",
                     (json_int_t)c->sample_missed_ppm);
}

static void say(const verification *v, const sherd__cli *cli)
{
    const sherd__certificate *c = &v->cert;
    const sherd__compare *x = &v->w.verdict.found;
    char t[24], far[200];
    sherd__cli_say(cli, "signed by %s%s", v->signer,
                   sherd__opt_given(cli, "signer") ? "" : " (--signer compares it with yours)");
    sherd__cli_say(cli, "digests: %s",
                   c->has_inputs ? "inputs and result are the certified ones"
                                 : "the result is the certified one; the "
                                   "certificate leaves the inputs out");
    if (v->w.verdict.bitwise)
        sherd__cli_say(cli, "equal: yes, bit for bit (%llu entries, computed here in %s)",
                       (unsigned long long)x->count, sherd__cli_seconds(v->w.verdict.seconds, t));
    else
        sherd__cli_say(cli,
                       "equal: yes, within gamma_k |A||B| in every entry; largest difference "
                       "%.3g; computed here in %s",
                       x->max_abs, sherd__cli_seconds(v->w.verdict.seconds, t));
    if (c->exact)
        sherd__cli_say(cli, "%s", sherd__work_distance_text(&v->w.verdict.from_float, far));
    say_check(c, cli);
    say_scheme(c, cli);
    if (c->domains_simulated) sherd__cli_say(cli, "domains: simulated on one host");
    for (uint32_t i = 0; i < c->list_len; i++)
        sherd__cli_note(cli, "node %s of domain %s, key=%s", c->list[i].name, c->list[i].domain,
                        c->list[i].key);
    for (uint32_t i = 0; i < c->warnings_len; i++)
        sherd__cli_say(cli, "the certificate warns: %s", c->warnings[i]);
}

/* Makes an empty array if the certificate does not name the nodes. */
static json_t *nodes_array(const sherd__certificate *c)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < c->list_len; i++)
        json_array_append_new(all, json_pack("{s:s, s:s, s:s}", "name", c->list[i].name, "domain",
                                             c->list[i].domain, "key", c->list[i].key));
    return all;
}

static json_t *tell(const verification *v, const sherd__cli *cli)
{
    const sherd__certificate *c = &v->cert;
    const sherd__comparison *x = &v->w.verdict;
    json_t *obj = sherd__cli_json_new(cli), *warnings = json_array();
    json_object_set_new(obj, "signer", json_string(v->signer));
    json_object_set_new(obj, "operation", json_string(c->operation));
    json_object_set_new(obj, "mode", json_string(c->exact ? "exact" : "float"));
    json_object_set_new(obj, "scheme", json_string(c->scheme));
    json_object_set_new(obj, "colluding", json_integer(c->colluding));
    json_object_set_new(obj, "primes", json_integer(c->primes_len));
    json_object_set_new(obj, "inputs_compared", json_boolean(c->has_inputs));
    json_object_set_new(obj, "domains_simulated", json_boolean(c->domains_simulated));
    json_object_set_new(obj, "nodes", nodes_array(c));
    json_object_set_new(obj, "verification", check_object(c));
    json_object_set_new(obj, "warnings", warnings);
    for (uint32_t i = 0; i < c->warnings_len; i++)
        json_array_append_new(warnings, json_string(c->warnings[i]));
    if (!x->done) return obj;
    json_object_set_new(obj, "equal", json_boolean(x->equal));
    json_object_set_new(obj, "judged", json_string(x->bitwise ? "bits" : "gamma"));
    json_object_set_new(obj, "entries", json_integer((json_int_t)x->found.count));
    json_object_set_new(obj, "bit_equal", json_integer((json_int_t)x->found.equal));
    json_object_set_new(obj, "seconds", json_real(x->seconds));
    if (c->exact)
        json_object_set_new(obj, "from_float64", sherd__product_run_distance(&x->from_float));
    return obj;
}

static int run_verify(sherd__cli *cli, sherd_diag *d)
{
    if (sherd__verify_is_chain(cli->args[0])) return sherd__verify_chain(cli, d);
    if (access(cli->args[0], R_OK) != 0)
        return sherd__fail(d, SHERD_EOPEN, "check the path and its permissions",
                           "%s: cannot open: %s", cli->args[0], strerror(errno));
    if (cli->args_len < 3)
        return sherd__fail(d, SHERD_EINVAL,
                           "sherd verify CERT.json A.npy [B.npy] C.npy, or a "
                           "folder of checkpoints",
                           "%s: expected the certificate's matrices behind it, found %d",
                           cli->args[0], cli->args_len - 1);
    if (sherd__opt_given(cli, "head"))
        return sherd__fail(d, SHERD_EINVAL,
                           "leave --head out: --signer holds a certificate to a key",
                           "--head is for checkpoints: %s is no folder", cli->args[0]);
    verification *v = sherd__calloc(1, sizeof *v);
    if (!v) return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    v->w.cli = cli;
    int err = sherd__certificate_load(&v->cert, cli->args[0], d);
    bool loaded = err == 0;
    if (!err) err = check_signer(v, cli, d);
    if (!err) err = read_operation(v, cli->args[0], d);
    if (!err) err = read_bits(v, cli->args[0], d);
    if (!err) err = open_all(v, cli, d);
    if (!err) err = check_digests(v, d);
    if (!err) err = recompute(v, d);
    if (cli->json && loaded)
        err = err ? sherd__cli_json_fail(cli, tell(v, cli), err, d)
                  : sherd__cli_json_end(cli, tell(v, cli), d);
    else if (!err) say(v, cli);
    for (unsigned i = 0; i < 2; i++) sherd_npy_close(v->w.in[i].file);
    sherd_npy_close(v->out.file);
    if (loaded) sherd__certificate_fini(&v->cert);
    sherd__free(v->copy);
    sherd__free(v);
    return err;
}

static const sherd__example examples[] = {
    { "sherd verify C.json A.npy B.npy C.npy",
      "checks signature and digests and computes C again" },
    { "sherd verify C.json A.npy B.npy C.npy --signer key=sha256:...",
      "the same, and only if this coordinator signed it" },
    { "sherd verify S.json A.npy S.npy --json", "an element-wise result, told to a program" },
    { "sherd verify run --head sha256:...", "the checkpoints of a training, up to this head" },
    { 0 },
};

/* clang-format off */
static const sherd__option options[] = {
    { .name = "signer", .type = SHERD__TEXT, .arg = "KEY",
      .help = "accept only this coordinator's signature: key=sha256:..." },
    { .name = "head", .type = SHERD__TEXT, .arg = "HASH",
      .help = "checkpoints: accept only a chain that ends in this file, sha256:..." },
    { 0 },
};
/* clang-format on */

const sherd__verb sherd__verb_verify = {
    .name = "verify",
    .usage = "CERT.json A.npy [B.npy] C.npy | FOLDER",
    .summary = "check a certificate by computing its result again here, or a chain of checkpoints",
    .details =
        "Checks the certificate's signature, compares the digests of the matrices with it, and "
        "computes the operation here as the certificate specifies it: exact results must agree bit "
        "for bit (exit 9 where they do not), float products entry by entry within gamma_k |A||B|. "
        "A signature that does not fit is exit 6. Without --signer any key may have signed: the "
        "fingerprint is printed.\n\n"
        "With a folder of checkpoints each file is read through and compared with the hash that "
        "the next one has of it, and the last one with the file `head`: damage, exchanged and "
        "missing files are exit 12. Whoever may write the folder can make another chain: only a "
        "head's hash that you kept elsewhere, given by --head, tells that.",
    .examples = examples,
    .options = options,
    .args_min = 1,
    .args_max = 4,
    .run = run_verify,
};
