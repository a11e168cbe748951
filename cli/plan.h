/* The cost of each choice of scheme, as a table or as JSON: `sherd plan`, multiply --dry-run. */
#ifndef CLI_PLAN_H
#define CLI_PLAN_H

#include "cli/cli.h"
#include "sherd/forecast.h"

/** Formats the name of a choice: "permute, all", "share, 2 colluding". */
const char *sherd__plan_choice(const sherd_product_options *opt, char out[48]);
/** Formats how many of how many answers decode: "7 of 9"; "-" if all are needed. */
const char *sherd__plan_answers(const sherd_forecast *f, char out[24]);
/** Returns a forecast as JSON. */
json_t *sherd__plan_object(const sherd_forecast *f);

#endif
