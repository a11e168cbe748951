/*
 * The choices for one product, and their forecasts. The schemes to choose from are read from the
 * table of schemes: a scheme that is added there is listed here.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/hooks.h"
#include "core/options.h"
#include "core/rand.h"
#include "core/wipe.h"
#include "scheduler/plan/forecast.h"
#include "scheduler/plan/profile.h"
#include "sherd/forecast.h"

/* Groups of columns, from the fewest messages to the least that a node learns. */
static const uint32_t groups[] = { 0, 16, 1 };

#define PARTS 100u /* of the progress of each choice */

typedef struct choice {
    sherd_product_options opt;
    char name[48];
    sherd_diag unfit; /* code 0, or why the operands' values do not suit it */
    sherd_diag why;   /* code 0, or why there is no forecast */
    sherd_forecast forecast;
} choice;

struct sherd_choices {
    sherd_view a, b;
    uint8_t seed[32];
    sherd_profile *own[2]; /* made here, or NULL */
    bool preferred;        /* the first choice is what the caller wants */
    bool known;            /* there are forecasts */
    size_t len, room;
    choice *list;
};

static void name_choice(choice *c)
{
    const sherd_scheme_info *s = sherd_scheme_get(c->opt.scheme);
    bool shuffles = s->takes & SHERD_TAKES_SHUFFLES;
    if (shuffles && c->opt.group == 0) snprintf(c->name, sizeof c->name, "%s, all", s->name);
    else if (shuffles) snprintf(c->name, sizeof c->name, "%s, %" PRIu32, s->name, c->opt.group);
    else if (s->takes & SHERD_TAKES_COLLUDING)
        snprintf(c->name, sizeof c->name, "%s, %" PRIu32 " colluding", s->name, c->opt.colluding);
    else snprintf(c->name, sizeof c->name, "%s", s->name);
}

static void add(sherd_choices *c, const sherd_product_options *opt)
{
    for (size_t i = 0; i < c->len; i++)
        if (c->list[i].opt.scheme == opt->scheme && c->list[i].opt.group == opt->group) return;
    choice *one = &c->list[c->len++];
    *one = (choice){ .opt = *opt };
    name_choice(one);
}

static void add_scheme(sherd_choices *c, const sherd_product_options *base,
                       const sherd_scheme_info *s)
{
    sherd_product_options opt = *base;
    bool masks = s->takes & SHERD_TAKES_MASKS;
    size_t all = s->takes & SHERD_TAKES_SHUFFLES ? sizeof groups / sizeof *groups : 1;
    if (masks && !base->masks) return;
    opt.scheme = s->scheme;
    opt.exact = base->exact || s->exact_only;
    if (masks && !base->bits_bind) opt.bits = 0; /* as the masks specify */
    for (size_t i = 0; i < all; i++) {
        opt.group = groups[i];
        add(c, &opt);
    }
}

static int list_all(sherd_choices *c, const sherd_product_options *base, sherd_diag *d)
{
    const sherd_scheme_info *s;
    size_t schemes = 0;
    while (sherd_scheme_at(schemes)) schemes++;
    c->room = 1 + schemes * sizeof groups / sizeof *groups;
    c->list = sherd__calloc(c->room, sizeof *c->list);
    if (!c->list) return sherd__fail_memory(d, "the choices");
    if (c->preferred) add(c, base);
    for (size_t i = 0; (s = sherd_scheme_at(i)); i++) add_scheme(c, base, s);
    return SHERD_OK;
}

/* Returns the error of the call: that of the preferred choice, or of the first one if no choice is
 * possible. */
static int judge(const sherd_choices *c, const sherd_diag *of_first, size_t possible, sherd_diag *d)
{
    if (possible > 0 && !(c->preferred && of_first->code)) return SHERD_OK;
    return sherd__fail(d, of_first->code, of_first->hint, "%s", of_first->message);
}

/* Operands are read once, and later calls know their values. */
static int examine(const sherd_choices *c, const sherd_product_options *opt, sherd_diag *d)
{
    sherd__hooked all = sherd__hooks_begin(&opt->hooks);
    sherd__hooked_part part = { .all = &all };
    const sherd_view v[2] = { c->a, c->b };
    sherd_profile *const profiles[2] = { opt->profile_a, opt->profile_b };
    uint64_t bytes[2];
    int err = SHERD_OK;
    for (int i = 0; i < 2; i++) {
        if (!v[i].data) return SHERD_OK; /* there are shapes only */
        bytes[i] = (uint64_t)v[i].rows * v[i].cols * sherd_dtype_size(v[i].dtype);
        part.total += bytes[i];
    }
    for (int i = 0; i < 2 && !err; i++) {
        part.share = bytes[i];
        const sherd_hooks hooks = sherd__hooks_part(&part);
        err = sherd__profile_examine(profiles[i], &hooks, d);
        part.before += bytes[i];
    }
    return err;
}

static int check_ranges(sherd_choices *c, sherd_diag *d)
{
    size_t possible = 0;
    bool values = c->a.data && c->b.data;
    for (size_t i = 0; i < c->len; i++) {
        choice *one = &c->list[i];
        int err = values ? sherd_product_range(c->a, c->b, &one->opt, &one->unfit) : SHERD_OK;
        if (err) one->unfit.code = err;
        else possible++;
    }
    return judge(c, &c->list[0].unfit, possible, d);
}

static int take_profiles(sherd_choices *c, sherd_product_options *opt, sherd_diag *d)
{
    int err = SHERD_OK;
    if (c->a.data && !opt->profile_a) err = sherd_profile_new(&c->own[0], c->a, d);
    if (!err && c->b.data && !opt->profile_b) err = sherd_profile_new(&c->own[1], c->b, d);
    if (c->own[0]) opt->profile_a = c->own[0];
    if (c->own[1]) opt->profile_b = c->own[1];
    return err;
}

int sherd_choices_new(sherd_choices **out, sherd_view a, sherd_view b,
                      const sherd_product_options *opt, sherd_diag *d)
{
    sherd_product_options base;
    *out = NULL;
    int err = sherd__product_options_read(&base, opt, d);
    if (err) return err;
    sherd_choices *c = sherd__calloc(1, sizeof *c);
    if (!c) return sherd__fail_memory(d, "the choices");
    c->a = a;
    c->b = b;
    c->preferred = opt->scheme != 0;
    sherd__entropy os = sherd__entropy_os();
    if (base.seed) memcpy(c->seed, base.seed, sizeof c->seed);
    else os.fill(os.ctx, c->seed, sizeof c->seed);
    if (!base.seed) base.seed_drawn = true;
    if (base.seed || !base.shuffles) base.seed = c->seed;
    err = take_profiles(c, &base, d);
    if (!err) err = list_all(c, &base, d);
    if (!err) err = examine(c, &base, d);
    if (!err) err = check_ranges(c, d);
    if (err) sherd_choices_free(c);
    else *out = c;
    return err;
}

void sherd_choices_free(sherd_choices *c)
{
    if (!c) return;
    sherd_profile_free(c->own[0]);
    sherd_profile_free(c->own[1]);
    sherd__free(c->list);
    sherd__wipe(c, sizeof *c);
    sherd__free(c);
}

size_t sherd_choices_count(const sherd_choices *c)
{
    return c->len;
}

const char *sherd_choices_name(const sherd_choices *c, size_t i)
{
    return i < c->len ? c->list[i].name : NULL;
}

const sherd_product_options *sherd_choices_options(const sherd_choices *c, size_t i)
{
    return i < c->len ? &c->list[i].opt : NULL;
}

int sherd_choices_forecast(sherd_choices *c, const sherd_forecast_options *f, sherd_diag *d)
{
    sherd_forecast_options with;
    size_t possible = 0;
    int err = sherd__options_read(&with, sizeof with, f, "sherd_forecast_options", d);
    if (err) return err;
    sherd__hooked hooks = sherd__hooks_begin(&with.hooks);
    sherd__hooked_part part = { &hooks, 0, PARTS, PARTS * c->len };
    with.hooks = sherd__hooks_part(&part);
    for (size_t i = 0; i < c->len; i++, part.before += PARTS) {
        choice *one = &c->list[i];
        one->why = one->unfit;
        one->forecast = (sherd_forecast){ .size = sizeof one->forecast };
        err = one->why.code ? one->why.code
                            : sherd_forecast_multiply(c->a, c->b, &one->opt, &with, &one->forecast,
                                                      &one->why);
        if (err == SHERD_EINTERRUPTED) return sherd__fail(d, err, NULL, "interrupted");
        if (err) one->why.code = err;
        else possible++;
        if (!err && !with.no_time)
            with.rates.gflops = one->forecast.rates.gflops; /* once for all */
        err = sherd__hooks_step(&hooks, part.before + PARTS, part.total, d);
        if (err) return err;
    }
    c->known = true;
    return judge(c, &c->list[0].why, possible, d);
}

int sherd_choices_at(const sherd_choices *c, size_t i, sherd_forecast *out, sherd_diag *d)
{
    int err = sherd__result_check(out, "sherd_forecast", d);
    if (err) return err;
    if (i >= c->len || !c->known)
        return sherd__fail(d, SHERD_EINVAL, "call sherd_choices_forecast first",
                           "choice %zu of %zu has no forecast", i, c->len);
    const choice *one = &c->list[i];
    if (one->why.code) return sherd__fail(d, one->why.code, one->why.hint, "%s", one->why.message);
    sherd__result_write(out, &one->forecast, sizeof one->forecast);
    return SHERD_OK;
}
