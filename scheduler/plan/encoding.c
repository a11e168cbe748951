/*
 * The prediction is a sum of four products. Its constants are measured (`sherd bench` reports those
 * of this machine) and coarse: near the break-even both choices cost the same.
 */
#include "scheduler/plan/encoding.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "crypto/fragment.h"
#include "matrix/gemm.h"
#include "matrix/sparse.h"
#include "wire/cipher.h"

const char *const sherd__encoding_names[] = { "auto", "dense", "csr", NULL };

/* Seconds in addition to the cost of a dense entry, measured on one core of a Zen 5 over bytes and
 * doubles: to test whether an entry of A is zero, and to write, check and place an entry that is
 * kept. */
#define LOOK_S 0.3e-9
#define KEEP_S 2.5e-9

/* Fraction of the cipher's rate that one connection reaches: both sides encrypt, and the kernel
 * copies twice (`sherd bench --only connection`: 0.9 to 1.5 GB/s, cipher 5.5). */
#define CARRIED 0.2
#define ETHERNET 125e6 /* bytes per second of 1000BASE-T */

static double own_gflops;
static pthread_once_t measured = PTHREAD_ONCE_INIT;

static void measure(void)
{
    own_gflops = sherd__gemm_gflops(160);
    if (own_gflops < 1) own_gflops = 1;
}

static double speed_of(const sherd__encoding_input *in)
{
    if (in->gflops > 0) return in->gflops * 1e9;
    pthread_once(&measured, measure);
    return own_gflops * 1e9;
}

void sherd__encoding_choose(sherd__encoding *out, const sherd__encoding_input *in)
{
    double entries = (double)in->rows * (double)in->cols, kept = (double)in->nonzeros;
    double pieces = (double)in->rows * (double)in->groups, tiles = (double)in->tiles;
    double density = entries > 0 ? kept / entries : 1;
    unsigned width = sherd__csr_width(in->widest), threads = in->threads ? in->threads : 1;
    *out = (sherd__encoding){ 0 };
    /* Groups of one column are sent without zeros in any case. */
    if (entries == 0 || in->none || (in->skips && in->widest <= 1)) return;
    double looked_at = entries;
    if (in->skips) { /* expected pieces with a non-zero value if these were distributed at random */
        double some = 1 - pow(1 - density, (double)in->widest);
        pieces *= some;
        entries *= some;
    }
    double dense_bytes = entries * (double)in->value_bytes;
    double csr_bytes = kept * (double)(in->value_bytes + width) + pieces * width;
    double products = 2 * entries * (double)in->m * (in->primes_len ? in->primes_len : 1) /
                      (speed_of(in) * (in->nodes ? in->nodes : 1));
    double share = in->primes_len ? 1 : kept * threads / (SHERD__SPARSE_SPEED * entries);
    out->dense_s = dense_bytes * tiles / in->link + products;
    out->csr_s = csr_bytes * tiles / in->link + products * (share < 1 ? share : 1) +
                 (looked_at * LOOK_S + kept * KEEP_S) * tiles;
    out->csr = csr_bytes < dense_bytes && out->csr_s < out->dense_s;
}

/* Returns the speed that an interface reports, in bytes per second; 0 if it reports none or an
 * implausible one. */
static double interface_speed(const char *folder, const char *name)
{
    char path[400], state[16] = "";
    long megabits = 0;
    int n = snprintf(path, sizeof path, "%s/%s/operstate", folder, name);
    FILE *f = n > 0 && (size_t)n < sizeof path ? fopen(path, "r") : NULL;
    if (!f) return 0;
    bool read = fscanf(f, "%15s", state) == 1;
    fclose(f);
    if (!read || strcmp(state, "up") != 0) return 0; /* that of loopback is "unknown" */
    n = snprintf(path, sizeof path, "%s/%s/speed", folder, name);
    if (n <= 0 || (size_t)n >= sizeof path || !(f = fopen(path, "r"))) return 0;
    read = fscanf(f, "%ld", &megabits) == 1; /* -1 or a read error: not reported */
    fclose(f);
    return read && megabits > 0 && megabits <= 10000000 ? (double)megabits * 1e6 / 8 : 0;
}

double sherd__interface_rate(const char *folder)
{
    DIR *dir = opendir(folder);
    double best = 0;
    if (!dir) return 0;
    for (struct dirent *e; (e = readdir(dir));) {
        double rate = e->d_name[0] == '.' ? 0 : interface_speed(folder, e->d_name);
        if (rate > best) best = rate;
    }
    closedir(dir);
    return best;
}

double sherd__link_rate(bool local)
{
    double most = CARRIED * sherd__cipher_rate();
    double line = local ? most : sherd__interface_rate("/sys/class/net");
    if (line == 0) line = ETHERNET;
    return line < most ? line : most;
}
