/*
 * Certificates of operations over a cluster: described from the arguments and the report of a call,
 * signed, and verified by computing the operation again. Nothing in a certificate is trusted if it
 * can be recomputed. The file's format is in store/certificate.h.
 */
#include "lib/certificate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/field.h"
#include "core/hooks.h"
#include "core/options.h"
#include "core/wipe.h"
#include "crypto/byte_code.h"
#include "matrix/fixed.h"
#include "matrix/residue.h"
#include "matrix/residue_bytes.h"
#include "matrix/view.h"
#include "scheduler/cluster/internal.h"
#include "scheduler/plan/prepare.h"
#include "scheduler/plan/profile.h"
#include "sherd/machine.h"
#include "sherd/version.h"
#include "store/certificate.h"
#include "wire/identity.h"

struct sherd_certificate {
    sherd__certificate c;
    bool known;         /* c is filled */
    char *name;         /* for messages, of one that was read */
    sherd_identity *id; /* of one that is made */
    char *text;
    sherd__file *file; /* open and not committed, or NULL */
};

static int no_memory(sherd_diag *d)
{
    return sherd__fail_memory(d, "the certificate");
}

void sherd_certificate_free(sherd_certificate *c)
{
    if (!c) return;
    sherd__certificate_fini(&c->c);
    sherd__file_abort(c->file);
    sherd_identity_free(c->id);
    sherd__free(c->name);
    sherd__free(c->text);
    sherd__free(c);
}

/* ---- making ---------------------------------------------------------------------------------- */

int sherd_certificate_new(sherd_certificate **out, const char *key_file, sherd_diag *d)
{
    *out = NULL;
    sherd_certificate *c = sherd__calloc(1, sizeof *c);
    if (!c) return no_memory(d);
    int err = key_file ? sherd_identity_load(&c->id, key_file, d)
                       : sherd_identity_new(&c->id, NULL);
    if (err) {
        sherd_certificate_free(c);
        return sherd__fail(d, err, NULL, "cannot make a key for the certificate");
    }
    *out = c;
    return SHERD_OK;
}

/* The operation, with this version's structs, and its certificate. */
typedef struct making {
    sherd_certified what;
    sherd_product_options opt;
    sherd_report report;
    const sherd_scheme_info *scheme;
    sherd_op op;
    sherd_view in[2];
    uint32_t in_len;
    sherd__certificate *c;
} making;

static bool product(const making *m)
{
    return m->op == SHERD_OP_PRODUCT;
}

static void describe(sherd__certificate_matrix *out, sherd_view v)
{
    out->dtype = v.dtype;
    out->rows = v.rows;
    out->cols = v.cols;
}

static int fill_matrices(making *m, sherd_diag *d)
{
    sherd_profile *known[] = { m->opt.profile_a, m->opt.profile_b };
    m->c->has_inputs = !m->what.without_inputs;
    m->c->inputs_len = m->in_len;
    describe(&m->c->result, m->what.result);
    for (uint32_t i = 0; i < m->in_len; i++) describe(&m->c->inputs[i], m->in[i]);
    int err = sherd__digest_view_asking(&m->c->result.digest, m->what.result, &m->what.hooks, d);
    for (uint32_t i = 0; i < m->in_len && m->c->has_inputs && !err; i++) {
        sherd__digest *out = &m->c->inputs[i].digest;
        err = known[i] ? sherd__profile_hash(known[i], out, &m->what.hooks, d)
                       : sherd__digest_view_asking(out, m->in[i], &m->what.hooks, d);
    }
    return err;
}

/* Returns the bits of an operand: 0 for integers, which are not quantised. */
static uint32_t bits_of(const making *m, uint32_t i)
{
    sherd_dtype t = m->in[i].dtype;
    if (t != SHERD_F64 && t != SHERD_F32) return 0;
    return i ? m->report.bits_b : m->report.bits_a;
}

static uint32_t most_primes(const sherd_report *r)
{
    return r->prime_bits == 8 ? SHERD__BYTE_PRIMES : SHERD__TABLE_PRIMES;
}

/* Fills in the strength of the check of answers: docs/THREATS.md, "Verification". */
static int fill_check(making *m, sherd_diag *d)
{
    const sherd_report *r = &m->report;
    sherd__certificate *c = m->c;
    snprintf(c->check, sizeof c->check, "%s",
             !product(m) ? "sample"
             : c->exact  ? "freivalds"
                         : "freivalds-float");
    bool sensible = r->check_error <= 1 && (c->exact ? r->check_error > 0 : r->check_error >= 0);
    if (!sensible)
        return sherd__fail(d, SHERD_EINVAL, "give the report of the call that computed the result",
                           "the report's check_error is %g, which is not a probability",
                           r->check_error);
    if (!product(m)) {
        c->sample_missed_ppm = (uint32_t)ceil(r->check_error * 1e6);
        return SHERD_OK;
    }
    bool bytes = r->prime_bits == 8;
    c->freivalds_trials = bytes ? SHERD__BYTE_CHECKS : m->scheme->residues ? 2 : 1;
    if (!c->exact) return SHERD_OK;
    c->freivalds_modulus_bits = bytes ? 8 : m->scheme->residues ? 23 : r->primes > 0 ? 127 : 61;
    c->freivalds_error_log2 = (int32_t)lround(log2(r->check_error));
    return SHERD_OK;
}

static int fill_scheme(making *m, sherd_diag *d)
{
    const sherd_scheme_info *scheme = m->scheme;
    const sherd_report *r = &m->report;
    sherd__certificate *c = m->c;
    bool shuffled = scheme->takes & SHERD_TAKES_SHUFFLES,
         hidden = sherd_scheme_private(m->opt.scheme);
    c->exact = product(m) && (m->opt.exact || scheme->exact_only);
    for (uint32_t i = 0; i < m->in_len && c->exact; i++) {
        c->bits[i] = bits_of(m, i);
        c->norms_leaked = c->norms_leaked || (c->bits[i] == 0 && !hidden); /* integers */
    }
    c->primes_len = r->primes;
    memcpy(c->primes, r->prime_bits == 8 ? sherd__byte_primes : sherd__primes_default.p,
           r->primes * sizeof c->primes[0]);
    snprintf(c->scheme, sizeof c->scheme, "%s", scheme->name);
    if (hidden)
        c->colluding = scheme->withstands == SHERD_WITHSTANDS_ALL ? r->domains : m->opt.colluding;
    c->grouped = shuffled;
    c->group = product(m) && shuffled ? m->opt.group : 0;
    if (shuffled)
        snprintf(c->exposure, sizeof c->exposure, "%s", m->opt.balanced ? "balanced" : "uniform");
    c->shuffle_rows = m->opt.shuffle_rows;
    c->reused_metadata = m->what.reused_metadata;
    int err = fill_check(m, d);
    if (err) return err;
    c->equal = (sherd__certified)m->what.verdict;
    bool seed_known = !m->opt.shuffles || m->opt.seed;
    if (!shuffled || !seed_known) return SHERD_OK;
    c->has_seed = true;
    err = sherd__certificate_commit_seed(&c->seed_commitment, r->seed);
    return err ? sherd__fail(d, err, NULL, "cannot commit to the seed") : SHERD_OK;
}

static int fill_nodes(making *m, sherd_diag *d)
{
    sherd__certificate *c = m->c;
    c->nodes = sherd_cluster_size(m->what.cluster);
    c->domains = m->report.domains;
    c->domains_simulated = sherd_cluster_simulated(m->what.cluster);
    bool listed = c->nodes <= SHERD__CERTIFICATE_NODES;
    if (!listed) sherd__certificate_warn(c, "the nodes are too many to be listed");
    else if (sherd__certificate_list(c, c->nodes)) return no_memory(d);
    for (uint32_t i = 0; i < c->nodes; i++) {
        const sherd_node_info info = sherd__cluster_node(m->what.cluster, i);
        if (*info.blas_core) sherd__certificate_core(c, info.blas_core);
        if (!listed) continue;
        memcpy(c->list[i].name, info.name, sizeof info.name);
        memcpy(c->list[i].domain, info.domain, sizeof info.domain);
        memcpy(c->list[i].key, info.key, sizeof info.key);
    }
    if (m->report.nodes_lost > 0)
        sherd__certificate_warn(c, "%u nodes were lost", m->report.nodes_lost);
    if (m->report.nodes_banned > 0)
        sherd__certificate_warn(c, "banned for a wrong answer or a broken protocol: %s",
                                m->report.banned);
    if (m->report.check_tolerant)
        sherd__certificate_warn(c, "float answers were checked for gross errors only");
    return SHERD_OK;
}

static void fill_versions(sherd__certificate *c)
{
    char blas[64] = "";
    for (size_t i = 0; sherd_library_name(i); i++)
        if (strcmp(sherd_library_name(i), "openblas") == 0)
            sherd_library_version(i, blas, sizeof blas);
    c->created_unix = (int64_t)time(NULL);
    snprintf(c->sherd_version, sizeof c->sherd_version, "%s", sherd_version());
    snprintf(c->blas_version, sizeof c->blas_version, "OpenBLAS %s", blas);
    snprintf(c->protocol_version, sizeof c->protocol_version, "sherd/1");
}

static int read_work(making *m, const sherd_certified *what, sherd_diag *d)
{
    int err = sherd__options_read(&m->what, sizeof m->what, what, "sherd_certified", d);
    if (err) return err;
    if (!m->what.cluster || !m->what.report)
        return sherd__fail(d, SHERD_EINVAL, "give those of the call that computed the result",
                           "a certificate needs the cluster and the report of an operation");
    err = sherd__result_check(m->what.report, "sherd_report", d);
    if (err) return err;
    sherd__result_write(&m->report, m->what.report, m->what.report->size);
    err = sherd__product_options_read(&m->opt, m->what.options, d);
    m->op = m->what.op ? m->what.op : SHERD_OP_PRODUCT;
    m->in_len = sherd_op_operands(m->op);
    m->in[0] = m->what.a;
    m->in[1] = m->what.b;
    m->scheme = sherd_scheme_get(m->opt.scheme);
    if (!err && (m->in_len == 0 || m->report.primes > most_primes(&m->report)))
        err = sherd__fail(d, SHERD_EINVAL, NULL, "operation %d with %u primes cannot be certified",
                          (int)m->op, m->report.primes);
    static const char *const names[] = { "A", "B" };
    for (uint32_t i = 0; i < m->in_len && !err; i++) {
        err = sherd__view_check(m->in[i], names[i], d);
        if (!err)
            err = sherd__profile_check(i ? m->opt.profile_b : m->opt.profile_a, m->in[i], names[i],
                                       d);
    }
    return err ? err : sherd__view_check(m->what.result, "the result", d);
}

static int sign(void *ctx, const uint8_t *msg, size_t len, uint8_t sig[64])
{
    return sherd__identity_sign(ctx, msg, len, sig);
}

int sherd_certificate_make(sherd_certificate *c, const sherd_certified *what, sherd_diag *d)
{
    making m = { .c = &c->c, .report = { .size = sizeof m.report } };
    uint8_t key[32];
    if (!c->id || c->known)
        return sherd__fail(d, SHERD_EINVAL, "make another one: sherd_certificate_new",
                           "this certificate describes an operation already");
    int err = read_work(&m, what, d);
    if (err) return err;
    snprintf(c->c.operation, sizeof c->c.operation, "%s",
             product(&m) ? "product" : sherd_op_name(m.op));
    fill_versions(&c->c);
    err = fill_matrices(&m, d);
    if (!err) err = fill_scheme(&m, d);
    if (!err) err = fill_nodes(&m, d);
    sherd__identity_public(c->id, key);
    if (!err) err = sherd__certificate_text(&c->c, key, sign, c->id, &c->text, d);
    c->known = !err;
    if (err) sherd__certificate_fini(&c->c);
    sherd__wipe(&m, sizeof m); /* the report has the seed */
    return err;
}

const char *sherd_certificate_text(const sherd_certificate *c, size_t *len)
{
    if (len) *len = c->text ? strlen(c->text) : 0;
    return c->text;
}

int sherd_certificate_begin(sherd_certificate *c, const char *path, sherd_diag *d)
{
    if (!c->text || c->file)
        return sherd__fail(d, SHERD_EINVAL, "call sherd_certificate_make first, and begin one file",
                           "%s: there is no certificate to write", path);
    return sherd__certificate_begin(&c->file, path, c->text, d);
}

int sherd__certificate_publish(sherd_certificate *c, bool *published, sherd_diag *d)
{
    sherd__file *file = c->file;
    if (published) *published = false;
    if (!file)
        return sherd__fail(d, SHERD_EINVAL, "call sherd_certificate_begin first",
                           "no file of the certificate is open");
    c->file = NULL;
    return sherd__file_publish(file, published, d);
}

int sherd_certificate_commit(sherd_certificate *c, sherd_diag *d)
{
    return sherd__certificate_publish(c, NULL, d);
}

int sherd_certificate_write(sherd_certificate *c, const char *path, sherd_diag *d)
{
    int err = sherd_certificate_begin(c, path, d);
    return err ? err : sherd_certificate_commit(c, d);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* text: NULL if `name` is a file to read. */
static int read_one(sherd_certificate **out, const char *text, size_t len, const char *name,
                    sherd_diag *d)
{
    *out = NULL;
    sherd_certificate *c = sherd__calloc(1, sizeof *c);
    if (!c || !(c->name = sherd__strdup(name))) {
        sherd_certificate_free(c);
        return no_memory(d);
    }
    int err = text ? sherd__certificate_parse(&c->c, text, len, name, d)
                   : sherd__certificate_load(&c->c, name, d);
    c->known = !err;
    if (err) sherd_certificate_free(c);
    else *out = c;
    return err;
}

int sherd_certificate_load(sherd_certificate **out, const char *path, sherd_diag *d)
{
    return read_one(out, NULL, 0, path, d);
}

int sherd_certificate_parse(sherd_certificate **out, const char *text, size_t len, const char *name,
                            sherd_diag *d)
{
    return read_one(out, text, len, name ? name : "the certificate", d);
}

static int check_known(const sherd_certificate *c, sherd_diag *d)
{
    return c->known ? SHERD_OK
                    : sherd__fail(d, SHERD_EINVAL, "call sherd_certificate_make first",
                                  "the certificate is empty");
}

static void fingerprint_of(const sherd_certificate *c, sherd__fingerprint *out)
{
    sherd__fingerprint_public(out, c->c.key);
}

int sherd_certificate_get(const sherd_certificate *c, sherd_certificate_info *out, sherd_diag *d)
{
    int err = sherd__result_check(out, "sherd_certificate_info", d);
    if (!err) err = check_known(c, d);
    if (err) return err;
    const sherd__certificate *x = &c->c;
    sherd__fingerprint signer;
    sherd_certificate_info i = {
        .created = x->created_unix,
        .inputs = x->inputs_len,
        .inputs_compared = x->has_inputs,
        .mode = x->exact ? SHERD_MODE_EXACT : SHERD_MODE_FLOAT,
        .bits_a = x->bits[0],
        .bits_b = x->bits[1],
        .primes = x->primes_len,
        .norms_leaked = x->norms_leaked,
        .colluding = x->colluding,
        .group = x->group,
        .shuffle_rows = x->shuffle_rows,
        .reused_metadata = x->reused_metadata,
        .freivalds_trials = x->freivalds_trials,
        .freivalds_modulus_bits = x->freivalds_modulus_bits,
        .freivalds_error_log2 = x->freivalds_error_log2,
        .sample_missed_ppm = x->sample_missed_ppm,
        .equal = (sherd_verdict)x->equal,
        .domains = x->domains,
        .domains_simulated = x->domains_simulated,
        .nodes = x->nodes,
        .nodes_listed = x->list_len,
        .warnings = x->warnings_len,
    };
    fingerprint_of(c, &signer);
    sherd__fingerprint_text(&signer, i.signer);
    snprintf(i.operation, sizeof i.operation, "%s", x->operation);
    snprintf(i.scheme, sizeof i.scheme, "%s", x->scheme);
    snprintf(i.exposure, sizeof i.exposure, "%s", x->exposure);
    snprintf(i.method, sizeof i.method, "%s", x->check);
    snprintf(i.sherd_version, sizeof i.sherd_version, "%s", x->sherd_version);
    snprintf(i.protocol_version, sizeof i.protocol_version, "%s", x->protocol_version);
    snprintf(i.blas_version, sizeof i.blas_version, "%s", x->blas_version);
    sherd__result_write(out, &i, sizeof i);
    return SHERD_OK;
}

int sherd_certificate_matrix_at(const sherd_certificate *c, uint32_t i,
                                sherd_certificate_matrix *out, sherd_diag *d)
{
    int err = sherd__result_check(out, "sherd_certificate_matrix", d);
    if (!err) err = check_known(c, d);
    if (err) return err;
    if (i > c->c.inputs_len)
        return sherd__fail(d, SHERD_EINVAL, NULL, "matrix %u of a certificate of %u", i,
                           c->c.inputs_len + 1);
    bool input = i < c->c.inputs_len;
    const sherd__certificate_matrix *m = input ? &c->c.inputs[i] : &c->c.result;
    sherd_certificate_matrix x = { .rows = m->rows,
                                   .cols = m->cols,
                                   .has_digest = !input || c->c.has_inputs };
    snprintf(x.dtype, sizeof x.dtype, "%s", sherd_dtype_name(m->dtype));
    if (x.has_digest) memcpy(x.sha256, m->digest.sha256, sizeof x.sha256);
    sherd__result_write(out, &x, sizeof x);
    return SHERD_OK;
}

int sherd_certificate_node_at(const sherd_certificate *c, uint32_t i, sherd_certificate_node *out,
                              sherd_diag *d)
{
    int err = sherd__result_check(out, "sherd_certificate_node", d);
    if (err) return err;
    if (i >= c->c.list_len)
        return sherd__fail(d, SHERD_EINVAL, NULL, "node %u of a certificate that lists %u", i,
                           c->c.list_len);
    const sherd__certificate_node *n = &c->c.list[i];
    sherd_certificate_node x = { .size = 0 };
    memcpy(x.name, n->name, sizeof x.name);
    memcpy(x.domain, n->domain, sizeof x.domain);
    memcpy(x.key, n->key, sizeof x.key);
    sherd__result_write(out, &x, sizeof x);
    return SHERD_OK;
}

const char *sherd_certificate_warning_at(const sherd_certificate *c, uint32_t i)
{
    return i < c->c.warnings_len ? c->c.warnings[i] : NULL;
}

/* ---- verifying ------------------------------------------------------------------------------- */

static const char *name_of(const sherd_certificate *c)
{
    return c->name ? c->name : "the certificate";
}

static int check_signer(const sherd_certificate *c, const char *wanted, sherd_diag *d)
{
    sherd__fingerprint have, want;
    char text[SHERD__FINGERPRINT_TEXT];
    if (!wanted) return SHERD_OK;
    if (strncmp(wanted, "key=", 4) == 0) wanted += 4;
    if (sherd__fingerprint_parse(&want, wanted) != 0)
        return sherd__fail(d, SHERD_EINVAL,
                           "give the fingerprint that `sherd keygen --show` "
                           "prints",
                           "--signer: expected key=sha256:..., found '%.60s'", wanted);
    fingerprint_of(c, &have);
    if (sherd__fingerprint_equal(&have, &want)) return SHERD_OK;
    sherd__fingerprint_text(&have, text);
    return sherd__fail(d, SHERD_EAUTH, "ask the coordinator for its certificate",
                       "%s: is signed by %s, not by %.60s", name_of(c), text, wanted);
}

/* Returns the certificate's operation, or 0. A product is not called by the name that it has in
 * sherd/op.h. */
static sherd_op operation_of(const sherd_certificate *c)
{
    if (strcmp(c->c.operation, "product") == 0) return SHERD_OP_PRODUCT;
    sherd_op op = sherd_op_find(c->c.operation);
    return op == SHERD_OP_PRODUCT ? 0 : op;
}

static int check_operation(const sherd_certificate *c, sherd_diag *d)
{
    const sherd__certificate *x = &c->c;
    sherd_op op = operation_of(c);
    if (!op)
        return sherd__fail(d, SHERD_EUNSUPPORTED, "use the version of sherd that wrote it",
                           "%s: certifies \"%s\", which this version cannot compute", name_of(c),
                           x->operation);
    if (sherd_op_operands(op) != x->inputs_len || (x->exact && op != SHERD_OP_PRODUCT))
        return sherd__fail(d, SHERD_EFORMAT, "take the file as sherd wrote it",
                           "%s: certifies %s (operands: %u)", name_of(c), x->operation,
                           x->inputs_len);
    for (unsigned i = 0; i < 2 && x->exact; i++) {
        bool floats = x->inputs[i].dtype == SHERD_F64 || x->inputs[i].dtype == SHERD_F32;
        if (floats == (x->bits[i] != 0)) continue; /* integers are not quantised */
        return sherd__fail(d, SHERD_EUNSUPPORTED, NULL,
                           "%s: widths of %u and %u bits for %s and %s cannot be recomputed",
                           name_of(c), x->bits[0], x->bits[1], sherd_dtype_word(x->inputs[0].dtype),
                           sherd_dtype_word(x->inputs[1].dtype));
    }
    return SHERD_OK;
}

int sherd_certificate_accept(const sherd_certificate *c, const char *signer, sherd_diag *d)
{
    int err = check_known(c, d);
    if (!err) err = check_signer(c, signer, d);
    return err ? err : check_operation(c, d);
}

int sherd_certificate_options(const sherd_certificate *c, sherd_check_options *opt, sherd_diag *d)
{
    const sherd__certificate *x = &c->c;
    sherd_check_options own;
    int err = sherd__result_check(opt, "sherd_check_options", d);
    if (!err) err = sherd__options_read(&own, sizeof own, opt, "sherd_check_options", d);
    if (!err) err = sherd_certificate_accept(c, NULL, d);
    if (err) return err;
    own.op = operation_of(c);
    own.exact = x->exact;
    own.bits = x->exact && x->bits[0] ? x->bits[0] : 0;
    own.bits_b = x->exact && x->bits[1] ? x->bits[1] : SHERD__FIXED_BITS;
    sherd__result_write(opt, &own, sizeof own);
    return SHERD_OK;
}

/* The matrices that are compared with a certificate. */
typedef struct verification {
    const sherd_certificate *c;
    const sherd_view *matrices;
    const char *names[3];
    uint32_t len; /* inputs and result */
    sherd__hooked hooks;
} verification;

static const sherd__certificate_matrix *certified(const verification *v, uint32_t i)
{
    return i + 1 < v->len ? &v->c->c.inputs[i] : &v->c->c.result;
}

static int check_shapes(const verification *v, sherd_diag *d)
{
    for (uint32_t i = 0; i < v->len; i++) {
        const sherd__certificate_matrix *m = certified(v, i);
        sherd_view x = v->matrices[i];
        int err = sherd__view_check(x, v->names[i], d);
        if (err) return err;
        if (x.dtype == m->dtype && x.rows == m->rows && x.cols == m->cols) continue;
        return sherd__fail(d, SHERD_ESHAPE,
                           "give the certificate's matrices: inputs, then the result",
                           "%s is %zu x %zu of %s, the certificate states %llu x %llu of %s",
                           v->names[i], x.rows, x.cols, sherd_dtype_word(x.dtype),
                           (unsigned long long)m->rows, (unsigned long long)m->cols,
                           sherd_dtype_word(m->dtype));
    }
    const sherd_view a = v->matrices[0], b = v->matrices[v->len - 2], c = v->matrices[v->len - 1];
    bool dot = operation_of(v->c) == SHERD_OP_PRODUCT;
    bool fits = dot ? a.cols == b.rows && c.cols == b.cols
                    : a.rows == b.rows && a.cols == b.cols && c.cols == a.cols;
    if (fits && c.rows == a.rows && c.dtype == SHERD_F64) return SHERD_OK;
    return sherd__fail(d, SHERD_ESHAPE, "take the file as sherd wrote it",
                       "%s: its shapes do not agree with %s", name_of(v->c), v->c->c.operation);
}

static int check_digests(verification *v, sherd_diag *d)
{
    for (uint32_t i = v->c->c.has_inputs ? 0 : v->len - 1; i < v->len; i++) {
        bool input = i + 1 < v->len;
        sherd__digest have;
        int err = sherd__digest_view_asking(&have, v->matrices[i], &v->hooks.hooks, d);
        if (!err) err = sherd__hooks_step(&v->hooks, 0, v->matrices[0].rows, d);
        if (err) return err;
        if (memcmp(&have, &certified(v, i)->digest, sizeof have) == 0) continue;
        return sherd__fail(d, input ? SHERD_EFORMAT : SHERD_EDIFFERS,
                           "give the file that the certificate was made for",
                           "%s is not the %s that the certificate names: its SHA-256 differs",
                           v->names[i], input ? "input" : "result");
    }
    return SHERD_OK;
}

int sherd_certificate_verify(const sherd_certificate *c, const sherd_view *matrices, size_t len,
                             const sherd_verify_options *opt, sherd_check *out, sherd_diag *d)
{
    static const char *const defaults[] = { "input 1", "input 2" };
    verification v = { .c = c, .matrices = matrices, .len = c->c.inputs_len + 1 };
    sherd_verify_options own;
    sherd_check_options how = { .size = sizeof how };
    int err = sherd__options_read(&own, sizeof own, opt, "sherd_verify_options", d);
    if (!err && out) err = sherd__result_check(out, "sherd_check", d);
    if (!err) err = sherd_certificate_accept(c, own.signer, d);
    if (err) return err;
    if (len != v.len)
        return sherd__fail(d, SHERD_EINVAL, "give its inputs, then the result",
                           "%s is about %u matrices, %zu are given", name_of(c), v.len, len);
    for (uint32_t i = 0; i < v.len; i++)
        v.names[i] = own.names[i] ? own.names[i] : i + 1 < v.len ? defaults[i] : "the result";
    v.hooks = sherd__hooks_begin(&own.hooks);
    err = check_shapes(&v, d);
    if (!err) err = check_digests(&v, d);
    if (!err) err = sherd_certificate_options(c, &how, d);
    if (err) return err;
    how.name_a = v.names[0];
    how.name_b = v.names[v.len - 2];
    how.name_c = v.names[v.len - 1];
    how.hooks = own.hooks;
    return sherd_check_result(matrices[0], matrices[v.len - 2], matrices[v.len - 1], &how, out, d);
}

/* ---- fields ---------------------------------------------------------------------------------- */

static const char *const modes[] = { "float", "exact", NULL };
static const char *const verdicts[] = { "unchecked", "yes", "no", NULL };

#define FIELD(member, TYPE, text) SHERD__FIELD(sherd_certificate_info, member, TYPE, "", text)
static const sherd_field certificate_info_fields[] = {
    FIELD(signer, TEXT, "fingerprint of the key that signed"),
    SHERD__FIELD(sherd_certificate_info, created, I64, "s", "since 1970"),
    FIELD(operation, TEXT, "what was computed"),
    FIELD(inputs, U32, "number of inputs"),
    FIELD(inputs_compared, BOOL, "the certificate has digests of the inputs"),
    SHERD__FIELD_ENUM(sherd_certificate_info, mode, modes, "arithmetic"),
    FIELD(bits_a, U32, "exact: width of A; 0: integers"),
    FIELD(bits_b, U32, "exact: width of B; 0: integers"),
    FIELD(primes, U32, "number of primes"),
    FIELD(norms_leaked, BOOL, "primes or widths were fitted to the data"),
    FIELD(scheme, TEXT, "scheme"),
    FIELD(colluding, U32, "domains that learn nothing together"),
    FIELD(group, U64, "columns that share a permutation; 0: all"),
    FIELD(exposure, TEXT, "how columns were assigned to nodes"),
    FIELD(shuffle_rows, BOOL, "rows of A were shuffled"),
    FIELD(reused_metadata, BOOL, "the metadata served other operands before"),
    FIELD(method, TEXT, "check of the nodes' answers"),
    FIELD(freivalds_trials, U32, "trials for each answer"),
    FIELD(freivalds_modulus_bits, U32, "width of the modulus; 0: none"),
    FIELD(freivalds_error_log2, I32, "a wrong answer passes with probability 2^this"),
    FIELD(sample_missed_ppm, U32, "chance in a million to miss one wrong entry"),
    SHERD__FIELD_ENUM(sherd_certificate_info, equal, verdicts,
                      "the coordinator's own comparison with the centralized result"),
    FIELD(domains, U32, "domains of the nodes"),
    FIELD(domains_simulated, BOOL, "one host ran all nodes"),
    FIELD(nodes, U32, "number of nodes"),
    FIELD(nodes_listed, U32, "nodes that are listed by name"),
    FIELD(warnings, U32, "number of warnings"),
    FIELD(sherd_version, TEXT, "version of sherd"),
    FIELD(protocol_version, TEXT, "version of the protocol"),
    FIELD(blas_version, TEXT, "version of OpenBLAS"),
};
#undef FIELD
SHERD__FIELDS(sherd_certificate_info, certificate_info_fields)

static const sherd_field certificate_matrix_fields[] = {
    SHERD__FIELD(sherd_certificate_matrix, dtype, TEXT, "", "numpy's name of the dtype"),
    SHERD__FIELD(sherd_certificate_matrix, rows, U64, "", "rows"),
    SHERD__FIELD(sherd_certificate_matrix, cols, U64, "", "columns"),
    SHERD__FIELD(sherd_certificate_matrix, has_digest, BOOL, "", "the digest is given"),
    SHERD__FIELD(sherd_certificate_matrix, sha256, BYTES, "", "digest of the matrix"),
};
SHERD__FIELDS(sherd_certificate_matrix, certificate_matrix_fields)

static const sherd_field certificate_node_fields[] = {
    SHERD__FIELD(sherd_certificate_node, name, TEXT, "", "name"),
    SHERD__FIELD(sherd_certificate_node, domain, TEXT, "", "domain"),
    SHERD__FIELD(sherd_certificate_node, key, TEXT, "", "fingerprint of the node's key"),
};
SHERD__FIELDS(sherd_certificate_node, certificate_node_fields)
