/* Public queries of the table of schemes. The description of an unknown scheme has only a name, so
 * it is treated as a scheme that hides nothing. */
#include "scheduler/plan/schemes.h"

#include "core/field.h"

const sherd__scheme *sherd__scheme_find(sherd_scheme s)
{
    for (const sherd__scheme *e = sherd__schemes; e->info; e++)
        if (e->info->scheme == s) return e;
    return NULL;
}

const sherd_scheme_info *sherd_scheme_at(size_t i)
{
    const sherd__scheme *e = sherd__schemes;
    while (i > 0 && e->info) e++, i--;
    return e->info;
}

const sherd_scheme_info *sherd_scheme_get(sherd_scheme s)
{
    static const sherd_scheme_info unknown = { .name = "unknown" };
    const sherd__scheme *e = sherd__scheme_find(s);
    return e ? e->info : &unknown;
}

bool sherd_scheme_private(sherd_scheme s)
{
    const sherd_scheme_info *info = sherd_scheme_get(s);
    return info->hides_a && info->withstands != SHERD_WITHSTANDS_NONE;
}

bool sherd_scheme_for_network(sherd_scheme s)
{
    const sherd_scheme_info *info = sherd_scheme_get(s);
    return info->scheme && (info->hides_b || !sherd_scheme_private(s));
}

/* ---- fields ---------------------------------------------------------------------------------- */

#define FIELD(member, TYPE, text) SHERD__FIELD(sherd_scheme_info, member, TYPE, "", text)

static const char *const withstands[] = { "none", "some", "all", NULL };
static const char *const keeps[] = { "nothing", "right", "left", NULL };
static const sherd_field scheme_info_fields[] = {
    FIELD(scheme, U32, "number of the scheme"),
    FIELD(name, NAME, "value of --scheme"),
    FIELD(about, NAME, "what each node learns of a product"),
    FIELD(training, NAME, "what each node learns of a network"),
    FIELD(hides_a, BOOL, "A's entries are hidden"),
    FIELD(hides_b, BOOL, "B's entries are hidden"),
    SHERD__FIELD_ENUM(sherd_scheme_info, withstands, withstands, "nodes that may collude"),
    FIELD(hides_zeros, BOOL, "messages do not depend on entries"),
    FIELD(exact_only, BOOL, "fixed point only"),
    FIELD(residues, BOOL, "operands are sent as residues"),
    SHERD__FIELD_ENUM(sherd_scheme_info, keeps, keeps, "operand that can stay at the nodes"),
    FIELD(takes, U32, "options that it reads, SHERD_TAKES_..."),
    FIELD(public_b, U32, "number of the scheme for a B that need not be hidden"),
};
SHERD__FIELDS(sherd_scheme_info, scheme_info_fields)
