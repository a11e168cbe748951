/* The cost of each way to compute a product, as a table or as JSON: `sherd plan`, multiply
 * --dry-run; and the forecast of one product. */
#ifndef CLI_PLAN_H
#define CLI_PLAN_H

#include "cli/cli.h"
#include "cli/progress.h"
#include "sherd/forecast.h"

/** Returns a forecast as JSON. */
json_t *sherd__plan_object(const sherd_forecast *f);
/** Prints a line for each choice, a legend, and whether the quickest one pays. The first choice is
 *  marked if it is the preferred one. links: how the rate of the links was found. */
void sherd__plan_print(const sherd_choices *choices, bool preferred, const char *links);
/** Returns the choices as JSON: an array, with the key "chosen" if the first one is preferred. */
json_t *sherd__plan_array(const sherd_choices *choices, bool preferred);

/** Begins a progress line, which is shown from the first second on: operands of gigabytes are read
 *  several times. sherd__progress_fini ends it. */
void sherd__plan_progress_init(sherd__progress_line *line, const sherd__cli *cli, const char *what,
                               const char *unit);
void sherd__plan_progress(sherd__progress_line *line, const sherd_progress *p);

#endif
