/*
 * A product with a certificate, which is verified afterwards, from C:
 *
 *     cc certificate.c $(pkg-config --cflags --libs sherd) -o certificate && ./certificate
 *
 * The first argument is the `sherd` command that local nodes run ("sherd" is looked up on the PATH
 * otherwise), the second one the file for the certificate. A profile of each operand saves its
 * second examination and its second digest. The verifier needs the file and the matrices only: it
 * computes the product again.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <sherd/sherd.h>

enum { N = 50, K = 70, M = 30, NODES = 5 };

static double a[N * K], b[K * M], c[N * M];

static int failed(const sherd_diag *d)
{
    fprintf(stderr, "certificate: %s\n", d->message);
    if (d->hint[0]) fprintf(stderr, "hint: %s\n", d->hint);
    return sherd_err_exit(d->code);
}

static sherd_view views[3];

/* Multiplies over `cluster`, and writes the certificate of the result to `path`. */
static int multiply(sherd_cluster *cluster, const char *path, sherd_diag *d)
{
    sherd_product_options how = { .size = sizeof how, .scheme = SHERD_SHARE, .bits = 20 };
    sherd_report report = { .size = sizeof report };
    sherd_certificate *certificate = NULL;
    int err = sherd_profile_new(&how.profile_a, views[0], d);
    if (!err) err = sherd_profile_new(&how.profile_b, views[1], d);
    if (!err) err = sherd_certificate_new(&certificate, NULL, d); /* or the file of your key */
    if (!err) {
        sherd_profile_digest_start(how.profile_a); /* while the nodes compute */
        sherd_profile_digest_start(how.profile_b);
        err = sherd_multiply(cluster, views[0], views[1], c, M, &how, &report, d);
    }
    if (!err) {
        const sherd_certified what = { .size = sizeof what,
                                       .cluster = cluster,
                                       .a = views[0],
                                       .b = views[1],
                                       .result = views[2],
                                       .options = &how,
                                       .report = &report };
        err = sherd_certificate_make(certificate, &what, d);
    }
    if (!err) err = sherd_certificate_write(certificate, path, d);
    sherd_report_fini(&report);
    sherd_certificate_free(certificate);
    sherd_profile_free(how.profile_a);
    sherd_profile_free(how.profile_b);
    return err;
}

/* Verifies the matrices by the file alone. */
static int verify(const char *path, sherd_diag *d)
{
    const sherd_verify_options opt = { .size = sizeof opt }; /* signer: whose key it must be */
    sherd_certificate *certificate;
    sherd_certificate_info info = { .size = sizeof info };
    sherd_check found = { .size = sizeof found };
    int err = sherd_certificate_load(&certificate, path, d);
    if (err) return err;
    err = sherd_certificate_get(certificate, &info, d);
    if (!err) err = sherd_certificate_verify(certificate, views, 3, &opt, &found, d);
    if (!err)
        printf("%s by %u nodes (%s), signed by %s: %llu entries, %s\n", info.operation, info.nodes,
               info.scheme, info.signer, (unsigned long long)found.entries,
               found.judged == SHERD_JUDGED_BITS ? "equal bit for bit" : "equal within the bound");
    sherd_certificate_free(certificate);
    return err;
}

int main(int argc, char **argv)
{
    const char *path = argc > 2 ? argv[2] : "C.json";
    sherd_cluster *cluster;
    sherd_cluster_options where = { .size = sizeof where,
                                    .local_nodes = NODES,
                                    .program = argc > 1 ? argv[1] : "sherd" };
    sherd_diag d = { 0 };
    for (int i = 0; i < N * K; i++) a[i] = rand() / (RAND_MAX + 1.0) - 0.5;
    for (int i = 0; i < K * M; i++) b[i] = rand() / (RAND_MAX + 1.0) - 0.5;
    views[0] = sherd_view_c(a, SHERD_F64, N, K);
    views[1] = sherd_view_c(b, SHERD_F64, K, M);
    views[2] = sherd_view_c(c, SHERD_F64, N, M);
    signal(SIGPIPE, SIG_IGN); /* a lost connection must not end the program */

    if (sherd_cluster_open(&cluster, &where, &d)) return failed(&d);
    int err = multiply(cluster, path, &d);
    sherd_cluster_close(cluster);
    if (err || verify(path, &d)) return failed(&d);

    c[7] += 1e-6; /* a result that was changed afterwards is not the certified one */
    if (verify(path, &d) != SHERD_EDIFFERS) return 1;
    printf("changed: %s\n", d.message);
    return 0;
}
