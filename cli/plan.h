/* What each choice of scheme would take, as a table or as JSON: `sherd plan`, multiply
 * --dry-run. */
#ifndef CLI_PLAN_H
#define CLI_PLAN_H

#include "cli/cli.h"
#include "sherd/forecast.h"

/** "permute, all", "share, 2 colluding": how a choice is called. */
const char *sherd__plan_choice(const sherd_product_options *opt, char out[48]);
/** "7 of 9": how many answers of how many decode; "-" where all are needed. */
const char *sherd__plan_answers(const sherd_forecast *f, char out[24]);
/** A forecast as JSON. */
json_t *sherd__plan_object(const sherd_forecast *f);

#endif
