/*
 * --certificate: describes one operation, filled from what was done and signed with --key or,
 * without --key, with a key made for this certificate only.
 */
#include <math.h>
#include <string.h>
#include <time.h>

#include "cli/work.h"
#include "matrix/residue.h"
#include "sherd/machine.h"
#include "sherd/version.h"
#include "store/certificate.h"
#include "store/file.h"
#include "wire/identity.h"

static int sign(void *ctx, const uint8_t *msg, size_t len, uint8_t sig[64])
{
    return sherd__identity_sign(ctx, msg, len, sig);
}

static void fill_matrix(sherd__certificate_matrix *out, sherd_view v, const sherd__digest *digest)
{
    out->dtype = v.dtype;
    out->rows = v.rows;
    out->cols = v.cols;
    out->digest = *digest;
}

static int fill_matrices(sherd__certificate *c, sherd__product_run *w, sherd_diag *d)
{
    sherd_view result = sherd_view_c(w->c, SHERD_F64, w->rows, w->cols);
    sherd__digest digest;
    int err = sherd__digest_view(&digest, result, d);
    if (err) return err;
    fill_matrix(&c->result, result, &digest);
    c->has_inputs = !sherd__opt_flag(w->cli, "certificate-public");
    err = sherd__product_run_digests(w, d);
    c->inputs_len = w->in_len;
    for (unsigned i = 0; i < w->in_len && !err; i++)
        fill_matrix(&c->inputs[i], w->in[i].view, &w->in[i].digest);
    return err;
}

/* Returns the bits of an operand: 0 for integers, which are not quantised. */
static uint32_t bits_of(const sherd__product_run *w, unsigned i)
{
    sherd_dtype t = w->in[i].view.dtype;
    return t == SHERD_F64 || t == SHERD_F32 ? sherd__product_run_bits(w, i) : 0;
}

/* Fills in the strength of the check of answers: docs/THREATS.md, "Verification". */
static void fill_check(sherd__certificate *c, const sherd__product_run *w)
{
    const sherd_report *r = &w->report;
    bool sampled = w->op != 0;
    snprintf(c->check, sizeof c->check, "%s",
             sampled    ? "sample"
             : c->exact ? "freivalds"
                        : "freivalds-float");
    if (sampled) {
        c->sample_missed_ppm = (uint32_t)ceil(r->check_error * 1e6);
        return;
    }
    bool residues = sherd__work_scheme(w)->residues;
    c->freivalds_trials = residues ? 2 : 1;
    if (!c->exact) return;
    c->freivalds_modulus_bits = residues ? 23 : r->primes > 0 ? 127 : 61;
    c->freivalds_error_log2 = (int32_t)lround(log2(r->check_error));
}

static int fill_scheme(sherd__certificate *c, const sherd__product_run *w, sherd_diag *d)
{
    const sherd_scheme_info *scheme = sherd__work_scheme(w);
    const sherd_report *r = &w->report;
    bool shuffled = scheme->takes & SHERD_TAKES_SHUFFLES, hidden = sherd__product_run_private(w);
    c->exact = w->op == 0 && w->opt.exact;
    for (unsigned i = 0; i < w->in_len && c->exact; i++) {
        c->bits[i] = bits_of(w, i);
        c->norms_leaked = c->norms_leaked || (c->bits[i] == 0 && !hidden); /* integers */
    }
    c->primes_len = r->primes;
    memcpy(c->primes, sherd__primes_default.p, r->primes * sizeof c->primes[0]);
    snprintf(c->scheme, sizeof c->scheme, "%s", scheme->name);
    if (hidden)
        c->colluding = scheme->withstands == SHERD_WITHSTANDS_ALL ? r->domains : w->opt.colluding;
    c->grouped = shuffled;
    c->group = w->op == 0 && shuffled ? w->opt.group : 0;
    if (shuffled)
        snprintf(c->exposure, sizeof c->exposure, "%s", w->opt.balanced ? "balanced" : "uniform");
    c->shuffle_rows = w->opt.shuffle_rows;
    c->reused_metadata = w->reused;
    fill_check(c, w);
    c->equal = !w->verdict.done   ? SHERD__UNCHECKED
               : w->verdict.equal ? SHERD__EQUAL
                                  : SHERD__DIFFERS;
    bool seed_known = !w->opt.shuffles || w->opt.seed;
    if (!shuffled || !seed_known) return 0;
    c->has_seed = true;
    int err = sherd__certificate_commit_seed(&c->seed_commitment, r->seed);
    return err ? sherd__fail(d, err, NULL, "cannot commit to the seed") : 0;
}

/* Domains are counted by their names, which are unique within a cluster. */
static uint32_t count_domains(const sherd__product_run *w)
{
    sherd_node_info info = { .size = sizeof info }, other = { .size = sizeof other };
    uint32_t count = 0, before;
    for (uint32_t i = 0; i < sherd_cluster_size(w->cluster); i++) {
        sherd_cluster_node(w->cluster, i, &info);
        for (before = 0; before < i; before++) {
            sherd_cluster_node(w->cluster, before, &other);
            if (strcmp(info.domain, other.domain) == 0) break;
        }
        count += before == i;
    }
    return count;
}

static int fill_nodes(sherd__certificate *c, const sherd__product_run *w, sherd_diag *d)
{
    c->nodes = sherd_cluster_size(w->cluster);
    c->domains = count_domains(w);
    c->domains_simulated = sherd_cluster_simulated(w->cluster);
    bool listed = c->nodes <= SHERD__CERTIFICATE_NODES;
    if (!listed) sherd__certificate_warn(c, "the nodes are too many to be listed");
    else if (sherd__certificate_list(c, c->nodes))
        return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory for the certificate");
    for (uint32_t i = 0; i < c->nodes; i++) {
        sherd_node_info info = { .size = sizeof info };
        sherd_cluster_node(w->cluster, i, &info);
        if (*info.blas_core) sherd__certificate_core(c, info.blas_core);
        if (!listed) continue;
        memcpy(c->list[i].name, info.name, sizeof info.name);
        memcpy(c->list[i].domain, info.domain, sizeof info.domain);
        memcpy(c->list[i].key, info.key, sizeof info.key);
    }
    if (w->report.nodes_lost > 0)
        sherd__certificate_warn(c, "%u nodes were lost", w->report.nodes_lost);
    if (w->report.nodes_banned > 0)
        sherd__certificate_warn(c, "banned for a wrong answer or a broken protocol: %s",
                                w->report.banned);
    if (w->report.check_tolerant)
        sherd__certificate_warn(c, "float answers were checked for gross errors only");
    return 0;
}

static int sign_and_write(sherd__certificate *c, sherd__product_run *w, sherd_diag *d)
{
    const char *key = sherd__opt_text(w->cli, "key");
    sherd_identity *id = NULL;
    uint8_t public_key[32];
    int err = key ? sherd_identity_load(&id, key, d) : sherd_identity_new(&id, NULL);
    if (err) return sherd__fail(d, err, NULL, "cannot make a key for the certificate");
    sherd__identity_public(id, public_key);
    err = sherd__certificate_begin(c, &w->certificate, sherd__opt_text(w->cli, "certificate"),
                                   public_key, sign, id, d);
    sherd_identity_free(id);
    return err;
}

static const char *blas_version(char out[64])
{
    out[0] = '\0';
    for (size_t i = 0; sherd_library_name(i); i++)
        if (strcmp(sherd_library_name(i), "openblas") == 0) sherd_library_version(i, out, 64);
    return out;
}

int sherd__product_run_certify_ready(sherd__product_run *w, sherd_diag *d)
{
    const char *key = sherd__opt_text(w->cli, "key");
    const char *path = sherd__opt_text(w->cli, "certificate");
    sherd_identity *id = NULL;
    sherd__file *file = NULL;
    int err = key ? sherd_identity_load(&id, key, d) : 0;
    sherd_identity_free(id);
    if (err || !path) return err;
    if (!key)
        sherd__cli_warn(w->cli,
                        "%s will be signed by a key made for it alone, which says nothing of who "
                        "made it; --key FILE signs it as you",
                        path);
    err = sherd__file_begin(&file, path, SHERD__FILE_PRIVATE, d);
    sherd__file_abort(file);
    return err;
}

int sherd__product_run_certify(sherd__product_run *w, sherd_diag *d)
{
    sherd__certificate c;
    char blas[64];
    memset(&c, 0, sizeof c);
    c.created_unix = (int64_t)time(NULL);
    snprintf(c.operation, sizeof c.operation, "%s", w->op == 0 ? "product" : w->operation);
    snprintf(c.sherd_version, sizeof c.sherd_version, "%s", sherd_version());
    snprintf(c.blas_version, sizeof c.blas_version, "OpenBLAS %s", blas_version(blas));
    snprintf(c.protocol_version, sizeof c.protocol_version, "sherd/1");
    int err = fill_matrices(&c, w, d);
    if (!err) err = fill_scheme(&c, w, d);
    if (!err) err = fill_nodes(&c, w, d);
    if (!err) err = sign_and_write(&c, w, d);
    sherd__certificate_fini(&c);
    return err;
}
