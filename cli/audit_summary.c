/* The audit at the end of `sherd demo`, on digits of the same kind as the demo's. */
#include <inttypes.h>
#include <math.h>

#include "cli/audit.h"
#include "cli/fields.h"

enum { PUBLISHED, PERMUTE, SHARE, ROWS };

static const struct {
    sherd_audit_form form;
    const char *name, *key;
} rows[ROWS] = {
    [PUBLISHED] = { SHERD_AUDIT_PERMUTE_PUBLISHED, "permute, as published", "permute_published" },
    [PERMUTE] = { SHERD_AUDIT_PERMUTE, "permute, as sent here", "permute" },
    [SHARE] = { SHERD_AUDIT_SHARE, "share", "share" },
};

static void print_row(const char *name, const sherd_audit_sketched *s)
{
    printf("  %-26s %8.0f %% %13.0f %%\n", name, 100 * s->columns,
           isnan(s->labels) ? 0 : 100 * s->labels);
}

/* own: the products were of the user's images. */
static void print_rows(uint32_t nodes, bool own, const sherd_audit_sketched s[ROWS])
{
    printf("\n");
    sherd__cli_print_prose(0,
                           "What one of %" PRIu32 " nodes recognises of its columns, and of 300 "
                           "generated digits, with 4000 public digits%s",
                           nodes, own ? "" : ":");
    if (own) printf("(not of your images: sherd audit --data attacks a record of these):\n");
    printf("  %-26s %10s %15s\n", "", "columns", "digits");
    for (size_t i = 0; i < ROWS; i++)
        if (isnan(s[i].columns)) printf("  share needs three nodes\n");
        else print_row(rows[i].name, &s[i]);
    printf("  %-26s %8.1f %% %13.0f %%\n", "by chance", 100 * s[PUBLISHED].columns_chance,
           100 * s[PUBLISHED].labels_chance);
    sherd__cli_print_prose(0, "The most common digit is guessed by chance; of 300, some percent "
                              "more or less mean nothing.");
    sherd__cli_print_prose(0, "permute, the scheme of both runs above, hides little from a node "
                              "that has data of the same kind;");
    sherd__cli_print_prose(0, "share hides A and B from any one node. docs/THREATS.md lists what "
                              "each scheme reveals.");
}

int sherd__audit_summary(uint32_t nodes, bool own, json_t *out, sherd_diag *d)
{
    sherd_audit_sketched s[ROWS] = { 0 };
    int err = 0;
    for (size_t i = 0; i < ROWS && !err; i++) {
        s[i].size = sizeof s[i];
        err = sherd_audit_sketch(rows[i].form, nodes, &s[i], d);
    }
    if (err || isnan(s[PUBLISHED].columns)) return err; /* the node was given no column */
    if (!out) {
        print_rows(nodes, own, s);
        return 0;
    }
    json_t *audit = json_object();
    for (size_t i = 0; i < ROWS; i++)
        json_object_set_new(audit, rows[i].key,
                            sherd__fields_object(&s[i], sherd_audit_sketched_fields, NULL));
    json_object_set_new(out, "audit", audit);
    return 0;
}
