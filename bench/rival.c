/*
 * Measurements here compared with numpy doing the same work, all at once, in place, with as many
 * threads. The scripts of bench/ are embedded in this command. The two sides alternate, so that
 * load on the machine affects both; a figure is the ratio of their medians. With small arrays
 * several threads may be slower than one. numpy then also runs with one thread, and its faster
 * setting counts.
 */
#include "bench/bench.h"

#define SCRIPT(symbol, file)                                                                       \
    __asm__(".pushsection .rodata\n.globl " #symbol "\n.hidden " #symbol "\n" #symbol ":\n"        \
            ".incbin \"bench/" file "\"\n.byte 0\n.popsection")

SCRIPT(sherd__bench_deep_py, "deep.py");
SCRIPT(sherd__bench_mnist_py, "mnist_epoch.py");
SCRIPT(sherd__bench_spiral_py, "spiral.py");

/* Runs one turn of numpy in each of its settings. *had: numpy is installed. */
static int turn_of_numpy(sherd__bench *b, sherd__rivalry *r, bool *had, sherd_diag *d)
{
    for (unsigned one = 0; one <= (r->small ? 1 : 0); one++) {
        sherd_diag mine = { 0 };
        double *out = one ? &r->one[r->with] : &r->there[r->with];
        int err = sherd__numpy_run(b, r->script, r->args, one, out, 1, &mine);
        if (err == SHERD_EUNSUPPORTED) *had = false;
        if (err == SHERD_EUNSUPPORTED) return 0;
        if (err) return sherd__fail(d, err, mine.hint, "%s", mine.message);
    }
    r->with++;
    return 0;
}

/* Returns the median of numpy's turns in the faster setting and leaves those turns in r->there. */
static double quicker(sherd__rivalry *r)
{
    double many[SHERD__BENCH_RUNS_MAX], one[SHERD__BENCH_RUNS_MAX];
    for (int i = 0; i < r->with; i++) many[i] = r->there[i], one[i] = r->one[i];
    double all = sherd__median(many, r->with), single = sherd__median(one, r->with);
    if (!r->small || all <= single) return all;
    for (int i = 0; i < r->with; i++) r->there[i] = r->one[i];
    return single;
}

int sherd__rivalry_run(sherd__bench *b, sherd__rivalry *r, sherd__figure *f, sherd_diag *d)
{
    bool had = true;
    int runs = sherd__bench_runs(b, r->turns), err = 0;
    r->with = 0;
    for (int i = 0; i < runs && !err; i++) {
        err = r->turn(r->ctx, &r->here[i], d);
        if (!err && had) err = turn_of_numpy(b, r, &had, d);
    }
    if (err) return err;
    r->numpy = quicker(r);
    for (int i = 0; i < r->with; i++) sherd__figure_add(f, r->here[i] / r->there[i]);
    r->own = sherd__median(r->here, runs);
    if (r->with > 0) f->median = r->own / r->numpy;
    else f->remark = "no numpy in /usr/bin/python3: nothing to compare with";
    return 0;
}
